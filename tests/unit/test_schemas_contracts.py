"""The documents of the contract page, and what the values make of them."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent_runtime_ref import validation
from agent_runtime_ref.contracts import (
    Caller,
    Decision,
    MemoryCandidate,
    MemoryRecord,
    Origin,
    Plan,
    RetrievalQuery,
    RetrievalResult,
)
from agent_runtime_ref.errors import DocumentError, DocumentTypeError, DocumentValueError
from agent_runtime_ref.resources import schemas_path

VALUES = {
    "memory_record": MemoryRecord,
    "retrieval_query": RetrievalQuery,
    "retrieval_result": RetrievalResult,
}
CREATED = datetime(2026, 4, 7, 12, tzinfo=UTC)
DECISION = Decision(
    "dec-1", "search", "deny", ("tenant_mismatch",), ("MEM-R-101",), (), "", "1", "embedded", 5
)


def documented(name: str) -> Path:
    """Return the file that holds the contract page's example, word for word."""
    return schemas_path() / "examples" / name / "valid" / "documented.yaml"


def record(**changes: Any) -> MemoryRecord:
    """Return a record with some attributes changed."""
    return MemoryRecord("m", "t", "profile", "preference", "x", "s", 0.5, "p", 1, **changes)


@pytest.mark.parametrize("name", VALUES)
def test_documented_example_comes_back_word_for_word(name: str) -> None:
    """The example is valid, with and without naming its schema, and a value gives it back unchanged."""
    document = validation.load_document(documented(name), schema=name)
    value: Any = VALUES[name].from_document(documented(name))

    assert validation.load_document(documented(name)) == document
    assert list(value.to_document().items()) == list(document.items())
    assert yaml.safe_dump(value.to_document(), sort_keys=False) == yaml.safe_dump(document, sort_keys=False)


@pytest.mark.parametrize("name", VALUES)
def test_documented_example_out_of_another_yaml_reader(name: str) -> None:
    """A mapping in which a reader made the instant a datetime is the same document."""
    mapping = yaml.safe_load(documented(name).read_text())

    assert validation.load_document(mapping, schema=name) == validation.load_document(documented(name))


def test_document_without_a_known_kind() -> None:
    """Without a schema the document must say what it is."""
    with pytest.raises(DocumentValueError, match=r"^document \$\.kind: must be one of `memory_record`"):
        validation.load_document({"kind": "note"})


def test_instants_are_kept_in_utc() -> None:
    """Another zone is the same instant; naive times, texts and dates are no instants."""
    kept = record(created_at=datetime(2026, 4, 7, 14, tzinfo=timezone(timedelta(hours=2))))

    assert (kept.created_at, kept.to_document()["created_at"]) == (CREATED, "2026-04-07T12:00:00Z")
    for value in (datetime(2026, 4, 7), "2026-04-07T12:00:00Z", CREATED.date(), 5):  # noqa: DTZ001
        with pytest.raises(DocumentTypeError, match=r"^memory_record \$\.created_at: must be an instant"):
            record(created_at=value)


def test_fraction_is_written_only_where_there_is_one() -> None:
    """Microseconds survive; whole seconds carry none."""
    moment = CREATED.replace(microsecond=25)

    assert record(created_at=moment).to_document()["created_at"] == "2026-04-07T12:00:00.000025Z"


def test_attributes_of_a_wrong_type_are_refused() -> None:
    """What would pass as a document part is still no value of the attribute."""
    origin = Origin("a", "b", "c", CREATED).to_document()
    wrong: list[dict[str, Any]] = [
        {"origin": origin},
        {"derived_from": "abc"},
        {"scope": {"a"}},
        {"status": None},
    ]

    for changes in wrong:
        with pytest.raises(DocumentTypeError):
            record(**changes)


def test_limits_are_named() -> None:
    """A value over its limit is refused whole, with the limit; nothing is cut."""
    with pytest.raises(
        DocumentValueError, match=r"^memory_record \$\.content: must be at most 65536 characters$"
    ):
        MemoryRecord("m", "t", "profile", "preference", "x" * 65537, "s", 0.5, "p", 1)
    with pytest.raises(
        DocumentValueError, match=r"^memory_record \$\.memory_id: must be at most 256 characters$"
    ):
        MemoryRecord("m" * 257, "t", "profile", "preference", "x", "s", 0.5, "p", 1)
    with pytest.raises(
        DocumentValueError, match=r"^memory_candidate \$\.summary: must be at most 2048 characters$"
    ):
        MemoryCandidate("t", "profile", "preference", "x", "s", 0.5, "p", summary="x" * 2049)


