"""The schemas, compiled once: `accepts` is the verdict on the hot path.

`jsonschema-rs` decides. What JSON Schema cannot say is decided here over the raw values: `1.0` is no integer,
a Decimal no number, NaN nothing at all, and no two seeds may share an id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from agent_runtime_ref.errors import SchemaNotFoundError
from agent_runtime_ref.resources import schemas_path
from agent_runtime_ref.validation.findings import Location

__all__ = [
    "DOCUMENT_KINDS",
    "CompiledSchema",
    "compiled",
    "duplicates",
    "nullable",
    "schema_document",
    "schema_names",
]

DOCUMENT_KINDS = ("memory_record", "retrieval_query", "retrieval_result")

DEPTH_MAX = 32
_SUFFIX = ".schema.json"
_ANY = "*"  # stands for each item of a list and each value of a mapping without named properties
_NULLABLE = "x-nullable"  # marks a resolved part that may be null

Json = Mapping[str, Any]


def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas, sorted."""
    return tuple(sorted(path.name.removesuffix(_SUFFIX) for path in schemas_path().glob("*" + _SUFFIX)))


@cache
def schema_document(name: str) -> Json:
    """Return a schema as it stands in its file; not to be changed.

    Raises:
        SchemaNotFoundError: there is none of that name.
    """
    folder = schemas_path()
    path = folder / (name + _SUFFIX)
    if not name.isidentifier() or not path.is_file():
        raise SchemaNotFoundError(name, folder)
    document: Json = json.loads(path.read_bytes())
    return document


@cache
def compiled(name: str) -> CompiledSchema:
    """Return the compiled schema of that name."""
    return CompiledSchema(name, schema_document(name))


class CompiledSchema:
    """One schema with its verdict, its field order and its instants."""

    __slots__ = (
        "_deep",
        "_is_valid",
        "_nested",
        "_open",
        "_top",
        "_unique",
        "instant_fields",
        "name",
        "schema",
    )

    def __init__(self, name: str, schema: Json) -> None:
        import jsonschema_rs

        self.name = name
        self.schema = schema
        self._is_valid = jsonschema_rs.Draft202012Validator(dict(schema), validate_formats=True).is_valid
        parts = list(_parts(schema, schema, ()))
        numbers = [(path, _number_types(part)) for path, part in parts if _number_types(part)]
        # Top-level numbers, the usual case, are looked up without a walk.
        self._top = tuple((path[0], types) for path, types in numbers if len(path) == 1 and path[0] != _ANY)
        # So are those of a named part; the rest, in lists and open mappings, is rare.
        self._nested = tuple((path, types) for path, types in numbers if len(path) == 2 and _ANY not in path)
        self._deep = tuple((path, types) for path, types in numbers if len(path) > 2 or _ANY in path)
        self._open = tuple(path for path, part in parts if _is_open(part))
        self._unique = tuple((path, part) for path, part in parts if "x-uniqueBy" in part)
        self.instant_fields = frozenset(
            str(path[-1]) for path, part in parts if part.get("format") == "date-time"
        )

    def accepts(self, document: object) -> bool:
        """Say whether `document` follows the schema."""
        if not self.accepts_roughly(document):
            return False
        assert isinstance(document, Mapping)  # every schema says so at its root
        for key, types in self._top:
            if key in document and type(document[key]) not in types:
                return False
        for (part, key), types in self._nested:
            if part in document and key in document[part] and type(document[part][key]) not in types:
                return False
        return not (self._deep or self._open or self._unique) or self._accepts_parts(document)

    def accepts_roughly(self, document: object) -> bool:
        """Say whether `document` follows the schema, with `1.0` for an integer: a tenth of the price."""
        try:
            return bool(self._is_valid(document))
        except (ValueError, TypeError, RecursionError):
            return False  # no JSON value: a foreign type, a key that is no string, a lone surrogate

    def _accepts_parts(self, document: object) -> bool:
        """Check the numbers below the top level, the parts that are open, and uniqueness."""
        return (
            all(type(value) in types for path, types in self._deep for value in _values(document, path))
            and all(is_json(value) for path in self._open for value in _values(document, path))
            and not any(
                duplicates(value, part) for path, part in self._unique for value in _values(document, path)
            )
        )

    def resolve(self, part: Json) -> Json:
        """Return the schema that a part refers to, or the part."""
        return _resolve(self.schema, part)

    def at(self, location: Location) -> Json:
        """Return the schema of one part of a document; empty where the schema does not know it."""
        part: Json = self.schema
        for name in location:
            child = part.get("items") if isinstance(name, int) else _property(part, name)
            if not isinstance(child, Mapping):
                return {}
            part = self.resolve(child)
        return part


