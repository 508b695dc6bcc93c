"""The rule judge: what takes a constraint back, and what is no part of a thing's name."""

from __future__ import annotations

import pytest

from agent_runtime_ref.contracts import Finding
from agent_runtime_ref.curator import RuleJudge
from agent_runtime_ref.session_state import SessionState, merge

JUDGE = RuleJudge()


def after(*turns: str) -> SessionState:
    """Return what a session holds after these turns."""
    state = SessionState()
    for text in turns:
        state = merge(state, [one for one in JUDGE.judge(text) if one.scope == "session"])
    return state


def things(text: str) -> list[tuple[str, str, str]]:
    """Return scope, polarity and slug of each finding."""
    return [(one.scope, one.polarity, one.slug) for one in JUDGE.judge(text)]


@pytest.mark.parametrize(
    "text",
    [
        "leather is ok",
        "leather is fine now",
        "leather is okay today",
        "Leather is allowed again",
        "I don't mind leather",
        "I'm fine with leather after all",
        "you can show me leather again",
        "remove the leather restriction",
        "please lift the ban on leather",
        "leather is fine, but no plastic",
        "皮革也可以",
        "皮的也行",
        "皮革现在可以了",
        "皮革也没关系",
        "可以用皮革了",
        "不介意皮革",
        "取消对皮革的限制",
        "不用避开皮革了",
    ],
)
def test_what_is_fine_now_is_not_kept_out_any_more(text: str) -> None:
    """A thing that was not wanted may be again, in whatever words that is said."""
    assert [one.slug for one in after("no leather please").negative_hard] == ["leather"]
    state = after("no leather please", text)

    assert "leather" not in [one.slug for one in state.negative_hard]
    assert ("leather", "soft") in [(one.slug, one.strength) for one in state.positive_soft]


@pytest.mark.parametrize(
    "text",
    [
        "no budget limit anymore",
        "no more budget",
        "there's no budget any more",
        "forget the budget",
        "forget about my budget please",
        "ignore the price limit",
        "drop the budget",
        "the budget doesn't matter anymore",
        "I don't care about the budget anymore",
        "money is no object",
        "any price is fine",
        "不用管预算了",
        "预算不限",
        "预算取消",
        "取消预算限制",
        "把预算限制去掉",
        "没有预算限制了",
        "忘掉预算",
    ],
)
def test_a_budget_that_is_taken_back_is_gone(text: str) -> None:
    """Both of its ends; nothing stands for it, and nothing is kept of it for good."""
    assert len(after("between 50 and 100 dollars, no wool").budget) == 2
    state = after("between 50 and 100 dollars, no wool", text)

    assert state.budget == ()
    assert [one.slug for one in state.findings] == ["wool"]
    assert [one.scope for one in JUDGE.judge(text)] == ["session"]


@pytest.mark.parametrize(
    "text",
    [
        "Is leather ok?",
        "leather is not ok",
        "my wife says leather is fine",
        "if leather is ok for you",
        'she wrote "leather is fine now"',
        "no more leather",
        "forget that I hate leather",
        "that's fine now",
        "my budget is still 100 dollars",
        "don't forget the budget",
        "皮革可以吗",
        "我老婆说皮革也没关系",
        "预算100美元以内",
    ],
)
def test_nothing_is_taken_back_by_what_does_not_say_so(text: str) -> None:
    """A question, a denial, another's words and a repetition leave everything in force."""
    state = after("no leather please", "at most 100 dollars", text)

    assert [one.slug for one in state.negative_hard] == ["leather"]
    assert [one.amount.value for one in state.budget if one.amount] == ["100"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no more leather", ("session", "dislike", "leather")),
        ("no more Nike please", ("session", "dislike", "nike")),
        ("never show me Nike again", ("standing", "dislike", "nike")),
        ("don't ever recommend Nike", ("standing", "dislike", "nike")),
        ("don't show me Nike anymore", ("standing", "dislike", "nike")),
        ("stop showing me Nike", ("session", "dislike", "nike")),
        ("别再给我看耐克", ("session", "dislike", "耐克")),
        ("不要再推荐耐克", ("session", "dislike", "耐克")),
        ("以后别给我推荐耐克", ("standing", "dislike", "耐克")),
        ("以后不要出现香菜", ("standing", "dislike", "cilantro")),
    ],
)
def test_verbs_and_comparatives_are_no_part_of_a_thing(text: str, expected: tuple[str, str, str]) -> None:
    """An item of the brand has the name of the brand, not that of a request about it."""
    assert things(text) == [expected]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I never spend more than 100 dollars", "100"),
        ("I usually pay less than 60 euros for shoes", "60"),
        ("I never buy anything over 80 pounds", "80"),
        ("我从来不花超过500元", "500"),
        ("我从来不买超过100块的包", "100"),
    ],
)
def test_what_somebody_spends_at_most_is_a_budget(text: str, value: str) -> None:
    """A bound of prices is enforced as one, and no name of a thing."""
    (finding,) = JUDGE.judge(text)

    assert finding.amount is not None
    assert (finding.anchor, finding.amount.value, finding.amount.bound) == ("budget", value, "max")


@pytest.mark.parametrize(
    ("text", "slug"), [("Show me bags", "bag"), ("find me jackets", "coat"), ("给我看看包", "包")]
)
def test_what_is_searched_for_is_no_wish(text: str, slug: str) -> None:
    """Several of a thing are a search for it: as a wish, its name would stand among reasons."""
    assert [(one.anchor, one.slug) for one in JUDGE.judge(text)] == [("category", slug)]


def test_what_names_nothing_is_silence() -> None:
    """A picture has no key, and its speaker is not what he does not eat."""
    assert JUDGE.judge("我从来不吃🥜") == []


def test_a_wish_does_not_reach_over_what_was_taken_out_of_it() -> None:
    """Colour and search of one clause are two findings, each with its own words."""
    assert [(one.anchor, one.slug) for one in JUDGE.judge("show me red bags")] == [
        ("category", "bag"),
        ("none", "red"),
    ]


def test_taking_back_what_is_not_there_leaves_nothing() -> None:
    """A state holds constraints, and none that only takes one back."""
    lift = Finding("session", "dislike", "soft", "budget", "general", "budget", "no budget", anchor="budget")

    assert merge(SessionState(), [lift]) == SessionState()
    with pytest.raises(ValueError, match="takes one back"):
        SessionState((lift,))
