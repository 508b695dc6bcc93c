"""The two gates: the only ways into memory and out of it."""

from __future__ import annotations
