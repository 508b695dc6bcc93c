"""A turn as the work after its reply sees it, and as it waits in a file until that work is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from agent_runtime_ref.contracts import Caller

__all__ = ["Turn", "turn_document", "turn_of"]

STATUSES = frozenset({"complete", "failed", "cancelled", "interrupted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What was said in a turn, by whom and to whom."""

    turn_id: str
    caller: Caller  # with trace and session
    purpose: str
    message: str
    reply: str  # empty where there was none
    status: str  # complete, failed, cancelled or interrupted
    at_us: int  # when the message came
    decision_id: str  # of the precheck
    mark: str  # of the caller's subject; another one says that it was forgotten since
    tools: tuple[str, ...] = ()  # that answered in the turn
    log_seq: int = 0  # of the log line with which it began; 0 where that is not known


def turn_document(turn: Turn) -> dict[str, Any]:
    """Return a turn as plain values, for a file of its own."""
    caller = turn.caller
    shown = {
        "tenant_id": caller.tenant_id,
        "principal_id": caller.principal_id,
        "session_id": caller.session_id,
        "trace_id": caller.trace_id,
        "subject": caller.subject,
        "roles": list(caller.roles),
        "agent_id": caller.agent_id,
    }
    rest = {one.name: getattr(turn, one.name) for one in fields(turn) if one.name != "caller"}
    return {**rest, "caller": shown}


def turn_of(document: Mapping[str, Any]) -> Turn:
    """Return the turn of a document that was read back.

    Raises:
        ValueError, TypeError, KeyError, DocumentError: it is none; the file is not what was written.
    """
    values = dict(document)
    caller = values.pop("caller")
    values["tools"] = tuple(values["tools"])
    turn = Turn(**values, caller=Caller(**{**caller, "roles": tuple(caller["roles"])}))
    numbers = (turn.at_us, turn.log_seq)
    texts = (turn.turn_id, turn.purpose, turn.message, turn.reply, turn.decision_id, turn.mark, *turn.tools)
    if not all(isinstance(one, str) for one in texts) or not all(type(one) is int for one in numbers):
        raise ValueError("a field of the turn has another type")
    if turn.status not in STATUSES:
        raise ValueError("the turn has no known status")
    return turn
