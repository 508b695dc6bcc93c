"""One statement per search: find by terms, judge by plan, count by reason, and bring the best of both sides.

Everything comes from one statement and so from one snapshot. Postings are grouped first, so that a record
is looked at once; only the best are joined with what is wide.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from agent_runtime_ref.clock import microseconds
from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.contracts.projection import happened_at
from agent_runtime_ref.recall.rank import RankKey
from agent_runtime_ref.recall.score import AGE_US_MAX, MONTH_US, score_sql
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest
from agent_runtime_ref.stores.plan_shape import CompiledPlan, PlanShape, marker
from agent_runtime_ref.stores.sql_page import PART_ADMITTED, PART_COUNT, PART_KEPT_OUT, PART_REVISION, page_of
from agent_runtime_ref.stores.sqlite import rows
from agent_runtime_ref.stores.sqlite.plan_sql import conditions, numbered, outranked_sql
from agent_runtime_ref.stores.sqlite.schema import POLICY_COLUMNS, SHOWN_COLUMNS, TENANT_SHIFT

# Positions of the values that every statement binds; the terms follow, then the plan's values.
_NOW, _TENANT, _TAKE, _EXCLUDED_TAKE, _FIRST = range(5)

_ORDER = "total DESC,trust_rank DESC,created_us DESC,memory_id"
# Ids are unique within a tenant; across tenants the tenant's name decides last.
_ORDER_ACROSS = f"{_ORDER},(SELECT i.tenant_id FROM tenants i WHERE i.tid=j.tid)"

# A row of an answer: part, score, terms found, verdict and outranked in one number, then policy and
# content columns. What sorts it is negated, so that one ascending sort does.
_HEAD = ("part", "total", "mask", "flags")
_TID, _TRUST, _CREATED, _ID = (
    len(_HEAD) + POLICY_COLUMNS.index(name) for name in ("tid", "trust_rank", "created_us", "memory_id")
)
_DETAILS = len(_HEAD) + len(POLICY_COLUMNS) + SHOWN_COLUMNS.index("details")
_HEAD_SQL = f"-page.total,page.mask,page.verdict*2+{outranked_sql(_NOW)}"
_POLICY_SQL = ",".join(
    f"-r.{name}" if name in ("trust_rank", "created_us") else f"r.{name}" for name in POLICY_COLUMNS
)
_CONTENT_NULLS = ",NULL" * len(SHOWN_COLUMNS)
_ALL_NULLS = ",NULL" * (len(POLICY_COLUMNS) + len(SHOWN_COLUMNS))
_in_order = itemgetter(0, 1, _TRUST, _CREATED, _ID)

Row = tuple[Any, ...]
Loader = Callable[[str, str], MemoryRecord]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A search, ready to run: the plan compiled, the tenants as numbers. Also takes its rows apart."""

    request: SearchRequest
    plan: CompiledPlan
    tenants: tuple[int, ...]
    names: Callable[[int], str]
    place: str  # the file, for errors
    load: Loader  # fetches a kept-out record, of which a search brings the attributes only

    def rank_key(self, row: Row) -> RankKey:
        """The row's place in the order."""
        return row[1], row[_TRUST], row[_CREATED], row[_ID], self.names(row[_TID])

    def matched_terms(self, row: Row) -> tuple[str, ...]:
        """The terms whose bits are set."""
        mask = row[2]
        return tuple(term for number, term in enumerate(self.request.terms or ()) if mask >> number & 1)

    def attributes(self, row: Row) -> dict[str, Any]:
        """The candidate document."""
        return rows.attributes(_plain(row), self.names(row[_TID]), self.place, outranked=bool(row[3] & 1))

    def happened_us(self, row: Row) -> int:
        """When it happened: out of the row, as `record` would say."""
        if row[0] != PART_ADMITTED:
            return microseconds(happened_at(self.record(row)))
        with rows.understood(self.place, f"record {row[_ID]!r}"):
            origin = rows.details(row[_DETAILS])[0]
            return -row[_CREATED] if origin is None else microseconds(origin.captured_at)

    def record(self, row: Row) -> MemoryRecord:
        """The record: out of the row, or, where it was kept out, out of the store."""
        if row[0] == PART_ADMITTED:
            return rows.record(_plain(row), self.names(row[_TID]), self.place)
        return self.load(self.names(row[_TID]), row[_ID])


