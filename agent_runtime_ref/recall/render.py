"""Rendering hits for a prompt: data in an XML-like block, every value escaped.

Memory text is somebody's words. Inside the block it can neither close an element nor open one, so it
cannot pass for the frame around it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_runtime_ref.contracts import MemoryRecord

# Characters that XML 1.0 forbids and terminals act on; tab and line feed may stay.
_FORBIDDEN = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(0x20), 0x7F) if code not in (0x09, 0x0A)}

_PLAIN = re.compile(r"[A-Za-z0-9_.:-]*\Z")  # what needs no escaping; nearly every id and class


def element_text(text: str) -> str:
    """Return `text` escaped for the inside of an element."""
    # Imported where something is rendered: the module pulls in an HTTP client.
    from xml.sax.saxutils import escape

    return escape(text.translate(_FORBIDDEN))


def attribute(name: str, value: str) -> str:
    """Return ` name="value"` with the value escaped, line breaks included."""
    if _PLAIN.match(value):
        return f' {name}="{value}"'
    from xml.sax.saxutils import quoteattr

    quoted = quoteattr(value.translate(_FORBIDDEN), {"\n": "&#10;", "\t": "&#9;"})
    return f" {name}={quoted}"


def render_memories(records: Sequence[MemoryRecord], *, decision_id: str) -> str:
    """Return the retrieved layer of a context; an empty string where there is nothing to show."""
    if not records:
        return ""
    lines = [f"<retrieved_memories{attribute('decision_id', decision_id)}>"]
    for rank, record in enumerate(records, start=1):
        attributes = (
            ("rank", str(rank)),
            ("memory_id", record.memory_id),
            ("memory_class", record.memory_class),
            ("kind", record.kind),
            ("trust_level", record.trust_level),
            ("source", record.source),
            ("provenance", record.provenance),
        )
        head = "".join(attribute(name, value) for name, value in attributes)
        lines.append(f"<memory{head}>{element_text(record.content)}</memory>")
    lines.append("</retrieved_memories>")
    return "\n".join(lines)
