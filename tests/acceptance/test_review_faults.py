"""The review queue when others are faster, or stores and engines fail."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from agent_runtime_ref import (
    Caller,
    GovernedMemory,
    PolicyDeniedError,
    ReviewReceipt,
)
from agent_runtime_ref.errors import (
    EngineFailureError,
    RevisionConflictError,
    StoreError,
)
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import CountedIds, FaultyStore, FrozenClock, RacingStore
from tests.reviewing import OPERATOR, REVIEWER, held, opened, refusal, shown
from tests.support import TENANT, caller, candidate

# --- races and faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rival", ["release", "reject"])
def test_the_slower_of_two_reviewers_is_told(store_url: str, clock: FrozenClock, rival: str) -> None:
    """Between a reviewer's look and the commit another one decides: the second decision sees that."""
    inner = open_store(store_url)
    first = opened(inner, clock)
    record_id = held(first)
    step = getattr(first, rival)
    racing = RacingStore(
        inner, method="commit", action=lambda: step(record_id, caller=OPERATOR, reason="SEC-1")
    )
    with opened(racing, clock) as second:
        assert refusal(second, record_id, REVIEWER).reasons == ("not_in_quarantine",)

        assert len(shown(second)) == (1 if rival == "release" else 0)


def test_many_reviewers_at_once(store_url: str, clock: FrozenClock) -> None:
    """Of eight who release the same record at the same moment one succeeds, and there is one event of it."""
    with opened(open_store(store_url), clock) as memory:
        record_id = held(memory)
        outcomes: list[ReviewReceipt | BaseException] = []
        start = threading.Barrier(8)

        def work(number: int) -> None:
            start.wait()
            try:
                by = Caller(TENANT, f"reviewer-{number}", roles=["reviewer"])
                outcomes.append(memory.release(record_id, caller=by, reason="SEC-1"))
            except (PolicyDeniedError, RevisionConflictError) as refused:
                outcomes.append(refused)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(outcomes) == 8
        assert sum(isinstance(one, ReviewReceipt) for one in outcomes) == 1
        released = [line for line in memory.log_lines() if '"event_type":"memory_released"' in line]
        assert len(released) == 1


def test_a_new_head_between_look_and_commit_is_seen(store_url: str, clock: FrozenClock) -> None:
    """A better record that appears in the meantime is not replaced."""
    inner = open_store(store_url)
    first = opened(inner, clock)
    record_id = held(first, key="q", revision_mode="replace")
    better = candidate("Two.", key="q", source="trusted_profile")
    racing = RacingStore(inner, method="commit", action=lambda: first.write(better, caller=caller()))
    with opened(racing, clock) as second:
        assert refusal(second, record_id, REVIEWER).rule_ids == ("MEM-W-408",)


@pytest.mark.parametrize("step", ["release", "reject"])
def test_a_store_that_fails_leaves_the_record_waiting(store_url: str, clock: FrozenClock, step: str) -> None:
    """Where the commit fails the caller hears of it, and the record is as it was."""
    inner = open_store(store_url)
    record_id = held(opened(inner, clock))
    before = inner.queued(TENANT, record_id)
    faulty = FaultyStore(inner, method="commit", error=StoreError(inner.url, "the disk is full"))
    with opened(faulty, clock) as memory:
        with pytest.raises(StoreError, match="the disk is full"):
            getattr(memory, step)(record_id, caller=REVIEWER, reason="SEC-1")
        assert inner.queued(TENANT, record_id) == before
        assert '"event_type":"store_failure"' in "\n".join([*inner.log(True), *inner.log(False)])
        getattr(memory, step)(record_id, caller=REVIEWER, reason="SEC-1")


class TalkativeEngine:
    """The embedded engine, whose answer about a review a test changes."""

    def __init__(self, **changes: Any) -> None:
        self._inner = open_engine("embedded", load_bundle())
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def evaluate(self, entrypoint: str, document: str) -> Any:
        """Return the answer with the changes, where a review is asked about."""
        answer = self._inner.evaluate(entrypoint, document)
        if json.loads(document)["operation"] not in ("release", "reject"):
            return answer
        return {**answer, **self._changes}


@pytest.mark.parametrize("step", ["release", "reject"])
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"allowed": []}, "not_permitted"),
        ({"quarantine": [{"index": 0, "rule_id": "X-1", "reason": "again"}]}, "again"),
        ({"obligations": [{"index": 0, "type": "notarise", "findings": []}]}, "obligation_unknown"),
        ({"obligations": [{"index": 0, "type": "tombstone"}]}, "obligation_unknown"),
        ({"obligations": [{"index": 0, "type": "redact", "findings": []}]}, "obligation_unknown"),
    ],
)
def test_what_is_not_a_clear_permission_is_a_refusal(
    clock: FrozenClock, step: str, changes: dict[str, Any], reason: str
) -> None:
    """An answer that permits nothing, holds back or demands what the gate cannot do leaves it waiting."""
    inner = open_store("memory:")
    bundle = load_bundle()
    engine: Any = TalkativeEngine(**changes)
    with GovernedMemory(store=inner, engine=engine, bundle=bundle, clock=clock, ids=CountedIds()) as memory:
        record_id = held(memory)
        assert refusal(memory, record_id, REVIEWER, step=step).reasons == (reason,)
        assert inner.queued(TENANT, record_id) is not None


@pytest.mark.parametrize("step", ["release", "reject"])
@pytest.mark.parametrize("assign", [[], [{"trust_level": "full", "retention": "x", "ttl_days": 1}], "all"])
def test_an_engine_that_gives_no_clear_answer_refuses(clock: FrozenClock, step: str, assign: Any) -> None:
    """The refusal is on record, and the record waits."""
    inner = open_store("memory:")
    engine: Any = TalkativeEngine(assign=assign)
    bundle = load_bundle()
    with GovernedMemory(store=inner, engine=engine, bundle=bundle, clock=clock, ids=CountedIds()) as memory:
        record_id = held(memory)
        with pytest.raises(EngineFailureError) as failed:
            getattr(memory, step)(record_id, caller=REVIEWER, reason="SEC-1")

        assert failed.value.decision.effect == "deny"
        assert inner.queued(TENANT, record_id) is not None
        assert "policy_engine_failure" in "\n".join(memory.log_lines())


def test_a_tombstone_is_left_only_where_the_policy_asks_for_it(clock: FrozenClock) -> None:
    """A policy without that obligation keeps nobody from offering the content again."""
    engine: Any = TalkativeEngine(obligations=[])
    bundle = load_bundle()
    store = open_store("memory:")
    with GovernedMemory(store=store, engine=engine, bundle=bundle, clock=clock, ids=CountedIds()) as memory:
        assert memory.reject(held(memory), caller=REVIEWER, reason="SEC-1").tombstone is False
        held(memory)
