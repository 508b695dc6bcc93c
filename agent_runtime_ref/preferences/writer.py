"""The one writer of preference records, for the curator alone.

Three locks keep everybody else out, each enough by itself: this module may be imported by the curator only
(an import contract), its writer is made only with a capability that is given out once in a process and that
the curator takes, and the write policy demands the role that the writer puts on its caller.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import Caller, MemoryCandidate, MemoryRecord
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.enforcement.revise import Revised, Revision, Revisions
from agent_runtime_ref.errors import AnonymousUserError, PreferenceInvalidError, WritingRightError
from agent_runtime_ref.preferences.curation import Curated
from agent_runtime_ref.preferences.identity import is_anonymous
from agent_runtime_ref.preferences.keys import Key
from agent_runtime_ref.preferences.preference import MEMORY_CLASS, PURPOSE, candidate_of, is_hard, is_stated
from agent_runtime_ref.telemetry import turns

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["PreferenceWriter", "WritingRight", "claim_writing_right"]

ROLE = "curator"
FINDINGS_MAX = 50  # of one turn
STATED_CONFIDENCE = 0.6
INFERRED_CONFIDENCE = 0.5
REPEATED = 0.2
_EFFECTS = {"deny": "refused", "quarantine": "quarantined"}
_SECRET = object()
_guard = threading.Lock()
_issued: WritingRight | None = None


class WritingRight:
    """The capability to write preferences; there is one in a process, and the curator has it."""

    __slots__ = ()

    def __new__(cls, secret: object = None) -> WritingRight:
        """Refuse whoever did not claim it.

        Raises:
            WritingRightError: it is not made by calling this class.
        """
        if secret is not _SECRET:
            raise WritingRightError("the right is claimed, not made")
        return super().__new__(cls)

    def __reduce__(self) -> str:
        raise WritingRightError("the right is not copied into another process")


def claim_writing_right() -> WritingRight:
    """Return the right, once: the curator takes it when it is imported.

    Raises:
        WritingRightError: it was claimed before.
    """
    global _issued
    with _guard:
        if _issued is not None:
            raise WritingRightError("the right was claimed before")
        _issued = WritingRight(_SECRET)
        return _issued


@dataclass(slots=True)
class _Draft:
    """What is going to stand under a key, while findings are taken one by one."""

    content: str
    hard: bool
    stated: bool
    confidence: float
    created_at: datetime
    outcome: str
    findings: list[int]
    contradicts: dict[str, None]


class _Named(NamedTuple):
    """A finding, its key, and the keys that it contradicts."""

    finding: Finding
    key: Key
    others: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class _Taken:
    """The findings of one call, whose they are and where they come from."""

    named: tuple[_Named, ...]
    tenant_id: str
    subject: str
    source_session: str | None

    def candidate(self, key: str, draft: _Draft) -> MemoryCandidate:
        """Return what the gate is offered for a draft."""
        parsed = Key.parsed(key)
        assert parsed is not None, "drafts are kept under derived keys"
        return candidate_of(
            parsed,
            draft.content,
            tenant_id=self.tenant_id,
            subject=self.subject,
            hard=draft.hard,
            stated=draft.stated,
            confidence=draft.confidence,
            created_at=draft.created_at,
            source_session=self.source_session,
        )


class PreferenceWriter:
    """Puts findings into a governed memory, all of one call in one transaction."""

    def __init__(self, right: WritingRight) -> None:
        """Demand the right.

        Raises:
            WritingRightError: what is shown is none.
        """
        if _issued is None or right is not _issued:
            raise WritingRightError("a writer is made with the right to write")

    def write(
        self,
        findings: Sequence[Finding],
        *,
        memory: GovernedMemory,
        caller: Caller,
        source_session: str | None = None,
    ) -> tuple[Curated, ...]:
        """Keep standing preferences of the caller's subject, and return what became of each, in order.

        A repeat takes the later wording and is 0.2 surer, and what was hard stays so; an inference changes
        nothing that was stated. What a finding contradicts, by its keys or because the opposite of the same
        thing was kept, is removed; where that has more trust, the finding is refused.

        Raises:
            AnonymousUserError: the caller is nobody in particular.
            PreferenceInvalidError: a finding is of a session, or there are too many.
            PolicyDeniedError: the policy refuses a removal. A finding that it refuses is told as such.
            EngineFailureError, DecisionLogError, RevisionConflictError: nothing was written.
        """
        if is_anonymous(caller):
            raise AnonymousUserError
        if len(findings) > FINDINGS_MAX:
            raise PreferenceInvalidError("findings", f"must be at most {FINDINGS_MAX} at once")
        if not findings:
            return ()
        taken = _Taken(tuple(map(_named, findings)), caller.tenant_id, caller.own_subject, source_session)
        wanted = [str(one) for named in taken.named for one in (named.key, *named.others)]
        curator = replace(caller, roles=(*caller.roles, ROLE))
        drafts: dict[str, _Draft] = {}
        gone: frozenset[str] = frozenset()

        def revise(found: Mapping[str, MemoryRecord], now_us: int) -> Revisions:
            nonlocal gone
            drafts.clear()
            gone = _taken_back(taken.named, memory, caller)  # each time: perhaps that is what changed
            return _revisions(taken, found, drafts, gone, instant(now_us))

        revised = memory.revise(MEMORY_CLASS, wanted, revise, caller=curator, purpose=PURPOSE)
        return _curated(taken.named, drafts, gone, {one.candidate.key: one for one in revised})


def _named(finding: Finding) -> _Named:
    """Return a finding with its key and those that it contradicts; what is no key contradicts nothing."""
    if finding.scope != "standing":
        raise PreferenceInvalidError("scope", "must be `standing`; what holds for a session is kept there")
    key = Key.of(finding.polarity, finding.category, finding.domain, finding.slug)
    also = (Key.read(text) for text in finding.keys_to_supersede)
    others = [other for other in also if other is not None and other != key]
    return _Named(finding, key, (key.opposite, *others))


def _taken_back(named: Sequence[_Named], memory: GovernedMemory, caller: Caller) -> frozenset[str]:
    """Return the keys that were forgotten after the turn was said that is being kept."""
    said = turns.said()
    if said is None:
        return frozenset()
    return memory.taken_back([str(one.key) for one in named], since_us=said.at_us, caller=caller)


def _revisions(
    taken: _Taken,
    found: Mapping[str, MemoryRecord],
    drafts: dict[str, _Draft],
    gone: frozenset[str],
    now: datetime,
) -> Revisions:
    """Return what follows from the findings, taken one after the other, and leave the drafts in `drafts`."""
    counted: Counter[str] = Counter()
    for number, (finding, key, others) in enumerate(taken.named):
        if str(key) in gone:
            counted["forgotten"] += 1
            continue
        if not finding.stated and any(_is_stated(str(one), found, drafts) for one in (key, key.opposite)):
            counted["kept"] += 1  # an inference takes nothing away that was said, and weakens it in nothing
            continue
        text = str(key)
        draft = _drafted(finding, drafts.pop(text, None), found.get(text), now)
        draft.findings.append(number)
        for other in map(str, others):
            if finding.stated or not _is_stated(other, found, drafts):
                draft.contradicts[other] = None
                drafts.pop(other, None)
        drafts[text] = draft
    revisions = [
        Revision(taken.candidate(text, draft), draft.outcome, tuple(draft.contradicts))
        for text, draft in drafts.items()
    ]
    return Revisions(tuple(revisions), dict(counted), tuple(drafts))


def _is_stated(key: str, found: Mapping[str, MemoryRecord], drafts: Mapping[str, _Draft]) -> bool:
    if key in drafts:
        return drafts[key].stated
    return key in found and is_stated(found[key])


def _drafted(finding: Finding, draft: _Draft | None, record: MemoryRecord | None, now: datetime) -> _Draft:
    """Return what stands under a key after a finding about it."""
    hard = finding.strength == "hard" and finding.stated
    if draft is not None:
        surer = _surer(draft.confidence)
        hard = hard or (draft.hard and finding.stated)
        return replace(draft, content=finding.content, hard=hard, stated=finding.stated, confidence=surer)
    first = STATED_CONFIDENCE if finding.stated else INFERRED_CONFIDENCE
    if record is None:
        return _Draft(finding.content, hard, finding.stated, first, now, "added", [], {})
    # An allergy that is mentioned again in passing is one still: only the opposite, or forgetting, ends it.
    hard = hard or (finding.stated and is_hard(record))
    origin = record.origin
    created = min(now, record.created_at or now, now if origin is None else origin.captured_at)
    surer = max(first, _surer(record.confidence))
    return _Draft(finding.content, hard, finding.stated, surer, created, "repeated", [], {})


def _surer(confidence: float) -> float:
    return min(1.0, round(confidence + REPEATED, 6))


def _curated(
    named: Sequence[_Named],
    drafts: Mapping[str, _Draft],
    gone: frozenset[str],
    revised: Mapping[str | None, Revised],
) -> tuple[Curated, ...]:
    """Return what became of each finding; of those that went into one record, each is told the same."""
    told = []
    for number, one in enumerate(named):
        key = str(one.key)
        mine = [text for text, draft in drafts.items() if number in draft.findings]
        if not mine:
            # Stated things stand against an inference; else a later finding of this call took its place.
            stands = "contradicted" if one.finding.stated else "kept"
            told.append(Curated(key, "forgotten" if key in gone else stands))
            continue
        became = revised[key]
        effect = became.decision.effect
        told.append(
            Curated(
                key=key,
                outcome=_EFFECTS.get(effect, drafts[key].outcome),
                record_id=None if became.record is None else became.record.memory_id,
                decision=became.decision,
                superseded=tuple(dict.fromkeys(gone.record.key or "" for gone in became.removed)),
            )
        )
    return tuple(told)
