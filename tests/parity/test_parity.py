"""A short run of parity, so that a difference between the engines shows where it is made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from agent_runtime_ref import validation
from agent_runtime_ref.policy import EmbeddedEngine, load_bundle
from agent_runtime_ref.policy.inputs import INPUT_SCHEMAS
from agent_runtime_ref.resources import policies_path, schemas_path
from tests.opa import OpaProcess, require_opa
from tests.parity.client import Opa
from tests.parity.compare import OPERATIONS, UNKNOWN, Engines
from tests.parity.documents import document
from tests.parity.mutilations import mutilated
from tests.parity.vocabulary import vocabulary

GATES = ("read", "write")
DOCUMENTS = 200
SEED = 2026


@pytest.fixture(scope="module")
def engines() -> Iterator[Engines]:
    """The bundled policies in both engines."""
    require_opa()
    bundle = load_bundle()
    embedded = EmbeddedEngine(bundle)
    with OpaProcess.of(policies_path()) as process, Opa(process.port) as opa:
        yield Engines(embedded, opa, vocabulary(bundle.settings))
    embedded.close()


@pytest.mark.parametrize("gate", GATES)
def test_both_engines_decide_alike(engines: Engines, gate: str) -> None:
    """The embedded engine and a real OPA give the same decision document, to the order of the reasons."""
    said = engines.agreement(gate, DOCUMENTS, SEED)

    assert said.different == []
    assert said.documents == DOCUMENTS
    # What is alike must not be one refusal all over.
    assert said.allowed > DOCUMENTS // 10
    assert said.denied > DOCUMENTS // 10
    assert len(said.rules) > 20
    # Each operation that is known is asked for, and somebody is let do it.
    assert set(said.permitted) - {UNKNOWN} == set(OPERATIONS[gate])
    assert min(said.permitted[operation] for operation in OPERATIONS[gate]) > 0


@pytest.mark.parametrize("gate", GATES)
def test_what_the_schema_refuses_no_engine_permits(engines: Engines, gate: str) -> None:
    """The gate asks no engine about a malformed document; handed to both, it is permitted by neither."""
    told = engines.refusals(gate, DOCUMENTS, SEED)

    assert told.permitted == []
    assert (told.documents, told.refused_by_gate) == (DOCUMENTS, DOCUMENTS)
    assert told.denied["embedded"] > DOCUMENTS // 2
    assert told.denied["OPA"] > DOCUMENTS // 2


def test_a_difference_is_found(engines: Engines) -> None:
    """An engine with one other threshold is told apart, so that no difference means something."""
    bundle = load_bundle()
    data = json.loads(bundle.data_json)
    data["memory"]["settings"]["limits"]["query_max"] = 4
    other = EmbeddedEngine(replace(bundle, data_json=json.dumps(data)))
    said = Engines(other, engines.opa, engines.words).agreement("read", 60, SEED)
    other.close()

    assert said.different != []


def test_documents_are_made_for_every_operation() -> None:
    """What the policies take for an operation is what documents are made for, no less and no more."""
    engine = EmbeddedEngine(load_bundle())
    words = vocabulary(load_bundle().settings)
    known: dict[str, set[str]] = {gate: set() for gate in GATES}
    for gate, rule_id in (("read", "MEM-R-109"), ("write", "MEM-W-119")):
        for operation in (*OPERATIONS["read"], *OPERATIONS["write"], *_named_by_schema(gate)):
            asked = document(gate, words, seed=1, number=1) | {"operation": operation}
            answer = engine.evaluate(f"memory.{gate}", json.dumps(asked))
            if rule_id not in {row["rule_id"] for row in answer["deny"]}:
                known[gate].add(operation)
    engine.close()

    assert known == {gate: set(OPERATIONS[gate]) for gate in GATES}


def _named_by_schema(gate: str) -> set[str]:
    """Return the words in what the schema of a gate says of its operation."""
    path = schemas_path() / f"{INPUT_SCHEMAS[f'memory.{gate}']}.schema.json"
    schema = json.loads(path.read_text(encoding="utf-8"))
    return set(re.findall(r"[a-z_]+", schema["properties"]["operation"]["description"]))


@pytest.mark.parametrize("gate", GATES)
def test_documents_come_out_of_their_seed(gate: str) -> None:
    """The same seed and number make the same document, valid by its schema; another seed, another."""
    words = vocabulary(load_bundle().settings)
    schema = INPUT_SCHEMAS[f"memory.{gate}"]
    first = [document(gate, words, seed=1, number=number) for number in range(50)]

    assert first == [document(gate, words, seed=1, number=number) for number in range(50)]
    assert first != [document(gate, words, seed=2, number=number) for number in range(50)]
    assert all(validation.is_valid(schema, one) for one in first)
    spoiled = mutilated(first[0], schema, range(len(first[0]["candidates"])), Random(1))
    assert not validation.is_valid(schema, spoiled.document)
