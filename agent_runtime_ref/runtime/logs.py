"""The decision log of a store, opened without policies and engine: who only reads lines decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Self

from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.stores.base import Chain, ChainedByTenant, Store
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.telemetry.places import ALL, chain_name
from agent_runtime_ref.telemetry.tail import LogTail

_BESIDE = {"jsonl": ".log", "file": ".log"}  # what such a store appends to its own name for its log


class LogReader:
    """The chains of a log, which may grow while they are read; to be closed."""

    def __init__(self, *, store: Store | None = None, file: LogTail | None = None) -> None:
        self._store = store
        self._file = file

    @classmethod
    def of_store(cls, url: str) -> Self:
        """The log of the store at `url`, which must be there.

        Raises:
            StoreError: it cannot be opened, or its log ends with the process.
        """
        scheme, _, name = url.partition(":")
        if scheme in ("memory", "seeds"):
            raise StoreError(url, "its log ends with the process; name a store that is kept, or a log file")
        # Such a log is a file of its own and one chain; reading it must not keep its writer waiting.
        if scheme in _BESIDE:
            return cls.of_file(Path(f"{name}{_BESIDE[scheme]}"))
        return cls(store=open_store(url, must_exist=True))

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """The log in a file, with the segments that rotation closed."""
        return cls(file=LogTail(path))

    def chains(self) -> Iterator[Chain]:
        """Every chain that there is now: of writes, and of reads."""
        if self._file is not None:
            yield Chain(ALL, None, self._file)
            return
        assert self._store is not None, "a reader has a store or a file"
        for read in (False, True):
            if isinstance(self._store, ChainedByTenant):
                yield from self._store.chains(read)
            else:
                name = chain_name(self._store.log_mode, read=read)
                yield Chain(name, None, partial(self._store.raw_log, read))

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()
