"""Verify a chain of log lines: which lines were changed, removed, moved or cut off.

A line says its own number, so a log is walked by numbers and not by places: after a damaged line the walk
goes on with the next one that is sound. A chain proves by itself only that its lines belong together; who can
write the file can seal it anew from any line on. What shows that are anchors: hashes of lines that left the
machine, or were signed, before. Up to the last anchor nothing can be changed unseen, and behind it anything.

Memory stays bounded: what is held are the findings, a thousand of them, and the gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from agent_runtime_ref.telemetry import chain as sealing
from agent_runtime_ref.telemetry.anchors import Anchors
from agent_runtime_ref.telemetry.gaps import Gaps
from agent_runtime_ref.telemetry.segments import RawLine

FINDINGS_MAX = 1000
_EARLY_MAX = 10_000  # lines that stand too far ahead and are remembered
_RUN_MAX = 1000  # damaged lines in a row that are put in their places together

Kind = Literal["altered", "missing", "reordered", "truncated"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a chain."""

    line: int  # the number that the line has, or had, in its log
    kind: Kind
    detail: str
    until: int | None = None  # the last line of several that are wrong in the same way
    source: str | None = None  # where it was seen
    place: int | None = None  # in `source`, from 1


@dataclass(slots=True)
class Account:
    """What became of the verification of one chain."""

    chain: str
    lines: int = 0  # that were read
    first: int | None = None  # number of the first line
    last: int = 0  # number of the last line
    last_hash: str = sealing.GENESIS
    closed: list[tuple[int, str]] = field(default_factory=list)  # number and hash of each file's last line
    anchored: int = 0  # up to this line nothing can have been changed unseen
    findings: list[Finding] = field(default_factory=list)
    more_findings: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def tail(self) -> int:
        """How many lines come after the last anchor that holds."""
        return max(self.last - self.anchored, 0)


class _Line(NamedTuple):
    raw: RawLine
    seq: int
    prev_hash: str
    hash: str


class _Bad(NamedTuple):
    raw: RawLine
    seq: int | None  # what it says of itself


def verify_chain(
    lines: Iterable[RawLine], *, chain: str, anchors: Anchors, begins_at: int | None = None
) -> Account:
    """Walk `lines` and say all that is wrong with them.

    `begins_at` is for one segment of a log whose others are elsewhere: its first line has this number, and
    what comes before and after it is not judged. Else a chain that does not begin with line 1 lacks lines,
    unless an anchor knows the one before its first.
    """
    walk = _Walk(Account(chain), anchors)
    if begins_at is not None:
        walk.begin(begins_at, None)
        walk.is_part = True
    for raw in lines:
        walk.take(raw)
    return walk.end()


