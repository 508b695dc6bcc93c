"""docs/explanation/dependencies.md against pyproject.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<name>[a-z0-9-]+)` \|(?P<cells>.*)\|$", re.MULTILINE)


def _declared() -> set[str]:
    """Every package that pyproject.toml names: run time, extras, development and build."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    lines = list(project["project"]["dependencies"])
    lines += [line for extra in project["project"]["optional-dependencies"].values() for line in extra]
    lines += [line for group in project["dependency-groups"].values() for line in group]
    lines += project["build-system"]["requires"]
    return {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in lines}


def _rows() -> dict[str, list[str]]:
    """Package to the cells of its row."""
    text = (CHECKOUT / "docs" / "explanation" / "dependencies.md").read_text(encoding="utf-8")
    return {row["name"]: [cell.strip() for cell in row["cells"].split("|")] for row in ROW.finditer(text)}


def test_each_dependency_has_its_row() -> None:
    """Whoever adds or drops a package says so on the page."""
    assert set(_rows()) == _declared()


def test_each_row_answers_all_four_questions() -> None:
    """Why it is here, who keeps it, under which licence, and what we would do without it."""
    incomplete = [name for name, cells in _rows().items() if len(cells) != 4 or not all(cells)]

    assert incomplete == []
