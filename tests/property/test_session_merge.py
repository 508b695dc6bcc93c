"""Merging is an algebra: what stands stays, what is new comes to it, the later word counts."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.session_state import FINDINGS_MAX, SessionState, merge, merged
from agent_runtime_ref.session_state.state import thing_of
from tests.constraining import about, budget, finding, like

SLUGS = ["plastic", "plastics", "塑料", "leather", "blue", "cotton", "皮特"]
things = st.builds(
    finding,
    st.sampled_from(SLUGS),
    polarity=st.sampled_from(["like", "dislike"]),
    strength=st.sampled_from(["hard", "soft"]),
    category=st.sampled_from(["material", "color"]),
    domain=st.sampled_from(["general", "bags", "shoes"]),
)
budgets = st.builds(
    budget,
    st.sampled_from(["100", "200", "300"]),
    st.sampled_from([None, "USD", "CNY"]),
    bound=st.sampled_from(["max", "min"]),
)


def _names_its_currency(bound: Finding) -> bool:
    return bound.amount is not None and bound.amount.currency is not None


turns = st.lists(st.one_of(things, budgets), max_size=6)
states = turns.map(lambda turn: merge(SessionState(), turn))


@given(states, turns, turns)
def test_two_turns_are_one_after_the_other(
    state: SessionState, first: list[Finding], second: list[Finding]
) -> None:
    """Merging a turn and then another is merging both."""
    assert merge(merge(state, first), second) == merge(state, [*first, *second])


@given(states)
def test_nothing_said_changes_nothing(state: SessionState) -> None:
    """Small talk leaves every constraint as it was."""
    assert merge(state, []) == state


@given(st.lists(st.one_of(things, budgets.filter(_names_its_currency)), max_size=6))
def test_saying_it_again_changes_nothing(turn: list[Finding]) -> None:
    """A state that is merged into itself, as when a turn is repeated after a crash, stays what it is."""
    once = merge(SessionState(), turn)
    assert merge(once, once.findings) == once


@given(states, st.one_of(things, budgets))
def test_the_later_word_counts_and_nothing_else_goes(state: SessionState, said: Finding) -> None:
    """What is said stands, and what goes is about the same thing."""
    after = merge(state, [said])

    assert after.findings[-1].slug == said.slug
    assert after.findings[-1].polarity == said.polarity
    gone = [one for one in state.findings if one not in after.findings]
    same_slug = thing_of(said)[-1]
    assert all((one.amount is not None) == (said.amount is not None) for one in gone)
    assert all(one.amount is not None or thing_of(one)[-1] == same_slug for one in gone)


@given(states, things)
def test_what_a_model_inferred_never_weakens_what_was_said(state: SessionState, guess: Finding) -> None:
    """An inferred finding is soft, and takes the place of no stated one."""
    after = merge(state, [replace(guess, stated=False)])

    assert set(state.findings) <= set(after.findings)
    assert all(one.strength == "soft" for one in after.findings if not one.stated)


@settings(max_examples=20)
@given(st.integers(min_value=0, max_value=30))
def test_a_full_state_refuses_rather_than_forgets(more: int) -> None:
    """What does not fit is named; nothing that stands makes way for it."""
    full = merge(SessionState(), [finding(f"thing-{number}") for number in range(FINDINGS_MAX)])
    said = [finding(f"new-{number}") for number in range(more)]

    after = merged(full, said)

    assert after.state == full
    assert after.refused == tuple((one, "full") for one in said)
    assert merge(full, [like("thing-3")]).positive_soft == (like("thing-3"),)


def test_a_turn_may_name_several_categories_and_the_next_one_replaces_them() -> None:
    """A conversation is about what one turn named together."""
    both = merge(SessionState(), [about("bag"), about("shoes")])
    assert [one.slug for one in both.category] == ["bag", "shoes"]

    assert [one.slug for one in merge(both, [about("lamp")]).category] == ["lamp"]
    assert merge(both, [finding("plastic")]).category == both.category


def test_a_bound_without_a_currency_is_in_that_of_the_conversation() -> None:
    """Whoever said $300 and then `up to 400` means dollars."""
    state = merge(SessionState(), [budget("300", "USD"), budget("400", None)])

    assert [one.amount for one in state.budget] == [budget("400", "USD").amount]


def test_bounds_that_contradict_do_not_both_stand() -> None:
    """A least above the greatest replaces it; in another currency nobody can tell."""
    state = merge(SessionState(), [budget("300"), budget("500", bound="min")])
    assert [one.amount.bound for one in state.budget if one.amount] == ["min"]

    state = merge(SessionState(), [budget("300"), budget("500", "CNY", bound="min")])
    assert len(state.budget) == 2