def _plain(row: Row) -> list[Any]:
    plain = list(row)
    plain[_TRUST], plain[_CREATED] = -row[_TRUST], -row[_CREATED]
    return plain[len(_HEAD) :]


def run(connection: sqlite3.Connection, prepared: Prepared) -> SearchPage:
    """Run a search and read it to the end, which closes its snapshot."""
    sql, positions = _search_sql(*_shape(prepared))
    found = connection.execute(sql, _bound(prepared, positions)).fetchall()
    with rows.understood(prepared.place):
        found.sort(key=_in_order)  # SQL promises no order beyond a subquery
        return page_of(found, prepared, prepared.plan.reasons)


def stream(connection: sqlite3.Connection, prepared: Prepared, batch: int) -> Iterator[list[Match]]:
    """Every admitted match, best first, while the connection's snapshot stays open."""
    sql, positions = _scan_sql(*_shape(prepared))
    cursor = connection.execute(sql, _bound(prepared, positions))
    while found := cursor.fetchmany(batch):
        yield [Match(prepared, row) for row in found]


def explain(connection: sqlite3.Connection, prepared: Prepared) -> list[str]:
    """SQLite's own account of how it runs a search."""
    sql, positions = _search_sql(*_shape(prepared))
    cursor = connection.execute(f"EXPLAIN QUERY PLAN {sql}", _bound(prepared, positions))
    return [str(row[3]) for row in cursor]


def _shape(prepared: Prepared) -> tuple[PlanShape, int | None, bool, bool]:
    request = prepared.request
    terms = None if request.terms is None else len(request.terms)
    return prepared.plan.shape, terms, len(prepared.tenants) == 1, request.labels


def _bound(prepared: Prepared, positions: tuple[int, ...]) -> list[Any]:
    request = prepared.request
    tenants = prepared.tenants
    values = (
        request.now_us,
        tenants[0] if len(tenants) == 1 else json.dumps(tenants),
        request.take,
        request.excluded_take,
        *(request.terms or ()),
        *prepared.plan.values,
    )
    return [values[position] for position in positions]


@lru_cache(maxsize=512)
def _search_sql(
    shape: PlanShape, terms: int | None, one_tenant: bool, labels: bool
) -> tuple[str, tuple[int, ...]]:
    order = _ORDER if one_tenant else _ORDER_ACROSS
    text = (
        f"WITH {_judged_sql(shape, terms, one_tenant, labels)}"
        f" SELECT {PART_COUNT},verdict,count(*),NULL{_ALL_NULLS} FROM j GROUP BY verdict"
        f" UNION ALL SELECT {PART_REVISION},ifnull(max(seq),0),NULL,NULL{_ALL_NULLS} FROM log"
        f" UNION ALL SELECT {PART_ADMITTED},{_HEAD_SQL},{_POLICY_SQL},{rows.CONTENT_LIST}"
        f" FROM (SELECT * FROM j WHERE verdict=0 ORDER BY {order} LIMIT {marker(_TAKE)}) page"
        " CROSS JOIN records r ON r.rid=page.rid CROSS JOIN contents t ON t.rid=page.rid"
        f" UNION ALL SELECT {PART_KEPT_OUT},{_HEAD_SQL},{_POLICY_SQL}{_CONTENT_NULLS}"
        f" FROM (SELECT * FROM j WHERE verdict>0 ORDER BY {order} LIMIT {marker(_EXCLUDED_TAKE)}) page"
        " CROSS JOIN records r ON r.rid=page.rid"
    )
    return numbered(text)


@lru_cache(maxsize=128)
def _scan_sql(
    shape: PlanShape, terms: int | None, one_tenant: bool, labels: bool
) -> tuple[str, tuple[int, ...]]:
    order = _ORDER if one_tenant else _ORDER_ACROSS
    text = (
        f"WITH {_judged_sql(shape, terms, one_tenant, labels)}"
        f" SELECT {PART_ADMITTED},{_HEAD_SQL},{_POLICY_SQL},{rows.CONTENT_LIST}"
        # CROSS JOIN keeps the order of its left side; without a LIMIT the ORDER BY would be left out as idle.
        f" FROM (SELECT * FROM j WHERE verdict=0 ORDER BY {order} LIMIT -1) page"
        " CROSS JOIN records r ON r.rid=page.rid CROSS JOIN contents t ON t.rid=page.rid"
    )
    return numbered(text)


