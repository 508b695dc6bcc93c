"""Which tests the modules of a bundle declare, by their syntax: what looks like one in a text is none.

`todo_test_...` names a test that is still to be written: it is told, and neither run nor counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.policy.rego_source import Rule, line_of, rules_in

__all__ = ["Declared", "declared_tests", "tests_to_do"]

_TEST = "test_"
_TODO = "todo_test_"


@dataclass(frozen=True, slots=True)
class Declared:
    """A test as its source declares it."""

    package: str
    name: str  # test_denied; group.test_denied where the rule stands below another name
    over_cases: bool
    file: str
    line: int
    text: str

    @property
    def cases(self) -> str:
        """Name of the object that a test over cases runs over."""
        *above, last = self.name.split(".")
        return ".".join((*above, last.removeprefix(_TEST)))


def declared_tests(modules: Sequence[tuple[str, str]]) -> Iterator[Declared]:
    """Yield every test that the modules declare, once a name; of one that does not parse, none.

    A test takes no arguments: a function that is called `test_...` is none.
    """
    for path, text in modules:
        yield from _declared(path, text)


def tests_to_do(modules: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the names of the tests that are still to be written."""
    for path, text in modules:
        for rule in _rules(path, text):
            if rule.name.startswith(_TODO):
                yield f"{package_of(text)}.{rule.name.removeprefix('todo_')}"


@lru_cache(maxsize=64)
def _declared(path: str, text: str) -> tuple[Declared, ...]:
    raw = text.encode("utf-8")
    package = package_of(text)
    found = [one for one in _rules(path, text) if not one.is_function and _is_test(one)]
    ends = [one.start for one in found[1:]] + [len(raw)] * bool(found)
    tests: dict[str, Declared] = {}
    for rule, end in zip(found, ends, strict=True):
        name = ".".join(rule.path)
        body = raw[rule.start : end].decode("utf-8")
        declared = Declared(package, name, rule.is_indexed, path, line_of(raw, rule.start), body)
        tests.setdefault(name, declared)
    return tuple(tests.values())


def _is_test(rule: Rule) -> bool:
    return any(part.startswith(_TEST) for part in rule.path)


def _rules(path: str, text: str) -> tuple[Rule, ...]:
    try:
        return tuple(rules_in(path, text))
    except BundleError:
        return ()  # whoever runs the tests is told by the engine, and `lint` by its own look
