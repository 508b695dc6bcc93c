"""How well the curator's judges tell this session from always: `python -m tests.eval_curator`.

The held-out utterances were written by somebody who had seen neither the judge nor the tuning part, and
their digest was committed first. Of them only figures are printed, never a text or an id, so that nobody
tunes to them.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_runtime_ref.contracts import Finding
from agent_runtime_ref.curator import ModelJudge, RuleJudge
from agent_runtime_ref.curator.judging import believed
from agent_runtime_ref.curator.model_judge import KEY, MODEL, URL
from agent_runtime_ref.errors import GovernanceError
from tests.eval_detectors import wilson

CORPORA = Path(__file__).parent / "curator_eval"
KINDS = ("standing", "constraint", "budget", "category")
PRECISION_MIN, RECALL_MIN, LEAKAGE_MAX = 0.90, 0.75, 0.02
Judge = Callable[[str], Iterable[Finding] | None]


@dataclass
class Score:
    """Counts over utterances, by kind of finding."""

    found: Counter[str] = field(default_factory=Counter)  # judged and labelled
    judged: Counter[str] = field(default_factory=Counter)
    labelled: Counter[str] = field(default_factory=Counter)
    confused: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # (labelled, judged), "nothing" for none
    polarity: int = 0  # standing preferences found whose polarity agrees as well
    strength: int = 0
    leaked: int = 0  # constraints of a session that a standing finding stands for
    failed: int = 0  # utterances that the judge gave no answer for
    wrong: list[str] = field(default_factory=list)  # ids of utterances with a confusion

    @property
    def constraints(self) -> int:
        """How many labelled findings are of the session, anchors included."""
        return sum(self.labelled[kind] for kind in KINDS[1:])

    def add(self, row: Mapping[str, Any], findings: Iterable[Finding] | None) -> None:
        """Count one utterance."""
        self.failed += findings is None
        judged = [_of_finding(one) for one in findings or ()]
        labelled = [_of_label(one) for one in row["findings"]]
        seen, wanted = Counter(one[0] for one in judged), Counter(one[0] for one in labelled)
        seen["budget"] = min(seen["budget"], max(1, wanted["budget"]))  # a range is one anchor with two ends
        self.judged += seen
        self.labelled += wanted
        self.found += seen & wanted
        self.polarity += _agreeing(judged, labelled, 1)
        self.strength += _agreeing(judged, labelled, 2)
        missed, extra = wanted - seen, seen - wanted
        self.leaked += min(extra["standing"], sum(missed[kind] for kind in KINDS[1:]))
        if missed or extra:
            self.wrong.append(row["id"])
        self._confuse(list(missed.elements()), list(extra.elements()))

    def _confuse(self, missed: Sequence[str], extra: Sequence[str]) -> None:
        for place in range(max(len(missed), len(extra))):
            label = missed[place] if place < len(missed) else "nothing"
            self.confused[label, extra[place] if place < len(extra) else "nothing"] += 1


def _of_finding(finding: Finding) -> tuple[str, str, str]:
    kind = finding.anchor if finding.anchor != "none" else "constraint"
    return "standing" if finding.scope == "standing" else kind, finding.polarity, finding.strength


def _of_label(label: Mapping[str, str]) -> tuple[str, str, str]:
    kind = "standing" if label["scope"] == "standing" else label.get("anchor", "constraint")
    return kind, label.get("polarity", "like"), label.get("strength", "hard")


def _agreeing(judged: list[tuple[str, str, str]], labelled: list[tuple[str, str, str]], part: int) -> int:
    seen = Counter(one[part] for one in judged if one[0] == "standing")
    return (seen & Counter(one[part] for one in labelled if one[0] == "standing")).total()


def corpus(name: str) -> list[dict[str, Any]]:
    """Return the rows of one corpus; the held-out one only if its digest is the committed one."""
    data = (CORPORA / f"{name}.jsonl").read_bytes()
    if name == "heldout":
        committed = (CORPORA / "heldout.sha256").read_text(encoding="ascii").split()[0]
        if hashlib.sha256(data).hexdigest() != committed:
            raise SystemExit("heldout.jsonl is not the file whose digest was committed")
    return [json.loads(line) for line in data.decode("utf-8").splitlines()]


def scored(judge: Judge, rows: Iterable[Mapping[str, Any]]) -> dict[str, Score]:
    """Return the scores of all rows, of each language and of each group."""
    scores: dict[str, Score] = {}
    for row in rows:
        answer = judge(row["text"])
        findings = None if answer is None else list(answer)
        for part in ("overall", row["lang"], row["group"]):
            scores.setdefault(part, Score()).add(row, findings)
    return scores


def _share(hits: int, total: int) -> str:
    low, high = wilson(hits, total)
    share = f"{hits / total:6.1%}" if total else "     -"
    return f"{hits:4}/{total:<4} {share}  [{low:.1%}, {high:.1%}]"


def report(scores: Mapping[str, Score], *, with_ids: bool) -> None:
    """Print the figures of one judge on one corpus; `with_ids` names what it got wrong."""
    for part in ("overall", "en", "zh"):
        score = scores.get(part, Score())
        for kind in KINDS:
            found = score.found[kind]
            print(f"  {part:8} {kind:11} precision {_share(found, score.judged[kind])}")
            print(f"  {part:8} {kind:11} recall    {_share(found, score.labelled[kind])}")
        print(f"  {part:8} leaked into the long-term side {_share(score.leaked, score.constraints)}")
    overall = scores["overall"]
    standing = overall.found["standing"]
    print(
        f"  of the standing found: polarity agrees {overall.polarity}/{standing}, "
        f"strength {overall.strength}/{standing}"
    )
    print("  a finding counts by its scope, as for the floors; where like or dislike has to agree as well:")
    print(f"  overall  standing    precision {_share(overall.polarity, overall.judged['standing'])}")
    print(f"  overall  standing    recall    {_share(overall.polarity, overall.labelled['standing'])}")
    for group in sorted(scores.keys() - {"overall", "en", "zh"}):
        score = scores[group]
        print(
            f"  group {group:11} standing found {score.found['standing']} of {score.labelled['standing']}, "
            f"judged {score.judged['standing']}; leaked {score.leaked} of {score.constraints}"
        )
    for (label, judged), count in sorted(overall.confused.items()):
        print(f"  confused: labelled {label:11} judged {judged:11} {count}")
    if overall.failed:
        print(f"  no answer: {overall.failed}")
    if with_ids:
        print("  wrong:", *overall.wrong)


def is_met(score: Score) -> bool:
    """Say whether the floors are met, on point values."""
    found = score.found["standing"]
    return (
        found >= PRECISION_MIN * score.judged["standing"]
        and found >= RECALL_MIN * score.labelled["standing"]
        and score.leaked <= LEAKAGE_MAX * score.constraints
    )


def answering(judge: ModelJudge) -> Judge:
    """Return a model's judge whose failures are counted instead of ending the run."""

    def answer(text: str) -> list[Finding] | None:
        try:
            return believed(judge.judge(text), text)
        except GovernanceError:
            return None

    return answer


def main(arguments: Sequence[str] = ()) -> int:
    """Print the figures; return 1 if the rule judge misses a floor on the held-out part."""
    names = ("tuning",) if "--tuning" in arguments else ("tuning", "heldout")
    parts = {name: corpus(name) for name in names}
    met = True
    for name, rows in parts.items():
        print(f"rules, {name}: {len(rows)} utterances")
        scores = scored(RuleJudge().judge, rows)
        report(scores, with_ids=name == "tuning")
        met = is_met(scores["overall"]) if name == "heldout" else met
    if "heldout" in parts:
        print(
            f"floors for standing on the held-out part, counted by scope: precision {PRECISION_MIN:.0%}, "
            f"recall {RECALL_MIN:.0%}, leakage at most {LEAKAGE_MAX:.0%}: {'met' if met else 'missed'}"
        )
    model = ModelJudge.from_environment()
    if model is None:
        print(f"model: not configured ({URL}, {MODEL}, {KEY})")
        return int(not met)
    for name, rows in parts.items():
        print(f"model, {name}: {len(rows)} utterances")
        report(scored(answering(model), rows), with_ids=name == "tuning")
    return int(not met)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
