"""The subset of Rego on which the engines agree, and where a module leaves it.

Every construct here was seen to give another answer, or none, in one of the engines; what is left out of the
list may still differ, which the differential tests are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["PolicyFinding", "dotted", "masked", "not_portable", "position", "tokens"]


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """One thing that is wrong with a policy bundle, and where."""

    path: str
    line: int
    column: int
    severity: str  # error or warning
    rule_id: str  # LINT-P-001
    message: str


# In code, strings and comments blanked out.
_CODE = (
    (r"\$\s*[\"`]", "string interpolation is not known to every engine; use `sprintf`"),
    (r"\bjson\.match_schema\b", "engines know different drafts of JSON Schema; the gate checks schemas"),
    (r"\brego\.metadata\b", "not known to the embedded engine; write the rule id into the head"),
    (
        r"\b(?:crypto|io\.jwt|http|opa|graphql|providers)\.\w+",
        "not known to every engine, or reaches outside",
    ),
    (
        r"\btime\.\w+",
        "engines read time differently; compare `input.now_ns`, epoch nanoseconds, as an integer",
    ),
    (r"\bnet\.(?!cidr_contains\b)\w+", "of `net`, only `cidr_contains` is known to every engine"),
    (r"\b(?:strings\.render_template|array\.flatten|units\.\w+|semver\.\w+)", "engines disagree on it"),
    (r"\b(?:rand|uuid)\.\w+", "a decision must come out the same when it is replayed"),
    (r"\bnot\s*\{", "a block under `not` is not known to every engine; negate a helper rule"),
    (r"(?m)^\s*\}?\s*else\b", "engines disagree on `else`; write a second rule"),
    (r"(?<![\w.])\d+\.\d", "engines compare fractions differently; use integers"),
    (r"\bwalk\s*\(", "costs time without a bound; name the fields"),
)
_IN_STRINGS = (
    r"\\[dDwWsS]",
    "`\\d`, `\\w` and `\\s` are Unicode in one engine and ASCII in another; write [0-9]",
)
_CASE = re.compile(r"(?<![\w.])(?:upper|lower)\s*\(")
_IMPORTS = ("rego.v1", "future.keywords.not")


def not_portable(path: str, text: str) -> Iterator[PolicyFinding]:
    """Yield a finding for each place where a module leaves the portable subset."""
    code, strings = masked(text)
    for name in _IMPORTS:
        if not re.search(rf"(?m)^import\s+{re.escape(name)}\s*$", code):
            why = (
                "engines disagree on a negated reference that is missing"
                if "not" in name
                else "0.x syntax differs"
            )
            yield PolicyFinding(path, 1, 1, "error", "LINT-P-002", f"no `import {name}`: {why}")
    for expression, remedy in _CODE:
        for match in re.finditer(expression, code):
            place = position(text, match.start())
            shown = " ".join(match[0].split())
            yield PolicyFinding(path, *place, "error", "LINT-P-003", f"`{shown}` is not portable: {remedy}")
    for match in re.finditer(_IN_STRINGS[0], strings):
        place = position(text, match.start())
        message = f"`{match[0]}` is not portable: {_IN_STRINGS[1]}"
        yield PolicyFinding(path, *place, "error", "LINT-P-003", message)
    yield from _case_mapped(path, text, code)


def _case_mapped(path: str, text: str, code: str) -> Iterator[PolicyFinding]:
    """Yield a warning for each `lower` or `upper` that no comment `# portable:` above it explains."""
    lines = text.splitlines()
    for match in _CASE.finditer(code):
        line, column = position(text, match.start())
        above = lines[line - 2].strip() if line > 1 else ""
        if not above.startswith("# portable:"):
            message = f"`{match[0]}` differs beyond ASCII; say above why not here, `# portable: ...`"
            yield PolicyFinding(path, line, column, "warning", "LINT-P-004", message)


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, counted from 1, of an offset."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def masked(text: str) -> tuple[str, str]:
    """Return the code with comments and strings blanked, and the strings with everything else blanked.

    Both are as long as `text` and keep its line ends, so that an offset means the same place in all three.
    """
    code, strings = [], []
    for kind, part in tokens(text):
        blank = re.sub(r"[^\n]", " ", part)
        # Quotes stay in the code, so that `$"` is still seen.
        code.append(part if kind == "code" else part[0] + blank[1:] if kind == "string" else blank)
        strings.append(part if kind == "string" else blank)
    return "".join(code), "".join(strings)


_IN_BRACKETS = re.compile(r"(?<=[\w\])])\[\s*(?:\"(\w+)\"|`(\w+)`)\s*\]")


def dotted(text: str) -> str:
    """Return the code alone, with names in brackets behind dots: `data["memory"].read` is `data.memory.read`.

    For looking at what a module refers to; its offsets are not those of `text`.
    """
    code, strings = masked(text)
    pieces, done = [], 0
    for match in _IN_BRACKETS.finditer("".join(map(_either, code, strings))):
        pieces += [code[done : match.start()], f".{match[1] or match[2]}"]
        done = match.end()
    return "".join((*pieces, code[done:]))


def _either(code: str, string: str) -> str:
    return code if string == " " else string


_PART = re.compile(r"(?P<comment>#[^\n]*)|(?P<string>\"(?:\\.|[^\"\\\n])*\"?|`[^`]*`?)|(?P<code>[^#\"`]+)")


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yield the whole text in pieces: each a comment, a string with its quotes, or code between these."""
    for match in _PART.finditer(text):
        assert match.lastgroup is not None
        yield match.lastgroup, match[0]
