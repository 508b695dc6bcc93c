"""Seal decision-log lines into a chain: every line names the hash of the one before it.

The hash covers the previous hash, the sequence number and the body's bytes as they were written, not a
canonical form of them: whoever verifies needs no JSON library that agrees with ours.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

GENESIS = "0" * 64  # what the first line of a chain names as its predecessor

_SEALED = re.compile(r'\{"seq":([1-9][0-9]*),"prev_hash":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"')


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first place where a chain does not hold."""

    position: int  # counted from 1, in lines read
    reason: str


def seal(body_json: str, seq: int, prev_hash: str) -> tuple[str, str]:
    """The line that stands in the log for `body_json`, a JSON object's text, and the line's hash."""
    assert body_json.startswith("{") and body_json.endswith("}"), "a log line is the text of one JSON object"
    digest = _digest(body_json, seq, prev_hash)
    rest = body_json[1:].lstrip()
    comma = "" if rest == "}" else ","
    return f'{{"seq":{seq},"prev_hash":"{prev_hash}","hash":"{digest}"{comma}{body_json[1:]}', digest


def seal_all(bodies: Iterable[str], *, seq: int, prev_hash: str) -> Iterator[tuple[int, str]]:
    """The sealed lines of `bodies` with their numbers, after line `seq` whose hash is `prev_hash`."""
    for body in bodies:
        seq += 1
        line, prev_hash = seal(body, seq, prev_hash)
        yield seq, line


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
    """The text that was sealed into `line`, byte for byte."""
    found = _SEALED.match(line)
    if found is None:
        raise ValueError("the line does not begin with seq, prev_hash and hash")
    rest = line[found.end() :]
    return "{" + (rest[1:] if rest.startswith(",") else rest)


def verify(lines: Iterable[str], *, prev_hash: str | None = GENESIS, seq: int = 0) -> ChainFault | None:
    """The first fault in a chain, or None; `prev_hash=None` begins at whatever the first line names."""
    for position, line in enumerate(lines, 1):
        found = _SEALED.match(line)
        if found is None:
            return ChainFault(position, "not a sealed line")
        if prev_hash is None:
            seq, prev_hash = int(found[1]) - 1, found[2]
        if int(found[1]) != seq + 1:
            return ChainFault(position, f"sequence number {found[1]} where {seq + 1} is due")
        if found[2] != prev_hash:
            return ChainFault(position, "does not follow the line before it")
        if _digest(body(line), seq + 1, prev_hash) != found[3]:
            return ChainFault(position, "hash does not match the text")
        seq, prev_hash = seq + 1, found[3]
    return None


def _digest(body_json: str, seq: int, prev_hash: str) -> str:
    return hashlib.sha256(f"{prev_hash}\n{seq}\n{body_json}".encode()).hexdigest()
