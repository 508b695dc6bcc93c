"""The code of a module, in the parts that METADATA makes of it, without what decides nothing.

Comments and blank lines go. Strings stay, with the line ends in a raw one written out, so that nothing in
them is taken for a comment or for a line. Imports stand with each part that uses them: a rule that moves to a
file where a name means something else is another rule, and one that moves to a file like its own is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agent_runtime_ref.policy.metadata import annotations_of
from agent_runtime_ref.policy.portable import tokens

__all__ = ["Part", "parts_of"]

_PACKAGE = re.compile(r"package\s+[A-Za-z0-9_.]+\Z")
_IMPORT = re.compile(r"import\s+([A-Za-z0-9_.]+)(?:\s+as\s+([A-Za-z0-9_]+))?\Z")
# Imports that change how every line below is read, whatever names it uses.
_LANGUAGE = ("future.", "rego.")
_TEMPLATE = re.compile(r"\$\s*[\"`]")


@dataclass(frozen=True, slots=True)
class Part:
    """The code from one METADATA block to the next."""

    line: int  # of the block, from 1; 0 for what stands above the first
    lines: tuple[str, ...]


def parts_of(text: str) -> list[Part]:
    """Return the parts of a module in their order; one without code has no lines."""
    parts = [(line, _lines(code)) for line, code in _split(text)]
    imports = [found for _, lines in parts for line in lines if (found := _import(line)) is not None]
    return [Part(line, _with_imports(lines, imports)) for line, lines in parts]


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and code of each part, without comments."""
    starts = [0, *accumulate(len(line) for line in text.splitlines(keepends=True))]
    blocks = {starts[one.line - 1]: one.line for one in annotations_of(text)}
    # Where code stands in strings, what looks like a comment may be none.
    keeps_comments = _TEMPLATE.search(text) is not None
    code: list[str] = []
    line = offset = 0
    for kind, token in tokens(text):
        if kind == "comment" and offset in blocks:
            yield line, "".join(code)
            line, code = blocks[offset], []
        if kind == "string" and token.startswith("`"):
            code.append(token.replace("␤", "␤␤").replace("\n", "␤n"))
        elif kind != "comment" or keeps_comments:
            code.append(token)
        offset += len(token)
    yield line, "".join(code)


def _lines(code: str) -> list[str]:
    return [line.rstrip() for line in code.split("\n") if line.strip()]


def _import(line: str) -> tuple[str, str] | None:
    """Return an import as it stands and the name that it makes, empty where it makes none."""
    found = _IMPORT.match(line)
    if found is None:
        return None
    path, alias = found.groups()
    return line, "" if path.startswith(_LANGUAGE) else alias or path.rpartition(".")[2]


def _with_imports(lines: Sequence[str], imports: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    own = [line for line in lines if not _PACKAGE.match(line) and not _IMPORT.match(line)]
    if not own:
        return ()
    words = set(re.findall(r"\w+", "\n".join(own)))
    used = {line for line, name in imports if not name or name in words}
    return (*sorted(used), *own)
