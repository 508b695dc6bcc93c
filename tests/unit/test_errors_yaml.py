"""The documented sentences of the memory store, word for word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref.config import load_memory_store
from agent_runtime_ref.errors import DocumentError
from agent_runtime_ref.memory import MemoryCandidate, MemoryRecord, MemoryStore

SEED = {
    "memory_id": "mem-001",
    "tenant_id": "tenant-acme",
    "memory_class": "profile",
    "kind": "language_preference",
    "content": "English",
    "source": "trusted_profile",
    "confidence": 0.9,
    "provenance": "trusted_profile",
    "revision": 1,
}
STRINGS = ("memory_id", "tenant_id", "memory_class", "kind", "content", "source", "provenance")
REQUIRED = ("tenant_id", "memory_class", "kind", "content", "source")
CANDIDATE_STRINGS = ("tenant_id", "memory_class", "kind", "content", "source", "provenance")
LOOKUP = ("query", "tenant_id")


def refusal(call: Callable[[], object]) -> tuple[type, str]:
    """Return the built-in class and the sentence of the error that a call raises."""
    with pytest.raises(DocumentError) as caught:
        call()
    kind = TypeError if isinstance(caught.value, TypeError) else ValueError
    assert isinstance(caught.value, kind)
    return kind, str(caught.value)


def loaded(*seeds: object) -> Callable[[], object]:
    """Return a call that loads seeds."""
    return lambda: MemoryStore.from_dict({"memory": {"seed_records": list(seeds)}})


def record(**changes: Any) -> MemoryRecord:
    """Return a record with some fields changed."""
    return MemoryRecord(**{**SEED, **changes})


def candidate(**changes: Any) -> MemoryCandidate:
    """Return a candidate with some fields changed."""
    fields = {name: value for name, value in SEED.items() if name not in ("memory_id", "revision")}
    return MemoryCandidate(**{**fields, **changes})


@pytest.mark.parametrize("document", [None, [], "text", 5, True])
def test_config_that_is_no_mapping(document: Any) -> None:
    """A list, a scalar or an empty file is no config."""
    assert refusal(lambda: MemoryStore.from_dict(document)) == (
        TypeError,
        "Memory store config must be a mapping",
    )


@pytest.mark.parametrize("document", [{}, {"memory": None}, {"memory": []}, {"memory": "x"}])
def test_memory_that_is_no_mapping(document: Any) -> None:
    """A missing `memory` is the same error as a wrong one."""
    assert refusal(lambda: MemoryStore.from_dict(document)) == (TypeError, "'memory' must be a mapping")


@pytest.mark.parametrize("memory", [{}, {"seed_records": None}, {"seed_records": {}}, {"seed_records": "x"}])
def test_seed_records_that_are_no_list(memory: Any) -> None:
    """A missing `seed_records` is the same error as a wrong one."""
    assert refusal(lambda: MemoryStore.from_dict({"memory": memory})) == (
        TypeError,
        "'seed_records' must be a list",
    )


@pytest.mark.parametrize("entry", [None, [], "text", 1])
def test_entry_that_is_no_mapping(entry: object) -> None:
    """Entries are counted from 1."""
    assert refusal(loaded(SEED, entry)) == (TypeError, "Memory record #2 must be a mapping")


@pytest.mark.parametrize("field", STRINGS)
@pytest.mark.parametrize("value", [123, False, None, ["x"], 1.5])
def test_seed_field_that_is_no_string(field: str, value: object) -> None:
    """What YAML turned into another type is no string."""
    assert refusal(loaded({**SEED, field: value})) == (
        TypeError,
        f"Memory record #1 field must be a string: {field}",
    )


@pytest.mark.parametrize("field", REQUIRED)
def test_seed_field_that_is_missing(field: str) -> None:
    """Five fields have no default."""
    seed = {name: value for name, value in SEED.items() if name != field}

    assert refusal(loaded(SEED | {"memory_id": "mem-000"}, seed)) == (
        ValueError,
        f"Memory record #2 field is required: {field}",
    )


@pytest.mark.parametrize("field", STRINGS)
@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000\u00a0"])
def test_seed_field_that_is_blank(field: str, blank: str) -> None:
    """Blank after stripping is missing, memory_id and provenance included."""
    assert refusal(loaded({**SEED, field: blank})) == (
        ValueError,
        f"Memory record #1 field is required: {field}",
    )


@pytest.mark.parametrize("value", [True, "0.5", None, [0.5]])
def test_seed_confidence_that_is_no_number(value: object) -> None:
    """`true` is no number."""
    assert refusal(loaded({**SEED, "confidence": value})) == (
        TypeError,
        "Memory record #1 confidence must be a number",
    )


@pytest.mark.parametrize("value", [-0.01, 1.01, 7, float("nan"), float("inf"), float("-inf")])
def test_seed_confidence_out_of_range(value: float) -> None:
    """NaN and infinity are outside 0 to 1."""
    assert refusal(loaded({**SEED, "confidence": value})) == (
        ValueError,
        "Memory record #1 confidence must be between 0 and 1",
    )


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_seed_revision_that_is_no_integer(value: object) -> None:
    """`true`, `1.0` and `'1'` are no integers."""
    assert refusal(loaded({**SEED, "revision": value})) == (
        TypeError,
        "Memory record #1 revision must be an integer",
    )


@pytest.mark.parametrize("value", [0, -1, -(2**70)])
def test_seed_revision_below_one(value: int) -> None:
    """Revisions count from 1."""
    assert refusal(loaded({**SEED, "revision": value})) == (
        ValueError,
        "Memory record #1 revision must be positive",
    )


def test_seed_defaults_and_stripping() -> None:
    """Defaults: mem-{idx:03d}, 0.5, unknown, 1; strings are stripped."""
    seed = {name: f"  {SEED[name]}\n" for name in REQUIRED}

    (made,) = MemoryStore.from_dict({"memory": {"seed_records": [seed]}}).all()

    assert (made.memory_id, made.confidence, made.provenance, made.revision) == ("mem-001", 0.5, "unknown", 1)
    assert [getattr(made, name) for name in REQUIRED] == [SEED[name] for name in REQUIRED]


def test_fields_are_checked_in_the_documented_order() -> None:
    """Each field is told before those after it, the wrong and the missing alike."""
    order = [*STRINGS[:6], "confidence", "provenance", "revision"]
    wrong: dict[str, Any] = dict.fromkeys(order, object())
    told = []
    while wrong:
        _, sentence = refusal(loaded(dict(wrong)))
        told.append(next(name for name in order if name in sentence.split()))
        wrong[told[-1]] = SEED[told[-1]]
        if len(told) == len(order):
            break

    assert told == order


def test_earlier_entry_is_told_first() -> None:
    """The first wrong entry is told, whatever is wrong with later ones."""
    assert refusal(loaded({**SEED, "revision": 0}, 5))[1] == "Memory record #1 revision must be positive"


@pytest.mark.parametrize("records", [["text"], [SEED], [None], 5, "text", [candidate()]])
def test_store_of_something_else(records: Any) -> None:
    """A store is built of records only."""
    assert refusal(lambda: MemoryStore(records)) == (TypeError, "Memory store records must be MemoryRecord")


@pytest.mark.parametrize("value", [None, {}, "text", record()])
def test_persist_of_something_else(value: Any) -> None:
    """Only a candidate can be persisted."""
    assert refusal(lambda: MemoryStore([]).persist(value)) == (
        TypeError,
        "Memory store candidate must be MemoryCandidate",
    )


@pytest.mark.parametrize("field", STRINGS)
def test_record_fields(field: str) -> None:
    """A record built directly is told by the attribute's own name."""
    assert refusal(lambda: record(**{field: 5})) == (
        TypeError,
        f"Memory record field must be a string: {field}",
    )
    assert refusal(lambda: record(**{field: " \t"})) == (
        ValueError,
        f"Memory record field is required: {field}",
    )


