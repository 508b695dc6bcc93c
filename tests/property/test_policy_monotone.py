"""Properties of the policies: a rule more never permits more, and the plan says what the exclusions say."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref.contracts import Plan
from agent_runtime_ref.policy import EmbeddedEngine, load_bundle
from agent_runtime_ref.stores.plan_eval import clause_passes

NOW_NS = 1_790_000_000_000_000_000
DAY_NS = 86_400_000_000_000

CONDITIONS = (
    "input.query.limit > 3",
    'input.query.purpose == "planning"',
    "not input.query.subject == null",
    "input.caller.roles != []",
    'input.operation == "get"',
    "true",
)
RECORD_CONDITIONS = (
    "candidate.trust_rank < 3",
    'candidate.source == "user_input"',
    "candidate.derived == true",
    "not candidate.key == null",
    'candidate.memory_class == "short_term"',
    "true",
)
CANDIDATE_CONDITIONS = (
    "candidate.size_bytes > 50",
    'candidate.kind == "working_note"',
    "not candidate.key == null",
    "not candidate.subject == input.caller.subject",
    "true",
)


@cache
def engine(package: str = "", rule: str = "") -> EmbeddedEngine:
    """Return an engine over the bundled policies, with one rule more if one is given."""
    bundle = load_bundle()
    if rule:
        text = f"package {package}\n\nimport future.keywords.not\nimport rego.v1\n\n{rule}\n"
        bundle = replace(bundle, modules=(*bundle.modules, ("memory/extra.rego", text)))
    return EmbeddedEngine(bundle)


def denial(condition: str) -> str:
    """Return a denial of the whole query under a condition."""
    return f'deny contains {{"rule_id": "MEM-R-199", "reason": "extra"}} if {{ {condition} }}'


def exclusion(condition: str) -> str:
    """Return an exclusion of records under a condition, with the plan declared incomplete."""
    head = 'excluded contains {"index": index, "rule_id": "MEM-R-299", "reason": "extra"}'
    body = f"some index, candidate in input.candidates; {condition}"
    return f'{head} if {{ {body} }}\n\nincomplete contains "MEM-R-299"'


def refusal(condition: str) -> str:
    """Return a denial of candidates under a condition."""
    head = 'deny contains {"index": index, "rule_id": "MEM-W-199", "reason": "extra"}'
    return f"{head} if {{ some index, candidate in input.candidates; {condition} }}"


tenants = st.sampled_from(["tenant-a", "tenant-a", "tenant-a", "tenant-b"])
subjects = st.sampled_from([None, "user-1", "user-2"])
classes = st.sampled_from(["short_term", "long_term", "profile"])
kinds = st.sampled_from(["preference", "validated_fact", "session_summary", "working_note"])
sources = st.sampled_from(["trusted_profile", "trusted_service", "user_input", "agent_authored", "recall"])
keys = st.sampled_from([None, "colour", "system.prompt"])
roles = st.sampled_from([[], [], ["curator"], ["operator"]])

records = st.fixed_dictionaries(
    {
        "record_id": st.sampled_from(["mem-1", "mem-2"]),
        "tenant_id": tenants,
        "subject": subjects,
        "memory_class": st.one_of(classes, st.just("archive")),
        "kind": kinds,
        "key": keys,
        "source": sources,
        "provenance": st.just("unit"),
        "provenance_known": st.booleans(),
        "trust_rank": st.integers(1, 3),
        "confidence_millionths": st.integers(0, 1_000_000),
        "created_ns": st.integers(0, 800).map(lambda days: NOW_NS - days * DAY_NS),
        "expires_ns": st.sampled_from([None, NOW_NS - 1, NOW_NS, NOW_NS + 1]),
        "status": st.sampled_from(["active", "active", "active", "quarantined", "superseded", "tombstone"]),
        "revision": st.just(1),
        "outranked": st.booleans(),
        "derived": st.booleans(),
    }
)


@st.composite
def reads(draw: st.DrawFn) -> dict[str, Any]:
    """Return a read document, more often permitted than not, with some records."""
    tenant_id = draw(st.sampled_from(["tenant-a", "tenant-a", "tenant-a", None]))
    purposes = ["answer_generation", "planning", "personalization", "inspection", "compliance_review"]
    query = {
        "tenant_id": tenant_id,
        "principal_id": "user-1",
        "purpose": draw(st.sampled_from(purposes)),
        "allowed_classes": draw(st.one_of(st.lists(classes, min_size=1, unique=True), st.none())),
        "limit": draw(st.integers(1, 10)),
        "trust_min_rank": draw(st.sampled_from([None, 1, 2, 3])),
        "max_age_days": draw(st.sampled_from([None, 0, 10, 90, 1000])),
        "require_provenance": draw(st.booleans()),
        "subject": draw(st.sampled_from([None, None, "user-1", "user-2"])),
        "kinds": draw(st.one_of(st.just([]), st.lists(kinds, max_size=2))),
        "sources": draw(st.one_of(st.just([]), st.lists(sources, max_size=2))),
        "keys": draw(st.sampled_from([[], [], ["colour"]])),
        "record_ids": draw(st.sampled_from([[], [], ["mem-1"]])),
        "statuses": draw(st.sampled_from([[], [], ["active"], ["quarantined"]])),
        "has_text": False,
    }
    return {
        "operation": draw(st.sampled_from(["search", "get", "list", "inspect"])),
        "now_ns": NOW_NS,
        "caller": caller(draw),
        "query": query,
        "candidates": draw(st.lists(records, max_size=6)),
    }


def caller(draw: st.DrawFn) -> dict[str, Any]:
    """Return who asks."""
    return {
        "tenant_id": "tenant-a",
        "principal_id": "user-1",
        "subject": "user-1",
        "roles": draw(roles),
        "anonymous": draw(st.booleans()),
    }


@st.composite
def writes(draw: st.DrawFn) -> dict[str, Any]:
    """Return a write document of a few candidates."""
    candidate = st.fixed_dictionaries(
        {
            "tenant_id": tenants,
            "subject": subjects,
            "memory_class": classes,
            "kind": kinds,
            "key": keys,
            "source": sources,
            "provenance": st.just("unit"),
            "provenance_known": st.booleans(),
            "confidence_millionths": st.sampled_from([0, 900_000]),
            "revision_mode": st.sampled_from(["append", "replace"]),
            "size_bytes": st.sampled_from([10, 100, 70_000]),
            "content_digest": st.just("hmac:00"),
            "language": st.just("en"),
            "findings": st.sampled_from([[], [{"type": "secret.password", "field": "content"}]]),
            "lineage": st.just({"count": 0, "known": True, "min_trust_rank": None, "subjects_match": True}),
            "replaces": st.sampled_from([None, {"record_id": "mem-1", "trust_rank": 2, "revision": 1}]),
            "tombstoned": st.booleans(),
        }
    )
    return {
        "operation": "write",
        "now_ns": NOW_NS,
        "caller": caller(draw),
        "candidates": draw(st.lists(candidate, min_size=1, max_size=5)),
    }


def _unjudged(document: dict[str, Any]) -> str:
    """Return the same question without candidates: the one that is answered with a plan."""
    return json.dumps({**document, "candidates": []})


@given(reads(), st.sampled_from(CONDITIONS))
def test_one_denial_more_never_permits_more(document: dict[str, Any], condition: str) -> None:
    """A query that is refused without a rule is refused with it."""
    text = json.dumps(document)
    before = engine().evaluate("memory.read", text)
    after = engine("memory.read", denial(condition)).evaluate("memory.read", text)

    assert before["allow"] or not after["allow"]
    assert set(after["admitted"]) <= set(before["admitted"])


@given(reads(), st.sampled_from(RECORD_CONDITIONS))
def test_one_exclusion_more_never_admits_more(document: dict[str, Any], condition: str) -> None:
    """A record that is kept out without a rule is kept out with it, and the plan says it is not all."""
    text = json.dumps(document)
    before = engine().evaluate("memory.read", text)
    after = engine("memory.read", exclusion(condition)).evaluate("memory.read", text)

    assert before["allow"] == after["allow"]
    assert set(after["admitted"]) <= set(before["admitted"])
    planned = engine("memory.read", exclusion(condition)).evaluate("memory.read", _unjudged(document))
    assert not planned["plan"]["complete"]


@given(writes(), st.sampled_from(CANDIDATE_CONDITIONS))
def test_one_refusal_more_never_admits_more(document: dict[str, Any], condition: str) -> None:
    """A candidate that is refused without a rule is refused with it."""
    text = json.dumps(document)
    before = engine().evaluate("memory.write", text)
    after = engine("memory.write", refusal(condition)).evaluate("memory.write", text)

    assert set(after["allowed"]) <= set(before["allowed"])
    assert after["assign"] == before["assign"]


@given(reads())
def test_plan_and_exclusions_say_the_same(document: dict[str, Any]) -> None:
    """What the plan lets through is what the per-record rules admit, for each record."""
    answer = engine().evaluate("memory.read", json.dumps(document))
    if not answer["allow"]:
        assert answer["admitted"] == []
        return
    plan = Plan.from_decision(engine().evaluate("memory.read", _unjudged(document)))
    assert plan.complete
    passed = [
        index
        for index, one in enumerate(document["candidates"])
        if all(clause_passes(clause, one) for clause in plan.clauses)
    ]

    assert answer["admitted"] == passed


@given(writes())
def test_a_batch_is_decided_as_its_parts(document: dict[str, Any]) -> None:
    """A candidate gets the same answer alone and in a batch."""
    together = engine().evaluate("memory.write", json.dumps(document))
    for index, candidate in enumerate(document["candidates"]):
        alone = engine().evaluate("memory.write", json.dumps({**document, "candidates": [candidate]}))

        assert (index in together["allowed"]) == (alone["allowed"] == [0])
        assert together["assign"][index] == alone["assign"][0]
