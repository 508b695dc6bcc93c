"""Why a document was refused: every error, in the documented order, with the schema's own sentences.

Only called after a refusal, since `jsonschema` takes a third of a second to import. Its validator is bent to
the verdict of the hot path: integers, strings and patterns are the strict ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, TypeChecker, ValidationError, validators

from agent_runtime_ref.validation.findings import Finding, Located, Location, json_path
from agent_runtime_ref.validation.schemas import CompiledSchema, Json, duplicates, is_json, nullable
from agent_runtime_ref.validation.sentences import renamed, sentence

__all__ = ["explain"]

# Errors of one part are told in this order: the type first, then blank, then the bounds.
_KEYWORDS = ("type", "keys", "encoding", "required", "const", "enum", "format", "pattern", "maxLength")

Errors = Iterator[ValidationError]


def explain(
    schema: CompiledSchema,
    document: object,
    *,
    fields: Mapping[str, str],
    positions: Located | None,
    source: str | None,
) -> tuple[Finding, ...]:
    """Return all findings of a document, the documented errors before the others."""
    errors = [_located(error) for error in _validator(schema.name, schema).iter_errors(document)]
    errors.sort(key=lambda entry: _rank(schema, *entry))
    found: dict[tuple[Location, str], Finding] = {}
    for location, error in errors:
        words, wrong_type = sentence(schema, location, error, fields)
        keyword = str(error.validator)
        place = positions.place(location, key=keyword == "additionalProperties") if positions else None
        line, column = place or (None, None)
        path = json_path(renamed(location, fields))
        found.setdefault((location, words), Finding(words, keyword, path, wrong_type, line, column, source))
    return tuple(found.values())


def _located(error: ValidationError) -> tuple[Location, ValidationError]:
    """Return where an error belongs; a missing or unknown property is an error of that property."""
    location = tuple(error.absolute_path)
    if error.validator in ("required", "additionalProperties"):
        location = (*location, error.message)
    return location, error


def _rank(schema: CompiledSchema, location: Location, error: ValidationError) -> tuple[Any, ...]:
    """Return the key by which errors are ordered: what is ours comes after what is documented."""
    phase = {"additionalProperties": 1, "x-uniqueBy": 2}.get(str(error.validator), 0)
    keyword = _KEYWORDS.index(error.validator) if error.validator in _KEYWORDS else len(_KEYWORDS)
    return phase, tuple(_order(schema, location)), keyword, str(error.validator)


def _order(schema: CompiledSchema, location: Location) -> Iterator[tuple[int, str]]:
    """Yield the rank of each step: items by index, properties as the schema lists them, then by name."""
    for depth, name in enumerate(location):
        if isinstance(name, int):
            yield name, ""
        else:
            named = list(schema.at(location[:depth]).get("properties", {}))
            yield (named.index(name), "") if name in named else (len(named), name)


@cache
def _validator(name: str, schema: CompiledSchema) -> Any:
    """Return the explaining validator of a schema."""
    formats = FormatChecker(formats=())
    formats.checks("date-time")(_is_instant)
    keywords: dict[str, Callable[..., Errors]] = {
        "type": _type,
        "required": _required,
        "additionalProperties": _additional,
        "anyOf": _any_of,
        "minimum": _minimum,
        "maximum": _maximum,
        "pattern": _pattern,
        "x-uniqueBy": _unique,
    }
    extend: Any = validators.extend
    strict = extend(Draft202012Validator, keywords, type_checker=_types())
    return strict(dict(schema.schema), format_checker=formats)


def _is_string(_: object, value: object) -> bool:
    return type(value) is str or isinstance(value, str) and isinstance(value, Enum)


def _types() -> Any:
    """Return the types of the hot path: exact ones, with enum strings and tuples let in."""
    checker: Any = TypeChecker
    return checker(
        {
            "string": _is_string,
            "integer": lambda _, value: type(value) is int,
            "number": lambda _, value: type(value) in (int, float),
            "boolean": lambda _, value: type(value) is bool,
            "null": lambda _, value: value is None,
            "array": lambda _, value: isinstance(value, list | tuple),
            "object": lambda _, value: isinstance(value, dict),
        }
    )


def _type(validator: Any, wanted: str | Sequence[str], value: Any, schema: Json) -> Errors:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not any(validator.is_type(value, name) for name in names):
        yield ValidationError("wrong type")
    elif isinstance(value, dict) and not all(isinstance(key, str) for key in value):
        yield ValidationError("key", validator="keys")
    elif isinstance(value, str) and not is_json(value):
        yield ValidationError("surrogate", validator="encoding")
    elif isinstance(value, dict) and schema.get("additionalProperties", True) is True and not is_json(value):
        yield ValidationError("open part", validator="json")


def _required(validator: Any, names: Sequence[str], value: Any, schema: Json) -> Errors:
    if validator.is_type(value, "object"):
        yield from (ValidationError(name) for name in names if name not in value)


def _additional(validator: Any, wanted: object, value: Any, schema: Json) -> Errors:
    if not validator.is_type(value, "object"):
        return
    for name in [key for key in value if isinstance(key, str) and key not in schema.get("properties", {})]:
        if wanted is False:
            yield ValidationError(name)
        elif isinstance(wanted, Mapping):
            yield from validator.descend(value[name], wanted, path=name)


def _any_of(validator: Any, options: Sequence[Json], value: Any, schema: Json) -> Errors:
    """Tell what is wrong with a value that may be null, and not that it is neither the one nor the other."""
    option = nullable(schema)
    if option is None:
        yield from Draft202012Validator.VALIDATORS["anyOf"](validator, options, value, schema)
    elif value is not None:
        yield from validator.descend(value, option)


def _minimum(validator: Any, bound: float, value: Any, schema: Json) -> Errors:
    # Written so that NaN, which compares with nothing, is outside.
    if validator.is_type(value, "number") and not value >= bound:
        yield ValidationError("too small")


def _maximum(validator: Any, bound: float, value: Any, schema: Json) -> Errors:
    if validator.is_type(value, "number") and not value <= bound:
        yield ValidationError("too large")


def _pattern(validator: Any, pattern: str, value: Any, schema: Json) -> Errors:
    # JSON Schema's `$` is the end of the text; Python's also stands before a last line break.
    if validator.is_type(value, "string"):
        exact = pattern[:-1] + r"\Z" if pattern.endswith("$") else pattern
        if not re.search(exact, value):
            yield ValidationError("no match")


def _unique(validator: Any, key: str, value: Any, schema: Json) -> Errors:
    for index, name in duplicates(value, schema):
        yield ValidationError(name, path=(index, key), instance=name)


def _is_instant(value: object) -> bool:
    """Say whether a string is an instant that a calendar knows; the pattern demands form and zone."""
    from datetime import datetime

    if not isinstance(value, str):
        return True
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
