"""Names of engines, as settings and `--engine` give them."""

from __future__ import annotations

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.engine import PolicyEngine

__all__ = ["open_engine"]


def open_engine(name: str, bundle: Bundle) -> PolicyEngine:
    """Return the engine called `name`, ready to decide by `bundle`.

    Raises:
        BundleError: the policies cannot be used.
        UsageError: there is no such engine.
    """
    if name == "embedded":
        return EmbeddedEngine(bundle)
    raise UsageError(f"no engine called `{name}`; the only one of this version is `embedded`")
