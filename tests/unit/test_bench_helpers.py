"""What measurements rest on: the same records everywhere, and honest arithmetic. No test looks at a clock."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_runtime_ref.recall.analysis import query_terms
from bench import data
from bench.data import Corpus, Question, Slice
from bench.ratios import Timings, Took, interleaved, p50, p95, percentile
from bench.report import Line, Times, bounds_table, keep, times_table
from bench.rows import ClassLimit, class_limits, terms

CORPUS = Corpus(3_000)
SETTINGS = {
    "trust_ranks": {"none": 0, "low": 1, "medium": 2, "high": 3},
    "trust_floors": {"medium": ["long_term", "profile"]},
    "age_limits": [{"days": 30, "classes": ["short_term"]}, {"days": 730, "classes": ["long_term"]}],
}


def test_records_are_the_same_in_another_process() -> None:
    """A record depends on its place in the corpus alone, not on the process that makes it."""
    code = (
        "from bench.data import Corpus, candidate, questions;"
        "corpus = Corpus(3_000);"
        "print(candidate(corpus.slices()[7], 3), questions(corpus, 2, salt='test'))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout
    here = f"{data.candidate(CORPUS.slices()[7], 3)} {data.questions(CORPUS, 2, salt='test')}\n"

    assert here == printed


def test_tenant_sizes_fall_by_rank_and_sum_to_the_corpus() -> None:
    """A hundred tenants, the second about half of the first."""
    sizes = list(CORPUS.tenant_sizes().values())

    assert (len(sizes), sum(sizes)) == (100, 3_000)
    assert sizes == sorted(sizes, reverse=True)
    assert 1.8 < sizes[0] / sizes[1] < 2.3


def test_slices_cover_every_record_oldest_first() -> None:
    """Slices are written in the order of their instants, all of them within the last two years."""
    slices = CORPUS.slices()

    assert sum(part.size for part in slices) == 3_000
    assert slices == sorted(slices, key=lambda part: (part.at_us, part.tenant_id))
    assert all(0 < data.NOW_US - part.at_us <= data.AGE_DAYS_MAX * data.DAY_US for part in slices)


def test_a_corpus_for_bulk_loads_is_cut_into_full_batches() -> None:
    """Without Zipf sizes every slice is one batch of a thousand."""
    slices = Corpus(6_000, tenants=3, prefix="other", zipf=False).slices()

    assert [part.size for part in slices] == [1_000] * 6


def test_a_quarter_of_the_records_is_chinese() -> None:
    """Text is twenty words, or, in a quarter of the records, twenty ideographs."""
    records = list(data.candidates(Slice("tenant-000", 0, 1_000, data.NOW_US)))
    chinese = [record for record in records if not record.content.isascii()]

    assert 200 < len(chinese) < 300
    assert {20} == {len(record.content) for record in chinese}
    assert {20} == {len(record.content.split()) for record in records if record.content.isascii()}


def test_no_two_records_have_the_same_content() -> None:
    """A repeated memory would be kept once, and the counts would not agree."""
    contents = [record.content for part in CORPUS.slices() for record in data.candidates(part)]

    assert len(contents) == len(set(contents))


def test_rare_terms_leave_the_commonest_words_out() -> None:
    """Three terms of a stored record, none of them among the fifty commonest words."""
    common = set(data.vocabulary()[: data.STOP_WORDS])
    for question in data.questions(CORPUS, 50, salt="test"):
        assert question.text is not None
        assert len(query_terms(question.text)) == 3
        assert common.isdisjoint(question.text.split())


def test_the_common_row_has_one_of_the_five_commonest_words() -> None:
    """One common word stands beside two rare terms."""
    common = set(data.vocabulary()[: data.COMMON_WORDS])
    for question in data.questions(CORPUS, 50, salt="test", row="common"):
        assert question.text is not None
        assert len(common.intersection(question.text.split())) == 1


def test_baselines_cut_text_as_recall_cuts_a_query() -> None:
    """Words and pairs of ideographs: else the contenders would look for different things."""
    for question in data.questions(CORPUS, 50, salt="test"):
        assert question.text is not None
        assert list(query_terms(question.text)) == terms(question.text)


def test_class_limits_take_the_stricter_of_question_and_policy() -> None:
    """The policy's floor of trust and its age limit hold where the question asks for more than they allow."""
    question = Question("tenant-000", None, ("short_term", "long_term"), "low", 365)

    assert class_limits(question, SETTINGS) == [
        ClassLimit("long_term", 2, data.NOW_US - 365 * data.DAY_US),
        ClassLimit("short_term", 1, data.NOW_US - 30 * data.DAY_US),
    ]


