"""The score is one number in Python and SQL, and the order is total."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref.recall.analysis import normalize_text, query_terms, record_terms
from agent_runtime_ref.recall.rank import RankKey, rank_key, ranked
from agent_runtime_ref.recall.score import AGE_US_MAX, MONTH_US, breakdown, score_millionths, score_sql

AGES = st.integers(0, AGE_US_MAX) | st.sampled_from([0, 1, MONTH_US, AGE_US_MAX])
COUNTS = st.integers(1, 64).flatmap(lambda count: st.tuples(st.integers(0, count), st.just(count)))


@given(counts=COUNTS, age=AGES)
def test_the_score_is_the_exact_sum_rounded_once(counts: tuple[int, int], age: int) -> None:
    """0.85 of the share plus 0.15 of recency, in millionths, rounded half up."""
    matched, count = counts
    exact = Fraction(850_000 * matched, count) + Fraction(150_000 * MONTH_US, MONTH_US + age)

    assert score_millionths(matched, count, age) == int(exact + Fraction(1, 2))


@given(counts=COUNTS, age=AGES)
def test_sql_computes_the_same_score(counts: tuple[int, int], age: int) -> None:
    """The expression fits 64 bits for every query and age, and gives the same integer."""
    matched, count = counts
    connection = sqlite3.connect(":memory:")
    expression = score_sql(matched="n", decay="decay", query_count=count)
    row = connection.execute(f"SELECT {expression} FROM (SELECT ? n, ? decay)", (matched, MONTH_US + age))
    found = row.fetchone()[0]
    connection.close()

    assert found == score_millionths(matched, count, age)


@given(counts=COUNTS, age=AGES)
def test_a_breakdown_adds_up(counts: tuple[int, int], age: int) -> None:
    """The contributions give the total to within the rounding of each."""
    matched, count = counts
    parts = breakdown(tuple(str(one) for one in range(matched)), count, age)

    assert abs(parts.lexical_contribution + parts.recency_contribution - parts.total) <= 0.0000015
    assert 0 <= parts.total <= 1


@dataclass(frozen=True)
class Item:
    """Something with a place in the order."""

    rank_key: RankKey


ITEMS = st.builds(
    lambda total, trust, created, name: Item(
        rank_key(total=total, trust_rank=trust, created_us=created, memory_id=name, tenant_id="t")
    ),
    st.integers(0, 2),
    st.integers(1, 3),
    st.integers(0, 2),
    st.sampled_from("abcABC"),
)


@given(data=st.data(), items=st.lists(ITEMS))
def test_rank_ignores_the_order_of_input(data: st.DataObject, items: list[Item]) -> None:
    """Any permutation is ranked the same."""
    assert ranked(data.draw(st.permutations(items))) == ranked(items)


@given(text=st.text(max_size=200))
def test_whatever_a_query_names_a_record_of_the_same_text_holds(text: str) -> None:
    """A record is found by its own words, in any script."""
    try:
        terms = query_terms(text)
    except ValueError:
        return
    assert set(terms) <= record_terms(None, text)


@given(text=st.text(max_size=100))
def test_the_normal_form_is_stable_under_spacing(text: str) -> None:
    """White space around and between words is no part of the normal form."""
    assert normalize_text(f"  {text}\n") == normalize_text(text)
