"""Words of others, made harmless for a Markdown page and for a terminal."""

from __future__ import annotations

import json
import re

__all__ = ["cell", "plain", "value_text"]

# What Markdown or a forge acts on; an address or a mention begins with one of these, too.
_ACTIVE = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", ":": "&#58;"}
_WORDS_MAX = 200


def plain(text: str) -> str:
    """Return `text` on one line, with what no eye can see as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(ord(one)) for one in text)


def cell(text: str | None) -> str:
    """Return `text` as it can stand in a cell of a Markdown table, where it is only text."""
    shown = plain("" if text is None else text)
    if len(shown) > _WORDS_MAX:
        shown = shown[: _WORDS_MAX - 1] + "…"
    shown = _ACTIVE.sub(r"\\\1", shown)
    return "".join(_ENTITIES.get(one, one) for one in shown)


def value_text(value: object) -> str:
    """Return a value of the settings as JSON, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _WORDS_MAX else text[: _WORDS_MAX - 1] + "…"


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
