"""A document that does not follow its schema is never permitted, whatever is missing or strange in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy import EmbeddedEngine, load_bundle
from tests.unit.policy_documents import CANDIDATE, READ, write_document

STRANGE = (None, True, -1, 1.5, "", "text", [], [1], {}, {"a": 1})
# The policies do not look at these; or null and the empty list are among what they may be.
UNUSED_READ = {"/query/has_text", "/caller/anonymous", "/candidates"}
UNUSED_WRITE = {
    "/now_ns",
    "/candidates/0/language",
    "/candidates/0/content_digest",
    "/candidates/0/provenance",
}
UNUSED_WRITE |= {"/candidates/0/lineage/count"}

WRITE = json.loads(write_document(1))


@pytest.fixture(scope="module")
def engine() -> EmbeddedEngine:
    """The bundled policies."""
    return EmbeddedEngine(load_bundle())


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every part of a document below the top."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in items:
        yield f"{path}/{name}"
        yield from leaves(part, f"{path}/{name}")


def changed(document: dict[str, Any], path: str, *value: Any) -> str:
    """Return `document` with the part at `path` replaced, or removed if no value is given."""
    spoiled = copy.deepcopy(document)
    *parents, last = path.strip("/").split("/")
    part: Any = spoiled
    for name in parents:
        part = part[int(name)] if isinstance(part, list) else part[name]
    key: Any = int(last) if isinstance(part, list) else last
    if value:
        part[key] = value[0]
    else:
        del part[key]
    return json.dumps(spoiled)


def permitted(engine: EmbeddedEngine, entrypoint: str, document: str) -> bool:
    """Say whether anything at all is permitted; a failure of the engine permits nothing."""
    try:
        answer = engine.evaluate(entrypoint, document)
    except EngineFailureError:
        return False
    return bool(answer.get("allow")) or bool(answer.get("allowed"))


def same_kind(old: Any, new: Any) -> bool:
    """Say whether `new` could stand where `old` does, so that it is no mutilation."""
    if old is None:
        return new is None or isinstance(new, (str, int, float))
    if isinstance(old, bool) or isinstance(new, bool):
        return type(old) is type(new)
    if isinstance(old, (int, float)):
        return isinstance(new, (int, float))
    return type(old) is type(new)


def cases(document: dict[str, Any], unused: set[str]) -> list[tuple[str, str]]:
    """Return name and text of every mutilation of a document."""
    found = []
    for path in leaves(document):
        if path in unused or path.startswith("/query/allowed_classes/"):
            continue
        old: Any = document
        for name in path.strip("/").split("/"):
            old = old[int(name)] if isinstance(old, list) else old[name]
        found.append((f"{path} removed", changed(document, path)))
        found += [
            (f"{path} = {json.dumps(new)}", changed(document, path, new))
            for new in STRANGE
            if not same_kind(old, new)
        ]
    return found


OPTIONAL = {"/candidates/0 removed"}


def test_a_mutilated_read_is_not_permitted(engine: EmbeddedEngine) -> None:
    """No part of a query may be missing or of another type."""
    wrong = [
        name
        for name, text in cases(READ, UNUSED_READ)
        if name not in OPTIONAL and permitted(engine, "memory.read", text)
    ]

    assert wrong == []


def test_a_mutilated_write_is_not_permitted(engine: EmbeddedEngine) -> None:
    """No part of a candidate that a rule looks at may be missing or of another type."""
    wrong = [
        name
        for name, text in cases(WRITE, UNUSED_WRITE)
        if name not in OPTIONAL and permitted(engine, "memory.write", text)
    ]

    assert wrong == []


def test_the_whole_documents_are_permitted(engine: EmbeddedEngine) -> None:
    """What is mutilated above is permitted when it is whole."""
    assert permitted(engine, "memory.read", json.dumps(READ))
    assert permitted(engine, "memory.write", json.dumps({**WRITE, "candidates": [CANDIDATE]}))
