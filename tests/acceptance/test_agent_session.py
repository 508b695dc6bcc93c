"""A turn of the runtime keeps to what its user asked for in the thread."""

from __future__ import annotations

import html
import json
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import AgentRuntime, Caller, GovernedMemory
from agent_runtime_ref.agent import Answer, Request, Tool, ToolCall, ToolSpec, TurnResult
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.curator import Curator
from agent_runtime_ref.exposure import contexts_of
from agent_runtime_ref.preferences import PreferenceStore
from agent_runtime_ref.runtime import Inspection
from agent_runtime_ref.session_state import Enforcer, Sessions
from agent_runtime_ref.testing import FrozenClock
from tests.constraining import Preference, budget, finding
from tests.reviewing import OPERATOR
from tests.support import caller
from tests.turns import Scripted, tool

ITEMS = [
    {"name": "Plastic box", "price": "$12"},
    {"name": "Tin box", "price": "$20"},
    {"name": "Tin chest", "price": "$900"},
]


class Listening:
    """A curation that merges what it was told to hear."""

    def __init__(self, sessions: Sessions, heard: Mapping[str, list[Finding]]) -> None:
        self.sessions = sessions
        self.heard = heard

    def curate_turn(self, user_text: str, reply: str, *, caller: Caller) -> object:
        """Merge into the caller's thread."""
        assert caller.session_id is not None
        return self.sessions.merge(caller.session_id, self.heard.get(user_text, []), caller=caller)


@pytest.fixture
def memory(clock: FrozenClock) -> Iterator[GovernedMemory]:
    """An empty governed memory."""
    with GovernedMemory.open("memory:", clock=clock) as opened:
        yield opened


def pick_items(arguments: Mapping[str, Any], *, caller: Caller, purpose: str) -> str:
    """Return the names of what the enforcer lets through."""
    return json.dumps([item["name"] for item in Enforcer().apply(ITEMS, **arguments).items])


PICKER = Tool(ToolSpec("pick_items", "what the shop has", {"type": "object"}), pick_items)


def picking(**passed: Any) -> Scripted:
    """Return a model that calls the item picker with what it passes on, and replies with what came back."""
    call = Answer(calls=(ToolCall("pick_items", passed),))
    return Scripted(lambda request: Answer(request.exchanges[-1].result) if request.exchanges else call)


def picked(result: TurnResult) -> list[str]:
    """Return the names that a turn found."""
    assert result.status == "complete", result.error
    return [item["name"] for item in ITEMS if item["name"] in result.reply]


SAID = {"no plastic, at most $100": [finding("plastic"), budget("100")], "no tin": [finding("tin")]}


def opened(memory: GovernedMemory, folder: Path, **passed: Any) -> AgentRuntime:
    """Return a runtime whose model passes on what a test says."""
    sessions = Sessions(memory, folder=folder)
    return AgentRuntime.open(
        memory,
        model=picking(**passed),
        tools=[PICKER],
        curation=Listening(sessions, SAID),
        sessions=sessions,
    )


def test_what_the_first_turn_says_is_enforced_in_the_second(
    memory: GovernedMemory, tmp_path: Path, clock: FrozenClock
) -> None:
    """The model passes nothing on, or the opposite; the day after nothing of it is left."""
    with opened(memory, tmp_path) as runtime:
        assert picked(runtime.run("no plastic, at most $100", caller=caller())) == [
            item["name"] for item in ITEMS
        ]
        assert runtime.drain()
        assert picked(runtime.run("and now?", caller=caller())) == ["Tin box"]
    with opened(memory, tmp_path, exclude=[], budget="$10000") as runtime:
        assert picked(runtime.run("and now?", caller=caller())) == ["Tin box"]
        clock.advance(days=1)
        assert len(picked(runtime.run("and now?", caller=caller()))) == len(ITEMS)


