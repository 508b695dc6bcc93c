"""Stored memories as records of the memory layer, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref import MemoryRecord
from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts.projection import candidate_of, stored_of
from agent_runtime_ref.contracts.stored import MemoryKind, StoredMemory
from agent_runtime_ref.errors import RemoteMemoryValidationError
from agent_runtime_ref.testing import NOW_US, make_record
from tests.recalling import SCOPE, USER, ago, stored

DAYS = st.floats(-10, 400, allow_nan=False)


def record_of(one: StoredMemory) -> MemoryRecord:
    """Return the record that the write gate makes of a stored memory."""
    offered = candidate_of(one, tenant_id="t", subject=USER)
    return make_record(
        one.memory_id,
        memory_class=offered.memory_class,
        kind=offered.kind,
        content=offered.content,
        summary=offered.summary,
        origin=offered.origin,
        provenance=offered.provenance,
        source=offered.source,
        created_at=instant(NOW_US),
    )


@given(captured=DAYS, kind=st.sampled_from([MemoryKind.CONVERSATION, MemoryKind.PROFILE]))
def test_a_stored_memory_comes_back(captured: float, kind: MemoryKind) -> None:
    """Nothing is lost on the way through the memory layer."""
    one = stored("m-1", "some text", captured=ago(captured), kept=ago(0), kind=kind)

    assert stored_of(record_of(one), user_scope=SCOPE) == one


def test_what_becomes_of_each_part() -> None:
    """Conversations last, snapshots are profiles; both are about the user, and from their source."""
    talk = candidate_of(stored("m-1", "text"), tenant_id="t", subject=USER)
    snapshot = candidate_of(stored("m-2", "text", kind=MemoryKind.PROFILE), tenant_id="t", subject=USER)

    assert (talk.memory_class, talk.kind) == ("long_term", "conversation")
    assert (snapshot.memory_class, snapshot.kind) == ("profile", "profile_snapshot")
    assert (talk.tenant_id, talk.subject, talk.provenance) == ("t", USER, "transcript-m-1")
    assert talk.origin is not None
    assert talk.origin.to_document() == stored("m-1", "text").source.to_dict()


def test_an_instant_comes_back_in_utc() -> None:
    """It is the same instant; its zone is not kept."""
    one = stored("m-1", "text", captured="2026-08-01T14:00:00+02:00", kept=ago(0))

    assert stored_of(record_of(one), user_scope=SCOPE).source.captured_at == "2026-08-01T12:00:00Z"


def test_other_records_are_no_stored_memories() -> None:
    """Neither is a retraction a record, nor a fact a conversation."""
    gone = stored("m-1", "text", kind=MemoryKind.RETRACTION, retracts="m-0")
    with pytest.raises(RemoteMemoryValidationError, match="takes a memory back"):
        candidate_of(gone, tenant_id="t", subject=USER)
    with pytest.raises(RemoteMemoryValidationError, match="must be one of conversation, profile_snapshot"):
        stored_of(make_record("m-1", kind="validated_fact"), user_scope=SCOPE)
