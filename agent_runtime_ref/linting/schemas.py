"""Schemas: draft, identity, references, and whether each refusal has a sentence to be told with."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.linting.documents import unreadable
from agent_runtime_ref.linting.findings import Finding, finding
from agent_runtime_ref.linting.targets import SCHEMA_SUFFIX
from agent_runtime_ref.validation.schemas import CompiledSchema
from agent_runtime_ref.yaml_source import Positions, SourceDocument, read_file

__all__ = ["compiled_schema", "lint_ids", "lint_schema"]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
SAFE_INTEGER_MAX = 2**53 - 1
_VERSIONED = re.compile(r"[:/]v?[0-9]+(\.[0-9]+)*(/|\.json|\.schema\.json)*$")
_MAPS = ("properties", "$defs", "patternProperties", "dependentSchemas")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "propertyNames", "contains",
           "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
# Constraints with which a documented sentence deals; limits of size speak for themselves.
_TOLD = ("type", "pattern", "enum", "minimum", "maximum", "x-uniqueBy")
_FILLED_IN = frozenset({"schema", "path", "field", "idx", "value"})

Location = tuple[str | int, ...]
Part = Mapping[str, Any]


def lint_schema(path: Path) -> Iterator[Finding]:
    """Yield what is wrong with one schema."""
    try:
        document = read_file(path)
    except DocumentUnreadableError as error:
        yield unreadable(path, error)
        return
    broken = list(_against_metaschema(path, document))
    yield from broken
    schema = document.value
    if not isinstance(schema, Mapping):
        return
    yield from _identity(path, schema, document.positions)
    if broken:
        return  # the rest relies on keywords that are what the metaschema says
    references = list(_references(path, schema, document.positions))
    yield from references
    if not references:
        yield from _compiles(path, schema)
    for location, part in _parts(schema, ()):
        yield from _sentences(path, schema, location, part, document.positions)


def lint_ids(paths: Iterable[Path]) -> Iterator[Finding]:
    """Yield a finding for each schema whose `$id` another one has, too."""
    seen: dict[str, Path] = {}
    for path in sorted(paths):
        try:
            document = read_file(path)
        except DocumentUnreadableError:
            continue
        name = document.value.get("$id") if isinstance(document.value, Mapping) else None
        if isinstance(name, str) and seen.setdefault(name, path) is not path:
            place = document.positions.place(("$id",))
            yield finding("LINT-S-004", path, f"`$id` {name} is that of `{seen[name].name}`, too", place)


def compiled_schema(path: Path) -> CompiledSchema | None:
    """Return a schema to check examples with; None where it cannot be used, which `lint_schema` reports."""
    try:
        value: Any = read_file(path).value
        return CompiledSchema(path.name.removesuffix(SCHEMA_SUFFIX), value)
    except (DocumentUnreadableError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        return None


def _against_metaschema(path: Path, document: SourceDocument) -> Iterator[Finding]:
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(document.value)
    seen: set[tuple[object, ...]] = set()
    for error in errors:
        location = tuple(error.absolute_path)
        if (location, error.message) not in seen:  # two vocabularies may say the same
            seen.add((location, error.message))
            message = f"{_pointer(location)}: {error.message}"
            yield finding("LINT-S-001", path, message, document.positions.place(location))


def _identity(path: Path, schema: Part, positions: Positions) -> Iterator[Finding]:
    draft = schema.get("$schema")
    if draft not in (DRAFT, DRAFT + "#"):
        message = "no `$schema`" if draft is None else f"`$schema` is `{draft}`"
        place = positions.place(("$schema",))
        yield finding("LINT-S-002", path, f"{message}; draft 2020-12 is wanted", place)
    name = schema.get("$id")
    if not isinstance(name, str) or not name:
        yield finding("LINT-S-003", path, "no `$id`", positions.place(()))
    elif not _VERSIONED.search(name):
        yield finding("LINT-S-005", path, f"`$id` {name} ends with no version", positions.place(("$id",)))


def _references(path: Path, schema: Part, positions: Positions) -> Iterator[Finding]:
    for location, part in _parts(schema, ()):
        reference = part.get("$ref")
        if isinstance(reference, str) and not _leads_somewhere(schema, reference):
            place = positions.place((*location, "$ref"))
            yield finding("LINT-S-006", path, f"`$ref` {reference} is no entry of this file's `$defs`", place)


def _leads_somewhere(schema: Part, reference: str) -> bool:
    """Say whether the loader finds what a reference names: an entry of `$defs`, and nothing else."""
    name = reference.removeprefix("#/$defs/")
    return name != reference and isinstance(schema.get("$defs", {}).get(name), Mapping)


def _compiles(path: Path, schema: Part) -> Iterator[Finding]:
    try:
        CompiledSchema(path.name.removesuffix(SCHEMA_SUFFIX), schema)
    except RecursionError:
        yield finding("LINT-S-008", path, "a part of the schema refers to itself without an end")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        yield finding("LINT-S-008", path, f"cannot be compiled: {said}")


def _sentences(
    path: Path, schema: Part, location: Location, part: Part, positions: Positions
) -> Iterator[Finding]:
    """Yield what is wrong with the sentences of one part."""
    messages = part.get("errorMessage")
    place = positions.place((*location, "errorMessage"))
    where = _pointer(location)
    for sentence in _texts(messages):
        for name in _unknown_names(sentence, location, schema):
            message = f"{where}: nothing fills in `{{{name}}}` in `{sentence}`"
            yield finding("LINT-S-007", path, message, place)
    if not isinstance(messages, Mapping):
        return  # one sentence for all constraints, or none at all
    for keyword in messages:
        if keyword not in part and keyword != "x-readable":
            message = f"{where}: `errorMessage` speaks of `{keyword}`, which the part does not have"
            yield finding("LINT-S-010", path, message, positions.place((*location, "errorMessage", keyword)))
    for keyword in _untold(schema, part, messages):
        yield finding("LINT-S-009", path, f"{where}: `errorMessage` has no sentence for `{keyword}`", place)


def _untold(schema: Part, part: Part, messages: Part) -> Iterator[str]:
    """Yield the constraints of a documented part that have no sentence."""
    if any(_is_documented(sentence) for sentence in messages.values()):
        for keyword in _TOLD:
            exact_only = keyword == "maximum" and part.get(keyword, 0) >= SAFE_INTEGER_MAX
            if keyword in part and keyword not in messages and not exact_only:
                yield keyword
    required = messages.get("required")
    if isinstance(required, Mapping):
        for name in part.get("required", ()):
            named = _resolved(schema, part.get("properties", {}).get(name, {})).get("errorMessage")
            own: Part = named if isinstance(named, Mapping) else {}
            documented = any(_is_documented(one) for one in own.values())
            # A missing property without a sentence of its own is told with its `type` sentence.
            if name not in required and documented and not _is_documented(own.get("type")):
                yield f"required.{name}"


def _is_documented(sentence: object) -> bool:
    """Say whether a sentence is one of the documented ones, which speak of fields and not of paths."""
    return isinstance(sentence, str) and "{path}" not in sentence


def _unknown_names(sentence: str, location: Location, schema: Part) -> Iterator[str]:
    """Yield the names in braces for which a refusal has no value."""
    fields = {str(part) for part in location} | _property_names(schema)
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None]
    except ValueError:
        yield "..."
        return
    for name in names:
        if name not in _FILLED_IN and name != "reason" and name not in fields:
            yield name


def _property_names(schema: Part) -> set[str]:
    return {str(name) for _, part in _parts(schema, ()) for name in part.get("properties", {})}


def _texts(messages: object) -> Iterator[str]:
    if isinstance(messages, str):
        yield messages
    elif isinstance(messages, Mapping):
        for value in messages.values():
            yield from _texts(value)


def _resolved(schema: Part, part: object) -> Part:
    """Return the part that a reference leads to, or the part; empty for the schemas `true` and `false`."""
    name = str(part.get("$ref", "")).removeprefix("#/$defs/") if isinstance(part, Mapping) else ""
    target = schema.get("$defs", {}).get(name, part)
    return target if isinstance(target, Mapping) else {}


def _parts(part: object, location: Location) -> Iterator[tuple[Location, Part]]:
    """Yield each part of a schema that is a schema itself, with its place."""
    if not isinstance(part, Mapping):
        return
    yield location, part
    for keyword in _MAPS:
        if isinstance(part.get(keyword), Mapping):
            for name, child in part[keyword].items():
                yield from _parts(child, (*location, keyword, name))
    for keyword in _SINGLE:
        yield from _parts(part.get(keyword), (*location, keyword))
    for keyword in _LISTS:
        for index, child in enumerate(part.get(keyword, ()) if isinstance(part.get(keyword), list) else ()):
            yield from _parts(child, (*location, keyword, index))


def _pointer(location: Location) -> str:
    return "#" + "".join(f"/{part}" for part in location)
