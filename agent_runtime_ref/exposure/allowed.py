"""What of a line of the log may leave in an export: the fields that are named here, and no other.

The log is a file, and whoever can write it can put anything into it; a newer version may log what this one
does not know. So a field leaves because it is on the list. What is left out is named by its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from agent_runtime_ref.telemetry.events import CATALOGUE

__all__ = ["exported"]

_SEAL = ("seq", "prev_hash", "hash")
_EVENT = (*_SEAL, "type", "event_id", "schema_version", "event_type", "trace_id", "timestamp", "payload")
_DECISION = (
    *_SEAL,
    "type",
    "event_id",
    "input_version",
    "decision_id",
    "trace_id",
    "session_id",
    "timestamp",
    "path",
    "labels",
    "bundles",
    "requested_by",
    "input",
    "result",
    "metrics",
    "considered",
    "erased",
    "masked",
)
# Of what a decision line holds as a mapping, the names within it.
_WITHIN: Mapping[str, Collection[str]] = {
    "labels": ("engine",),
    "bundles": ("memory",),
    "input": ("operation", "now_ns", "caller", "query", "candidates", "review"),
    "result": ("allow", "effect", "deny", "quarantine", "obligations", "assign", "policy"),
    "metrics": ("timer_rego_query_eval_ns",),
    "considered": (
        "columns",
        "returned",
        "kept_out",
        "considered",
        "considered_logged",
        "exclusions",
        "store_revision",
    ),
}
_LEFT_OUT = "redacted_fields"


def exported(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line with what may leave, and in `redacted_fields` the JSON pointers to what was left out."""
    left_out: list[str] = []
    if "event_type" in line:
        kept = _named(line, (*_EVENT, _LEFT_OUT), "", left_out)
        kind = CATALOGUE.get(str(line["event_type"]))
        within: Mapping[str, Collection[str]] = {"payload": frozenset() if kind is None else kind.allowed}
    else:
        kept, within = _named(line, _DECISION, "", left_out), _WITHIN
    for name, allowed in within.items():
        if isinstance(kept.get(name), Mapping):
            kept[name] = _named(kept[name], allowed, f"/{name}", left_out)
        elif name in kept and kept[name] is not None:
            left_out.append(f"/{name}")  # it should be a mapping, so nobody knows what it is
            del kept[name]
    told = line.get(_LEFT_OUT)
    before = [one for one in told if isinstance(one, str)] if isinstance(told, list) else []
    return {**kept, _LEFT_OUT: [*before, *left_out]}


def _named(
    document: Mapping[str, Any], allowed: Collection[str], place: str, left_out: list[str]
) -> dict[str, Any]:
    left_out += [f"{place}/{_escaped(name)}" for name in document if name not in allowed]
    return {name: value for name, value in document.items() if name in allowed}


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
