"""The embedded engine: regorus in this process, one interpreter a thread, JSON in and out.

regorus objects belong to the thread that made them, hold the interpreter lock while they evaluate and cannot
be interrupted; so each thread has its own, and the bound is on the input. Whatever is not a decision document
is an `EngineFailureError`, a panic among it, which Python sees as a `BaseException`.
"""

from __future__ import annotations

import itertools
import os
import re
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from agent_runtime_ref.compact_json import parsed
from agent_runtime_ref.errors import BundleError, EngineFailureError
from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.engine import ENTRYPOINTS
from agent_runtime_ref.policy.golden import check_golden
from agent_runtime_ref.policy.input_bounds import CANDIDATES_MAX, INPUT_BYTES_MAX, check_size

__all__ = ["CANDIDATES_MAX", "INPUT_BYTES_MAX", "EmbeddedEngine", "Interpreter", "new_interpreter"]

_RULES = {entrypoint: f"data.{entrypoint}.decision" for entrypoint in ENTRYPOINTS}
_PLACE = re.compile(r"^\s*--> (\S.*:\d+:\d+)$", re.MULTILINE)  # in what regorus says of Rego
_SENTENCE_MAX = 300
_UNDEFINED = "<undefined>"


# INVARIANT: an interpreter is dropped by the thread that made it, as regorus demands. So each thread keeps
# its own in a table that outlives every engine, and drops those of closed engines when it makes a new one.
_THREAD = threading.local()
_NUMBERS = itertools.count(1)
_OPEN: set[int] = set()


class Interpreter(Protocol):
    """What is used of a regorus engine."""

    def set_input_json(self, text: str) -> None:
        """Take the input document."""
        ...

    def eval_rule_as_json(self, rule: str) -> str:
        """Return the value of a rule as JSON."""
        ...


class _Table(dict[int, Interpreter]):
    """The interpreters of a thread, by the number of their engine."""


_TABLES: weakref.WeakValueDictionary[int, _Table] = weakref.WeakValueDictionary()
_HELD: list[_Table | None] = []


def new_interpreter(bundle: Bundle) -> Interpreter:
    """Return a regorus engine with the policies of `bundle`; it may be used by the calling thread only."""
    import regorus

    engine: Any = regorus.Engine()
    for path, text in bundle.modules:
        engine.add_policy(path, text)
    engine.add_data_json(bundle.data_json)
    interpreter: Interpreter = engine
    return interpreter


class EmbeddedEngine:
    """Evaluates a bundle in process. Thread-safe; a forked child goes on with its thread's interpreter."""

    name = "embedded"

    def __init__(
        self, bundle: Bundle, *, interpreters: Callable[[Bundle], Interpreter] = new_interpreter
    ) -> None:
        """Load `bundle` and hold it to the golden cases.

        Raises:
            BundleError: a module does not parse, or an empty input is not refused.
        """
        self.bundle = bundle
        self.identity = bundle.identity
        self._interpreters = interpreters
        self._number = next(_NUMBERS)
        _OPEN.add(self._number)
        self._finalizer = weakref.finalize(self, _OPEN.discard, self._number)
        self._finalizer.atexit = False  # a thread may still be at work then
        check_golden(self.evaluate)

    def evaluate(self, entrypoint: str, document: str) -> dict[str, Any]:
        """Return the decision document of `entrypoint` for `document`, a JSON text.

        Raises:
            EngineFailureError: there is no clear answer; nothing may be done.
        """
        if self._number not in _OPEN:
            raise EngineFailureError("engine_exception", "the engine is closed")
        rule = _RULES.get(entrypoint)
        if rule is None:
            raise EngineFailureError("engine_undefined", f"no entrypoint `{entrypoint}`")
        check_size(document)
        answer = self._answer(rule, document)
        if answer == _UNDEFINED:
            raise EngineFailureError("engine_undefined", rule)
        if not isinstance(answer, dict):
            raise EngineFailureError("engine_wrong_type", type(answer).__name__)
        return answer

    def close(self) -> None:
        """Refuse from now on; each thread's interpreter goes with its thread."""
        self._finalizer()
        _table().pop(self._number, None)

    def _answer(self, rule: str, document: str) -> Any:
        try:
            interpreter = self._own()
            interpreter.set_input_json(document)
            return parsed(interpreter.eval_rule_as_json(rule))
        except (KeyboardInterrupt, SystemExit, EngineFailureError):
            raise
        except BaseException as error:
            # Whatever state it is in now: the next question gets a new one.
            _table().pop(self._number, None)
            raise _failure(error, rule) from error

    def _own(self) -> Interpreter:
        """Return this thread's interpreter."""
        table = _table()
        interpreter = table.get(self._number)
        if interpreter is None:
            for number in [number for number in table if number not in _OPEN]:
                del table[number]
            interpreter = table[self._number] = self._interpreters(self.bundle)
        return interpreter


def _table() -> _Table:
    """Return this thread's interpreters."""
    table: _Table | None = _THREAD.__dict__.get("interpreters")
    if table is None:
        table = _THREAD.interpreters = _TABLES[next(_NUMBERS)] = _Table()
    return table


def _hold() -> None:
    """Keep all interpreters over a fork: the child would drop those of threads that it has not got."""
    _HELD.extend(reference() for reference in _TABLES.valuerefs())


if hasattr(os, "register_at_fork"):
    # The child holds them for good; their memory is that of its parent.
    os.register_at_fork(before=_hold, after_in_parent=_HELD.clear)


def _failure(error: BaseException, rule: str) -> EngineFailureError:
    """Return what an exception of the engine means; of its text only the first line, without a stack."""
    if isinstance(error, BundleError):
        return EngineFailureError(error.reason, error.detail)
    detail = _sentence(error)
    if type(error).__name__ == "PanicException":
        return EngineFailureError("engine_panic", detail)
    if "not a valid rule path" in detail:
        return EngineFailureError("engine_undefined", f"the policies have no rule `{rule}`")
    if _PLACE.search(str(error)) is None:
        detail = f"{type(error).__name__}: {detail}"
    return EngineFailureError("engine_exception", detail)


def _sentence(error: BaseException) -> str:
    """Return what is wrong by a regorus error, after file, line and column; without the source it quotes."""
    place = _PLACE.search(str(error))
    lines = [line.strip() for line in str(error).split("Stack backtrace", 1)[0].splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("error:")] or lines
    sentence = said[0] if said else "no message"
    if place is not None:
        sentence = f"{place[1]}: {sentence.removeprefix('error: ')}"
    return sentence[:_SENTENCE_MAX]
