"""Values of attributes in the units and words of a reader: ages in days, trust by its name, yes and no."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from agent_runtime_ref.review.situations import DAY_NS, NOW_NS, SECOND_NS
from agent_runtime_ref.review.text import plain, value_text

__all__ = ["in_words"]

_LEVELS = {1: "low", 2: "medium", 3: "high"}
_OPERATIONS = {
    "search": "a search",
    "get": "a get",
    "list": "a list",
    "inspect": "an inspection",
    "write": "a write",
    "delete": "a removal",
    "export": "an export",
    "release": "a release",
    "reject": "a rejection",
    "quarantine": "a quarantine",
}


def in_words(name: str, value: Any) -> str:
    """Return a value of the attribute called `name`, in its unit."""
    if isinstance(value, int) and not isinstance(value, bool) and name in _NUMBERS:
        return _NUMBERS[name](value)
    if name == "content_digest" and isinstance(value, str) and value.startswith("hmac:"):
        return "a digest"
    if name == "expires_ns" and value is None:
        return "never expires"
    if name == "operation" and isinstance(value, str):
        return _OPERATIONS.get(value, plain(value))
    if isinstance(value, Mapping):
        return _MAPPINGS[name](value) if name in _MAPPINGS else plain(json.dumps(value, sort_keys=True))
    if name == "findings" and isinstance(value, list):
        return ", ".join(plain(one.get("type")) for one in value if isinstance(one, Mapping)) or "none"
    return value_text(value)


def _level(rank: Any) -> str:
    return _LEVELS.get(rank, value_text(rank))


def _confidence(millionths: int) -> str:
    return f"{millionths / 1_000_000:.6f}".rstrip("0").rstrip(".") or "0"


def _expiry(instant_ns: int) -> str:
    behind = NOW_NS - instant_ns
    if behind == 0:
        return "expires at this very instant"
    return f"expired {_span(behind)} ago" if behind > 0 else f"expires in {_span(-behind)}"


def _span(length_ns: int) -> str:
    """Return a length of time in days and seconds; what lies ahead has a minus."""
    days, rest = divmod(abs(length_ns), DAY_NS)
    seconds = rest // SECOND_NS
    if rest == DAY_NS - SECOND_NS:
        return f"1 second short of {_counted(days + 1, 'day')}"
    parts = [_counted(days, "day")] * (days > 0) + [_counted(seconds, "second")] * (seconds > 0)
    return ("-" if length_ns < 0 else "") + (" and ".join(parts) or "0 seconds")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if abs(number) == 1 else f"{number:,} {what}s"


def _lineage(value: Mapping[str, Any]) -> str:
    if value.get("count") == 0:
        return "nothing"
    if not value.get("known"):
        return "a record that is not there"
    if not value.get("subjects_match"):
        return "a record about somebody else"
    return f"a record of {_level(value.get('min_trust_rank'))} trust"


def _person(value: Mapping[str, Any]) -> str:
    return plain(value.get("principal") or "nobody known")


_NUMBERS: Mapping[str, Callable[[int], str]] = {
    "trust_rank": _level,
    "trust_min_rank": _level,
    "confidence_millionths": _confidence,
    "created_ns": lambda instant_ns: _span(NOW_NS - instant_ns),
    "expires_ns": _expiry,
    "size_bytes": lambda size: f"{size:,} bytes",
    "max_age_days": lambda days: _counted(days, "day"),
    "reason_chars": lambda count: _counted(count, "character"),
}
_MAPPINGS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "lineage": _lineage,
    "replaces": lambda value: f"a record of {_level(value.get('trust_rank'))} trust",
    "written_by": _person,
    "reviewer": _person,
}
