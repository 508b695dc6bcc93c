"""Documents that a command is given, from a file or from standard input."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.errors import DocumentUnreadableError, UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.yaml_source import SourceDocument

STDIN = "-"
STDIN_NAME = "<stdin>"


def checked_document(name: str, *, schema: str) -> dict[str, Any]:
    """Return the document in the file called `name`, or on standard input for `-`, checked by its schema.

    Raises:
        DocumentTypeError, DocumentValueError: it does not follow the schema, with file, line and column.
    """
    from agent_runtime_ref import validation

    if name != STDIN:
        return validation.load_document(name, schema=schema)
    from agent_runtime_ref.validation.schemas import compiled
    from agent_runtime_ref.validation.sentences import unreadable_sentence

    known = compiled(schema)
    try:
        document = _from_stdin(known.instant_fields)
    except DocumentUnreadableError as error:
        sentence = unreadable_sentence(known, error.reason)
        raise DocumentUnreadableError(
            sentence, reason=error.reason, line=error.line, column=error.column, source=error.source
        ) from error
    return validation.check_source(document, schema)


def _from_stdin(instant_fields: Collection[str]) -> SourceDocument:
    """Return what is on standard input: JSON where it begins with a brace, else YAML."""
    from agent_runtime_ref.yaml_source import BYTES_MAX, read_json, read_yaml

    if sys.stdin is None:
        raise UsageError("standard input is closed; name a file instead of `-`")
    data = _bytes_of_stdin(BYTES_MAX + 1)
    if data.lstrip()[:1] == b"{":
        return read_json(data, source=STDIN_NAME)
    return read_yaml(data, source=STDIN_NAME, instant_fields=instant_fields)


def _bytes_of_stdin(count: int) -> bytes:
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:  # replaced by a text stream, as tests and notebooks do
        return sys.stdin.read(count).encode("utf-8", "surrogateescape")
    return bytes(buffer.read(count))
