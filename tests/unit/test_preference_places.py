"""Where preferences are kept: one file a user, SQLite, Redis; and who shares none with whom."""

from __future__ import annotations

import multiprocessing
import stat
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import Caller
from agent_runtime_ref.enforcement.revise import RevisionGate
from agent_runtime_ref.errors import PreferenceInvalidError, StoreAddressError, UsageError
from agent_runtime_ref.preferences import PreferenceStore, places
from agent_runtime_ref.preferences.places import address_of, file_name, safe_join
from tests.preferring import USER, finding, opened
from tests.redis_server import RedisProcess

AT_ONCE = 2
EACH = 4


def test_the_default_is_a_folder_of_the_users_own_state(tmp_path: Path) -> None:
    """The variable names another place; empty, it counts as unset."""
    home = {"AGENT_RUNTIME_HOME": str(tmp_path)}

    assert f"file:{tmp_path / 'preferences'}" == address_of(home)
    assert f"file:{tmp_path / 'preferences'}" == address_of(home | {"AGENT_RUNTIME_PREFERENCES": ""})
    assert address_of(home | {"AGENT_RUNTIME_PREFERENCES": "sqlite:p.db"}) == "sqlite:p.db"


def test_looking_makes_nothing(tmp_path: Path) -> None:
    """Neither a folder nor a file is there before the first preference."""
    for address in (f"file:{tmp_path / 'new'}", f"sqlite:{tmp_path / 'p.db'}"):
        with PreferenceStore(address) as store:
            assert () == store.read(caller=USER) == store.read_relevant("plastic", caller=USER)
            assert store.forget("plastic", caller=USER).removed == ()
            assert store.write_many([], caller=USER) == ()
            with pytest.raises(PreferenceInvalidError):
                store.write(finding("blue today", scope="session"), caller=USER)

    assert list(tmp_path.iterdir()) == []


def test_a_user_has_one_json_file_of_his_own(tmp_path: Path) -> None:
    """Readable by its owner alone, in a folder that nobody else opens, and found again."""
    folder = tmp_path / "preferences"
    with PreferenceStore(f"file:{folder}") as store:
        store.write(finding(), caller=USER)
    with PreferenceStore(f"file:{folder}") as store:
        assert [one.slug for one in store.read(caller=USER)] == ["plastic"]

    assert [file_name(USER.tenant_id, "user-42")] == [one.name for one in folder.glob("*.json")]
    assert {0o600} == {stat.S_IMODE(one.stat().st_mode) for one in folder.iterdir()}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_sqlite_keeps_them_too(tmp_path: Path) -> None:
    """The same store, by another address."""
    address = f"sqlite:{tmp_path / 'p.db'}"
    with PreferenceStore(address) as store:
        store.write(finding(), caller=USER)
        store.write(finding("no tin", "tin"), caller=Caller("tenant-acme", "user-7"))
    with PreferenceStore(address) as store:
        assert [one.slug for one in store.read(caller=USER)] == ["plastic"]


def test_redis_keeps_them_too(durable_redis: RedisProcess) -> None:
    """Where each write is forced to its disk; found, repeated and forgotten as elsewhere."""
    durable_redis.empty()
    with PreferenceStore(durable_redis.url()) as store:
        store.write(finding(), caller=USER)
        contradicting = finding("I like plastic", polarity="like")
        assert store.write(contradicting, caller=USER).superseded == ("dislike:material:general:plastic",)
    with PreferenceStore(durable_redis.url()) as store:
        assert [one.polarity for one in store.read(caller=USER)] == ["like"]
        assert store.forget("plastic", caller=USER).removed == ("like:material:general:plastic",)
        assert store.read(caller=USER) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alice", "Alice"),
        ("alice", "alice "),
        (unicodedata.normalize("NFC", "josé"), unicodedata.normalize("NFD", "josé")),
        ("ａlice", "alice"),
        ("a/b", "a-b"),
        ("", "user"),
        ("x" * 300, "x" * 301),
    ],
)
def test_users_that_only_look_alike_share_no_file(one: str, other: str) -> None:
    """Not even where a file system folds case or Unicode."""
    names = {unicodedata.normalize("NFC", file_name("t", name)).casefold() for name in (one, other)}

    assert len(names) == 2


def test_tenant_and_user_are_told_apart() -> None:
    """Where one ends and the other begins is a part of the name."""
    assert file_name("ab", "c") != file_name("a", "bc")


