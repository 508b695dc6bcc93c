"""Writing down what happened beside the gates: a run began, constraints were merged, a judge failed.

What the gates do they write down themselves. Whoever builds on them tells of his own work here, in the words
of the event catalogue and in nobody else's: a string that is no harmless identifier becomes a digest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.enforcement.attributes import subjects_named
from agent_runtime_ref.enforcement.gates import Gates
from agent_runtime_ref.telemetry.words import Words

__all__ = ["tell"]


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
        DecisionLogError: the log cannot be written.
    """
    recorder, attributes = gates.recorder, gates.attributes
    subjects = subjects_named(caller)
    call = recorder.call(caller, event_type, trace_id=None, session_id=None, subjects=subjects)
    shown = {name: _shown(value, attributes.words) for name, value in payload.items()}
    if keys:
        pseudonym, subject = attributes.pseudonyms.of, caller.own_subject
        shown["keys"] = [pseudonym(caller.tenant_id, subject, key) for key in keys]
    if decision_id is not None:
        shown["decision_id"] = decision_id
    event = recorder.event(call, event_type, None, shown, decides=False)
    recorder.keep([], [event], read=False, tenant_id=caller.tenant_id)


def _shown(value: Any, words: Words) -> Any:
    if isinstance(value, str):
        return words.safe(value)
    if isinstance(value, Mapping):
        return {words.safe(name): _shown(inner, words) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(inner, words) for inner in value]
    return value
