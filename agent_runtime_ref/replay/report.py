"""What a replay found, as every format tells it: who is affected, by which rules, and what is not known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.replay.changes import KINDS, Changes, Share
from agent_runtime_ref.replay.run import Tally

__all__ = ["TITLES", "Report", "coverage_sentences"]

SHARES_MAX = 20  # tenants, rules and principals that are named; the others count together
TITLES = {
    "newly_exposed": "newly exposed",
    "newly_hidden": "newly hidden",
    "newly_admitted": "newly admitted",
    "newly_refused": "newly refused",
    "newly_quarantined": "newly quarantined",
}
_NOT_REPLAYED = {
    "engine_failure": "the engine had failed",
    "input_malformed": "no gate of this version would ask that",
    "input_masked": "a mask took parts of the input out",
    "input_too_large": "the input is larger than the engine takes",
    "input_version_newer": "a newer version wrote the input",
    "other_decision": "it was about something else",
    "records_missing": "the line names no records",
    "result_missing": "the line has no result",
}


@dataclass(frozen=True, slots=True)
class Report:
    """The numbers and changes of one replay, and the policies that were replayed."""

    bundle: Bundle
    tally: Tally
    changes: Changes
    mismatches: int  # not 0: plan and verdicts of the new policies disagree

    @property
    def exposes(self) -> bool:
        """Whether something becomes visible that was not."""
        return self.changes.counts["newly_exposed"] > 0

    def head(self) -> dict[str, Any]:
        """Return the JSON report but for its changes, which may be many."""
        return {
            "decisions": self.tally.decisions,
            "unchanged": self.tally.unchanged,
            **{kind: self.changes.counts[kind] for kind in KINDS},
            "reassigned": self.tally.reassigned,
            "policies": {"digest": self.bundle.digest, "revision": self.bundle.revision},
            "coverage": self._coverage(),
            "by_tenant": _shares(self.changes.by_tenant(SHARES_MAX), "tenant_id"),
            "by_rule": _shares(self.changes.by_rule(SHARES_MAX), "rule_id"),
            "by_principal": _shares(self.changes.by_principal(SHARES_MAX), "principal_id"),
        }

    def _coverage(self) -> dict[str, Any]:
        known = self.tally.coverage
        return {
            "reads": known.reads,
            "considered": known.considered,
            "considered_logged": known.considered_logged,
            "reads_rebuilt": known.reads_rebuilt,
            "reads_unknown": known.reads_unknown,
            "unknowable": {"records": known.erased_records, "reads": known.reads_with_erased},
            "not_replayed": dict(sorted(known.not_replayed.items())),
        }


def counted(count: int, what: str) -> str:
    """Return a number of things in words."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def coverage_sentences(report: Report) -> Iterator[str]:
    """Yield what the answer does not cover, a sentence each."""
    known = report.tally.coverage
    if report.tally.decisions == known.not_replayed.total():
        yield "No decision was replayed, so nothing is known of what the new policies would change."
    yield (
        f"The answer covers {known.considered_logged} of {known.considered} records"
        f" that {counted(known.reads, 'read')} considered."
    )
    if known.reads_rebuilt:
        reads = counted(known.reads_rebuilt, "read")
        yield f"For {reads} every record was rebuilt from the store as of the instant."
    if known.reads_unknown:
        yield (
            f"{counted(known.reads_unknown, 'refused read')} would be answered now; with which records"
            " is not in the log, and each counts once as newly exposed."
        )
    if known.erased_records:
        yield (
            f"Gone from the store: {counted(known.erased_records, 'record')}, which"
            f" {counted(known.reads_with_erased, 'read')} could have been about;"
            " what would have become of that cannot be known."
        )
    for reason, count in sorted(known.not_replayed.items()):
        yield f"Not replayed: {counted(count, 'decision')}: {_NOT_REPLAYED.get(reason, reason)}."
    if report.mismatches:
        yield (
            "Plan and verdicts of the new policies disagree about a record: a rule stands only once;"
            " mend it before anything else."
        )


def _shares(shares: list[Share], key: str) -> list[dict[str, Any]]:
    """Return the rows of a summary; the last, of all the others, has no name and says how many they are."""
    return [
        {key: share.name, **({} if share.name is not None else {"names": share.names}), **share.counts}
        for share in shares
    ]
