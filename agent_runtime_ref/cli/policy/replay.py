"""`policy replay`: what other policies would have made of the decisions in a log."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.output import add_format, format_of, write
from agent_runtime_ref.cli.parsers import example, instant, worded
from agent_runtime_ref.cli.terminal import warn
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.store_address import shown

if TYPE_CHECKING:
    from agent_runtime_ref.replay.log import Span
    from agent_runtime_ref.replay.report import Report

Progress = Callable[[int], None]

FORMATS = ("text", "json", "markdown", "sarif")
_SHOWN_SECONDS = 0.1


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    replay = subparsers.add_parser(
        "replay",
        help="what other policies would have made of recorded decisions; 1 where they expose something",
        description=(
            "Put recorded decisions to other policies, and list what changes: for reads each record newly\n"
            "exposed or hidden, for writes what is newly admitted, refused or quarantined. A log names the\n"
            "records that were returned and some that were kept out; with --store all are looked at, as\n"
            "they were then. The log of an OPA server can be read, too. The exit code is 1 where something\n"
            "becomes visible that was not."
        ),
        epilog=example(
            "policy replay --policies my-policies --log decisions.jsonl",
            "policy replay --policies HEAD:policies --store sqlite:memory.db --format markdown",
        ),
    )
    replay.add_argument(
        "--policies",
        metavar="NEW",
        type=worded,
        required=True,
        help="a folder, a bundle (.tar.gz) or a git revision, REV or REV:PATH",
    )
    _add_decisions(replay)
    add_format(replay, *FORMATS)


def _add_decisions(replay: argparse.ArgumentParser) -> None:
    """Add where the decisions are, and between which times."""
    where = replay.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--log", metavar="FILE", type=worded, help="a decision log, ours or that of an OPA server"
    )
    where.add_argument("--store", metavar="URL", type=worded, help="a store: its logs and its records")
    replay.add_argument(
        "--since", metavar="TIME", type=instant, help="from this time on; a date, or an instant with a zone"
    )
    replay.add_argument("--until", metavar="TIME", type=instant, help="before this time")


def run(args: argparse.Namespace) -> int:
    """Print the report and return the exit code."""
    from agent_runtime_ref.replay.log import Span

    span = Span(args.since, args.until)
    if args.since is not None and args.until is not None and args.since >= args.until:
        raise UsageError("nothing lies between --since and --until: --since must be the earlier of the two")
    with ExitStack() as open_report:
        # What shows how far it is has gone before the report is printed.
        with _progress() as progress:
            source = _of_file if args.store is None else _of_store
            report = open_report.enter_context(source(args, span, progress))
        _warn_of_nothing(report, args, span)
        for line in _lines(report, format_of(args, otherwise=FORMATS[0])):
            write(line)
        return REFUSED if report.exposes else DONE


def _of_file(args: argparse.Namespace, span: Span, progress: Progress) -> AbstractContextManager[Report]:
    from agent_runtime_ref.clock import SystemClock
    from agent_runtime_ref.replay.log import chain_problem_of_file, refuse_trace
    from agent_runtime_ref.replay.session import replay_of_file
    from agent_runtime_ref.replay.sources import policies_at

    path = Path(args.log)
    refuse_trace(path)
    _warn(chain_problem_of_file(path))
    bundle = policies_at(args.policies).bundle()
    return replay_of_file(bundle, path, span=span, clock=SystemClock(), progress=progress)


@contextmanager
def _of_store(args: argparse.Namespace, span: Span, progress: Progress) -> Iterator[Report]:
    from agent_runtime_ref.cli.options import opened, operator_of
    from agent_runtime_ref.clock import SystemClock
    from agent_runtime_ref.replay.log import chain_problem
    from agent_runtime_ref.replay.session import replay_of_store
    from agent_runtime_ref.replay.sources import policies_at

    bundle = policies_at(args.policies).bundle()
    # The policies in force decide who may look; those that are being tried decide nothing yet.
    with opened(argparse.Namespace(**{**vars(args), "policies": None})) as memory:
        for name, read in (("write log", False), ("read log", True)):
            for chain in memory.log_chains(read=read):
                _warn(chain_problem((raw.decode("utf-8", "replace") for raw in chain.raw()), name))
        with replay_of_store(
            bundle, memory, operator=operator_of(None), span=span, clock=SystemClock(), progress=progress
        ) as report:
            yield report


def _lines(report: Report, style: str) -> Iterator[str]:
    from agent_runtime_ref.replay.formats import replayed
    from agent_runtime_ref.replay.formats.sarif import replay_sarif

    made: dict[str, Callable[[Report], Iterator[str]]] = {
        "text": replayed.replay_text,
        "json": replayed.replay_json,
        "markdown": replayed.replay_markdown,
        "sarif": replay_sarif,
    }
    return made[style](report)


def _warn_of_nothing(report: Report, args: argparse.Namespace, span: Span) -> None:
    """Say that a replay over nothing says nothing: it must not pass for a change without effects."""
    tally, where = report.tally, args.log if args.store is None else shown(args.store)
    if not tally.decisions:
        when = " in this span of time" if span != (None, None) else ""
        warn(f"no decision in {where}{when}; nothing was replayed, so nothing is known of the new policies")
    elif tally.coverage.not_replayed.total() == tally.decisions:
        warn(f"no decision in {where} could be replayed, so nothing is known of the new policies")


def _warn(problem: str | None) -> None:
    if problem is not None:
        warn(f"{problem}; what is replayed may not be what was decided")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Give what shows how far a replay is: on a terminal, and nowhere else."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        # Before the first decision, policies are loaded and the chain of the log is gone through.
        task = bar.add_task("policies and log are checked", total=None)
        yield _seldom(lambda count: bar.update(task, description=f"{count:,} decisions replayed"))


def _seldom(show: Progress) -> Progress:
    """Return what shows a count a few times a second, however often it is told one; the first at once."""
    shown = float("-inf")

    def told(count: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown >= _SHOWN_SECONDS:
            shown = now
            show(count)

    return told
