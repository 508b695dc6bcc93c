"""The durable embedded store: one SQLite file, and beside it a second one for the lines of reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import RecordNotFoundError
from agent_runtime_ref.stores import relied
from agent_runtime_ref.stores.base import (
    CAPABILITIES,
    CommitOutcome,
    ForgetCounts,
    Head,
    LogMode,
    Match,
    Parent,
    Queued,
    Rejected,
    SearchPage,
    SearchRequest,
    Slot,
    WriteBatch,
)
from agent_runtime_ref.stores.plan_shape import compiled
from agent_runtime_ref.stores.sqlite import forget as forgetting
from agent_runtime_ref.stores.sqlite import log as logging
from agent_runtime_ref.stores.sqlite import removal, rows, subjects, write
from agent_runtime_ref.stores.sqlite import search as searching
from agent_runtime_ref.stores.sqlite.connection import ConnectionPool, translated
from agent_runtime_ref.stores.sqlite.reindex import reindex_if_changed
from agent_runtime_ref.stores.sqlite.schema import check_bare, forgets, prepare
from agent_runtime_ref.stores.sqlite.tenants import Tenants

# How many values one statement asks for; a batch of writes is as large.
_AT_ONCE = 1000


class SqliteStore:
    """Keeps records and the log of writes in `path`, the log of reads in `path` with `.reads` appended.

    Reads have a file of their own because their lines would otherwise wait for writers, and writers for them.
    """

    durable = True
    log_mode: LogMode = "same_transaction"
    capabilities = CAPABILITIES

    def __init__(self, path: Path, *, must_exist: bool = False) -> None:
        self.path = path.absolute()
        self.url = f"sqlite:{path}"
        place = str(self.path)
        self._pool = ConnectionPool(
            self.path,
            synchronous="FULL",
            prepare=partial(prepare, path=place, must_exist=must_exist),
            create=not must_exist,
        )
        reads = self.path.with_name(self.path.name + ".reads")
        self._reads = ConnectionPool(
            reads, synchronous="NORMAL", prepare=partial(prepare, path=str(reads), reads=True)
        )
        with translated(self.path):
            check_bare(self._pool.get(), place)
        if reads.exists():
            with translated(reads):
                check_bare(self._reads.get(), str(reads))
        self._tenants = Tenants(self._pool)
        reindex_if_changed(self._pool)
        self._store_key = subjects.store_key(self._pool)

    def search(self, request: SearchRequest) -> SearchPage:
        """The best matches and exact counts, from one statement."""
        prepared = self._prepared(request)
        with translated(self.path):
            connection = self._pool.get()
            if not prepared.tenants:
                return SearchPage((), (), {}, 0, logging.last_number(connection))
            return searching.run(connection, prepared)

    @contextmanager
    def examine(
        self, request: SearchRequest, batch: int
    ) -> Iterator[tuple[SearchPage, Iterator[list[Match]]]]:
        """The page, and every admitted match in batches, from one snapshot of a connection of its own."""
        prepared = self._prepared(request)
        if not prepared.tenants:
            yield self.search(request), iter(())
            return
        with translated(self.path), closing(self._pool.open()) as connection:
            connection.execute("BEGIN")
            yield searching.run(connection, prepared), searching.stream(connection, prepared, batch)

    def explain(self, request: SearchRequest) -> list[str]:
        """SQLite's account of how it would run a search."""
        with translated(self.path):
            return searching.explain(self._pool.get(), self._prepared(request))

    def _prepared(self, request: SearchRequest) -> searching.Prepared:
        plan = compiled(request.plan, store=self.url)  # first: a plan is refused even where nothing is stored
        return searching.Prepared(
            request=request,
            plan=plan,
            tenants=self._tenants.numbers(request.tenant_ids),
            names=self._tenants.name,
            place=str(self.path),
            load=self._load,
        )

    def _load(self, tenant_id: str, memory_id: str) -> MemoryRecord:
        found = self.fetch(tenant_id, (memory_id,))
        if not found:
            raise RecordNotFoundError(self.url, memory_id)
        return found[0]

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """What is active in each slot at `now_us`, from one snapshot."""
        tid = self._tenants.number(tenant_id)
        if tid is None:
            return [None] * len(slots)
        with self._snapshot() as connection, rows.understood(str(self.path)):
            return [write.head_of(connection, tid, Slot(*slot), now_us) for slot in slots]

    def lineage(self, tenant_id: str, ids: Sequence[str], now_us: int = 0) -> dict[str, Parent]:
        """Trust rank, subject and status of each id that exists."""
        sql = (
            "SELECT memory_id,trust_rank,subject,CASE"
            f" WHEN status='active' AND expires_us<={int(now_us)} THEN 'expired' ELSE status END"
            " FROM records WHERE tid=? AND memory_id IN"
        )
        return {row[0]: Parent(*row[1:]) for row in self._by_value(sql, tenant_id, ids)}

    def children(self, tenant_id: str, ids: Sequence[str]) -> list[str]:
        """Ids of the records that name one of `ids` as what they were derived from, in order."""
        sql = (
            "SELECT r.memory_id FROM derivations d JOIN records r ON r.rid=d.rid"
            " WHERE d.tid=? AND d.parent_id IN"
        )
        return sorted({row[0] for row in self._by_value(sql, tenant_id, ids)})

    def find_duplicate(self, tenant_id: str, digests: Sequence[bytes], now_us: int = 0) -> dict[bytes, str]:
        """The active record of each digest that is taken."""
        sql = (
            "SELECT d.digest,r.memory_id FROM dedup d JOIN records r ON r.rid=d.rid"
            f" WHERE r.status='active' AND (r.expires_us IS NULL OR r.expires_us>{int(now_us)})"
            " AND d.tid=? AND d.digest IN"
        )
        return dict(self._by_value(sql, tenant_id, digests))

    def tombstoned(self, tenant_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """Those digests whose content was forgotten."""
        sql = "SELECT digest FROM tombstones WHERE tid=? AND digest IN"
        return {row[0] for row in self._by_value(sql, tenant_id, digests)}

    def fetch(self, tenant_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """The records of those ids that exist, in the order of `ids`."""
        sql = (
            f"SELECT {rows.POLICY_LIST},{rows.CONTENT_LIST} FROM records r JOIN contents t ON t.rid=r.rid"
            " WHERE r.tid=? AND r.memory_id IN"
        )
        records = [rows.record(row, tenant_id, str(self.path)) for row in self._by_value(sql, tenant_id, ids)]
        by_id = {record.memory_id: record for record in records}
        return [by_id[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in by_id]

    def queued(self, tenant_id: str, memory_id: str, status: str = "quarantined") -> Queued | None:
        """The record of that id, if it has that status, and what is kept for its review."""
        sql = (
            f"SELECT {rows.POLICY_LIST},{rows.CONTENT_LIST},t.dedup,t.original,q.principal,q.agent,q.replaces"
            " FROM records r JOIN contents t ON t.rid=r.rid LEFT JOIN quarantine q ON q.rid=r.rid"
            " WHERE r.tid=? AND r.memory_id IN"
        )
        found = self._by_value(sql, tenant_id, (memory_id,))
        queued = rows.queued(found[0], tenant_id, str(self.path)) if found else None
        return None if queued is None or queued.record.status != status else queued

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Put a batch and its log lines in one transaction, or nothing."""
        with self._pool.transaction() as connection:
            relied.check(self, batch)
            writer = write.Writer(connection, self.path, batch.now_us)
            made = self._tenants.ensure(connection, [change.record.tenant_id for change in batch.changes])
            writer.expect(
                (made[one.record.tenant_id], one.dedup) for one in batch.changes if one.dedup is not None
            )
            outcomes = [writer.put(made[change.record.tenant_id], change) for change in batch.changes]
            writer.flush()
            for one in batch.rejected:
                self._reject(connection, one, batch.now_us)
            logging.append(connection, batch.lines, self.path)
        self._tenants.remember(made)
        return outcomes

    def _reject(self, connection: sqlite3.Connection, rejected: Rejected, now_us: int) -> None:
        record = rejected.queued.record
        tid = self._tenants.number(record.tenant_id)
        assert tid is not None, "its record has just been seen"
        with rows.understood(str(self.path)):
            removal.remove_by_id(connection, tid, record.memory_id)
        removal.mark(connection, tid, rejected.tombstones, now_us)

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write."""
        logging.append_alone(self._reads if read else self._pool, lines)

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines of one of the two logs, oldest first."""
        if read and not self._reads.path.exists():
            return iter(())  # its file is made with its first line, not by looking
        return logging.read(self._reads if read else self._pool)

    def raw_log(self, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines in whatever state they are."""
        if read and not self._reads.path.exists():
            return iter(())
        return logging.read_raw(self._reads if read else self._pool, after)

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines."""
        return subjects.subject_key(self._pool, self._tenants, tenant_id, subject, create=create)

    def store_key(self) -> bytes:
        """The store's own key."""
        return self._store_key

    def forget(
        self,
        tenant_id: str,
        subject: str,
        *,
        now_us: int,
        dry_run: bool,
        lines_for: Callable[[ForgetCounts], Sequence[str]],
    ) -> ForgetCounts:
        """Remove a subject from a tenant and rebuild the file without it."""
        return forgetting.forget(
            self._pool,
            self._tenants,
            forgetting.Request(tenant_id, subject, now_us, self._store_key),
            dry_run=dry_run,
            lines_for=lines_for,
        )

    def forgets(self) -> int:
        """How often somebody was forgotten, by any process."""
        with translated(self.path):
            return forgets(self._pool.get(), str(self.path))

    def revision(self) -> int:
        """The number of the last line of the store's own log."""
        with translated(self.path):
            return logging.last_number(self._pool.get())

    def close(self) -> None:
        """Close every connection of this process."""
        self._pool.close()
        self._reads.close()

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        connection = self._pool.get()
        with translated(self.path):
            if connection.in_transaction:
                yield connection
                return
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    def _by_value(self, sql: str, tenant_id: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows of `sql ... IN (values)` in one tenant, asked for in groups from one snapshot."""
        tid = self._tenants.number(tenant_id)
        if tid is None or not values:
            return []
        found: list[tuple[Any, ...]] = []
        with self._snapshot() as connection:
            for start in range(0, len(values), _AT_ONCE):
                part = values[start : start + _AT_ONCE]
                found += connection.execute(f"{sql} ({','.join('?' * len(part))})", (tid, *part)).fetchall()
        return found
