"""What every store must do, as tests: subclass `StoreConformance` and say how to open an empty store.

class TestMyStore(StoreConformance):
    def open_store(self, folder):
        return MyStore(folder / "memory")

A store that says it is `durable` is opened again by the same call with the same folder, by other processes
too; docs/how-to/write-a-store.md says what else the suite takes for granted.
"""

from __future__ import annotations

from agent_runtime_ref.testing.conformance_forgetting import ForgettingCases
from agent_runtime_ref.testing.conformance_naming import NamingCases
from agent_runtime_ref.testing.conformance_processes import ProcessCases
from agent_runtime_ref.testing.conformance_reviewing import ReviewingCases
from agent_runtime_ref.testing.conformance_searching import SearchingCases
from agent_runtime_ref.testing.conformance_writing import WritingCases


class StoreConformance(
    WritingCases, SearchingCases, ForgettingCases, ReviewingCases, NamingCases, ProcessCases
):
    """Every case that a store must pass; a third party overrides `open_store` and nothing else."""
