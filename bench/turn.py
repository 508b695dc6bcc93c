"""One turn of the runtime, its background work included, against the gate calls that it makes, bare.

Both contenders have a copy of one store and are put the same message by the same caller in every round. Bare
are the calls that reach a gate: the read of the message, the read of what the user wants for good, the write
of what was said, and the look for repetitions in the rounds in which the runtime has one. What the turn adds
is its own: layers, the offline model, events of the run, the file of work that waits, the way to the worker's
thread and back, and the curator's judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory, MemoryCandidate, RetrievalQuery
from agent_runtime_ref.background import Turn, conversation_of
from agent_runtime_ref.background.compaction import RECORDS_A_TURN
from agent_runtime_ref.curator import Curator
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.session_state import Sessions
from bench.ratios import Timings, interleaved
from bench.report import Line, Measured, Times

CALLER = Caller("tenant-bench", "user-1", session_id="session-1", trace_id="trace-1")
FACTS = 500
BOUND = 1.5
_PURPOSE = "answer_generation"


class BareCalls:
    """The gate calls of a turn, one after the other, and nothing else."""

    def __init__(self, memory: GovernedMemory) -> None:
        self._memory = memory
        self._preferences = PreferenceStore(memory=memory)
        self._wait = 0
        self._numbers = count()

    def turn(self, message: str) -> None:
        """Read what the message is about and what is wanted, write what was said, merge where it is time."""
        self._memory.read(self._query(), caller=CALLER, text=message)
        self._preferences.read(caller=CALLER)
        self._memory.write_many(self._said(message), caller=CALLER)
        if self._wait:
            self._wait -= 1
            return
        self._wait = self._memory.compact(caller=CALLER, purpose=_PURPOSE).examined // RECORDS_A_TURN

    def _query(self) -> RetrievalQuery:
        kinds = ("language_preference", "preference", "session_summary", "validated_fact", "working_note")
        return RetrievalQuery(
            "trace-1", "session-1", CALLER.tenant_id, CALLER.principal_id, _PURPOSE,
            ("long_term", "profile", "short_term"), 5, kinds=kinds,
        )  # fmt: skip

    def _said(self, message: str) -> list[MemoryCandidate]:
        turn = Turn(
            turn_id=f"turn-{next(self._numbers):024x}",
            caller=CALLER,
            purpose=_PURPOSE,
            message=message,
            reply="",
            status="complete",
            at_us=self._memory.clock.now_us(),
            decision_id="",
            mark="",
        )
        return list(conversation_of(turn))


def measure(scratch: Path, *, rounds: int) -> Measured:
    """Return the ratio of a turn to its gate calls."""
    timings = _timings(scratch, rounds)
    ratio = timings.ratio("turn", "calls")
    # The CPU time of the calling thread says nothing here: half of a turn is another thread's.
    note = f"p95 {ratio.p95:.2f}×, median of rounds {ratio.rounds:.2f}×"
    line = Line("one turn with its background work / its gate calls, p50", ratio.p50, BOUND, note=note)
    times = [
        Times("one turn of the runtime, background work included", timings.wall["turn"]),
        Times("the gate calls of a turn, bare", timings.wall["calls"]),
    ]
    return Measured([line], times)


def _timings(scratch: Path, rounds: int) -> Timings:
    with _filled(scratch / "turn.db") as governed, _filled(scratch / "calls.db") as bare:
        calls = BareCalls(bare)
        # Whatever the environment names: preferences in the same store, the rules for a judge.
        preferences = PreferenceStore(memory=governed)
        sessions = Sessions(governed, folder=scratch / "sessions")
        curator = Curator(governed, sessions=sessions, preferences=preferences)
        with AgentRuntime.open(governed, preferences=preferences, curation=curator) as runtime:

            def turn(message: str) -> None:
                runtime.run(message, caller=CALLER)
                runtime.drain()

            contenders = {"turn": turn, "calls": calls.turn}
            return interleaved(contenders, _messages(rounds), seed="turn", warm_up=10)


def _filled(path: Path) -> GovernedMemory:
    memory = GovernedMemory.open(f"sqlite:{path}")
    candidates = [
        MemoryCandidate(
            CALLER.tenant_id, "long_term", "validated_fact", f"Topic {number % 50} has the rule {number}.",
            "trusted_service", 0.9, "bench_rules",
        )
        for number in range(FACTS)
    ]  # fmt: skip
    memory.write_many(candidates, caller=CALLER)
    return memory


def _messages(rounds: int) -> Iterator[str]:
    for number in range(rounds + 10):
        yield f"Which rule holds for topic {number % 50}, asked for the time number {number}?"
