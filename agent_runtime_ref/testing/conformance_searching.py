"""Conformance cases about searching: what is found, in which order, and what is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from agent_runtime_ref.clock import instant, microseconds
from agent_runtime_ref.contracts import Origin
from agent_runtime_ref.errors import StoreCapabilityError
from agent_runtime_ref.recall.analysis import query_terms
from agent_runtime_ref.stores.base import SearchRequest
from agent_runtime_ref.testing.conformance_base import (
    TENANT,
    StoreCases,
    ask,
    ids,
    put,
    raises,
    tenant_plan,
)
from agent_runtime_ref.testing.records import NOW, NOW_US, clause, make_record, open_plan


class SearchingCases(StoreCases):
    """Terms, order, plans, counts and walls."""

    def test_nothing_is_found_in_an_empty_store(self) -> None:
        """A tenant that has nothing gets nothing, not somebody else's."""
        with self.opened() as store:
            page = ask(store, "support", tenant_ids=("u",))

            assert (page.matches, page.kept_out, page.considered, page.revision) == ((), (), 0, 0)

    def test_more_terms_come_first(self) -> None:
        """Matched share counts most; the breakdown's terms keep the query's order."""
        with self.opened() as store:
            put(
                store,
                make_record("mem-1", content="alpha beta"),
                make_record("mem-2", content="beta alpha gamma"),
                make_record("mem-3", content="gamma"),
                make_record("mem-4", content="delta"),
            )
            page = ask(store, "gamma", "alpha", "beta")

            assert ids(page) == ["mem-2", "mem-1", "mem-3"]
            assert page.matches[1].matched_terms == ("alpha", "beta")
            assert page.considered == 3

    def test_ties_fall_back_to_trust_then_time_then_id(self) -> None:
        """Equal scores are ordered by trust, then newest, then id."""
        day = timedelta(days=1)
        with self.opened() as store:
            put(
                store,
                make_record("mem-d", trust_level="low"),
                make_record("mem-c", trust_level="high", created_at=NOW - 2 * day),
                make_record("mem-b", trust_level="high", created_at=NOW - day),
                make_record("mem-a", trust_level="high", created_at=NOW - day),
                make_record("mem-B", trust_level="high", created_at=NOW - day),
            )

            assert ids(ask(store)) == ["mem-B", "mem-a", "mem-b", "mem-c", "mem-d"]

    def test_a_word_of_any_length_is_kept_and_found(self) -> None:
        """No index is too small for a word: it is found by its beginning, in every script."""
        for number, character in enumerate(("a", "\u0436", "\u0e01", "\U00010400")):
            # Unlike a run of one character, no index makes this small by compressing it.
            word = "".join(chr(ord(character) + one * one % 23) for one in range(4000))
            with self.opened() as store:
                put(store, make_record(f"mem-{number}", content=f"see {word} here"))

                assert ids(ask(store, *query_terms(f"see {word[:1000]}"))) == [f"mem-{number}"]
                assert ask(store, *query_terms(word[:1000])).matches[0].matched_count == 1

    def test_kind_and_key_count_only_where_the_text_does_not(self) -> None:
        """A record with one query term in its text is not lifted by its labels."""
        with self.opened() as store:
            put(
                store,
                make_record("mem-1", kind="language_preference", content="English", memory_class="profile"),
                make_record("mem-2", kind="language_preference", content="language", memory_class="profile"),
            )
            page = ask(store, "language", "preference")

            assert ids(page) == ["mem-1", "mem-2"]
            assert [match.matched_terms for match in page.matches] == [
                ("language", "preference"),
                ("language",),
            ]

    def test_a_match_tells_when_it_happened(self) -> None:
        """By its origin, else by when it was kept; of a record that is kept out too."""
        happened = NOW - timedelta(days=40)
        origin = Origin("s", "transcript", "t", happened)
        only_high = open_plan(clause("filter", "MEM-R-204", ("trust_rank", "gte", 3)))
        with self.opened() as store:
            put(
                store,
                make_record("mem-1", content="alpha", origin=origin, trust_level="high"),
                make_record("mem-2", content="alpha", trust_level="high", created_at=NOW),
                make_record("mem-3", content="alpha", origin=origin, trust_level="low"),
            )
            page = ask(store, "alpha", plan=only_high)

            told = {one.memory_id: one.happened_us for one in (*page.matches, page.kept_out[0][0])}
            assert told == {
                "mem-1": microseconds(happened),
                "mem-2": NOW_US,
                "mem-3": microseconds(happened),
            }

    def test_without_labels_a_record_is_found_by_its_text_alone(self) -> None:
        """A recall asks so: the kind that all conversations have is no word of theirs."""
        with self.opened() as store:
            put(
                store,
                make_record("mem-1", kind="conversation", key="plan", content="alpha"),
                make_record("mem-2", kind="conversation", content="a conversation about the plan"),
            )
            page = ask(store, "conversation", "plan", labels=False)

            assert (ids(page), page.considered) == (["mem-2"], 1)
            assert page.matches[0].matched_terms == ("conversation", "plan")

    def test_summary_is_searched_too(self) -> None:
        """Searchable text is summary and content."""
        with self.opened() as store:
            put(store, make_record("mem-1", content="alpha", summary="omega"))

            assert ids(ask(store, "omega")) == ["mem-1"]

    def test_composed_decomposed_wide_and_chinese_text(self) -> None:
        """Text is found whatever its normal form, width or case, and Chinese by a character or a pair."""
        with self.opened() as store:
            put(
                store,
                make_record("mem-1", content="caf\u00e9"),
                make_record("mem-2", content="ＦＵＬＬ width"),
                make_record("mem-3", content="分层记忆的检索"),
            )

            assert ids(ask(store, *query_terms("CAFE\u0301"))) == ["mem-1"]
            assert ids(ask(store, *query_terms("full"))) == ["mem-2"]
            assert ids(ask(store, *query_terms("记忆"))) == ["mem-3"]
            assert ids(ask(store, *query_terms("忆"))) == ["mem-3"]
            assert ids(ask(store, *query_terms("忆记"))) == []

    def test_sixty_four_terms(self) -> None:
        """As many terms as a query may have are matched and named, the last one too."""
        terms = tuple(f"t{number}" for number in range(64))
        with self.opened() as store:
            put(store, make_record("mem-1", content=" ".join(terms)), make_record("mem-2", content="t63"))
            page = ask(store, *terms)

            assert [match.matched_terms for match in page.matches] == [terms, ("t63",)]

    def test_expiry_at_the_very_instant(self) -> None:
        """A record is gone at its instant of expiry; expired ones do not crowd out others."""
        soon = [make_record(f"mem-{number}", expires_at=NOW, trust_level="high") for number in range(5)]
        alive = clause(
            "filter", "MEM-R-203", ("expires_ns", "is_null", None), ("expires_ns", "gt", NOW_US * 1000)
        )
        with self.opened() as store:
            put(store, *soon, make_record("mem-live", expires_at=instant(NOW_US + 1)))
            page = ask(store, plan=open_plan(alive), take=5)

            assert ids(page) == ["mem-live"]
            assert page.exclusions == {"MEM-R-203": 5}

    def test_first_failing_filter_gives_the_reason(self) -> None:
        """A record that fails several filters is counted once, under the lowest rule id."""
        plan = open_plan(
            clause("filter", "MEM-R-204", ("trust_rank", "gte", 3), reason="trust"),
            clause("filter", "MEM-R-202", ("status", "eq", "active"), reason="status"),
        )
        with self.opened() as store:
            put(
                store,
                make_record("mem-1", status="superseded"),
                make_record("mem-2"),
                make_record("mem-3", trust_level="high"),
            )
            page = ask(store, plan=plan)

            assert page.exclusions == {"status": 1, "trust": 1}
            assert [(match.memory_id, reason) for match, reason in page.kept_out] == [
                ("mem-1", "status"),
                ("mem-2", "trust"),
            ]
            assert page.considered == 3

    def test_counts_are_exact_beyond_what_is_returned(self) -> None:
        """Nothing taken, everything counted."""
        plan = open_plan(clause("filter", "MEM-R-202", ("status", "eq", "active")))
        with self.opened() as store:
            put(store, *(make_record(f"m{one:03d}", status="quarantined") for one in range(120)))
            put(store, *(make_record(f"n{one:03d}") for one in range(30)))
            page = ask(store, "support", plan=plan, take=0)

            assert (page.considered, page.exclusions, page.matches) == (150, {"MEM-R-202": 120}, ())
            assert len(page.kept_out) == 50

    def test_walls_and_selectors_are_not_counted(self) -> None:
        """What fails a wall or a selector is as if it were not there."""
        plan = open_plan(
            clause("wall", "MEM-R-002", ("subject", "is_null", None), ("subject", "eq", "user-42")),
            clause("selector", "MEM-R-010", ("kind", "in", ("validated_fact",))),
        )
        with self.opened() as store:
            put(
                store,
                make_record("mem-1"),
                make_record("mem-2", subject="user-42"),
                make_record("mem-3", subject="user-4"),
                make_record("mem-4", kind="preference"),
            )
            page = ask(store, plan=plan)

            assert (ids(page), page.considered, page.exclusions) == (["mem-1", "mem-2"], 2, {})

    def test_operators_on_what_is_absent(self) -> None:
        """What is absent equals nothing, is in no list, on no side of a limit, and differs from all."""
        cases: dict[tuple[str, Any], list[str]] = {
            ("eq", "queue"): ["mem-key"],
            ("ne", "queue"): ["mem-none"],
            ("in", ("queue", "other")): ["mem-key"],
            ("not_in", ("queue",)): ["mem-none"],
            ("in", ()): [],
            ("not_in", ()): ["mem-key", "mem-none"],
            ("lt", "z"): ["mem-key"],
            ("lte", "queue"): ["mem-key"],
            ("gt", "a"): ["mem-key"],
            ("gte", "queue"): ["mem-key"],
            ("is_null", None): ["mem-none"],
            ("not_null", None): ["mem-key"],
            ("eq", None): [],
            ("ne", None): ["mem-key", "mem-none"],
        }
        with self.opened() as store:
            put(store, make_record("mem-key", key="queue"), make_record("mem-none"))
            for (operator, value), expected in cases.items():
                plan = open_plan(clause("filter", "MEM-R-201", ("key", operator, value)))
                assert ids(ask(store, plan=plan)) == expected, (operator, value)

    def test_a_clause_for_some_classes_leaves_the_others(self) -> None:
        """A guarded clause says nothing about classes it does not name."""
        plan = open_plan(clause("filter", "MEM-R-204", ("trust_rank", "gte", 3), classes=("profile",)))
        with self.opened() as store:
            put(store, make_record("mem-1"), make_record("mem-2", memory_class="profile"))

            assert ids(ask(store, plan=plan)) == ["mem-1"]

    def test_outranked(self) -> None:
        """Only an active, unexpired record of higher trust, same subject and same key outranks."""
        plan = open_plan(clause("filter", "MEM-R-207", ("outranked", "eq", False)))
        high = {"key": "queue", "trust_level": "high"}
        others: list[tuple[dict[str, Any], bool]] = [
            (high, True),
            ({**high, "memory_class": "profile", "kind": "preference"}, True),
            ({**high, "status": "quarantined"}, False),
            ({**high, "expires_at": NOW}, False),
            ({**high, "expires_at": instant(NOW_US + 1)}, True),
            ({**high, "subject": "user-42"}, False),
            ({**high, "tenant_id": "tenant-b"}, False),
            ({**high, "key": "Queue"}, False),
            ({"key": "queue"}, False),
        ]
        for changes, outranked in others:
            with self.opened() as store:
                put(store, make_record("mem-1", key="queue"), make_record("mem-2", **changes))
                page = ask(store, plan=plan)
                assert ("mem-1" not in ids(page)) == outranked, changes
                assert all(one.attributes["outranked"] is False for one in page.matches)

    def test_unknown_attributes_operators_roles_and_types_are_refused(self) -> None:
        """What a store cannot compile it refuses, also where nothing is stored; it never leaves it out."""
        bad = [
            clause("filter", "R", ("mood", "eq", "good")),
            clause("filter", "R", ("status", "like", "act%")),
            clause("sieve", "R", ("status", "eq", "active")),
            clause("filter", "R", ("revision", "gte", "1")),
            clause("filter", "R", ("revision", "eq", True)),
            clause("filter", "R", ("derived", "eq", 1)),
            clause("filter", "R", ("derived", "lt", True)),
            clause("filter", "R", ("status", "in", "active")),
            clause("filter", "R", ("trust_rank", "gte", 1.5)),
        ]
        with self.opened() as store:
            for one in bad:
                raises(StoreCapabilityError, ask, store, plan=open_plan(one))
            put(store, make_record())
            for one in bad:
                raises(StoreCapabilityError, ask, store, "support", plan=open_plan(one))

    def test_an_empty_clause_admits_nothing(self) -> None:
        """A clause without atoms cannot hold."""
        with self.opened() as store:
            put(store, make_record())

            assert ask(store, plan=open_plan(clause("filter", "R"))).exclusions == {"R": 1}

    def test_other_tenants_are_not_seen(self) -> None:
        """Neither the request's tenants nor the plan's wall lets another tenant's record through."""
        with self.opened() as store:
            put(store, make_record("mem-1"), make_record("mem-2", tenant_id="tenant-b"))

            assert ids(ask(store, "support")) == ["mem-1"]
            assert ids(ask(store, plan=tenant_plan("tenant-b"))) == []
            across = ask(store, "support", tenant_ids=None, plan=tenant_plan("tenant-b"))
            assert [(match.tenant_id, match.memory_id) for match in across.matches] == [("tenant-b", "mem-2")]

    def test_all_tenants_in_one_order(self) -> None:
        """A look across tenants has one order; where ids are the same, the tenants' names decide."""
        names = ["b", "a", "c"]
        with self.opened() as store:
            for name in names:
                put(store, make_record("mem-1", tenant_id=name))
            for terms in ((), ("support",)):
                page = ask(store, *terms, tenant_ids=None)
                assert [match.tenant_id for match in page.matches] == ["a", "b", "c"]
                assert page.considered == 3
            assert [one.tenant_id for one in ask(store, tenant_ids=("c", "b"), take=1).matches] == ["b"]

    def test_an_examination_gives_every_admitted_match_once(self) -> None:
        """It yields what search admits, in the same order, in batches, with the counts of the same moment."""
        plan = open_plan(clause("filter", "MEM-R-204", ("trust_rank", "gte", 2)))
        levels = ("low", "medium", "high")
        with self.opened() as store:
            put(store, *(make_record(f"m{one:02d}", trust_level=levels[one % 3]) for one in range(40)))
            request = SearchRequest((TENANT,), plan, ("support",), NOW_US, 100)
            with store.examine(request, 10) as (page, found):
                put(store, make_record("late", trust_level="high"))
                batches = list(found)
            with store.examine(replace(request, tenant_ids=("nobody",)), 10) as (nothing, none):
                assert (nothing.considered, list(none)) == (0, [])

            assert [len(batch) for batch in batches] == [10, 10, 6]
            assert [one.memory_id for batch in batches for one in batch] == ids(page)
            assert (page.considered, page.exclusions) == (40, {"MEM-R-204": 14})
            assert len(ids(store.search(request))) == 27
            assert batches[0][0].record().content == make_record().content

    def test_attributes_are_the_candidate_document(self) -> None:
        """A match shows what the policy may look at, as it was stored."""
        record = make_record("mem-1", subject="user-42", key="queue", derived_from=("mem-0",), expires_at=NOW)
        with self.opened() as store:
            put(store, record)
            attributes = ask(store).matches[0].attributes

            assert attributes == {
                "record_id": "mem-1",
                "tenant_id": TENANT,
                "subject": "user-42",
                "memory_class": "long_term",
                "kind": "validated_fact",
                "key": "queue",
                "source": "trusted_service",
                "provenance": "validated_service_rule",
                "provenance_known": True,
                "trust_rank": 2,
                "confidence_millionths": 900_000,
                "created_ns": 1_777_593_600_000_000_000,
                "expires_ns": NOW_US * 1000,
                "status": "active",
                "revision": 1,
                "outranked": False,
                "derived": True,
            }
