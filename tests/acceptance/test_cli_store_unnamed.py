"""Commands that need a store and were told of none: each says what it would do with one."""

from __future__ import annotations

import pytest

from tests.acceptance.command import Command

AS_OF = ("--as", "user-42", "--purpose", "planning", "--as-of", "2026-01-31")


@pytest.mark.parametrize(
    "words",
    [("inspect-memory", *AS_OF), ("session", "export", "session-001"), ("trace", "exposure", "mem-001")],
    ids=lambda words: words[0],
)
def test_a_look_does_not_say_that_it_changes_a_store(command: Command, words: tuple[str, ...]) -> None:
    """It looks at what was logged, and seeds that end with the command have nothing logged."""
    answer = command(*words)

    assert (answer.code, answer.out) == (2, "")
    assert f"`{words[0]}` looks at what was logged in a store, and none is named" in answer.err


def test_taking_out_of_use_changes_a_store(command: Command) -> None:
    """What is exposed and taken out of use is changed."""
    answer = command("trace", "exposure", "mem-001", "--quarantine", "all")

    assert answer.code == 2
    assert "`trace` changes a store, and none is named" in answer.err
