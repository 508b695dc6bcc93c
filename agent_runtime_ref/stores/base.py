"""What a store is: the protocol that the two gates use, and the values that pass between them.

A store knows attributes and operators; it names no rule and reads no policy. What it cannot do it refuses
with a StoreCapabilityError. The same conformance suite (agent_runtime_ref.testing) holds every store to the
same answers. The values of searching and writing have modules of their own, and are had from here.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.stores.searching import Match, MatchSource, SearchPage, SearchRequest, match_key
from agent_runtime_ref.stores.writing import (
    Change,
    CommitOutcome,
    ForgetCounts,
    Head,
    Held,
    Parent,
    Queued,
    Rejected,
    Slot,
    Waiting,
    WriteBatch,
)

__all__ = [
    "CAPABILITIES",
    "Chain",
    "ChainedByTenant",
    "Change",
    "CommitOutcome",
    "Examination",
    "ForgetCounts",
    "Head",
    "Held",
    "LogMode",
    "Match",
    "MatchSource",
    "Parent",
    "Queued",
    "RawLines",
    "Rejected",
    "SaysWhyVolatile",
    "SearchPage",
    "SearchRequest",
    "Slot",
    "Store",
    "Waiting",
    "WriteBatch",
    "match_key",
]

LogMode = Literal["same_transaction", "write_ahead", "volatile", "file"]

# What a governed read and write need of a store; a store that lacks one says so when it is opened.
CAPABILITIES = frozenset(
    {"filter", "search", "scan", "expire", "conditional_write", "forget", "review", "log"}
)


class RawLines(Protocol):
    """Lines of a chain in whatever state they are, those behind the one numbered `after`."""

    def __call__(self, after: int = 0) -> Iterator[bytes]:
        """Yield them, oldest first; all of them without a number."""


class Chain(NamedTuple):
    """One chain of a log that is several."""

    name: str  # as exported events call it
    tenant_id: str | None  # None: what belongs to no tenant
    raw: RawLines


@runtime_checkable
class ChainedByTenant(Protocol):
    """A store whose logs are a chain for each tenant, so that tenants do not wait for each other."""

    def chains(self, read: bool) -> Iterator[Chain]:
        """Every chain of the write log or the read log, the one of no tenant first."""

    def chain(self, tenant_id: str, read: bool) -> Chain:
        """A tenant's own chain, for whoever may see that tenant and no other."""


@runtime_checkable
class SaysWhyVolatile(Protocol):
    """A store that may be durable or not, and says what keeps it from being so."""

    @property
    def volatile_because(self) -> str | None:
        """What keeps it from being durable, and the remedy, as half a sentence; None where it is."""


Examination = AbstractContextManager[tuple[SearchPage, Iterator[list[Match]]]]


class Store(Protocol):
    """Keeps records, their terms and the decision log."""

    @property
    def url(self) -> str:
        """The address by which it was opened."""

    @property
    def durable(self) -> bool:
        """Whether what was committed outlives the process."""

    @property
    def log_mode(self) -> LogMode:
        """How the decision log is kept."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What the store can do, out of CAPABILITIES."""

    def search(self, request: SearchRequest) -> SearchPage:
        """The best matches and exact counts, from one snapshot that is closed before the answer leaves."""

    def examine(self, request: SearchRequest, batch: int) -> Examination:
        """The page of `search`, and every match that the plan admits, best first, in batches of `batch`.

        To be used with `with`: both are of one snapshot, which is held until the block ends.
        """

    def heads(self, tenant_id: str, slots: Sequence[Slot], now_us: int = 0) -> list[Head | None]:
        """What is active in each slot at `now_us`, in the order of `slots`."""

    def lineage(self, tenant_id: str, ids: Sequence[str], now_us: int = 0) -> dict[str, Parent]:
        """Trust rank, subject and status of each id that exists; `expired` where it is so at `now_us`."""

    def children(self, tenant_id: str, ids: Sequence[str]) -> list[str]:
        """Ids of the records that name one of `ids` as what they were derived from, in order.

        One step; and whether or not there still is a record of that id.
        """

    def find_duplicate(self, tenant_id: str, digests: Sequence[bytes], now_us: int = 0) -> dict[bytes, str]:
        """The active record of each digest that is taken; one that has expired at `now_us` takes none."""

    def tombstoned(self, tenant_id: str, digests: Sequence[bytes]) -> set[bytes]:
        """Those digests (see `tombstone_digest`) whose content was forgotten."""

    def queued(self, tenant_id: str, memory_id: str, status: str = "quarantined") -> Queued | None:
        """The record of that id and what is kept for its review; None where there is none of that status."""

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Put a batch and its log lines in one transaction.

        Raises:
            RevisionConflictError: a head moved, a memory_id is taken, or something else that the writer
                relied on is no longer so (see `relied.check`).
            DuplicateRecordError: a dedup key is taken; `.existing` is the record that has it.
            DecisionLogError: the log could not be written; nothing was.
        """

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write; raises DecisionLogError.

        A store whose logs are a chain for each tenant puts them into that of the tenant that `Lines` name.
        """

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines of the write log or the read log, oldest first."""

    def raw_log(self, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines in whatever state they are: to be verified, so gaps and damage are no error here.

        With `after`, only those behind the line of that number, found without reading what comes before it
        where the store can.
        """

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines.

        None where the subject has none and `create` is not set; nothing is stored then (see `SubjectKeys`).
        """

    def store_key(self) -> bytes:
        """The store's own key, 32 bytes, made when the store was made."""

    def forget(
        self,
        tenant_id: str,
        subject: str,
        *,
        now_us: int,
        dry_run: bool,
        lines_for: Callable[[ForgetCounts], Sequence[str]],
    ) -> ForgetCounts:
        """Remove a subject from a tenant; `lines_for` makes the log lines that are kept with the removal."""

    def forgets(self) -> int:
        """How often somebody was forgotten, by any process; when it grows, keys kept in memory are stale."""

    def fetch(self, tenant_id: str, ids: Sequence[str]) -> list[MemoryRecord]:
        """The records of those ids that exist, in the order of `ids`."""

    def revision(self) -> int:
        """The number of the last line of the store's own log."""

    def close(self) -> None:
        """Give up files and connections; a closed store refuses every call."""
