"""`GovernedMemory` for asyncio."""

from __future__ import annotations

import contextvars
import os
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from agent_runtime_ref.contracts import (
    Caller,
    ForgetReceipt,
    MemoryCandidate,
    RetrievalQuery,
    RetrievalResult,
    ReviewReceipt,
    WriteReceipt,
)
from agent_runtime_ref.enforcement.write import Outcome
from agent_runtime_ref.errors import StoreError
from agent_runtime_ref.policy.engine import ASYNC_CALLER
from agent_runtime_ref.runtime import GovernedMemory

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from agent_runtime_ref.contracts.stored import StoredMemory
    from agent_runtime_ref.recall.engine import Ranker
    from agent_runtime_ref.recall.hits import RecallResult
    from agent_runtime_ref.telemetry.metrics import Lag

__all__ = ["AsyncGovernedMemory"]

ASYNC_THREADS_MAX = 8
T = TypeVar("T")


class AsyncGovernedMemory:
    """The same gates for asyncio: the same code, on a bounded number of threads of its own.

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

        return cls(await asyncio.to_thread(partial(GovernedMemory.open, store, **options)))

    async def write(self, candidate: MemoryCandidate, *, caller: Caller) -> WriteReceipt:
        """Keep `candidate` if the policy admits it."""
        return await self._run(lambda: self._memory.write(candidate, caller=caller))

    async def write_many(self, candidates: Iterable[MemoryCandidate], *, caller: Caller) -> list[Outcome]:
        """Return a receipt or a refusal for each candidate, in order."""
        return await self._run(lambda: self._memory.write_many(candidates, caller=caller))

    async def read(
        self, query: RetrievalQuery, *, caller: Caller, text: str | None = None
    ) -> RetrievalResult:
        """Return what the policy lets `caller` see of `query`."""
        return await self._run(lambda: self._memory.read(query, caller=caller, text=text))

    async def recall(
        self,
        text: str,
        *,
        caller: Caller,
        purpose: str = "answer_generation",
        limit: int = 5,
        ranker: Ranker | None = None,
    ) -> RecallResult:
        """Return the caller's conversations that answer `text`, as far as the policy shows them."""
        return await self._run(
            lambda: self._memory.recall(text, caller=caller, purpose=purpose, limit=limit, ranker=ranker)
        )

    async def latest_profile(
        self, *, caller: Caller, purpose: str = "personalization"
    ) -> StoredMemory | None:
        """Return the caller's profile snapshot that was captured last."""
        return await self._run(lambda: self._memory.latest_profile(caller=caller, purpose=purpose))

    async def release(self, record_id: str, *, caller: Caller, reason: str) -> ReviewReceipt:
        """Let a record out of quarantine."""
        return await self._run(lambda: self._memory.release(record_id, caller=caller, reason=reason))

    async def reject(self, record_id: str, *, caller: Caller, reason: str) -> ReviewReceipt:
        """Remove a record from quarantine for good."""
        return await self._run(lambda: self._memory.reject(record_id, caller=caller, reason=reason))

    async def forget(self, *, subject: str, caller: Caller, dry_run: bool = False) -> ForgetReceipt:
        """Remove everything about `subject` in the caller's tenant."""
        return await self._run(lambda: self._memory.forget(subject=subject, caller=caller, dry_run=dry_run))

    async def reload_policies(self) -> bool:
        """Take the policies that are now where they came from; return whether they are others."""
        return await self._run(self._memory.reload_policies)

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
