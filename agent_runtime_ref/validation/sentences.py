"""Turns a schema error into its sentence: `errorMessage`, else `{kind} {path}: {what is wanted}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime_ref.validation.findings import Location, json_path
from agent_runtime_ref.validation.schemas import CompiledSchema

__all__ = ["renamed", "sentence", "unreadable_sentence"]

VALUE_MAX = 200  # characters of a user's own value that a sentence repeats

_TYPES = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def sentence(
    schema: CompiledSchema, location: Location, error: Any, fields: Mapping[str, str]
) -> tuple[str, bool]:
    """Return the sentence of an error and whether it is one of type.

    `error` is a jsonschema ValidationError; `location` names the property itself where one is missing.
    """
    keyword = str(error.validator)
    template, wrong_type = _template(schema, location, error, keyword)
    if template is None:
        template = "{schema} {path}: " + _wanted(keyword, error).replace("{", "{{").replace("}", "}}")
    return template.format_map(_values(schema, location, error, fields)), wrong_type


def unreadable_sentence(schema: CompiledSchema | None, reason: str) -> str:
    """Return the sentence for a file that is no document at all."""
    template = _message(schema.schema, "x-readable") if schema else None
    if isinstance(template, str):
        return template.format(reason=reason)
    return f"{schema.name if schema else 'document'} $: is not readable: {reason}"


def _template(
    schema: CompiledSchema, location: Location, error: Any, keyword: str
) -> tuple[str | None, bool]:
    """Return the documented template, if there is one.

    A missing property without a sentence of its own is told as a wrong one: with its `type` sentence.
    """
    message = _message(error.schema, keyword)
    if keyword != "required":
        return (message if isinstance(message, str) else None), keyword == "type"
    if isinstance(message, Mapping):
        message = message.get(str(location[-1]))
    if isinstance(message, str):
        return message, False
    own = _message(schema.at(location), "type")
    return (own, True) if isinstance(own, str) and "{path}" not in own else (None, False)


def _message(part: object, keyword: str) -> object:
    """Return what `errorMessage` says of a keyword; one string stands for all keywords."""
    messages = part.get("errorMessage") if isinstance(part, Mapping) else None
    return messages.get(keyword) if isinstance(messages, Mapping) else messages


def _values(
    schema: CompiledSchema, location: Location, error: Any, fields: Mapping[str, str]
) -> dict[str, object]:
    """Return what a template may name: the schema, the path, the field, its index and its value."""
    named = renamed(location, fields)
    field = next((part for part in reversed(named) if isinstance(part, str)), "")
    index = next((part for part in location if isinstance(part, int)), 0)
    value = str(error.instance)
    if len(value) > VALUE_MAX:
        value = value[:VALUE_MAX] + "..."
    path = json_path(named)
    known = {"schema": schema.name, "path": path, "field": field, "idx": index + 1, "value": value}
    return {field: value, **known}


def renamed(location: Location, fields: Mapping[str, str]) -> Location:
    """Return a location with the names that a sentence uses in place of the document's own."""
    return tuple(fields.get(part, part) if isinstance(part, str) else part for part in location)


def _wanted(keyword: str, error: Any) -> str:
    """Say what is wanted where the schema does not say it itself."""
    bound = error.validator_value
    wanted = {
        "required": "is required",
        "additionalProperties": "is not known",
        "keys": "must have string keys only",
        "encoding": "must be text without lone surrogates",
        "json": "must be plain JSON without NaN and infinity",
        "format": f"must be of format {bound}",
        "pattern": f"must match {bound}",
        "not": "is not permitted",
        "minimum": f"must be at least {bound}",
        "maximum": f"must be at most {bound}",
        "minLength": f"must be at least {bound} characters",
        "maxLength": f"must be at most {bound} characters",
        "minItems": f"must have at least {bound} items",
        "maxItems": f"must have at most {bound} items",
        "maxProperties": f"must have at most {bound} fields",
        "uniqueItems": "must not name anything twice",
        "propertyNames": "has a field name that is not permitted",
    }
    if keyword == "type":
        names = [bound] if isinstance(bound, str) else bound
        return "must be " + " or ".join(_TYPES[name] for name in names)
    if keyword in ("const", "enum"):
        values = [bound] if keyword == "const" else bound
        names = ", ".join(f"`{item}`" for item in values)
        return f"must be one of {names}" if len(values) > 1 else f"must be {names}"
    return wanted.get(keyword, f"does not satisfy {keyword}")
