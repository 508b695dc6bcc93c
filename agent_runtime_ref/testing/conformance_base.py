"""What the conformance cases share: an empty store, and short ways to fill and ask it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_runtime_ref.contracts import MemoryRecord, Plan
from agent_runtime_ref.stores.base import Change, SearchPage, SearchRequest, Store, WriteBatch
from agent_runtime_ref.testing.records import NOW_US, clause, open_plan

TENANT = "tenant-acme"


class StoreCases:
    """Opens a fresh store for each case."""

    def open_store(self, folder: Path) -> Store:
        """An empty store; files of its own belong into `folder`."""
        raise NotImplementedError("a conformance class says how its store is opened")

    @contextmanager
    def opened(self) -> Iterator[Store]:
        """A fresh store, closed and removed after the case."""
        with tempfile.TemporaryDirectory(prefix="store-conformance-") as folder:
            store = self.open_store(Path(folder))
            try:
                yield store
            finally:
                store.close()


def put(store: Store, *records: MemoryRecord, lines: Sequence[str] = ()) -> None:
    """Commit records as one batch, each as an append that may stand beside others."""
    store.commit(WriteBatch([Change(record, exclusive=False) for record in records], lines))


def ask(
    store: Store,
    *terms: str,
    plan: Plan | None = None,
    tenant_ids: tuple[str, ...] | None = (TENANT,),
    now_us: int = NOW_US,
    take: int = 100,
    labels: bool = True,
) -> SearchPage:
    """Search a tenant; without a plan every record of it is admitted."""
    request = SearchRequest(tenant_ids, plan or open_plan(), terms or None, now_us, take, labels=labels)
    return store.search(request)


def ids(page: SearchPage) -> list[str]:
    """The ids that a page admits, in order."""
    return [match.memory_id for match in page.matches]


def tenant_plan(tenant_id: str = TENANT) -> Plan:
    """A plan whose one wall is the tenant."""
    return open_plan(clause("wall", "MEM-R-001", ("tenant_id", "eq", tenant_id)))


def raises(
    error: type[BaseException], action: object, *arguments: object, **options: object
) -> BaseException:
    """The error that calling `action` raises, which must be of the given class."""
    assert callable(action)
    try:
        action(*arguments, **options)
    except error as raised:
        return raised
    raise AssertionError(f"{error.__name__} was not raised")
