"""No edit of a log stays unseen up to the last anchor, and the first finding names the line."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.anchors import Anchors
from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.segments import RawLine
from agent_runtime_ref.telemetry.verify import Account, verify_chain

LENGTHS = st.integers(1, 12)


def sealed(count: int, *, name: str = "own") -> list[bytes]:
    """A chain of `count` lines as the bytes of a file, each with its line end."""
    bodies = [f'{{"type":"decision","log":"{name}","n":{n},"a":"多"}}' for n in range(1, count + 1)]
    return [f"{line}\n".encode() for _, line in chain.seal_all(bodies, seq=0, prev_hash=chain.GENESIS)]


def position(lines: Sequence[bytes], seq: int) -> Position:
    """The position of line `seq`."""
    return Position("log", *chain.head(lines[seq - 1].decode()))


def verified(data: bytes, *anchors: Position) -> Account:
    """The account of a file with these bytes."""
    parts = data.split(b"\n")
    lines = [RawLine("log", n, part, n < len(parts)) for n, part in enumerate(parts, 1)]
    with Anchors(anchors) as known:
        return verify_chain(lines[: -1 if not parts[-1] else None], chain="log", anchors=known)


def told(account: Account) -> list[tuple[int, str]]:
    """Line and kind of each finding."""
    return [(finding.line, finding.kind) for finding in account.findings]


def resealed(lines: Sequence[bytes], at: int, *, onwards: bool) -> list[bytes]:
    """The lines with another text in line `at`, sealed anew: this line alone or all from it on."""
    texts = [line.decode().removesuffix("\n") for line in lines]
    bodies = [chain.body(text) for text in texts]
    bodies[at - 1] = bodies[at - 1].replace("decision", "Decision")
    previous = chain.GENESIS if at == 1 else chain.head(texts[at - 2])[1]
    anew = [line for _, line in chain.seal_all(bodies[at - 1 :], seq=at - 1, prev_hash=previous)]
    kept = anew if onwards else [anew[0], *texts[at:]]
    return [f"{line}\n".encode() for line in [*texts[: at - 1], *kept]]


@given(LENGTHS, st.data())
def test_a_whole_log_has_no_findings(count: int, data: st.DataObject) -> None:
    """Whatever its length, and wherever its anchors are."""
    lines = sealed(count)
    known = data.draw(st.sets(st.integers(1, count)))
    account = verified(b"".join(lines), *(position(lines, seq) for seq in known))

    assert (account.ok, account.lines, account.last) == (True, count, count)
    assert account.anchored == max(known, default=0)


@settings(max_examples=400)
@given(LENGTHS, st.data())
def test_a_changed_byte_is_found(count: int, data: st.DataObject) -> None:
    """Each byte of each line matters, line ends too, whatever it becomes."""
    lines = sealed(count)
    text = b"".join(lines)
    place = data.draw(st.integers(0, len(text) - 1))
    becomes = data.draw(st.sampled_from([*b'0123456789abcdef",:{}\n\r\t \x00\xff', 0xC3]))
    if text[place] == becomes:
        return
    line = text[:place].count(b"\n") + 1
    account = verified(text[:place] + bytes([becomes]) + text[place + 1 :], position(lines, count))

    assert not account.ok
    assert told(account)[0] in ((line, "altered"), (line, "truncated"))


@settings(max_examples=200)
@given(LENGTHS, st.data())
def test_an_inserted_or_removed_byte_is_found(count: int, data: st.DataObject) -> None:
    """A log is what was written, to the byte."""
    lines = sealed(count)
    text = b"".join(lines)
    place = data.draw(st.integers(0, len(text) - 1))
    line = text[:place].count(b"\n") + 1
    byte = bytes([data.draw(st.sampled_from(list(b'0a",} \n\r')))])
    added = verified(text[:place] + byte + text[place:], position(lines, count))
    removed = verified(text[:place] + text[place + 1 :], position(lines, count))

    assert told(removed)[0][0] == line
    # A line end doubled is an empty line in front of the next one.
    doubled = byte == text[place : place + 1] == b"\n"
    assert told(added)[0][0] == line + doubled


@given(LENGTHS, st.data())
def test_removed_lines_are_found(count: int, data: st.DataObject) -> None:
    """Those in the middle as missing, those at the end as cut off, down to none that are left."""
    lines = sealed(count)
    gone = data.draw(st.sets(st.integers(1, count), min_size=1))
    account = verified(
        b"".join(line for n, line in enumerate(lines, 1) if n not in gone), position(lines, count)
    )
    kept = set(range(1, count + 1)) - gone
    last = max(kept, default=0)

    expected = [(n, "missing") for n in sorted(gone) if n < last]
    if last < count:
        expected.append((last + 1, "truncated"))
    assert told(account) == expected


@given(st.integers(2, 12), st.data())
def test_a_moved_line_is_found(count: int, data: st.DataObject) -> None:
    """Wherever it stands now, it is the line that is named; of two neighbours both are."""
    lines = sealed(count)
    start, end = data.draw(st.lists(st.integers(1, count), min_size=2, max_size=2, unique=True))
    moved = [*lines[: start - 1], *lines[start:]]
    moved.insert(end - 1, lines[start - 1])
    account = verified(b"".join(moved), position(lines, count))

    expected = {start, end} if abs(start - end) == 1 else {start}
    if start > end and start == count or end == count:
        assert start in {line for line, kind in told(account) if kind == "reordered"}
    else:
        assert {line for line, kind in told(account) if kind == "reordered"} == expected
    assert {kind for _, kind in told(account)} == {"reordered"}


@given(st.integers(2, 12), st.data())
def test_two_lines_that_changed_places_are_found(count: int, data: st.DataObject) -> None:
    """Both are named."""
    lines = sealed(count)
    one, two = sorted(data.draw(st.lists(st.integers(1, count), min_size=2, max_size=2, unique=True)))
    swapped = list(lines)
    swapped[one - 1], swapped[two - 1] = lines[two - 1], lines[one - 1]
    account = verified(b"".join(swapped), position(lines, count))

    assert {kind for _, kind in told(account)} == {"reordered"}
    assert told(account)[0][0] == one


@given(LENGTHS, st.data())
def test_a_line_that_comes_twice_is_found(count: int, data: st.DataObject) -> None:
    """Wherever its copy stands."""
    lines = sealed(count)
    source, place = data.draw(st.tuples(st.integers(1, count), st.integers(0, count)))
    account = verified(b"".join([*lines[:place], lines[source - 1], *lines[place:]]), position(lines, count))

    assert (source, "reordered") in told(account)
    assert {kind for _, kind in told(account)} == {"reordered"}


@given(LENGTHS, st.data())
def test_a_line_sealed_anew_is_found(count: int, data: st.DataObject) -> None:
    """Alone it does not fit the one after it; with all that follow, the next anchor does not know it."""
    lines = sealed(count)
    at = data.draw(st.integers(1, count))
    alone = verified(b"".join(resealed(lines, at, onwards=False)), position(lines, count))
    onwards = resealed(lines, at, onwards=True)
    anchored = data.draw(st.integers(at, count))
    known = verified(b"".join(onwards), position(lines, anchored))

    assert told(alone) == [(at, "altered")]
    assert told(known) == [(anchored, "altered")]
    assert known.anchored == 0


@given(LENGTHS, st.data())
def test_what_comes_after_the_last_anchor_is_not_vouched_for(count: int, data: st.DataObject) -> None:
    """A tail that was sealed anew fits; it is counted as unverified, never as verified."""
    lines = sealed(count)
    at = data.draw(st.integers(1, count))
    anchored = data.draw(st.integers(0, at - 1))
    known = [position(lines, anchored)] if anchored else []
    account = verified(b"".join(resealed(lines, at, onwards=True)), *known)

    assert (account.ok, account.anchored, account.tail) == (True, anchored, count - anchored)


@given(st.integers(2, 12), st.data())
def test_the_tail_of_another_log_is_found(count: int, data: st.DataObject) -> None:
    """Two logs spliced: with an anchor the first foreign line is named, without one the seam."""
    lines = sealed(count)
    seam = data.draw(st.integers(2, count))
    spliced = b"".join([*lines[: seam - 1], *sealed(count, name="other")[seam - 1 :]])

    assert told(verified(spliced, position(lines, count))) == [(seam, "altered")]
    assert told(verified(spliced))[0] == (seam - 1, "altered")


EDITS: dict[str, tuple[Callable[[list[bytes]], list[bytes]], list[tuple[int, str]]]] = {
    "several": (
        lambda lines: [*lines[:2], lines[3], lines[4].replace(b"own", b"foe"), *lines[5:8], *lines[9:]],
        [(3, "missing"), (5, "altered"), (9, "missing")],
    ),
    "a run": (
        lambda lines: [*lines[:3], b"x\n", b"y\n", b"z\n", *lines[6:]],
        [(4, "altered"), (5, "altered"), (6, "altered")],
    ),
    "damaged beside missing": (
        lambda lines: [*lines[:3], lines[5].replace(b"own", b"foe"), *lines[7:]],
        [(4, "missing"), (5, "missing"), (6, "altered"), (7, "missing")],
    ),
    "turned round": (lambda lines: lines[::-1], [(n, "reordered") for n in range(1, 11)]),
    "an empty line": (lambda lines: [*lines[:3], b"\n", *lines[3:]], [(4, "altered")]),
    "a torn end": (lambda lines: [*lines[:-1], lines[-1][:-9]], [(10, "truncated")]),
    "nothing": (lambda lines: [], [(1, "truncated")]),
}


@pytest.mark.parametrize("name", EDITS)
def test_several_edits_are_each_named(name: str) -> None:
    """After a damaged line the walk goes on with the next sound one."""
    edit, expected = EDITS[name]
    lines = sealed(10)

    assert told(verified(b"".join(edit(lines)), position(lines, 10))) == expected


def test_two_lines_sealed_anew_are_both_named() -> None:
    """Each was replaced alone: the anchor behind them speaks for the others."""
    lines = resealed(resealed(sealed(10), 3, onwards=False), 7, onwards=False)

    assert told(verified(b"".join(lines), position(lines, 10))) == [(3, "altered"), (7, "altered")]


def test_a_foreign_line_between_two_that_fit_is_named() -> None:
    """One line of another log in place of ours fits neither neighbour."""
    lines = sealed(10)
    lines[4] = sealed(10, name="other")[4]

    assert told(verified(b"".join(lines), position(lines, 10))) == [(5, "altered")]


def test_an_archived_beginning_is_missing_unless_an_anchor_knows_its_end() -> None:
    """Lines that were taken away are told, each of them; an anchor at the last of them vouches for it."""
    lines = sealed(10)
    rest = b"".join(lines[4:])
    known = verified(rest, position(lines, 4), position(lines, 10))

    assert told(verified(rest, position(lines, 10))) == [(n, "missing") for n in range(1, 5)]
    assert (known.ok, known.first, known.anchored) == (True, 5, 10)


def test_findings_are_bounded() -> None:
    """A file that is nothing but damage ends in a thousand findings and a count of the others."""
    account = verified(b"{}\n" * 5000)

    assert (len(account.findings), account.more_findings) == (1000, 4000)


def test_a_body_says_nothing_of_its_place() -> None:
    """Names in the body that are those of the seal are no seal."""
    line = sealed(1)[0]
    forged = json.dumps({"x": 1, "seq": 1, "prev_hash": chain.GENESIS, "hash": "0" * 64}).encode()

    assert told(verified(forged + b"\n" + line)) == [(1, "altered")]


def test_a_first_line_that_stands_too_late_is_no_archived_beginning() -> None:
    """Even where an anchor knows the line before it: the lines before it are here, only elsewhere."""
    lines = sealed(6)
    moved = [lines[2], *lines[:2], *lines[3:]]

    assert told(verified(b"".join(moved), *(position(lines, n) for n in range(1, 7)))) == [(3, "reordered")]
