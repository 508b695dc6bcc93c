"""Two bundles that answer one query in two ways, and what a test of their replacing looks at."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.policy.build import BuiltBundle, build_bundle
from agent_runtime_ref.resources import policies_path
from tests.support import caller, candidate, query


@dataclass(frozen=True)
class Policies:
    """Two bundles that answer the same query in two ways, and what each answers."""

    open: BuiltBundle  # medium trust is enough for long-term memory
    strict: BuiltBundle  # it takes high trust, which no record here has


def built_policies(folder: Path) -> Policies:
    """Build the two bundles, with a copy of the policies below `folder`."""
    shutil.copytree(policies_path(), folder)
    path = folder / "memory/settings/data.json"
    settings = json.loads(path.read_text("utf-8"))
    floors = settings["trust_floors"]
    for classes in floors.values():
        if "long_term" in classes:
            classes.remove("long_term")
    floors.setdefault("high", []).append("long_term")
    path.write_text(json.dumps(settings), "utf-8")
    return Policies(build_bundle(policies_path()), build_bundle(folder))


def fill(memory: GovernedMemory) -> None:
    """Keep two records."""
    for content in ("Support tickets go to the support queue", "Invoices go to the billing queue"):
        memory.write(candidate(content), caller=caller())


def answer(memory: GovernedMemory) -> tuple[str, int, Mapping[str, int], bool]:
    """Return by which bundle a read was answered, and what it saw."""
    result = memory.read(query(allowed_classes=["long_term"]), caller=caller(), text="queue")
    return result.decision.policy_digest, len(result.hits), result.exclusions, result.underfilled


def answers(policies: Policies) -> dict[str, tuple[str, int, Mapping[str, int], bool]]:
    """Return what each bundle answers."""
    return {
        policies.open.digest: (policies.open.digest, 2, {}, False),
        policies.strict.digest: (policies.strict.digest, 0, {"trust_below_minimum": 2}, False),
    }


def told(memory: GovernedMemory, event_type: str, *, read: bool = False) -> list[dict[str, Any]]:
    """Return the payloads of one kind of event, as the decision log holds them."""
    lines = [json.loads(line) for line in memory.log_lines(read=read)]
    rows = [line.get("event", line) for line in lines]
    return [row["payload"] for row in rows if row.get("event_type") == event_type]


def waited(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Tell whether something came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return condition()