def test_the_manifest_names_the_records_of_the_constraints(memory: GovernedMemory, tmp_path: Path) -> None:
    """What stood in the prompt is a record that entered the context, which the log then says of it."""
    with opened(memory, tmp_path) as runtime:
        runtime.run("no plastic, at most $100", caller=caller())
        assert runtime.drain()
        result = runtime.run("and now?", caller=caller())

    look = Inspection(principal_id="oscar", limit=100)
    named = dict(zip(("budget", "plastic"), result.layers[1].record_ids, strict=True))
    kept = {hit.record.memory_id: hit.record for hit in memory.inspect(look, caller=OPERATOR).hits}
    assert {kept[one].key for one in named.values()} == {
        "session:budget:max",
        "session:thing:material:general:plastic",
    }
    for record_id in named.values():
        assert [one.trace_id for one in contexts_of(memory, [record_id], "tenant-acme")] == [result.trace_id]


def test_constraints_kept_before_ids_were_are_in_force_and_named_nowhere(
    memory: GovernedMemory, tmp_path: Path
) -> None:
    """A file of an earlier version has no ids; what it asks for holds all the same."""
    with opened(memory, tmp_path) as runtime:
        runtime.run("no plastic, at most $100", caller=caller())
        assert runtime.drain()
        (file,) = tmp_path.glob("*/*/pt.json")
        document = json.loads(file.read_text(encoding="utf-8"))
        del document["record_ids"]
        file.write_text(json.dumps(document), encoding="utf-8")
        result = runtime.run("and now?", caller=caller())

    assert picked(result) == ["Tin box"]
    assert result.layers[1].record_ids == ()


def test_the_model_is_shown_the_constraints_in_the_session_layer(
    memory: GovernedMemory, tmp_path: Path
) -> None:
    """One item, whose words stand in no event."""
    with opened(memory, tmp_path) as runtime:
        runtime.run("no plastic, at most $100", caller=caller())
        assert runtime.drain()
        result = runtime.run("and now?", caller=caller())

    (layer,) = [layer for layer in result.layers if layer.name == "session"]
    (item,) = layer.items
    assert item.kind == "constraints"
    assert item.block.startswith("<session_constraints>")
    assert item.block in result.context
    assert "about plastic" not in json.dumps([event.to_document() for event in result.events])


def test_a_curated_turn_is_in_the_thread_once(memory: GovernedMemory, tmp_path: Path) -> None:
    """The exchange is kept behind the reply; done again after a crash it is still one."""
    sessions = Sessions(memory, folder=tmp_path)
    with opened(memory, tmp_path) as runtime:
        runtime.run("no tin", caller=caller())
        assert runtime.drain()
    who = caller()
    (turn,) = sessions.turns("session-001", caller=who)
    assert (turn.user_text, turn.trace_id) == ("no tin", "trace-001")
    assert turn.user_text is not None

    again = sessions.add_turn("session-001", turn.user_text, turn.reply, caller=who)

    assert again == turn
    assert sessions.turns("session-001", caller=who) == (turn,)


def test_a_turn_that_failed_is_kept_as_one_that_failed(memory: GovernedMemory, tmp_path: Path) -> None:
    """Whoever reads the thread later does not take it for one that was answered."""

    def failing(request: Any) -> Answer:
        raise RuntimeError("no model")

    sessions = Sessions(memory, folder=tmp_path)
    with AgentRuntime.open(memory, model=Scripted(failing), sessions=sessions) as runtime:
        assert runtime.run("no tin", caller=caller()).status == "failed"
        assert runtime.drain()

    (turn,) = sessions.turns("session-001", caller=caller())
    assert (turn.user_text, turn.reply, turn.status) == ("no tin", None, "failed")


def test_a_turn_does_not_go_on_without_constraints_that_it_may_not_see(
    memory: GovernedMemory, tmp_path: Path
) -> None:
    """Where the policy or the file system keeps them back, the turn fails and says why."""
    with opened(memory, tmp_path) as runtime:
        runtime.run("no tin", caller=caller())
        assert runtime.drain()
        refused = runtime.run("and now?", caller=caller(), purpose="personalization")
        assert (refused.status, refused.reply) == ("failed", "")
        assert runtime.drain()
        (file,) = tmp_path.glob("*/*/pt.json")
        shutil.rmtree(file.parent)
        file.parent.write_text("", encoding="utf-8")
        broken = runtime.run("and now?", caller=caller())
        file.parent.unlink()

    assert broken.status == "failed"
    assert "session state" in (broken.error or "")


