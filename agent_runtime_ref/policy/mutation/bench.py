"""Where mutants are judged: an engine that holds all of a bundle but the part that changes.

It is made once a module and cloned for each mutant, which costs a microsecond. The test that noticed the last
mutant is asked first about the next one, since neighbours are mostly noticed by the same.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.policy.mutation.mutants import Mutant
from agent_runtime_ref.policy.portable import dotted
from agent_runtime_ref.policy.rego_tests import Declared, declared_tests, results_of, test_engine

__all__ = ["Bench", "settings_bench", "source_bench"]

Module = tuple[str, str]  # path and text

_REFERENCE = re.compile(r"(?<![\w.])data\b((?:\.\w+)*)")


class Bench:
    """Judges the mutants of one module, or of the settings, one after the other."""

    def __init__(self, engine: Any, tests: Sequence[Declared], change: Callable[[Any, Mutant], None]) -> None:
        """Take an engine that `change` completes with a mutant, and the tests that could notice it."""
        self._engine = engine
        self._tests = list(tests)
        self._change = change

    def verdict(self, mutant: Mutant) -> str | None:
        """Return the test that notices a mutant; empty if none does, None if the mutant does not compile."""
        engine = self._engine.clone()
        try:
            with _unheard():
                self._change(engine, mutant)
                engine.eval_query_as_json("true")
        except RuntimeError:
            return None
        for test in self._tests:
            failed = next((one.name for one in results_of(engine, test) if not one.passed), None)
            if failed is not None:
                self._tests.remove(test)
                self._tests.insert(0, test)
                return failed
        return ""


def source_bench(bundle: Bundle, tests: Sequence[Module], module: Module) -> Bench:
    """Return a bench for the mutants of one module."""
    package = package_of(module[1])
    reach = _reach([*bundle.modules, *tests])
    concerned = [test for test in tests if package in reach[package_of(test[1])]]
    needed = reach[package].union(*(reach[package_of(text)] for _, text in concerned))
    others = [one for one in bundle.modules if one != module and package_of(one[1]) in needed]
    own = [one for one in bundle.modules if package_of(one[1]) == package]
    # regorus looks a mocked rule up in the first module of its package; a changed one that is first stays so.
    after = own[1:] if own[0] == module else []
    before = [*concerned, *(one for one in others if one not in after)]

    def change(engine: Any, mutant: Mutant) -> None:
        for path, text in ((mutant.file, mutant.content), *after):
            engine.add_policy(path, text)

    return Bench(_parsed(before, bundle.data_json), tuple(declared_tests(concerned)), change)


def settings_bench(bundle: Bundle, tests: Sequence[Module]) -> Bench:
    """Return a bench for the mutants of the settings."""

    def change(engine: Any, mutant: Mutant) -> None:
        engine.clear_data()
        engine.add_data_json(mutant.content)

    engine = test_engine([*bundle.modules, *tests], bundle.data_json)
    return Bench(engine, tuple(declared_tests(tests)), change)


def _parsed(modules: Sequence[Module], data_json: str) -> Any:
    """Return an engine with some modules of a bundle that was checked as a whole."""
    import regorus

    engine = regorus.Engine()
    for path, text in modules:
        engine.add_policy(path, text)
    engine.add_data_json(data_json)
    engine.set_input_json("{}")
    return engine


def _reach(modules: Sequence[Module]) -> Mapping[str, frozenset[str]]:
    """Return for each package those that it refers to, itself and their references included."""
    packages = {package_of(text) for _, text in modules}
    direct: dict[str, set[str]] = {package: set() for package in packages}
    for _, text in modules:
        names = {name.removeprefix(".") for name in _REFERENCE.findall(dotted(text))}
        direct[package_of(text)] |= {one for one in packages if any(_concerns(name, one) for name in names)}
    return {package: frozenset(_followed(package, direct)) for package in packages}


def _concerns(name: str, package: str) -> bool:
    """Say whether a reference to `data.NAME`, or to all of `data`, leads into a package or above it."""
    return not name or f"{name}.".startswith(f"{package}.") or f"{package}.".startswith(f"{name}.")


def _followed(package: str, direct: Mapping[str, set[str]]) -> set[str]:
    seen, left = {package}, [package]
    while left:
        new = direct[left.pop()] - seen
        seen |= new
        left += new
    return seen


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep what the engine itself prints of a module that does not compile from standard error."""
    try:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except OSError:  # there is no standard error to keep clean
        yield
        return
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
