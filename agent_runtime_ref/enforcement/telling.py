"""Writing down what happened beside the gates: a run began, constraints were merged, a judge failed.

What the gates do they write down themselves. Whoever builds on them tells of his own work here, in the words
of the event catalogue and in nobody else's: a string that is no harmless identifier becomes a digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.arguments import require_integer, require_string
from agent_runtime_ref.enforcement.attributes import subjects_named
from agent_runtime_ref.enforcement.gates import Gates
from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.telemetry.events import CATALOGUE, OWN_FACTS
from agent_runtime_ref.telemetry.words import Words

__all__ = ["tell"]

DEPTH_MAX = 8  # of a value; what is deeper, or in itself, is no account of anything


def tell(
    gates: Gates,
    event_type: str,
    payload: Mapping[str, Any],
    *,
    caller: Caller,
    keys: Sequence[str] = (),
    decision_id: str | None = None,
) -> None:
    """Commit one event to the log of writes and hand it to the mirrors.

    `keys` are those of records about the caller's subject; they stand in the event as pseudonyms, as they do
    in a decision line, and go with the subject when it is forgotten.

    Raises:
        DocumentValueError: the catalogue has no such event or field, the field is one of `OWN_FACTS`, a key
            stands in the payload, or a value is none of JSON; or the event tells of a decision, which only a
            gate takes.
        DecisionLogError: the log cannot be written.
    """
    _require_catalogued(event_type, payload, named=[*(["keys"] if keys else ()), "decision_id"])
    recorder, attributes = gates.recorder, gates.attributes
    subjects = subjects_named(caller)
    call = recorder.call(caller, event_type, trace_id=None, session_id=None, subjects=subjects)
    shown = {name: _shown(value, attributes.words, name) for name, value in payload.items()}
    if keys:
        pseudonym, subject = attributes.pseudonyms.of, caller.own_subject
        shown["keys"] = [pseudonym(caller.tenant_id, subject, key) for key in keys]
    if decision_id is not None:
        shown["decision_id"] = attributes.words.safe(decision_id)
    event = recorder.event(call, event_type, None, shown, decides=False)
    recorder.keep([], [event], read=False, tenant_id=caller.tenant_id)


def _require_catalogued(event_type: str, payload: Mapping[str, Any], *, named: Sequence[str]) -> None:
    row = CATALOGUE.get(event_type)
    if row is None:
        raise _refused("event_type", f"`{event_type}` is no event of the catalogue")
    if row.decides:
        raise _refused("event_type", f"`{event_type}` tells of a decision, which only a gate takes")
    for name in payload:
        require_string("payload", name)
        if name in OWN_FACTS:
            raise _refused(name, "is a fact of the event itself, which nobody tells")
        if name == "keys":  # as it is, it would tell what somebody wants, also when he is forgotten
            raise _refused(name, "holds pseudonyms; hand the keys over as `keys`")
    for name in (*payload, *named):
        if name not in row.allowed:
            raise _refused(name, f"is no field of the event {event_type}")


def _refused(name: str, problem: str) -> DocumentValueError:
    return DocumentValueError(f"event $.{name}: {problem}", path=f"$.{name}")


def _shown(value: Any, words: Words, place: str, depth: int = 0) -> Any:
    """Return a value as it may stand in a line, whose numbers every reader of JSON takes as they are.

    Raises:
        DocumentTypeError, DocumentValueError: it is nothing that JSON has, or too deep to be an account.
    """
    if depth > DEPTH_MAX:
        raise _refused(place, f"must be nested {DEPTH_MAX} deep at most")
    named = f"event $.{place}"
    if isinstance(value, str):
        require_string(named, value)
        return words.safe(str(value))
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise _refused(place, "has a name that is no text")
            require_string(named, name)
        return {
            words.safe(str(name)): _shown(inner, words, place, depth + 1) for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_shown(inner, words, place, depth + 1) for inner in value]
    if isinstance(value, int) and not isinstance(value, bool):
        require_integer(named, value)
        return value
    if value is None or isinstance(value, bool) or (isinstance(value, float) and isfinite(value)):
        return value
    raise _refused(place, f"is a {type(value).__name__}, which is no value of JSON")
