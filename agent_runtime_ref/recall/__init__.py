"""From a text to ranked matches: pure steps that know nothing of stores or policies."""

from __future__ import annotations
