"""The OPA server engine: policies evaluated by an Open Policy Agent, asked through `opa-python-client`.

settings   the section `opa` of runtime.yaml
server     the address, and what a client needs to reach it safely
calls      when a call must end, and sockets that keep to it
replies    what came back over HTTP: status, size, JSON
wire       the client for threads (requests), hardened
loop_wire  the client for asyncio (aiohttp), hardened, on a loop of its own
breaker    when not to ask at all
proof      which policies the server runs
engine     the engine: puts these in order
"""

from agent_runtime_ref.policy.opa_server.settings import OpaBundle, OpaSettings

__all__ = ["OpaBundle", "OpaSettings"]
