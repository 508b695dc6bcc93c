"""What is handed to a public call in the wrong type is refused by the argument's name."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, AsyncGovernedMemory, GovernedMemory
from agent_runtime_ref.enforcement.attributes import Inspection
from agent_runtime_ref.enforcement.removals import Meant
from agent_runtime_ref.enforcement.revise import Revision, Revisions
from agent_runtime_ref.enforcement.runs import LateEnd
from agent_runtime_ref.errors import GovernanceError, StoreError
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.session_state import Sessions
from agent_runtime_ref.testing import CountedIds, FrozenClock
from tests.reviewing import OPERATOR, REVIEWER
from tests.support import caller, candidate, query

LOOK = Inspection(principal_id="oscar", limit=5)
WHO = caller()


class Word(str):
    """A string of somebody's own type: as good as any."""


def nothing(_: Any, at_us: int = 0) -> Any:
    """Revise nothing."""
    return Revisions((), {}, ())


# By method: arguments that are accepted. Each of them is then replaced by what is not.
CALLS: dict[str, dict[str, Any]] = {
    "write": {"candidate": candidate(), "caller": WHO},
    "write_many": {"candidates": [candidate()], "caller": WHO},
    "read": {"query": query(), "caller": WHO, "text": "queue", "operation": "search"},
    "choose": {"query": query(), "choose": lambda records: [], "caller": WHO},
    "revise": {
        "memory_class": "long_term", "keys": ["k"], "revise": nothing, "caller": WHO,
        "purpose": "answer_generation",
    },
    "remove": {"what": Meant("long_term", keys=("k",)), "caller": WHO},
    "taken_back": {"keys": ["k"], "since_us": 1, "caller": WHO},
    "recall": {"text": "queue", "caller": WHO, "purpose": "answer_generation", "limit": 5, "ranker": None},
    "latest_profile": {"caller": WHO, "purpose": "personalization"},
    "compact": {"caller": WHO, "purpose": "answer_generation"},
    "begin_run": {"message": "queue", "caller": WHO, "purpose": "answer_generation", "limit": 5},
    "end_run": {"ended": LateEnd(WHO, "dec-1", None)},
    "subject_mark": {"caller": WHO},
    "load_stored": {"records": [], "caller": WHO},
    "inspect": {"inspection": LOOK, "caller": OPERATOR},
    "explain": {"inspection": LOOK, "query": query(), "operator": OPERATOR, "caller": WHO},
    "question": {"query": query(), "caller": WHO, "at_us": 1, "operation": "list"},
    "survey": {"caller": OPERATOR},
    "descent": {"record_id": "mem-1", "caller": OPERATOR},
    "look_into_log": {"caller": OPERATOR, "tenant_id": None},
    "log_name": {"name": "word"},
    "pseudonym": {"tenant_id": "tenant-acme", "subject": "user-42"},
    "release": {"record_id": "mem-1", "caller": REVIEWER, "reason": "SEC-1"},
    "reject": {"record_id": "mem-1", "caller": REVIEWER, "reason": "SEC-1"},
    "quarantine": {"record_ids": ["mem-1"], "caller": REVIEWER, "reason": "SEC-1"},
    "forget": {"subject": "user-42", "caller": WHO, "dry_run": True},
    "tell": {
        "event_type": "session_constraints_merged", "payload": {"counts": {}}, "caller": WHO, "keys": (),
        "decision_id": None,
    },
    "log_lines": {"read": False},
    "raw_log": {"read": False},
    "log_chains": {"read": False, "tenant_id": None},
    "load_seeds": {"path": None},
    "observe_metrics": {"lag": None},
    "reload_policies": {},
    "close": {},
}  # fmt: skip
OPENING = {
    "store": "memory:", "engine": "embedded", "policies": None, "policies_digest": None, "verification": None,
    "reload_seconds": None, "opa": None, "log": None, "log_mask": (), "log_rotate_bytes": None,
    "log_rotate_seconds": None, "trace": None, "clock": None, "ids": None, "must_exist": False,
}  # fmt: skip
NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001
STRANGE: dict[str, Any] = {
    "None": None, "bytes": b"queue", "float": 1.5, "nan": float("nan"), "huge": 10**400,
    "negative": -(10**400), "true": True, "number": 3, "surrogate": "half \ud800", "a string": "abc",
    "naive": NAIVE,
    "list": [["k"]], "mapping": {"k": 1}, "numbers": [1, None], "surrogates": ["\udfff"], "object": object(),
    "infinite": float("inf"), "nul": "a\x00b", "empty": "", "own string": Word("word"),
}  # fmt: skip
# What stands for itself in these places, so that it is no mistake.
OPTIONAL = ("text", "ranker", "tenant_id", "decision_id", "path", "lag", "caller")


def public(kind: type) -> list[str]:
    """Return the names of the public methods of a class."""
    return [
        name
        for name, one in inspect.getmembers(kind, callable)
        if not name.startswith("_") and name not in ("open", "from_settings")
    ]


@pytest.fixture(scope="module")
def shared() -> Any:
    """A memory that none of these calls changes."""
    with GovernedMemory.open("memory:", clock=FrozenClock(), ids=CountedIds()) as memory:
        yield memory


