"""A memory whose engine is a policy server."""

from __future__ import annotations

from pathlib import Path

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.policy.opa_server import OpaSettings
from tests.opa import OpaProcess

# Comparing policies makes a busy server work; the tests of deadlines have servers of their own.
PATIENT = OpaSettings(deadline_ms=20_000)


def opened(server: OpaProcess, policies: Path, store: str = "memory:", **options: object) -> GovernedMemory:
    """Return governed memory over the server."""
    given: dict[str, object] = {"policies": policies, "opa": PATIENT} | options
    return GovernedMemory.open(store, engine=server.engine, **given)  # type: ignore[arg-type]
