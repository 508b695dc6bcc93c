"""`DocumentStore`: the governed store in one JSON file, its decision log beside it.

Every change prepares the whole file anew, says so in the log, and only then gives the prepared file its
name. A process that ends in between leaves a prepared file: where the log tells of it the next one puts it in
place, and else removes it. So what was logged is always carried out, and nothing else is.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from secrets import token_bytes

from agent_runtime_ref.errors import DecisionLogError, StoreDamagedError, StoreError, StoreForeignError
from agent_runtime_ref.stores import relied
from agent_runtime_ref.stores.base import CAPABILITIES, CommitOutcome, ForgetCounts, LogMode, WriteBatch
from agent_runtime_ref.stores.document import aside
from agent_runtime_ref.stores.document.contents import Contents, dumped, loaded
from agent_runtime_ref.stores.file_logged import FileLogged
from agent_runtime_ref.stores.held import digests_of, doomed, forget_counts
from agent_runtime_ref.stores.jsonl import files, intents
from agent_runtime_ref.stores.memory_log import FileLog
from agent_runtime_ref.stores.memory_tenant import Tenant, Undo
from agent_runtime_ref.telemetry import diagnostics


class DocumentStore(FileLogged):
    """Keeps records and keys in `path`, all log lines in `path` with `.log` appended."""

    durable = True
    log_mode: LogMode = "write_ahead"
    capabilities = CAPABILITIES

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.url = f"file:{path}"
        self.path = Path(os.path.realpath(path))
        self._closed = False
        self._log_path = self._beside("log")
        self._prepared = self._beside("new")
        self._seen: files.Standing | None = None
        self._start()
        if files.standing(self.path) is not None:
            self._refuse_foreign()  # before any file is made: another program's is left as it is
        with self._file_lock.exclusive():
            self._settle()
            if files.standing(self.path) is None:
                self._make()
            self._log = FileLog(self._log_path, reads_wait=False)
            self._catch_up()
            self._check_log()

    def commit(self, batch: WriteBatch) -> list[CommitOutcome]:
        """Prepare the file with a batch, announce it in the log and put it in place, or nothing."""
        with self._writing() as undo:
            relied.check(self, batch)
            outcomes = [self._put(change, batch.now_us, undo) for change in batch.changes]
            for one in batch.rejected:
                self._take_out(one, batch.now_us, undo)
            if batch.changes or batch.rejected:
                self._keep(batch.lines, self._contents)
            else:
                self._log.append(batch.lines, read=False)
        return outcomes

    def subject_key(self, tenant_id: str, subject: str, create: bool) -> bytes | None:
        """The key under which a subject's ids stand in log lines."""
        name = (tenant_id, subject)
        with self._opened():
            found = self._contents.subject_keys.get(name)
        if found is not None or not create:
            return found
        with self._writing():
            keys = self._contents.subject_keys
            if name not in keys:
                self._replace(replace(self._contents, subject_keys={**keys, name: token_bytes(32)}))
            return self._contents.subject_keys[name]

    def store_key(self) -> bytes:
        """The store's own key."""
        with self._opened():
            return self._contents.store_key

    def forget(
        self,
        tenant_id: str,
        subject: str,
        *,
        now_us: int,
        dry_run: bool,
        lines_for: Callable[[ForgetCounts], Sequence[str]],
    ) -> ForgetCounts:
        """Remove a subject from a tenant; the file that is put in place holds nothing of it."""
        with self._writing() as undo:
            tenant = self._tenants.get(tenant_id) or Tenant()
            found = doomed(tenant, subject)
            contents = self._contents
            counts = replace(
                forget_counts(
                    tenant, found, tenant_id=tenant_id, subject=subject, store_key=contents.store_key
                ),
                dry_run=dry_run,
                log_key_destroyed=not dry_run and (tenant_id, subject) in contents.subject_keys,
                notes=aside.notes(self.path),
            )
            lines = lines_for(counts)
            if dry_run:
                self._log.append(lines, read=False)
                return counts
            for entry in found:
                tenant.take_out(entry, undo)
            tenant.mark(digests_of(counts), now_us, undo)
            kept = {name: key for name, key in contents.subject_keys.items() if name != (tenant_id, subject)}
            self._keep(lines, replace(contents, forgets=contents.forgets + 1, subject_keys=kept))
            return counts

    def forgets(self) -> int:
        """How often somebody was forgotten, by any process."""
        with self._opened():
            return self._contents.forgets

    # --- writing -------------------------------------------------------------------------------------------

    def _keep(self, lines: Sequence[str], contents: Contents) -> None:
        """Prepare the file, announce it, and put it in place."""
        intent = intents.body_digest(lines[-1]) if lines else contents.intent
        seq = self._log.last_number() if lines else contents.seq
        contents = replace(contents, seq=seq, intent=intent)
        files.prepare(self._prepared, [dumped(contents, self._tenants)])
        try:
            self._log.append(lines, read=False)
        except DecisionLogError:
            self._drop()  # the log holds none of them
            raise
        except BaseException:
            # Whether the log holds them is not known here: the next look settles it as after the end of a
            # process.
            self._seen = None
            raise
        self._put_in_place(contents)

    def _replace(self, contents: Contents) -> None:
        """Put other keys in place, which nobody has to be told of."""
        prepared = self._beside("keys.new")
        files.prepare(prepared, [dumped(contents, self._tenants)])
        files.put_in_place(prepared, self.path)
        self._contents, self._seen = contents, files.standing(self.path)

    def _put_in_place(self, contents: Contents) -> None:
        files.put_in_place(self._prepared, self.path)
        self._contents, self._seen = contents, files.standing(self.path)
        self._changed_at = self._log.last_number()

    def _make(self) -> None:
        """Make the file of a new store.

        Raises:
            StoreDamagedError: there is a log of records that are gone.
        """
        log = files.standing(self._log_path)
        if log is not None and log.size > 0:
            raise StoreDamagedError(
                str(self.path), f"its records are gone, and their log is there: `{self._log_path}`"
            )
        self._begin()

    def _begin(self) -> None:
        self._tenants.clear()
        self._replace(Contents.new())

    def _drop(self) -> None:
        for path in (self._prepared, self._beside("keys.new"), self._beside("aside.new")):
            with suppress(FileNotFoundError):
                path.unlink()

    def _settle(self) -> None:
        """End or take back what another process left in the middle, under the exclusive lock."""
        if self._prepared.exists() and self._is_announced():
            diagnostics.warning("store_change_ended", path=str(self.path))
            files.put_in_place(self._prepared, self.path)
        self._drop()

    def _is_announced(self) -> bool:
        try:
            contents, _ = loaded(self._prepared.read_bytes(), str(self._prepared))
        except (StoreDamagedError, OSError):
            return False  # it was never whole, so nothing was announced
        return self._holds(contents)

    def _holds(self, contents: Contents) -> bool:
        """Tell whether the log holds the line that announced `contents`."""
        if contents.intent is None or not self._log_path.exists():
            return False
        return intents.holds_body(intents.lines_after(self._log_path, contents.seq), contents.intent)

    # --- looking -------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Take what is in the file; what is damaged is put aside and reported, under the exclusive lock."""
        seen = files.standing(self.path)
        if seen == self._seen and seen is not None:
            return
        try:
            contents, tenants = self._read()
        except StoreForeignError:
            raise
        except StoreDamagedError as error:
            self._put_aside(error)
            return
        self._tenants.clear()
        self._tenants.update(tenants)
        self._contents, self._seen = contents, seen
        self._changed_at = self._log.last_number()

    def _read(self) -> tuple[Contents, dict[str, Tenant]]:
        return loaded(self._bytes(), str(self.path))

    def _bytes(self) -> bytes:
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise StoreError(str(self.path), (error.strerror or str(error)).lower()) from error

    def _put_aside(self, error: StoreDamagedError) -> None:
        """Keep a copy of a damaged file, so that nothing of it is lost, and put an empty one in its place.

        The file never lacks its name meanwhile: where it does, its records are gone, and that is refused.
        """
        place = aside.free_name(self.path)
        if place is None:
            raise error
        copy = self._beside("aside.new")
        files.prepare(copy, [self._bytes()])
        files.put_in_place(copy, place)
        diagnostics.error("store_put_aside", path=str(self.path), aside=str(place))
        self._begin()
        self._changed_at = self._log.last_number()

    def _refuse_foreign(self) -> None:
        """Refuse a file that is no store and never was one: no log of ours lies beside it."""
        try:
            self._read()
        except StoreForeignError:
            raise
        except StoreDamagedError as error:
            if not self._log_path.exists():
                raise StoreForeignError(str(self.path), "is no store in one JSON document") from error

    def _check_log(self) -> None:
        """Refuse records that the log does not tell of.

        Raises:
            StoreDamagedError: the log lacks the line that announced the file.
        """
        if self._contents.intent is not None and not self._holds(self._contents):
            raise StoreDamagedError(str(self.path), f"`{self._log_path}` lacks the line that announced it")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out; after a fork, begin anew with what the file holds."""
        if self._closed:
            raise StoreError(self.url, "the store is closed")
        if self._pid != os.getpid():
            self._start()
            self._log = FileLog(self._log_path, reads_wait=False)
        with self._lock:
            yield

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Keep other threads out, and have every record that any process has kept."""
        with self._alone():
            if files.standing(self.path) != self._seen:
                with self._file_lock.exclusive():
                    self._settle()
                    self._catch_up()
            yield

    @contextmanager
    def _writing(self) -> Iterator[Undo]:
        """Keep every other thread and process out; what raises inside has changed nothing."""
        with self._alone(), self._file_lock.exclusive() as is_first:
            if is_first:
                self._settle()
                self._catch_up()
            undo: Undo = []
            try:
                yield undo
            except BaseException:
                for step in reversed(undo):
                    step()
                raise

    def _snapshot_revision(self) -> int:
        """The last line when the records last changed: lines of reads do not make it another state."""
        return self._changed_at

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._file_lock = files.Lock(self._beside("lock"), url=self.url)
        self._contents = Contents(b"")
        self._seen = None
        self._changed_at = 0

    def _beside(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{name}")
