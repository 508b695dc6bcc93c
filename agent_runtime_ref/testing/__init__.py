"""What tests need, here and elsewhere: frozen time, counted ids, faulty stores, conformance."""

from __future__ import annotations

from agent_runtime_ref.testing.conformance import StoreConformance
from agent_runtime_ref.testing.doubles import CountedIds, FaultyStore, FrozenClock, LyingStore, RacingStore
from agent_runtime_ref.testing.records import NOW_US, make_record, open_plan

__all__ = [
    "NOW_US",
    "CountedIds",
    "FaultyStore",
    "FrozenClock",
    "LyingStore",
    "RacingStore",
    "StoreConformance",
    "make_record",
    "open_plan",
]
