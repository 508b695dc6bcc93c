"""How the policies of one side are changed."""

from __future__ import annotations

from typing import Any

FILTERS = "memory/read/filters.rego"


CONTROLS = "compliance/controls.yaml"


def changed(settings: dict[str, Any]) -> None:
    """Change trust floors and limits."""
    settings["trust_floors"]["low"] = ["short_term", "long_term"]
    settings["trust_floors"]["medium"] = ["profile"]
    settings["limits"]["query_max"] = 50
    settings["limits"]["fresh"] = True
