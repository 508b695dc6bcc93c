"""The logs that the `trace` commands look at: those of a store, or the one in a file and its segments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_runtime_ref.cli.options import opened, settings_of
from agent_runtime_ref.cli.terminal import note
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import Chain
    from agent_runtime_ref.telemetry.segments import RawLine

READS = ".reads"  # what a SQLite store appends to its own name for its log of reads
LOG = ".log"  # what a JSONL store appends to its own for its one log
_SEAL = b'{"seq":'


@dataclass(frozen=True, slots=True)
class Log:
    """One chain of lines that can be read as often as it is needed."""

    name: str
    chain: str
    lines: Callable[[], Iterable[RawLine]]

    @property
    def is_sealed(self) -> bool:
        """Whether it has a sealed line; a trace and the log of an OPA server have none."""
        return any(raw.data.startswith(_SEAL) for raw in self.lines())


@contextmanager
def logs_of(args: argparse.Namespace, file: str | None) -> Iterator[list[Log]]:
    """Give the logs of a store, or the one in `file`, for as long as the block lasts.

    Raises:
        UsageError: a store and a file are named, or none can be read.
    """
    settings = settings_of(args)
    if args.store is not None and file is not None:
        raise UsageError("a log is looked at in a store or in a file: name --store or a file, not both")
    if args.store is None and (file or settings.log) is not None:
        yield [log_of_file(Path(file or settings.log or ""))]
        return
    args.log = None
    with opened(args) as memory:
        scheme, _, name = settings.store.partition(":")
        if scheme == "jsonl":
            yield [log_of_file(Path(f"{name}{LOG}"))]
            return
        kinds = [("write log", False)]
        if not _reads_missing(settings.store):
            kinds.append(("read log", True))
        elif next(iter(memory.log_lines()), None) is not None:
            reads = settings.store.partition(":")[2] + READS
            note(f"no `{reads}` beside the store: nobody has read from it yet, or its log of reads is gone")
        yield [_of_chain(kind, chain) for kind, read in kinds for chain in memory.log_chains(read=read)]


def log_of_file(path: Path) -> Log:
    """Return the log in a file, with the segments that rotation closed."""
    from agent_runtime_ref.telemetry.segments import raw_lines

    return Log(str(path), "log", partial(raw_lines, path))


def _of_chain(kind: str, chain: Chain) -> Log:
    name = kind if chain.tenant_id is None else f"{kind} of tenant `{chain.tenant_id}`"
    return Log(name, chain.name, partial(_stored, name, chain.raw))


def _stored(name: str, raw: Callable[[], Iterable[bytes]]) -> Iterator[RawLine]:
    from agent_runtime_ref.telemetry.segments import RawLine

    for number, data in enumerate(raw(), start=1):
        yield RawLine(name, number, data, True)


def _reads_missing(address: str) -> bool:
    """Tell whether a store that keeps its log of reads in a file of its own has none; asking makes none."""
    scheme, _, name = address.partition(":")
    return scheme == "sqlite" and not Path(name + READS).exists()
