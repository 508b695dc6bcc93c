"""Lines of the record file: what a commit did, as JSON objects, and how they are read again.

The first line says what the file is. Each other line is one step: a record that was put, one that was taken
out, tombstones, a count of revisions. The steps of one commit stand together, and the last of them names the
log line that announced them: steps behind the last such mark belong to a commit that never ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.errors import StoreDamagedError, StoreForeignError, StoreVersionError
from agent_runtime_ref.stores.base import Change, Rejected, Waiting
from agent_runtime_ref.stores.entries import NOT_OURS, entry_document, entry_of
from agent_runtime_ref.stores.memory_tenant import Tenant, Undo
from agent_runtime_ref.telemetry.chain import GENESIS

FORMAT = "agent-runtime-ref.store"
VERSION = 1
_DIGESTS_A_LINE = 1000

Step = dict[str, Any]


class Mark(NamedTuple):
    """The log line by which a commit was announced: its number and its hash."""

    seq: int
    hash: str


NO_MARK = Mark(0, GENESIS)


class Header(NamedTuple):
    """The first line of a record file."""

    forgets: int  # how often somebody was forgotten
    mark: Mark  # the last one of the records that this file begins with
    intent: str | None = None  # digest of the log line that announced the rewriting, where one did


def header_line(header: Header) -> bytes:
    """Return the first line of a file."""
    document: Step = {"format": FORMAT, "version": VERSION, "forgets": header.forgets, "log": [*header.mark]}
    if header.intent is not None:
        document["intent"] = header.intent
    return _line(document)


def read_header(line: bytes, place: str) -> Header:
    """Return what the first line of a file says.

    Raises:
        StoreForeignError: the file is none of this kind.
        StoreVersionError: a newer version wrote it.
    """
    try:
        document = orjson.loads(line)
        if document["format"] != FORMAT:
            raise ValueError
        version = int(document["version"])
        header = Header(int(document["forgets"]), _mark(document["log"]), document.get("intent"))
    except NOT_OURS:
        raise StoreForeignError(f"{place}:1", "does not begin as a store in JSON lines does") from None
    if version > VERSION:
        raise StoreVersionError(place, f"its format is {version}, known is {VERSION}")
    return header


def put_step(change: Change, superseded: Sequence[str]) -> Step:
    """Return the step of a record that was put."""
    step = _put(change.record, change.dedup, change.original, change.waiting)
    if superseded:
        step["supersedes"] = list(superseded)
    if change.queued is not None:
        step["released"] = True
    return step


def taken_out_step(rejected: Rejected, now_us: int) -> Step:
    """Return the step of a record that went out of quarantine for good."""
    record = rejected.queued.record
    return {
        "step": "taken_out",
        "tenant_id": record.tenant_id,
        "record_id": record.memory_id,
        "tombstones": [one.hex() for one in rejected.tombstones],
        "at_us": now_us,
    }


def step_lines(steps: Sequence[Step]) -> bytes:
    """Return the lines of a commit that is still to be announced.

    Raises:
        TypeError: a string is no Unicode text; better now than when the log tells of it.
    """
    return b"".join(map(_line, steps))


def marked(lines: bytes, mark: Mark) -> bytes:
    """Return the lines of a commit with the mark that ends it, in the last of them."""
    return lines[: -len(b"}\n")] + b',"log":' + orjson.dumps([*mark]) + b"}\n"


def snapshot_lines(tenants: Mapping[str, Tenant], mark: Mark) -> Iterator[bytes]:
    """Yield the lines of a file that holds what there is now, and nothing of how it came about."""
    for step in snapshot_steps(tenants):
        yield marked(_line(step), mark)


def snapshot_steps(tenants: Mapping[str, Tenant]) -> Iterator[Step]:
    """Yield the steps that lead to what there is now."""
    for tenant_id, tenant in tenants.items():
        for entry in tenant.entries.values():
            # A key that another record holds by now must not be taken back when this is read.
            keeps = entry.record.status == "quarantined" or tenant.holds_dedup(entry)
            dedup = entry.dedup if keeps else None
            yield _put(entry.record, dedup, entry.original, entry.waiting)
        for memory_class, kind, revision in tenant.revisions():
            yield {
                "step": "revision",
                "tenant_id": tenant_id,
                "memory_class": memory_class,
                "kind": kind,
                "revision": revision,
            }
        marks = sorted(tenant.tombstones.items())
        for start in range(0, len(marks), _DIGESTS_A_LINE):
            part = [[digest.hex(), at_us] for digest, at_us in marks[start : start + _DIGESTS_A_LINE]]
            yield {"step": "tombstones", "tenant_id": tenant_id, "digests": part}


class Replay:
    """Carries out steps as they are read; those of a commit that has not ended yet wait."""

    def __init__(self, tenants: dict[str, Tenant]) -> None:
        self._tenants = tenants
        self._waiting: list[tuple[int, Step]] = []

    def take(self, line: bytes, number: int, place: str) -> Mark | None:
        """Take a line; return the mark where it ends a commit, which then has been carried out.

        Raises:
            StoreDamagedError: the line, or one that waited for it, is none that was ever written.
        """
        step = _understood(f"{place}:{number}", partial(_step, line))
        self._waiting.append((number, step))
        if "log" not in step:
            return None
        mark: Mark = _understood(f"{place}:{number}", partial(_mark, step["log"]))
        for at, waiting in self._waiting:
            carry_out(self._tenants, waiting, f"{place}:{at}")
        self._waiting.clear()
        return mark

    def drop(self) -> None:
        """Give up what waits."""
        self._waiting.clear()


def carry_out(tenants: dict[str, Tenant], step: Step, place: str) -> None:
    """Carry out one step.

    Raises:
        StoreDamagedError: it is none that was ever written.
    """
    _understood(place, partial(_carry_out, tenants, step))


def _understood(place: str, work: Callable[[], Any]) -> Any:
    try:
        return work()
    except NOT_OURS as error:
        # Without the cause: it may quote the content.
        raise StoreDamagedError(place, f"the line is none of a store ({type(error).__name__})") from None


def _step(line: bytes) -> Step:
    step = orjson.loads(line)
    if not isinstance(step, dict) or step.get("step") not in _CARRIED_OUT:
        raise ValueError
    return step


def _carry_out(tenants: dict[str, Tenant], step: Step) -> None:
    _CARRIED_OUT[step["step"]](tenants, step)


def _put_again(tenants: dict[str, Tenant], step: Step) -> None:
    entry = entry_of(step)
    record = entry.record
    tenant = tenants.setdefault(record.tenant_id, Tenant())
    undo: Undo = []
    if step.get("released"):
        tenant.remove(tenant.entries[record.memory_id])
    if record.memory_id in tenant.entries:
        raise ValueError
    for memory_id in step.get("supersedes", ()):
        tenant.retire(tenant.entries[memory_id], undo)
    if entry.dedup is not None and record.status == "active":
        tenant.release(entry.dedup, undo)  # whoever held it had expired, or the commit had been refused
    tenant.add(entry, undo)


def _take_out_again(tenants: dict[str, Tenant], step: Step) -> None:
    tenant = tenants[step["tenant_id"]]
    tenant.remove(tenant.entries[step["record_id"]])
    tenant.mark(map(bytes.fromhex, step["tombstones"]), int(step["at_us"]), [])


def _count_again(tenants: dict[str, Tenant], step: Step) -> None:
    tenant = tenants.setdefault(str(step["tenant_id"]), Tenant())
    tenant.count_from(str(step["memory_class"]), str(step["kind"]), int(step["revision"]))


def _mark_again(tenants: dict[str, Tenant], step: Step) -> None:
    tenant = tenants.setdefault(str(step["tenant_id"]), Tenant())
    for digest, at_us in step["digests"]:
        tenant.mark([bytes.fromhex(digest)], int(at_us), [])


_CARRIED_OUT = {
    "put": _put_again,
    "taken_out": _take_out_again,
    "revision": _count_again,
    "tombstones": _mark_again,
}


def _put(record: MemoryRecord, dedup: bytes | None, original: bytes | None, waiting: Waiting | None) -> Step:
    return {"step": "put", **entry_document(record, dedup, original, waiting)}


def _mark(value: Sequence[Any]) -> Mark:
    seq, digest = value
    if type(seq) is not int or seq < 0 or type(digest) is not str:
        raise ValueError
    return Mark(seq, digest)


def _line(document: Step) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
