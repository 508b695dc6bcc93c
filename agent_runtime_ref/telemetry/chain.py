"""Seal decision-log lines into a chain: every line names the hash of the one before it.

The hash covers the previous hash, the sequence number and the body's bytes as they were written, not a
canonical form of them: whoever verifies needs no JSON library that agrees with ours.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import NamedTuple, Self

GENESIS = "0" * 64  # what the first line of a chain names as its predecessor

_SEALED = re.compile(r'\{"seq":([1-9][0-9]{0,17}),"prev_hash":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"')
_SEALED_BYTES = re.compile(_SEALED.pattern.encode())
_BLANK = " \t\r\n"
_BLANK_BYTES = _BLANK.encode()


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first place where a chain does not hold."""

    position: int  # counted from 1, in lines read
    reason: str


class Position(NamedTuple):
    """Where a line stands: in which chain of a log, as which line, with which hash."""

    chain: str
    seq: int
    hash: str


class Lines(list[str]):
    """Bodies of lines on their way into a log; whoever seals them notes here how they stand in it.

    A store passes the object on to its log as it came, so that an event can be exported with its place.
    `tenant_id` says whose lines they are, for a store that keeps a chain for each tenant; it notes in `chain`
    which one that was.
    """

    sealed: Sequence[str] = ()
    tenant_id: str | None = None
    chain: str | None = None

    @classmethod
    def of(cls, tenant_id: str | None, bodies: Iterable[str] = ()) -> Self:
        """Lines of one tenant; None where they belong to none."""
        lines = cls(bodies)
        lines.tenant_id = tenant_id
        return lines


class Sealed(NamedTuple):
    """What the head of a line says, and whether the line is what was sealed under it."""

    seq: int
    prev_hash: str
    hash: str
    sound: bool


def seal(body_json: str, seq: int, prev_hash: str) -> tuple[str, str]:
    """The line that stands in the log for `body_json`, a JSON object's text, and the line's hash."""
    assert body_json.startswith("{") and body_json.endswith("}"), "a log line is the text of one JSON object"
    digest = _digest(body_json, seq, prev_hash)
    rest = body_json[1:]
    comma = "," if rest.startswith('"') or not _is_empty(rest) else ""
    return f'{{"seq":{seq},"prev_hash":"{prev_hash}","hash":"{digest}"{comma}{rest}', digest


def seal_all(bodies: Iterable[str], *, seq: int, prev_hash: str) -> Iterator[tuple[int, str]]:
    """The sealed lines of `bodies` with their numbers, after line `seq` whose hash is `prev_hash`."""
    for body in bodies:
        seq += 1
        line, prev_hash = seal(body, seq, prev_hash)
        yield seq, line


def seal_after(bodies: Iterable[str], *, seq: int, prev_hash: str) -> list[tuple[int, str]]:
    """What `seal_all` yields, as a list; `Lines` are told how they stand in the log."""
    sealed = list(seal_all(bodies, seq=seq, prev_hash=prev_hash))
    if isinstance(bodies, Lines):
        bodies.sealed = [line for _, line in sealed]
    return sealed


def head(line: str) -> tuple[int, str]:
    """Number and hash of a sealed line.

    Raises:
        ValueError: the line is not sealed.
    """
    found = _SEALED.match(line)
    if found is None:
        raise ValueError("the line does not begin with seq, prev_hash and hash")
    return int(found[1]), found[3]


def body(line: str) -> str:
    """The text that was sealed into `line`, byte for byte.

    Raises:
        ValueError: the line does not begin as a sealed one does.
    """
    found = _SEALED.match(line)
    if found is None:
        raise ValueError("the line does not begin with seq, prev_hash and hash")
    rest = line[found.end() :]
    return "{" + (rest[1:] if rest.startswith(",") else rest)


def opened(data: bytes) -> Sealed | None:
    """What the bytes of a line say of their place; None where they do not begin as a sealed line does.

    A line is sound if sealing its body at its place gives these very bytes.
    """
    found = _SEALED_BYTES.match(data)
    if found is None:
        return None
    rest = data[found.end() :]
    comma = rest[:1] == b","
    text = rest[1:] if comma else rest
    # An empty object has no comma after the seal, and every other one has it.
    proper = comma is not (text.lstrip(_BLANK_BYTES) == b"}")
    digest = hashlib.sha256(b"%b\n%b\n{%b" % (found[2], found[1], text)).hexdigest()
    hash_ = found[3].decode()
    return Sealed(int(found[1]), found[2].decode(), hash_, proper and digest == hash_)


def number(line: bytes) -> int | None:
    """The number of a sealed line; None of anything else."""
    found = _SEALED_BYTES.match(line)
    return None if found is None else int(found[1])


def behind(lines: Iterable[bytes], after: int) -> Iterator[bytes]:
    """The lines that come after line `after`, whatever state they are in."""
    return dropwhile(lambda line: (number(line) or 0) <= after, lines) if after else iter(lines)


def verify(
    lines: Iterable[str], *, prev_hash: str | None = GENESIS, seq: int | None = None
) -> ChainFault | None:
    """The first fault in a chain after line `seq` with `prev_hash`, by default from the beginning; or None.

    `prev_hash=None` takes the first line's word for the hash, and for the number unless `seq` says it.
    """
    for position, line in enumerate(lines, 1):
        found = opened(line.encode("utf-8", "replace"))
        if found is None:
            return ChainFault(position, "not a sealed line")
        if seq is None:
            seq = found.seq - 1 if prev_hash is None else 0
        prev_hash = found.prev_hash if prev_hash is None else prev_hash
        if found.seq != seq + 1:
            return ChainFault(position, f"sequence number {found.seq} where {seq + 1} is due")
        if found.prev_hash != prev_hash:
            return ChainFault(position, "does not follow the line before it")
        if not found.sound:
            return ChainFault(position, "hash does not match the text")
        seq, prev_hash = seq + 1, found.hash
    return None


def _is_empty(rest: str) -> bool:
    """Tell whether nothing but the end of the object follows its brace."""
    return rest.lstrip(_BLANK) == "}"


def _digest(body_json: str, seq: int, prev_hash: str) -> str:
    return hashlib.sha256(f"{prev_hash}\n{seq}\n{body_json}".encode()).hexdigest()
