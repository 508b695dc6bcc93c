"""What a principal would have been shown at an instant: records as they were, under policies that are named.

The records come from the store, what they were then from the log of writes. What has been erased since cannot
be judged any more: content and attributes are gone, and only the id is still in the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.clock import Clock, microseconds
from agent_runtime_ref.contracts import Caller, RetrievalQuery
from agent_runtime_ref.enforcement.hindsight import Hindsight, ReadOutcome
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.replay.past import History, StorePast
from agent_runtime_ref.replay.question import ReadQuestion
from agent_runtime_ref.replay.rule_names import RuleNames
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["Judged", "Shown", "digest_in_force", "shown_as_of"]

# The head of our own decision lines: the instant comes before the bundle, and both before the input.
_DECIDED = re.compile(r'"type":"decision".*?"timestamp":"([^"]{20,32})".*?"digest":"(sha256:[0-9a-f]{64})"')
_HEAD_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True)
class Judged:
    """What would have become of one record that was there."""

    record_id: str
    status: str  # then
    trust_rank: int
    memory_class: str
    kind: str
    shown: bool
    reasons: tuple[str, ...]  # why not; empty where only its rank was too low
    rule_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """The answer that there would have been."""

    revision: int  # of the log of writes, then
    denied: tuple[Mapping[str, Any], ...]  # why there would have been none
    judged: tuple[Judged, ...]  # every record of the tenant that was there and still is, best first
    unknowable: tuple[str, ...]  # ids of records that may have been there and are erased


def shown_as_of(
    memory: GovernedMemory,
    bundle: Bundle,
    query: RetrievalQuery,
    *,
    caller: Caller,
    operator: Caller,
    at_us: int,
    clock: Clock,
) -> Shown:
    """Return what `query` by `caller` would have shown at `at_us` under `bundle`.

    `operator` looks at all records for this, which is decided and logged as an inspection.

    Raises:
        PolicyDeniedError: the policies in force do not let `operator` inspect.
        UsageError: what was there cannot be told of this tenant.
        DocumentUnreadableError: a line of the log of writes is damaged; it says which.
        BundleError: no engine can decide by `bundle`.
    """
    survey = memory.survey(caller=operator)
    history = History(memory.log_lines(), by_tenant=memory.is_chained_by_tenant)
    past = StorePast(survey.records, history)
    asked = ReadQuestion(memory.question(query, caller=caller, at_us=at_us), denied=())
    rebuilt = past.at(asked)
    if rebuilt is None:
        raise UsageError(f"what tenant `{query.tenant_id}` had cannot be told: it is called as a subject is")
    revision = history.revision_at(at_us * 1000, asked.document["query"]["tenant_id"])
    engine = EmbeddedEngine(bundle)
    try:
        records, document = rebuilt.question.records, rebuilt.question.document
        outcome = Hindsight(engine, clock).read(document, records, ranked=True)
    finally:
        engine.close()
    names = RuleNames(bundle)
    judged = tuple(_judged(index, record, outcome, names) for index, record in enumerate(records))
    tenant = document["query"]["tenant_id"]
    return Shown(revision, outcome.denied, judged, tuple(past.erased_at(tenant, revision)))


def _judged(index: int, record: Mapping[str, Any], outcome: ReadOutcome, names: RuleNames) -> Judged:
    """Return what became of the record at a place in the order of ranks."""
    shown = index in outcome.returned
    why = () if shown else outcome.why_not(index, record)
    return Judged(
        record_id=record["record_id"],
        status=record["status"],
        trust_rank=record["trust_rank"],
        memory_class=record["memory_class"],
        kind=record["kind"],
        shown=shown,
        reasons=tuple(sorted({row["reason"] for row in why})),
        rule_ids=tuple(names.of("read", why)),
    )


def digest_in_force(logs: Iterable[Iterable[str]], at_us: int) -> str | None:
    """Return the digest of the policies that decided last at `at_us` or before; None where nobody did."""
    from datetime import datetime

    latest, digest = -1, None
    for lines in logs:
        for line in lines:
            found = _DECIDED.search(line, 0, _HEAD_CHARACTERS)
            if found is None:
                continue
            try:
                at = microseconds(datetime.fromisoformat(found[1]))
            except (ValueError, TypeError):
                continue  # a line that somebody changed; `trace verify` is for these
            if latest <= at <= at_us:
                latest, digest = at, found[2]
    return digest
