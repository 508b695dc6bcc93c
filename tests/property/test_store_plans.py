"""Plans pushed down into a store mean what plan_eval says, and both stores give the same pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.clock import instant
from agent_runtime_ref.contracts import Clause, MemoryRecord, Plan
from agent_runtime_ref.recall.analysis import label_terms, record_terms
from agent_runtime_ref.recall.score import age_us, score_millionths
from agent_runtime_ref.stores.attributes import ATTRIBUTES
from agent_runtime_ref.stores.base import SearchPage, SearchRequest, Store, match_key
from agent_runtime_ref.stores.plan_eval import exclusion, is_considered
from agent_runtime_ref.stores.registry import open_store
from agent_runtime_ref.testing.conformance_base import put
from agent_runtime_ref.testing.records import NOW, NOW_US, clause, make_record, open_plan

WORDS = ("alpha", "beta", "gamma", "note", "queue", "记忆", "忆")
TENANTS = ("tenant-a", "tenant-b")
MOMENTS = (NOW_US - 10**13, NOW_US - 1, NOW_US, NOW_US + 1)

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "record_id": st.sampled_from(["m0", "m1", "m2", "M1", "zz"]),
    "tenant_id": st.sampled_from([*TENANTS, "tenant-A", "nobody"]),
    "subject": st.sampled_from(["u1", "u2", "U1"]),
    "memory_class": st.sampled_from(["profile", "long_term", "short_term", "other"]),
    "kind": st.sampled_from(["working_note", "preference"]),
    "key": st.sampled_from(["queue", "beta", "Queue"]),
    "source": st.sampled_from(["user_input", "recall"]),
    "provenance": st.sampled_from(["unknown", "import"]),
    "provenance_known": st.booleans(),
    "trust_rank": st.integers(0, 4),
    "confidence_millionths": st.sampled_from([0, 499_999, 500_000, 1_000_000, 2**70, -(2**70)]),
    "created_ns": st.sampled_from([one * 1000 + rest for one in MOMENTS for rest in (-1, 0, 1)] + [2**80]),
    "expires_ns": st.sampled_from([one * 1000 + rest for one in MOMENTS for rest in (-1, 0, 1)] + [-(2**80)]),
    "status": st.sampled_from(["active", "superseded"]),
    "revision": st.integers(0, 3),
    "outranked": st.booleans(),
    "derived": st.booleans(),
}


@st.composite
def atoms(draw: st.DrawFn) -> tuple[str, str, Any]:
    """Any attribute with any operator that fits it."""
    attribute = draw(st.sampled_from(sorted(ATTRIBUTES)))
    value = VALUES[attribute]
    kinds = ["eq", "ne", "in", "not_in", "is_null", "not_null"]
    if ATTRIBUTES[attribute].type is not bool:
        kinds += ["lt", "lte", "gt", "gte"]
    operator = draw(st.sampled_from(kinds))
    if operator in ("in", "not_in"):
        # Long lists too: they are compiled another way than short ones.
        found = draw(st.lists(value, max_size=3))
        return attribute, operator, tuple(found * draw(st.sampled_from([1, 4])))
    if operator in ("is_null", "not_null"):
        return attribute, operator, None
    optional = st.none() | value if operator in ("eq", "ne") else value
    return attribute, operator, draw(optional)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Walls, selectors and filters in any number."""
    clauses: list[Clause] = []
    for number in range(draw(st.integers(0, 6))):
        role = draw(st.sampled_from(["wall", "selector", "filter", "filter", "filter"]))
        found = draw(st.lists(atoms(), max_size=3))
        classes = draw(st.none() | st.lists(VALUES["memory_class"], max_size=2).map(tuple))
        reason = draw(st.sampled_from(["reason_a", "reason_b", "reason_c"]))
        clauses.append(clause(role, f"R-{number}", *found, reason=reason, classes=classes))
    return open_plan(*clauses)


@st.composite
def records(draw: st.DrawFn, tenants: tuple[str, ...] = TENANTS) -> list[MemoryRecord]:
    """Records with few values each, so that they agree, tie and outrank often."""
    made = []
    for number in range(draw(st.integers(0, 12))):
        text = " ".join(draw(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)))
        made.append(
            make_record(
                f"m{number}",
                tenant_id=draw(st.sampled_from(tenants)),
                subject=draw(st.none() | VALUES["subject"]),
                memory_class=draw(VALUES["memory_class"]),
                kind=draw(VALUES["kind"]),
                key=draw(st.none() | VALUES["key"]),
                content=text,
                source=draw(VALUES["source"]),
                provenance=draw(VALUES["provenance"]),
                trust_level=draw(st.sampled_from(["low", "medium", "high"])),
                confidence=draw(st.sampled_from([0, 0.499999, 0.5, 1])),
                created_at=instant(draw(st.sampled_from(MOMENTS))),
                expires_at=draw(st.none() | st.sampled_from(MOMENTS).map(instant)),
                status=draw(st.sampled_from(["active", "superseded", "quarantined"])),
                revision=draw(st.integers(1, 3)),
                derived_from=draw(st.sampled_from([(), ("m0",)])),
            )
        )
    return made


