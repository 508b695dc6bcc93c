"""What a write hands to a store, what the decision relied on, and what forgetting removes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agent_runtime_ref.contracts import MemoryRecord


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
    derived from, as they were; and `vacant` the slots, each with a key, in which nothing was active.
    `waiting` goes with a record in quarantine; `queued` is the one of the same id whose place this record
    takes, as it was seen: in quarantine, or active where it is to go there.
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
    vacant: Sequence[Slot] = ()


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
