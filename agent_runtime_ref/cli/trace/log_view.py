"""The decision log for people: lines grouped by trace, each in one sentence, and the fate of one record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.cli.trace.log_shapes import considered_of, mappings, reasons_in, texts
from agent_runtime_ref.cli.trace.what_for import asked_for, entered, ids_by_layer
from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.telemetry.reader import decision_of

Line = dict[str, Any]
_READ_PATH = "memory/read/"
_NOTHING_EVALUATED: Mapping[int, str] = {}
# Events about one record -> what became of it.
_FATES = {
    "memory_persisted": "written",
    "memory_quarantined": "quarantined",
    "memory_released": "released",
    "memory_rejected": "rejected",
    "memory_forgotten": "forgotten",
    "plan_mismatch": "dropped_by_second_check",
}


@dataclass(slots=True)
class Trace:
    """What the log holds under one trace id, oldest first."""

    trace_id: str
    session_id: str | None = None
    lines: list[Line] = field(default_factory=list)


def traces_of(entries: Iterable[tuple[str, Any]], trace_id: str | None) -> list[Trace]:
    """Return the traces in `entries` (place, JSON), in the order of their first lines; one of them by its id.

    Raises:
        DocumentUnreadableError: an entry is none of a log.
    """
    traces: dict[str, Trace] = {}
    for place, document in entries:
        line = _line(place, document)
        if line is None:
            continue
        own = str(line["trace_id"])
        if trace_id is not None and own != trace_id:
            continue
        trace = traces.setdefault(own, Trace(own))
        trace.lines.append(line)
        trace.session_id = trace.session_id or line.get("session_id")
    for trace in traces.values():
        # Reads and writes are two logs; an instant has a fraction only where it needs one.
        trace.lines.sort(key=lambda line: _instant(line["timestamp"]))
    return sorted(traces.values(), key=lambda trace: _instant(trace.lines[0]["timestamp"]))


def tree_lines(
    trace: Trace,
    record_id: str | None,
    fates: Mapping[int, Mapping[str, Any]] | None = None,
    evaluated: Mapping[int, str] = _NOTHING_EVALUATED,
) -> Iterator[str]:
    """Yield a trace as a tree: below it its decisions, below each of these its events.

    With a record, only what is said of it: what became of it by the line at each place, `fates`, and a
    further sentence, `evaluated`.
    """
    if record_id is not None and fates is None:
        fates = fates_in(trace, record_id)
    yield f"{trace.trace_id}" + (f"  session {trace.session_id}" if trace.session_id else "")
    told = {
        index: [*_details(line), *entered(trace.lines, index)]
        if fates is None
        else [*_sentences(line, record_id or "", fates.get(index))]
        for index, line in enumerate(trace.lines)
    }
    for index, sentence in evaluated.items():
        told[index].append(sentence)
    nodes = _nodes(trace.lines)
    if record_id is not None:
        nodes = [
            (index, kept)
            for index, below in nodes
            if (kept := [one for one in below if told[one]]) or told[index]
        ]
        if not nodes:
            yield f"└─ `{record_id}` was not considered in this trace"
    yield from _drawn(nodes, trace.lines, told)


def _drawn(
    nodes: Sequence[tuple[int, Sequence[int]]], lines: Sequence[Line], told: Mapping[int, Sequence[str]]
) -> Iterator[str]:
    for place, (index, below) in enumerate(nodes, start=1):
        corner, stem = ("└─", "   ") if place == len(nodes) else ("├─", "│  ")
        yield f"{corner} {_headline(lines[index])}"
        yield from (f"{stem}   {detail}" for detail in told[index])
        for step, one in enumerate(below, start=1):
            corner, inner = ("└─", "   ") if step == len(below) else ("├─", "│  ")
            yield f"{stem}{corner} {_headline(lines[one])}"
            yield from (f"{stem}{inner}   {detail}" for detail in told[one])


def _nodes(lines: Sequence[Line]) -> list[tuple[int, list[int]]]:
    """Return the places of lines below which nothing decided is told, each with those of its own events."""
    below: dict[str, list[int]] = {
        str(line["decision_id"]): [] for line in lines if _is_decision(line) and "decision_id" in line
    }
    top = []
    for index, line in enumerate(lines):
        if _is_decision(line):
            top.append((index, below.get(str(line.get("decision_id")), [])))
            continue
        decision_id = line["payload"].get("decision_id")
        if isinstance(decision_id, str) and decision_id in below:
            below[decision_id].append(index)
        else:
            top.append((index, []))
    return top


def fates_in(trace: Trace, record_id: str) -> dict[int, dict[str, Any]]:
    """Return what became of a record by each line that says it, by the place of the line."""
    fates = ((place, fate_in(line, record_id)) for place, line in enumerate(trace.lines))
    return {place: fate for place, fate in fates if fate is not None}


def _sentences(line: Line, record_id: str, fate: Mapping[str, Any] | None) -> Iterator[str]:
    if fate is not None:
        yield _fate_sentence(record_id, fate)
    layers = layers_with(line, record_id)
    if layers:
        yield f"`{record_id}` entered the context, in layer {', '.join(layers)}"


def layers_with(line: Line, record_id: str) -> list[str]:
    """Return the layers of a context that hold a record; none of a line that tells of no context."""
    if _is_decision(line) or line["event_type"] != "context_layers_built":
        return []
    return [name for name, ids in ids_by_layer(line).items() if record_id in ids]


def fate_in(line: Line, record_id: str | None) -> dict[str, Any] | None:
    """Return what a line says became of a record; None where it says nothing about any record."""
    if record_id is None:
        return None
    if _is_decision(line):
        return _fate_in_decision(line, record_id)
    payload = line["payload"]
    if payload.get("record_id") == record_id and line["event_type"] in _FATES:
        outcome = {"outcome": _FATES[line["event_type"]], "at": line["timestamp"]}
        return outcome | {name: payload[name] for name in ("reasons", "rule_ids") if name in payload}
    selected = [row.get("record_id") for row in mappings(payload.get("selected"))]
    # Beside its decision line the event would say the same twice; a trace file has only the event.
    if line["event_type"] == "retrieval" and "type" not in line:
        return {"outcome": "returned" if record_id in selected else "not_returned", "at": line["timestamp"]}
    return None


def _fate_in_decision(line: Line, record_id: str) -> dict[str, Any] | None:
    considered = considered_of(line)
    base = {
        "operation": line["input"].get("operation"),
        "requested_by": line["requested_by"],
        "at": line["timestamp"],
    }
    if considered is None and line.get("type") == "decision":
        return _fate_in_refusal(line, base)
    if considered is None:
        return _fate_in_question(line, record_id)
    for rank, row in enumerate(considered.returned, start=1):
        if row[0] == record_id:
            return base | {"outcome": "returned", "rank": rank}
    for row in considered.kept_out:
        if row[0] == record_id:
            return base | {"outcome": "kept_out", "reason": row[-1]}
    # Returned or kept out beyond what a line may hold: that is not the same as never looked at.
    return base | {"outcome": "not_considered" if considered.unnamed == 0 else "not_in_log"}


def _fate_in_refusal(line: Line, base: dict[str, Any]) -> dict[str, Any] | None:
    """Return the refusal of a whole read, which is about every record; None of another decision."""
    if not str(line.get("path")).startswith(_READ_PATH) or line["result"].get("effect") != "deny":
        return None
    rows = mappings(line["result"].get("deny"))
    return base | {
        "outcome": "read_refused",
        "reasons": sorted({str(row.get("reason")) for row in rows}),
        "rule_ids": sorted({str(row.get("rule_id")) for row in rows}),
    }


def _fate_in_question(line: Line, record_id: str) -> dict[str, Any] | None:
    """Return what an OPA server said of a record that a question put to it."""
    asked, answer = line["input"].get("candidates"), line["result"]
    rows = asked if isinstance(asked, list) and "excluded" in answer else []
    ids = [row.get("record_id") if isinstance(row, Mapping) else None for row in rows]
    index = ids.index(record_id) if record_id in ids else None
    if index is None:
        return None
    base = {"operation": line["input"].get("operation"), "requested_by": line["requested_by"]}
    base["at"] = line["timestamp"]
    excluded = mappings(answer["excluded"])
    reasons = sorted(str(row.get("reason")) for row in excluded if row.get("index") == index)
    if reasons:
        return base | {"outcome": "kept_out", "reason": reasons[0]}
    admitted = answer.get("admitted")
    is_admitted = isinstance(admitted, list) and index in admitted
    return base | {"outcome": "admitted" if is_admitted else "not_admitted"}


def _fate_sentence(record_id: str, fate: Mapping[str, Any]) -> str:
    outcome = fate["outcome"]
    sentences = {
        "returned": f"`{record_id}` was returned" + (f", rank {fate['rank']}" if "rank" in fate else ""),
        "kept_out": f"`{record_id}` was kept out: {fate.get('reason')}{_rules(fate)}",
        "read_refused": f"the read was refused: {', '.join(texts(fate.get('reasons')))}{_rules(fate)}",
        "not_considered": f"`{record_id}` was not considered: the query is not about it, or there is a wall",
        "not_in_log": f"`{record_id}` is not named by the line; it may have ranked below the limit",
        "not_returned": f"`{record_id}` was not returned; the decision log says why",
    }
    why = ", ".join(texts(fate.get("reasons")))
    otherwise = f"`{record_id}` was {outcome.replace('_', ' ')}" + (f": {why}" if why else "")
    return sentences.get(outcome, otherwise)


def _rules(fate: Mapping[str, Any]) -> str:
    named = texts(fate.get("rule_ids"))
    return f" ({', '.join(named)})" if named else ""


def _headline(line: Line) -> str:
    if _is_decision(line):
        operation = line["input"].get("operation", "?")
        return f"{line['timestamp']}  {operation}: {_effect(line)}  by {_principal(line)}"
    payload = line["payload"]
    about = payload.get("record_id") or payload.get("effect") or ""
    return f"{line['timestamp']}  {line['event_type']}  {about}".rstrip()


def _principal(line: Line) -> str:
    """Return who asked: an OPA server knows only the address of whoever put the question, and logs that."""
    asker = line["input"].get("caller")
    named = asker.get("principal_id") if isinstance(asker, Mapping) else None
    own = line.get("type") == "decision"
    return named if not own and isinstance(named, str) and named else str(line["requested_by"])


def _effect(line: Line) -> str:
    """Return what was decided; OPA itself logs only the answer of the policy."""
    result = line["result"]
    if "effect" in result:
        return str(result["effect"])
    if not result:
        return "undefined"
    if "allowed" not in result:
        return "allow" if result.get("allow") is True else "deny"
    return " and ".join(_write_effects(result)) or "deny"


def _write_effects(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what became of candidates of a write, each outcome once; what is held back is allowed too."""
    allowed, denied, held = (
        [row.get("index") if isinstance(row, Mapping) else row for row in result.get(name) or ()]
        for name in ("allowed", "deny", "quarantine")
    )
    if any(index not in held and index not in denied for index in allowed):
        yield "allow"
    if any(index not in denied for index in held):
        yield "quarantine"
    if denied:
        yield "deny"


