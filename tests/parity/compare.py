"""Puts the same documents to both engines and counts what they say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from random import Random
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy import EmbeddedEngine
from agent_runtime_ref.policy.inputs import INPUT_SCHEMAS, input_problem
from tests.parity.client import Opa
from tests.parity.documents import READ_OPERATIONS, WRITE_SHARES, document
from tests.parity.mutilations import Mutilation, mutilated, place_of
from tests.parity.vocabulary import Vocabulary

THREADS = 4
OPERATIONS = {"read": READ_OPERATIONS, "write": tuple(WRITE_SHARES)}
UNKNOWN = "any other"
_BATCH = 400
_COLLECTIONS = ("deny", "excluded", "quarantine", "obligations")


@dataclass(slots=True)
class Agreement:
    """What both engines said of the valid documents of one gate."""

    gate: str
    documents: int = 0
    candidates: int = 0
    allowed: int = 0  # documents of a read, candidates of a write
    denied: int = 0
    quarantined: int = 0
    admitted: int = 0  # records that a read may return
    rules: Counter[str] = field(default_factory=Counter)  # rule id: documents in which it fired
    operations: Counter[str] = field(default_factory=Counter)  # those that are known; documents of each
    permitted: Counter[str] = field(default_factory=Counter)  # documents of each that permit something
    different: list[str] = field(default_factory=list)

    def add(self, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        """Count one answer that both engines gave."""
        self.documents += 1
        self.candidates += len(asked["candidates"])
        if self.gate == "read":
            self.allowed += answer["allow"] is True
            self.denied += answer["allow"] is not True
            self.admitted += len(answer["admitted"])
        else:
            held = {row["index"] for row in answer["quarantine"]} & set(answer["allowed"])
            self.allowed += len(answer["allowed"]) - len(held)
            self.quarantined += len(held)
            self.denied += len(asked["candidates"]) - len(answer["allowed"])
        self.rules.update(_fired(answer))
        operation = asked["operation"] if asked["operation"] in OPERATIONS[self.gate] else UNKNOWN
        self.operations[operation] += 1
        self.permitted[operation] += _allowed(self.gate, answer) is not None


@dataclass(slots=True)
class Refusals:
    """What became of documents that the schema of one gate refuses."""

    gate: str
    documents: int = 0
    refused_by_gate: int = 0
    denied: Counter[str] = field(default_factory=Counter)  # by engine
    failed: Counter[str] = field(default_factory=Counter)  # by engine: no answer at all
    permitted: list[str] = field(
        default_factory=list
    )  # what must not be: how it was spoiled, and by whom let in
    places: Counter[str] = field(default_factory=Counter)  # of these


class Engines:
    """The embedded engine here, an OPA server there, and threads to keep the latter busy."""

    def __init__(self, embedded: EmbeddedEngine, opa: Opa, words: Vocabulary) -> None:
        self.embedded = embedded
        self.opa = opa
        self.words = words

    def agreement(self, gate: str, count: int, seed: int) -> Agreement:
        """Return what both say of `count` documents that the schema accepts."""
        said = Agreement(gate)
        documents = (document(gate, self.words, seed=seed, number=number) for number in range(count))
        for asked, text, ours, theirs in self._asked(gate, documents):
            assert validation.is_valid(INPUT_SCHEMAS[f"memory.{gate}"], asked), text
            if ours is None or _canonical(ours) != _canonical(theirs):
                said.different.append(
                    f"document {text}\n  embedded {_told(ours)}\n  OPA      {_told(theirs)}"
                )
            else:
                said.add(asked, ours)
        return said

    def refusals(self, gate: str, count: int, seed: int) -> Refusals:
        """Return what both say of `count` documents that the schema refuses, each once permitted."""
        told = Refusals(gate)
        spoiled = list(islice(self._spoiled(gate, seed), count))
        for one, (_, text, ours, theirs) in zip(
            spoiled, self._asked(gate, (one.document for one in spoiled)), strict=True
        ):
            told.documents += 1
            told.refused_by_gate += input_problem(f"memory.{gate}", one.document) is not None
            for name, answer in (("embedded", ours), ("OPA", theirs)):
                if answer is None:
                    told.failed[name] += 1
                elif _permits(gate, answer, one):
                    told.permitted.append(f"{name} permits, with {one.what}: {text}")
                    told.places[f"{name} {place_of(one.what)}"] += 1
                else:
                    told.denied[name] += 1
        return told

    def _spoiled(self, gate: str, seed: int) -> Iterator[Mutilation]:
        """Yield permitted documents, each spoiled in one place."""
        number = 0
        while True:
            whole = document(gate, self.words, seed=seed, number=number)
            answer = self._embedded(gate, _text(whole))
            allowed = _allowed(gate, answer or {})
            if allowed is not None:
                random = Random(f"spoiled {gate} {seed} {number}")
                yield mutilated(whole, INPUT_SCHEMAS[f"memory.{gate}"], allowed, random)
            number += 1

    def _asked(self, gate: str, documents: Iterable[Any]) -> Iterator[tuple[Any, str, Any, Any]]:
        """Yield each document with its text and both answers; None stands for no answer."""
        entrypoint = f"memory.{gate}"
        waiting = iter(documents)
        with ThreadPoolExecutor(THREADS) as pool:
            while batch := [(one, _text(one)) for one in islice(waiting, _BATCH)]:
                theirs = pool.map(self.opa.decision, [entrypoint] * len(batch), [text for _, text in batch])
                ours = [self._embedded(gate, text) for _, text in batch]
                for (asked, text), mine, other in zip(batch, ours, theirs, strict=True):
                    yield asked, text, mine, other

    def _embedded(self, gate: str, text: str) -> dict[str, Any] | None:
        try:
            return self.embedded.evaluate(f"memory.{gate}", text)
        except EngineFailureError:
            return None


def _text(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _canonical(answer: Any) -> str:
    """Return an answer as one text; lists keep their order, since a gate tells reasons in that order."""
    return json.dumps(answer, ensure_ascii=True, separators=(",", ":"), sort_keys=True)


def _told(answer: Any) -> str:
    return "gave no answer" if answer is None else _canonical(answer)


def _allowed(gate: str, answer: dict[str, Any]) -> list[int] | None:
    """Return the candidates that an answer lets through; None where nothing is permitted."""
    if gate == "read":
        return list(answer["admitted"]) if answer.get("allow") is True else None
    return list(answer.get("allowed", ())) or None


def _permits(gate: str, answer: Any, one: Mutilation) -> bool:
    """Say whether an answer permits what was spoiled."""
    if not isinstance(answer, dict):
        return False
    if gate == "read":
        return answer.get("allow") is True
    allowed = answer.get("allowed") or []
    return bool(allowed) and (one.index is None or one.index in allowed)


def _fired(answer: dict[str, Any]) -> set[str]:
    """Return the ids of the rules that an answer names."""
    rows = [row for name in _COLLECTIONS for row in answer.get(name, ())]
    rows += answer["plan"]["clauses"] if "plan" in answer else ()
    return {row["rule_id"] for row in rows}
