"""`Sessions`: the state of threads behind the gates.

Loading is a read decision, merging a write decision for each constraint. The governed record says that a
constraint was admitted, by which decision, for how long; pt.json is the projection of what was admitted, and
the only thing that is enforced. So the gate goes first and the file second, and a refusal leaves the file as
it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from agent_runtime_ref.clock import Clock, Ids, RandomIds
from agent_runtime_ref.contracts import Caller, Decision, MemoryCandidate, RetrievalQuery, RetrievalResult
from agent_runtime_ref.contracts.arguments import each_of
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.errors import DocumentError, EngineFailureError, PolicyDeniedError
from agent_runtime_ref.session_state import files
from agent_runtime_ref.session_state.forgetting import ForgottenThreads
from agent_runtime_ref.session_state.kept import (
    LIFE_LINE,
    NOBODY,
    TTL,
    TURNS_MAX,
    KeptState,
    KeptTurns,
    Turn,
    again,
    is_expired,
    require_exchange,
)
from agent_runtime_ref.session_state.merging import merged
from agent_runtime_ref.session_state.places import Place, sessions_folder, user_folder
from agent_runtime_ref.session_state.records import (
    MEMORY_CLASS,
    SOURCE,
    after,
    constraint,
    content_of,
    key_of,
    released,
    ruled,
)
from agent_runtime_ref.session_state.state import EMPTY, SessionState, counted
from agent_runtime_ref.telemetry import turns as runtime_turns

if TYPE_CHECKING:
    from agent_runtime_ref.contracts import ForgetReceipt
    from agent_runtime_ref.enforcement.write import Outcome
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["Loaded", "MergeReceipt", "Sessions"]

_LIMIT = 100
_Kept = TypeVar("_Kept", KeptState, KeptTurns)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What stands for a thread now, and why there may be nothing."""

    state: SessionState
    expired: bool = False
    damaged: str | None = None  # the reason; the state is empty then
    aside: Path | None = None  # where the damaged file was put
    waiting: int = 0  # constraints in quarantine, which hold from the first load behind their release


@dataclass(frozen=True, slots=True)
class MergeReceipt:
    """The state after a merge, and what the policy and the rules of merging made of each constraint."""

    state: SessionState
    entered: tuple[Finding, ...]
    refused: tuple[tuple[Finding, str], ...]  # with the reason
    decisions: tuple[Decision, ...]


