"""Keys of subjects that are only mentioned."""

from __future__ import annotations

import pytest

from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.stores.subject_keys import SubjectKeys
from agent_runtime_ref.testing.conformance_base import TENANT

SUBJECT = "user-42"


def test_a_mention_stores_nothing() -> None:
    """The passing key is the same within a process, another elsewhere, and none is kept."""
    store = open_store("memory:")
    keys, elsewhere = SubjectKeys(store), SubjectKeys(store)
    passing = keys.of(TENANT, SUBJECT, create=False)

    assert keys.of(TENANT, SUBJECT, create=False) == passing
    others = [keys.of(TENANT, "user-4", create=False), keys.of("tenant-b", SUBJECT, create=False)]
    assert passing not in [*others, elsewhere.of(TENANT, SUBJECT, create=False)]
    assert store.subject_key(TENANT, SUBJECT, False) is None


def test_a_known_subject_has_its_own_key() -> None:
    """Once made, the subject's own key is used whether or not it may be made."""
    store = open_store("memory:")
    keys = SubjectKeys(store)
    own = keys.of(TENANT, SUBJECT, create=True)

    assert own == store.subject_key(TENANT, SUBJECT, False) == keys.of(TENANT, SUBJECT, create=False)


@pytest.mark.parametrize("renewed", [False, True])
def test_a_passing_key_can_be_given_up(renewed: bool) -> None:
    """After `renew` the same subject gets another pseudonym."""
    keys = SubjectKeys(open_store("memory:"))
    before = keys.of(TENANT, SUBJECT, create=False)
    if renewed:
        keys.renew()

    assert (keys.of(TENANT, SUBJECT, create=False) != before) == renewed
