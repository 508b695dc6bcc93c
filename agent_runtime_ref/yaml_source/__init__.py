"""Bytes to a document whose every part knows its line and column; a file that lies is refused."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from agent_runtime_ref.yaml_source.json_text import read_json
from agent_runtime_ref.yaml_source.positions import BYTES_MAX, Positions, SourceDocument, Surprise, refusal
from agent_runtime_ref.yaml_source.yaml_text import read_yaml

__all__ = ["BYTES_MAX", "Positions", "SourceDocument", "Surprise", "read_file", "read_json", "read_yaml"]


def read_file(path: str | Path, *, instant_fields: Collection[str] = ()) -> SourceDocument:
    """Return the document in a file: JSON where the name ends in `.json`, else YAML.

    Raises:
        DocumentUnreadableError: the file cannot be read, or is no document that means one thing only.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise refusal((error.strerror or "the file cannot be opened").lower(), source=str(path)) from error
    if path.suffix.lower() == ".json":
        return read_json(data, source=str(path))
    return read_yaml(data, source=str(path), instant_fields=instant_fields)