@pytest.mark.parametrize(
    "hidden", ["\n", "\x00", "\x7f", "\u202e", "\u200b", "\u2066", "\ufeff", "\U000e0041"]
)
def test_ids_hold_no_hidden_characters(hidden: str) -> None:
    """Ids that look the same are the same: control, bidi and zero-width characters are refused."""
    with pytest.raises(DocumentValueError, match="must not contain control, bidirectional or zero-width"):
        MemoryRecord("m", f"tenant-acme{hidden}", "profile", "preference", "x", "s", 0.5, "p", 1)


def test_lists_become_tuples() -> None:
    """A list is taken for a tuple, so that equal values stay equal and hashable."""
    made: Any = record(derived_from=["a"], scope=["b"])

    assert (made.derived_from, made.scope) == (("a",), ("b",))
    assert made == record(derived_from=("a",), scope=("b",))
    assert hash(made) == hash(record(derived_from=("a",), scope=("b",)))


def test_seed_kinds_follow_from_the_class() -> None:
    """A document without record_kind is a preference, a validated fact or a working note."""
    document = record().to_document()
    kinds = {
        name: MemoryRecord.from_document({**document, "memory_class": name}).kind
        for name in ("profile", "long_term", "short_term", "archive")
    }

    assert kinds == {
        "profile": "preference",
        "long_term": "validated_fact",
        "short_term": "working_note",
        "archive": "working_note",
    }


def test_caller_keeps_roles_apart() -> None:
    """One string is no list of roles; an own subject is the subject acted for, else the principal."""
    roles: Any = "operator"

    with pytest.raises(DocumentTypeError, match=r"^caller \$\.roles: must be a list of strings$"):
        Caller("t", "p", roles=roles)
    assert Caller("t", "p", roles=("b", "a", "b")) == Caller("t", "p", roles=frozenset({"a", "b"}))
    assert (Caller("t", "p").own_subject, Caller("t", "p", subject="s").own_subject) == ("p", "s")


@pytest.mark.parametrize("field", ["tenant_id", "principal_id", "session_id", "subject"])
def test_caller_ids_are_strings(field: str) -> None:
    """An id of another type is an error of the program and no refusal."""
    names: dict[str, Any] = {"tenant_id": "t", "principal_id": "p", field: 5}

    with pytest.raises(DocumentTypeError, match=rf"^caller \$\.{field}: must be a string$"):
        Caller(**names)


def test_decision_document_is_valid() -> None:
    """A decision gives a document that its schema accepts, and comes back from it."""
    assert validation.is_valid("decision", DECISION.to_document())
    assert Decision.from_document(DECISION.to_document()) == DECISION


def test_plan_is_read_in_the_order_of_its_rules() -> None:
    """Clauses come as a set; rule ids give them their order, and lists become tuples."""
    clause = {"role": "filter", "reason": "expired", "any_of": [], "classes": None, "passed": None}
    atom = {"attribute": "memory_class", "operator": "in", "value": ["profile"]}
    second = {**clause, "rule_id": "MEM-R-203"}
    first = {
        **clause,
        "rule_id": "MEM-R-201",
        "any_of": [atom],
        "classes": ["profile"],
        "passed": "class_match",
    }
    decision = {"plan": {"complete": True, "limit": 5, "clauses": [second, first]}}

    plan = Plan.from_decision(decision)

    assert [entry.rule_id for entry in plan.clauses] == ["MEM-R-201", "MEM-R-203"]
    assert (plan.clauses[0].classes, plan.clauses[0].any_of[0].value) == (("profile",), ("profile",))
    assert (plan.complete, plan.limit, len({plan, plan})) == (True, 5, 1)


def test_result_gives_a_copy_of_its_document() -> None:
    """Changing what to_document returned changes no result."""
    result = RetrievalResult.from_document(documented("retrieval_result"))
    result.to_document()["selected_records"].clear()

    assert len(result.document["selected_records"]) == 2


def test_document_errors_survive_pickling() -> None:
    """An error raised in a worker process arrives with its sentence and place."""
    with pytest.raises(DocumentError) as caught:
        record(status="gone")
    again = pickle.loads(pickle.dumps(caught.value))

    assert (type(again), str(again), again.path) == (type(caught.value), str(caught.value), caught.value.path)
