"""The schemas of what the policies are asked: who keeps to them, and who uses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from agent_runtime_ref import validation
from agent_runtime_ref.clock import SystemClock
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy import BundleIdentity
from agent_runtime_ref.policy.inputs import INPUT_SCHEMAS, input_problem
from agent_runtime_ref.resources import schemas_path
from tests.unit.policy_documents import READ, write_document

WRITE = json.loads(write_document(1))
# What draft-07 and draft 2020-12 mean the same by; `$defs` is reached by pointer in both.
DRAFT_07 = {
    "$schema", "$id", "$ref", "$defs", "title", "description", "type", "properties", "required",
    "additionalProperties", "propertyNames", "items", "minItems", "maxItems", "pattern", "maxLength",
    "minimum", "maximum", "enum", "const", "anyOf", "if", "then", "else", "not", "errorMessage",
}  # fmt: skip


class NoEngine:
    """An engine that must not be asked."""

    name = "none"
    identity = BundleIdentity(digest="sha256:" + "0" * 64, revision="none")

    def evaluate(self, entrypoint: str, document: str) -> dict[str, Any]:
        """Fail the test."""
        pytest.fail(f"asked {entrypoint} about {document}")

    def close(self) -> None:
        """Hold nothing."""


def keywords(part: Any) -> Iterator[str]:
    """Yield every keyword of a schema."""
    for name, value in part.items() if isinstance(part, dict) else ():
        yield name
        if name in ("properties", "$defs"):
            for child in value.values():
                yield from keywords(child)
        elif name != "errorMessage":
            for child in value if isinstance(value, list) else [value]:
                yield from keywords(child)


def closed(part: Any) -> Iterator[bool]:
    """Yield for every mapping of a schema that names properties whether it is closed."""
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield part.get("additionalProperties") is False
        for child in part.values():
            yield from closed(child)
    elif isinstance(part, list):
        for child in part:
            yield from closed(child)


def test_every_entrypoint_has_a_schema_of_its_input() -> None:
    """There is no question without one."""
    assert set(INPUT_SCHEMAS) == {"memory.read", "memory.write"}
    assert set(INPUT_SCHEMAS.values()) <= set(validation.schema_names())


@pytest.mark.parametrize("name", sorted(INPUT_SCHEMAS.values()))
def test_the_schemas_keep_to_what_opa_reads(name: str) -> None:
    """Keywords of draft-07 only, every mapping closed: else a type check would not bite."""
    schema = validation.schema_document(name)

    assert set(keywords(schema)) <= DRAFT_07
    assert all(closed(schema))


@pytest.mark.parametrize("name", sorted(INPUT_SCHEMAS.values()))
def test_draft_07_gives_the_same_verdict(name: str) -> None:
    """Read as draft-07, as OPA does, the schema accepts and refuses the same examples."""
    old = Draft7Validator({**validation.schema_document(name), "$schema": Draft7Validator.META_SCHEMA["$id"]})
    folder = schemas_path() / "examples" / name
    # An integral float is an integer to every draft; the loader is stricter.
    verdicts = {
        path.relative_to(folder).as_posix(): old.is_valid(json.loads(path.read_bytes()))
        for path in sorted(folder.glob("*/*.json"))
        if not path.stem.endswith("_float")
    }

    assert verdicts == {path: path.startswith("valid/") for path in verdicts}


@pytest.mark.parametrize(
    ("entrypoint", "document", "sentence"),
    [
        (
            "memory.read",
            {**READ, "query": {**READ["query"], "limit": None}},
            "policy_read_input $.query.limit: must be an integer",
        ),
        ("memory.read", {**READ, "extra": 1}, "policy_read_input $.extra: is not known"),
        (
            "memory.write",
            {**WRITE, "candidates": [{**WRITE["candidates"][0], "content": "words"}]},
            "policy_write_input $.candidates[0].content: is not known",
        ),
    ],
)
def test_the_gate_asks_no_engine_what_the_schema_refuses(
    entrypoint: str, document: dict[str, Any], sentence: str
) -> None:
    """A question of another shape is a refusal before any engine, with path and sentence."""
    point = DecisionPoint(NoEngine(), SystemClock())
    ask = point.read if entrypoint == "memory.read" else point.write

    with pytest.raises(EngineFailureError) as refused:
        ask(document)

    assert (refused.value.reason, refused.value.detail) == ("input_malformed", sentence)


def test_a_question_that_is_no_json_has_a_problem() -> None:
    """A value that no JSON text can hold is a problem too, and not an exception."""
    assert input_problem("memory.read", {**READ, "now_ns": Path("x")}) is not None
    assert input_problem("memory.read", {**READ, "operation": "\ud800"}) is not None