@pytest.mark.parametrize(
    "subject", ["../../etc/passwd", "..", "/", "a\0b", "C:\\x", ".", "~root", "-rf", "用户"]
)
def test_a_name_stays_in_its_folder(tmp_path: Path, subject: str) -> None:
    """Whatever a user is called, the name is letters and digits, and lies where it should."""
    path = safe_join(tmp_path, file_name("t", subject))

    assert tmp_path.resolve() == path.parent
    assert path.name.replace("-", "").replace(".", "").isalnum()
    assert path.name.isascii()
    assert len(path.name) < 80


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "/etc/passwd"])
def test_a_path_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """A name with parts of its own is none."""
    with pytest.raises(StoreAddressError):
        safe_join(tmp_path, name)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    """Somebody else's file is not read or written through a link."""
    folder, elsewhere = tmp_path / "p", tmp_path / "elsewhere.json"
    folder.mkdir()
    elsewhere.write_text("{}", encoding="utf-8")
    (folder / file_name(USER.tenant_id, "user-42")).symlink_to(elsewhere)
    with PreferenceStore(f"file:{folder}") as store, pytest.raises(StoreAddressError):
        store.write(finding(), caller=USER)

    assert elsewhere.read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize("address", ["file:", "file: ", "nowhere:x", "plain"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """The error says what is known."""
    with pytest.raises(StoreAddressError):
        PreferenceStore(address).write(finding(), caller=USER)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """A look that finds nobody's preferences there would say that there are none."""
    (tmp_path / "p").write_text("x", encoding="utf-8")
    with PreferenceStore(tmp_path / "p") as store:
        for use in (store.read, partial(store.write, finding())):
            with pytest.raises(StoreAddressError, match="name the folder"):
                use(caller=USER)


def test_an_option_that_is_none_is_refused() -> None:
    """No argument is ignored."""
    with pytest.raises(UsageError):
        PreferenceStore("memory:", nonsense=1)


def test_a_volatile_store_is_one_for_a_process() -> None:
    """`memory:` keeps preferences until it is closed; a driver that is missing is said by its name."""
    with PreferenceStore("memory:") as store:
        store.write(finding(), caller=USER)
        assert len(store.read(caller=USER)) == 1


def test_threads_that_write_at_once_lose_nothing() -> None:
    """Each of them looks again where another was faster."""
    store, _ = opened()

    def write(number: int) -> None:
        for turn in range(EACH):
            store.write_many(
                [finding(f"no {number} {turn}", f"thing-{number}-{turn}"), finding()], caller=USER
            )

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))

    assert len(store.read(caller=USER)) == 4 * EACH + 1


def test_users_take_turns_where_few_memories_stay_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory that had to make room is opened again, with everything in it."""
    monkeypatch.setattr(places, "OPEN_MAX", 1)
    other = Caller("tenant-acme", "user-7")
    with PreferenceStore(tmp_path) as store:
        for caller in (USER, other, USER, other):
            store.write(finding(), caller=caller)

        assert [store.read(caller=caller)[0].confidence for caller in (USER, other)] == [0.8, 0.8]


def write_some(address: str, number: int) -> None:
    """Write several preferences, and one that every process writes."""
    with PreferenceStore(address) as store:
        for turn in range(EACH):
            own = finding(f"no thing {number} {turn}", f"thing-{number}-{turn}")
            store.write_many([own, finding()], caller=USER)


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_processes_that_write_at_once_lose_nothing(tmp_path: Path, scheme: str) -> None:
    """What each of them kept is there, and the one that all of them repeat counts each time."""
    address = f"file:{tmp_path / 'p'}" if scheme == "file" else f"sqlite:{tmp_path / 'p.db'}"
    processes = multiprocessing.get_context("spawn")
    workers = [processes.Process(target=write_some, args=(address, number)) for number in range(AT_ONCE)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)

    assert [worker.exitcode for worker in workers] == [0] * AT_ONCE
    with PreferenceStore(address) as store:
        found = {one.slug: one.confidence for one in store.read(caller=USER)}
    wanted = {f"thing-{number}-{turn}" for number in range(AT_ONCE) for turn in range(EACH)}
    assert {*wanted, "plastic"} == set(found)
    assert found["plastic"] == 1.0


def opposites_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Say the opposite of each other so that each writer has looked before the other one has written.

    Returns the keys that are there then.
    """
    said = finding("I love plastic", polarity="like", strength="soft"), finding("I hate plastic")
    commit, waiting = RevisionGate._commit, [said[1]]

    def overtaken(gate: RevisionGate, *decided: Any) -> None:
        if waiting:
            with PreferenceStore(address) as other:
                other.write(waiting.pop(), caller=USER)
        commit(gate, *decided)

    monkeypatch.setattr(RevisionGate, "_commit", overtaken)
    with PreferenceStore(address) as store:
        told = store.write(said[0], caller=USER)
        assert told.superseded == ("dislike:material:general:plastic",)
        return [str(one.key) for one in store.read(caller=USER)]


@pytest.mark.parametrize("scheme", ["file", "sqlite", "jsonl"])
def test_of_opposites_at_one_moment_the_later_one_stays(
    tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody likes and dislikes one thing: the later one in the log sees the other, and replaces it."""
    address = f"{scheme}:{tmp_path / 'p'}"

    assert opposites_at_once(address, monkeypatch) == ["like:material:general:plastic"]


def test_so_it_is_in_redis(durable_redis: RedisProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on a server that several machines share."""
    durable_redis.empty()
    assert opposites_at_once(durable_redis.url(), monkeypatch) == ["like:material:general:plastic"]


@pytest.mark.parametrize("is_whole", [True, False], ids=["one whole", "none whole"])
def test_forgetting_a_user_takes_what_lies_aside_of_him(tmp_path: Path, is_whole: bool) -> None:
    """A damaged file holds his words as much as a whole one; another user's lie where they are."""
    other = Caller(USER.tenant_id, "user-43")
    with PreferenceStore(tmp_path) as store:
        for one in (USER, other):
            store.write(finding("plastic"), caller=one)
    for file in tmp_path.glob("*.json"):
        file.write_bytes(file.read_bytes()[:-20])
    with PreferenceStore(tmp_path) as store:
        if is_whole:
            store.write(finding("leather"), caller=USER)
        assert store.forget_all(caller=USER) is not None

        assert store.read(caller=USER) == ()
        assert store.read(caller=other) == ()  # put aside by now
    holding = [file.name for file in tmp_path.iterdir() if b"plastic" in file.read_bytes()]
    assert [name.startswith("user-43-") for name in holding] == [True]