class _Walk:
    """One pass over one chain."""

    def __init__(self, account: Account, anchors: Anchors) -> None:
        self._account = account
        self._anchors = anchors.of(account.chain)
        self._due = 1  # the number that comes next
        self._hash: str | None = sealing.GENESIS  # of the line before it; None where nobody can know
        self._gaps = Gaps()
        self._early: dict[int, _Line] = {}
        self._ahead: _Line | None = None  # too far ahead; the next line tells whether it or a gap is to blame
        self._bad: list[_Bad] = []
        self._breaks: list[_Line] = []  # sound lines that do not follow the one before them
        self._disowned = False  # by the last anchor that was passed
        self._told: set[tuple[int, Kind]] = set()
        self._source = ""
        self.is_part = False  # of a log whose other parts are elsewhere

    def begin(self, seq: int, prev_hash: str | None) -> None:
        """Expect line `seq` first."""
        self._due, self._hash = seq, prev_hash
        self._account.anchored = seq - 1

    def take(self, raw: RawLine) -> None:
        """Judge the next line."""
        self._account.lines += 1
        found = sealing.opened(raw.data) if raw.data else None
        if found is None or not found.sound:
            self._settle_ahead()
            self._bad.append(_Bad(raw, None if found is None else found.seq))
            if len(self._bad) >= _RUN_MAX:
                self._place_bad(self._due + len(self._bad))
            return
        line = _Line(raw, found.seq, found.prev_hash, found.hash)
        if not raw.whole:
            self._find(line.seq, "truncated", "its line end is missing", raw=raw)
        if self._ahead is None and not self._bad and line.seq == self._due:
            self._follow(line)
        else:
            self._out_of_step(line)

    def end(self) -> Account:
        """Judge what is left and return the account."""
        self._settle_ahead()
        torn = bool(self._bad) and not self._bad[-1].raw.whole
        if torn:
            raw = self._bad.pop().raw
        self._place_bad(self._due + len(self._bad))
        if torn:
            self._find(self._due, "truncated", "the last line ends in the middle", raw=raw)
        self._skip_to(max(self._early, default=self._due - 1) + 1)
        for first, last in self._gaps:
            self._missing(first, last)
        account = self._account
        account.last = self._due - 1
        account.last_hash = self._hash or sealing.GENESIS
        anchored_to = self._anchors.last()
        if anchored_to >= self._due and not torn and not self.is_part:
            detail = f"an anchor knows line {anchored_to}, and the log ends with line {account.last}"
            self._find(self._due, "truncated", detail, until=anchored_to)
        self._judge_breaks(None)
        account.findings.sort(key=lambda finding: finding.line)
        return account

    def _follow(self, line: _Line) -> None:
        """Take the line that is due."""
        if self._hash is not None and line.prev_hash != self._hash:
            self._breaks.append(line)
            if len(self._breaks) >= FINDINGS_MAX:
                self._judge_breaks(None)
        self._accept(line)
        while self._early and self._due in self._early:
            self._accept(self._early.pop(self._due))

    def _accept(self, line: _Line) -> None:
        account = self._account
        if account.first is None:
            account.first = line.seq
        elif (
            line.raw.source is not self._source and line.raw.source != self._source and self._hash is not None
        ):
            account.closed.append((self._due - 1, self._hash))
        self._source = line.raw.source
        self._due, self._hash = line.seq + 1, line.hash
        if line.seq >= self._anchors.next_seq:
            known = self._anchors.at(line.seq)
            if known:
                self._compare(line, line.hash in known)

    def _compare(self, line: _Line, held: bool) -> None:
        """Hold a line to what an anchor knows of it."""
        if held:
            self._judge_breaks(True)
            self._account.anchored, self._disowned = line.seq, False
            return
        if self._breaks:
            self._judge_breaks(False)
        elif not self._disowned:
            since = self._account.anchored + 1
            detail = "it is not the line that an anchor knows"
            if since < line.seq:
                detail += f"; what was changed first is one of the lines {since} to {line.seq}"
            self._find(line.seq, "altered", detail, raw=line.raw)
        self._disowned = True

    def _out_of_step(self, line: _Line) -> None:
        ahead = self._ahead
        if ahead is not None:
            if self._due <= line.seq < ahead.seq and len(self._early) < _EARLY_MAX:
                self._ahead = None
                self._early[ahead.seq] = ahead
                self._moved(ahead, f"it stands before line {line.seq}")
                if line.seq == self._due and ahead.seq == line.seq + 1:
                    # Two neighbours changed places: neither is more out of place than the other.
                    self._moved(line, f"it stands after line {ahead.seq}")
            else:
                self._settle_ahead()
        if line.seq < self._due or line.seq in self._early:
            self._late(line)
        elif self._bad:
            self._place_bad(line.seq)
            self._follow(line)
        elif line.seq == self._due:
            self._follow(line)
        else:
            self._ahead = line

    def _settle_ahead(self) -> None:
        """Take the line that stands too far ahead as the next one: what lies between is not here."""
        line, self._ahead = self._ahead, None
        if line is None:
            return
        if self._due == 1 and not self._early and self._anchors.has(line.seq - 1, line.prev_hash):
            self.begin(line.seq, line.prev_hash)  # what came before is elsewhere, and its end is known
        self._skip_to(line.seq)
        self._follow(line)

    def _skip_to(self, seq: int) -> None:
        """Note the lines before `seq` as missing, but for those that were seen too early."""
        start = self._due
        for early in sorted(one for one in self._early if one < seq):
            del self._early[early]
            self._gaps.add(start, early - 1)
            start = early + 1
        self._gaps.add(start, seq - 1)
        if seq > self._due:
            self._hash = None
        self._due = seq
        for first, last in self._gaps.surplus():
            self._missing(first, last)

    def _late(self, line: _Line) -> None:
        """Tell of a line that comes after others that follow it, or comes again."""
        if self._gaps.remove(line.seq):
            self._moved(line, "it stands after lines that follow it")
        elif self._account.first is not None and line.seq < self._account.first:
            self._moved(line, "it stands in a log that begins behind it")
        else:
            self._moved(line, "it stands in the log a second time")
        self._place_bad(self._due)

    def _moved(self, line: _Line, detail: str) -> None:
        self._find(line.seq, "reordered", detail, raw=line.raw)

    def _place_bad(self, next_seq: int) -> None:
        """Say which lines the damaged ones are that stand before line `next_seq`."""
        run, self._bad = self._bad, []
        if not run:
            return
        free = set(range(self._due, min(next_seq, self._due + 10 * _RUN_MAX))) - self._early.keys()
        places: dict[int, _Bad] = {}
        homeless = []
        for bad in run:
            if bad.seq in free and bad.seq not in places:
                places[bad.seq] = bad
            else:
                homeless.append(bad)
        unused = iter(sorted(free - places.keys()))
        for bad in homeless:
            seq = next(unused, None)
            if seq is None:
                detail = "something that is no line of the log stands before it"
                self._find(self._due if not free else max(free), "altered", detail, raw=bad.raw)
            else:
                places[seq] = bad
        for seq, bad in sorted(places.items()):
            self._skip_to(seq)
            self._find(seq, "altered", _damage(bad), raw=bad.raw)
            self._account.first = self._account.first or seq
            self._due, self._hash = seq + 1, None
        self._skip_to(next_seq)

    def _judge_breaks(self, held: bool | None) -> None:
        """Say which lines are to blame where sound lines do not follow each other.

        A line that an anchor holds speaks for all before it as far as each names the one before it; so of two
        lines that do not fit, the earlier was replaced. Where the anchor disowns the later ones, or the
        earlier is anchored itself, the later ones are foreign.
        """
        breaks, self._breaks = self._breaks, []
        index = 0
        while index < len(breaks):
            line = breaks[index]
            neighbour = index + 1 < len(breaks) and breaks[index + 1].seq == line.seq + 1
            if neighbour or held is False or line.seq - 1 <= self._account.anchored:
                detail = "it does not follow the line before it"
                self._find(line.seq, "altered", detail, raw=line.raw)
            else:
                detail = f"line {line.seq} names another line before it"
                self._find(line.seq - 1, "altered", detail, raw=line.raw)
            index += 2 if neighbour else 1

    def _missing(self, first: int, last: int) -> None:
        for seq in range(first, last + 1):
            if len(self._account.findings) >= FINDINGS_MAX:
                self._account.more_findings += last - seq + 1
                return
            self._find(seq, "missing", "the log does not hold it")

    def _find(
        self, line: int, kind: Kind, detail: str, *, until: int | None = None, raw: RawLine | None = None
    ) -> None:
        account = self._account
        if (line, kind) in self._told:
            return
        if len(account.findings) >= FINDINGS_MAX:
            account.more_findings += 1
            return
        self._told.add((line, kind))
        source, place = (None, None) if raw is None else (raw.source, raw.number)
        until = None if until == line else until
        account.findings.append(Finding(line, kind, detail, until, source, place))


def _damage(bad: _Bad) -> str:
    if bad.seq is None:
        return "what stands in its place is no line of the log"
    return "its text or its place in the chain is not what was sealed"
