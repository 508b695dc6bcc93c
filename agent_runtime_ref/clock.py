"""Where instants and ids come from: protocols, and the real ones for production.

Nothing else in the package reads the system clock or a random source, so a run with a frozen
clock and counted ids is the same run, byte for byte.
"""

from __future__ import annotations

import secrets
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Clock(Protocol):
    """Tells the time."""

    def now_us(self) -> int:
        """Microseconds since 1970 in UTC."""

    def monotonic_ns(self) -> int:
        """Nanoseconds of a counter that never runs backwards; only differences mean anything."""


class Ids(Protocol):
    """Makes identifiers that are unique within a store."""

    def new(self, kind: str) -> str:
        """Return a fresh id that begins with `kind` and a hyphen: `mem-...`, `dec-...`, `evt-...`."""


class SystemClock:
    """The clock of this machine."""

    def now_us(self) -> int:
        """Microseconds since 1970 in UTC."""
        return time.time_ns() // 1000

    def monotonic_ns(self) -> int:
        """Nanoseconds of the process-wide performance counter."""
        return time.perf_counter_ns()


class RandomIds:
    """Ids of 96 random bits: no coordination, and no order that tells when a record was made."""

    def new(self, kind: str) -> str:
        """Return `kind` and 24 hex digits."""
        return f"{kind}-{secrets.token_hex(12)}"


def instant(microseconds: int) -> datetime:
    """Return the aware UTC datetime of `microseconds` since 1970."""
    return EPOCH + timedelta(microseconds=microseconds)


def microseconds(moment: datetime) -> int:
    """Return the whole microseconds since 1970 of an aware `moment`."""
    return (moment - EPOCH) // _MICROSECOND


@lru_cache(maxsize=256)  # every line and event of one gate call bears the same instant
def timestamp(microseconds: int) -> str:
    """Return the instant in RFC 3339 with `Z`; a fraction only where there is one."""
    text = instant(microseconds).isoformat()
    return text.replace("+00:00", "Z")
