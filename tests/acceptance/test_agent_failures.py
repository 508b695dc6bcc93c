"""What goes wrong in a turn: each ends in its own events, nothing leaves that was not written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, GovernedMemory
from agent_runtime_ref.agent import Answer, ToolCall
from agent_runtime_ref.background import BackgroundWorker, Turn
from agent_runtime_ref.errors import DecisionLogError, ModelError, SessionStateError, StoreError
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.engines import open_engine
from agent_runtime_ref.stores.in_memory import InMemoryStore
from agent_runtime_ref.testing import CountedIds, FaultyStore, FrozenClock
from tests.support import caller, candidate, events
from tests.turns import Scripted, answered, payloads, told, tool

MESSAGE = "Where do support tickets go?"


@pytest.fixture
def store_url() -> str:
    """In memory: these failures are not the store's."""
    return "memory:"


class Judging:
    """A curation that fails as often as it is told to, and keeps what it was shown."""

    def __init__(self, failures: int = 0, error: Exception | None = None) -> None:
        self.failures = failures
        self.error = error or ValueError("no answer")
        self.seen: list[tuple[str, str]] = []

    def curate_turn(self, user_text: str, reply: str, *, caller: object) -> None:
        """Take a turn, or fail."""
        self.seen.append((user_text, reply))
        if self.failures > 0:
            self.failures -= 1
            raise self.error


def ran(memory: GovernedMemory, model: Any, curation: Any = None, **options: Any) -> Any:
    """Return a turn of user-42 with `model`, and wait for what is behind it."""
    with AgentRuntime.open(memory, model=model, curation=curation, **options) as runtime:
        result = runtime.run(MESSAGE, caller=caller())
        runtime.drain()
    return result


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ModelError("timeout", "no answer within 1 s"), "timeout"),
        (RuntimeError("user said: hunter2"), "RuntimeError"),
    ],
)
def test_a_failing_model(memory: GovernedMemory, trace: Path, error: Exception, said: str) -> None:
    """The turn ends as failed, with what had entered the context; what the user said is kept and curated."""
    memory.write(candidate(), caller=caller())
    judging = Judging()
    result = ran(memory, Scripted(error), judging)

    assert (result.status, result.reply) == ("failed", "")
    assert said in result.error
    assert "hunter2" not in result.error
    ended = told(result).index("run_failed")
    assert told(result)[ended - 1 : ended + 3] == [
        "context_layers_built",
        "run_failed",
        "memory_write_decision",
        "memory_persisted",
    ]
    failed = payloads(result, "run_failed")[0]
    assert (failed["status"], failed["error.type"]) == ("failed", type(error).__name__)
    assert payloads(result, "context_layers_built")[0]["retrieved_items"] == 1
    assert judging.seen == [(MESSAGE, "")]
    assert "hunter2" not in trace.read_text(encoding="utf-8")


def test_a_model_that_answers_something_else(memory: GovernedMemory) -> None:
    """What is no answer is none, whatever it is."""
    result = ran(memory, Scripted(lambda _: "a bare text"))  # type: ignore[arg-type,return-value]

    assert result.status == "failed"
    assert "malformed" in result.error


@pytest.mark.parametrize(
    "given",
    [
        Answer(text=None),  # type: ignore[arg-type]
        Answer(text=5),  # type: ignore[arg-type]
        Answer(text="half a \ud800"),
        Answer(calls="abc"),  # type: ignore[arg-type]
        Answer(calls=(1,)),  # type: ignore[arg-type]
        Answer(calls=(ToolCall(None, {}),)),  # type: ignore[arg-type]
        Answer(calls=(ToolCall("recall_history", None),)),  # type: ignore[arg-type]
        Answer(calls=(ToolCall("\udfff", {}),)),
    ],
    ids=["nothing", "number", "half a character", "text", "no call", "no name", "no arguments", "no word"],
)
def test_an_answer_whose_parts_are_something_else(memory: GovernedMemory, given: Answer) -> None:
    """A reply that could not be printed, kept or judged never leaves, and nothing waits behind it."""
    with AgentRuntime.open(memory, model=Scripted(given)) as runtime:
        result = runtime.run(MESSAGE, caller=caller())

        assert (result.status, result.reply) == ("failed", "")
        assert result.error == str(
            ModelError("malformed", "the model returned something else than an answer")
        )
        assert runtime.drain()


def test_a_model_that_only_calls_tools(memory: GovernedMemory) -> None:
    """It is asked so often and no more; every call is told."""
    model = Scripted(Answer(calls=(ToolCall("recall_history", {"query": "tickets"}),)))
    result = ran(memory, model)

    assert result.status == "failed"
    assert "too_many_steps" in result.error
    assert len(model.asked) == len(payloads(result, "tool_execution")) == 5


def failing(arguments: Any, **_: Any) -> str:
    """Fail with what a user said in the message."""
    raise KeyError("hunter2")


