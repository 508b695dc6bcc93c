"""What the file of a document store holds: the records, the keys, and the log line that announced them."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from agent_runtime_ref.errors import StoreDamagedError, StoreForeignError, StoreVersionError
from agent_runtime_ref.stores.jsonl.lines import carry_out, snapshot_steps
from agent_runtime_ref.stores.memory_tenant import Tenant

FORMAT = "agent-runtime-ref.document"
VERSION = 1
_KEY_BYTES = 32
_NOT_OURS = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything in the file but the records."""

    store_key: bytes
    forgets: int = 0  # how often somebody was forgotten
    seq: int = 0  # of the last log line when this was prepared; the one that announced it comes later
    intent: str | None = None  # digest of the log line that announced this; None: nothing was put yet
    subject_keys: Mapping[tuple[str, str], bytes] = field(default_factory=dict)  # tenant and subject

    @classmethod
    def new(cls) -> Contents:
        """Return those of a new store."""
        return cls(secrets.token_bytes(_KEY_BYTES))


def dumped(contents: Contents, tenants: Mapping[str, Tenant]) -> bytes:
    """Return the file, as somebody may read it."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "forgets": contents.forgets,
        "log": {"seq": contents.seq, "intent": contents.intent},
        "store_key": contents.store_key.hex(),
        "subject_keys": [
            {"tenant_id": tenant_id, "subject": subject, "key": key.hex()}
            for (tenant_id, subject), key in contents.subject_keys.items()
        ],
        "steps": list(snapshot_steps(tenants)),
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def loaded(data: bytes, place: str) -> tuple[Contents, dict[str, Tenant]]:
    """Return what a file holds.

    Raises:
        StoreForeignError: it is a JSON document of something else.
        StoreVersionError: a newer version wrote it.
        StoreDamagedError: it is no JSON, or holds what was never written.
    """
    try:
        document = orjson.loads(data)
    except ValueError:
        raise StoreDamagedError(place, "it is no JSON document") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise StoreForeignError(place, "is no store in one JSON document")
    version = document.get("version")
    if type(version) is int and version > VERSION:
        raise StoreVersionError(place, f"its format is {version}, known is {VERSION}")
    try:
        contents, steps = _contents(document), list(document["steps"])
    except _NOT_OURS as error:
        # Without the cause: it may quote the content.
        raise StoreDamagedError(place, f"it is none of a store ({type(error).__name__})") from None
    tenants: dict[str, Tenant] = {}
    for number, step in enumerate(steps):
        carry_out(tenants, step, f"{place}: $.steps[{number}]")
    return contents, tenants


def _contents(document: Mapping[str, Any]) -> Contents:
    log = document["log"]
    keys = {(one["tenant_id"], one["subject"]): _key(one["key"]) for one in document["subject_keys"]}
    forgets, seq, intent = document["forgets"], log["seq"], log["intent"]
    if type(forgets) is not int or type(seq) is not int or not isinstance(intent, str | None):
        raise ValueError
    return Contents(_key(document["store_key"]), forgets, seq, intent, keys)


def _key(text: str) -> bytes:
    key = bytes.fromhex(text)
    if len(key) != _KEY_BYTES:
        raise ValueError
    return key
