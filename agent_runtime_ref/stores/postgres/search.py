"""One statement per search: find by terms, judge by plan, count by reason, and bring the best of both sides.

Everything comes from one statement and so from one snapshot. The tenant stands in every condition, although
the walls of the database say it as well: with a value that is known the right partition is found by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any

from agent_runtime_ref.contracts import MemoryRecord
from agent_runtime_ref.recall.rank import RankKey
from agent_runtime_ref.recall.score import AGE_US_MAX, MONTH_US, score_sql
from agent_runtime_ref.stores import rows
from agent_runtime_ref.stores.base import Match, SearchPage, SearchRequest
from agent_runtime_ref.stores.plan_shape import CompiledPlan, PlanShape, marker
from agent_runtime_ref.stores.postgres.plan_sql import conditions, numbered, outranked_sql
from agent_runtime_ref.stores.postgres.records import CONTENT_TYPES, POLICY_COLUMNS, POLICY_TYPES, shown
from agent_runtime_ref.stores.postgres.session import ACROSS, Across, Row, Session
from agent_runtime_ref.stores.sql_page import PART_ADMITTED, PART_COUNT, PART_KEPT_OUT, PART_REVISION, page_of

# Positions of the values that every statement binds; the plan's values follow.
_NOW, _TENANT, _TAKE, _EXCLUDED_TAKE, _TERMS, _BITS, _FIRST = range(7)

_ORDER = "total DESC,trust_rank DESC,created_us DESC,memory_id,tenant_id"

# A row of an answer: part, score, terms found, verdict and outranked in one number, then policy and
# content columns. What sorts it is negated, so that one ascending sort does.
_HEAD = ("part", "total", "mask", "flags")
_TENANT_AT, _TRUST, _CREATED, _ID = (
    len(_HEAD) + POLICY_COLUMNS.index(name) for name in ("tenant_id", "trust_rank", "created_us", "memory_id")
)
_POLICY_SQL = ",".join(
    f"-r.{name}" if name in ("trust_rank", "created_us") else f"r.{name}" for name in POLICY_COLUMNS
)
_CONTENT_SQL = ",".join(f"t.{name}" for name in CONTENT_TYPES)
_CONTENT_NULLS = "".join(f",NULL::{kind}" for kind in CONTENT_TYPES.values())
_ALL_NULLS = "".join(f",NULL::{kind}" for kind in (*POLICY_TYPES, *CONTENT_TYPES.values()))
_RECORD = "JOIN records r ON r.tenant_id=p.tenant_id AND r.rid=p.rid"
_CONTENT = "JOIN contents t ON t.tenant_id=p.tenant_id AND t.rid=p.rid"
_in_order = itemgetter(0, 1, _TRUST, _CREATED, _ID, _TENANT_AT)

Loader = Callable[[str, str], MemoryRecord]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A search, ready to run: the plan compiled. Also takes its rows apart."""

    request: SearchRequest
    plan: CompiledPlan
    place: str  # the database, for errors
    load: Loader  # fetches a kept-out record, of which a search brings the attributes only

    @property
    def scope(self) -> str | Across:
        """Whose rows are looked at: one tenant's, or, in the role of inspection, several."""
        tenants = self.request.tenant_ids
        return tenants[0] if tenants is not None and len(tenants) == 1 else ACROSS

    def rank_key(self, row: Row) -> RankKey:
        """The row's place in the order."""
        return row[1], row[_TRUST], row[_CREATED], row[_ID], row[_TENANT_AT]

    def matched_terms(self, row: Row) -> tuple[str, ...]:
        """The terms whose bits are set."""
        mask = row[2]
        return tuple(term for number, term in enumerate(self.request.terms or ()) if mask >> number & 1)

    def attributes(self, row: Row) -> dict[str, Any]:
        """The candidate document."""
        return rows.attributes(_plain(row), row[_TENANT_AT], self.place, outranked=bool(row[3] & 1))

    def record(self, row: Row) -> MemoryRecord:
        """The record: out of the row, or, where it was kept out, out of the store."""
        if row[0] == PART_ADMITTED:
            return shown(_plain(row), self.place)
        return self.load(row[_TENANT_AT], row[_ID])


