"""Every schema has documents that follow it, and others with the sentence by which they are refused."""

from __future__ import annotations

from pathlib import Path

import jsonschema_rs
import pytest

from agent_runtime_ref import validation
from agent_runtime_ref.errors import DocumentError
from agent_runtime_ref.resources import schemas_path

EXAMPLES = schemas_path() / "examples"
OWN = (
    "decision",
    "detectors",
    "equivalent_mutants",
    "event",
    "memory_candidate",
    "memory_record",
    "memory_store_config",
    "policy_read_input",
    "policy_settings",
    "policy_write_input",
    "retrieval_query",
    "retrieval_result",
    "review_receipt",
    "runtime_config",
)


def examples(folder: str) -> list[Path]:
    """Return the example files of one folder name, of all schemas of this part."""
    return sorted(
        path for name in OWN for path in (EXAMPLES / name / folder).iterdir() if path.suffix != ".expect"
    )


def expected(path: Path) -> str:
    """Return the sentence that an invalid example names."""
    if path.suffix == ".json":
        return path.with_suffix(".expect").read_text("utf-8").strip()
    return path.read_text("utf-8").splitlines()[0].removeprefix("# expect: ")


def label(path: Path) -> str:
    """Return the name of a test case."""
    return f"{path.parent.parent.name}-{path.stem}"


@pytest.mark.parametrize("name", validation.schema_names())
def test_schema_follows_its_metaschema(name: str) -> None:
    """Each schema is valid against draft 2020-12 and carries an id with a version."""
    schema = dict(validation.schema_document(name))

    jsonschema_rs.meta.validate(schema)

    assert str(schema["$id"]).startswith(f"urn:agent-runtime-ref:schema:{name}:")


@pytest.mark.parametrize("name", OWN)
def test_schema_has_examples_of_both_kinds(name: str) -> None:
    """Each schema has at least one valid and two invalid examples."""
    valid = [path for path in examples("valid") if path.parent.parent.name == name]
    invalid = [path for path in examples("invalid") if path.parent.parent.name == name]

    assert (len(valid) >= 1, len(invalid) >= 2) == (True, True)


@pytest.mark.parametrize("path", examples("valid"), ids=label)
def test_valid_example_is_accepted(path: Path) -> None:
    """A valid example is loaded, and nothing is found in it."""
    schema = path.parent.parent.name
    document = validation.load_document(path, schema=schema)

    assert validation.findings(schema, document) == ()


@pytest.mark.parametrize("path", examples("invalid"), ids=label)
def test_invalid_example_is_refused_with_its_sentence(path: Path) -> None:
    """An invalid example is refused with exactly its sentence, and with file, line and column."""
    with pytest.raises(DocumentError) as caught:
        validation.load_document(path, schema=path.parent.parent.name)

    assert str(caught.value) == expected(path)
    assert caught.value.source == str(path)
    assert (caught.value.line or 0) >= 1 or path.stem == "empty"
    assert (caught.value.column or 0) >= 1 or path.stem == "empty"


@pytest.mark.parametrize("name", OWN)
def test_every_number_is_bounded(name: str) -> None:
    """A number has both bounds: NaN and infinity are then refused as out of bounds."""
    unbounded = []

    def look(part: object, path: str) -> None:
        if isinstance(part, dict):
            if part.get("type") in ("integer", "number") and not {"minimum", "maximum"} <= set(part):
                unbounded.append(path)
            for key, value in part.items():
                look(value, f"{path}/{key}")

    look(dict(validation.schema_document(name)), "")

    assert unbounded == []


@pytest.mark.parametrize("name", OWN)
def test_every_described_mapping_is_closed(name: str) -> None:
    """A mapping with named properties takes no others; an obligation may carry what its type needs.

    Settings may hold what rules of one's own need.
    """
    left_open = []

    def look(part: object, path: str) -> None:
        if isinstance(part, dict):
            if (
                "properties" in part
                and part.get("type") == "object"
                and part.get("additionalProperties") is not False
            ):
                left_open.append(path)
            for key, value in part.items():
                look(value, f"{path}/{key}")

    look(dict(validation.schema_document(name)), "")

    meant = {"decision": ["/properties/obligations/items"], "policy_settings": [""]}
    assert left_open == meant.get(name, [])
