"""The embedded engine: whatever is not a clear decision is a refusal that says what it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from agent_runtime_ref.errors import EngineFailureError
from agent_runtime_ref.policy import Bundle, EmbeddedEngine, load_bundle
from agent_runtime_ref.policy.embedded import CANDIDATES_MAX, INPUT_BYTES_MAX, Interpreter, new_interpreter
from tests.unit.policy_documents import READ, write_document


class Scripted:
    """An interpreter that answers the golden cases as ours does, then as it is told."""

    def __init__(self, bundle: Bundle, answer: Callable[[], str]) -> None:
        self.inner = new_interpreter(bundle)
        self.answer = answer
        self.document = ""

    def set_input_json(self, text: str) -> None:
        """Remember the question."""
        self.document = text
        self.inner.set_input_json(text)

    def eval_rule_as_json(self, rule: str) -> str:
        """Answer as told, unless a golden case asks."""
        if "now_ns" in self.document:
            return self.answer()
        return self.inner.eval_rule_as_json(rule)


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    """The bundled policies."""
    return load_bundle()


def failing(bundle: Bundle, answer: Callable[[], str]) -> EngineFailureError:
    """Return the refusal that follows when the interpreter answers so."""
    engine = EmbeddedEngine(bundle, interpreters=lambda one: Scripted(one, answer))
    with pytest.raises(EngineFailureError) as caught:
        engine.evaluate("memory.read", json.dumps(READ))
    return caught.value


def raising(error: BaseException) -> Callable[[], str]:
    """Return an answer that is `error`."""

    def answer() -> str:
        raise error

    return answer


class TestDecisions:
    """What a whole engine answers."""

    def test_a_permitted_read_is_allowed(self, bundle: Bundle) -> None:
        """A well-formed query of the caller's own tenant gets a plan."""
        answer = EmbeddedEngine(bundle).evaluate("memory.read", json.dumps(READ))

        assert answer["allow"] is True
        assert answer["plan"]["complete"] is True
        assert answer["plan"]["clauses"][0]["any_of"]

    def test_a_batch_of_a_thousand_is_one_decision(self, bundle: Bundle) -> None:
        """The most that one call may decide is decided, each candidate by its index."""
        answer = EmbeddedEngine(bundle).evaluate("memory.write", write_document(CANDIDATES_MAX))

        assert answer["allowed"] == list(range(CANDIDATES_MAX))
        assert len(answer["assign"]) == CANDIDATES_MAX

    @pytest.mark.parametrize("now_ns", ["now", None, [], {}, True])
    def test_a_time_of_another_type_is_never_allowed(self, bundle: Bundle, now_ns: object) -> None:
        """An instant that is no number is refused, not compared."""
        answer = EmbeddedEngine(bundle).evaluate("memory.read", json.dumps({**READ, "now_ns": now_ns}))

        assert answer["allow"] is False

    def test_decisions_name_the_bundle(self, bundle: Bundle) -> None:
        """The engine carries the digest and the revision of what it enforces."""
        engine = EmbeddedEngine(bundle)

        assert (engine.identity.digest, engine.identity.revision) == (bundle.digest, bundle.revision)
        assert bundle.digest.startswith("sha256:")


