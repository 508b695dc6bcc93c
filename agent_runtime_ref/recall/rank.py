"""The one order of results: best score, then highest trust, then newest, then id, compared byte for byte."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

RankKey = tuple[int, int, int, str, str]


class Rankable(Protocol):
    """What the order of results looks at."""

    @property
    def rank_key(self) -> RankKey:
        """The sort key, smallest first."""


Ranked = TypeVar("Ranked", bound=Rankable)


def rank_key(
    *, total: int | None, trust_rank: int, created_us: int, memory_id: str, tenant_id: str
) -> RankKey:
    """The sort key of a record, smallest first; without a query text `total` is None and does not count.

    Ids are unique within a tenant only; the tenant comes last, so that a look across tenants has one order
    too. Code points sort like the bytes of UTF-8, in which the stores compare.
    """
    return (-(total or 0), -trust_rank, -created_us, memory_id, tenant_id)


def ranked(found: Iterable[Ranked]) -> list[Ranked]:
    """`found`, best first, whatever order it comes in."""
    return sorted(found, key=lambda one: one.rank_key)
