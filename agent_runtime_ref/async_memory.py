"""`GovernedMemory` for asyncio."""

from __future__ import annotations

import contextvars
import functools
import os
from collections.abc import Callable, Coroutine, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.policy.engine import ASYNC_CALLER
from agent_runtime_ref.runtime import GovernedMemory

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from agent_runtime_ref.clock import Clock, Ids
    from agent_runtime_ref.policy.bundle import Bundle
    from agent_runtime_ref.telemetry.metrics import Lag

__all__ = ["AsyncGovernedMemory"]

ASYNC_THREADS_MAX = 8
P = ParamSpec("P")
T = TypeVar("T")
_Twin = Callable[Concatenate["AsyncGovernedMemory", P], Coroutine[Any, Any, T]]


def _twin(method: Callable[Concatenate[GovernedMemory, P], T]) -> _Twin[P, T]:
    """Return the method for asyncio: its signature and its words, on a thread of the memory's own."""

    @functools.wraps(method)
    async def twin(self: AsyncGovernedMemory, /, *arguments: P.args, **named: P.kwargs) -> T:
        call: Callable[..., T] = getattr(self._memory, method.__name__)
        return await self._run(lambda: call(*arguments, **named))

    return twin


def _listing(method: Callable[Concatenate[GovernedMemory, P], Iterable[T]]) -> _Twin[P, list[T]]:
    """Return the method for asyncio, which goes through all there is on its thread and returns a list."""

    @functools.wraps(method)
    async def twin(self: AsyncGovernedMemory, /, *arguments: P.args, **named: P.kwargs) -> list[T]:
        call: Callable[..., Iterable[T]] = getattr(self._memory, method.__name__)
        return await self._run(lambda: list(call(*arguments, **named)))

    return twin


class AsyncGovernedMemory:
    """The same gates for asyncio: the same code, on a bounded number of threads of its own.

    Every method of `GovernedMemory` is here by its name and with its arguments; what goes through lines there
    returns them as a list. The run of `begin_run` and a chain of `log_chains` are the same objects as there:
    their methods wait for store and engine, so call them on a thread.

    A call that is cancelled while it is under way goes on to its end on its thread, where what it decided is
    carried out and written down; only its answer is dropped. A forked child has threads of its own.
    """

    def __init__(self, memory: GovernedMemory, *, threads_max: int = ASYNC_THREADS_MAX) -> None:
        self._memory = memory
        self._threads_max = threads_max
        self._closed = False
        # INVARIANT: threads are of one process; those of others are never handed anything.
        self._executors: dict[int, ThreadPoolExecutor] = {}

    @classmethod
    async def open(cls, store: str = "seeds:", **options: Any) -> Self:
        """Return governed memory as `GovernedMemory.open` does, opened off the event loop."""
        import asyncio

        return cls(await asyncio.to_thread(functools.partial(GovernedMemory.open, store, **options)))

    @classmethod
    async def from_settings(cls, *arguments: Any, **options: Any) -> Self:
        """Return governed memory as `GovernedMemory.from_settings` does, opened off the event loop."""
        import asyncio

        opening = functools.partial(GovernedMemory.from_settings, *arguments, **options)
        return cls(await asyncio.to_thread(opening))

    write = _twin(GovernedMemory.write)
    write_many = _twin(GovernedMemory.write_many)
    read = _twin(GovernedMemory.read)
    choose = _twin(GovernedMemory.choose)
    revise = _twin(GovernedMemory.revise)
    remove = _twin(GovernedMemory.remove)
    taken_back = _twin(GovernedMemory.taken_back)
    recall = _twin(GovernedMemory.recall)
    latest_profile = _twin(GovernedMemory.latest_profile)
    compact = _twin(GovernedMemory.compact)
    begin_run = _twin(GovernedMemory.begin_run)
    end_run = _twin(GovernedMemory.end_run)
    subject_mark = _twin(GovernedMemory.subject_mark)
    load_stored = _twin(GovernedMemory.load_stored)
    load_seeds = _twin(GovernedMemory.load_seeds)
    inspect = _twin(GovernedMemory.inspect)
    explain = _twin(GovernedMemory.explain)
    question = _twin(GovernedMemory.question)
    survey = _twin(GovernedMemory.survey)
    descent = _twin(GovernedMemory.descent)
    look_into_log = _twin(GovernedMemory.look_into_log)
    log_name = _twin(GovernedMemory.log_name)
    pseudonym = _twin(GovernedMemory.pseudonym)
    release = _twin(GovernedMemory.release)
    reject = _twin(GovernedMemory.reject)
    quarantine = _twin(GovernedMemory.quarantine)
    forget = _twin(GovernedMemory.forget)
    tell = _twin(GovernedMemory.tell)
    reload_policies = _twin(GovernedMemory.reload_policies)
    log_lines = _listing(GovernedMemory.log_lines)
    raw_log = _listing(GovernedMemory.raw_log)
    log_chains = _listing(GovernedMemory.log_chains)

    @property
    def store_url(self) -> str:
        """The address of the store, as it was opened."""
        return self._memory.store_url

    @property
    def durable(self) -> bool:
        """Whether what was kept outlives the process."""
        return self._memory.durable

    @property
    def clock(self) -> Clock:
        """The clock by which everything here is stamped."""
        return self._memory.clock

    @property
    def ids(self) -> Ids:
        """Where ids of this memory come from."""
        return self._memory.ids

    @property
    def bundle(self) -> Bundle:
        """The policies in force."""
        return self._memory.bundle

    @property
    def is_chained_by_tenant(self) -> bool:
        """Whether the lines of each tenant are numbered by themselves."""
        return self._memory.is_chained_by_tenant

    def observe_metrics(self, *, lag: Lag | None = None) -> None:
        """Have the application's metrics look up what `GovernedMemory.observe_metrics` says."""
        self._memory.observe_metrics(lag=lag)

    async def close(self) -> None:
        """Close the memory once what is under way has ended."""
        import asyncio

        self._closed = True
        await asyncio.to_thread(self._end)

    def _end(self) -> None:
        executor = self._executors.get(os.getpid())
        if executor is not None:
            executor.shutdown()
        self._memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, work: Callable[[], T]) -> T:
        import asyncio

        # The caller's context variables (a current span among them) go along to the thread.
        context = contextvars.copy_context()
        context.run(ASYNC_CALLER.set, True)
        return await asyncio.get_running_loop().run_in_executor(self._threads(), lambda: context.run(work))

    def _threads(self) -> ThreadPoolExecutor:
        """Return the threads of this process.

        Raises:
            StoreError: the memory has been closed.
        """
        # Imported here: a command that starts, reads and ends has no use for threads.
        from concurrent.futures import ThreadPoolExecutor

        if self._closed:
            raise StoreError(self._memory.store_url, "the memory is closed; open it again")
        executor = self._executors.get(os.getpid())
        if executor is None:
            made = ThreadPoolExecutor(self._threads_max, thread_name_prefix="governed-memory")
            executor = self._executors.setdefault(os.getpid(), made)
        return executor
