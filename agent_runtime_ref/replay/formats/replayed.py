"""The report of a replay as text, JSON and Markdown, made line by line: changes may be a million."""

from __future__ import annotations

import json
from collections.abc import Iterator

from agent_runtime_ref.replay.changes import KINDS, Change, Share
from agent_runtime_ref.replay.formats.escapes import cell, plain
from agent_runtime_ref.replay.report import SHARES_MAX, TITLES, Report, counted, coverage_sentences

__all__ = ["replay_json", "replay_markdown", "replay_text"]

TEXT_ROWS_MAX = 1_000
MARKDOWN_ROWS_MAX = 50
_NOBODY = "(none)"


def replay_json(report: Report) -> Iterator[str]:
    """Yield the JSON report in lines; ASCII, so that no terminal acts on any of it."""
    head = json.dumps(report.head(), indent=2)
    yield head.removesuffix("\n}") + ","
    if not len(report.changes):
        yield '  "changes": []'
        yield "}"
        return
    yield '  "changes": ['
    last = len(report.changes)
    for number, change in enumerate(report.changes, start=1):
        yield f"    {json.dumps(change.to_document())}{',' if number < last else ''}"
    yield "  ]"
    yield "}"


def replay_text(report: Report) -> Iterator[str]:
    """Yield the report for a person: counts, who is affected, the changes, and what is not known."""
    tally = report.tally
    yield f"{counted(tally.decisions, 'decision')} replayed, {tally.unchanged} unchanged"
    for kind in KINDS:
        if report.changes.counts[kind]:
            yield f"  {report.changes.counts[kind]} {TITLES[kind]}"
    if tally.reassigned:
        yield f"  {tally.reassigned} kept as before, with another trust or retention"
    for name, shares in _summaries(report):
        yield f"by {name}:"
        for share in shares:
            yield plain(f"  {_name(share)}: {_counts(share)}")
    if len(report.changes):
        yield "changes:"
    for change in report.changes.worst_first(TEXT_ROWS_MAX):
        yield plain(f"  {TITLES[change.kind]}: {_told(change)}")
    if len(report.changes) > TEXT_ROWS_MAX:
        yield f"  and {len(report.changes) - TEXT_ROWS_MAX} more; --format json has all of them"
    yield from coverage_sentences(report)


def replay_markdown(report: Report) -> Iterator[str]:
    """Yield the report for a pull request: counts first, then as much as fits into a comment."""
    tally, counts = report.tally, report.changes.counts
    verdict = "and **records become visible**" if report.exposes else "and nothing becomes visible"
    if tally.decisions == tally.coverage.not_replayed.total():
        verdict = "and **nothing is known** of the others"
    yield "## What this change of policies would have changed"
    yield ""
    yield f"Replayed over {counted(tally.decisions, 'decision')}: {tally.unchanged} unchanged, {verdict}."
    yield ""
    yield f"| {' | '.join(TITLES[kind] for kind in KINDS)} |"
    yield f"| {' | '.join('---:' for _ in KINDS)} |"
    yield f"| {' | '.join(str(counts[kind]) for kind in KINDS)} |"
    if tally.reassigned:
        yield from (
            "",
            f"{counted(tally.reassigned, 'write')} kept as before, with another trust or retention.",
        )
    for name, shares in _summaries(report):
        yield from ("", f"### By {name}", "")
        yield f"| {name} | {' | '.join(TITLES[kind] for kind in KINDS)} |"
        yield f"| --- | {' | '.join('---:' for _ in KINDS)} |"
        for share in shares:
            yield f"| {cell(_name(share))} | {' | '.join(str(share.counts[kind]) for kind in KINDS)} |"
    yield from _markdown_changes(report)
    yield from ("", "### What the answer covers", "")
    for sentence in coverage_sentences(report):
        yield f"- {sentence}"


def _markdown_changes(report: Report) -> Iterator[str]:
    if not len(report.changes):
        return
    yield from (
        "",
        "### Changes",
        "",
        "| change | record | tenant | principal | was | now | rules | decision |",
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for one in report.changes.worst_first(MARKDOWN_ROWS_MAX):
        cells = (
            TITLES[one.kind],
            one.record_id or _NOBODY,
            one.tenant_id,
            one.principal_id,
            one.was,
            one.now,
            ", ".join(one.rule_ids),
            one.decision_id,
        )
        yield f"| {' | '.join(map(cell, cells))} |"
    more = len(report.changes) - MARKDOWN_ROWS_MAX
    if more > 0:
        yield from ("", f"{more} more are in the JSON report.")


def _summaries(report: Report) -> Iterator[tuple[str, list[Share]]]:
    if len(report.changes):
        yield "tenant", report.changes.by_tenant(SHARES_MAX)
        yield "rule", report.changes.by_rule(SHARES_MAX)
        yield "principal", report.changes.by_principal(SHARES_MAX)


def _name(share: Share) -> str:
    return f"{share.names} others" if share.name is None else share.name or _NOBODY


def _counts(share: Share) -> str:
    return ", ".join(f"{share.counts[kind]} {TITLES[kind]}" for kind in KINDS if share.counts[kind])


def _told(change: Change) -> str:
    what = f"record {change.record_id}" if change.record_id else "a whole answer or candidate"
    rules = f" ({', '.join(change.rule_ids)})" if change.rule_ids else ""
    who = f"tenant {change.tenant_id}, {change.principal_id}, {change.decision_id}"
    return f"{what}: {change.was} -> {change.now}{rules}; {who}"
