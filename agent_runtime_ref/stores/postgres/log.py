"""The decision log in the database: for each tenant a chain of writes and one of reads, without a gap.

What belongs to no tenant, such as the news that other policies are in force, has a chain of the store's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError
from agent_runtime_ref.stores.chains import chain_of
from agent_runtime_ref.stores.postgres.connection import Pool
from agent_runtime_ref.stores.postgres.session import ACROSS, Across, Session
from agent_runtime_ref.telemetry import chain

_READ_AT_ONCE = 1000
_HEADS_MAX = 10_000

_BEGIN_CHAIN = (
    "INSERT INTO chains(tenant_id,reads,rid,seq,hash) VALUES($1,$2,0,0,repeat('0',64)) ON CONFLICT DO NOTHING"
)
_LOCK_CHAIN = "SELECT seq,hash,rid FROM chains WHERE tenant_id=$1 AND reads=$2 FOR UPDATE"
_HEAD = "SELECT seq,hash FROM chains WHERE tenant_id=$1 AND reads=$2"
_LOCK_STORE = "SELECT seq,hash FROM store_chains WHERE reads=$1 FOR UPDATE"
# One statement, so that a line is put behind the one that was last when it was sealed, or not at all.
_PUT = (
    "WITH moved AS (UPDATE chains SET seq=$5,hash=$6 WHERE tenant_id=$1 AND reads=$2 AND seq=$3 AND hash=$4"
    " RETURNING 1)"
    " INSERT INTO log(tenant_id,reads,seq,line) SELECT $1,$2,u.seq,u.line"
    " FROM moved CROSS JOIN {} RETURNING seq"
)
_PUT_STORE = (
    "WITH moved AS (UPDATE store_chains SET seq=$4,hash=$5 WHERE reads=$1 AND seq=$2 AND hash=$3 RETURNING 1)"
    " INSERT INTO store_log(reads,seq,line) SELECT $1,u.seq,u.line FROM moved CROSS JOIN {} RETURNING seq"
)
# So many lines are handed over one by one: within a list every quote of a line would have to be escaped.
_SINGLE_MAX = 8
_LINES = "SELECT seq,line FROM log WHERE tenant_id=$4 AND reads=$1 AND seq>$2 ORDER BY seq LIMIT $3"


def locked(session: Session, tenant: str, *, reads: bool) -> tuple[int, str, int]:
    """Where a tenant's chain stands, and its last record's number; both are ours until the session ends."""
    session.become(tenant)
    found = session.rows(_LOCK_CHAIN, (tenant, reads))
    if not found:
        session.run(_BEGIN_CHAIN, (tenant, reads))
        found = session.rows(_LOCK_CHAIN, (tenant, reads))
    seq, digest, rid = found[0]
    return seq, digest, rid


def append(session: Session, tenant: str | None, lines: Sequence[str], *, reads: bool, place: str) -> None:
    """Seal `lines` and add them within the session's transaction; None: to the store's own chain.

    Raises:
        DecisionLogError: the chain is not as it must be; the transaction must not be committed.
    """
    if not lines:
        return
    if tenant is None:
        seq, digest = session.rows(_LOCK_STORE, (reads,))[0]
        put = session.rows(*_put(_PUT_STORE, (reads,), _sealed(lines, seq, digest)))
    else:
        seq, digest, _ = locked(session, tenant, reads=reads)
        put = session.rows(*_put(_PUT, (tenant, reads), _sealed(lines, seq, digest)))
    if len(put) != len(lines):
        raise DecisionLogError(place, "its last line changed under a lock")


class _Sealed(NamedTuple):
    """Lines with their numbers, and where the chain stands before and after them."""

    seq: int
    hash: str
    last_seq: int
    last_hash: str
    lines: list[tuple[int, str]]


def _sealed(lines: Sequence[str], seq: int, digest: str) -> _Sealed:
    made = chain.seal_after(lines, seq=seq, prev_hash=digest)
    return _Sealed(seq, digest, *chain.head(made[-1][1]), made)


def _put(sql: str, whose: tuple[Any, ...], sealed: _Sealed) -> tuple[str, list[Any]]:
    """The statement that puts sealed lines, with its values."""
    values = [*whose, *sealed[:4]]
    first, count = len(values) + 1, len(sealed.lines)
    if count > _SINGLE_MAX:
        values += [[seq for seq, _ in sealed.lines], [line for _, line in sealed.lines]]
        return sql.format(f"unnest(${first}::bigint[],${first + 1}::text[]) u(seq,line)"), values
    marks = ",".join(f"(${first + 2 * n}::bigint,${first + 2 * n + 1}::text)" for n in range(count))
    values += [part for one in sealed.lines for part in one]
    return sql.format(f"(VALUES {marks}) u(seq,line)"), values


class Log:
    """Appends lines that belong to no write, and reads all of them."""

    def __init__(self, pool: Pool, store_key: bytes) -> None:
        self._pool = pool
        self._key = store_key
        # Where chains stood when this process last looked: right nearly always, and checked when it is used.
        self._heads: dict[tuple[str, bool], tuple[int, str]] = {}

    def append(self, tenant: str | None, lines: Sequence[str], *, reads: bool) -> None:
        """Commit lines that are not part of a write.

        Raises:
            DecisionLogError: the lines could not be written or committed.
        """
        if not lines:
            return
        try:
            if tenant is not None and self._appended_at_once(tenant, lines, reads=reads):
                return
            self._appended_under_lock(tenant, lines, reads=reads)
        except DecisionLogError:
            raise
        except (
            Exception
        ) as error:  # whatever kept the lines from being durable, the operation must not happen
            problem = error.values["problem"] if isinstance(error, StoreError) else str(error)
            raise DecisionLogError(self._pool.place, str(problem)) from error

    def _appended_at_once(self, tenant: str, lines: Sequence[str], *, reads: bool) -> bool:
        """Put lines in one round trip behind the last one known; False where another one is last by now."""
        known = self._heads.pop((tenant, reads), None)
        if known is None:
            return False
        sealed = _sealed(lines, *known)
        statement = _put(_PUT, (tenant, reads), sealed)
        attempts = 0

        def put() -> bool:
            nonlocal attempts
            attempts += 1
            if self._pool.ask_once(tenant, *statement, durable=not reads):
                return True
            # Not put: or put by an attempt whose connection was lost before it could say so. Whatever moved
            # the chain has ended, since the statement waited for it.
            return attempts > 1 and self._holds(tenant, reads, sealed)

        if not self._pool.tried(put):
            return False
        self._remember(tenant, reads, sealed.last_seq, sealed.last_hash)
        return True

    def _holds(self, tenant: str, reads: bool, sealed: _Sealed) -> bool:
        sql = "SELECT line FROM log WHERE tenant_id=$1 AND reads=$2 AND seq=$3"
        return self._pool.ask(tenant, sql, (tenant, reads, sealed.last_seq)) == [(sealed.lines[-1][1],)]

    def _appended_under_lock(self, tenant: str | None, lines: Sequence[str], *, reads: bool) -> None:
        def put(session: Session) -> tuple[int, str]:
            append(session, tenant, lines, reads=reads, place=self._pool.place)
            if tenant is None:
                return 0, ""
            seq, digest = session.rows(_HEAD, (tenant, reads))[0]
            return seq, digest

        seq, digest = self._pool.write(put)
        if tenant is not None:
            self._remember(tenant, reads, seq, digest)

    def _remember(self, tenant: str, reads: bool, seq: int, digest: str) -> None:
        if len(self._heads) >= _HEADS_MAX:
            self._heads.clear()
        self._heads[tenant, reads] = seq, digest

    def tenants(self, read: bool) -> list[str]:
        """The tenants that have a chain, in order; asked in the role of inspection."""
        sql = "SELECT tenant_id FROM chains WHERE reads=$1 AND seq>0 ORDER BY tenant_id"
        return [row[0] for row in self._pool.ask(ACROSS, sql, (read,))]

    def name(self, tenant: str | None, read: bool) -> str:
        """What a chain is called outside the store, where it must not tell the tenant."""
        return chain_of(self._key, tenant, read=read)

    def lines(self, tenant: str | None, read: bool) -> Iterator[str]:
        """The sealed lines of one chain, oldest first, in steps that hold no snapshot meanwhile."""
        after = 0
        for seq, line in self._rows(tenant, read):
            if seq != after + 1 and after:
                raise StoreDamagedError(self._pool.place, f"line {after + 1} of its log is missing")
            yield line
            after = seq

    def raw(self, tenant: str | None, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same as bytes, whatever was done to them; those behind line `after`."""
        return (line.encode() for _, line in self._rows(tenant, read, after))

    def raw_within(self, tenant: str, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same, asked within the tenant's walls: the role of inspection is not needed for it."""
        return (line.encode() for _, line in self._rows(tenant, read, after, within=tenant))

    def _rows(
        self, tenant: str | None, read: bool, after: int = 0, *, within: str | Across = ACROSS
    ) -> Iterator[tuple[int, str]]:
        after = after or -(2**63)  # a row may have been given any number
        while True:
            step = (read, after, _READ_AT_ONCE)
            if tenant is None:
                sql = "SELECT seq,line FROM store_log WHERE reads=$1 AND seq>$2 ORDER BY seq LIMIT $3"
                found = self._pool.common(sql, step)
            else:
                found = self._pool.ask(within, _LINES, (*step, tenant))
            if not found:
                return
            yield from found
            after = found[-1][0]