def _judged_sql(shape: PlanShape, terms: int | None, one_tenant: bool, labels: bool) -> str:
    """The common table `j`: every considered record with its score, what orders it, and its verdict."""
    where, verdict = conditions(shape, first=_FIRST + (terms or 0), now=_NOW)
    keys = "r.rid AS rid,r.tid AS tid,r.trust_rank AS trust_rank,r.created_us AS created_us"
    keys += f",r.memory_id AS memory_id,{verdict} AS verdict"
    if terms is None:
        source = _tenant_rows(shape, one_tenant)
        return f"j AS MATERIALIZED (SELECT {keys},0 AS total,0 AS mask FROM {source} AND {where})"
    decay = f"{MONTH_US}+max(0,min({marker(_NOW)}-r.created_us,{AGE_US_MAX}))"
    # LIMIT -1 OFFSET 0 keeps SQLite from folding the inner query into the outer one, which would compute the
    # decay once for each of its five uses.
    return (
        f"m AS MATERIALIZED ({_matches_sql(terms, one_tenant, labels)}),"
        " j AS MATERIALIZED (SELECT rid,tid,trust_rank,created_us,memory_id,verdict,mask,"
        f"{score_sql(matched='n', decay='decay', query_count=terms)} AS total FROM ("
        f"SELECT {keys},m.n AS n,m.mask AS mask,{decay} AS decay"
        " FROM m CROSS JOIN records r ON r.rid=m.rid"
        f" WHERE {_tenant_condition('r.tid', one_tenant)} AND {where}"
        " LIMIT -1 OFFSET 0))"
    )


def _matches_sql(terms: int, one_tenant: bool, labels: bool) -> str:
    """Records with how many terms they were found by, and which: bit 0 of the mask is the first term.

    A record with one term in its text is found by its text alone; kind and key count only where there is
    none, and without `labels` not even there.
    """
    bits = " UNION ALL ".join(
        f"SELECT {_bit(number)} AS bit,{marker(_FIRST + number)} AS term" for number in range(terms)
    )
    return (
        "SELECT p.rid AS rid,"
        "CASE WHEN sum(p.label)=count(*) THEN count(*) ELSE count(*)-sum(p.label) END AS n,"
        "CASE WHEN sum(p.label)=count(*) THEN sum(q.bit) ELSE sum(q.bit*(1-p.label)) END AS mask"
        f" FROM ({bits}) q CROSS JOIN postings p"
        f" ON {_tenant_condition('p.tid', one_tenant)} AND p.term=q.term{'' if labels else ' AND p.label=0'}"
        " GROUP BY p.rid"
    )


def _bit(number: int) -> str:
    # The 64th bit is the sign; SQLite reads 1<<63 as the least integer, which keeps the sum within 64 bits.
    return str(1 << number) if number < 63 else "(-9223372036854775807-1)"


def _tenant_condition(column: str, one_tenant: bool) -> str:
    if one_tenant:
        return f"{column}={marker(_TENANT)}"
    return f"{column} IN (SELECT value FROM json_each({marker(_TENANT)}))"


def _tenant_rows(shape: PlanShape, one_tenant: bool) -> str:
    """The rows of the tenants: by id where ids are asked for, else along the tenant's part of the table."""
    if shape.by_id:
        return f"records r WHERE {_tenant_condition('r.tid', one_tenant)}"
    first = f"{marker(_TENANT)}" if one_tenant else "w.value"
    span = f"r.rid BETWEEN ({first}<<{TENANT_SHIFT}) AND ({first}<<{TENANT_SHIFT})+{(1 << TENANT_SHIFT) - 1}"
    if one_tenant:
        return f"records r NOT INDEXED WHERE {span}"
    return f"json_each({marker(_TENANT)}) w CROSS JOIN records r NOT INDEXED ON {span} WHERE 1"
