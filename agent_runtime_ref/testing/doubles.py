"""Stand-ins whose behaviour a test decides: time, ids, and stores that lie or fail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agent_runtime_ref.stores.base import SearchPage, SearchRequest, Store
from agent_runtime_ref.testing.records import NOW_US, open_plan


class FrozenClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_us: int = NOW_US) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        """Microseconds since 1970 in UTC."""
        return self._now_us

    def monotonic_ns(self) -> int:
        """The same instant in nanoseconds: durations are zero unless the clock is moved."""
        return self._now_us * 1000

    def advance(self, *, microseconds: int = 0, seconds: int = 0, days: int = 0) -> None:
        """Move the clock forward."""
        self._now_us += microseconds + 1_000_000 * (seconds + 86_400 * days)


class CountedIds:
    """Ids `mem-000001`, `mem-000002`, ...: a count for each kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def new(self, kind: str) -> str:
        """Return the next id of `kind`."""
        self._counts[kind] += 1
        return f"{kind}-{self._counts[kind]:06d}"


class _Wrapper:
    """A store that passes on whatever it does not decide itself."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class LyingStore(_Wrapper):
    """A store that ignores the plan of a search: it hands out what policy excludes, other tenants' too.

    `extra` picks which of the records that the plan keeps out are added in front.
    """

    def __init__(
        self, inner: Store, *, extra: Callable[[dict[str, Any]], bool] = lambda attributes: True
    ) -> None:
        super().__init__(inner)
        self._extra = extra

    def search(self, request: SearchRequest) -> SearchPage:
        """The honest page with the lies in front."""
        page = self.inner.search(request)
        everything = replace(request, tenant_ids=None, plan=open_plan(), take=10_000)
        honest = {(match.tenant_id, match.memory_id) for match in page.matches}
        lies = tuple(
            match
            for match in self.inner.search(everything).matches
            if (match.tenant_id, match.memory_id) not in honest and self._extra(match.attributes)
        )
        return replace(page, matches=(lies + page.matches)[: request.take])


class FaultyStore(_Wrapper):
    """A store whose named method raises `error` on its n-th call, counted from 1, and on no other."""

    def __init__(self, inner: Store, *, method: str, error: BaseException, on_call: int = 1) -> None:
        super().__init__(inner)
        self._method = method
        self._error = error
        self._on_call = on_call
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        return self._guarded(found) if name == self._method else found

    def _guarded(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self._on_call:
                raise self._error
            return method(*arguments, **options)

        return call


class RacingStore(_Wrapper):
    """A store in which `action` happens right before the named method is first called, as a rival would."""

    def __init__(self, inner: Store, *, method: str, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self._method = method
        self._action: Callable[[], object] | None = action

    def __getattr__(self, name: str) -> Any:
        action = self._action
        if name == self._method and action is not None:
            self._action = None
            action()
        return getattr(self.inner, name)
