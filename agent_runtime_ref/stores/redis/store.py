"""The store of a session: one database of a Redis server, which removes by itself what has expired."""

from __future__ import annotations

import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import DecisionLogError, RevisionConflictError, StoreDamagedError, StoreError
from agent_runtime_ref.stores import chains
from agent_runtime_ref.stores.attributes import check_plan
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
from agent_runtime_ref.stores.redis import forget as forgetting
from agent_runtime_ref.stores.redis import names
from agent_runtime_ref.stores.redis.address import parsed
from agent_runtime_ref.stores.redis.changes import Before, Step, change_steps, line_steps, steps_of
from agent_runtime_ref.stores.redis.connection import Server
from agent_runtime_ref.stores.redis.log import Log, send
from agent_runtime_ref.stores.redis.names import STORE, Names
from agent_runtime_ref.stores.redis.opening import examined
from agent_runtime_ref.stores.redis.scripts import FIELD
from agent_runtime_ref.stores.redis.view import View, Wanted, indexes_for, load, wanted_by
from agent_runtime_ref.telemetry.chain import Lines

T = TypeVar("T")

# Whoever is overtaken looks again: so often, after a pause of at most so long.
ATTEMPTS = 200
PAUSE_SECONDS_MAX = 0.02
_TURNS = 64