def test_every_method_is_in_the_table() -> None:
    """Whoever adds a method says what it takes."""
    assert set(public(GovernedMemory)) == set(CALLS)
    for name, given in CALLS.items():
        assert list(inspect.signature(getattr(GovernedMemory, name)).parameters)[1:] == list(given)
    assert list(inspect.signature(GovernedMemory.open).parameters) == list(OPENING)


@pytest.mark.parametrize("strange", STRANGE)
def test_no_library_answers_for_an_argument(shared: GovernedMemory, strange: str) -> None:
    """Whatever is handed in, the answer is an ordinary one or an error of the project's own."""
    value = STRANGE[strange]
    for name, given in CALLS.items():
        for argument in given:
            if name == "close":
                continue
            try:
                found = getattr(shared, name)(**{**given, argument: value})
                if inspect.isgenerator(found):
                    list(found)
            except GovernanceError as error:
                str(error).encode("utf-8")
            except Exception as error:
                pytest.fail(f"{name}({argument}={strange}): {error!r}")


# A recall, a turn and a query are refused in the words that are documented for them.
SAID = {("recall", "text"): "query", ("begin_run", "limit"): "lookup limit"}
WRONG = [
    (name, argument, strange)
    for name, given in CALLS.items()
    for argument in given
    for strange in ("None", "bytes", "float", "numbers", "object")
    if not (strange == "None" and argument in OPTIONAL and argument != "caller")
]


@pytest.mark.parametrize(("name", "argument"), dict.fromkeys((name, argument) for name, argument, _ in WRONG))
def test_the_argument_is_named(shared: GovernedMemory, name: str, argument: str) -> None:
    """What no such argument can be is refused, and the sentence begins with its name."""
    for wrong, of_it, strange in WRONG:
        if (wrong, of_it) == (name, argument):
            given = {**CALLS[name], argument: STRANGE[strange]}
            with pytest.raises(GovernanceError) as refused:
                getattr(shared, name)(**given)
            said = SAID.get((name, argument), argument)
            assert said in str(refused.value), str(refused.value)


