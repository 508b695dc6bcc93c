"""The store in files of JSON lines: records in PATH, decisions in PATH.log, keys in PATH.keys."""

from agent_runtime_ref.stores.jsonl.store import JsonlStore

__all__ = ["JsonlStore"]