def duplicates(items: object, part: Json) -> list[tuple[int, str]]:
    """Return index and value of each item whose `x-uniqueBy` field was seen before, defaults counted."""
    key = part["x-uniqueBy"]
    default = part["items"]["properties"][key].get("x-default")
    seen: set[str] = set()
    found = []
    for index, item in enumerate(items if isinstance(items, list | tuple) else ()):
        fallback = default and default.format(idx=index + 1)
        value = item.get(key, fallback) if isinstance(item, Mapping) else None
        if isinstance(value, str) and value in seen:
            found.append((index, value))
        elif isinstance(value, str):
            seen.add(value)
    return found


def is_json(value: object, depth: int = 0) -> bool:
    """Say whether a value is plain JSON, no deeper than `DEPTH_MAX`; NaN and infinity are not."""
    if value is None or type(value) in (bool, int):
        return True
    if type(value) is float:
        return value - value == 0.0
    if isinstance(value, str):
        return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
    if depth >= DEPTH_MAX:
        return False
    if isinstance(value, list | tuple):
        return all(is_json(item, depth + 1) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and is_json(item, depth + 1) for key, item in value.items())
    return False


def _resolve(root: Json, part: Json) -> Json:
    """Follow a local `$ref` and look into what may be null; what stands beside it is kept."""
    if "$ref" in part:
        name = part["$ref"].removeprefix("#/$defs/")
        return _resolve(root, {**root["$defs"][name], **_without(part, "$ref")})
    option = nullable(part)
    if option is None:
        return part
    return {**_resolve(root, option), **_without(part, "anyOf"), _NULLABLE: True}


def nullable(part: Json) -> Json | None:
    """Return what a part describes that may be null, written `anyOf: [..., {"type": "null"}]`; else None.

    A list of types says the same, but the type checker of OPA reads the first name of one only.
    """
    options = part.get("anyOf")
    if isinstance(options, list) and len(options) == 2 and options[1] == {"type": "null"}:
        option: Json = options[0]
        return option
    return None


def _without(part: Json, keyword: str) -> Json:
    return {key: value for key, value in part.items() if key != keyword}


def _property(part: Json, name: str) -> object:
    """Return the schema of a property, named or additional."""
    return part.get("properties", {}).get(name, part.get("additionalProperties"))


def _parts(root: Json, part: Json, path: Location) -> Iterator[tuple[Location, Json]]:
    """Yield each part of a schema that describes a value, with its path."""
    part = _resolve(root, part)
    yield path, part
    for name, child in part.get("properties", {}).items():
        yield from _parts(root, child, (*path, name))
    for keyword in ("items", "additionalProperties"):
        if isinstance(part.get(keyword), Mapping):
            yield from _parts(root, part[keyword], (*path, _ANY))


def _number_types(part: Json) -> tuple[type, ...]:
    """Return the exact types that a number of this part may have; empty where it is no number."""
    types: dict[object, tuple[type, ...]] = {"integer": (int,), "number": (int, float)}
    named = part.get("type")
    found = types.get(named, ()) if isinstance(named, str) else ()
    return (*found, type(None)) if found and _NULLABLE in part else found


def _is_open(part: Json) -> bool:
    """Say whether a mapping may hold values that the schema does not describe."""
    return part.get("type") == "object" and part.get("additionalProperties", True) is True


def _values(document: object, path: Location) -> Iterable[Any]:
    """Return all values at a path of a document."""
    found: list[Any] = [document]
    for name in path:
        found = [child for value in found for child in _children(value, name)]
    return found


def _children(value: object, name: str | int) -> Iterable[Any]:
    """Return the children of a value that one step of a path leads to."""
    if name == _ANY and isinstance(value, Mapping):
        return value.values()
    if name == _ANY:
        return value if isinstance(value, list | tuple) else ()
    return (value[name],) if isinstance(value, Mapping) and name in value else ()
