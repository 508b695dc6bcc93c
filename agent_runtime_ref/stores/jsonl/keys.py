"""PATH.keys: the store's own key and those of subjects, readable by the owner of the file alone."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path

import orjson

from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.stores.jsonl import files

_FORMAT = "agent-runtime-ref.keys"
_KEY_BYTES = 32


class KeyFile:
    """Keys as they stand in the file now: another process may have made or destroyed one at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen: files.Standing | None = None
        self._end = 0  # behind the last whole line
        self._store_key = b""
        self._keys: dict[tuple[str, str], bytes] = {}

    def make(self) -> None:
        """Make the file with a key for a new store, under the lock of the store."""
        first = _line({"format": _FORMAT, "version": 1, "store_key": secrets.token_bytes(_KEY_BYTES).hex()})
        prepared = self.path.with_name(f"{self.path.name}.new")
        files.prepare(prepared, [first])
        files.put_in_place(prepared, self.path)

    def store_key(self) -> bytes:
        """Return the store's own key."""
        self._look()
        return self._store_key

    def find(self, tenant_id: str, subject: str) -> bytes | None:
        """Return a subject's key; None where it has none."""
        self._look()
        return self._keys.get((tenant_id, subject))

    def add(self, tenant_id: str, subject: str) -> bytes:
        """Return a subject's key, made where there is none, under the lock of the store."""
        found = self.find(tenant_id, subject)
        if found is None:
            assert self._seen is not None
            if self._seen.size > self._end:  # left by a process that ended while it wrote
                files.cut(self.path, self._end)
            found = secrets.token_bytes(_KEY_BYTES)
            files.append(self.path, _line({"tenant_id": tenant_id, "subject": subject, "key": found.hex()}))
        return found

    def prepare_without(self, tenant_id: str, subject: str, prepared: Path) -> None:
        """Write the file anew beside this one, without a subject's key."""
        self._look()
        kept = {one: key for one, key in self._keys.items() if one != (tenant_id, subject)}
        files.prepare(prepared, _lines(self._store_key, kept))

    def _look(self) -> None:
        if self._seen is not None and files.standing(self.path) == self._seen:
            return
        with files.reading(self.path) as (descriptor, seen):
            keys, store_key, end = self._read(descriptor, seen)
        self._keys, self._store_key, self._end, self._seen = keys, store_key, end, seen

    def _read(self, descriptor: int, seen: files.Standing) -> tuple[dict[tuple[str, str], bytes], bytes, int]:
        keys: dict[tuple[str, str], bytes] = {}
        store_key, end = b"", 0
        for number, line in enumerate(files.lines_from(descriptor, 0, seen.size), start=1):
            if not line.endswith(b"\n"):
                break
            try:
                document = orjson.loads(line)
                if number == 1:
                    store_key = _key(document["store_key"]) if document["format"] == _FORMAT else b""
                else:
                    keys[(document["tenant_id"], document["subject"])] = _key(document["key"])
            except (ValueError, TypeError, KeyError):
                raise StoreDamagedError(f"{self.path}:{number}", "the line holds no key") from None
            end += len(line)
        if not store_key:
            raise StoreDamagedError(f"{self.path}:1", "the key of the store is gone")
        return keys, store_key, end


def _lines(store_key: bytes, keys: dict[tuple[str, str], bytes]) -> Iterator[bytes]:
    yield _line({"format": _FORMAT, "version": 1, "store_key": store_key.hex()})
    for (tenant_id, subject), key in keys.items():
        yield _line({"tenant_id": tenant_id, "subject": subject, "key": key.hex()})


def _key(text: str) -> bytes:
    key = bytes.fromhex(text)
    if len(key) != _KEY_BYTES:
        raise ValueError
    return key


def _line(document: dict[str, object]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
