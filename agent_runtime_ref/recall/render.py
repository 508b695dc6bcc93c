"""Rendering hits for a prompt: data in an XML-like block, every value escaped.

Memory text is somebody's words. Inside the block it can neither close an element nor open one, so it
cannot pass for the frame around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.contracts.stored import StoredMemory

if TYPE_CHECKING:
    from agent_runtime_ref.recall.hits import RecallHit, RecallResult

# Characters that XML 1.0 forbids or terminals act on; tab and line feed may stay.
_CONTROLS = (code for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in (0x09, 0x0A))
_FORBIDDEN = dict.fromkeys((*_CONTROLS, *range(0xD800, 0xE000), 0xFFFE, 0xFFFF), "\N{REPLACEMENT CHARACTER}")

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
    lines.extend(render_memory(record, rank) for rank, record in enumerate(records, start=1))
    lines.append("</retrieved_memories>")
    return "\n".join(lines)


def render_memory(record: MemoryRecord, rank: int) -> str:
    """Return one record as a line of the retrieved layer."""
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
    return f"<memory{head}>{element_text(record.content)}</memory>"


def render_recall_context(result: RecallResult) -> str:
    """Return the hits of a recall as a block for a prompt; an empty string where there are none."""
    if not result.hits:
        return ""
    query = result.query
    head = _attributes(
        ("query_id", query.query_id),
        ("normalized_query", query.normalized_text),
        ("user_scope", query.user_scope),
    )
    lines = [f"<recalled_context{head}>"]
    for hit in result.hits:
        lines.extend(_hit_lines(hit))
    lines.append("</recalled_context>")
    return "\n".join(lines)


def render_remote_profile(record: StoredMemory) -> str:
    """Return a profile snapshot as the block that a conversation begins with, and where it came from."""
    head = _attributes(
        ("memory_id", record.memory_id),
        ("source_id", record.source.source_id),
        ("captured_at", record.source.captured_at),
    )
    return f"<remote_profile{head}>\n{element_text(record.content)}\n</remote_profile>"


def _hit_lines(hit: RecallHit) -> Iterable[str]:
    score, source = hit.score_breakdown, hit.provenance
    place = _attributes(
        ("rank", str(hit.rank)),
        ("memory_id", hit.memory_id),
        ("user_scope", hit.scope.user_scope),
        ("memory_kind", hit.scope.memory_kind),
    )
    numbers = _attributes(
        ("total", f"{score.total:.6f}"),
        ("lexical_coverage", f"{score.lexical_coverage:.6f}"),
        ("recency", f"{score.recency:.6f}"),
        ("lexical_contribution", f"{score.lexical_contribution:.6f}"),
        ("recency_contribution", f"{score.recency_contribution:.6f}"),
    )
    origin = _attributes(
        ("source_id", source.source_id),
        ("source_type", source.source_type),
        ("captured_at", source.captured_at),
    )
    return (
        f"<hit{place}>",
        f"<score{numbers}/>",
        f"<provenance{origin}/>",
        f"<snippet>{element_text(hit.snippet)}</snippet>",
        "</hit>",
    )


def _attributes(*pairs: tuple[str, str]) -> str:
    return "".join(attribute(name, value) for name, value in pairs)
