"""The chain of the decision log."""

from __future__ import annotations

import json

import pytest

from agent_runtime_ref.telemetry import chain

BODIES = ['{"a":1}', '{ "b" : "多" }', "{}"]


def sealed() -> list[str]:
    """A chain of three."""
    return [line for _, line in chain.seal_all(BODIES, seq=0, prev_hash=chain.GENESIS)]


def test_a_line_is_its_body_with_its_place_in_front() -> None:
    """Sequence, previous hash and hash come first; the body's bytes stay as they were."""
    line, digest = chain.seal('{"a":1}', 1, chain.GENESIS)

    assert line == f'{{"seq":1,"prev_hash":"{chain.GENESIS}","hash":"{digest}","a":1}}'
    assert [chain.body(one) for one in sealed()] == BODIES
    assert [json.loads(one)["seq"] for one in sealed()] == [1, 2, 3]


def test_a_whole_chain_verifies() -> None:
    """From the beginning, and from any line on."""
    assert chain.verify(sealed()) is None
    assert chain.verify(sealed()[1:], prev_hash=None) is None


@pytest.mark.parametrize(
    ("spoil", "position", "reason"),
    [
        (lambda lines: [lines[0].replace('"a":1', '"a":2'), *lines[1:]], 1, "hash"),
        (lambda lines: [lines[0], lines[2]], 2, "sequence"),
        (lambda lines: [lines[1], lines[0]], 1, "sequence"),
        (lambda lines: [lines[0], "{}"], 2, "not a sealed line"),
        (lambda lines: [lines[0], chain.seal(BODIES[1], 2, "f" * 64)[0]], 2, "follow"),
    ],
)
def test_a_broken_chain_names_the_first_fault(spoil: object, position: int, reason: str) -> None:
    """Changed, missing, reordered, foreign and forged lines are found, with their place."""
    assert callable(spoil)
    fault = chain.verify(spoil(sealed()))

    assert fault is not None
    assert fault.position == position
    assert reason in fault.reason
