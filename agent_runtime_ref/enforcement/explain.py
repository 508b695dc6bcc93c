"""Why a record is let in or kept out, and the smallest change that would let it in.

The change is a counterfactual: the rules that fired name in their METADATA the attributes they look
at; each gets the values that the settings know, fewest attributes first, and every proposal is
confirmed by the policy itself, all of them in one batched decision (two where a change meets a rule
that did not look at the record before). Who a record belongs to, when it
was made and what its provenance says are facts and are never offered for change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, product
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.stores.attributes import TRUST_RANKS

# So few that even the longest names stay within an engine's bound on bytes.
CANDIDATES_MAX = 200
VARIANTS_MAX = 60
ATTRIBUTES_MAX = 3
ROUNDS_MAX = 2

Change = Mapping[str, Any]
# Whether the record is let in, reasons, rule ids, and the smallest change that would let it in.
Verdict = tuple[bool, tuple[str, ...], tuple[str, ...], Change | None]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What one query would do with one record."""

    record: MemoryRecord
    admitted: bool
    reasons: tuple[str, ...]
    rule_ids: tuple[str, ...]
    change: Change | None  # attribute -> value; None where no change of the record would help

    def to_document(self) -> dict[str, Any]:
        """Return the `decision` part of an explained record."""
        return {
            "effect": "allow" if self.admitted else "deny",
            "reasons": list(self.reasons),
            "rule_ids": list(self.rule_ids),
            "change": None if self.change is None else _as_recorded(self.change),
        }


def _as_recorded(change: Change) -> dict[str, Any]:
    """Return a change in the words of a record: it has a trust level, of which a policy sees the rank."""
    named = {rank: level for level, rank in TRUST_RANKS.items()}
    return {
        **{name: value for name, value in change.items() if name != "trust_rank"},
        **({"trust_level": named[change["trust_rank"]]} if "trust_rank" in change else {}),
    }


def explained(
    candidates: Sequence[dict[str, Any]], question: Mapping[str, Any], *, point: DecisionPoint, bundle: Bundle
) -> list[Verdict]:
    """Return a verdict for each candidate document, in order.

    Raises:
        EngineFailureError: the engine gave no clear answer.
    """
    verdicts: list[Verdict] = []
    for start in range(0, len(candidates), CANDIDATES_MAX):
        verdicts.extend(_first(candidates[start : start + CANDIDATES_MAX], question, point))
    open_cases = [index for index, verdict in enumerate(verdicts) if not verdict[0] and verdict[3] is None]
    for index, change in _changes(open_cases, candidates, verdicts, question, point, bundle):
        admitted, reasons, rule_ids, _ = verdicts[index]
        verdicts[index] = (admitted, reasons, rule_ids, change)
    return verdicts


def _first(
    candidates: Sequence[dict[str, Any]], question: Mapping[str, Any], point: DecisionPoint
) -> list[Verdict]:
    answer = point.read({**question, "candidates": list(candidates)}).document
    denied = sorted((row["rule_id"], row["reason"]) for row in answer["deny"])
    admitted = frozenset(answer["admitted"]) if answer["allow"] is True else frozenset()
    fired: dict[int, list[tuple[str, str]]] = {}
    for row in answer["excluded"]:
        fired.setdefault(row["index"], []).append((row["rule_id"], row["reason"]))
    verdicts: list[Verdict] = []
    for index in range(len(candidates)):
        rows = denied or sorted(fired.get(index, []))
        reasons = tuple(dict.fromkeys(reason for _, reason in rows))
        verdicts.append((index in admitted, reasons, tuple(dict.fromkeys(one for one, _ in rows)), None))
    return verdicts


def _changes(
    open_cases: Sequence[int],
    candidates: Sequence[dict[str, Any]],
    verdicts: Sequence[Verdict],
    question: Mapping[str, Any],
    point: DecisionPoint,
    bundle: Bundle,
) -> Iterator[tuple[int, Change]]:
    """Yield for each open case the first proposal that the policy confirms.

    A record of another class may meet a rule that did not look at it before; where nothing helped, the
    rules that the proposals met are taken in and it is tried once more.
    """
    rules = {index: frozenset(verdicts[index][2]) for index in open_cases}
    for _ in range(ROUNDS_MAX):
        proposals = [
            (index, change)
            for index in rules
            for change in _proposals(candidates[index], rules[index], question, bundle)
        ]
        settled, met = _tried(proposals, candidates, question, point)
        yield from settled.items()
        rules = {
            index: known | met[index]
            for index, known in rules.items()
            if index not in settled and not met.get(index, frozenset()) <= known
        }


def _tried(
    proposals: Sequence[tuple[int, Change]],
    candidates: Sequence[dict[str, Any]],
    question: Mapping[str, Any],
    point: DecisionPoint,
) -> tuple[dict[int, Change], dict[int, frozenset[str]]]:
    """Return the first change that helped each case, and the rules that any proposal of it met."""
    settled: dict[int, Change] = {}
    met: dict[int, frozenset[str]] = {}
    for start in range(0, len(proposals), CANDIDATES_MAX):
        batch = proposals[start : start + CANDIDATES_MAX]
        changed = [{**candidates[index], **change} for index, change in batch]
        answer = point.read({**question, "candidates": changed}).document
        if answer["allow"] is not True:
            break
        for position in sorted(answer["admitted"]):
            settled.setdefault(*batch[position])
        for row in answer["excluded"]:
            index = batch[row["index"]][0]
            met[index] = met.get(index, frozenset()) | {row["rule_id"]}
    return settled, met


def _proposals(
    candidate: Mapping[str, Any], rule_ids: Collection[str], question: Mapping[str, Any], bundle: Bundle
) -> list[dict[str, Any]]:
    """Return the changes to try, fewest attributes first, then the order of the rules and of the settings."""
    named = [attribute for rule in bundle.rules if rule.rule_id in rule_ids for attribute in rule.attributes]
    domains = _domains(question, bundle.settings)
    offered = [name for name in dict.fromkeys(named) if name in domains]
    proposals = (
        dict(zip(names, values, strict=True))
        for size in range(1, min(ATTRIBUTES_MAX, len(offered)) + 1)
        for names in combinations(offered, size)
        for values in product(*(_others(domains[name], candidate[name]) for name in names))
    )
    return list(islice(proposals, VARIANTS_MAX))


def _others(domain: Sequence[Any], current: Any) -> list[Any]:
    return [value for value in domain if value != current]


def _domains(question: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    query = question["query"]
    return {
        "memory_class": query["allowed_classes"] or sorted(settings["classes"]),
        "kind": query["kinds"],
        "source": query["sources"] or sorted(settings["sources"]),
        "trust_rank": sorted(rank for rank in settings["trust_ranks"].values() if rank > 0),
        "status": ["active"],
        "provenance_known": [True],
        "outranked": [False],
    }
