"""Policy-as-code between an agent and its memory: two gates, every decision kept.

Names are imported at first use (PEP 562), so that `import agent_runtime_ref` and `--help` cost nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

_HOMES = {
    "AgentRuntime": "agent_runtime_ref.agent",
    "AsyncGovernedMemory": "agent_runtime_ref.async_memory",
    "Caller": "agent_runtime_ref.contracts",
    "Decision": "agent_runtime_ref.contracts",
    "DocumentTypeError": "agent_runtime_ref.errors",
    "DocumentValueError": "agent_runtime_ref.errors",
    "EngineFailureError": "agent_runtime_ref.errors",
    "ForgetReceipt": "agent_runtime_ref.contracts",
    "GovernanceError": "agent_runtime_ref.errors",
    "GovernedMemory": "agent_runtime_ref.runtime",
    "MemoryCandidate": "agent_runtime_ref.contracts",
    "MemoryRecord": "agent_runtime_ref.contracts",
    "MemoryStore": "agent_runtime_ref.memory",
    "Origin": "agent_runtime_ref.contracts",
    "PolicyDeniedError": "agent_runtime_ref.errors",
    "RetrievalQuery": "agent_runtime_ref.contracts",
    "RetrievalResult": "agent_runtime_ref.contracts",
    "ReviewReceipt": "agent_runtime_ref.contracts",
    "TurnResult": "agent_runtime_ref.agent",
    "WriteInterruptedError": "agent_runtime_ref.errors",
    "WriteReceipt": "agent_runtime_ref.contracts",
    "load_memory_store": "agent_runtime_ref.config",
}

if TYPE_CHECKING:
    from agent_runtime_ref.agent import AgentRuntime, TurnResult
    from agent_runtime_ref.async_memory import AsyncGovernedMemory
    from agent_runtime_ref.config import load_memory_store
    from agent_runtime_ref.contracts import (
        Caller,
        Decision,
        ForgetReceipt,
        MemoryCandidate,
        MemoryRecord,
        Origin,
        RetrievalQuery,
        RetrievalResult,
        ReviewReceipt,
        WriteReceipt,
    )
    from agent_runtime_ref.errors import (
        DocumentTypeError,
        DocumentValueError,
        EngineFailureError,
        GovernanceError,
        PolicyDeniedError,
        WriteInterruptedError,
    )
    from agent_runtime_ref.memory import MemoryStore
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = [
    "AgentRuntime",
    "AsyncGovernedMemory",
    "Caller",
    "Decision",
    "DocumentTypeError",
    "DocumentValueError",
    "EngineFailureError",
    "ForgetReceipt",
    "GovernanceError",
    "GovernedMemory",
    "MemoryCandidate",
    "MemoryRecord",
    "MemoryStore",
    "Origin",
    "PolicyDeniedError",
    "RetrievalQuery",
    "RetrievalResult",
    "ReviewReceipt",
    "TurnResult",
    "WriteInterruptedError",
    "WriteReceipt",
    "__version__",
    "load_memory_store",
]


def __getattr__(name: str) -> object:
    """Return a public name, importing its module now."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__})