def test_percentiles_are_values_that_occurred() -> None:
    """No interpolation: the smallest value that so many of a hundred do not exceed."""
    values = [float(number) for number in range(100, 0, -1)]

    assert (p50(values), p95(values), percentile(values, 100)) == (50, 95, 100)
    assert p95([7.0]) == 7


def test_ratio_compares_medians_and_rounds() -> None:
    """The ratio of medians and the median of ratios are different numbers, and both are told."""
    times = {"one": [10, 20, 90], "other": [5, 20, 10]}
    found = Timings(wall=times, cpu=times).ratio("one", "other")

    assert (found.p50, found.p95, found.rounds, found.cpu) == (2, 4.5, 2, 2)


def test_surplus_is_measured_in_units_of_the_same_round() -> None:
    """How many units longer one took than the other, round by round."""
    times = {"one": [30, 50, 70], "other": [10, 10, 10], "unit": [10, 20, 60]}

    assert Timings(wall=times, cpu=times).surplus("one", "other", "unit") == 2


def test_a_contender_elsewhere_tells_its_own_times() -> None:
    """What another process measured of itself counts, not the way there and back."""
    timings = interleaved({"peer": lambda item: Took(item, 2 * item)}, [1, 2, 3], seed="test")

    assert timings == Timings(wall={"peer": [1, 2, 3]}, cpu={"peer": [2, 4, 6]})


def test_every_contender_runs_once_a_round_in_changing_order() -> None:
    """Neither goes first always, warm-up rounds leave no time behind."""
    order: list[tuple[int, str]] = []
    timings = interleaved(
        {name: lambda item, name=name: order.append((item, name)) for name in ("a", "b")},
        range(40),
        seed="test",
        warm_up=10,
    )

    assert {name: len(found) for name, found in timings.wall.items()} == {"a": 30, "b": 30}
    assert sorted(order) == [(item, name) for item in range(40) for name in ("a", "b")]
    assert {"a", "b"} == {name for place, (_, name) in enumerate(order) if place % 2 == 0}


def test_rounds_stop_when_time_is_up_but_not_before_there_are_enough() -> None:
    """A budget of nothing still gives thirty rounds."""
    timings = interleaved({"a": lambda _: None}, range(100), seed="test", warm_up=5, seconds_max=0)

    assert len(timings.wall["a"]) == 30


@pytest.mark.parametrize(("value", "met"), [(0.6, True), (0.61, False)])
def test_a_bound_is_met_up_to_its_value(value: float, met: bool) -> None:
    """At most means at most."""
    assert met is Line("read", value, 0.6).met


def test_tables_say_number_bound_and_whether_it_was_met() -> None:
    """One row a number; a number without a bound has no verdict."""
    text = bounds_table([Line("read", 0.75, 0.6), Line("memory", 70, unit="MB", note="peak")])

    assert "| read | 0.75× | ≤ 0.60× | **no** |  |" in text
    assert "| memory | 70.0 MB |  |  | peak |" in text
    assert "| write | 2.50 ms | 3.00 ms | 3 |" in times_table([Times("write", [2e6, 2.5e6, 3e6])])


def test_a_kept_account_replaces_its_own_section_only(tmp_path: Path) -> None:
    """What is written by hand around an account stays, and so does the account of another run."""
    page = tmp_path / "performance.md"
    page.write_text("# Performance\n\nBy hand.\n", encoding="utf-8")
    keep(page, "bench", "old")
    keep(page, "bench-large", "large")
    keep(page, "bench", "new")
    text = page.read_text(encoding="utf-8")

    assert "old" not in text
    assert text.startswith("# Performance\n\nBy hand.\n")
    assert text.index("new") < text.index("large")
