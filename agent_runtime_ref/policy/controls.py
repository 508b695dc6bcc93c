"""compliance/controls.yaml: which rules serve which control of which framework."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref.errors import DocumentError
from agent_runtime_ref.yaml_source import read_file

__all__ = ["CONTROLS", "Control", "NoControls", "read_controls"]

CONTROLS = "compliance/controls.yaml"


@dataclass(frozen=True, slots=True)
class Control:
    """A control of a framework, and the rules that serve it."""

    control_id: str
    framework: str
    title: str
    evidence: str
    rule_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NoControls:
    """Why a bundle has no list of controls: a missing one is a gap, an unreadable one is a fault."""

    problem: str
    missing: bool

    def __str__(self) -> str:
        return self.problem


def read_controls(location: Path) -> tuple[Control, ...] | NoControls:
    """Return the controls of the bundle in a folder, or why there are none."""
    path = location / CONTROLS
    if not os.path.lexists(path):
        return NoControls(f"there is no {CONTROLS}", missing=True)
    if not path.is_file():
        return NoControls(f"{CONTROLS} is no file that can be read", missing=False)
    try:
        value = read_file(path).value
    except DocumentError as error:
        return NoControls(str(error), missing=False)
    rows = value.get("controls") if isinstance(value, Mapping) else None
    if not isinstance(rows, list) or not all(_is_control(row) for row in rows):
        return NoControls(
            "`controls` must be a list, each with id, framework, title, evidence and rules", missing=False
        )
    return tuple(
        Control(row["id"], row["framework"], row["title"], row["evidence"].strip(), tuple(row["rules"]))
        for row in rows
    )


def _is_control(row: Any) -> bool:
    return (
        isinstance(row, Mapping)
        and all(isinstance(row.get(name), str) for name in ("id", "framework", "title", "evidence"))
        and isinstance(row.get("rules"), list)
        and all(isinstance(one, str) for one in row["rules"])
    )
