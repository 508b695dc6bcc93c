"""What a line of a log is expected to hold, taken out of one that may hold anything.

The policy that an OPA server runs answers as its author likes, and a line may have been changed by anybody.
What has another shape is passed over, or shown as JSON where a reader would miss it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Rows(NamedTuple):
    """The records that a read looked at, as far as its line names them."""

    returned: Sequence[Sequence[Any]]
    kept_out: Sequence[Sequence[Any]]  # the last column is the reason
    unnamed: int  # looked at beside these


def considered_of(line: Mapping[str, Any]) -> Rows | None:
    """Return what a line says a read looked at; None where it says nothing of that."""
    held = line.get("considered")
    if not isinstance(held, Mapping):
        return None
    total, logged = (_count(held.get(name)) for name in ("considered", "considered_logged"))
    return Rows(_lists(held.get("returned")), _lists(held.get("kept_out")), max(total - logged, 0))


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the members of a list that are mappings."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Return the members of a list that are texts."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def reasons_in(value: object) -> list[str]:
    """Return each refusal of an answer as reason and rule; one that is no refusal of ours as its JSON."""
    if not value:
        return []
    rows = value if isinstance(value, list) else [value]
    return [_reason(row) for row in rows]


def _reason(row: object) -> str:
    if isinstance(row, Mapping) and {"reason", "rule_id"} <= row.keys():
        return f"{row['reason']} ({row['rule_id']})"
    return row if isinstance(row, str) else json.dumps(row)


def _lists(value: object) -> list[list[Any]]:
    return [one for one in value if isinstance(one, list) and one] if isinstance(value, list) else []


def _count(value: object) -> int:
    return value if type(value) is int else 0
