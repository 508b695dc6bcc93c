"""What an operator keeps out of decision lines."""

from __future__ import annotations

from typing import Any

import pytest

from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.telemetry.mask import Mask

ASKED = {"operation": "search", "caller": {"principal_id": "user-42", "roles": ["a", "b"]}, "a/b": {"~": 1}}
ANSWER = {"allow": True, "effect": "allow", "policy": {"version": "1.0.0"}}


def applied(*entries: Any) -> tuple[Any, Any, dict[str, list[str]]]:
    """What becomes of the input and the result above."""
    mask = Mask.of(entries)
    assert mask is not None
    return mask.applied(ASKED, ANSWER)


def test_a_pointer_removes_and_says_so() -> None:
    """The part is gone, the line names it, and what was given is as it was."""
    asked, answer, told = applied("/input/caller/principal_id", "/result/policy/version")

    assert asked == ASKED | {"caller": {"roles": ["a", "b"]}}
    assert answer == ANSWER | {"policy": {}}
    assert told == {"erased": ["/input/caller/principal_id", "/result/policy/version"]}
    assert ASKED["caller"] == {"principal_id": "user-42", "roles": ["a", "b"]}


def test_an_upsert_replaces_or_adds_and_says_so() -> None:
    """As with OPA, a name may be added to an object that is there."""
    asked, _, told = applied(
        {"op": "upsert", "path": "/input/caller/principal_id", "value": "***"},
        {"op": "upsert", "path": "/input/caller/note", "value": None},
    )

    assert asked["caller"] == {"principal_id": "***", "roles": ["a", "b"], "note": None}
    assert told == {"masked": ["/input/caller/principal_id", "/input/caller/note"]}


def test_pointers_reach_into_lists_and_odd_names() -> None:
    """Numbers are places in a list; `~1` and `~0` are a slash and a tilde in a name."""
    asked, _, told = applied("/input/caller/roles/0", "/input/a~1b/~0")

    assert (asked["caller"]["roles"], asked["a/b"]) == (["b"], {})
    assert told == {"erased": ["/input/caller/roles/0", "/input/a~1b/~0"]}


@pytest.mark.parametrize(
    "pointer",
    ["/input/nothing", "/input/caller/roles/9", "/input/caller/roles/-1", "/input/operation/x", "/input/x/y"],
)
def test_what_is_not_there_is_not_listed(pointer: str) -> None:
    """A pointer that leads nowhere changes nothing; nor does an upsert whose parent is missing."""
    assert applied(pointer) == (ASKED, ANSWER, {})
    if pointer != "/input/nothing":
        assert applied({"op": "upsert", "path": pointer, "value": 1}) == (ASKED, ANSWER, {})


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("/input", "part of"),
        ("/considered/returned", "part of"),
        ("input/x", "part of"),
        ("/input//x", "part of"),
        ("/input/operation", "must say what was decided"),
        ({"path": "/result/effect"}, "must say what was decided"),
        ({"op": "upsert", "path": "/result/allow", "value": False}, "must say what was decided"),
        ({"op": "upsert", "path": "/input/x"}, "with a `value`"),
        ({"op": "remove", "path": "/input/x", "value": 1}, "with a `value`"),
    ],
)
def test_what_a_line_must_say_is_not_masked(entry: Any, problem: str) -> None:
    """A mask that would hide the decision, or lie about it, is refused with its place."""
    with pytest.raises(DocumentValueError, match=problem) as refused:
        Mask.of(["/input/caller/roles", entry])

    assert refused.value.path == "$.log_mask[1]"


def test_no_mask_is_none() -> None:
    """Where nothing is set there is nothing to run."""
    assert Mask.of([]) is None
