"""What a store is: the protocol that the two gates use, and the values that pass between them.

A store knows attributes and operators; it names no rule and reads no policy. What it cannot do it refuses
with a
StoreCapabilityError. The same conformance suite (agent_runtime_ref.testing) holds every store to the same
answers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord, Plan
from agent_runtime_ref.contracts.projection import happened_at
from agent_runtime_ref.recall.rank import RankKey, rank_key

LogMode = Literal["same_transaction", "write_ahead", "volatile", "file"]

# What a governed read and write need of a store; a store that lacks one says so when it is opened.
CAPABILITIES = frozenset(
    {"filter", "search", "scan", "expire", "conditional_write", "forget", "review", "log"}
)


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One look into a store: whose records, under which plan, by which terms."""

    tenant_ids: tuple[str, ...] | None  # None: every tenant
    plan: Plan
    terms: tuple[str, ...] | None  # None: every record matches, and order is by trust, newest, id
    now_us: int
    take: int
    excluded_take: int = 50
    labels: bool = True  # whether a record is also found by its kind and key, where no term is in its text


class MatchSource(Protocol):
    """What a store knows how to make of one of its rows."""

    def rank_key(self, row: Any) -> RankKey:
        """The row's place in the order."""

    def matched_terms(self, row: Any) -> tuple[str, ...]:
        """The terms it was found by, in the order of the query."""

    def attributes(self, row: Any) -> dict[str, Any]:
        """Its candidate document."""

    def record(self, row: Any) -> MemoryRecord:
        """The record itself."""


