"""Whatever is typed and whatever a model answers: findings are the user's own words, or there are none."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.curator import RuleJudge
from agent_runtime_ref.curator.model_answer import findings_of
from agent_runtime_ref.curator.rules.text import CHARACTERS_MAX, clauses, folded, hidden
from agent_runtime_ref.errors import JudgeError

WORDS = (
    "I always never hate love plastic wool blue budget under 300 $ € 1,200 k today tonight this time from "
    ", . ? ! / \" ` > : ( ) \n and or so because if my wife he said please no not don't 我 一直 从来 讨厌 "
    "喜欢 塑料 蓝色 预算 三百 块 今天 这次 以后 不要 别 对 过敏 ， 。 ？ “ ” 「 」 如果 他 说 ： 每次 都"
).split(" ")
TYPED = st.one_of(
    st.text(max_size=200),
    st.lists(st.sampled_from(WORDS), max_size=30).map(" ".join),
    st.lists(st.sampled_from(WORDS)).map("".join),
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "scope": st.sampled_from(["session", "standing", "ever", None]),
    "polarity": st.sampled_from(["like", "dislike", 1]),
    "thing": st.one_of(st.text(max_size=120), st.none()),
    "quote": st.one_of(st.sampled_from(["I always hate plastic", "plastic", "hate"]), st.text(max_size=20)),
    "anchor": st.sampled_from(["none", "budget", "category", ""]),
    "amount": st.one_of(
        st.none(),
        st.fixed_dictionaries({"value": st.text(max_size=6), "currency": st.none(), "bound": st.just("max")}),
    ),
}


@given(TYPED)
@settings(max_examples=150)
def test_findings_are_cut_out_of_what_was_typed(text: str) -> None:
    """No text makes the judge fail, and each finding stands in the text as it was typed."""
    findings = RuleJudge().judge(text)

    assert all(finding.content in text for finding in findings)
    assert findings == RuleJudge().judge(text)


@given(TYPED)
@settings(max_examples=150)
def test_every_step_keeps_every_place(text: str) -> None:
    """Folding and hiding change no length, and clauses lie in order within the text."""
    plain = hidden(folded(text[:CHARACTERS_MAX]))
    places = [place for clause in clauses(plain) for place in (clause.start, clause.end)]

    assert len(plain) == len(text[:CHARACTERS_MAX])
    assert places == sorted(places)
    assert all(clause.text == plain[clause.start : clause.end] for clause in clauses(plain))


@given(st.lists(st.fixed_dictionaries(PARTS), max_size=4))
@settings(max_examples=200)
def test_an_answer_is_findings_or_a_judge_error(answer: list[dict[str, Any]]) -> None:
    """A model's answer is taken whole or not at all; what is taken is soft, inferred and said by the user."""
    text = 'I always hate plastic. "I always hate plastic and hate"'
    try:
        findings = findings_of(json.dumps({"findings": answer}), text)
    except JudgeError:
        return

    assert all((one.strength, one.stated) == ("soft", False) for one in findings)
    assert all(one.content in text for one in findings)