def _plain(row: Row) -> list[Any]:
    plain = list(row)
    plain[_TRUST], plain[_CREATED] = -row[_TRUST], -row[_CREATED]
    return plain[len(_HEAD) :]


def statement(prepared: Prepared) -> tuple[str, list[Any]]:
    """The one statement of a search, with its values."""
    sql, positions = _search_sql(*_shape(prepared))
    return sql, _bound(prepared, positions)


def page(found: list[Row], prepared: Prepared) -> SearchPage:
    """The page that the rows of a search make."""
    found.sort(key=_in_order)  # SQL promises no order beyond a subquery
    return page_of(found, prepared, prepared.plan.reasons)


def stream(session: Session, prepared: Prepared, batch: int) -> Iterator[list[Match]]:
    """Every admitted match, best first, while the session's snapshot stays open."""
    from psycopg import RawServerCursor

    sql, positions = _scan_sql(*_shape(prepared))
    with RawServerCursor(session.connection, "scan") as cursor:
        cursor.execute(sql.encode(), _bound(prepared, positions))
        while found := cursor.fetchmany(batch):
            yield [Match(prepared, row) for row in found]


def explain(session: Session, prepared: Prepared) -> list[str]:
    """The database's account of how it runs a search with a plan for any values, as the store has it."""
    from psycopg.sql import SQL, Literal

    sql, values = statement(prepared)
    literals = SQL(",").join(map(Literal, values)).as_string(session.connection)
    session.run(f"PREPARE explained AS {sql}")
    try:
        return [
            row[0]
            for row in session.rows(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE explained({literals})")
        ]
    finally:
        session.run("DEALLOCATE explained")


def _shape(prepared: Prepared) -> tuple[PlanShape, int | None, str, bool]:
    tenants = prepared.request.tenant_ids
    scope = "all" if tenants is None else "one" if len(tenants) == 1 else "some"
    terms = prepared.request.terms
    return prepared.plan.shape, None if terms is None else len(terms), scope, prepared.request.labels


def _bound(prepared: Prepared, positions: tuple[int, ...]) -> list[Any]:
    request = prepared.request
    tenants, terms = request.tenant_ids, list(request.terms or ())
    # The 64th bit is the sign.
    bits = [1 << number if number < 63 else -(1 << 63) for number in range(len(terms))]
    values = (
        request.now_us,
        None if tenants is None else tenants[0] if len(tenants) == 1 else list(tenants),
        request.take,
        request.excluded_take,
        terms,
        bits,
        *prepared.plan.values,
    )
    return [values[position] for position in positions]


def _head_sql(scope: str) -> str:
    return f"-p.total,p.mask,p.verdict*2+({outranked_sql(_NOW, _one(scope))})::int"


def _one(scope: str) -> int | None:
    return _TENANT if scope == "one" else None


@lru_cache(maxsize=512)
def _search_sql(shape: PlanShape, terms: int | None, scope: str, labels: bool) -> tuple[str, tuple[int, ...]]:
    revision = f"(SELECT coalesce(sum(c.seq),0)::bigint FROM chains c WHERE NOT c.reads{_of('c', scope)})"
    text = (
        f"WITH {_judged_sql(shape, terms, scope, labels)}"
        f" SELECT {PART_COUNT},verdict::bigint,count(*),NULL::int{_ALL_NULLS} FROM j GROUP BY verdict"
        f" UNION ALL SELECT {PART_REVISION},{revision},NULL,NULL{_ALL_NULLS}"
        f" UNION ALL SELECT {PART_ADMITTED},{_head_sql(scope)},{_POLICY_SQL},{_CONTENT_SQL}"
        f" FROM (SELECT * FROM j WHERE verdict=0 ORDER BY {_ORDER} LIMIT {marker(_TAKE)}::bigint) p"
        f" {_RECORD}{_of('r', scope)} {_CONTENT}{_of('t', scope)}"
        f" UNION ALL SELECT {PART_KEPT_OUT},{_head_sql(scope)},{_POLICY_SQL}{_CONTENT_NULLS}"
        f" FROM (SELECT * FROM j WHERE verdict>0 ORDER BY {_ORDER} LIMIT {marker(_EXCLUDED_TAKE)}::bigint) p"
        f" {_RECORD}{_of('r', scope)}"
    )
    return numbered(text)


@lru_cache(maxsize=128)
def _scan_sql(shape: PlanShape, terms: int | None, scope: str, labels: bool) -> tuple[str, tuple[int, ...]]:
    text = (
        f"WITH {_judged_sql(shape, terms, scope, labels)}"
        f" SELECT {PART_ADMITTED},{_head_sql(scope)},{_POLICY_SQL},{_CONTENT_SQL}"
        f" FROM (SELECT * FROM j WHERE verdict=0) p {_RECORD}{_of('r', scope)} {_CONTENT}{_of('t', scope)}"
        " ORDER BY p.total DESC,p.trust_rank DESC,p.created_us DESC,p.memory_id,p.tenant_id"
    )
    return numbered(text)


def _judged_sql(shape: PlanShape, terms: int | None, scope: str, labels: bool) -> str:
    """The common table `j`: every considered record with its score, what orders it, and its verdict."""
    where, verdict = conditions(shape, first=_FIRST, now=_NOW, tenant=_one(scope))
    keys = f"r.tenant_id,r.rid,r.trust_rank,r.created_us,r.memory_id,{verdict} AS verdict"
    if terms is None:
        zeros = "0::bigint AS total,0::bigint AS mask"
        return f"j AS MATERIALIZED (SELECT {keys},{zeros} FROM records r WHERE {where}{_of('r', scope)})"
    decay = f"{MONTH_US}+greatest(0,least({marker(_NOW)}::bigint-r.created_us,{AGE_US_MAX}))"
    score = score_sql(matched="n", decay="decay", query_count=terms)
    # OFFSET 0 keeps the inner query whole: folded into the outer one, the decay would be computed once for
    # each of its five uses.
    return (
        f"m AS MATERIALIZED ({_matches_sql(scope, labels)}),"
        " j AS MATERIALIZED (SELECT tenant_id,rid,trust_rank,created_us,memory_id,verdict,mask,"
        f"{score} AS total FROM (SELECT {keys},m.n,m.mask,{decay} AS decay"
        " FROM m JOIN records r ON r.tenant_id=m.tenant_id AND r.rid=m.rid"
        f" WHERE {where}{_of('r', scope)} OFFSET 0) x)"
    )


def _matches_sql(scope: str, labels: bool) -> str:
    """Records with how many terms they were found by, and which: bit 0 of the mask is the first term.

    A record with one term in its text is found by its text alone; kind and key count only where there is
    none, and without `labels` not even there.
    """
    return (
        "SELECT p.tenant_id,p.rid,"
        "CASE WHEN bool_and(p.label) THEN count(*) ELSE count(*) FILTER (WHERE NOT p.label) END AS n,"
        "CASE WHEN bool_and(p.label) THEN bit_or(q.bit)"
        " ELSE bit_or(q.bit) FILTER (WHERE NOT p.label) END AS mask"
        f" FROM unnest({marker(_TERMS)}::text[],{marker(_BITS)}::bigint[]) q(term,bit)"
        f" JOIN postings p ON p.term=q.term{'' if labels else ' AND NOT p.label'}{_of('p', scope)}"
        " GROUP BY p.tenant_id,p.rid"
    )


def _of(table: str, scope: str) -> str:
    """The condition that a table's rows are of the tenants that were asked for."""
    if scope == "all":
        return ""
    if scope == "some":
        return f" AND {table}.tenant_id=ANY({marker(_TENANT)}::text[])"
    return f" AND {table}.tenant_id={marker(_TENANT)}::text"
