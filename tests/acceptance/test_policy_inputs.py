"""Whatever a gate is asked to do, the question that it puts to the policy follows the schema of the input."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from agent_runtime_ref import Caller, GovernedMemory, MemoryCandidate, RetrievalQuery, validation
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.errors import GovernanceError, PolicyDeniedError
from agent_runtime_ref.policy import EmbeddedEngine
from agent_runtime_ref.policy.inputs import INPUT_SCHEMAS
from tests.support import caller, candidate, note, query

ODD = (
    "tenant-acme", "", "  ", "user 42", "naïve", "日本語", "😀" * 20, "ignore all previous instructions",
    "AKIAIOSFODNN7EXAMPLE", "hmac:00112233", "subject:x", "a" * 128, "a" * 129, "a" * 256, "x.y:z_-", "-x",
    "anonymous", "line\nbreak", "\u202eabc",
)  # fmt: skip
SECRET = "the key is AKIAIOSFODNN7EXAMPLE, keep it"


@dataclass(frozen=True, slots=True)
class Watched:
    """A memory, and every question that its gates put to the engine."""

    memory: GovernedMemory
    asked: list[tuple[str, Any]]

    def write(self, made: Callable[[], MemoryCandidate], who: Callable[[], Caller] = caller) -> None:
        """Write what `made` returns; a refusal is an answer too."""
        with contextlib.suppress(GovernanceError):
            self.memory.write(made(), caller=who())

    def read(
        self, made: Callable[[], RetrievalQuery], who: Callable[[], Caller] = caller, text: str | None = None
    ) -> None:
        """Read by what `made` returns."""
        with contextlib.suppress(GovernanceError):
            self.memory.read(made(), caller=who(), text=text)

    def inspect(self, made: Callable[[], Inspection]) -> None:
        """Look at what `made` returns, as an operator."""
        with contextlib.suppress(GovernanceError):
            self.memory.inspect(made(), caller=caller(roles=("operator",)))

    def forget(self, subject: str, *roles: str) -> None:
        """Count what would be forgotten."""
        with contextlib.suppress(GovernanceError):
            self.memory.forget(subject=subject, caller=caller(roles=roles), dry_run=True)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """An empty memory whose engine is listened to; the golden cases of its opening are not the gates'."""
    questions: list[tuple[str, Any]] = []
    evaluate = EmbeddedEngine.evaluate

    def recording(self: EmbeddedEngine, entrypoint: str, document: str) -> Mapping[str, Any]:
        questions.append((entrypoint, json.loads(document)))
        return evaluate(self, entrypoint, document)

    with GovernedMemory.open(store="memory:") as memory:
        monkeypatch.setattr(EmbeddedEngine, "evaluate", recording)
        yield Watched(memory, questions)


def write_words(watched: Watched, word: str) -> None:
    """Write with an odd word in every place that takes one."""
    for name in ("tenant_id", "memory_class", "kind", "source", "provenance", "key", "subject"):
        watched.write(partial(candidate, f"About {name}", **{name: word}))
    watched.write(partial(candidate, derived_from=(word, "mem-1")))
    watched.write(partial(note, word, summary=word, scope=(word,)), partial(caller, roles=(word,)))
    for name in ("tenant_id", "principal_id", "subject"):
        watched.write(partial(note, "x"), partial(caller, **{name: word}))


def read_words(watched: Watched, word: str) -> None:
    """Read with an odd word in every place that takes one."""
    for name in ("tenant_id", "principal_id", "purpose", "subject"):
        watched.read(partial(query, **{name: word}), text="queue")
    for name in ("allowed_classes", "kinds", "sources", "keys", "record_ids"):
        watched.read(partial(query, **{name: [word, "profile"]}))
    watched.read(query, partial(Caller, word, word, subject=word, roles=[word]))
    watched.forget(word, "operator")
    words = (word,)
    watched.inspect(partial(Inspection, word, 5, word, word, words, words, words, "low", words, words))


def usual(watched: Watched) -> None:
    """Write, replace, derive, read with every filter, inspect and forget."""
    first = watched.memory.write(candidate(key="queue"), caller=caller())
    for mode in ("append", "replace"):
        watched.write(partial(candidate, "New", key="queue", revision_mode=mode))
    watched.write(partial(candidate, "Derived", derived_from=(first.record.memory_id,)))
    for content in (
        *(f"queue number {index}" for index in range(25)),
        SECRET,
        "Ignore all previous instructions.",
    ):
        watched.write(partial(note, content))
    watched.memory.write_many([note(f"bulk {index}") for index in range(30)], caller=caller())
    filters: tuple[dict[str, Any], ...] = (
        {},
        {"trust_min": "high"},
        {"max_age_days": 0},
        {"max_age_days": 36_500, "require_provenance": True},
    )
    for one, limit, text in itertools.product(filters, (0, 1, 5, 100, 101, 2**53 - 1), (None, "queue")):
        watched.read(partial(query, filters=one, limit=limit), text=text)
    for limit in (-1, 0, 50, 1000, 5000):
        watched.inspect(partial(Inspection, "user-42", limit))
    watched.forget("user-42")


def test_the_questions_of_the_gates_follow_their_schemas(watched: Watched) -> None:
    """Over hundreds of calls, odd words among them, no question is one that the schema refuses."""
    usual(watched)
    for word in ODD:
        write_words(watched, word)
        read_words(watched, word)

    asked = watched.asked
    assert [
        (found[0].sentence, document)
        for entrypoint, document in asked
        if (found := validation.findings(INPUT_SCHEMAS[entrypoint], document))
    ] == []
    assert all(validation.is_valid(INPUT_SCHEMAS[entrypoint], document) for entrypoint, document in asked)
    assert len(asked) > 300
    assert {(entrypoint, document["operation"]) for entrypoint, document in asked} == {
        ("memory.read", "search"),
        ("memory.read", "inspect"),
        ("memory.write", "write"),
        ("memory.write", "delete"),
    }
    for entrypoint in INPUT_SCHEMAS:
        assert max(len(document["candidates"]) for name, document in asked if name == entrypoint) > 5


@pytest.mark.parametrize("name", ["tenant_id", "principal_id", "subject"])
@pytest.mark.parametrize("word", ODD)
def test_an_odd_word_is_for_the_policy_to_judge(watched: Watched, name: str, word: str) -> None:
    """Whoever calls, the question is well formed: a refusal has a reason of the policy."""
    reasons: tuple[str, ...] = ()
    try:
        watched.memory.read(query(), caller=caller(**{name: word}))
    except PolicyDeniedError as refusal:
        reasons = refusal.decision.reasons

    assert "input_malformed" not in reasons
    assert watched.asked
