"""What `import agent_runtime_ref` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import agent_runtime_ref
from agent_runtime_ref import errors

HEAVY = (
    "jsonschema",
    "jsonschema_rs",
    "rich",
    "structlog",
    "opentelemetry",
    "yaml",
    "regorus",
    "requests",
    "aiohttp",
    "opa_client",
)

RECALL = (
    "MemoryKind MemorySource StoredMemory RecallEngine RecallQuery RecallCandidate RecallScoreBreakdown"
    " RecallScope RecallHit RecallResult normalize_recall_query build_recall_candidates"
    " score_recall_candidate stable_rank_recall_candidates render_recall_context render_remote_profile"
)
# What others import, word for word.
RELIED_ON = {
    "agent_runtime_ref": (
        "AgentRuntime Caller GovernedMemory MemoryCandidate MemoryRecord MemoryStore PolicyDeniedError"
        " RetrievalQuery RetrievalResult WriteReceipt load_memory_store"
    ),
    "agent_runtime_ref.background": "BackgroundWorker",
    "agent_runtime_ref.config": "load_memory_store",
    "agent_runtime_ref.curator": "Curator CurationResult RuleJudge",
    "agent_runtime_ref.memory": "MemoryRecord MemoryCandidate MemoryStore",
    "agent_runtime_ref.preferences": (
        "PreferenceStore persist_new_preferences format_preferences forget_preferences forget_preference"
    ),
    "agent_runtime_ref.recall": RECALL,
    "agent_runtime_ref.remote_memory": (
        f"{RECALL} RemoteMemoryStore recall_history recall_history_tool default_runtime runtime_client"
        " RemoteMemoryError RemoteMemoryValidationError RemoteMemoryScopeError RemoteMemoryCorruptionError"
        " RemoteMemoryDuplicateError"
    ),
    "agent_runtime_ref.session_state": "SessionState load save merge TTL",
    "agent_runtime_ref.validation": "load_document",
}


def loaded_after(statement: str) -> set[str]:
    """Return which of the heavy modules a fresh interpreter has after a statement."""
    program = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(finished.stdout.split())


def test_import_is_light() -> None:
    """Importing the package, its contracts or its configuration loads nothing heavy."""
    assert (
        loaded_after("import agent_runtime_ref, agent_runtime_ref.contracts, agent_runtime_ref.config")
        == set()
    )


def test_valid_documents_are_checked_without_the_explaining_validator() -> None:
    """Only a refusal pays for the import of jsonschema."""
    assert "jsonschema" not in loaded_after("from agent_runtime_ref.memory import MemoryStore\nMemoryStore()")


def test_only_who_asks_an_opa_server_pays_for_its_client() -> None:
    """With the embedded engine none of the HTTP libraries is imported, settings of a server or not."""
    opened = (
        "from agent_runtime_ref import GovernedMemory\n"
        "from agent_runtime_ref.policy.opa_server import OpaSettings\n"
        "GovernedMemory.open('memory:', opa=OpaSettings()).close()"
    )

    assert loaded_after(opened) & {"requests", "aiohttp", "opa_client"} == set()


def test_every_public_name_has_a_home() -> None:
    """`__all__` and the lazy table name the same things."""
    assert {*agent_runtime_ref.__all__} == {"__version__", *agent_runtime_ref._HOMES}


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name is no import of anything."""
    assert not hasattr(agent_runtime_ref, "MemoryRecrod")


def test_every_error_has_a_code_and_a_message_of_its_own() -> None:
    """Codes never repeat; each class says in one line what happened."""
    found = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.GovernanceError)
    ]

    assert len({entry.code for entry in found}) == len(found)
    assert [entry.__name__ for entry in found if not entry.__doc__ or not entry.message] == []
    assert [entry.__name__ for entry in found if not entry.__name__.endswith("Error")] == []


@pytest.mark.parametrize("module", RELIED_ON)
def test_names_that_others_import_are_there(module: str) -> None:
    """Each has a value, and is among those that the module says are public."""
    names = RELIED_ON[module].split()
    found = import_module(module)
    assert [name for name in names if not hasattr(found, name)] == []
    assert [name for name in names if name not in found.__all__] == []
