"""Policies that change while calls are under way: each call is decided by one bundle."""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.clock import RandomIds, SystemClock
from agent_runtime_ref.enforcement.reload import PolicyOrigin
from agent_runtime_ref.errors import BundleError, StoreError
from agent_runtime_ref.policy.build import write_bundle
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.source import PolicySource
from agent_runtime_ref.stores.registry import open_store
from tests.reloading import Policies, answer, answers, fill, told


class Held(EmbeddedEngine):
    """An engine that waits at its first question after it was told to."""

    def __init__(self, bundle: Bundle) -> None:
        self.hold = self.closed = False
        self.asked, self.go_on = threading.Event(), threading.Event()
        super().__init__(bundle)

    def evaluate(self, entrypoint: str, document: str) -> dict[str, Any]:
        """Answer, once it may."""
        if self.hold:
            self.asked.set()
            assert self.go_on.wait(30)
        return super().evaluate(entrypoint, document)

    def close(self) -> None:
        """Close, and remember it."""
        self.closed = True
        super().close()


class TestUnderWay:
    """Calls that were under way."""

    def test_a_call_ends_under_the_policies_it_began_with(self, archive: Path, policies: Policies) -> None:
        """Both decisions of a read and its digest are of one bundle; its engine is closed after it."""
        source = PolicySource.at(archive)
        content = source.content()
        bundle = source.bundle(content)
        held = Held(bundle)
        memory = GovernedMemory(
            store=open_store("memory:", log=None),
            engine=held,
            bundle=bundle,
            clock=SystemClock(),
            ids=RandomIds(),
            origin=PolicyOrigin(source, Held, content.mark),
        )
        with memory:
            fill(memory)
            held.hold = True
            seen: list[object] = []
            thread = threading.Thread(target=lambda: seen.append(answer(memory)))
            thread.start()
            assert held.asked.wait(30)
            write_bundle(policies.strict, archive)
            memory.reload_policies()
            after, open_meanwhile = answer(memory), not held.closed
            held.go_on.set()
            thread.join()
            gc.collect()

            assert open_meanwhile
            assert after == answers(policies)[policies.strict.digest]
            assert seen == [answers(policies)[policies.open.digest]]
            assert held.closed

    def test_closing_waits_for_a_change(self, archive: Path, policies: Policies) -> None:
        """An engine that was made meanwhile is closed as well; afterwards nothing is taken any more."""
        source = PolicySource.at(archive)
        content = source.content()
        bundle = source.bundle(content)
        made: list[Held] = []
        making, go_on = threading.Event(), threading.Event()

        def engine_of(bundle: Bundle) -> Held:
            making.set()
            assert go_on.wait(30)
            made.append(Held(bundle))
            return made[-1]

        first = Held(bundle)
        memory = GovernedMemory(
            store=open_store("memory:", log=None),
            engine=first,
            bundle=bundle,
            clock=SystemClock(),
            ids=RandomIds(),
            origin=PolicyOrigin(source, engine_of, content.mark),
        )
        write_bundle(policies.strict, archive)
        changing = threading.Thread(target=memory.reload_policies)
        changing.start()
        assert making.wait(30)
        closing = threading.Thread(target=memory.close)
        closing.start()
        go_on.set()
        for thread in (changing, closing):
            thread.join(30)
        gc.collect()

        assert [first.closed, *(one.closed for one in made)] == [True, True]
        with pytest.raises(StoreError, match="closed"):
            memory._policies.reload()

    @pytest.mark.parametrize("store", ["memory:", "sqlite"])
    def test_full_speed_while_bundles_alternate(
        self, archive: Path, policies: Policies, tmp_path: Path, store: str
    ) -> None:
        """Thousands of reads, dozens of switches, broken bundles in between: each answer is of one bundle."""
        address = store if store == "memory:" else f"sqlite:{tmp_path / 'memory.db'}"
        wanted = answers(policies)
        seen: list[tuple[str, int, Mapping[str, int], bool]] = []
        wrong: list[BaseException] = []
        stop = threading.Event()
        with GovernedMemory.open(address, policies=archive) as memory:
            fill(memory)

            def reads() -> None:
                try:
                    while not stop.is_set():
                        seen.append(answer(memory))
                except BaseException as error:
                    wrong.append(error)

            threads = [threading.Thread(target=reads) for _ in range(4)]
            for thread in threads:
                thread.start()
            for number in range(8):
                write_bundle(policies.open if number % 2 else policies.strict, archive)
                assert memory.reload_policies() is True
                if number % 4 == 0:
                    archive.write_bytes(policies.open.archive[: 10_000 + number])
                    with pytest.raises(BundleError):
                        memory.reload_policies()
            stop.set()
            for thread in threads:
                thread.join()

            assert wrong == []
            assert [one for one in seen if one != wanted[one[0]]] == []
            assert {one[0] for one in seen} == set(wanted)
            assert len(told(memory, "policy_engine_failure")) == 2
            assert len(told(memory, "policy_loaded")) == 8
            assert told(memory, "plan_mismatch", read=True) == []