class TestFailures:
    """Every way of not answering is a refusal with a reason of its own."""

    def test_undefined(self, bundle: Bundle) -> None:
        """regorus says `<undefined>`, a text that is true in Python."""
        assert failing(bundle, lambda: '"<undefined>"').reason == "engine_undefined"

    def test_an_entrypoint_that_there_is_not(self, bundle: Bundle) -> None:
        """Only the two entrypoints are asked for."""
        with pytest.raises(EngineFailureError) as caught:
            EmbeddedEngine(bundle).evaluate("memory.common", "{}")

        assert caught.value.reason == "engine_undefined"

    @pytest.mark.parametrize("answer", ["true", "[]", "null", '"allow"', "1"])
    def test_wrong_type(self, bundle: Bundle, answer: str) -> None:
        """A decision is a mapping; a bare `true` is none."""
        assert failing(bundle, lambda: answer).reason == "engine_wrong_type"

    @pytest.mark.parametrize(
        "error", [RuntimeError("error: built-in failed"), MemoryError(), RecursionError()]
    )
    def test_engine_exception(self, bundle: Bundle, error: BaseException) -> None:
        """An exception is a refusal, and its stack is not quoted."""
        refusal = failing(bundle, raising(error))

        assert refusal.reason == "engine_exception"
        assert "backtrace" not in str(refusal)

    def test_an_answer_that_is_no_json(self, bundle: Bundle) -> None:
        """A broken answer is no answer."""
        assert failing(bundle, lambda: "{").reason == "engine_exception"

    def test_an_input_that_is_no_json(self, bundle: Bundle) -> None:
        """A broken question is refused."""
        with pytest.raises(EngineFailureError) as caught:
            EmbeddedEngine(bundle).evaluate("memory.read", "{")

        assert caught.value.reason == "engine_exception"

    def test_panic_from_another_thread(self, bundle: Bundle) -> None:
        """A regorus object used by a second thread panics; a panic is no `Exception` and still a refusal."""
        shared = new_interpreter(bundle)
        engine = EmbeddedEngine(bundle, interpreters=lambda _: shared)
        refusals: list[EngineFailureError] = []

        def ask() -> None:
            try:
                engine.evaluate("memory.read", json.dumps(READ))
            except EngineFailureError as error:
                refusals.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

        assert [refusal.reason for refusal in refusals] == ["engine_panic"]
        assert engine.evaluate("memory.read", json.dumps(READ))["allow"] is True

    @pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
    def test_an_interrupt_is_passed_on(self, bundle: Bundle, error: type[BaseException]) -> None:
        """Who ends the program is not answered with a refusal."""
        engine = EmbeddedEngine(bundle, interpreters=lambda one: Scripted(one, raising(error())))

        with pytest.raises(error):
            engine.evaluate("memory.read", json.dumps(READ))

    def test_too_many_candidates(self, bundle: Bundle) -> None:
        """One candidate more than the bound is refused before it is evaluated."""
        with pytest.raises(EngineFailureError) as caught:
            EmbeddedEngine(bundle).evaluate("memory.write", write_document(CANDIDATES_MAX + 1))

        assert caught.value.reason == "input_too_large"

    def test_too_many_bytes(self, bundle: Bundle) -> None:
        """The bound counts bytes, not characters."""
        text = "记" * (INPUT_BYTES_MAX // 3)
        document = json.dumps({**READ, "note": text}, ensure_ascii=False)

        with pytest.raises(EngineFailureError) as caught:
            EmbeddedEngine(bundle).evaluate("memory.read", document)

        assert len(document) < INPUT_BYTES_MAX
        assert caught.value.reason == "input_too_large"

    def test_after_close(self, bundle: Bundle) -> None:
        """A closed engine refuses."""
        engine = EmbeddedEngine(bundle)
        engine.close()

        with pytest.raises(EngineFailureError, match="closed"):
            engine.evaluate("memory.read", json.dumps(READ))

    def test_a_failed_interpreter_is_replaced(self, bundle: Bundle) -> None:
        """After a failure the next question goes to a new interpreter."""
        answers = iter(["{", json.dumps({"allow": False})])
        made: list[Interpreter] = []

        def make(one: Bundle) -> Interpreter:
            made.append(Scripted(one, lambda: next(answers)))
            return made[-1]

        engine = EmbeddedEngine(bundle, interpreters=make)
        with pytest.raises(EngineFailureError):
            engine.evaluate("memory.read", json.dumps(READ))

        assert engine.evaluate("memory.read", json.dumps(READ)) == {"allow": False}
        assert len(made) == 2


class TestThreadsAndForks:
    """One interpreter a thread."""

    def test_many_threads(self, bundle: Bundle) -> None:
        """Sixteen threads ask at once and each gets its answers."""
        engine = EmbeddedEngine(bundle)
        answers: list[bool] = []

        def ask() -> None:
            answers.extend(engine.evaluate("memory.read", json.dumps(READ))["allow"] for _ in range(20))

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert answers == [True] * 320

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
    def test_after_fork(self, bundle: Bundle) -> None:
        """A forked child decides as its parent does."""
        engine = EmbeddedEngine(bundle)
        child = os.fork()
        if child == 0:
            try:
                allowed = engine.evaluate("memory.read", json.dumps(READ))["allow"] is True
            except BaseException:
                allowed = False
            os._exit(0 if allowed else 1)

        assert os.waitpid(child, 0)[1] == 0

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
    def test_a_fork_beside_threads_that_have_asked(self) -> None:
        """The child has not got those threads, and does not complain of what was theirs."""
        script = """
import os, sys, threading
from agent_runtime_ref.policy import EmbeddedEngine, load_bundle
engine = EmbeddedEngine(load_bundle())
asked, end = threading.Barrier(4), threading.Event()
def ask():
    engine.evaluate("memory.read", "{}")
    asked.wait(60)
    end.wait(60)
threads = [threading.Thread(target=ask) for _ in range(3)]
for thread in threads:
    thread.start()
asked.wait(60)
child = os.fork()
if child == 0:
    engine.evaluate("memory.read", "{}")
    os._exit(0)
_, status = os.waitpid(child, 0)
end.set()
for thread in threads:
    thread.join()
sys.exit(os.waitstatus_to_exitcode(status))
"""
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script],
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

        assert (done.returncode, done.stderr) == (0, "")