@pytest.mark.parametrize(
    ("call", "status", "error"),
    [
        (ToolCall("fails", {"text": "x"}), "failed", "KeyError"),
        (ToolCall("fails", {"text": 7}), "refused", "ToolError"),
        (ToolCall("fails", {"text": "x", "tenant_id": "tenant-b"}), "refused", "ToolError"),
        (ToolCall("write_memory", {"text": "x"}), "refused", "ToolError"),
        (ToolCall("recall_history", {"query": "!!"}), "refused", "ToolError"),
    ],
)
def test_a_failing_tool(memory: GovernedMemory, call: ToolCall, status: str, error: str) -> None:
    """The model is told and goes on; the event says which tool, how it ended and by what kind of error."""
    model = Scripted(Answer(calls=(call,)), Answer("I could not look that up."))
    result = ran(memory, model, tools=[tool("fails", failing)])

    assert (result.status, result.reply) == ("complete", "I could not look that up.")
    (event,) = payloads(result, "tool_execution")
    assert (event["tool"], event["status"], event["error.type"]) == (call.name, status, error)
    assert f'status="{status}"' in model.shown[1]
    assert "hunter2" not in model.shown[1]


def test_a_model_gets_no_tool_that_writes(memory: GovernedMemory) -> None:
    """By itself the runtime offers recall and forgetting; identity is no argument of them."""
    model = Scripted(Answer("yes"))
    ran(memory, model)

    arguments = {spec.name: set(spec.schema["properties"]) for spec in model.asked[0].tools}
    assert arguments == {"recall_history": {"query", "limit"}, "forget_preference": {"text_or_key"}}


def test_a_tool_result_beyond_its_budget_is_cut(memory: GovernedMemory) -> None:
    """A tool cannot fill the context, and the cut is said."""
    model = Scripted(Answer(calls=(ToolCall("long", {"text": "x"}),)), Answer("done"))
    result = ran(memory, model, tools=[tool("long", lambda *_, **__: "é" * 100_000)])

    (item,) = result.layers[3].items
    assert len(item.text.encode()) <= 8_192 < item.size_bytes
    assert 'cut="true"' in item.block


def test_a_cancelled_turn_is_told_and_worked_on(memory: GovernedMemory) -> None:
    """Ctrl-C goes on to whoever runs the turn; what was said until then is kept and curated."""
    judging = Judging()
    with AgentRuntime.open(memory, model=Scripted(KeyboardInterrupt()), curation=judging) as runtime:
        with pytest.raises(KeyboardInterrupt):
            runtime.run(MESSAGE, caller=caller())
        assert runtime.drain()
    log = "\n".join(line for read in (True, False) for line in memory.log_lines(read=read))

    assert '"status":"cancelled"' in log
    assert '"event_type":"run_failed"' in log
    assert judging.seen == [(MESSAGE, "")]
    assert [hit.snippet for hit in memory.recall("tickets", caller=caller()).hits] == [MESSAGE]


def faulty(tmp_path: Path, **fault: Any) -> GovernedMemory:
    """Return a memory over a store with one fault."""
    bundle = load_bundle()
    store = FaultyStore(InMemoryStore(), **fault)
    return GovernedMemory(
        store=store,
        engine=open_engine("embedded", bundle),
        bundle=bundle,
        clock=FrozenClock(),
        ids=CountedIds(),
    )


def test_a_store_that_fails_in_the_retrieval(tmp_path: Path) -> None:
    """The turn fails with the store's own event, and the model is not asked."""
    model = Scripted(Answer("yes"))
    with faulty(tmp_path, method="search", error=StoreError("memory:", "gone")) as memory:
        result = ran(memory, model)

    assert result.status == "failed"
    assert model.asked == []
    assert told(result)[:4] == ["run_start", "policy_precheck", "store_failure", "context_layers_built"]


def test_a_log_that_fails_lets_no_reply_out(tmp_path: Path) -> None:
    """A reply whose end cannot be written down does not leave."""
    error = DecisionLogError("memory:", "no space left")
    memory = faulty(tmp_path, method="append_lines", error=error, on_call=5)
    runtime = AgentRuntime.open(memory, model=Scripted(Answer("yes")))
    with memory, runtime, pytest.raises(DecisionLogError):
        runtime.run(MESSAGE, caller=caller())


class FailingEngine:
    """An engine that answers nothing from its n-th question on."""

    def __init__(self, inner: Any, after: int) -> None:
        self._inner, self._left = inner, after
        self.name, self.identity = inner.name, inner.identity

    def evaluate(self, entrypoint: str, text: str) -> Any:
        """Answer the first questions."""
        self._left -= 1
        if self._left < 0:
            raise RuntimeError("panicked")
        return self._inner.evaluate(entrypoint, text)

    def close(self) -> None:
        """Give up the engine."""
        self._inner.close()


