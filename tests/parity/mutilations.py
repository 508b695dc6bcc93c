"""Documents that the schemas refuse: a permitted one with a part removed, or of another type."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agent_runtime_ref import validation
from tests.parity.vocabulary import INT64_MAX

Path = tuple[str | int, ...]

STRANGE: tuple[Any, ...] = (
    None, True, False, "", "text", "1", "1790000000000000000", [], [None], [1], {}, {"a": None}, {"a": 1},
    INT64_MAX, -INT64_MAX - 1, 1.5, 0.25, [[]], [["profile"]],
)  # fmt: skip
_REMOVED = object()
_TRIES = 50


@dataclass(frozen=True, slots=True)
class Mutilation:
    """A document that its schema refuses, and what was done to it."""

    document: Any
    what: str
    index: int | None  # of the candidate that it was done to; None: to what stands for all of them


def mutilated(whole: dict[str, Any], schema: str, allowed: Sequence[int], random: Random) -> Mutilation:
    """Return `whole` with one part spoiled, so that its schema refuses it.

    `allowed` are the candidates that are permitted: only at one of these is a spoiled part worth a look.
    """
    if random.random() < 0.01:
        return Mutilation(random.choice((None, [], [whole], "text", 1, True)), "the whole", None)
    places = [path for path in _places(whole) if _index(path) is None or _index(path) in allowed]
    for _ in range(_TRIES):
        path = random.choice(places)
        value = _REMOVED if random.random() < 0.25 else _strange(random, whole, path)
        spoiled = _changed(whole, path, value)
        if not validation.is_valid(schema, spoiled):
            done = "removed" if value is _REMOVED else f"= {value!r}"
            where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path)
            return Mutilation(spoiled, f"${where} {done}", _index(path))
    raise AssertionError("nothing that was done to the document made it invalid")


def place_of(what: str) -> str:
    """Return where something was done, without numbers, so that cases of a kind can be counted."""
    return ".".join(part.split("[")[0] for part in what.split(" ")[0].split("."))


def _strange(random: Random, whole: Any, path: Path) -> Any:
    """Return a value of another type: one from the list, or the old one wrapped."""
    old = whole
    for step in path:
        old = old[step]
    others = (*STRANGE, [old], {"value": old}, str(old))
    # A fraction is refused by the schema; to a policy it is a number like any other, to be compared.
    return random.choice(
        [one for one in others if not (type(one) is float and type(old) in (int, type(None)))]
    )


def _index(path: Path) -> int | None:
    if len(path) > 1 and path[0] == "candidates" and isinstance(path[1], int):
        return path[1]
    return None


def _places(value: Any, path: Path = ()) -> Iterator[Path]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in items:
        yield (*path, name)
        yield from _places(part, (*path, name))


def _changed(whole: Any, path: Path, value: Any) -> Any:
    spoiled = copy.deepcopy(whole)
    part = spoiled
    for step in path[:-1]:
        part = part[step]
    if value is _REMOVED:
        del part[path[-1]]
    else:
        part[path[-1]] = copy.deepcopy(value)
    return spoiled
