"""The decision log on the server: for each tenant, and for none, a chain of writes and one of reads."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError
from agent_runtime_ref.stores.redis import names
from agent_runtime_ref.stores.redis.changes import Step, chained
from agent_runtime_ref.stores.redis.connection import Server
from agent_runtime_ref.stores.redis.names import TENANTS, Names
from agent_runtime_ref.stores.redis.scripts import CHANGE
from agent_runtime_ref.telemetry import chain

_READ_AT_ONCE = 1000
_HEADS_MAX = 10_000
_START = (0, chain.GENESIS)


class Log:
    """Adds lines of reads, and reads all lines."""

    def __init__(self, server: Server) -> None:
        self._server = server
        # Where chains stood when this process last looked: right nearly always, and checked when it is used.
        self._heads: dict[str | None, tuple[int, str]] = {}

    def append_read(self, tenant_id: str | None, lines: Sequence[str], *, attempts: int) -> None:
        """Add lines of a read behind the last one.

        Raises:
            StoreError: they could not be written, or others kept being faster.
        """
        named = Names.of(tenant_id)
        for _ in range(attempts):
            seq, digest = self._heads.get(tenant_id, _START)
            sealed = chain.seal_after(lines, seq=seq, prev_hash=digest)
            steps: list[Step] = [("is", named.standing, "rs", str(seq))]
            if seq:
                steps.append(("is", named.standing, "rh", digest))
            steps += chained(named, sealed, seq, read=True)
            if tenant_id is not None:
                steps.append(("name", TENANTS, names.encoded(tenant_id)))
            moved = send(self._server, steps)
            if moved is None:
                self._remember(tenant_id, *chain.head(sealed[-1][1]))
                return
            self._remember(tenant_id, *moved.reads)
        raise StoreError(self._server.place, "other processes kept being faster")

    def _remember(self, tenant_id: str | None, seq: int, digest: str) -> None:
        if len(self._heads) >= _HEADS_MAX:
            self._heads.clear()
        self._heads[tenant_id] = seq, digest

    def tenants(self, read: bool) -> list[str]:
        """The tenants that have a chain, in order."""
        found = self._server.command("SMEMBERS", TENANTS)
        known = sorted(names.decoded(one.decode("ascii", "replace"), self._server.place) for one in found)
        return [one for one in known if self._length(one, read)]

    def _length(self, tenant_id: str, read: bool) -> int:
        return int(self._server.command("LLEN", Names.of(tenant_id).lines(read=read)))

    def lines(self, tenant_id: str | None, read: bool) -> Iterator[str]:
        """The sealed lines of one chain, oldest first.

        Raises:
            StoreDamagedError: one of them is no text.
        """
        for line in self.raw(tenant_id, read):
            try:
                yield line.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:
                raise StoreDamagedError(self._server.place, "a line of its log is no text") from None

    def raw(self, tenant_id: str | None, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same as bytes, whatever was done to them; those behind line `after`."""
        key, start = Names.of(tenant_id).lines(read=read), after
        while found := self._server.command("LRANGE", key, start, start + _READ_AT_ONCE - 1):
            yield from found
            start += len(found)


class Moved:
    """Where the chains of the tenant stand that somebody else changed first."""

    def __init__(self, fields: Sequence[bytes | None]) -> None:
        seq, digest = fields[2:4]
        self.reads = (int(seq or 0), (digest or chain.GENESIS.encode()).decode("ascii", "replace"))


def send(server: Server, steps: Sequence[Step]) -> Moved | None:
    """Make a change as one; what moved where something did, and then nothing was changed.

    A connection that is lost leaves open whether it happened. The same change is sent again under the name
    that it has, by which the server knows that it has happened.

    Raises:
        DecisionLogError: the log is shorter or longer than it says.
        StoreDamagedError: something that this package never wrote stands in the way.
    """
    words = [word for step in steps for word in step]
    reply = server.run(CHANGE, secrets.token_hex(16), *words)
    if reply[0] == b"tail":
        raise DecisionLogError(server.place, "lines of its log were removed, or added by somebody else")
    return None if reply[0] == b"ok" else Moved(reply[1])
