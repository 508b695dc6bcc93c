"""What is said about decisions: log lines, events, spans, diagnostics."""

from __future__ import annotations
