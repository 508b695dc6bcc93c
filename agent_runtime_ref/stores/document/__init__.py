"""The store in one JSON file, for what belongs to one person: written anew with every change."""

from agent_runtime_ref.stores.document.store import DocumentStore

__all__ = ["DocumentStore"]
