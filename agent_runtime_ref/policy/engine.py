"""What an engine is to the gates: a text in, one decision document out, or a refusal with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["ASYNC_CALLER", "ENTRYPOINTS", "BundleIdentity", "PolicyEngine"]

ENTRYPOINTS = ("memory.read", "memory.write")

# Set around calls of the asynchronous facade; an engine that has a client for asyncio then uses that one.
ASYNC_CALLER: ContextVar[bool] = ContextVar("async_caller", default=False)


@dataclass(frozen=True, slots=True)
class BundleIdentity:
    """Which policies decide; carried into each decision."""

    digest: str  # "sha256:" and 64 hex digits
    revision: str


class PolicyEngine(Protocol):
    """Evaluates policies (the PDP). Safe to call from any thread."""

    name: str
    identity: BundleIdentity

    def evaluate(self, entrypoint: str, document: str) -> Mapping[str, Any]:
        """Return the decision document of `entrypoint` for an input document, a JSON text.

        Raises:
            EngineFailureError: there is no clear answer; its `reason` says what there was instead.
        """
        ...

    def close(self) -> None:
        """Give back what the engine holds; a closed engine refuses."""
        ...
