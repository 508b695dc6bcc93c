"""The JSONL trace: one event a line, appended to a file that a person or a tool can follow.

The trace is a convenience beside the decision log, which is the record of truth. Both are made from
the same events.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from threading import Lock

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.telemetry import diagnostics
from agent_runtime_ref.telemetry.events import Event


class TraceFile:
    """Appends events to a file; each batch is one write, so lines of two processes never mix."""

    def __init__(self, path: Path) -> None:
        """Check that the file can be written.

        Raises:
            UsageError: it cannot; said now rather than after a decision has been carried out.
        """
        self.path = path
        self._lock = Lock()
        try:
            self._write(b"")
        except OSError as error:
            problem = f"trace file `{path}` not writable: {error.strerror}; name another with --trace"
            raise UsageError(problem) from error

    def append(self, events: Iterable[Event]) -> None:
        """Append `events` in order; what cannot be written is reported, since the log already holds it."""
        text = "".join(json.dumps(event.to_document(), ensure_ascii=False) + "\n" for event in events)
        try:
            with self._lock:
                self._write(text.encode("utf-8"))
        except OSError as error:
            diagnostics.warning("trace_not_written", path=str(self.path), reason=error.strerror)

    def _write(self, data: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        descriptor = os.open(self.path, flags, 0o600)
        try:
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
