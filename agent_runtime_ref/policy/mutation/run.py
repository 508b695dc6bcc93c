"""Runs every mutant of a bundle against the tests that could notice it, up to the first that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.bundle_files import read_tests
from agent_runtime_ref.policy.mutation.bench import Bench, settings_bench, source_bench
from agent_runtime_ref.policy.mutation.equivalent import Equivalent, read_equivalent, told_apart
from agent_runtime_ref.policy.mutation.mutants import Mutant, Survivor
from agent_runtime_ref.policy.mutation.settings import settings_mutants
from agent_runtime_ref.policy.mutation.sources import source_mutants
from agent_runtime_ref.resources import policies_path

__all__ = ["MutationReport", "run_mutants"]

Progress = Callable[[int, int], None]  # mutants done, of how many
Verdict = str | None  # the test that noticed; empty: none did; None: does not compile
Slice = tuple[int, int, int]  # a group, and the mutants of it from one to another

_CHUNK = 40
# Fewer than this are judged before other processes have begun.
_WORTH_PROCESSES = 120


@dataclass(frozen=True, slots=True)
class MutationReport:
    """What the tests noticed."""

    tried: int = 0  # mutants that tests were run on
    invalid: int = 0  # changes that do not compile, and were not tried
    survived: tuple[Survivor, ...] = ()
    equivalent: tuple[Equivalent, ...] = ()  # survivors that a person has explained


def run_mutants(
    path: Path | str | None = None, *, progress: Progress | None = None, workers: int = 1
) -> MutationReport:
    """Change the bundle at `path` in each of the known ways; its tests must pass on the unchanged one.

    With more than one worker the mutants are shared among that many processes; the report is the same.

    Raises:
        BundleError: the bundle or a test cannot be used, or an entry of the equivalent ones is wrong.
        DocumentError: the file of equivalent ones does not follow its schema.
    """
    folder = policies_path(path)
    entries = read_equivalent(folder)
    groups = _groups(folder)
    total = sum(map(len, groups))
    verdicts: dict[tuple[int, int], Verdict] = {}
    for (group, start, _), found in _judged(folder, groups, workers if total >= _WORTH_PROCESSES else 1):
        verdicts |= {(group, start + offset): verdict for offset, verdict in enumerate(found)}
        if progress is not None:
            progress(len(verdicts), total)
    every = [(mutant, verdicts[group, n]) for group, one in enumerate(groups) for n, mutant in enumerate(one)]
    killed = {mutant.identity: verdict for mutant, verdict in every if verdict}
    survived = [mutant for mutant, verdict in every if verdict == ""]
    left = told_apart(entries, survived, killed)
    invalid = sum(verdict is None for _, verdict in every)
    return MutationReport(total - invalid, invalid, tuple(map(Survivor.of, left)), entries)


def _groups(folder: Path) -> list[tuple[Mutant, ...]]:
    """Return the mutants of each module, and last those of the settings."""
    bundle = load_bundle(folder)
    groups = [tuple(source_mutants(*module)) for module in bundle.modules]
    return [*groups, tuple(settings_mutants(bundle.data_json, bundle.modules, folder))]


def _judged(
    folder: Path, groups: Sequence[Sequence[Mutant]], workers: int
) -> Iterator[tuple[Slice, list[Verdict]]]:
    """Yield the verdicts of each slice, in any order."""
    slices = [
        (group, start, min(start + _CHUNK, len(mutants)))
        for group, mutants in enumerate(groups)
        for start in range(0, len(mutants), _CHUNK)
    ]
    if workers == 1:
        court = _Court(folder)
        yield from ((one, court.verdicts(one)) for one in slices)
        return
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from multiprocessing import get_context

    # Not forked: a process that holds threads, as a test runner does, cannot be forked safely.
    with ProcessPoolExecutor(workers, get_context("spawn"), initializer=_end_with_parent) as pool:
        asked = {pool.submit(_verdicts, str(folder), one): one for one in slices}
        try:
            for future in as_completed(asked):
                yield asked[future], future.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """See to it that a process of the pool outlives nobody: it would wait for work for ever.

    An interrupt is for the parent, which then asks for no more.
    """
    import os
    import signal
    from multiprocessing import parent_process
    from multiprocessing.connection import wait
    from threading import Thread

    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=watch, daemon=True).start()


def _verdicts(folder: str, one: Slice) -> list[Verdict]:
    """Return the verdicts of a slice, in a process of the pool."""
    return _court(folder).verdicts(one)


@lru_cache(maxsize=1)
def _court(folder: str) -> _Court:
    return _Court(Path(folder))


class _Court:
    """The mutants of a bundle and a bench for each group of them, made when it is first needed."""

    def __init__(self, folder: Path) -> None:
        self._bundle = load_bundle(folder)
        self._tests = read_tests(folder)
        self._groups = _groups(folder)
        self._benches: dict[int, Bench] = {}

    def verdicts(self, one: Slice) -> list[Verdict]:
        """Return the verdicts of a slice, in its order."""
        group, start, end = one
        bench = self._bench(group)
        return [bench.verdict(mutant) for mutant in self._groups[group][start:end]]

    def _bench(self, group: int) -> Bench:
        if group not in self._benches:
            modules = self._bundle.modules
            self._benches[group] = (
                source_bench(self._bundle, self._tests, modules[group])
                if group < len(modules)
                else settings_bench(self._bundle, self._tests)
            )
        return self._benches[group]
