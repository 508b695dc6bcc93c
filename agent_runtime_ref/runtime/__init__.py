"""Governed memory: the composition root and the facade over the gates."""

from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.runtime.logs import LogReader
from agent_runtime_ref.runtime.memory import GovernedMemory
from agent_runtime_ref.runtime.schema import migrate_store
from agent_runtime_ref.stores.base import Chain

__all__ = ["Chain", "GovernedMemory", "Inspection", "LogReader", "migrate_store"]
