"""The store of one process: for seeds, tests and trials; the same answers as a durable one."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.stores import relied
from agent_runtime_ref.stores.base import CAPABILITIES, CommitOutcome, ForgetCounts, LogMode, WriteBatch
from agent_runtime_ref.stores.held import HeldRecords, digests_of, doomed, forget_counts
from agent_runtime_ref.stores.memory_log import FileLog, MemoryLog
from agent_runtime_ref.stores.memory_tenant import Tenant, Undo
from agent_runtime_ref.telemetry.logfile import Rotation


class InMemoryStore(HeldRecords):
    """Keeps everything in this process; its log too, unless a file is named for it."""

    durable = False
    capabilities = CAPABILITIES

    def __init__(self, *, log: Path | None = None, rotation: Rotation | None = None) -> None:
        super().__init__()
        self.url = "memory:"
        self.log_mode: LogMode = "volatile" if log is None else "file"
        self._log: MemoryLog | FileLog = MemoryLog() if log is None else FileLog(log, rotation)
        self._lock = threading.RLock()
        self._store_key = secrets.token_bytes(32)
        self._closed = False
        self._forgets = 0

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Put a batch and its log lines, or nothing."""
        undo: Undo = []
        with self._opened():
            relied.check(self, batch)
            try:
                outcomes = [self._put(change, batch.now_us, undo) for change in batch.changes]
                for one in batch.rejected:
                    self._take_out(one, batch.now_us, undo)
                self._log.append(batch.lines, read=False)
            except BaseException:
                for step in reversed(undo):
                    step()
                raise
        return outcomes

    def append_lines(self, lines: Sequence[str], *, read: bool) -> None:
        """Log what is not part of a write."""
        with self._opened():
            self._log.append(lines, read=read)

    def log(self, read: bool) -> Iterator[str]:
        """The sealed lines; a log file holds both kinds and gives all of them as the write log."""
        return self._log.lines(read=read)

    def raw_log(self, read: bool, after: int = 0) -> Iterator[bytes]:
        """The same lines as bytes; those of a file as they are in it."""
        return self._log.raw_lines(read=read, after=after)

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines."""
        with self._opened():
            if create:
                keys = self._tenants.setdefault(tenant_id, Tenant()).subject_keys
                return keys.setdefault(subject, secrets.token_bytes(32))
            tenant = self._tenants.get(tenant_id)
            return tenant.subject_keys.get(subject) if tenant else None

    def store_key(self) -> bytes:
        """The store's own key."""
        return self._store_key

    def forget(
        self,
        tenant_id: str,
        subject: str,
        *,
        now_us: int,
        dry_run: bool,
        lines_for: Callable[[ForgetCounts], Sequence[str]],
    ) -> ForgetCounts:
        """Remove a subject from a tenant."""
        with self._opened():
            tenant = self._tenants.get(tenant_id) or Tenant()
            found = doomed(tenant, subject)
            counts = replace(
                forget_counts(tenant, found, tenant_id=tenant_id, subject=subject, store_key=self._store_key),
                dry_run=dry_run,
                log_key_destroyed=not dry_run and subject in tenant.subject_keys,
            )
            # Logged first: a log that cannot be written must leave everything in place.
            self._log.append(lines_for(counts), read=False)
            if not dry_run:
                for entry in found:
                    tenant.remove(entry)
                tenant.tombstones.update(dict.fromkeys(digests_of(counts), now_us))
                tenant.subject_keys.pop(subject, None)
                self._forgets += 1
            return counts

    def forgets(self) -> int:
        """How often somebody was forgotten."""
        with self._opened():
            return self._forgets

    def revision(self) -> int:
        """The number of the last line of the store's own log."""
        with self._opened():
            return self._log.last_number()

    def close(self) -> None:
        """Refuse every further call."""
        self._closed = True

    def _opened(self) -> threading.RLock:
        if self._closed:
            raise StoreError(self.url, "the store is closed")
        return self._lock
