"""JSON Schema in, documented errors out.

`is_valid` and `check` are the hot path (`jsonschema-rs`); why a document was refused is worked out only then,
by `jsonschema`, with the sentences that stand in the schema as `errorMessage`.
"""

from __future__ import annotations

from collections.abc import Mapping

from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.validation.documents import check_source, load_document, read_document
from agent_runtime_ref.validation.findings import Finding, Located
from agent_runtime_ref.validation.schemas import DOCUMENT_KINDS, compiled, schema_document, schema_names

__all__ = [
    "DOCUMENT_KINDS",
    "Finding",
    "check",
    "check_source",
    "findings",
    "is_valid",
    "load_document",
    "read_document",
    "schema_document",
    "schema_names",
]


def is_valid(schema_name: str, document: object) -> bool:
    """Say whether `document` follows the schema; about a microsecond a record."""
    return compiled(schema_name).accepts(document)


def check(
    schema_name: str,
    document: object,
    *,
    fields: Mapping[str, str] | None = None,
    positions: Located | None = None,
    source: str | None = None,
) -> None:
    """Return if `document` follows the schema.

    `fields` gives the names that a sentence uses in place of the document's own.

    Raises:
        DocumentTypeError, DocumentValueError: the first error, in the order of the schema's properties.
    """
    if compiled(schema_name).accepts(document):
        return
    found = findings(schema_name, document, fields=fields, positions=positions, source=source)
    if not found:
        # Both validators are held to one verdict by a test; were they to part, the refusal stands.
        raise DocumentValueError(f"{schema_name} $: is not valid", source=source)
    raise found[0].error()


def findings(
    schema_name: str,
    document: object,
    *,
    fields: Mapping[str, str] | None = None,
    positions: Located | None = None,
    source: str | None = None,
) -> tuple[Finding, ...]:
    """Return all errors of `document`, documented ones first, in the order of the schema's properties."""
    from agent_runtime_ref.validation.explain import explain

    return explain(compiled(schema_name), document, fields=fields or {}, positions=positions, source=source)
