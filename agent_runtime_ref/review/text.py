"""Text of a bundle that nobody vouches for, made one line that neither an eye nor a terminal is fooled by."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

__all__ = ["is_identifier", "plain", "value_text"]

# Controls, formats (direction marks, invisible joiners), surrogates, private use, line and paragraph ends.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:\-]{0,127}\Z")
_TEXT_MAX = 4_000  # of one title or description; a longer one is cut and says so


def plain(text: object) -> str:
    """Return `text` on one line, runs of blanks as one, and what cannot be seen as an escape."""
    line = " ".join(str(text)[: _TEXT_MAX + 1].split())
    if len(line) > _TEXT_MAX:
        line = line[:_TEXT_MAX] + " [cut]"
    if line.isascii() and line.isprintable():
        return line
    return "".join(_escape(one) if unicodedata.category(one) in _UNSEEN else one for one in line)


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def is_identifier(text: str) -> bool:
    """Tell whether `text` can stand in an anchor or in code as it is."""
    return _IDENTIFIER.match(text) is not None


def value_text(value: Any) -> str:
    """Return a value of settings or of a document for a reader who knows no JSON."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, str):
        return plain(value) or "empty"
    if isinstance(value, list):
        return ", ".join(value_text(one) for one in value) or "none"
    if isinstance(value, dict):
        if value and all(isinstance(one, bool) for one in value.values()):
            return ", ".join(plain(name) if one else f"not {plain(name)}" for name, one in value.items())
        return ", ".join(f"{plain(name)}: {value_text(one)}" for name, one in value.items()) or "none"
    return plain(json.dumps(value, ensure_ascii=False))