def test_what_a_user_never_wants_is_enforced_beside_it(memory: GovernedMemory, tmp_path: Path) -> None:
    """Long-term dislikes come from wherever the application keeps them, for each caller his own."""
    runtime = AgentRuntime.open(
        memory,
        model=picking(),
        tools=[PICKER],
        sessions=Sessions(memory, folder=tmp_path),
        standing=lambda who: [Preference("plastic")] if who.own_subject == "user-42" else [],
    )
    with runtime:
        assert picked(runtime.run("a box?", caller=caller())) == ["Tin box", "Tin chest"]
        assert len(picked(runtime.run("a box?", caller=caller(principal_id="user-43")))) == len(ITEMS)


def test_turns_side_by_side_are_held_to_their_own(memory: GovernedMemory, tmp_path: Path) -> None:
    """Two threads of two users in one runtime; both are in the middle of a turn at the same time."""
    barrier = threading.Barrier(2)

    def meeting(arguments: Mapping[str, Any], *, caller: Caller, purpose: str) -> str:
        barrier.wait(30)
        return pick_items(arguments, caller=caller, purpose=purpose)

    sessions = Sessions(memory, folder=tmp_path)
    callers = [caller(principal_id=name, session_id=name) for name in ("left", "right")]
    sessions.merge("left", [finding("plastic")], caller=callers[0])
    sessions.merge("right", [finding("tin")], caller=callers[1])
    found: dict[str, list[str]] = {}
    tools = [Tool(PICKER.spec, meeting)]
    with AgentRuntime.open(memory, model=picking(), tools=tools, sessions=sessions) as runtime:

        def turn(who: Caller) -> None:
            found[who.principal_id] = picked(runtime.run("a box?", caller=who))

        threads = [threading.Thread(target=turn, args=(who,)) for who in callers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert found == {"left": ["Tin box", "Tin chest"], "right": ["Plastic box"]}


SEED = [
    "budget $300 this time / I always hate plastic / blue today",
    "这次预算300美元 / 我一直讨厌塑料 / 今天想要蓝色",
]
SHELF = [
    {"name": "Plastic crate", "price": "$5"},
    {"name": "Tin crate", "price": "$20"},
    {"name": "Blue tin crate", "price": "$30"},
    {"name": "蓝色木箱", "price": "$40"},
    {"name": "Marble crate", "price": "$400"},
]


@pytest.mark.parametrize("said", SEED)
def test_what_was_judged_is_enforced_where_it_belongs(
    memory: GovernedMemory, tmp_path: Path, said: str
) -> None:
    """Budget and blue hold in their thread, the dislike of plastic in each; the model passes nothing."""

    def shelf(arguments: Mapping[str, Any], *, caller: Caller, purpose: str) -> str:
        return json.dumps([item["name"] for item in Enforcer().apply(SHELF).items], ensure_ascii=False)

    sessions, preferences = Sessions(memory, folder=tmp_path), PreferenceStore(memory=memory)
    runtime = AgentRuntime.open(
        memory,
        model=picking(),
        tools=[Tool(PICKER.spec, shelf)],
        curation=Curator(memory, sessions=sessions, preferences=preferences),
        sessions=sessions,
        standing=lambda who: preferences.read(caller=who),
    )
    here, elsewhere = caller(session_id="here"), caller(session_id="elsewhere")
    with runtime:
        runtime.run(said, caller=here)
        assert runtime.drain()
        replies = [runtime.run("a crate?", caller=who).reply for who in (here, elsewhere)]

    found = [json.loads(html.unescape(reply[reply.index("[") : reply.rindex("]") + 1])) for reply in replies]
    assert found[0] == ["Blue tin crate", "蓝色木箱", "Tin crate"]
    assert found[1] == ["Tin crate", "Blue tin crate", "蓝色木箱", "Marble crate"]


PICK = Answer(calls=(ToolCall("pick", {"text": "bag"}),))


def named(request: Request) -> Answer:
    """Reply with what the tool returned."""
    return Answer(request.context.tools[-1].text or "nothing")


def picker(*items: Any) -> Tool:
    """Return a tool that holds items to the turn, and returns their names."""
    enforcer = Enforcer()

    def pick(arguments: Any, **_: Any) -> str:
        return ", ".join(item["name"] for item in enforcer.apply(items).items)

    return tool("pick", pick)


@pytest.mark.parametrize(
    "message",
    [
        "A bag: no leather this time, and under $50.",
        "I always hate leather. A bag for at most $50, please.",
        "这次不要皮革，50美元以内。",
    ],
)
def test_the_turn_that_states_a_constraint_is_held_to_it(
    memory: GovernedMemory, tmp_path: Path, message: str
) -> None:
    """Curation keeps it behind the reply; the item picker knows it before, and nothing is kept for that."""
    bags = [{"name": "Red leather bag 皮革", "price": "$120"}, {"name": "Canvas bag", "price": "$35"}]
    tools = [picker(*bags, {"name": "Silk bag", "price": "$90"})]
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    kept: list[bool] = []

    def looking(_: Request) -> Answer:
        kept.append(bool(sessions.load("s", caller=who)))
        return PICK

    who = caller(session_id="s")
    model = Scripted(looking, named)
    with AgentRuntime.open(memory, model=model, tools=tools, sessions=sessions) as runtime:
        result = runtime.run(message, caller=who)
        assert runtime.drain()

    assert result.reply == "Canvas bag"
    assert kept == [False]
    assert sessions.load("s", caller=who).budget


def test_a_later_word_counts_in_the_turn_that_says_it(memory: GovernedMemory, tmp_path: Path) -> None:
    """A new budget takes the place of the one that is kept, at once."""
    tools, model = [picker({"name": "Silk bag", "price": "$90"})], Scripted(PICK, named, PICK, named)
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, model=model, tools=tools, sessions=sessions) as runtime:
        replies = [
            runtime.run(message, caller=caller(session_id="s")).reply
            for message in ("under $50 please", "OK, at most $100.")
        ]

    assert replies == ["nothing", "Silk bag"]


