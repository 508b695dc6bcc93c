"""How well a record answers a query, as an exact integer in millionths, the same in Python and in SQL.

A score is 0.85 of the share of query terms that the record holds, and 0.15 of its recency, which halves
after thirty days. Both are fractions of integers; their sum is rounded once, half up, so that no store
depends on a float.
"""

from agent_runtime_ref.contracts import ScoreBreakdown

LEXICAL_MILLIONTHS = 850_000
RECENCY_MILLIONTHS = 150_000
MONTH_US = 30 * 24 * 3600 * 1_000_000
# Beyond a century recency is below the sixth decimal's reach; the bound keeps every product within 64 bits.
AGE_US_MAX = 100 * 365 * 24 * 3600 * 1_000_000


def age_us(*, now_us: int, created_us: int) -> int:
    """How old a record is, in microseconds; a record from the future is new."""
    return max(0, min(now_us - created_us, AGE_US_MAX))


def score_millionths(matched: int, query_count: int, age: int) -> int:
    """The score of a record that holds `matched` of `query_count` terms and is `age` microseconds old."""
    decay = MONTH_US + max(0, min(age, AGE_US_MAX))
    lexical, lexical_rest = divmod(LEXICAL_MILLIONTHS * matched, query_count)
    recency, recency_rest = divmod(RECENCY_MILLIONTHS * MONTH_US, decay)
    product = query_count * decay
    rest = (2 * (lexical_rest * decay + recency_rest * query_count) + product) // (2 * product)
    return lexical + recency + rest


def score_sql(*, matched: str, decay: str, query_count: int) -> str:
    """The expression of `score_millionths` over SQL expressions; `decay` is MONTH_US plus the bounded age."""
    recency = RECENCY_MILLIONTHS * MONTH_US
    lexical_rest = f"{LEXICAL_MILLIONTHS}*{matched}%{query_count}"
    return (
        f"{LEXICAL_MILLIONTHS}*{matched}/{query_count}+{recency}/{decay}"
        f"+(2*(({lexical_rest})*{decay}+({recency}%{decay})*{query_count})+{query_count}*{decay})"
        f"/({2 * query_count}*{decay})"
    )


def breakdown(matched: tuple[str, ...], query_count: int, age: int) -> ScoreBreakdown:
    """What a score is made of; every number is rounded from integers to six decimals."""
    decay = MONTH_US + max(0, min(age, AGE_US_MAX))
    return ScoreBreakdown(
        matched_terms=matched,
        query_term_count=query_count,
        lexical_coverage=_decimals(1_000_000 * len(matched), query_count),
        recency=_decimals(1_000_000 * MONTH_US, decay),
        lexical_contribution=_decimals(LEXICAL_MILLIONTHS * len(matched), query_count),
        recency_contribution=_decimals(RECENCY_MILLIONTHS * MONTH_US, decay),
        total=score_millionths(len(matched), query_count, age) / 1_000_000,
    )


def _decimals(numerator: int, denominator: int) -> float:
    return ((2 * numerator + denominator) // (2 * denominator)) / 1_000_000
