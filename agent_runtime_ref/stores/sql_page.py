"""The page of a search that one SQL statement answered, whichever database it was.

A row begins with its part: a count, an admitted record, one that was kept out, or the revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_runtime_ref.stores.base import Match, SearchPage
from agent_runtime_ref.stores.searching import MatchSource

PART_COUNT, PART_ADMITTED, PART_KEPT_OUT, PART_REVISION = range(4)


def page_of(found: Sequence[Sequence[Any]], source: MatchSource, reasons: Sequence[str]) -> SearchPage:
    """Return the rows as a page; `reasons` are those of the plan's filters, in their order."""
    exclusions: dict[str, int] = {}
    considered = revision = 0
    matches: list[Match] = []
    kept_out: list[tuple[Match, str]] = []
    for row in found:
        part = row[0]
        if part == PART_ADMITTED:
            matches.append(Match(source, row))
        elif part == PART_KEPT_OUT:
            kept_out.append((Match(source, row), reasons[(row[3] >> 1) - 1]))
        elif part == PART_REVISION:
            revision = row[1]
        else:
            considered += row[2]
            if row[1]:
                reason = reasons[row[1] - 1]
                exclusions[reason] = exclusions.get(reason, 0) + row[2]
    return SearchPage(
        matches=tuple(matches),
        kept_out=tuple(kept_out),
        exclusions=exclusions,
        considered=considered,
        revision=revision,
    )