LETTERS: dict[str, Callable[[GovernedMemory], object]] = {
    "revise keys": lambda memory: memory.revise("long_term", "abc", nothing, caller=WHO, purpose="x"),
    "quarantine record_ids": lambda memory: memory.quarantine("abc", caller=REVIEWER, reason="SEC-1"),
    "tell keys": lambda memory: memory.tell("preferences_curated", {}, caller=WHO, keys="abc"),
    "remove keys": lambda memory: memory.remove(Meant("long_term", keys="abc"), caller=WHO),  # type: ignore[arg-type]
    "remove record_ids": lambda memory: memory.remove(Meant("x", record_ids="abc"), caller=WHO),  # type: ignore[arg-type]
    "write_many candidates": lambda memory: memory.write_many("abc", caller=WHO),  # type: ignore[arg-type]
    "load_stored records": lambda memory: memory.load_stored("abc", caller=WHO),  # type: ignore[arg-type]
    "inspect kinds": lambda memory: replace(LOOK, kinds="abc"),
    "inspect classes": lambda memory: replace(LOOK, classes="abc"),
    "inspect sources": lambda memory: replace(LOOK, sources="abc"),
    "inspect record_ids": lambda memory: replace(LOOK, record_ids="abc"),
    "inspect statuses": lambda memory: replace(LOOK, statuses="abc"),
    "query kinds": lambda memory: replace(query(), kinds="abc"),
    "query record_ids": lambda memory: replace(query(), record_ids="abc"),
    "candidate derived_from": lambda memory: candidate(derived_from="abc"),
    "candidate scope": lambda memory: candidate(scope="abc"),
    "caller roles": lambda memory: caller(roles="abc"),
    "open log_mask": lambda memory: GovernedMemory.open("memory:", log_mask="abc"),
    "preferences findings": lambda memory: PreferenceStore(memory=memory).write_many("abc", caller=WHO),  # type: ignore[arg-type]
    "sessions findings": lambda memory: Sessions(memory).merge("thread-1", "abc", caller=WHO),  # type: ignore[arg-type]
    "runtime tools": lambda memory: AgentRuntime.open(memory, tools="abc"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", LETTERS)
def test_a_string_is_no_list_of_letters(shared: GovernedMemory, name: str) -> None:
    """Where several are asked for, one that is not in a list is refused by the argument's name."""
    before = len(list(shared.log_lines())), len(list(shared.log_lines(read=True)))
    with pytest.raises(GovernanceError) as refused:
        LETTERS[name](shared)
    assert name.split()[-1] in str(refused.value), str(refused.value)
    assert (len(list(shared.log_lines())), len(list(shared.log_lines(read=True)))) == before


@pytest.mark.parametrize("strange", STRANGE)
def test_no_library_answers_for_how_it_is_opened(strange: str, tmp_path: Path, monkeypatch: Any) -> None:
    """An option of the wrong type is refused before anything is made, or stands for what it says."""
    monkeypatch.chdir(tmp_path)
    for argument in OPENING:
        try:
            GovernedMemory.open(**{**OPENING, argument: STRANGE[strange]}).close()
        except GovernanceError as error:
            str(error).encode("utf-8")
        except Exception as error:
            pytest.fail(f"open({argument}={strange}): {error!r}")


CANDIDATE = candidate(key="k", subject="user-42", revision_mode="replace")
ANSWERS: dict[str, Callable[[GovernedMemory, Any], object]] = {
    "choose": lambda memory, value: memory.choose(query(), lambda _: value, caller=WHO),
    "revise": lambda memory, value: revised(memory, lambda: value),
    "revisions": lambda memory, value: revised(memory, lambda: Revisions(value, {}, ())),
    "kept": lambda memory, value: revised(memory, lambda: Revisions((), value, ())),
    "keys": lambda memory, value: revised(memory, lambda: Revisions((), {}, value)),
    "candidate": lambda memory, value: revised(memory, lambda: of(Revision(value, "kept"))),
    "counted": lambda memory, value: revised(memory, lambda: of(Revision(CANDIDATE, value))),
    "contradicts": lambda memory, value: revised(memory, lambda: of(Revision(CANDIDATE, "kept", value))),
    "event $.counts": lambda memory, value: told(memory, {"counts": value}),
    "event": lambda memory, value: told(memory, {"counts": [{"deep": [value]}]}),
}
# What is a good answer there.
GOOD = {
    "counted": {"a string", "nul", "empty", "own string"},
    "event $.counts": {"None", "float", "true", "number", "a string", "list", "mapping", "numbers", "nul",
                       "empty", "own string"},
}  # fmt: skip
GOOD["event"] = GOOD["event $.counts"]


def of(revision: Revision) -> Revisions:
    """Return what shall become of one key."""
    return Revisions((revision,), {}, ("k",))


def revised(memory: GovernedMemory, answer: Callable[[], Any]) -> object:
    """Revise what is under a key by an answer."""
    return memory.revise("long_term", ("k",), lambda *_: answer(), caller=WHO, purpose="answer_generation")


def told(memory: GovernedMemory, payload: dict[str, Any]) -> None:
    """Tell of an event."""
    memory.tell("session_constraints_merged", payload, caller=WHO)


@pytest.mark.parametrize("name", ANSWERS)
def test_what_a_function_of_ones_own_returns_is_checked(name: str) -> None:
    """An answer of the wrong type is refused as an argument is, and nothing is written."""
    good = GOOD.get(name, set()) | ({"mapping"} if name == "kept" else set())
    with GovernedMemory.open("memory:") as memory:
        memory.write(candidate("Other."), caller=WHO)
        for strange, value in STRANGE.items():
            if strange in good:
                ANSWERS[name](memory, value)
                continue
            lines = len(list(memory.log_lines()))
            with pytest.raises(GovernanceError) as refused:
                ANSWERS[name](memory, value)
            assert name in str(refused.value), (strange, str(refused.value))
            assert len(list(memory.log_lines())) == lines, strange


def test_a_payload_has_an_end(shared: GovernedMemory) -> None:
    """What is nested without end, or in itself, is no account of anything."""
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(GovernanceError, match="counts: must be nested 8 deep at most"):
        told(shared, {"counts": endless})


def test_a_closed_memory_says_so() -> None:
    """Every method and every property, with what it would otherwise take."""
    memory = GovernedMemory.open("memory:")
    memory.close()
    memory.close()
    names = [name for name in CALLS if name not in ("close", "log_lines", "raw_log", "log_chains")]
    for name in names:
        with pytest.raises(StoreError, match="closed"):
            getattr(memory, name)(**CALLS[name])
    for name, _ in inspect.getmembers(GovernedMemory, lambda one: isinstance(one, property)):
        if not name.startswith("_"):
            with pytest.raises(StoreError, match="closed; open it again"):
                getattr(memory, name)


def test_asyncio_has_a_twin_of_everything() -> None:
    """Same names, arguments and words; what waits is awaited."""
    for name in public(GovernedMemory):
        one, twin = getattr(GovernedMemory, name), getattr(AsyncGovernedMemory, name)
        assert list(inspect.signature(twin).parameters.values()) == list(
            inspect.signature(one).parameters.values()
        ), name
        assert twin.__doc__
        if name not in ("close", "observe_metrics"):
            assert twin.__doc__ == one.__doc__
            assert inspect.iscoroutinefunction(twin), name
    for name, _ in inspect.getmembers(GovernedMemory, lambda one: isinstance(one, property)):
        assert name.startswith("_") or isinstance(getattr(AsyncGovernedMemory, name), property)
    assert {"open", "from_settings"} <= set(dir(AsyncGovernedMemory))


def test_types_that_are_as_good() -> None:
    """A subclass of a string, and a generator, are taken for what they are."""
    with GovernedMemory.open("memory:") as memory:
        receipts = memory.write_many((one for one in [candidate("One."), candidate("Two.")]), caller=WHO)
        assert [type(one).__name__ for one in receipts] == ["WriteReceipt"] * 2
        assert memory.log_name(Word("word")) == memory.log_name("word")