QUERIES = st.none() | st.lists(st.sampled_from(WORDS), min_size=1, max_size=4, unique=True).map(tuple)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the files of a run lie; each example takes a new one."""
    with TemporaryDirectory() as path:
        yield Path(path)


class _Files:
    """Counts the files of a run."""

    count = 0

    @classmethod
    def open(cls, folder: Path) -> Store:
        """A SQLite store in a new file."""
        cls.count += 1
        return open_store(f"sqlite:{folder / f'{cls.count}.db'}")


def seen(page: SearchPage) -> tuple[Any, ...]:
    """Everything that a caller can see of a page."""
    return (
        [(one.rank_key, one.total, one.matched_terms, one.attributes, one.record()) for one in page.matches],
        [(one.rank_key, one.total, one.matched_terms, one.attributes, why) for one, why in page.kept_out],
        dict(page.exclusions),
        page.considered,
        page.revision,
    )


def scanned(store: Store, request: SearchRequest) -> list[Any]:
    """What a scan yields, batch after batch."""
    with store.examine(request, 3) as (_, batches):
        return [one.rank_key for batch in batches for one in batch]


def filled(folder: Path, held: list[MemoryRecord]) -> tuple[Store, Store]:
    """The same records in both stores."""
    stores = open_store("memory:"), _Files.open(folder)
    for store in stores:
        put(store, *held)
    return stores


@settings(max_examples=50)
@given(held=records(), plan=plans(), terms=QUERIES, take=st.integers(0, 5), kept=st.integers(0, 5))
def test_both_stores_give_the_same_pages(
    folder: Path, held: list[MemoryRecord], plan: Plan, terms: tuple[str, ...] | None, take: int, kept: int
) -> None:
    """Ids, order, scores, attributes and counts are the same in both stores, for one tenant and for all."""
    memory, sqlite = filled(folder, held)
    for tenant_ids in (("tenant-a",), ("tenant-b", "tenant-a", "nobody"), None):
        request = SearchRequest(tenant_ids, plan, terms, NOW_US, take, kept)
        assert seen(sqlite.search(request)) == seen(memory.search(request))
        assert scanned(sqlite, request) == scanned(memory, request)
    sqlite.close()


@settings(max_examples=50)
@given(held=records(tenants=("tenant-a",)), plan=plans(), terms=QUERIES)
def test_a_pushed_down_plan_means_what_plan_eval_says(
    folder: Path, held: list[MemoryRecord], plan: Plan, terms: tuple[str, ...] | None
) -> None:
    """Admitted, kept out, reasons, order and scores equal those of a loop over all records."""
    store = _Files.open(folder)
    put(store, *held)
    everything = store.search(SearchRequest(("tenant-a",), open_plan(), None, NOW_US, 100))
    expected = []
    for match in everything.matches:
        attributes = {**match.attributes, "outranked": _outranked(match.record(), held)}
        matched = _matched(match.record(), terms)
        if (terms is None or matched) and is_considered(plan, attributes):
            age = age_us(now_us=NOW_US, created_us=match.created_us)
            total = None if terms is None else score_millionths(len(matched), len(terms), age)
            expected.append((match_key(attributes, total), exclusion(plan, attributes)))
    expected.sort()
    page = store.search(SearchRequest(("tenant-a",), plan, terms, NOW_US, 100, 100))
    store.close()

    assert [one.rank_key for one in page.matches] == [key for key, reason in expected if reason is None]
    kept_out = [one for one in expected if one[1] is not None]
    assert [(one.rank_key, why) for one, why in page.kept_out] == kept_out
    assert page.exclusions == Counter(reason for _, reason in expected if reason is not None)
    assert page.considered == len(expected)


@settings(max_examples=20)
@given(data=st.data(), held=records(tenants=("tenant-a",)), plan=plans(), terms=QUERIES)
def test_rank_does_not_depend_on_the_order_of_writing(
    folder: Path, data: st.DataObject, held: list[MemoryRecord], plan: Plan, terms: tuple[str, ...] | None
) -> None:
    """Records written in another order give the same page, score by score."""
    request = SearchRequest(("tenant-a",), plan, terms, NOW_US, 100)
    shuffled = data.draw(st.permutations(held))
    pages = []
    for order in (held, shuffled):
        store = _Files.open(folder)
        put(store, *order)
        pages.append(seen(store.search(request)))
        store.close()

    assert pages[0] == pages[1]


@settings(max_examples=30)
@given(own=records(tenants=("tenant-a",)), foreign=records(), plan=plans(), terms=QUERIES)
def test_records_behind_the_walls_change_nothing(
    folder: Path,
    own: list[MemoryRecord],
    foreign: list[MemoryRecord],
    plan: Plan,
    terms: tuple[str, ...] | None,
) -> None:
    """Another tenant's records, or another subject's, never change ids, order, scores or counts of a page."""
    walls = (
        clause("wall", "MEM-R-001", ("tenant_id", "eq", "tenant-a")),
        clause("wall", "MEM-R-002", ("subject", "is_null", None), ("subject", "eq", "u1")),
    )
    request = SearchRequest(("tenant-a",), open_plan(*walls, *plan.clauses), terms, NOW_US, 100)
    mine = [one for one in own if one.subject in (None, "u1")]
    others = [
        replace(one, memory_id=f"f{number}", subject="u2" if one.tenant_id == "tenant-a" else one.subject)
        for number, one in enumerate(foreign)
    ]
    for store in filled(folder, mine):
        before = seen(store.search(request))
        put(store, *others)
        assert seen(store.search(request)) == before
        store.close()


def _outranked(record: MemoryRecord, held: list[MemoryRecord]) -> bool:
    order = ("low", "medium", "high")
    return record.key is not None and any(
        (other.subject, other.key, other.status) == (record.subject, record.key, "active")
        and order.index(other.trust_level) > order.index(record.trust_level)
        and (other.expires_at is None or other.expires_at - NOW > timedelta(0))
        for other in held
    )


def _matched(record: MemoryRecord, terms: tuple[str, ...] | None) -> list[str]:
    text, labels = record_terms(record.summary, record.content), label_terms(record.kind, record.key)
    return [one for one in terms or () if one in text] or [one for one in terms or () if one in labels]