class Match:
    """A record that passed walls and selectors, as one query sees it.

    Everything is built when it is asked for: most of what a search finds is counted, never shown.
    """

    __slots__ = ("_attributes", "_rank_key", "_record", "_row", "_source")

    def __init__(self, source: MatchSource, row: Any) -> None:
        self._source = source
        self._row = row
        self._rank_key: RankKey | None = None
        self._attributes: dict[str, Any] | None = None
        self._record: MemoryRecord | None = None

    @property
    def rank_key(self) -> RankKey:
        """Its place in the order, smallest first."""
        if self._rank_key is None:
            self._rank_key = self._source.rank_key(self._row)
        return self._rank_key

    @property
    def tenant_id(self) -> str:
        """Whose record it is."""
        return self.rank_key[4]

    @property
    def memory_id(self) -> str:
        """The record's id."""
        return self.rank_key[3]

    @property
    def created_us(self) -> int:
        """When the record was kept."""
        return -self.rank_key[2]

    @property
    def total(self) -> int:
        """The score in millionths; 0 where the query has no text."""
        return -self.rank_key[0]

    @property
    def happened_us(self) -> int:
        """When what the record tells happened; where nobody said, when it was kept.

        A source may know it without making the record, which costs ten times as much; it need not.
        """
        known: Callable[[Any], int] | None = getattr(self._source, "happened_us", None)
        return microseconds(happened_at(self.record())) if known is None else known(self._row)

    @property
    def matched_terms(self) -> tuple[str, ...]:
        """The query's terms that the record was found by."""
        return self._source.matched_terms(self._row)

    @property
    def matched_count(self) -> int:
        """How many of the query's terms the record was found by."""
        return len(self.matched_terms)

    @property
    def attributes(self) -> dict[str, Any]:
        """The candidate document of the policy, strings as they were stored."""
        if self._attributes is None:
            self._attributes = self._source.attributes(self._row)
        return self._attributes

    def record(self) -> MemoryRecord:
        """The record, as it was when the search ran; of a kept-out match, as it is now."""
        if self._record is None:
            self._record = self._source.record(self._row)
        return self._record

    def __repr__(self) -> str:
        return f"Match({self.tenant_id!r}, {self.memory_id!r}, total={self.total})"


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What one snapshot of a store answers."""

    matches: tuple[Match, ...]  # admitted by the plan, best first
    kept_out: tuple[tuple[Match, str], ...]  # with the reason of the first filter each one failed, best first
    exclusions: Mapping[str, int]  # every kept-out record, by reason; exact
    considered: int  # all that passed walls and selectors
    revision: int  # number of the last line of the store's own log at the snapshot


class Slot(NamedTuple):
    """What a `replace` is about; `key=None` asks for the revision count of (class, kind)."""

    subject: str | None
    memory_class: str
    kind: str
    key: str | None


class Head(NamedTuple):
    """The active record of a slot, or, with `memory_id=None`, only its highest revision.

    Where every active record of a slot has expired, the status is "expired" and the trust rank 0: nothing
    stands in the way of a replacement, which supersedes them and counts their revisions on.
    """

    memory_id: str | None
    trust_rank: int  # the highest among the slot's active records that have not expired
    revision: int
    status: str


class Parent(NamedTuple):
    """What a record passes on to those derived from it.

    An active record whose life has ended has the status "expired": nobody is shown it any more.
    """

    trust_rank: int
    subject: str | None
    status: str


class Held(NamedTuple):
    """A dedup key and the record that was seen to hold it."""

    tenant_id: str
    digest: bytes
    memory_id: str


class Waiting(NamedTuple):
    """What is kept beside a record in quarantine, for its review alone."""

    principal: bytes  # digest of who wrote it, which means something with this record only
    agent: bytes | None
    replaces: bool  # whether it was offered as a replacement


@dataclass(frozen=True, slots=True)
class Queued:
    """A record in quarantine as its reviewer sees it."""

    record: MemoryRecord
    waiting: Waiting | None  # None: whoever put it there did not say
    dedup: bytes | None
    original: bytes | None


class Rejected(NamedTuple):
    """A record that is to go for good, and what is kept so that its content is known again.

    One in quarantine as its review saw it; any other as `fetch` showed it, and nothing but the record.
    """

    queued: Queued
    tombstones: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Change:
    """One record to put, with the head that its writer saw.

    `supersedes=None` on an active record with a key says that its slot has no active record;
    `exclusive=False` drops that condition, for an append that may stand beside others. `original` is the
    tombstone digest of what was written, where the record holds a redacted form of it: forgetting leaves a
    tombstone of both. `unforgotten` and
    `parents` are what the decision relied on besides: a digest that had no tombstone, and the records it is
    derived from, as they were. `waiting` goes with a record in quarantine; `queued` is the one of the same id
    whose place this record takes, as it was seen: in quarantine, or active where it is to go there.
    """

    record: MemoryRecord
    supersedes: Head | None = None
    dedup: bytes | None = None
    exclusive: bool = True
    unforgotten: bytes | None = None
    original: bytes | None = None
    parents: Mapping[str, Parent] = field(default_factory=dict)
    waiting: Waiting | None = None
    queued: Queued | None = None


@dataclass(frozen=True, slots=True)
class WriteBatch:
    """Records and log lines that are kept together or not at all.

    `held` names the duplicates that were found instead of something to put, `rejected` what goes for good.
    `now_us` is the instant of the decision, by which records have expired or not; at 0 nothing has.
    """

    changes: Sequence[Change]
    lines: Sequence[str] = ()
    held: Sequence[Held] = ()
    now_us: int = 0
    rejected: Sequence[Rejected] = ()


class CommitOutcome(NamedTuple):
    """What became of one change."""

    memory_id: str
    superseded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ForgetCounts:
    """What forgetting a subject removes, or, in a dry run, would remove."""

    records: int = 0  # about the subject, every revision
    derived: int = 0  # derived from those, whoever they are about
    superseded: int = 0  # of all these, no longer active
    postings: int = 0
    dedup_keys: int = 0
    tombstones: int = 0
    by_class: Mapping[str, int] = field(default_factory=dict)
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by class; hex, keyed, of content
    log_key_destroyed: bool = False
    dry_run: bool = False
    notes: tuple[str, ...] = ()  # what was prevented, or is not covered


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


def match_key(attributes: Mapping[str, Any], total: int | None) -> RankKey:
    """The sort key of a record from its attributes."""
    return rank_key(
        total=total,
        trust_rank=attributes["trust_rank"],
        created_us=attributes["created_ns"] // 1000,
        memory_id=attributes["record_id"],
        tenant_id=attributes["tenant_id"],
    )
