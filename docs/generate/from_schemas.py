"""The page about the schemas: each field in a row, with its limits and the sentences of a refusal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.resources import schemas_path
from agent_runtime_ref.validation.schemas import nullable
from docs.generate.markdown import MARK, Part, page, sentences, table

_TYPES = {"object": "mapping", "array": "list", "string": "text", "boolean": "true or false"}
_HEAD = """\
Documents follow these JSON Schemas (draft 2020-12), which lie in `schemas/`.
A field that a schema does not name is refused, unless its description says otherwise.
`[]` stands for each item of a list, `*` for each name in a mapping."""
_COUNTS = (
    ("maxLength", "at most {} characters"),
    ("minItems", "at least {} of them"),
    ("maxItems", "at most {} of them"),
    ("minProperties", "at least {} of them"),
    ("maxProperties", "at most {} of them"),
)
_INNER = frozenset({"properties", "items", "type", "enum", "additionalProperties"})


@dataclass(frozen=True, slots=True)
class Row:
    """One field of a schema, with its path from the top of the document."""

    name: str
    type: str
    required: bool
    limits: str
    meaning: str


def schemas_page() -> str:
    """Return docs/reference/schemas.md."""
    paths = sorted(schemas_path().glob("*.schema.json"))
    parts: list[Part] = ["# Schemas", MARK.format(origin="schemas/"), _HEAD]
    for path in paths:
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts += [f"## {path.name.partition('.')[0]}", sentences(schema.get("description", ""))]
        parts += [f"`{schema['$id']}`", *_tables(schema)]
    return page(*parts)


def _tables(schema: Mapping[str, Any]) -> Iterator[Part]:
    shared = [
        (f"_{name}_", _type(schema, part), limits_of(part, schema))
        for name, part in schema.get("$defs", {}).items()
        if part.get("type") != "object"
    ]
    rows = [
        (f"`{row.name}`", row.type, "yes" if row.required else "no", row.limits, row.meaning)
        for row in outline(schema)
    ]
    if rows:
        yield table(("field", "type", "required", "limits", "meaning"), rows)
    if shared:
        yield table(("shared by fields", "type", "limits"), shared)
    found = sorted(set(_documented(schema)))
    if found:
        yield "Sentences of a refusal:"
        yield [f"- `` {one} ``" for one in found]


def read_schema(name: str) -> dict[str, Any]:
    """Return a schema by its name."""
    path = schemas_path() / f"{name}.schema.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def outline(schema: Mapping[str, Any]) -> Iterator[Row]:
    """Yield every field of a schema, outer fields before inner ones."""
    yield from _rows(schema, schema, "")


def _rows(schema: Mapping[str, Any], part: Mapping[str, Any], prefix: str) -> Iterator[Row]:
    for name, field in part.get("properties", {}).items():
        yield from _row(schema, field, prefix + name, name in part.get("required", ()))
    inner = part.get("additionalProperties")
    if isinstance(inner, Mapping) and inner.keys() & _INNER:
        yield from _row(schema, inner, prefix + "*", False)


def _row(schema: Mapping[str, Any], field: Mapping[str, Any], name: str, required: bool) -> Iterator[Row]:
    whole = _resolved(schema, field)
    limits = _shared(field) if not _type(schema, whole).startswith("mapping") else ""
    yield Row(
        name, _type(schema, whole), required, limits or limits_of(field, schema), whole.get("description", "")
    )
    yield from _rows(schema, whole, name + ".")
    items = whole.get("items")
    if isinstance(items, Mapping):
        yield from _rows(schema, _resolved(schema, items), name + "[].")


def _shared(field: Mapping[str, Any]) -> str:
    """Return the name of the definition that a field refers to, with what is the field's own."""
    if "$ref" not in field:
        return ""
    own = [_default(field)] if "default" in field or "x-default" in field else []
    return ", ".join([f"_{field['$ref'].rpartition('/')[2]}_", *own])


def _resolved(schema: Mapping[str, Any], field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a field with what it refers to; its own words win."""
    reference = field.get("$ref")
    option = nullable(field)
    if option is not None:
        return {**_resolved(schema, option), **field, "x-nullable": True}
    if reference is None:
        return dict(field)
    target: Any = schema
    for step in reference.removeprefix("#/").split("/"):
        target = target[step]
    return {**_resolved(schema, target), **field}


def _type(schema: Mapping[str, Any], field: Mapping[str, Any]) -> str:
    option = nullable(field)
    if option is not None:
        return _type(schema, _resolved(schema, option)) + " or null"
    name = field.get("type")
    if name is None:
        values = field.get("enum", [field["const"]] if "const" in field else [None])
        return {str: "text", bool: "true or false", int: "integer"}.get(type(values[0]), "any")
    items = field.get("items")
    if name == "array" and isinstance(items, Mapping):
        return f"list of {_type(schema, _resolved(schema, items))}"
    names = name if isinstance(name, list) else [name]
    return " or ".join(_TYPES.get(one, str(one)) for one in names)


def limits_of(field: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the limits of a field in words."""
    return ", ".join(_limits(_resolved(schema, field), schema))


def _limits(field: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    if "const" in field:
        yield f"always `{json.dumps(field['const'])}`"
    if "enum" in field:
        yield "one of " + ", ".join(f"`{value}`" for value in field["enum"])
    if "minimum" in field and "maximum" in field:
        yield f"{field['minimum']} to {field['maximum']}"
    yield from (words.format(field[name]) for name, words in _COUNTS if name in field)
    if field.get("uniqueItems"):
        yield "none twice"
    yield from _patterns(field)
    if "default" in field or "x-default" in field:
        yield _default(field)
    items = field.get("items", {})
    if "$ref" in items and _type(schema, _resolved(schema, items)) != "mapping":
        yield f"each as _{items['$ref'].rpartition('/')[2]}_"
    elif "pattern" in items:
        yield f"each {', '.join(_limits(items, schema))}"


def _patterns(field: Mapping[str, Any]) -> Iterator[str]:
    if "format" in field:
        yield "an instant with its zone, to the microsecond"
    elif "pattern" in field:
        # The class of all that is not white space is one that nobody wants to read.
        blank = field["pattern"].startswith("[^\\t-\\r")
        yield "not blank" if blank else f"matches `{field['pattern']}`"
    forbidden = field.get("not", {}).get("pattern")
    if forbidden is not None:
        nul = forbidden == "\\x00"
        yield "no NUL character" if nul else "no control, bidirectional or zero-width characters"


def _default(field: Mapping[str, Any]) -> str:
    return f"default `{field.get('default', field.get('x-default'))}`"


def _documented(part: object) -> Iterator[str]:
    """Yield every documented sentence of a schema."""
    if isinstance(part, Mapping):
        for name, value in part.items():
            yield from (_texts if name == "errorMessage" else _documented)(value)
    elif isinstance(part, list):
        for value in part:
            yield from _documented(value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
