"""What the files of a thread hold: constraints or turns, of which life, saved when.

A life is one stretch of a thread, from its first constraint to its end by time or by clearing. It is the
subject of the governed records, so that the subject wall of the read policy keeps one thread's records from
every other thread, and what was cleared may be said again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from agent_runtime_ref.contracts.finding import CONTENT_CHARACTERS_MAX, Finding
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError
from agent_runtime_ref.session_state.state import EMPTY, SessionState, finding_of, thing_of

__all__ = [
    "LIFE_LINE",
    "NOBODY",
    "TTL",
    "Held",
    "KeptState",
    "KeptTurns",
    "Turn",
    "again",
    "is_expired",
    "require_exchange",
]

TTL = timedelta(hours=24)  # counted from the last save
NOBODY = "session-none"  # the subject that is asked about where no life has begun
TURNS_MAX = 200  # the earliest go first; constraints never go for want of room
_LIFE = re.compile(r"session-[0-9a-z]{1,64}")
# As a line of a file: no text within one can pass for it, because its line breaks are escaped there.
LIFE_LINE = re.compile(rf'^ "life": "({_LIFE.pattern})"', re.MULTILINE)
_STATUSES = ("complete", "failed", "cancelled", "refused")


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange; a text that the write policy did not admit is None.

    Raises:
        ValueError: a part is of the wrong type.
    """

    at_us: int
    user_text: str | None
    reply: str | None
    status: str = "complete"  # or failed, cancelled, refused
    trace_id: str | None = None  # of the run that answered it
    turn_id: str | None = None  # of the turn of a runtime; a trace may have several

    def __post_init__(self) -> None:
        texts = (self.user_text, self.reply, self.trace_id, self.turn_id)
        if not _is_instant(self.at_us) or not all(isinstance(text, str | None) for text in texts):
            raise ValueError("a turn has an instant and texts")
        if self.status not in _STATUSES:
            raise ValueError(f"the status of a turn is one of {', '.join(_STATUSES)}")

    def to_document(self) -> dict[str, Any]:
        """Return the turn as JSON knows it."""
        return {
            "at_us": self.at_us,
            "user_text": self.user_text,
            "reply": self.reply,
            "status": self.status,
            "trace_id": self.trace_id,
            "turn_id": self.turn_id,
        }

    def is_again(self, other: Turn) -> bool:
        """Tell whether this is the same turn as `other`, whenever it was added."""
        if self.turn_id is not None:
            return self.turn_id == other.turn_id
        same = replace(self, at_us=other.at_us, turn_id=other.turn_id)  # who adds it may not know its id
        return self.trace_id is not None and same == other


def again(turn: Turn, kept: Sequence[Turn]) -> Turn | None:
    """Return the turn among those that are `kept` that is the same; without an id it can only be the last."""
    near = kept if turn.turn_id is not None else kept[-1:]
    return next((one for one in near if turn.is_again(one)), None)


