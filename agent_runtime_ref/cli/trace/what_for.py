"""What a read was asked for, and where what it returned went: several in a turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_runtime_ref.cli.trace.log_shapes import considered_of, texts

_BUILT, _BEGINS = "context_layers_built", "run_start"


def asked_for(line: Mapping[str, Any]) -> str:
    """Return purpose, classes, kinds and sources of a read as one sentence; empty where a line names none."""
    query = line["input"].get("query")
    if not isinstance(query, Mapping) or not isinstance(query.get("purpose"), str):
        return ""
    classes = texts(query.get("allowed_classes"))
    said = f"for {query['purpose']}" + (f", of {', '.join(classes)}" if classes else "")
    parts = [(name, texts(query.get(f"{name}s"))) for name in ("kind", "source")]
    return said + "".join(f"; {name} {', '.join(values)}" for name, values in parts if values)


def entered(lines: Sequence[Mapping[str, Any]], place: int) -> Iterator[str]:
    """Yield for each layer of the context that a read was for what of its answer stood there."""
    considered = considered_of(lines[place])
    context = None if considered is None else _context_of(lines, place)
    if considered is None or context is None:
        return
    returned = [row[0] for row in considered.returned]
    for name, ids in ids_by_layer(context).items():
        if both := [str(one) for one in returned if one in ids]:
            yield f"entered the context, in layer {name}: {', '.join(both)}"


def ids_by_layer(line: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids of the records that an event about a context names, by layer."""
    layers = line["payload"].get("record_ids")
    return {str(name): texts(ids) for name, ids in layers.items()} if isinstance(layers, Mapping) else {}


def _context_of(lines: Sequence[Mapping[str, Any]], place: int) -> Mapping[str, Any] | None:
    """Return the next context that was built; None where a turn begins before: that one is another's."""
    own = lines[place].get("decision_id")
    for line in lines[place + 1 :]:
        payload = line.get("payload")
        if not isinstance(payload, Mapping):
            continue
        if line["event_type"] == _BUILT:
            # Outside of a turn a read has a context of its own.
            return line if _is_of_turn(lines, line) or payload.get("decision_id") == own else None
        if line["event_type"] == _BEGINS:
            return None
    return None


def _is_of_turn(lines: Sequence[Mapping[str, Any]], context: Mapping[str, Any]) -> bool:
    """Tell whether a context is that of a turn: the decision about the turn is its precheck."""
    decision_id = context["payload"].get("decision_id")
    return any(
        line.get("event_type") == "policy_precheck" and line["payload"].get("decision_id") == decision_id
        for line in lines
        if isinstance(line.get("payload"), Mapping)
    )
