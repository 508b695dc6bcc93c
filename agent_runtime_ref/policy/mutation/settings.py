"""Mutants of `data.memory.settings`: thresholds moved, switches flipped, entries taken out.

Only what a rule reads is changed, and only into settings that a bundle could be opened with: a change that
the loader refuses needs no test.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.policy.mutation.mutants import Mutant
from agent_runtime_ref.policy.portable import dotted
from agent_runtime_ref.policy.settings_check import check_references

__all__ = ["settings_mutants", "settings_read"]

Location = tuple[str | int, ...]
Change = tuple[str, str, str, dict[str, Any]]  # operation, original, mutated, settings after it

SETTINGS: Location = ("memory", "settings")
REMOVED = "removed"
_IMPORT = re.compile(r"^\s*import\b.*$", re.MULTILINE)
_FIELD = re.compile(r"\.([A-Za-z_]\w*)")


def settings_mutants(data_json: str, modules: Sequence[tuple[str, str]], folder: Path) -> Iterator[Mutant]:
    """Yield the mutants of the settings that `modules` read, in the order of the settings."""
    data = json.loads(data_json)
    settings = data.get("memory", {}).get("settings", {})
    places = _Places(folder)
    for location in _leaves(settings, (), settings_read(settings, modules), _fields(modules)):
        for operation, original, mutated, changed in _changes(settings, location):
            file, line = places.of(location)
            content = json.dumps({**data, "memory": {**data["memory"], "settings": changed}})
            rule = ".".join(("settings", *map(str, location)))
            yield Mutant(file, line, rule, operation, original, mutated, content, "")


def settings_read(settings: Mapping[str, Any], modules: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Return the settings that rules name; all of them where a rule takes them by a computed name."""
    named: set[str] = set()
    for _, text in modules:
        code = dotted(text)
        reference = r"(?<![\w.])data\b"
        for step in ("data", *SETTINGS):
            reference = reference if step == "data" else rf"{reference}\.{step}\b"
            reference, is_taken_whole = _known_as(reference, str(step), code)
            if is_taken_whole:
                return frozenset(settings)
        named |= set(re.findall(rf"{reference}\.(\w+)", code))
    return frozenset(named & set(settings))


def _known_as(reference: str, name: str, code: str) -> tuple[str, bool]:
    """Return a pattern of a reference and of the names that a module gives to what it leads to.

    Also whether the module takes all of it at once: by a computed name, or as the argument of a function.
    """
    imported = re.findall(rf"^\s*import\s+{reference}(?:\s+as\s+(\w+))?\s*$", code, re.MULTILINE)
    code = _IMPORT.sub("", code)
    known, names = reference, {one or name for one in imported}
    for _ in range(2):  # a name may be given to what has one already
        known = "|".join([reference, *(rf"(?<![\w.]){one}\b" for one in sorted(names))])
        names |= set(re.findall(rf"\b(\w+)\s*:=\s*(?:{known})\s*$", code, re.MULTILINE))
    for one in names:
        code = re.sub(rf"\b{one}\s*:=\s*(?:{known})\s*$", "", code, flags=re.MULTILINE)
    return rf"(?:{known})", re.search(rf"(?:{known})(?!\.\w)", code) is not None


def _fields(modules: Sequence[tuple[str, str]]) -> frozenset[str]:
    """Return every name that stands behind a dot in the rules."""
    return frozenset(name for _, text in modules for name in _FIELD.findall(dotted(text)))


def _leaves(
    value: Any, location: Location, read: frozenset[str], fields: frozenset[str]
) -> Iterator[Location]:
    """Yield where numbers, booleans, texts and entries of lists stand.

    Of a mapping whose keys are fields that rules name, only those that they do name are looked at; any other
    is a table.
    """
    if isinstance(value, Mapping):
        keys = read if not location else (set(value) & fields) or set(value)
        for key, part in value.items():
            if key in keys:
                yield from _leaves(part, (*location, key), read, fields)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield (*location, index)
            if isinstance(part, Mapping | list):
                yield from _leaves(part, (*location, index), read, fields)
    else:
        yield location


def _changes(settings: Mapping[str, Any], location: Location) -> Iterator[Change]:
    """Yield the changes at a place that a bundle could be opened with."""
    parent = _at(settings, location[:-1])
    value = parent[location[-1]]
    if isinstance(parent, list):
        yield from _usable(("entry", _json(value), REMOVED, _changed(settings, location)))
    elif isinstance(value, bool):
        flipped = _changed(settings, location, not value)
        found = [*_usable(("boolean", _json(value), _json(not value), flipped))]
        # A table of names that are all `true` has no place for a `false`; there the entry goes.
        yield from found or _usable(("entry", _json(value), REMOVED, _changed(settings, location)))
    elif isinstance(value, int):
        for moved in (value + 1, value - 1):
            yield from _usable(("number", _json(value), _json(moved), _changed(settings, location, moved)))
    else:
        for level in _neighbours(settings, value):
            yield from _usable(("level", _json(value), _json(level), _changed(settings, location, level)))


def _neighbours(settings: Mapping[str, Any], value: Any) -> Iterator[str]:
    """Yield the trust levels just below and above a text that is one."""
    ranks = settings.get("trust_ranks", {})
    if isinstance(value, str) and value in ranks:
        yield from (name for name, rank in ranks.items() if abs(rank - ranks[value]) == 1)


def _usable(change: Change) -> Iterator[Change]:
    settings = change[3]
    if validation.is_valid("policy_settings", settings) and next(check_references(settings), None) is None:
        yield change


def _changed(settings: Mapping[str, Any], location: Location, value: Any = REMOVED) -> dict[str, Any]:
    """Return a copy with another value at a place, or without the place."""
    changed = copy.deepcopy(dict(settings))
    parent = _at(changed, location[:-1])
    if value is REMOVED:
        del parent[location[-1]]
    else:
        parent[location[-1]] = value
    return changed


def _at(value: Any, location: Location) -> Any:
    for part in location:
        value = value[part]
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _Places:
    """Where settings stand in the files of a bundle."""

    def __init__(self, folder: Path) -> None:
        from agent_runtime_ref.yaml_source import read_file

        depths = {
            SETTINGS[:depth]: folder.joinpath(*map(str, SETTINGS[:depth]), "data.json") for depth in range(3)
        }
        self._files = [
            (path.relative_to(folder).as_posix(), SETTINGS[len(above) :], read_file(path).positions)
            for above, path in depths.items()
            if path.is_file()
        ]

    def of(self, location: Location) -> tuple[str, int]:
        """Return file and line of a setting."""
        for file, inside, positions in self._files:
            place = positions.place((*inside, *location))
            if place is not None:
                return file, place[0]
        return "data.json", 1
