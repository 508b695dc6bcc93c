"""memory.yaml and runtime.yaml: their schemas, and what would stop them when they are opened."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref.errors import (
    BundleError,
    DocumentError,
    ResourceNotFoundError,
    SeedsRefusedError,
    UsageError,
)
from agent_runtime_ref.linting.documents import schema_findings
from agent_runtime_ref.linting.findings import Finding, finding
from agent_runtime_ref.store_address import shown
from agent_runtime_ref.yaml_source import SourceDocument

__all__ = ["lint_config", "stripped"]

_KINDS = ("memory", "seeds", "jsonl", "file", "sqlite", "postgresql", "redis", "rediss")
_STORES = tuple((kind, ":") for kind in _KINDS)


def lint_config(path: Path, document: SourceDocument, schema: str) -> Iterator[Finding]:
    """Yield what is wrong with a memory.yaml or a runtime.yaml."""
    if schema == "memory_store_config":
        # The loader strips strings before it checks them, so that is what is checked here.
        found = list(schema_findings("LINT-C-001", path, document, schema, value=stripped(document.value)))
        yield from found or _tried(path, document)
        return
    found = list(schema_findings("LINT-C-011", path, document, schema))
    if not found:
        yield from _store(path, document)
        yield from _policies(path, document)
    yield from found


def _tried(path: Path, document: SourceDocument) -> Iterator[Finding]:
    """Yield what the write policy in force would do to the seeds of a file that follows its schema."""
    from agent_runtime_ref.runtime import GovernedMemory

    try:
        with GovernedMemory.open(f"seeds:{path}") as memory:
            held = _quarantined(memory.log_lines())
    except SeedsRefusedError as refused:
        for number, memory_id, error in refused.outcomes:
            place = document.positions.place(("memory", "seed_records", number - 1))
            yield finding("LINT-C-002", path, f"Memory record #{number} `{memory_id}`: {error}", place)
        return
    except DocumentError as error:
        yield finding("LINT-C-001", path, str(error), (error.line, error.column))
        return
    except (BundleError, ResourceNotFoundError) as error:
        yield finding("LINT-C-004", path, f"seed records not tried: {error}")
        return
    value: Any = document.value
    for index, seed in enumerate(value["memory"]["seed_records"]):
        memory_id = str(seed.get("memory_id", f"mem-{index + 1:03d}")).strip()
        if memory_id in held:
            place = document.positions.place(("memory", "seed_records", index))
            message = f"Memory record #{index + 1} `{memory_id}` would be quarantined: {held[memory_id]}"
            yield finding("LINT-C-003", path, message, place)


def _quarantined(lines: Iterable[str]) -> dict[str, str]:
    """Return the ids of quarantined records and why, out of the lines of a decision log."""
    events = (json.loads(line) for line in lines if '"memory_quarantined"' in line)
    payloads = [event["payload"] for event in events if event.get("event_type") == "memory_quarantined"]
    return {str(one.get("record_id")): ", ".join(one.get("rule_ids", [])) for one in payloads}


def _store(path: Path, document: SourceDocument) -> Iterator[Finding]:
    """Yield what is wrong with the store that a runtime.yaml names; it is not opened, since that makes it."""
    value: Any = document.value
    address = value.get("store") if isinstance(value, Mapping) else None
    if isinstance(address, str) and address.partition(":")[:2] not in _STORES:
        message = f"`{shown(address)}` names no kind of store that there is"
        yield finding("LINT-C-014", path, message, document.positions.place(("store",)))


def _policies(path: Path, document: SourceDocument) -> Iterator[Finding]:
    """Yield what is wrong with the policies that a runtime.yaml names."""
    from agent_runtime_ref.policy.bundle import load_bundle
    from agent_runtime_ref.policy.source import verification_of

    value: Any = document.value
    named: Mapping[str, Any] = value.get("policies", {}) if isinstance(value, Mapping) else {}
    folder = path.absolute().parent
    location = folder / named["path"] if "path" in named else None
    if location is None and named.keys() <= {"reload_seconds"}:
        return
    said = dict(named)
    if "verification_key" in said:
        said["verification_key"] = str(folder / said["verification_key"])
    try:
        verification = verification_of(said, environ={})
        load_bundle(location, expected_digest=named.get("digest"), verification=verification)
    except UsageError as error:
        key = next(name for name in ("verification_key", "keyid", "scope", "algorithm") if name in named)
        yield finding("LINT-C-013", path, str(error), document.positions.place(("policies", key)))
    except ResourceNotFoundError as error:
        yield finding("LINT-C-012", path, str(error), document.positions.place(("policies", "path")))
    except BundleError as error:
        part = "path"
        if error.reason == "bundle_tampered":
            part = next((name for name in ("digest", "verification_key") if name in named), part)
        yield finding("LINT-C-013", path, str(error), document.positions.place(("policies", part)))


def stripped(value: object) -> object:
    """Return a value with every string in it stripped."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [stripped(item) for item in value]
    if isinstance(value, dict):
        return {key: stripped(item) for key, item in value.items()}
    return value
