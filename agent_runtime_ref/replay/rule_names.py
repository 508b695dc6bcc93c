"""Rule ids for reasons: a log names the reason why a record was kept out, and not the rule."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.metadata import package_of

__all__ = ["RuleNames"]

_PAIR = re.compile(r'"rule_id":\s*"([^"\\]+)",\s*"reason":\s*"([^"\\]+)"')


class RuleNames:
    """Finds the rules of a bundle that give a reason, by the heads of its rules."""

    def __init__(self, bundle: Bundle) -> None:
        self._by_reason: dict[tuple[str, str], set[str]] = {}
        for _, text in bundle.modules:
            gate = package_of(text).partition(".")[2]
            for rule_id, reason in _PAIR.findall(text):
                self._by_reason.setdefault((gate, reason), set()).add(rule_id)

    def of(self, gate: str | None, rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
        """Return the rule ids of `rows`, sorted; for a row without one, those that its reason has here.

        A rule that the new policies no longer have cannot be named by its reason.
        """
        found: set[str] = set()
        for row in rows:
            rule_id = row.get("rule_id")
            found |= {rule_id} if rule_id else self._by_reason.get((gate or "", row["reason"]), set())
        return tuple(sorted(found))
