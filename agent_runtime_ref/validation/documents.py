"""Loads documents of every kind: from a file with places, or from a mapping, and checks them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from agent_runtime_ref.errors import DocumentTypeError, DocumentUnreadableError, DocumentValueError
from agent_runtime_ref.validation.schemas import DOCUMENT_KINDS, CompiledSchema, compiled
from agent_runtime_ref.validation.sentences import unreadable_sentence
from agent_runtime_ref.yaml_source import Positions, SourceDocument, read_file

__all__ = ["check_source", "load_document", "read_document"]

# The strings of these documents are stripped before they are checked (contracts of the seed loader).
_STRIPPED = frozenset({"memory_store_config"})
# Without a schema the kind is not known before the file is read; these are the instants of the kinds.
_INSTANTS_BY_KIND = tuple(DOCUMENT_KINDS)


def load_document(source: object, *, schema: str | None = None) -> dict[str, Any]:
    """Return a checked document: from a path (YAML, or JSON by its ending) or from a mapping.

    Without `schema` the document's own `kind` names it. Strings are as written; an aware datetime in an
    instant field becomes its text.

    Raises:
        DocumentTypeError, DocumentValueError: with `.path`, and for a file `.line`, `.column` and `.source`.
    """
    document = read_document(source, schema=schema)
    return check_source(document, schema or _kind(document))


def read_document(source: object, *, schema: str | None = None) -> SourceDocument:
    """Return a document that has not been checked yet, with its places.

    Raises:
        DocumentUnreadableError: the file is no document that means one thing only.
    """
    known = compiled(schema) if schema is not None else None
    instants = known.instant_fields if known else _all_instants()
    if not isinstance(source, str | os.PathLike):
        return SourceDocument(_plain(source, instants, None, 0), Positions(), "")
    try:
        return read_file(os.fspath(source), instant_fields=instants)
    except DocumentUnreadableError as error:
        raise _reworded(error, known) from error.__cause__


def check_source(document: SourceDocument, schema: str) -> dict[str, Any]:
    """Return the checked value of a document that was read."""
    from agent_runtime_ref.validation import check

    _require_content(document, schema)
    value = _stripped(document.value) if schema in _STRIPPED else document.value
    check(schema, value, positions=document.positions, source=document.source or None)
    assert isinstance(value, dict)
    return value


def _require_content(document: SourceDocument, schema: str) -> None:
    """Return if there is something in the file that was read; a documented sentence says so in its words.

    Raises:
        DocumentTypeError: there is nothing.
    """
    empty = document.value is None and bool(document.source) and not document.positions.values
    if empty and schema not in _STRIPPED:
        raise DocumentTypeError(f"{schema} $: is empty", source=document.source, line=1, column=1)


def _reworded(error: DocumentUnreadableError, schema: CompiledSchema | None) -> DocumentUnreadableError:
    """Return the refusal with the sentence of its schema."""
    return DocumentUnreadableError(
        unreadable_sentence(schema, error.reason),
        reason=error.reason,
        line=error.line,
        column=error.column,
        source=error.source,
    )


def _kind(document: SourceDocument) -> str:
    """Return the kind that a document says it is of."""
    _require_content(document, "document")
    kind = document.value.get("kind") if isinstance(document.value, dict) else None
    if isinstance(kind, str) and kind in DOCUMENT_KINDS:
        return kind
    line, column = document.positions.place(("kind",)) or (None, None)
    known = ", ".join(f"`{name}`" for name in DOCUMENT_KINDS)
    raise DocumentValueError(
        f"document $.kind: must be one of {known}",
        path="$.kind",
        line=line,
        column=column,
        source=document.source or None,
    )


def _all_instants() -> frozenset[str]:
    """Return the instant fields of every kind."""
    return frozenset().union(*(compiled(kind).instant_fields for kind in _INSTANTS_BY_KIND))


def _plain(value: object, instants: frozenset[str], field: str | None, depth: int) -> object:
    """Return a value of plain dicts and lists; what JSON does not know stays, for the schema to refuse."""
    if depth > 64:
        return value
    if isinstance(value, Mapping):
        return {
            key: _plain(item, instants, key if isinstance(key, str) else None, depth + 1)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [_plain(item, instants, field, depth + 1) for item in value]
    if isinstance(value, datetime) and value.tzinfo is not None and field in instants:
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def _stripped(value: object) -> object:
    """Return a value with every string in it stripped."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, list):
        return [_stripped(item) for item in value]
    if isinstance(value, dict):
        return {key: _stripped(item) for key, item in value.items()}
    return value
