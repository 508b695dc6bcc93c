"""Data on standard output, in the format that was asked for.

JSON is stable: the same keys in the same order on every terminal. A table is for people and is the default
only where one is looking.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from agent_runtime_ref.cli.terminal import UNSEEN, is_terminal

# A character beyond the first plane is written as its two surrogates.
_JSON = {code: f"\\u{code:04x}" if code < 0x10000 else json.dumps(chr(code))[1:-1] for code in UNSEEN}


class OutputLostError(Exception):
    """Standard output takes no more; what the command did stays done."""


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """Add `--format`; a table is what a terminal gets and JSON what everything else gets."""
    default = "table on a terminal, json elsewhere" if "table" in formats else formats[0]
    parser.add_argument("--format", choices=formats, help=f"default: {default}")


def format_of(args: argparse.Namespace, *, otherwise: str = "json") -> str:
    """Return the format in force."""
    if args.format is not None:
        return str(args.format)
    if otherwise == "table" and not is_terminal():
        return "json"
    return otherwise


def print_document(document: Any, style: str = "json") -> None:
    """Print one document as `json` or `yaml`."""
    write(yaml_text(document) if style == "yaml" else json_text(document))


def print_lines(documents: Sequence[Any]) -> None:
    """Print each document on a line of its own."""
    for document in documents:
        write(json_text(document, indent=None))


def write(text: str) -> None:
    """Write `text` and a line end; a character that the terminal's encoding lacks becomes an escape."""
    encoding = _encoding()
    if not _is_unicode(encoding):
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    with kept():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")


@contextmanager
def kept() -> Iterator[None]:
    """Turn what standard output raises within into the error that says so; a reader that left is none.

    Raises:
        OutputLostError: nothing more can be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputLostError((error.strerror or "it cannot be written").lower()) from error


def json_text(document: Any, *, indent: int | None = 2) -> str:
    """Return `document` as JSON that no terminal acts on; it parses to the same value."""
    ascii_only = not _is_unicode(_encoding())
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only, allow_nan=False)
    return text if text.isascii() and "\x7f" not in text else text.translate(_JSON)


def yaml_text(document: Any) -> str:
    """Return `document` as YAML that no terminal acts on; it parses to the same value."""
    import yaml

    escapes = {code: f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in UNSEEN}

    class Dumper(yaml.SafeDumper):
        """Puts a text with unseen characters in quotes, inside which an escape means the character."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = '"' if value.translate(escapes) != value else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    dumped = yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
    return dumped.translate(escapes)


def _encoding() -> str:
    if sys.stdout is None:  # closed before the process began
        raise OutputLostError("it is closed")
    return sys.stdout.encoding or "utf-8"


def _is_unicode(encoding: str) -> bool:
    return encoding.lower().replace("_", "-").startswith("utf")