def test_an_engine_that_fails_refuses_the_turn() -> None:
    """No decision is a refusal: the model is not asked, and the engine's failure is told between."""
    bundle, model = load_bundle(), Scripted(Answer("yes"))
    engine = FailingEngine(open_engine("embedded", bundle), after=0)
    with GovernedMemory(
        store=InMemoryStore(), engine=engine, bundle=bundle, clock=FrozenClock(), ids=CountedIds()
    ) as memory:
        result = ran(memory, model)

    assert (result.status, model.asked) == ("denied", [])
    assert told(result) == ["run_start", "policy_engine_failure", "policy_precheck", "run_failed"]
    assert payloads(result, "policy_precheck")[0]["reason"] == "engine_exception"


# --- behind the reply ---------------------------------------------------------------------------------------


@pytest.fixture
def turn(memory: GovernedMemory) -> Turn:
    """A turn whose reply has left."""
    return answered(mark=memory.subject_mark(caller=caller()))


@pytest.fixture
def workers(memory: GovernedMemory) -> Iterator[list[BackgroundWorker]]:
    """The workers of a test, closed when it ends."""
    made: list[BackgroundWorker] = []
    yield made
    for one in made:
        one.close()


def test_a_failing_job_is_told_and_tried_again(
    memory: GovernedMemory, trace: Path, turn: Turn, workers: list[BackgroundWorker]
) -> None:
    """The reply is not touched by it; the jobs before it are not done again, and in the end it is done."""
    judging = Judging(failures=2)
    worker = BackgroundWorker(memory, curation=judging)
    workers.append(worker)
    worker.submit(turn)

    assert worker.drain() is False
    assert worker.drain() is False
    assert worker.drain() is True
    failed = [event["payload"] for event in events(trace) if event["event_type"] == "background_failed"]
    assert [(one["job"], one["error.type"], one["attempts"], one["status"]) for one in failed] == [
        ("curation", "ValueError", 1, "pending"),
        ("curation", "ValueError", 2, "pending"),
    ]
    names = [event["event_type"] for event in events(trace)]
    assert names.count("memory_persisted") == 1
    assert len(judging.seen) == 3


def test_a_failing_job_keeps_no_other_turn_waiting(
    memory: GovernedMemory, turn: Turn, workers: list[BackgroundWorker]
) -> None:
    """After five failures a turn is put aside, aloud, and the next one is worked on."""
    judging = Judging(failures=5)
    worker = BackgroundWorker(memory, curation=judging)
    workers.append(worker)
    worker.submit(turn)
    for _ in range(5):
        worker.drain()
    worker.submit(turn)

    assert worker.drain() is False  # one is put aside
    assert len(judging.seen) == 6


@pytest.mark.parametrize("error", [StoreError("memory:", "down"), SessionStateError("a folder is full")])
def test_a_store_that_is_down_is_waited_for(
    turn: Turn, workers: list[BackgroundWorker], error: Exception
) -> None:
    """What fails by the store, or by the folder of sessions, is never put aside, however often."""
    attempts: list[str] = []

    def job(_: object) -> None:
        attempts.append("tried")
        if len(attempts) < 8:
            raise error

    with GovernedMemory.open("memory:") as memory:
        worker = BackgroundWorker(memory, jobs=[("candidates", job)])
        workers.append(worker)
        worker.submit(_marked(turn, memory))
        drained = [worker.drain() for _ in range(8)]
        worker.close()

    assert drained == [False] * 7 + [True]


def test_somebody_forgotten_meanwhile_does_not_come_back(
    memory: GovernedMemory, turn: Turn, workers: list[BackgroundWorker]
) -> None:
    """Work about a person that still waits when the person is forgotten is thrown away."""
    memory.write(candidate(subject="user-42"), caller=caller())
    memory.forget(subject="user-42", caller=caller())
    judging = Judging()
    worker = BackgroundWorker(memory, curation=judging)
    workers.append(worker)
    worker.submit(turn)

    assert worker.drain() is True
    assert judging.seen == []
    assert memory.recall("tickets", caller=caller()).hits == ()


def test_what_a_policy_refuses_is_no_failure(
    memory: GovernedMemory, trace: Path, turn: Turn, workers: list[BackgroundWorker]
) -> None:
    """A refused candidate is a decision, told once and not tried again."""

    def secret(_: Turn) -> Sequence[Any]:
        return [candidate("key " + "AKIA" + "Z7Q2M4X8" + "R5T1V9B3")]

    worker = BackgroundWorker(memory, propose=secret)
    workers.append(worker)
    worker.submit(turn)

    assert worker.drain() is True
    names = [event["event_type"] for event in events(trace)]
    assert (names[0], "background_failed" in names, "memory_persisted" in names) == (
        "memory_write_decision",
        False,
        False,
    )


def _marked(turn: Turn, memory: GovernedMemory) -> Turn:
    from dataclasses import replace

    return replace(turn, mark=memory.subject_mark(caller=turn.caller))
