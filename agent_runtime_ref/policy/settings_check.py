"""What a schema cannot say of the settings: that every name they refer to is one they define."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["check_references", "line_of"]

_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]")


def line_of(path: str, raw: bytes) -> int | None:
    """Return the line of a JSON file where the value at `path`, such as $.limits.query_max, stands.

    Of a value that is missing: the line of what it is missing in; None where nothing is known.
    """
    from agent_runtime_ref.errors import DocumentUnreadableError
    from agent_runtime_ref.yaml_source import read_json

    location = [name or int(index) for name, index in _STEP.findall(path)]
    try:
        positions = read_json(raw, source="").positions
    except DocumentUnreadableError:
        return None
    place = positions.place(tuple(location))
    return None if place is None else place[0]


def check_references(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each reference that leads nowhere; the settings follow their schema already."""
    classes = settings["classes"]
    yield from _known(
        "purposes", (name for one in settings["purposes"].values() for name in one["classes"]), classes
    )
    yield from _known("permitted", settings["permitted"], classes)
    yield from _known("provenance_classes", settings["provenance_classes"], classes)
    yield from _once(
        "trust_floors", (name for group in settings["trust_floors"].values() for name in group), classes
    )
    yield from _once(
        "age_limits", (name for limit in settings["age_limits"] for name in limit["classes"]), classes
    )
    yield from _known("trust_floors", settings["trust_floors"], settings["trust_ranks"], "trust level")
    sources = settings["sources"]
    for memory_class, kinds in settings["permitted"].items():
        for kind, permitted in kinds.items():
            yield from _known(f"permitted.{memory_class}.{kind}", permitted, sources, "source")
    yield from _known("conversation.sources", settings["conversation"]["sources"], sources, "source")
    yield from _known("relearn_sources", settings["relearn_sources"], sources, "source")
    yield from _known("inspection_purpose", [settings["inspection_purpose"]], settings["purposes"], "purpose")


def _known(
    place: str, names: Iterable[str], known: Mapping[str, Any], what: str = "memory class"
) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"memory.settings.{place} names the {what} `{name}`, which the settings do not define"


def _once(place: str, names: Iterable[str], classes: Mapping[str, Any]) -> Iterator[str]:
    """A class that no group names would have no bound at all; one named twice would have two."""
    counted = Counter(names)
    yield from _known(place, counted, classes)
    for name in classes:
        if counted[name] != 1:
            yield f"memory.settings.{place} must name the class `{name}` once, not {counted[name]} times"
