"""What happens to a write when the store changes between its decision and its commit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing import CountedIds, FrozenClock, RacingStore
from tests.support import caller, candidate, note, query

PERSON = caller(principal_id="agent-1", subject="person-7351")
FACT = candidate("prefers apricots", subject="person-7351")


@pytest.fixture
def racing(store_url: str) -> Callable[[Callable[[GovernedMemory], object]], GovernedMemory]:
    """Governed memory in which a rival acts once, right before the next commit."""

    def opened(action: Callable[[GovernedMemory], object]) -> GovernedMemory:
        bundle, store = load_bundle(None), open_store(store_url)
        ids = CountedIds()

        def over(inner: object) -> GovernedMemory:
            return GovernedMemory(
                store=inner,  # type: ignore[arg-type]
                engine=EmbeddedEngine(bundle),
                bundle=bundle,
                clock=FrozenClock(),
                ids=ids,
            )

        rival = over(store)
        action_of = RacingStore(store, method="commit", action=lambda: action(rival))
        rival.write(FACT, caller=PERSON)
        return over(action_of)

    return opened


Racing = Callable[[Callable[[GovernedMemory], object]], GovernedMemory]


def _forget(rival: GovernedMemory) -> None:
    rival.forget(subject="person-7351", caller=PERSON)


def test_what_is_forgotten_meanwhile_is_not_brought_back(racing: Racing) -> None:
    """The same words under another key: the tombstone that came in between refuses them."""
    memory = racing(_forget)
    with pytest.raises(PolicyDeniedError) as refused:
        memory.write(candidate("prefers apricots", subject="person-7351", key="fruit"), caller=PERSON)

    assert refused.value.decision.reasons == ("forgotten_content",)
    assert memory.read(query(principal_id="agent-1"), caller=PERSON).hits == ()


def test_what_is_derived_from_it_is_not_kept(racing: Racing) -> None:
    """A note about a record that is forgotten before the note is committed has no known origin."""
    memory = racing(_forget)
    parent = memory.read(query(principal_id="agent-1"), caller=PERSON).hits[0].record.memory_id
    with pytest.raises(PolicyDeniedError) as refused:
        memory.write(note("likes fruit", subject="person-7351", derived_from=(parent,)), caller=PERSON)

    assert refused.value.decision.reasons == ("lineage_unknown",)


def test_a_duplicate_whose_record_goes_is_decided_again(racing: Racing) -> None:
    """No receipt names a record that is gone: the second decision sees the tombstone."""
    memory = racing(_forget)
    with pytest.raises(PolicyDeniedError) as refused:
        memory.write(FACT, caller=PERSON)

    assert refused.value.decision.reasons == ("forgotten_content",)
