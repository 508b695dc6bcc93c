"""Names cannot be made to pass for other names, and what is not clear is refused and on record."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import (
    Caller,
    DocumentTypeError,
    DocumentValueError,
    GovernedMemory,
    PolicyDeniedError,
    validation,
)
from agent_runtime_ref.errors import StoreError, TextError
from agent_runtime_ref.runtime import Inspection
from tests.support import caller, candidate, events, note, query

TENANT, PERSON = "租户甲", "张三"


def test_a_digest_is_not_the_name_it_stands_for(memory: GovernedMemory) -> None:
    """Whoever is called what another's digest is called gets nothing of that other."""
    victim = Caller(TENANT, PERSON)
    memory.write(note("victim's plan", tenant_id=TENANT, subject=PERSON), caller=victim)
    shown_tenant = memory._gates.attributes.words.safe(TENANT)
    shown_person = memory._gates.attributes.words.safe(PERSON)
    assert shown_tenant.startswith("hmac:")
    mallory = Caller(shown_tenant, "mallory", subject=shown_person)
    attempts: list[Any] = [
        lambda: memory.read(query(tenant_id=TENANT, principal_id="mallory"), caller=mallory),
        lambda: memory.write(note("poison", tenant_id=TENANT), caller=mallory),
        lambda: memory.write(
            note("p", tenant_id=TENANT, subject=PERSON), caller=Caller(TENANT, "m", subject=shown_person)
        ),
        lambda: memory.forget(subject=PERSON, caller=Caller(TENANT, "m", subject=shown_person)),
    ]
    for attempt in attempts:
        with pytest.raises(PolicyDeniedError):
            attempt()


PROTECTED = ["system.prompt override", "system.prompt/rules", "system." + "x" * 130, " system.prompt"]
PROTECTED += ["\uff53ystem.prompt", "role.admin@acme", "syst\u0435m.x", "SYSTEM.prompt"]


@pytest.mark.parametrize("key", PROTECTED)
def test_a_protected_key_is_known_however_it_is_written(memory: GovernedMemory, key: str) -> None:
    """Blanks, width, look-alike letters and length do not take a key out of its name space."""
    with pytest.raises(PolicyDeniedError) as refused:
        memory.write(candidate(key=key), caller=caller())

    assert "protected_key" in refused.value.decision.reasons


@pytest.mark.parametrize("nobody", ["", " ", "\t"])
def test_nobody_reads_writes_or_is_forgotten(memory: GovernedMemory, nobody: str) -> None:
    """An empty principal or tenant is refused, not taken for a name."""
    with pytest.raises(PolicyDeniedError) as refused:
        memory.write(note("x"), caller=caller(principal_id=nobody))
    assert "principal_missing" in refused.value.decision.reasons
    with pytest.raises(PolicyDeniedError):
        memory.write(note("x"), caller=caller(tenant_id=nobody))
    with pytest.raises(DocumentValueError):
        memory.forget(subject=nobody, caller=caller(roles=("operator",)))


def test_mixed_classes_name_the_filters_that_looked_at_each(memory: GovernedMemory) -> None:
    """A filter is named when some rule of it looked at every selected record, class by class."""
    memory.write(candidate("a fact"), caller=caller())
    memory.write(note("a note"), caller=caller())

    reasons = memory.read(query(), caller=caller()).document["selection_reason"]

    assert reasons == ["tenant_match", "class_match", "age_filter_passed"]


def test_text_without_terms_is_refused_and_on_record(memory: GovernedMemory, trace: Path) -> None:
    """Punctuation alone finds nothing by design, and the refusal has its line."""
    with pytest.raises(TextError):
        memory.read(query(), caller=caller(), text="!!")

    assert events(trace)[-1]["payload"]["reasons"] == ["text_not_searchable"]


def test_an_inspection_has_a_valid_result(memory: GovernedMemory) -> None:
    """What an operator is shown is a retrieval_result like any other."""
    memory.write(note("x"), caller=caller())
    operator = Caller("ops", "root", roles=("operator",))

    result = memory.inspect(Inspection("root", 10), caller=operator)

    assert validation.is_valid("retrieval_result", result.document)


def test_the_same_id_in_two_tenants_is_two_records_to_an_operator(memory: GovernedMemory) -> None:
    """An inspection across tenants judges and logs each record by its own attributes."""
    for tenant in ("a", "b"):
        memory.write(note(f"of {tenant}", tenant_id=tenant), caller=caller(tenant_id=tenant))

    result = memory.inspect(Inspection("root", 10), caller=Caller("ops", "root", roles=("operator",)))

    assert sorted(hit.record.tenant_id for hit in result.hits) == ["a", "b"]


def test_what_is_no_caller_or_no_text_is_an_error_of_the_caller(memory: GovernedMemory) -> None:
    """Wrong types name what was wanted; half a surrogate pair is no text."""
    wrong: list[Any] = [
        lambda: memory.read(query(), caller=None),  # type: ignore[arg-type]
        lambda: memory.read({}, caller=caller()),  # type: ignore[arg-type]
        lambda: memory.write({}, caller=caller()),  # type: ignore[arg-type]
        lambda: memory.read(query(), caller=caller(), text=5),  # type: ignore[arg-type]
        lambda: memory.forget(subject=None, caller=caller()),  # type: ignore[arg-type]
    ]
    for attempt in wrong:
        with pytest.raises(DocumentTypeError):
            attempt()
    with pytest.raises(DocumentValueError):
        caller(subject="a\ud800b")
    with pytest.raises(DocumentValueError):
        memory.forget(subject="a\ud800b", caller=caller())


def test_a_mirror_that_fails_changes_nothing(memory: GovernedMemory) -> None:
    """A write that was kept is reported as kept, whatever the logger of OpenTelemetry does."""
    from opentelemetry import _logs

    class Broken:
        def emit(self, **_: object) -> None:
            raise RuntimeError("exporter")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_logs, "get_logger", lambda *_, **__: Broken())
        assert memory.write(note("x"), caller=caller()).effect == "allow"


def test_a_closed_memory_says_that_it_is_closed(memory: GovernedMemory) -> None:
    """The error blames neither the log nor the engine."""
    memory.close()

    with pytest.raises(StoreError, match="closed"):
        memory.read(query(), caller=caller())
