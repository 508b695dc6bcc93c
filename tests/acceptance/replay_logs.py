"""Logs to be replayed, and policies that differ from the bundled ones in a setting."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent_runtime_ref import GovernedMemory, PolicyDeniedError
from agent_runtime_ref.resources import policies_path
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.support import caller, candidate, note, query

SETTINGS = "memory/settings/data.json"


def policies_with(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Return a copy of the bundled policies after `change` was made to its settings."""
    path = folder / "new-policies"
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(policies_path(), path)
    settings = path / SETTINGS
    value = json.loads(settings.read_text(encoding="utf-8"))
    change(value)
    settings.write_text(json.dumps(value), encoding="utf-8")
    return path


def filled(address: str, log: Path | None = None) -> GovernedMemory:
    """Return a memory with three facts, a note, an unsure fact that is refused, and four reads.

    Read 1 returns the facts and the note, read 2 the facts only (trust), read 3 finds one fact by its words,
    read 4 is refused for its purpose. Nothing moves the clock, so the log is the same each time.
    """
    memory = GovernedMemory.open(address, log=log, clock=FrozenClock(), ids=CountedIds())
    for text in ("Invoices go out on Monday", "The support queue is Q7", "Refunds take a week"):
        memory.write(candidate(text), caller=caller())
    memory.write(note("The caller is in a hurry"), caller=caller())
    with contextlib.suppress(PolicyDeniedError):
        memory.write(candidate("Refunds may take two", confidence=0.3), caller=caller())
    memory.read(query(), caller=caller())
    memory.read(query(filters={"trust_min": "medium"}), caller=caller())
    memory.read(query(limit=1), caller=caller(), text="support queue")
    with contextlib.suppress(PolicyDeniedError):
        memory.read(query(purpose="marketing"), caller=caller())
    return memory


def logged(path: Path) -> Path:
    """Return the path of a decision log of `filled`."""
    filled("memory:", path).close()
    return path


def as_opa_logs(path: Path, target: Path) -> Path:
    """Write what an OPA server would have logged of the decisions in `path`: questions and raw answers."""
    from agent_runtime_ref.policy import EmbeddedEngine, load_bundle
    from agent_runtime_ref.telemetry.lines import CONSIDERED_COLUMNS

    engine = EmbeddedEngine(load_bundle())
    entries = []
    for line in path.read_text(encoding="utf-8").splitlines():
        own = json.loads(line)
        if own["type"] != "decision":
            continue
        asked = [own["input"]]
        if "considered" in own:
            rows = [*own["considered"]["returned"], *own["considered"]["kept_out"]]
            candidates = [dict(zip(CONSIDERED_COLUMNS, row, strict=False)) for row in rows]
            asked.append({**own["input"], "candidates": candidates})
        for number, question in enumerate(asked):
            gate = own["path"].split("/")[1]
            entries.append(
                {
                    "labels": {"id": "opa-1", "version": "1.22.3"},
                    "decision_id": f"{own['decision_id']}-{number}",
                    "path": own["path"],
                    "input": question,
                    "result": engine.evaluate(f"memory.{gate}", json.dumps(question)),
                    "timestamp": own["timestamp"],
                    "requested_by": "127.0.0.1:40000",
                }
            )
    engine.close()
    target.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries), encoding="utf-8")
    return target