class RedisStore:
    """Keeps records, both logs and keys in one database of a server, below names of its own.

    `durable` is what the server's settings made it when the store was opened: only a server that forces each
    write to its disk before it answers (`appendonly yes`, `appendfsync always`,
    `no-appendfsync-on-rewrite no`) keeps what it acknowledged. `volatile_because` says which setting keeps
    it from that.
    """

    log_mode: LogMode = "same_transaction"
    capabilities = CAPABILITIES

    def __init__(self, url: str, *, must_exist: bool = False) -> None:
        """Open the store at `url`, and make it where there is none, unless it must exist.

        Raises:
            StoreAddressError: the address is none, or there is no store.
            StoreCapabilityError: the server cannot keep a store; see `opening.examined`.
            StoreVersionError, StoreDamagedError: what is there is newer, or none.
            StoreError: the server cannot be reached.
        """
        address = parsed(url)
        self.url = address.shown
        self._server = Server(address)
        try:
            known = examined(self._server, must_exist=must_exist)
        except BaseException:
            self._server.close()
            raise
        self.volatile_because = known.volatile_because
        self.durable = known.volatile_because is None
        self._store_key = known.store_key
        self._log = Log(self._server)
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        # One of a process tries at a time: the others of it would only be overtaken.
        self._turns = [threading.Lock() for _ in range(_TURNS)]

    def search(self, request: SearchRequest) -> SearchPage:
        """The best matches and exact counts, of one moment of the server."""
        return self._found(request).search(request)

    @contextmanager
    def examine(
        self, request: SearchRequest, batch: int
    ) -> Iterator[tuple[SearchPage, Iterator[list[Match]]]]:
        """The page, and every admitted match in batches, of one moment of the server."""
        with self._found(request).examine(request, batch) as found:
            yield found

    def _found(self, request: SearchRequest) -> View:
        check_plan(request.plan, store=self.url)  # first: a plan is refused even where nothing is stored
        if request.tenant_ids is None:
            return load(self._server, None)
        indexes = indexes_for(request.plan)
        return load(self._server, {one: Wanted(indexes=dict(indexes)) for one in request.tenant_ids})

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """What is active in each slot at `now_us`."""
        wanted = Wanted()
        for slot in (Slot(*one) for one in slots):
            if slot.key is None:
                wanted.slots[slot.memory_class, slot.kind] = None
            else:
                wanted.indexes[names.of_key(slot.subject, slot.key)] = None
        return self._looked(tenant_id, wanted).heads(tenant_id, slots, now_us)

    def lineage(self, tenant_id: str, ids: Sequence[str], now_us: int = 0) -> dict[str, Parent]:
        """Trust rank, subject and status of each id that exists."""
        return self._looked(tenant_id, Wanted(ids=dict.fromkeys(ids))).lineage(tenant_id, ids, now_us)

    def children(self, tenant_id: str, ids: Sequence[str]) -> list[str]:
        """Ids of the records that name one of `ids` as what they were derived from, in order."""
        wanted = Wanted(indexes=dict.fromkeys(map(names.from_record, ids)))
        return self._looked(tenant_id, wanted).children(tenant_id, ids)

    def find_duplicate(self, tenant_id: str, digests: Sequence[bytes], now_us: int = 0) -> dict[bytes, str]:
        """The active record of each digest that is taken."""
        view = self._looked(tenant_id, Wanted(digests=dict.fromkeys(digests)))
        return view.find_duplicate(tenant_id, digests, now_us)

    def tombstoned(self, tenant_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """Those digests whose content was forgotten."""
        return self._looked(tenant_id, Wanted(marks=dict.fromkeys(digests))).tombstoned(tenant_id, digests)

    def fetch(self, tenant_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """The records of those ids that exist, in the order of `ids`."""
        return self._looked(tenant_id, Wanted(ids=dict.fromkeys(ids))).fetch(tenant_id, ids)

    def queued(self, tenant_id: str, memory_id: str, status: str = "quarantined") -> Queued | None:
        """The record of that id, if it has that status, and what is kept for its review."""
        return self._looked(tenant_id, Wanted(ids={memory_id: None})).queued(tenant_id, memory_id, status)

    def _looked(self, tenant_id: str, wanted: Wanted) -> View:
        return load(self._server, {tenant_id: wanted})

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Put a batch and its log lines in one script, or nothing."""
        teller = chains.tenant_of(batch)

        def attempt() -> tuple[View, list[Step], list[CommitOutcome]]:
            wanted: dict[str | None, Wanted] = dict(wanted_by(batch).items())
            if batch.lines:
                wanted.setdefault(teller, Wanted())
            view = load(self._server, wanted)
            tenants = [one for one in wanted if one is not None]
            before = {one: Before.of(view.tenant(one)) for one in tenants}
            outcomes = view.apply(batch)
            steps = [step for one in tenants for step in steps_of(view, one, before[one], batch.now_us)]
            if batch.lines:
                steps += line_steps(teller, view.standings[teller], batch.lines)
            return view, steps, outcomes

        outcomes = self._changed({*chains.tenants_of(batch), teller}, attempt)
        self._note(batch.lines, teller, read=False)
        return outcomes

    def _changed(self, tenants: set[str | None], attempt: Callable[[], tuple[View, list[Step], T]]) -> T:
        """The result of the attempt whose change nobody overtook."""
        with self._turn(tenants):
            for number in range(ATTEMPTS):
                view, steps, result = attempt()
                if send(self._server, [*change_steps(view.standings), *steps]) is None:
                    return result
                time.sleep(random.uniform(0, min(PAUSE_SECONDS_MAX, 0.0005 * 2**number)))
        raise RevisionConflictError(self.url, "other processes kept being faster")

    @contextmanager
    def _turn(self, tenants: set[str | None]) -> Iterator[None]:
        if self._pid != os.getpid():
            self._start()  # the locks may be held by threads of the parent, which are not here
        with ExitStack() as held:
            for number in sorted({hash(one) % _TURNS for one in tenants}):
                held.enter_context(self._turns[number])
            yield

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write, in the chain of the tenant that `Lines` name."""
        if not lines:
            return
        tenant = lines.tenant_id if isinstance(lines, Lines) else None
        try:
            if read:
                self._log.append_read(tenant, lines, attempts=ATTEMPTS)
            else:
                self._append_write(tenant, lines)
        except DecisionLogError:
            raise
        except StoreError as error:
            raise DecisionLogError(self.url, str(error.values["problem"])) from error
        self._note(lines, tenant, read=read)

    def _append_write(self, tenant: str | None, lines: Sequence[str]) -> None:
        def attempt() -> tuple[View, list[Step], None]:
            view = load(self._server, {tenant: Wanted()})
            return view, list(line_steps(tenant, view.standings[tenant], lines)), None

        self._changed({tenant}, attempt)

    def _note(self, lines: Sequence[str], tenant: str | None, *, read: bool) -> None:
        if isinstance(lines, Lines):
            lines.chain = chains.chain_of(self._store_key, tenant, read=read)

    def chains(self, read: bool) -> Iterator[Chain]:
        """Every chain of one of the two logs; the store's own is always there, and first."""
        return chains.chains_of(self._log, self._store_key, read)

    def chain(self, tenant_id: str, read: bool) -> Chain:
        """A tenant's own chain, for whoever may see that tenant and no other."""
        name = chains.chain_of(self._store_key, tenant_id, read=read)
        return Chain(name, tenant_id, partial(self._log.raw, tenant_id, read))

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines of one of the two logs, chain after chain."""
        return chains.lines_of(self._log, read)

    def raw_log(self, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines in whatever state they are; `chains` tells where one chain ends."""
        return chains.raw_lines_of(self._log, read, after)

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines; never remembered here."""
        place = Names.of(tenant_id).subject_keys, names.encoded(subject)
        made = (secrets.token_hex(32),) if create else ()
        found = self._server.run(FIELD, *place, *made)[1]
        if found is None:
            return None
        try:
            key = bytes.fromhex(found.decode("ascii"))
        except ValueError:
            key = b""
        if len(key) != 32:
            raise StoreDamagedError(self.url, "one of its keys is none")
        return key

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
        """Remove a subject from a tenant; log lines and removal are one script."""

        def attempt() -> tuple[View, list[Step], tuple[ForgetCounts, Sequence[str]]]:
            found = forgetting.doomed(self._server, tenant_id, subject)
            held = not dry_run and self.subject_key(tenant_id, subject, False) is not None
            counts = replace(found.counts(self._store_key), dry_run=dry_run, log_key_destroyed=held)
            # The lines may need the subject's key, so they are made before it goes.
            lines = lines_for(counts)
            self._note(lines, tenant_id, read=False)
            steps = [] if dry_run else list(found.steps(counts, now_us))
            steps += line_steps(tenant_id, found.view.standings[tenant_id], lines)
            return found.view, steps, (counts, lines)

        return self._changed({tenant_id}, self._again(attempt))[0]

    def _again(self, attempt: Callable[[], T]) -> Callable[[], T]:
        """The attempt, begun anew where somebody changes the tenant while it looks."""

        def begun() -> T:
            for _ in range(ATTEMPTS):
                try:
                    return attempt()
                except RevisionConflictError:
                    continue
            raise RevisionConflictError(self.url, "other processes kept being faster")

        return begun

    def forgets(self) -> int:
        """How often somebody was forgotten, by any process."""
        return self._count("forgets")

    def revision(self) -> int:
        """How many lines the logs of writes hold, those of all tenants together."""
        return self._count("lines")

    def _count(self, name: str) -> int:
        return int(self._server.run(FIELD, STORE, name)[1] or 0)

    def close(self) -> None:
        """Give up every connection of this process."""
        self._server.close()