def _details(line: Line) -> Iterator[str]:
    if not _is_decision(line):
        return
    bundles = line.get("bundles")
    revisions = mappings(list(bundles.values())) if isinstance(bundles, Mapping) else []
    revision = next((one.get("revision") for one in revisions), "unknown")
    yield f"decision {line['decision_id']}, policy {revision}"
    for name in ("erased", "masked"):
        if pointers := texts(line.get(name)):
            yield f"{name}: {', '.join(pointers)}"
    for name in ("deny", "quarantine"):
        yield from (f"{name}: {one}" for one in reasons_in(line["result"].get(name)))
    considered = considered_of(line)
    if considered is None:
        return
    if asked := asked_for(line):
        yield asked
    yield f"returned: {', '.join(str(row[0]) for row in considered.returned) or 'nothing'}"
    for row in considered.kept_out:
        yield f"kept out: {row[0]}, {row[-1]}"
    if considered.unnamed > 0:
        yield f"and {considered.unnamed} more {'was' if considered.unnamed == 1 else 'were'} considered"


def _line(place: str, document: Any) -> Line | None:
    """Return an entry as a line of our own; None of what a server says beside its decisions.

    OPA names a trace only where it is traced itself; else each decision is a trace, under its own id.
    """
    source, _, number = place.rpartition(":")
    decision = decision_of(document, source=source, line=int(number))
    if decision is None and "event_type" not in document:
        return None
    line: Line = dict(document)
    if decision is not None:
        line |= {"trace_id": decision.trace_id or decision.decision_id, "input": decision.input}
        line |= {"result": decision.result, "requested_by": decision.requested_by}
    elif not isinstance(line.get("payload"), dict) or not isinstance(line["event_type"], str):
        raise _unreadable(place, "it is neither a decision nor an event")
    if not isinstance(line.get("trace_id"), str) or not isinstance(line.get("timestamp"), str):
        raise _unreadable(place, "it has no trace_id and timestamp")
    return line


def _is_decision(line: Line) -> bool:
    return not isinstance(line.get("payload"), dict)


def _unreadable(place: str, reason: str) -> DocumentUnreadableError:
    source, _, number = place.rpartition(":")
    return DocumentUnreadableError(f"line of the log not readable: {reason}", source=source, line=int(number))


def _instant(text: str) -> str:
    """Return a text by which instants sort, with or without a fraction."""
    return text.removesuffix("Z").ljust(26, "0") if "." in text else f"{text.removesuffix('Z')}.000000"
