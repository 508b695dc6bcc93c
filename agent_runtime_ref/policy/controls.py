"""compliance/controls.yaml: which rules serve which control of which framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_runtime_ref.errors import DocumentError
from agent_runtime_ref.yaml_source import read_file

__all__ = ["CONTROLS", "Control", "read_controls"]

CONTROLS = "compliance/controls.yaml"


@dataclass(frozen=True, slots=True)
class Control:
    """A control of a framework, and the rules that serve it."""

    control_id: str
    framework: str
    title: str
    evidence: str
    rule_ids: tuple[str, ...]


def read_controls(location: Path) -> tuple[Control, ...] | str:
    """Return the controls of the bundle in a folder, or a sentence that says why there are none."""
    path = location / CONTROLS
    if not path.is_file():
        return f"there is no {CONTROLS}"
    try:
        value = read_file(path).value
    except DocumentError as error:
        return str(error)
    rows = value.get("controls") if isinstance(value, Mapping) else None
    if not isinstance(rows, list) or not all(_is_control(row) for row in rows):
        return "`controls` must be a list, each with id, framework, title, evidence and rules"
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