def test_record_numbers() -> None:
    """Confidence and revision of a record built directly."""
    assert [
        refusal(lambda: record(confidence=True)),
        refusal(lambda: record(confidence=float("nan"))),
        refusal(lambda: record(confidence=1.5)),
        refusal(lambda: record(revision=1.0)),
        refusal(lambda: record(revision=True)),
        refusal(lambda: record(revision=0)),
    ] == [
        (TypeError, "Memory record confidence must be a number"),
        (ValueError, "Memory record confidence must be between 0 and 1"),
        (ValueError, "Memory record confidence must be between 0 and 1"),
        (TypeError, "Memory record revision must be an integer"),
        (TypeError, "Memory record revision must be an integer"),
        (ValueError, "Memory record revision must be positive"),
    ]


@pytest.mark.parametrize("field", CANDIDATE_STRINGS)
def test_candidate_fields(field: str) -> None:
    """A candidate is told by its own names."""
    assert refusal(lambda: candidate(**{field: None})) == (
        TypeError,
        f"Memory candidate field must be a string: {field}",
    )
    assert refusal(lambda: candidate(**{field: "\n"})) == (
        ValueError,
        f"Memory candidate field is required: {field}",
    )


def test_candidate_numbers_and_mode() -> None:
    """Confidence and revision mode of a candidate."""
    assert [
        refusal(lambda: candidate(confidence="0.5")),
        refusal(lambda: candidate(confidence=-1)),
        refusal(lambda: candidate(revision_mode=1)),
        refusal(lambda: candidate(revision_mode="overwrite")),
        refusal(lambda: candidate(revision_mode="{field}")),
        refusal(lambda: candidate(revision_mode="")),
    ] == [
        (TypeError, "Memory candidate confidence must be a number"),
        (ValueError, "Memory candidate confidence must be between 0 and 1"),
        (TypeError, "Memory candidate revision mode must be a string"),
        (ValueError, "Memory candidate revision mode is not supported: overwrite"),
        (ValueError, "Memory candidate revision mode is not supported: {field}"),
        (ValueError, "Memory candidate revision mode is not supported: "),
    ]


