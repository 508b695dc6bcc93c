"""The tree of a log whose lines may hold anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.cli.trace.log_view import fate_in, traces_of, tree_lines
from agent_runtime_ref.errors import DocumentUnreadableError
from tests.support import caller, candidate, query

STRANGE = [None, True, 7, 1.5, "x", [], {}, [None], [[]], [["m", 1]], {"a": 1}, ["x"], [{"a": []}]]


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """A decision about a write, one about a read, and their events."""
    with GovernedMemory.open("memory:") as memory:
        kept = memory.write(candidate("a fact"), caller=caller()).record.memory_id
        memory.read(query(), caller=caller())
        logged = [*memory.log_lines(), *memory.log_lines(read=True)]
    assert any(kept in line for line in logged)
    return [json.loads(line) for line in logged]


@pytest.mark.parametrize("value", STRANGE, ids=repr)
def test_whatever_a_part_of_a_line_is_the_rest_is_shown(lines: list[dict[str, Any]], value: object) -> None:
    """Or the line is refused with its place; nothing else is raised."""
    shown, places = 0, set()
    for document in lines:
        for path in _paths(document, 4):
            try:
                (trace,) = traces_of([("log.jsonl:7", _with(document, path, value))], None)
            except DocumentUnreadableError as error:
                places.add((error.source, error.line))
                continue
            shown += len(list(tree_lines(trace, None))) + len(list(tree_lines(trace, "mem-1")))
            fate_in(trace.lines[0], "mem-1")
    assert shown
    assert places == {("log.jsonl", 7)}


def test_a_refusal_of_another_policy_is_shown_as_it_is() -> None:
    """An OPA server answers as its policy likes: texts, and objects of other names, are shown too."""
    entry = {
        "decision_id": "d-1",
        "timestamp": "2026-06-01T12:00:00Z",
        "path": "memory/read/decision",
        "input": {"operation": "search"},
        "result": {"allow": False, "deny": ["too late", {"msg": "no"}]},
        "bundles": {"memory": {"revision": "7"}},
    }
    (trace,) = traces_of([("opa.log:1", entry)], None)
    told = "\n".join(tree_lines(trace, None))

    assert "decision d-1, policy 7" in told
    assert "deny: too late" in told
    assert 'deny: {"msg": "no"}' in told


def _paths(part: object, depth: int) -> Iterator[tuple[str | int, ...]]:
    """Yield the ways to the parts of a document, a few levels down."""
    members: Iterable[tuple[str | int, object]] = ()
    if isinstance(part, dict):
        members = part.items()
    elif isinstance(part, list):
        members = enumerate(part[:1])
    for name, inner in members:
        yield (name,)
        if depth > 1:
            yield from ((name, *rest) for rest in _paths(inner, depth - 1))


def _with(document: object, path: tuple[str | int, ...], value: object) -> object:
    copy: Any = json.loads(json.dumps(document))
    part = copy
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return copy
