"""`Curator`: splits a turn into what holds for this session and what holds from now on, and keeps both.

It runs after the reply, and after every turn: small talk, a clarification, a cancelled and a failed one too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from agent_runtime_ref.contracts import Caller, Finding
from agent_runtime_ref.curator.judging import Judge, believed
from agent_runtime_ref.curator.rules.judge import RuleJudge
from agent_runtime_ref.errors import (
    DecisionLogError,
    EngineFailureError,
    GovernanceError,
    JudgeError,
    ModelError,
    PolicyDeniedError,
)
from agent_runtime_ref.preferences.curation import Curated
from agent_runtime_ref.preferences.identity import is_anonymous

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory
    from agent_runtime_ref.session_state import MergeReceipt

__all__ = ["CurationResult", "Curator", "Preferences", "Threads"]


class Threads(Protocol):
    """Where the constraints of a session go; `session_state.Sessions` is one."""

    def merge(self, thread_id: str, findings: Iterable[Finding], *, caller: Caller) -> MergeReceipt:
        """Merge the findings of one turn into a thread."""


class Preferences(Protocol):
    """Where standing preferences go, through their one writer; `preferences.PreferenceStore` is one."""

    def write_many(
        self, findings: Sequence[Finding], *, caller: Caller, source_session: str | None = None
    ) -> tuple[Curated, ...]:
        """Keep standing preferences of the caller's subject."""


@dataclass(frozen=True, slots=True)
class CurationResult:
    """What was found in a turn, and what became of it."""

    session: tuple[Finding, ...]  # what was to hold for this session
    standing: tuple[Finding, ...]  # what was to hold from now on
    merged: MergeReceipt | None  # None: there was nothing to merge, no session, or the policy refused
    curated: tuple[Curated, ...]  # of each of `standing`, in order; empty where the policy refused the change
    refused: tuple[str, ...] = ()  # `session`, `standing`: what the policy refused as a whole


class Curator:
    """Judges turns and keeps what they say of their user. Thread-safe if its judge is."""

    def __init__(
        self,
        memory: GovernedMemory,
        *,
        judge: Judge | None = None,
        sessions: Threads | None = None,
        preferences: Preferences | None = None,
    ) -> None:
        """Judge by `judge`, else by the rules, and keep in `memory` where nothing else is named."""
        from agent_runtime_ref.preferences import PreferenceStore
        from agent_runtime_ref.session_state import Sessions

        self._memory = memory
        self._judge = RuleJudge() if judge is None else judge
        self._sessions = Sessions(memory) if sessions is None else sessions
        self._preferences = PreferenceStore(memory=memory) if preferences is None else preferences

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> CurationResult | None:
        """Keep what a turn says of the caller's subject, and return it; None where the judge failed.

        A session's constraints go into the thread `caller.session_id`. Of nobody in particular nothing is
        kept for good: what he always wants is in force in this session.

        Raises:
            EngineFailureError, StoreError, DecisionLogError, SessionStateError: it could not be kept. Doing
                it again is safe: what was merged is merged to the same, and preferences come last.
        """
        found = self._judged(user_text, reply, caller)
        if found is None:
            return None
        session = [finding for finding in found if finding.scope == "session"]
        standing = [finding for finding in found if finding.scope == "standing"]
        if is_anonymous(caller):
            session += [replace(finding, scope="session", keys_to_supersede=()) for finding in standing]
            standing = []
        return self._kept(session, standing, caller)

    def _judged(self, user_text: str, reply: str, caller: Caller) -> list[Finding] | None:
        """Return what the judge found; None, with an event, where it failed in whatever way."""
        try:
            return believed(self._judge.judge(user_text, reply), user_text, self._judge)
        except Exception as error:
            self._tell_failure(error, caller)
            return None

    def _kept(self, session: list[Finding], standing: list[Finding], caller: Caller) -> CurationResult:
        merged: MergeReceipt | None = None
        curated: tuple[Curated, ...] = ()
        refused: list[str] = []
        thread = caller.session_id
        if session and thread is not None and thread.strip():
            try:
                merged = self._sessions.merge(thread, session, caller=caller)
            except EngineFailureError:
                raise  # nobody has refused anything: it is kept when the engine answers again
            except PolicyDeniedError:  # on record
                refused.append("session")
        if standing:
            try:
                curated = self._preferences.write_many(standing, caller=caller, source_session=thread)
            except EngineFailureError:
                raise
            except PolicyDeniedError:
                refused.append("standing")
        return CurationResult(tuple(session), tuple(standing), merged, curated, tuple(refused))

    def _tell_failure(self, error: Exception, caller: Caller) -> None:
        # A judge of somebody else's may have forgotten its name, and nothing is raised here.
        name = getattr(self._judge, "name", None)
        payload = {"judge": name if isinstance(name, str) else type(self._judge).__name__}
        payload["error.type"] = type(error).__name__
        if isinstance(error, GovernanceError):
            payload["error.code"] = error.code
        from agent_runtime_ref.telemetry import diagnostics

        # The sentence of an error of a model or a judge of ours names who was asked, and no content.
        said = str(error) if isinstance(error, JudgeError | ModelError) else None
        diagnostics.failed("curation_failed", error, detail=said)
        try:
            self._memory.tell("curation_failed", payload, caller=caller)
        except DecisionLogError as failure:
            diagnostics.error("curation_failed_untold", reason=type(failure).__name__)
