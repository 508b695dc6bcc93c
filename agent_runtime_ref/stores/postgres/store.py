"""The durable store of many machines: one PostgreSQL database, walled by tenant a second time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import RecordNotFoundError
from agent_runtime_ref.stores import chains, relied
from agent_runtime_ref.stores.base import (
    CAPABILITIES,
    Chain,
    CommitOutcome,
    ForgetCounts,
    Head,
    LogMode,
    Match,
    Parent,
    Queued,
    SearchPage,
    SearchRequest,
    Slot,
    WriteBatch,
)
from agent_runtime_ref.stores.plan_shape import compiled
from agent_runtime_ref.stores.postgres import batch as batches
from agent_runtime_ref.stores.postgres import forget as forgetting
from agent_runtime_ref.stores.postgres import log as logging
from agent_runtime_ref.stores.postgres import records, subjects, write
from agent_runtime_ref.stores.postgres import search as searching
from agent_runtime_ref.stores.postgres.address import checked, shown
from agent_runtime_ref.stores.postgres.connection import ACROSS, Pool
from agent_runtime_ref.stores.postgres.opening import examined
from agent_runtime_ref.stores.postgres.session import Row, Session
from agent_runtime_ref.telemetry.chain import Lines

_LINEAGE = (
    "SELECT memory_id,trust_rank,subject,CASE WHEN status='active' AND expires_us<=$3 THEN 'expired'"
    " ELSE status END FROM records WHERE tenant_id=$1 AND memory_id=ANY($2)"
)
_CHILDREN = (
    "SELECT r.memory_id FROM derivations d JOIN records r ON r.tenant_id=d.tenant_id AND r.rid=d.rid"
    " WHERE d.tenant_id=$1 AND d.parent_id=ANY($2)"
)
_FIND_DUPLICATE = (
    "SELECT d.digest,r.memory_id FROM dedup d JOIN records r ON r.tenant_id=d.tenant_id AND r.rid=d.rid"
    " WHERE d.tenant_id=$1 AND d.digest=ANY($2) AND r.status='active'"
    " AND (r.expires_us IS NULL OR r.expires_us>$3)"
)
_FETCH = (
    f"SELECT {records.POLICY_LIST},{records.CONTENT_LIST} {records.FROM}"
    " WHERE r.tenant_id=$1 AND r.memory_id=ANY($2)"
)
_QUEUED = (
    f"SELECT {records.POLICY_LIST},{records.CONTENT_LIST},t.dedup,t.original,q.principal,q.agent,q.replaces"
    f" {records.FROM} LEFT JOIN quarantine q ON q.tenant_id=r.tenant_id AND q.rid=r.rid"
    " WHERE r.tenant_id=$1 AND r.memory_id=$2 AND r.status=$3"
)
_REVISION = (
    "SELECT (SELECT coalesce(sum(seq),0) FROM chains WHERE NOT reads)::bigint"
    "+(SELECT seq FROM store_chains WHERE NOT reads)"
)


class PostgresStore:
    """Keeps records and both logs in a database that its owner has migrated.

    Every statement runs in the application's role, which owns nothing; a look across tenants runs in the role
    of inspection, and is refused to who may not act in it.
    """

    durable = True
    log_mode: LogMode = "same_transaction"
    capabilities = CAPABILITIES

    def __init__(self, url: str) -> None:
        """Open the store at `url`.

        Raises:
            StoreAddressError: the address is none.
            StoreVersionError: the schema is newer than this version.
            StoreCapabilityError: who logs in could step round the walls.
            StoreError: the database cannot be reached, or has not been migrated.
        """
        self.url = shown(url)
        known = examined(checked(url), self.url)
        self._store_key = known.store_key
        self._pool = Pool(url, self.url, application=known.application, inspection=known.inspection)
        self._log = logging.Log(self._pool, known.store_key)

    def search(self, request: SearchRequest) -> SearchPage:
        """The best matches and exact counts, from one statement."""
        prepared = self._prepared(request)
        if request.tenant_ids == ():
            return SearchPage((), (), {}, 0, 0)
        return searching.page(self._pool.ask(prepared.scope, *searching.statement(prepared)), prepared)

    @contextmanager
    def examine(
        self, request: SearchRequest, batch: int
    ) -> Iterator[tuple[SearchPage, Iterator[list[Match]]]]:
        """The page, and every admitted match in batches, from one snapshot."""
        prepared = self._prepared(request)
        if request.tenant_ids == ():
            yield self.search(request), iter(())
            return
        with self._pool.snapshot(prepared.scope) as session:
            page = searching.page(session.rows(*searching.statement(prepared)), prepared)
            yield page, searching.stream(session, prepared, batch)

    def explain(self, request: SearchRequest) -> list[str]:
        """The database's account of how it runs a search, in the role and within the walls that it has."""
        prepared = self._prepared(request)
        with self._pool.snapshot(prepared.scope) as session:
            return searching.explain(session, prepared)

    def _prepared(self, request: SearchRequest) -> searching.Prepared:
        plan = compiled(request.plan, store=self.url)  # first: a plan is refused even where nothing is stored
        return searching.Prepared(request=request, plan=plan, place=self.url, load=self._load)

    def _load(self, tenant_id: str, memory_id: str) -> MemoryRecord:
        found = self.fetch(tenant_id, (memory_id,))
        if not found:
            raise RecordNotFoundError(self.url, memory_id)
        return found[0]

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """What is active in each slot at `now_us`."""

        def ask(sql: str, parameters: Sequence[Any]) -> list[Row]:
            return self._pool.ask(tenant_id, sql, parameters)

        return write.heads(tenant_id, [Slot(*slot) for slot in slots], now_us, ask)

    def lineage(self, tenant_id: str, ids: Sequence[str], now_us: int = 0) -> dict[str, Parent]:
        """Trust rank, subject and status of each id that exists."""
        return {row[0]: Parent(*row[1:]) for row in self._by_value(tenant_id, _LINEAGE, ids, now_us)}

    def children(self, tenant_id: str, ids: Sequence[str]) -> list[str]:
        """Ids of the records that name one of `ids` as what they were derived from, in order."""
        return sorted({row[0] for row in self._by_value(tenant_id, _CHILDREN, ids)})

    def find_duplicate(self, tenant_id: str, digests: Sequence[bytes], now_us: int = 0) -> dict[bytes, str]:
        """The active record of each digest that is taken."""
        return dict(self._by_value(tenant_id, _FIND_DUPLICATE, digests, now_us))

    def tombstoned(self, tenant_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """Those digests whose content was forgotten."""
        sql = "SELECT digest FROM tombstones WHERE tenant_id=$1 AND digest=ANY($2)"
        return {row[0] for row in self._by_value(tenant_id, sql, digests)}

    def fetch(self, tenant_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """The records of those ids that exist, in the order of `ids`."""
        found = [records.shown(row, self.url) for row in self._by_value(tenant_id, _FETCH, ids)]
        by_id = {record.memory_id: record for record in found}
        return [by_id[memory_id] for memory_id in dict.fromkeys(ids) if memory_id in by_id]

    def queued(self, tenant_id: str, memory_id: str, status: str = "quarantined") -> Queued | None:
        """The record of that id, if it has that status, and what is kept for its review."""
        found = self._pool.ask(tenant_id, _QUEUED, (tenant_id, memory_id, status))
        return records.queued(found[0], self.url) if found else None

    def _by_value(self, tenant_id: str, sql: str, values: Sequence[Any], *more: Any) -> list[tuple[Any, ...]]:
        return self._pool.ask(tenant_id, sql, (tenant_id, list(values), *more)) if values else []

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Put a batch and its log lines in one transaction, or nothing."""

        def committed(session: Session) -> list[CommitOutcome]:
            last_rids = batches.locked(session, batch)
            relied.check(self, batch)
            return batches.put(session, batch, last_rids, place=self.url)

        outcomes = self._pool.write(committed)
        if isinstance(batch.lines, Lines):
            batch.lines.chain = self._log.name(chains.tenant_of(batch), False)
        return outcomes

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write, in the chain of the tenant that `Lines` name."""
        tenant = lines.tenant_id if isinstance(lines, Lines) else None
        self._log.append(tenant, lines, reads=read)
        if isinstance(lines, Lines):
            lines.chain = self._log.name(tenant, read)

    def chains(self, read: bool) -> Iterator[Chain]:
        """Every chain of one of the two logs; the store's own is always there, and first."""
        return chains.chains_of(self._log, self._store_key, read)

    def chain(self, tenant_id: str, read: bool) -> Chain:
        """A tenant's own chain, for whoever may see that tenant and no other."""
        name = chains.chain_of(self._store_key, tenant_id, read=read)
        return Chain(name, tenant_id, partial(self._log.raw_within, tenant_id, read))

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines of one of the two logs, chain after chain."""
        return chains.lines_of(self._log, read)

    def raw_log(self, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines in whatever state they are; `chains` tells where one chain ends."""
        return chains.raw_lines_of(self._log, read, after)

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines."""
        return subjects.subject_key(self._pool, tenant_id, subject, create=create)

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
        """Remove a subject from a tenant; log lines and removal are one transaction."""
        request = forgetting.Request(tenant_id, subject, now_us, self._store_key)

        def made(counts: ForgetCounts) -> Sequence[str]:
            lines = lines_for(counts)
            if isinstance(lines, Lines):
                lines.chain = self._log.name(tenant_id, False)
            return lines

        return self._pool.write(
            lambda session: forgetting.forget(
                session, request, dry_run=dry_run, lines_for=made, place=self.url
            )
        )

    def forgets(self) -> int:
        """How often somebody was forgotten, by any process."""
        return int(self._pool.common("SELECT count FROM forgettings")[0][0])

    def revision(self) -> int:
        """How many lines the logs of writes hold, those of all tenants together."""
        return int(self._pool.ask(ACROSS, _REVISION)[0][0])

    def close(self) -> None:
        """Close every connection of this process."""
        self._pool.close()