@dataclass(frozen=True, slots=True)
class Held:
    """A constraint that waits in quarantine; its words are in its record, and nowhere else."""

    record_id: str
    before: int  # how many of the constraints that stand had been said before it
    parts: Mapping[str, Any]  # of the finding as a document, all but `content`

    @classmethod
    def of(cls, finding: Finding, record_id: str, before: int) -> Held:
        """Return what is kept of a finding whose record waits."""
        parts = finding.to_document()
        del parts["content"]
        return cls(record_id, before, parts)

    def finding(self, content: str) -> Finding:
        """Return the finding with the words of its record."""
        return finding_of({**self.parts, "content": content[:CONTENT_CHARACTERS_MAX]})

    def to_document(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        return {"record_id": self.record_id, "before": self.before, "finding": dict(self.parts)}


@dataclass(frozen=True, slots=True)
class KeptState:
    """What pt.json holds."""

    state: SessionState = EMPTY
    life: str | None = None
    held: tuple[Held, ...] = ()  # in the order in which they were said

    def to_document(self) -> dict[str, Any]:
        """Return the part of the file that is its own."""
        document = {
            "life": self.life,
            "saved_at_us": self.state.saved_at_us,
            "findings": [finding.to_document() for finding in self.state.findings],
            "record_ids": [self.state.records.get(thing_of(finding)) for finding in self.state.findings],
        }
        return document | ({"held": [one.to_document() for one in self.held]} if self.held else {})

    @property
    def saved_at_us(self) -> int | None:
        """When it was saved last."""
        return self.state.saved_at_us

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> KeptState:
        """Return what a document holds; what it raises is damage."""
        _only(document, "life", "saved_at_us", "findings", "record_ids", "held")
        findings = tuple(finding_of(one) for one in _listed(document["findings"]))
        records = _records(document.get("record_ids"), findings)
        state = SessionState(findings, _instant(document["saved_at_us"]), records)
        held = tuple(_held(one, len(findings)) for one in _listed(document.get("held", [])))
        return cls(state, _life(document["life"]), held)


@dataclass(frozen=True, slots=True)
class KeptTurns:
    """What turns.json holds."""

    turns: tuple[Turn, ...] = ()
    life: str | None = None
    saved_at_us: int | None = None

    def to_document(self) -> dict[str, Any]:
        """Return the part of the file that is its own."""
        return {
            "life": self.life,
            "saved_at_us": self.saved_at_us,
            "turns": [turn.to_document() for turn in self.turns],
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> KeptTurns:
        """Return what a document holds; what it raises is damage."""
        _only(document, "life", "saved_at_us", "turns")
        turns = tuple(Turn(**one) for one in _listed(document["turns"]))
        return cls(turns, _life(document["life"]), _instant(document["saved_at_us"]))


def require_exchange(user_text: object, reply: object, status: object) -> None:
    """Return if somebody said something, and it ended in a known way.

    Raises:
        DocumentTypeError, DocumentValueError: not so.
    """
    for name, text in (("user_text", user_text), ("reply", reply)):
        if not isinstance(text, str | None):
            raise DocumentTypeError(f"{name}: must be a string or none", path=name)
    if not any(isinstance(text, str) and text.strip() for text in (user_text, reply)):
        raise DocumentValueError("turn: must not be blank", path="user_text")
    if not isinstance(status, str) or status not in _STATUSES:
        raise DocumentValueError(f"status: must be one of {', '.join(_STATUSES)}", path="status")


def is_expired(saved_at_us: int | None, *, now_us: int, ttl: timedelta) -> bool:
    """Tell whether what was saved then has ended by now; it ends at the very instant.

    What claims to come from further ahead than it could live has ended too: it would otherwise live for ever.
    """
    if saved_at_us is None:
        return False
    return abs(now_us - saved_at_us) >= ttl // timedelta(microseconds=1)


def _records(ids: Any, findings: tuple[Finding, ...]) -> dict[tuple[str, ...], str]:
    """Return the ids beside the findings, by what these are about; a file of before has none."""
    if ids is None:
        return {}
    if not all(isinstance(one, str | None) for one in _listed(ids)) or len(ids) != len(findings):
        raise ValueError("there is an id, or None, for each finding")
    return {thing_of(finding): one for finding, one in zip(findings, ids, strict=True) if one is not None}


def _only(document: Mapping[str, Any], *names: str) -> None:
    """Return if a file has these parts alone: who added one meant something that is not enforced."""
    if not set(document) <= {"version", "of", *names}:
        raise ValueError("it has unknown parts")


def _held(document: Any, most: int) -> Held:
    record_id, before, parts = document["record_id"], document["before"], document["finding"]
    if not isinstance(record_id, str) or type(before) is not int or not 0 <= before <= most:
        raise ValueError("it is no constraint that waits")
    held = Held(record_id, before, parts)
    # Its words are the record's, and those that stand here are somebody else's.
    if "content" in parts or held.finding("-").scope != "session":
        raise ValueError("it is no constraint that waits")
    return held


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("it is no list")
    return value


def _is_instant(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _instant(value: Any) -> int:
    if not _is_instant(value):
        raise ValueError("it is no instant")
    return int(value)


def _life(value: Any) -> str:
    if not isinstance(value, str) or _LIFE.fullmatch(value) is None:
        raise ValueError("it is no life")
    return value