def test_who_replaces_the_curation_says_what_is_heard(memory: GovernedMemory, tmp_path: Path) -> None:
    """The rules hold no turn to what the application's own judge may see otherwise."""

    class Deaf:
        def curate_turn(self, user_text: str, reply: str, *, caller: object) -> None:
            """Keep nothing."""

    sessions = Sessions(memory, folder=tmp_path / "sessions")
    options: dict[str, Any] = {"sessions": sessions, "curation": Deaf()}
    options["tools"] = [picker({"name": "Silk bag", "price": "$90"})]
    with AgentRuntime.open(memory, model=Scripted(PICK, named), **options) as runtime:
        assert runtime.run("under $50 please", caller=caller(session_id="s")).reply == "Silk bag"


def test_a_reply_becomes_no_memory_of_its_user(memory: GovernedMemory, tmp_path: Path) -> None:
    """It stands in the thread, with little trust; no search or recall brings back what it quotes."""
    who, quoted = caller(session_id="s"), "Support tickets go to the zebra queue."
    sessions = Sessions(memory, folder=tmp_path / "sessions")
    with AgentRuntime.open(memory, model=Scripted(Answer(quoted)), sessions=sessions) as runtime:
        runtime.run("Where do tickets go?", caller=who)
        assert runtime.drain()
        again = runtime.run("zebra queue", caller=caller(session_id="other"))

    seen = memory.inspect(Inspection(principal_id="oscar", limit=100), caller=OPERATOR).hits
    replies = [hit.record for hit in seen if hit.record.content == quoted]
    assert {(one.source, one.trust_level) for one in replies} == {("session_state", "low")}
    assert who.own_subject not in {one.subject for one in replies}
    assert [turn.reply for turn in sessions.turns("s", caller=who)] == [quoted]
    assert [hit.snippet for hit in memory.recall("zebra", caller=who).hits] == [
        "zebra queue"
    ]  # his own words
    assert quoted not in again.context