class Sessions:
    """The session state of every thread below one folder. Thread-safe, and safe for processes."""

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        folder: str | Path | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        ttl: timedelta = TTL,
    ) -> None:
        """Name the gates, and where files lie (else AGENT_RUNTIME_SESSIONS says); nothing is made.

        The clock is that of the memory unless another is given.
        """
        self._memory = memory
        self._root = sessions_folder() if folder is None else Path(folder)
        self._clock = clock or memory.clock
        self._ids = ids or RandomIds()
        self._ttl = ttl

    @property
    def folder(self) -> Path:
        """Where the files of all threads lie."""
        return self._root

    def load(self, thread_id: str, *, caller: Caller, purpose: str = "answer_generation") -> SessionState:
        """Return the constraints in force in a thread of the caller's subject; empty where there are none.

        Where there is no file nothing is read, and so nothing decided.

        Raises:
            PolicyDeniedError: the policy does not let the caller read them; no turn may begin without them.
            SessionStateError: the file cannot be read.
        """
        return self.look(thread_id, caller=caller, purpose=purpose, aside=True).state

    def look(
        self, thread_id: str, *, caller: Caller, purpose: str = "answer_generation", aside: bool = False
    ) -> Loaded:
        """Return what `load` returns, and why it may be empty; a damaged file stays without `aside`."""
        place = Place.of(thread_id, caller, self._root)
        try:
            kept = files.read(place, files.PT, KeptState.of)
        except files.DamagedError as damage:
            self._decide_read(place, NOBODY, caller, purpose)
            path = self._set_aside(place, files.PT, KeptState.of) if aside else None
            return Loaded(EMPTY, damaged=damage.reason, aside=path)
        if kept is None:
            return Loaded(EMPTY)
        self._decide_read(place, kept.life or NOBODY, caller, purpose)
        if self._is_over(kept):
            return Loaded(EMPTY, expired=True)
        kept = self._with_released(kept, place, caller, purpose)
        return Loaded(kept.state, waiting=len(kept.held))

    def merge(self, thread_id: str, findings: Iterable[Finding], *, caller: Caller) -> MergeReceipt:
        """Merge the findings of one turn into a thread, each as far as the write policy admits it.

        Raises:
            DocumentValueError: a finding is a standing preference.
            SessionStateError: the files cannot be written.
            GovernanceError: engine, store or log failed; the files are as they were.
        """
        turn = tuple(each_of("findings", findings, Finding))
        place = Place.of(thread_id, caller, self._root)
        with files.locked(place), files.swept(place):
            kept = self._standing(place, files.PT, KeptState.of, KeptState(), caller)
            life = kept.life or self._ids.new("session")
            with suppress(DocumentError, PolicyDeniedError):  # who may not read them may still add to them
                kept = self._with_released(kept, place, caller)
            wanted = merged(kept.state, turn)
            outcomes = self._written([constraint(one, life, caller) for one in wanted.entered], life, caller)
            came = ruled(wanted.entered, outcomes)
            if came.entered or came.waiting:
                kept = after(kept, came, life, self._clock.now_us())
                files.write(place, files.PT, kept.to_document())
        receipt = MergeReceipt(kept.state, came.entered, (*wanted.refused, *came.refused), came.decisions)
        if turn:
            self._tell(receipt, life, caller)
        return receipt

    def save(self, state: SessionState, thread_id: str, *, caller: Caller) -> MergeReceipt:
        """Have a thread hold every constraint of `state`; what it holds besides stays, as with any merge."""
        return self.merge(thread_id, state.findings, caller=caller)

    def add_turn(
        self,
        thread_id: str,
        user_text: str,
        reply: str | None,
        *,
        caller: Caller,
        status: str = "complete",
    ) -> Turn:
        """Add an exchange to a thread's turns.json and return it as it was kept.

        Both texts pass the write gate. What it refuses or holds back is None, what it redacts is redacted.
        A turn that is added again, as after a crash, is the one that is there: a turn of a runtime by its id,
        another if it was the last under the caller's trace.

        Raises:
            DocumentTypeError, DocumentValueError: nobody said anything, or it ended in no known way.
            SessionStateError: the file cannot be written.
        """
        require_exchange(user_text, reply, status)
        place = Place.of(thread_id, caller, self._root)
        with files.locked(place), files.swept(place):
            kept = self._standing(place, files.TURNS, KeptTurns.of, KeptTurns(), caller)
            life = kept.life or self._ids.new("session")
            now_us = self._clock.now_us()
            admitted = [self._admitted(text, life, caller) for text in (user_text, reply)]
            said = runtime_turns.said()
            turn_id = None if said is None else said.turn_id
            turn = Turn(now_us, admitted[0], admitted[1], status, caller.trace_id, turn_id)
            there = again(turn, kept.turns)
            if there is not None:
                return there
            turns = (*kept.turns, turn)[-TURNS_MAX:]
            files.write(place, files.TURNS, KeptTurns(turns, life, now_us).to_document())
        return turn

    def turns(
        self, thread_id: str, *, caller: Caller, purpose: str = "answer_generation"
    ) -> tuple[Turn, ...]:
        """Return the exchanges of a thread that have not expired, earliest first."""
        place = Place.of(thread_id, caller, self._root)
        try:
            kept = files.read(place, files.TURNS, KeptTurns.of)
        except files.DamagedError:
            kept = KeptTurns()
        if kept is None:
            return ()
        self._decide_read(place, kept.life or NOBODY, caller, purpose)
        return () if self._is_over(kept) else kept.turns

    def clear(self, thread_id: str, *, caller: Caller) -> bool:
        """Remove a thread's constraints and turns, records and files; returns whether there were any.

        Raises:
            PolicyDeniedError: the caller may not have them removed; everything is as it was.
        """
        place = Place.of(thread_id, caller, self._root)
        if place.thread not in files.folders_in(place.folder.parent):
            return False
        return self._cleared(place, caller.own_subject, caller)[0]

    def forget(self, subject: str, *, caller: Caller, dry_run: bool = False) -> int:
        """Remove every thread of a person, as part of forgetting him; returns how many there are or were.

        What `forget_threads` says, without the receipts.
        """
        return self.forget_threads(subject, caller=caller, dry_run=dry_run).threads

    def forget_threads(self, subject: str, *, caller: Caller, dry_run: bool = False) -> ForgottenThreads:
        """Remove every thread of a person, as part of forgetting him; returns what went, or would go.

        That somebody may have the person erased is decided first, also where nothing is to go: how many
        threads a person has is nobody else's to know.

        Raises:
            PolicyDeniedError: the caller is neither that person nor has a role that may erase.
            SessionStateError: a folder cannot be looked into; what could not be found is not gone.
        """
        self._decide_removal(subject, caller)
        folder = user_folder(replace(caller, subject=subject), self._root)
        places = [Place(self._root, folder.name, name) for name in files.folders_in(folder)]
        receipts: list[ForgetReceipt] = []
        for place in places:
            if dry_run:
                lives = files.found_in(place, LIFE_LINE)
                receipts += [self._forgotten(life, caller, dry_run=True) for life in lives]
            else:
                receipts += self._cleared(place, subject, caller)[1]
        if places and not dry_run:
            with suppress(OSError):  # somebody may have begun a thread meanwhile
                folder.rmdir()
        return ForgottenThreads(len(places), tuple(receipts))

    def _cleared(self, place: Place, person: str, caller: Caller) -> tuple[bool, list[ForgetReceipt]]:
        """Return whether there was anything, and the receipts of its records."""
        with files.locked(place):
            lives = files.found_in(place, LIFE_LINE)
            if not lives:  # damage must not make a removal that nobody decided
                self._decide_removal(person, caller)
            receipts = [self._forgotten(life, caller) for life in lives]
            return files.remove(place), receipts

    def _decide_removal(self, person: str, caller: Caller) -> None:
        """Return if the policy lets the caller have `person` erased; the decision is logged, nothing goes.

        Raises:
            PolicyDeniedError: it does not.
        """
        self._memory.forget(subject=person, caller=caller, dry_run=True)

    def _forgotten(self, life: str, caller: Caller, *, dry_run: bool = False) -> ForgetReceipt:
        """Have the records of a life removed; for callers who may act for the person whose life it is.

        A life is nobody's name, so the policy takes it for the caller's own: it is the person that has to be
        decided about before, by the place of the thread or by `_decide_removal`.
        """
        return self._memory.forget(subject=life, caller=replace(caller, subject=life), dry_run=dry_run)

    def _standing(
        self,
        place: Place,
        name: str,
        made: Callable[[Mapping[str, Any]], _Kept],
        empty: _Kept,
        caller: Caller,
    ) -> _Kept:
        """Return what a file holds that is still in force; for who holds the lock."""
        try:
            kept = files.read(place, name, made) or empty
        except files.DamagedError as damage:
            files.put_aside(place, name, damage.reason)
            return empty
        if not self._is_over(kept):
            return kept
        # The records of what is over would be nobody's: only this file knows whose they are.
        try:
            self._forgotten(str(kept.life), caller)
        except EngineFailureError:
            raise
        except PolicyDeniedError:
            pass  # on record; an operator can still have them removed
        return empty

    def _is_over(self, kept: KeptState | KeptTurns) -> bool:
        return is_expired(kept.saved_at_us, now_us=self._clock.now_us(), ttl=self._ttl)

    def _set_aside(self, place: Place, name: str, made: Callable[[Mapping[str, Any]], object]) -> Path | None:
        """Put a damaged file aside, unless somebody has done so meanwhile."""
        with files.locked(place):
            try:
                files.read(place, name, made)
            except files.DamagedError as damage:
                return files.put_aside(place, name, damage.reason)
        return None

    def _decide_read(
        self, place: Place, life: str, caller: Caller, purpose: str, record_ids: tuple[str, ...] = ()
    ) -> RetrievalResult:
        """Return what the policy lets the caller read of a life, or of these records of it; it is logged.

        Raises:
            PolicyDeniedError: it does not let him read at all.
        """
        query = RetrievalQuery(
            caller.trace_id or self._ids.new("trc"),
            caller.session_id or place.thread,
            caller.tenant_id,
            caller.principal_id,
            purpose,
            (MEMORY_CLASS,),
            _LIMIT,
            sources=(SOURCE,),
            record_ids=record_ids,
        )
        return self._memory.read(query, caller=replace(caller, subject=life), operation="list")

    def _with_released(
        self, kept: KeptState, place: Place, caller: Caller, purpose: str = "answer_generation"
    ) -> KeptState:
        """Return what is in force where a reviewer let constraints out of quarantine; nothing is written."""
        if not kept.held:
            return kept
        ids = tuple(one.record_id for one in kept.held)
        result = self._decide_read(place, str(kept.life), caller, purpose, ids)
        words = {hit.record.memory_id: hit.record.content for hit in result.hits}
        return released(kept, words)

    def _written(self, candidates: list[MemoryCandidate], life: str, caller: Caller) -> list[Outcome]:
        if not candidates:
            return []
        return self._memory.write_many(candidates, caller=replace(caller, subject=life))

    def _admitted(self, text: str | None, life: str, caller: Caller) -> str | None:
        """Return a text as the write policy admits it; of what cannot be a memory at all, nothing."""
        if text is None or not text.strip():
            return text
        try:
            candidate = MemoryCandidate(
                caller.tenant_id,
                MEMORY_CLASS,
                "conversation",
                text,
                SOURCE,
                1.0,
                "session_turn",
                subject=life,
            )
            return content_of(self._written([candidate], life, caller)[0])
        except DocumentError:  # a reply that is longer than a memory may be, or no text that can be kept
            return None

    def _tell(self, receipt: MergeReceipt, life: str, caller: Caller) -> None:
        self._memory.tell(
            "session_constraints_merged",
            {
                "counts": counted(receipt.entered),
                "refused": len(receipt.refused),
                "total": len(receipt.state.findings),
            },
            caller=replace(caller, subject=life),
            keys=[key_of(finding) for finding in receipt.entered],
        )
