"""Governed recall answers as the pure pipeline does, and others' records change nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref import Caller, GovernedMemory
from agent_runtime_ref.clock import instant
from agent_runtime_ref.recall import HybridRanker, RecallEngine, RecallResult
from agent_runtime_ref.testing import NOW_US, CountedIds, FrozenClock
from tests.hash_embedding import HashEmbedding
from tests.recalling import Held, ago, loaded, stored
from tests.support import caller

WORDS = ("queue", "ticket", "plan", "conversation", "记忆", "検索")
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
DAYS = st.sampled_from((-1, 0, 1, 1.5, 30, 300))
rows = st.lists(st.tuples(texts, DAYS, st.sampled_from((0, 1, 200))), max_size=12)


def told(result: RecallResult) -> dict[str, Any]:
    """Return a result without the ids of this run."""
    document = result.to_dict()
    del document["query"]["query_id"]
    for hit in document["hits"]:
        hit.pop("decision_id", None)
    return document


@settings(max_examples=30)
@given(mine=rows, text=texts, limit=st.integers(1, 10), store=st.sampled_from(["memory:", "sqlite:"]))
def test_governed_and_pure_recall_agree(
    mine: list[tuple[str, float, float]], text: str, limit: int, store: str, tmp_path_factory: Any
) -> None:
    """Where the policy admits every record, the gate adds a decision and takes nothing away."""
    records = [
        stored(f"c-{number}", words, captured=ago(captured), kept=ago(kept))
        for number, (words, captured, kept) in enumerate(mine)
    ]
    url = store if store == "memory:" else f"sqlite:{tmp_path_factory.mktemp('recall')}/m.db"
    with GovernedMemory.open(url, clock=FrozenClock(), ids=CountedIds()) as memory:
        loaded(memory, records, caller())
        governed = memory.recall(text, caller=caller(), limit=limit)
    pure = RecallEngine(Held(records)).recall(text, limit, as_of=instant(NOW_US))

    assert told(governed) == told(pure)


RANKERS = {"lexical": None, "BM25": HybridRanker(), "hybrid": HybridRanker(HashEmbedding(), floor=0.3)}


@pytest.mark.parametrize("name", RANKERS)
@settings(max_examples=20)
@given(mine=rows, theirs=rows, text=texts, limit=st.integers(1, 10))
def test_records_of_others_change_nothing(
    name: str,
    mine: list[tuple[str, float, float]],
    theirs: list[tuple[str, float, float]],
    text: str,
    limit: int,
) -> None:
    """Neither those of another subject nor those of the same user id in another tenant."""
    answers = []
    for disturbed in (False, True):
        with GovernedMemory.open("memory:", clock=FrozenClock(), ids=CountedIds()) as memory:
            if disturbed:
                for who in (caller(principal_id="user-43"), Caller("tenant-b", "user-42")):
                    others = [
                        stored(
                            f"{who.tenant_id}-{n}", words, captured=ago(a), kept=ago(b), user=who.own_subject
                        )
                        for n, (words, a, b) in enumerate(theirs)
                    ]
                    loaded(memory, others, who)
            loaded(
                memory,
                [
                    stored(f"c-{n}", words, captured=ago(a), kept=ago(b))
                    for n, (words, a, b) in enumerate(mine)
                ],
                caller(),
            )
            answers.append(told(memory.recall(text, caller=caller(), limit=limit, ranker=RANKERS[name])))

    assert answers[0] == answers[1]
