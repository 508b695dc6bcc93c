"""The proof that an instant does nothing to a plan but move it: what it proves, and what it must not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent_runtime_ref.policy import Bundle, load_bundle
from agent_runtime_ref.policy.shift import only_shifts

BUNDLE = load_bundle()
HEADER = "package memory.read\n\nimport future.keywords.not\nimport rego.v1\n\n"


def _with(text: str, header: str = HEADER) -> Bundle:
    return replace(BUNDLE, modules=(*BUNDLE.modules, ("memory/read/more.rego", header + text)))


def test_the_bundled_policies_only_shift() -> None:
    """Replay is quick because of this; a change of the policies that ends it should be noticed."""
    assert only_shifts(BUNDLE)


@pytest.mark.parametrize(
    "text",
    [
        'clauses contains {"role": "filter", "value": input.now_ns - 5} if input.operation == "search"\n',
        'clauses contains {"v": [{"value": at}]} if {\n\tat := input.now_ns - (input.query.limit * 3)\n}\n',
        'earliest := input.now_ns - 1\n\nmore := {"at": earliest}\n',
        'excluded contains {"index": i} if {\n\tsome i, c in input.candidates\n\tc.at > input.now_ns\n}\n',
        'deny contains {"rule_id": "X"} if {\n\tinput.now_ns > 0\n\tinput.query.limit == 7\n}\n',
    ],
)
def test_what_only_moves_is_proven(text: str) -> None:
    """The instant less something, put into an answer, by itself or by a name; or looked at for candidates."""
    assert only_shifts(_with(text))


@pytest.mark.parametrize(
    "text",
    [
        # Decides by the instant.
        'deny contains {"rule_id": "X"} if input.now_ns > 1700000000000000000\n',
        'deny contains {"rule_id": "X"} if input.now_ns % 2 == 0\n',
        'deny contains {"rule_id": "X"} if {\n\tat := input.now_ns - 1\n\tat > 5\n}\n',
        # Moves another way than by as much.
        'clauses contains {"value": input.now_ns * 2} if true\n',
        'clauses contains {"value": 5 - input.now_ns} if true\n',
        'clauses contains {"value": input.now_ns - input.now_ns} if true\n',
        'clauses contains {"value": sprintf("%d", [input.now_ns])} if true\n',
        # Out of sight of the proof.
        'deny contains {"rule_id": "X"} if {\n\tall := input\n\tall.now_ns > 5\n}\n',
        'deny contains {"rule_id": "X"} if input["now_ns"] > 5\n',
        'deny contains {"rule_id": "X"} if object.get(input, "now_ns", 0) > 5\n',
        'deny contains {"rule_id": "X"} if {\n\tsome name\n\tinput[name] > 5\n}\n',
        'late(at) if at > 5\n\ndeny contains {"rule_id": "X"} if late(input.now_ns)\n',
        'at := input.now_ns - 5\n\ndeny contains {"rule_id": "X"} if at > 5\n',
        'deny contains {"rule_id": "X"} if count(clauses) > 5\n',
        'deny contains {"rule_id": "X"} if data.memory.read.plan.limit > 5\n',
        'deny contains {"rule_id": "X"} if time.now_ns() > 5\n',
        'deny contains {"rule_id": "X"} if rand.intn("x", 5) > 2\n',
        'deny contains {"rule_id": "X"} if input.operation == "x" with input as {"now_ns": 5}\n',
    ],
)
def test_what_is_decided_by_an_instant_is_not_proven(text: str) -> None:
    """A replay then asks every question anew."""
    assert not only_shifts(_with(text))


def test_another_package_is_not_followed() -> None:
    """What a rule gets from another package may depend on anything."""
    header = HEADER.replace("import future", "import data.memory.common\nimport future")
    assert not only_shifts(_with('deny contains {"rule_id": "X"} if common.late\n', header))


def test_what_does_not_parse_is_not_proven() -> None:
    """An engine will say what is wrong; the proof does not."""
    assert not only_shifts(_with("deny contains {\n"))
