"""How the curator's figures are counted, and that the tuning part is what it says it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

from agent_runtime_ref.contracts import Finding
from tests import eval_curator
from tests.eval_curator import CORPORA, Score, corpus, is_met, report, scored
from tests.preferring import finding

STANDING = {"scope": "standing", "polarity": "dislike", "strength": "hard"}
SESSION = {"scope": "session", "polarity": "like", "strength": "soft"}
BUDGET = {"scope": "session", "anchor": "budget"}


def row(*findings: dict[str, str]) -> dict[str, Any]:
    """Return a labelled utterance."""
    return {"id": "x", "lang": "en", "group": "mixed", "text": "-", "findings": list(findings)}


def score(*pairs: tuple[dict[str, Any], Iterable[Finding] | None]) -> Score:
    """Return the score of utterances and what was judged of them."""
    result = Score()
    for labelled, judged in pairs:
        result.add(labelled, judged)
    return result


def test_a_constraint_kept_for_good_is_a_leak() -> None:
    """A standing finding in the place of a missed constraint is a leak; one beside all of them is none."""
    leaked = score((row(SESSION), [finding()]))
    beside = score((row(SESSION), [finding(), finding(scope="session")]))

    assert (leaked.leaked, leaked.constraints) == (1, 1)
    assert (beside.leaked, beside.found["constraint"], beside.judged["standing"]) == (0, 1, 1)
    assert leaked.confused == {("constraint", "standing"): 1}
    assert beside.confused == {("nothing", "standing"): 1}


def test_polarity_counts_beside_the_kind() -> None:
    """A preference found with the wrong polarity is found, and counted as disagreeing."""
    counted = score((row(STANDING), [finding(polarity="like")]), (row(STANDING), [finding()]))

    assert (counted.found["standing"], counted.polarity, counted.strength) == (2, 1, 2)


def test_floors_are_on_point_values() -> None:
    """Nine of ten right and three of four found meet them; one less does not."""
    right = [(row(STANDING), [finding()])]
    missed: list[tuple[dict[str, Any], list[Finding]]] = [(row(STANDING), [])]
    wrong = [(row(), [finding()])]

    assert is_met(score(*right * 9, *wrong * 1, *missed * 3))
    assert not is_met(score(*right * 9, *wrong * 2))
    assert not is_met(score(*right * 9, *missed * 4))
    leaks = [(row(SESSION), [finding()])]
    kept = [(row(SESSION), [finding(scope="session")])]
    assert is_met(score(*right * 9, *leaks * 1, *kept * 49))
    assert not is_met(score(*right * 9, *leaks * 1, *kept * 48))


def test_a_judge_without_an_answer_is_counted() -> None:
    """No answer finds nothing, and is told."""
    scores = scored(lambda text: None, [row(STANDING, BUDGET)])

    assert (scores["overall"].failed, scores["en"].found["standing"]) == (1, 0)


def test_the_tuning_part_is_what_it_says() -> None:
    """At least 250 utterances in two languages, of all seven groups, labelled alike."""
    rows = corpus("tuning")
    groups = Counter(one["group"] for one in rows)

    assert len(rows) >= 250
    assert len({one["id"] for one in rows}) == len({one["text"] for one in rows}) == len(rows)
    assert set(groups) == {"constraint", "standing", "neither", "mixed", "sarcasm", "quoted", "injected"}
    assert {one["lang"] for one in rows} == {"en", "zh"}
    for one in rows:
        is_silent = one["group"] in ("neither", "sarcasm", "quoted", "injected")
        assert is_silent == (one["findings"] == []), one["id"]


def test_both_parts_have_the_size_that_their_page_says() -> None:
    """By lines alone, as nobody looks into the held-out part; the whole has 600 utterances at least."""
    sizes = {name: (CORPORA / f"{name}.jsonl").read_bytes().count(b"\n") for name in ("tuning", "heldout")}
    page = (CORPORA.parents[1] / "docs/explanation/curator.md").read_text(encoding="utf-8")

    assert sizes == {"tuning": 1451, "heldout": 648}
    assert f"`tests/curator_eval/tuning.jsonl`, has {sizes['tuning']} and" in page
    assert f"The held-out part has {sizes['heldout']} and" in page


def test_the_report_says_how_findings_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """By scope for the floors, and beside it with polarity; a wrong side is told, not left to be guessed."""
    rows = [row(STANDING), row(STANDING), row(STANDING)]
    answers = iter([[finding(polarity="like")], [finding()], []])
    report(scored(lambda text: next(answers), rows), with_ids=False)
    told = capsys.readouterr().out

    assert "counts by its scope" in told
    by_scope, with_polarity = told.split("counts by its scope")
    assert "overall  standing    precision    2/2 " in by_scope
    assert "overall  standing    precision    1/2 " in with_polarity
    assert "overall  standing    recall       1/3 " in with_polarity


def test_another_held_out_part_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures are those of the file whose digest was committed, or none."""
    (tmp_path / "heldout.jsonl").write_text("{}\n", encoding="utf-8")
    (tmp_path / "heldout.sha256").write_text("0" * 64 + "  heldout.jsonl\n", encoding="ascii")
    monkeypatch.setattr(eval_curator, "CORPORA", tmp_path)

    with pytest.raises(SystemExit, match="digest was committed"):
        corpus("heldout")
