"""Whatever happens to other tenants and subjects, a caller's answer does not change in a single byte."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref import Caller, GovernedMemory, PolicyDeniedError, RetrievalResult
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.support import caller, note, query

WORDS = ("queue", "ticket", "plan", "记忆")
TENANTS = ("tenant-b", "tenant-acme-eu", "TENANT-ACME", "tenant-acm")
SUBJECTS = ("user-4", "user-421", "USER-42")

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
own = st.lists(st.tuples(texts, st.booleans()), min_size=1, max_size=6)
others = st.lists(
    st.tuples(texts, st.sampled_from(TENANTS), st.none() | st.sampled_from(SUBJECTS), st.booleans())
    | st.tuples(texts, st.just("tenant-acme"), st.sampled_from(SUBJECTS), st.booleans()),
    max_size=8,
)


def _own_writes(memory: GovernedMemory, rows: list[tuple[str, bool]]) -> None:
    for number, (text, bound) in enumerate(rows):
        subject = "user-42" if bound else None
        memory.write(note(text, subject=subject, provenance=f"turn-{number}"), caller=caller())


def _other_writes(memory: GovernedMemory, rows: list[tuple[Any, ...]]) -> None:
    for number, (text, tenant, subject, replaces) in enumerate(rows):
        who = Caller(tenant, "agent", subject=subject)
        mode = "replace" if replaces else "append"
        written = note(
            text, tenant_id=tenant, subject=subject, key="k", revision_mode=mode, provenance=f"other-{number}"
        )
        try:
            memory.write(written, caller=who)
        except PolicyDeniedError:
            continue


def _shown(result: RetrievalResult) -> Any:
    document = {name: value for name, value in result.document.items() if name != "decision_id"}
    hits = [(hit.record.content, hit.record.provenance, hit.score_breakdown) for hit in result.hits]
    return {**document, "selected_records": len(result.document["selected_records"])}, hits


@settings(max_examples=60)
@given(mine=own, theirs=others, text=st.none() | texts, limit=st.integers(1, 7), forgets=st.booleans())
def test_records_of_others_change_nothing(
    mine: list[tuple[str, bool]],
    theirs: list[tuple[Any, ...]],
    text: str | None,
    limit: int,
    forgets: bool,
) -> None:
    """Adding, replacing or forgetting records of another tenant or subject leaves answers as they are."""
    asked = query(limit=limit)
    answers = []
    for disturbed in (False, True):
        with GovernedMemory.open("memory:", clock=FrozenClock(), ids=CountedIds()) as memory:
            _own_writes(memory, mine)
            if disturbed:
                _other_writes(memory, theirs)
            if disturbed and forgets:
                for subject in SUBJECTS:
                    operator = Caller("tenant-acme", "ops", roles=("operator",))
                    memory.forget(subject=subject, caller=operator)
            answers.append(_shown(memory.read(asked, caller=caller(), text=text)))

    assert answers[0] == answers[1]
