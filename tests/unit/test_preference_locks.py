"""Three locks on the writing of preferences: an import contract, an object, and a role in the policy."""

from __future__ import annotations

import ast
import copy
import pickle
import tomllib
from pathlib import Path

import pytest

import agent_runtime_ref
from agent_runtime_ref import MemoryCandidate, PolicyDeniedError
from agent_runtime_ref.curator.keeping import KEEPER, Keeper
from agent_runtime_ref.errors import WritingRightError
from agent_runtime_ref.preferences.writer import PreferenceWriter, WritingRight, claim_writing_right
from tests.preferring import USER, finding, opened

WRITER = "agent_runtime_ref.preferences.writer"
PACKAGE = Path(agent_runtime_ref.__file__).parent


def imports_of(path: Path) -> set[str]:
    """Return the modules that a file imports, and the names it takes from them as if they were modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update([node.module, *(f"{node.module}.{one.name}" for one in node.names)])
    return found


def test_only_the_curator_imports_the_writer() -> None:
    """No module of the package outside of `curator` names the writer's."""
    importers = {
        path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.py") if WRITER in imports_of(path)
    }

    assert {"curator"} == importers


def test_an_import_contract_says_so() -> None:
    """The contract protects the writer's module, and allows the curator alone."""
    project = PACKAGE.parent / "pyproject.toml"
    if not project.exists():
        pytest.skip("a wheel brings no import contracts")
    contracts = tomllib.loads(project.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["id"] == "one-writer-of-preferences"]

    assert (
        contract["type"],
        contract["protected_modules"],
        contract["allowed_importers"],
    ) == ("protected", [WRITER], ["agent_runtime_ref.curator"])


@pytest.mark.parametrize("right", [None, object(), WritingRight, object.__new__(WritingRight)])
def test_a_writer_is_made_with_the_right_only(right: object) -> None:
    """Whatever else is shown is refused."""
    with pytest.raises(WritingRightError):
        PreferenceWriter(right)  # type: ignore[arg-type]


def test_the_right_is_the_curators() -> None:
    """It was claimed by the curator, is not given out twice, and is not made by calling its class."""
    assert isinstance(KEEPER, Keeper)
    with pytest.raises(WritingRightError):
        claim_writing_right()
    with pytest.raises(WritingRightError):
        WritingRight()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_the_right_is_not_copied(copied) -> None:  # type: ignore[no-untyped-def]
    """Who sees it cannot take one along."""
    right = object.__new__(WritingRight)
    with pytest.raises(WritingRightError):
        copied(right)


@pytest.mark.parametrize("source", ["user_input", "inferred_preference", "agent_authored"])
def test_the_policy_wants_the_role(source: str) -> None:
    """The same candidate, offered to the write gate without the curator's role, is refused."""
    store, memory = opened()
    candidate = MemoryCandidate(
        "tenant-acme", "profile", "preference", "no plastic", source, 0.9, "conversation", "replace",
        key="dislike:material:general:plastic", subject="user-42",
    )  # fmt: skip
    with pytest.raises(PolicyDeniedError) as raised:
        memory.write(candidate, caller=USER)

    assert raised.value.decision.reasons == ("curator_required",)
    assert store.read(caller=USER) == ()


def test_the_writer_puts_the_role_on_its_caller() -> None:
    """What the user may not write, the curator writes for him; the user himself gets no role by it."""
    store, _ = opened()

    assert store.write(finding(), caller=USER).outcome == "added"
    assert USER.roles == ()
