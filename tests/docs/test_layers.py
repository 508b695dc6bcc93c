"""The picture of the layers in the architecture page is the one that a check of every build proves."""

from __future__ import annotations

import re
import tomllib

from tests.docs.pages import CHECKOUT, pages

ARCHITECTURE = CHECKOUT / "docs" / "explanation" / "architecture.md"


def test_the_table_of_layers_is_the_import_contract() -> None:
    """Every module stands in the table once, above whatever it may import."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = [one for one in project["tool"]["importlinter"]["contracts"] if one["id"] == "layers"]
    demanded = [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]
    section = ARCHITECTURE.read_text(encoding="utf-8").split("## Layers\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", section, re.MULTILINE)
    shown = [set(re.findall(r"\w+", row)) for row in rows]

    # The command and what it is started by share a row.
    assert shown == [demanded[0] | demanded[1], *demanded[2:]]


def test_every_page_can_be_reached_from_the_readme() -> None:
    """By links of the README itself: nobody has to look through folders."""
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\((docs/[^)#]+)", readme))
    written = {page.relative_to(CHECKOUT).as_posix() for page in pages()}

    assert {page for page in written if page.startswith("docs/")} <= linked
