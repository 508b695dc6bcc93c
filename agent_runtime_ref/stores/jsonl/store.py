"""`JsonlStore`: the governed store in files of JSON lines, for one machine and what fits in memory.

Searches are answered from memory. A change is announced first: its log lines are on disk before its record
lines are begun, so that no record is there that the log does not tell of.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError
from agent_runtime_ref.stores import relied
from agent_runtime_ref.stores.base import CAPABILITIES, CommitOutcome, ForgetCounts, LogMode, WriteBatch
from agent_runtime_ref.stores.file_logged import FileLogged
from agent_runtime_ref.stores.held import digests_of, doomed, forget_counts
from agent_runtime_ref.stores.jsonl import files, intents
from agent_runtime_ref.stores.jsonl.keys import KeyFile
from agent_runtime_ref.stores.jsonl.lines import (
    Header,
    Mark,
    Step,
    marked,
    put_step,
    step_lines,
    taken_out_step,
)
from agent_runtime_ref.stores.jsonl.records import RecordFile
from agent_runtime_ref.stores.jsonl.rewrite import Rewriting
from agent_runtime_ref.stores.memory_log import FileLog
from agent_runtime_ref.stores.memory_tenant import Tenant, Undo
from agent_runtime_ref.telemetry import chain, diagnostics
from agent_runtime_ref.telemetry.chain import Lines


class JsonlStore(FileLogged):
    """Keeps records in `path`, all log lines in `path` with `.log` appended, keys in the one with `.keys`."""

    durable = True
    log_mode: LogMode = "write_ahead"
    capabilities = CAPABILITIES

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.url = f"jsonl:{path}"
        self.path = Path(os.path.realpath(path))
        self._closed = False
        self._changed_at = 0
        self._file_lock = files.Lock(self._beside("lock"), url=self.url)
        self._file = RecordFile(self.path, self._file_lock, self._tenants)
        self._keys = KeyFile(self._beside("keys"))
        self._rewriting = Rewriting(self.path, self._keys)
        self._start()
        self._file.check_kind()  # before any file is made: another program's is left as it is
        with self._file_lock.exclusive():
            self._rewriting.end(self._log_path)
            if not self._file.check_kind():
                self._make()
            self._file.catch_up()
            self._keys.store_key()
            self._log = self._opened_log()
            self._file.repair()
            self._take_back()
            self._changed_at = self._log.last_number()

    @property
    def repaired_bytes(self) -> int:
        """How much was cut off the records because its commit never ended."""
        return self._file.repaired_bytes

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Announce a batch in the log and put it, or nothing."""
        undo: Undo = []
        with self._writing():
            relied.check(self, batch)
            try:
                outcomes = [self._put(change, batch.now_us, undo) for change in batch.changes]
                pairs = zip(batch.changes, outcomes, strict=True)
                steps = [put_step(change, done.superseded) for change, done in pairs]
                for one in batch.rejected:
                    self._take_out(one, batch.now_us, undo)
                    steps.append(taken_out_step(one, batch.now_us))
                self._keep(steps, batch.lines)
            except BaseException:
                for step in reversed(undo):
                    step()
                raise
        return outcomes

    def _keep(self, steps: Sequence[Step], lines: Sequence[str]) -> None:
        if not steps:
            self._log.append(lines, read=False)
            return
        data = step_lines(steps)
        # Whatever ends this in the middle leaves it so, and the next one that writes looks what came about.
        self._file_lock.under_way = True
        sealed = self._announced(lines)
        mark = Mark(*chain.head(sealed[-1])) if sealed else self._file.mark
        try:
            self._file.append(marked(data, mark), len(steps), mark)
        except StoreError:
            self._log.append(intents.takings_back(line.encode() for line in sealed), read=False)
            self._file_lock.under_way = False
            raise
        self._file_lock.under_way = False

    def _announced(self, lines: Sequence[str]) -> Sequence[str]:
        """Log `lines` and return them as they stand in the log, on disk."""
        told = lines if isinstance(lines, Lines) else Lines(lines)
        try:
            self._log.append(told, read=False)
        except DecisionLogError:
            self._file_lock.under_way = False  # it holds none of them
            raise
        return told.sealed if told else ()

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines."""
        with self._alone():
            found = self._keys.find(tenant_id, subject)
            if found is not None or not create:
                return found
            with self._file_lock.exclusive() as is_first:
                if is_first and self._file_lock.under_way:
                    self._settle()  # else a forgetting that is ended later would put away the new key
                return self._keys.add(tenant_id, subject)

    def store_key(self) -> bytes:
        """The store's own key."""
        with self._alone():
            return self._keys.store_key()

    def forget(
        self,
        tenant_id: str,
        subject: str,
        *,
        now_us: int,
        dry_run: bool,
        lines_for: Callable[[ForgetCounts], Sequence[str]],
    ) -> ForgetCounts:
        """Remove a subject from a tenant, and rewrite both files without it."""
        with self._writing():
            tenant = self._tenants.get(tenant_id) or Tenant()
            found = doomed(tenant, subject)
            counts = replace(
                forget_counts(
                    tenant,
                    found,
                    tenant_id=tenant_id,
                    subject=subject,
                    store_key=self._keys.store_key(),
                ),
                dry_run=dry_run,
                log_key_destroyed=not dry_run and self._keys.find(tenant_id, subject) is not None,
            )
            lines = lines_for(counts)
            if dry_run:
                self._log.append(lines, read=False)
                return counts
            undo: Undo = []
            try:
                for entry in found:
                    tenant.take_out(entry, undo)
                tenant.mark(digests_of(counts), now_us, undo)
                self._rewritten(tenant_id, subject, lines)
            except BaseException:
                for step in reversed(undo):
                    step()
                raise
            return counts

    def _rewritten(self, tenant_id: str, subject: str, lines: Sequence[str]) -> None:
        """Prepare both files without the subject, announce it, and put them in the place of those with it."""
        intent = intents.body_digest(lines[-1]) if lines else None
        header = Header(self._file.header.forgets + 1, self._file.mark, intent)
        self._file_lock.under_way = True
        size, count = self._rewriting.prepare(header, self._tenants, (tenant_id, subject))
        try:
            self._log.append(lines, read=False)
        except DecisionLogError:
            self._rewriting.drop()  # the log holds none of them
            self._file_lock.under_way = False
            raise
        # Whatever else ends this leaves both files and the mark: the next change first looks what was told.
        self._rewriting.put_in_place()
        self._file.replaced(header, size, count)
        self._file_lock.under_way = False

    def forgets(self) -> int:
        """How often somebody was forgotten, by any process."""
        with self._opened():
            return self._file.header.forgets

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out; after a fork, begin anew with what the files hold."""
        if self._closed:
            raise StoreError(self.url, "the store is closed")
        if self._pid != os.getpid():
            # Threads of the parent are gone, and may have been in the middle of something.
            self._file_lock = files.Lock(self._beside("lock"), url=self.url)
            self._file = RecordFile(self.path, self._file_lock, self._tenants)
            self._file.let_go()
            self._keys = KeyFile(self._beside("keys"))
            self._rewriting = Rewriting(self.path, self._keys)
            self._start()
            self._log = FileLog(self._log_path, reads_wait=False)
        with self._lock:
            yield

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Keep other threads out, and have every record that any process has kept."""
        with self._alone():
            if not self._file.is_current:
                # The lock keeps writers out, whose lines may be in the log while their records are not.
                with self._file_lock.shared():
                    self._file.catch_up()
                    self._changed_at = self._log.last_number()
            yield

    def _snapshot_revision(self) -> int:
        """The last line when the records last changed: lines of reads do not make it another state."""
        return self._changed_at

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Keep every other thread and process out, and have everything that any of them has kept."""
        with self._alone(), self._file_lock.exclusive() as is_first:
            if is_first:
                self._settle()
            yield
            if is_first:
                self._changed_at = self._log.last_number()

    def _settle(self) -> None:
        """End or take back what was left in the middle, and have everything that was kept; under the lock."""
        if self._file_lock.under_way:
            self._rewriting.end(self._log_path)
        self._file.catch_up()
        self._file.repair()
        if self._file_lock.under_way:
            self._take_back()
        self._changed_at = self._log.last_number()

    def _take_back(self) -> None:
        """Say of changes that were announced and did not come about that they did not; under the lock."""
        told = intents.takings_back(intents.lines_after(self._log_path, self._file.mark.seq))
        if told:
            diagnostics.warning("store_reconciled", path=str(self.path), changes=len(told))
            self._log.append(told, read=False)
        self._file_lock.under_way = False

    def _make(self) -> None:
        """Make the files of a new store, the records last: where they are, everything is.

        Raises:
            StoreDamagedError: there is a log of records that are gone.
        """
        log = files.standing(self._log_path)
        if log is not None and log.size > 0:
            raise StoreDamagedError(str(self.path), f"its records are gone, and `{self._log_path}` is there")
        if files.standing(self._keys.path) is None:
            self._keys.make()
        self._file.make()

    def _opened_log(self) -> FileLog:
        """Open the log, which must hold the line that announced the last record.

        Raises:
            StoreDamagedError: it does not; a record that the log does not tell of cannot be.
        """
        mark = self._file.mark
        if mark.seq > 0:
            problem = f"its last record was announced by line {mark.seq} of `{self._log_path}`, which is gone"
            if files.standing(self._log_path) is None:
                raise StoreDamagedError(str(self.path), problem)
            line = next(intents.lines_after(self._log_path, mark.seq - 1), None)
            found = None if line is None else chain.opened(line)
            if found is None or (found.seq, found.hash) != mark:
                raise StoreDamagedError(str(self.path), problem)
        return FileLog(self._log_path, reads_wait=False)

    @property
    def _log_path(self) -> Path:
        return self._beside("log")

    def _beside(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{name}")
