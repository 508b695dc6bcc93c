"""The labelled set of the comparison of rankers, and its measures."""

from __future__ import annotations

import pytest

from bench.recall import AT, KINDS, judged, labelled, ndcg


def test_the_set_is_as_large_as_is_said() -> None:
    """At least two hundred queries in two languages and of every kind, each with a record that answers it."""
    records, queries = labelled()
    assert len(records) == 50
    assert len(queries) >= 200
    assert len({query.text for query in queries}) == len(queries)
    for language in ("en", "zh"):
        kinds = {query.kind for query in queries if query.language == language}
        assert kinds == set(KINDS)
    assert {one for query in queries for one in query.relevant} == {record.memory_id for record in records}


def test_gain_is_one_for_the_best_order() -> None:
    """A relevant record further down gains less, and none gains nothing."""
    assert ndcg([True, False], 1) == 1.0
    assert ndcg([False, True], 1) == pytest.approx(0.6309297)
    assert ndcg([True, True, False, False, False], 2) == 1.0
    assert ndcg([], 3) == 0.0
    assert ndcg([True] * AT, 9) == 1.0


def test_exact_words_are_always_found() -> None:
    """The lexical ranker finds every record by its own words."""
    records, queries = labelled()
    exact = [query for query in queries if query.kind == "exact"]
    assert min(one.recall for one in judged(None, records, exact)) == 1.0
