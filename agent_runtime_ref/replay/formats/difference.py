"""The difference of two sets of policies, for a person and for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_runtime_ref.replay.difference import Difference, PartDifference
from agent_runtime_ref.replay.formats.escapes import cell, plain, value_text

__all__ = ["difference_markdown", "difference_text"]

# A report for people; detectors alone are some thousand values. JSON holds all of them.
ROWS_MAX = 100
_PARTS = (("rules", "rule_id"), ("settings", "path"), ("controls", "control_id"), ("packages", "package"))


def difference_text(found: Difference) -> Iterator[str]:
    """Yield the report as lines of text."""
    if not found:
        yield "no difference"
    for part, key in _PARTS:
        differing: PartDifference = getattr(found, part)
        if not differing:
            continue
        yield f"{part}: {_counted(differing)}"
        for sign, row in _rows(differing):
            said = _said(row)
            yield plain(f"  {sign} {row[key]}{': ' if said else ''}{said}")
            for line in _text_lines(row):
                yield plain(f"      {line}".expandtabs(4))
        yield from _left_out(differing, "  ")
    if not found.controls_compared:
        yield "controls: not compared, one of the two brings no list of them"


def difference_markdown(found: Difference) -> Iterator[str]:
    """Yield the report as Markdown, counts first."""
    yield "## Change of policies"
    yield ""
    yield f"From {cell(str(found.old['source']))} to {cell(str(found.new['source']))}."
    yield ""
    if not found:
        yield "There is no difference."
        return
    yield "| part | added | removed | changed |"
    yield "| --- | ---: | ---: | ---: |"
    for part, _ in _PARTS:
        one: PartDifference = getattr(found, part)
        yield f"| {part} | {len(one.added)} | {len(one.removed)} | {len(one.changed)} |"
    for part, key in _PARTS:
        differing: PartDifference = getattr(found, part)
        if differing:
            yield from ("", f"### {part.capitalize()}", "", "| change | name | what |", "| --- | --- | --- |")
            for sign, row in _rows(differing):
                yield f"| {_WORDS[sign]} | {cell(str(row[key]))} | {cell(_said(row))} |"
            yield from _left_out(differing, "\n")
    if not found.controls_compared:
        yield from ("", "Controls were not compared: one of the two brings no list of them.")


_WORDS = {"+": "added", "-": "removed", "~": "changed"}


def _rows(part: PartDifference) -> Iterator[tuple[str, Mapping[str, Any]]]:
    rows = [
        *(("~", row) for row in part.changed),
        *(("-", row) for row in part.removed),
        *(("+", row) for row in part.added),
    ]
    yield from rows[:ROWS_MAX]


def _left_out(part: PartDifference, indent: str) -> Iterator[str]:
    more = len(part.added) + len(part.removed) + len(part.changed) - ROWS_MAX
    if more > 0:
        yield f"{indent}and {more} more; --format json has all of them"


def _counted(part: PartDifference) -> str:
    return f"{len(part.added)} added, {len(part.removed)} removed, {len(part.changed)} changed"


def _said(row: Mapping[str, Any]) -> str:
    """Return what a row says of its thing, in words; empty where there is nothing to say."""
    if "changes" in row:
        told = [_change(name, value) for name, value in row["changes"].items()]
        return "; ".join(told)
    if "path" in row:
        old, new = (value_text(row[side]) if side in row else None for side in ("old", "new"))
        return f"{old} -> {new}" if old and new else old or new or ""
    return str(row.get("title") or "")


def _change(name: str, value: Any) -> str:
    if name == "text":
        signs = [line[0] for line in value if line[:1] in "+-"]
        return f"text (+{signs.count('+')} -{signs.count('-')} lines)"
    return f"{name} {value_text(value['old'])} -> {value_text(value['new'])}"


def _text_lines(row: Mapping[str, Any]) -> Sequence[str]:
    """Return the changed lines of Rego."""
    lines: Sequence[str] = row.get("changes", {}).get("text", ())
    return lines
