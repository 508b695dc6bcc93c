"""Where records are kept: below the gates, and reached through them only."""

from __future__ import annotations

__all__: list[str] = []
