"""Names of engines, as settings and `--engine` give them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.engine import PolicyEngine

if TYPE_CHECKING:
    from agent_runtime_ref.policy.opa_server.settings import OpaSettings

__all__ = ["open_engine"]


def open_engine(
    name: str,
    bundle: Bundle,
    *,
    opa: OpaSettings | None = None,
    environ: Mapping[str, str] | None = None,
) -> PolicyEngine:
    """Return the engine called `name`, ready to decide by `bundle`.

    `opa` is how a server is reached and what it must run, `environ` where its token is looked for (default:
    the environment of this process).

    Raises:
        BundleError: the policies cannot be used.
        UsageError: there is no such engine, or its server could not be asked safely.
    """
    if name == "embedded":
        return EmbeddedEngine(bundle)
    if name.startswith("opa:"):
        # Imported here: only who asks a server pays for its client.
        from agent_runtime_ref.policy.opa_server.engine import OpaServerEngine
        from agent_runtime_ref.policy.opa_server.server import server_of
        from agent_runtime_ref.policy.opa_server.settings import OpaSettings

        settings = opa or OpaSettings()
        server = server_of(name, settings, os.environ if environ is None else environ)
        return OpaServerEngine(bundle, server, settings)
    raise UsageError(f"no engine called `{name}`; there are `embedded` and `opa:http://HOST:PORT`")