def test_persist_checks_a_candidate_that_was_bent() -> None:
    """What was forced into a candidate is refused by persist() at the latest."""
    bent = candidate()
    object.__setattr__(bent, "revision_mode", "overwrite")

    assert refusal(lambda: MemoryStore([]).persist(bent))[1] == (
        "Memory candidate revision mode is not supported: overwrite"
    )


@pytest.mark.parametrize("field", LOOKUP)
def test_lookup_fields(field: str) -> None:
    """A lookup wants a query and a tenant."""
    good = {"query": "support", "tenant_id": "tenant-acme"}
    store = MemoryStore([])

    assert refusal(lambda: store.retrieve(**{**good, field: 5})) == (
        TypeError,
        f"Memory lookup field must be a string: {field}",
    )
    assert refusal(lambda: store.retrieve(**{**good, field: " "})) == (
        ValueError,
        f"Memory lookup field is required: {field}",
    )


def test_compact_uses_the_lookup_sentences() -> None:
    """compact(tenant_id) is told like a lookup."""
    store: Any = MemoryStore([])

    assert refusal(lambda: store.compact(None))[1] == "Memory lookup field must be a string: tenant_id"
    assert refusal(lambda: store.compact(""))[1] == "Memory lookup field is required: tenant_id"


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        (True, (TypeError, "Memory lookup limit must be an integer")),
        (1.0, (TypeError, "Memory lookup limit must be an integer")),
        ("3", (TypeError, "Memory lookup limit must be an integer")),
        (-1, (ValueError, "Memory lookup limit must be non-negative")),
    ],
)
def test_lookup_limit(limit: Any, error: tuple[type, str]) -> None:
    """`true` is no integer."""
    assert refusal(lambda: MemoryStore([]).retrieve("x", "t", limit=limit)) == error


def test_extra_sentences() -> None:
    """Ids are unique, with defaults counted; unknown fields are refused; both after the documented checks."""
    third = {name: value for name, value in SEED.items() if name != "memory_id"}

    assert refusal(loaded(SEED, SEED)) == (ValueError, "Memory record #2 memory_id is not unique: mem-001")
    assert refusal(loaded({**SEED, "memory_id": "mem-002"}, third)) == (
        ValueError,
        "Memory record #2 memory_id is not unique: mem-002",
    )
    assert refusal(loaded({**SEED, "colour": "red"})) == (
        ValueError,
        "Memory record #1 field is not known: colour",
    )
    assert refusal(loaded({**SEED, "colour": "red"}, {**SEED, "revision": 0}))[1] == (
        "Memory record #2 revision must be positive"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (b"memory: [", (1, 10)),
        (b"memory:\n  seed_records: []\n  seed_records: []\n", (3, 3)),
        (b"a: &x [1]\nb: *x\n", (2, 4)),
        (b"memory: {seed_records: []}\n---\nmemory: {}\n", (2, 1)),
        (b"memory: \xff\n", (1, 9)),
        (b"\xef\xbb\xbfmemory: {}\n", (1, 1)),
    ],
)
def test_unreadable_config(tmp_path: Path, text: bytes, place: tuple[int, int]) -> None:
    """A file that is no YAML, or lies, is not readable, and the place is told."""
    file = tmp_path / "memory.yaml"
    file.write_bytes(text)

    with pytest.raises(DocumentError, match=r"^Memory store config is not readable: .+") as caught:
        load_memory_store(file)

    assert isinstance(caught.value, ValueError)
    assert (caught.value.source, caught.value.line, caught.value.column) == (str(file), *place)


def test_place_of_a_documented_error(tmp_path: Path) -> None:
    """A documented sentence carries path, file, line and column of the value."""
    file = tmp_path / "memory.yaml"
    file.write_text("memory:\n  seed_records:\n    - tenant_id: 123\n")

    with pytest.raises(DocumentError) as caught:
        load_memory_store(file)

    error = caught.value
    assert str(error) == "Memory record #1 field must be a string: tenant_id"
    assert (error.path, error.place) == ("$.memory.seed_records[0].tenant_id", f"{file}:3:18")
