"""Learn the weights of the sentence model from the labelled texts, and print how well it carries over.

    python -m tests.train_sentence_model [--write]

It needs scikit-learn, which nothing else does, so it is not among the locked packages. The held-out corpus
is never read. Each file under tests/corpora/detectors/training was written by somebody else; what is
printed is the model trained on all others and tried on that one, at the threshold the others chose.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from agent_runtime_ref.enforcement.sentence_model import features

CORPORA = Path(__file__).parent / "corpora" / "detectors"
OUTPUT = Path(__file__).parents[1] / "policies" / "memory" / "detectors" / "model" / "data.json"
FAMILIES = {
    "instruction_override": "instruction.override",
    "rights_change": "rights.elevation",
    "exfiltration": "exfiltration.send_data",
}
STRENGTH = 6.0
FALSE_SHARE = 0.009  # of harmless training texts, in cross-validation, that the threshold lets through
SEEN_MIN = 2


def rows() -> list[dict[str, Any]]:
    """Return the labelled sentences; credentials and disguised texts are the patterns' work."""
    files = [CORPORA / "tuning.jsonl", *sorted((CORPORA / "training").glob("*.jsonl"))]
    found = []
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["label"] == "harmless" or row["family"] in FAMILIES:
                found.append(row | {"file": file.stem})
    return found


class Trained:
    """Weights of three one-against-harmless models over one vocabulary."""

    def __init__(self, train: list[dict[str, Any]]) -> None:
        counts: dict[str, int] = {}
        sets = [set(features(row["text"])) for row in train]
        for one in sets:
            for feature in one:
                counts[feature] = counts.get(feature, 0) + 1
        kept = sorted(feature for feature, count in counts.items() if count >= SEEN_MIN)
        self.index = {feature: number for number, feature in enumerate(kept)}
        matrix = self._matrix(sets)
        self.models = []
        scores = numpy.full(len(train), -1e9)
        for family in FAMILIES:
            label = numpy.array([row.get("family") == family and row["label"] == "attack" for row in train])
            used = label | numpy.array([row["label"] == "harmless" for row in train])
            model = LogisticRegression(C=STRENGTH, max_iter=2000, class_weight="balanced")
            folds = StratifiedKFold(5, shuffle=True, random_state=7)
            crossed = cross_val_predict(
                model, matrix[used], label[used], cv=folds, method="decision_function"
            )
            scores[used] = numpy.maximum(scores[used], crossed)
            self.models.append(model.fit(matrix[used], label[used]))
        harmless = numpy.array([row["label"] == "harmless" for row in train])
        self.threshold = float(numpy.quantile(scores[harmless], 1 - FALSE_SHARE))

    def _matrix(self, sets: list[set[str]]) -> csr_matrix:
        indices, pointers = [], [0]
        for one in sets:
            indices.extend(sorted(self.index[feature] for feature in one if feature in self.index))
            pointers.append(len(indices))
        return csr_matrix((numpy.ones(len(indices)), indices, pointers), (len(sets), len(self.index)))

    def caught(self, texts: list[dict[str, Any]]) -> numpy.ndarray:
        """Return which texts score above the threshold."""
        matrix = self._matrix([set(features(row["text"])) for row in texts])
        scores = numpy.max([model.decision_function(matrix) for model in self.models], axis=0)
        return scores > self.threshold

    def document(self, most: int) -> dict[str, Any]:
        """Return the settings: the `most` weightiest features, weights in thousandths."""
        weights = numpy.round(1000 * numpy.array([model.coef_[0] for model in self.models])).astype(int)
        order = numpy.argsort(-numpy.max(numpy.abs(weights), axis=0), kind="stable")[:most]
        names = {number: feature for feature, number in self.index.items()}
        chosen = {names[number]: [int(one) for one in weights[:, number]] for number in order}
        return {
            "families": list(FAMILIES.values()),
            "bias": [round(1000 * float(model.intercept_[0])) for model in self.models],
            "threshold": round(1000 * self.threshold),
            "weights": dict(sorted(chosen.items())),
        }


def share(hits: numpy.ndarray, mask: list[bool]) -> str:
    """Return hits of those in `mask` as a percentage with its counts."""
    chosen = hits[numpy.array(mask)]
    return f"{100 * chosen.mean():5.1f} % ({int(chosen.sum())}/{len(chosen)})" if len(chosen) else "none"


def main() -> None:
    """Print how each file is judged by a model that has not seen it; with --write, keep the model of all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--most", type=int, default=6000)
    args = parser.parse_args()
    every = rows()
    for name in sorted({row["file"] for row in every}):
        test = [row for row in every if row["file"] == name]
        hits = Trained([row for row in every if row["file"] != name]).caught(test)
        attacks = share(hits, [row["label"] == "attack" for row in test])
        print(
            f"{name:20} caught {attacks}   false {share(hits, [row['label'] == 'harmless' for row in test])}"
        )
    if args.write:
        OUTPUT.parent.mkdir(exist_ok=True)
        OUTPUT.write_text(_text(Trained(every).document(args.most)), encoding="utf-8")


def _text(document: dict[str, Any]) -> str:
    """Return JSON with one word a line, so that a reviewer can read which words count and how much."""
    weights = document.pop("weights")
    rows = [f"    {json.dumps(name, ensure_ascii=False)}: {json.dumps(row)}" for name, row in weights.items()]
    head = [f"  {json.dumps(name)}: {json.dumps(value)}," for name, value in document.items()]
    return "\n".join(["{", *head, '  "weights": {', ",\n".join(rows), "  }", "}", ""])


if __name__ == "__main__":
    main()
