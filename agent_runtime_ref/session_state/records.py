"""A constraint as a governed record, and what became of it at the write gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent_runtime_ref.contracts import Caller, Decision, MemoryCandidate, WriteReceipt
from agent_runtime_ref.contracts.finding import CONTENT_CHARACTERS_MAX, Finding
from agent_runtime_ref.errors import PolicyDeniedError
from agent_runtime_ref.session_state.kept import Held, KeptState
from agent_runtime_ref.session_state.merging import merge, still_before, with_released
from agent_runtime_ref.session_state.state import FINDINGS_MAX, thing_of

if TYPE_CHECKING:
    from agent_runtime_ref.enforcement.write import Outcome

__all__ = [
    "MEMORY_CLASS",
    "SOURCE",
    "Ruled",
    "after",
    "constraint",
    "content_of",
    "key_of",
    "released",
    "ruled",
]

MEMORY_CLASS, SOURCE = "short_term", "session_state"


@dataclass(frozen=True, slots=True)
class Ruled:
    """What the write policy made of the constraints of a turn."""

    entered: tuple[Finding, ...]  # as they were admitted
    refused: tuple[tuple[Finding, str], ...]  # with the reason
    waiting: tuple[tuple[Finding, str], ...]  # in quarantine, with the record
    decisions: tuple[Decision, ...]
    records: Mapping[tuple[str, ...], str]  # of those that entered, by what they are about


def constraint(finding: Finding, life: str, caller: Caller) -> MemoryCandidate:
    """Return a constraint as the write gate is offered it; a later one about the same thing replaces it."""
    return MemoryCandidate(
        caller.tenant_id,
        MEMORY_CLASS,
        "working_note",
        finding.content,
        SOURCE,
        1.0 if finding.stated else 0.5,
        "session_constraint",
        "replace",
        key=key_of(finding),
        subject=life,
        summary=f"{finding.polarity} {finding.strength}",
    )


def key_of(finding: Finding) -> str:
    """Return the key of a constraint's record: what it is about, whatever it says of it."""
    return ":".join(("session", *thing_of(finding)))


def ruled(findings: Sequence[Finding], outcomes: Sequence[Outcome]) -> Ruled:
    """Return what became of each finding, and every decision."""
    entered, refused, waiting, decisions = [], [], [], []
    records: dict[tuple[str, ...], str] = {}
    for finding, outcome in zip(findings, outcomes, strict=True):
        if outcome.decision is not None:
            decisions.append(outcome.decision)
        content = content_of(outcome)
        if content is not None and isinstance(outcome, WriteReceipt):
            records[thing_of(finding)] = outcome.record.memory_id
            # What was redacted from the record must not live on in the file.
            entered.append(replace(finding, content=content[:CONTENT_CHARACTERS_MAX]))
        elif isinstance(outcome, PolicyDeniedError):
            refused.append((finding, ", ".join(outcome.decision.reasons)))
        else:
            refused.append((finding, "quarantined"))
            if isinstance(outcome, WriteReceipt):
                waiting.append((finding, outcome.record.memory_id))
    return Ruled(tuple(entered), tuple(refused), tuple(waiting), tuple(decisions), records)


def content_of(outcome: Outcome) -> str | None:
    """Return what the write gate let in, None where it refused or held back."""
    if isinstance(outcome, WriteReceipt) and outcome.record.status == "active":
        return outcome.record.content
    return None


def after(kept: KeptState, came: Ruled, life: str, now_us: int) -> KeptState:
    """Return what a thread keeps after a turn."""
    state = merge(kept.state, came.entered)
    again = {record_id for _, record_id in came.waiting}
    held = [
        replace(one, before=still_before(kept.state, one.before, state))
        for one in kept.held
        if one.record_id not in again
    ]
    at = still_before(kept.state, len(kept.state.findings), state)
    held += [Held.of(finding, record_id, at) for finding, record_id in came.waiting]
    state = replace(state, saved_at_us=now_us, records={**state.records, **came.records})
    return KeptState(state, life, tuple(held[:FINDINGS_MAX]))


def released(kept: KeptState, words: Mapping[str, str]) -> KeptState:
    """Return what is in force where a reviewer let records out of quarantine; `words` has their contents."""
    ended = [one for one in kept.held if one.record_id in words]
    said = [(one, one.finding(words[one.record_id])) for one in ended]
    state = with_released(kept.state, [(one.before, finding) for one, finding in said])
    # Of a thing that was spoken of again later it is the later word's record that stands.
    stood = {id(finding) for finding in kept.state.findings}
    new = {thing_of(finding) for finding in state.findings if id(finding) not in stood}
    records = {thing_of(finding): one.record_id for one, finding in said if thing_of(finding) in new}
    held = tuple(
        replace(one, before=still_before(kept.state, one.before, state))
        for one in kept.held
        if one.record_id not in words
    )
    return replace(kept, state=replace(state, records={**state.records, **records}), held=held)
