"""A whole replay: policies, a log, and the report that stands as long as the block does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_runtime_ref.clock import Clock
from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.enforcement.hindsight import Hindsight
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.shift import only_shifts
from agent_runtime_ref.replay.changes import Changes
from agent_runtime_ref.replay.log import Span, decisions_in, decisions_in_file
from agent_runtime_ref.replay.past import History, StorePast
from agent_runtime_ref.replay.report import Report
from agent_runtime_ref.replay.rule_names import RuleNames
from agent_runtime_ref.replay.run import Past, Replay
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["Log", "replay_of_file", "replay_of_lines", "replay_of_store"]

Progress = Callable[[int], None]
Log = tuple[str, Iterable[str]]  # its name, and its lines


@contextmanager
def replay_of_file(
    bundle: Bundle, path: Path, *, span: Span, clock: Clock, progress: Progress
) -> Iterator[Report]:
    """Give the report of replaying the log at `path`; its changes can be read until the block ends.

    Raises:
        DocumentUnreadableError: a line of the log is damaged; it says which.
        BundleError: no engine can decide by `bundle`.
    """
    with _replay(bundle, clock, None) as replay:
        replay.run(decisions_in_file(path, span, replay.changes.name), progress=progress)
        yield _report(bundle, replay)


@contextmanager
def replay_of_lines(
    bundle: Bundle,
    logs: Iterable[Log],
    *,
    span: Span,
    clock: Clock,
    progress: Progress,
    past: Past | None = None,
    without: str | None = None,
) -> Iterator[Report]:
    """Give the report of replaying logs whose lines are at hand; `past` knows more records than they name.

    The decision called `without` is left out: it is the look at the store that the replay itself took.

    Raises:
        DocumentUnreadableError, BundleError: as `replay_of_file`.
    """
    with _replay(bundle, clock, past) as replay:
        decisions = (
            one
            for source, lines in logs
            for one in decisions_in(lines, source, span, replay.changes.name)
            if one.decision_id != without
        )
        replay.run(decisions, progress=progress)
        yield _report(bundle, replay)


@contextmanager
def replay_of_store(
    bundle: Bundle, memory: GovernedMemory, *, operator: Caller, span: Span, clock: Clock, progress: Progress
) -> Iterator[Report]:
    """Give the report of replaying both logs of a store, with every record that a read could have shown.

    Raises:
        PolicyDeniedError: the policies in force do not let `operator` inspect.
        DocumentUnreadableError, BundleError: as `replay_of_file`.
    """
    survey = memory.survey(caller=operator)
    past = StorePast(survey.records, History(memory.log_lines(), by_tenant=memory.is_chained_by_tenant))
    logs = (("write log", memory.log_lines()), ("read log", memory.log_lines(read=True)))
    with replay_of_lines(
        bundle, logs, span=span, clock=clock, progress=progress, past=past, without=survey.decision_id
    ) as report:
        yield report


@contextmanager
def _replay(bundle: Bundle, clock: Clock, past: Past | None) -> Iterator[Replay]:
    engine = EmbeddedEngine(bundle)
    try:
        with Changes() as changes:
            hindsight = Hindsight(engine, clock, remembers=only_shifts(bundle))
            yield Replay(hindsight, RuleNames(bundle), changes, past=past)
    finally:
        engine.close()


def _report(bundle: Bundle, replay: Replay) -> Report:
    return Report(bundle, replay.tally, replay.changes, replay.mismatches)
