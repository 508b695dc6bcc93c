"""The files of P_t: damaged, linked, copied, whose they are, what is in them and what survives."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_runtime_ref import DocumentValueError, GovernedMemory
from agent_runtime_ref.session_state import Sessions, SessionState, load, merge, save
from agent_runtime_ref.testing import FrozenClock
from tests.acceptance.session_state.threads import THREAD, TURN, USER, pt
from tests.constraining import finding

DAMAGE: dict[str, Any] = {
    "cut short": lambda text: text[:-30],
    "not json": lambda text: "{",
    "not an object": lambda text: "[]",
    "not text": lambda text: b"\xff\xfe\x00",
    "empty": lambda text: "",
    "another version": lambda text: text.replace('"version": 1', '"version": 2'),
    "a version that is no number": lambda text: text.replace('"version": 1', '"version": true'),
    "huge": lambda text: text + " " * (5 << 20),
    "a name twice": lambda text: text.replace('"version": 1', '"version": 1, "version": 1'),
    "another thread's": lambda text: text.replace('"of": "', '"of": "0'),
    "not a number": lambda text: text.replace('"saved_at_us": ', '"saved_at_us": NaN, "x": '),
    "a strange constraint": lambda text: text.replace('"hard"', '"deadly"'),
    "a standing constraint": lambda text: text.replace('"session",', '"standing",'),
    "a field too many": lambda text: text.replace('"slug"', '"slag": 1, "slug"'),
    "a life that is none": lambda text: text.replace('"life": "session-', '"life": "user-'),
    "deep": lambda text: "[" * 100_000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_file_reads_as_empty_and_is_kept_aside(
    sessions: Sessions, folder: Path, damage: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is reported, put aside as it was, and the thread begins anew; nothing is raised."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    file = pt(folder)
    broken = damage(file.read_text(encoding="utf-8"))
    broken = broken if isinstance(broken, bytes) else broken.encode()
    file.write_bytes(broken)

    loaded = sessions.look(THREAD, caller=USER, aside=True)

    assert loaded.state == SessionState()
    assert loaded.damaged is not None
    assert loaded.aside == file.with_name("pt.json.damaged-1")
    assert loaded.aside.read_bytes() == broken
    assert not file.exists()
    said = capsys.readouterr().err
    assert "session_state_damaged" in said
    assert "plastic" not in said
    sessions.merge(THREAD, [finding("leather")], caller=USER)
    assert len(sessions.load(THREAD, caller=USER).findings) == 1


def test_a_merge_over_a_damaged_file_keeps_it_aside(sessions: Sessions, folder: Path) -> None:
    """A second damaged file does not take the place of the first."""
    for _ in range(2):
        sessions.merge(THREAD, [finding("plastic")], caller=USER)
        pt(folder).write_text("{", encoding="utf-8")
        sessions.merge(THREAD, [finding("leather")], caller=USER)

    names = sorted(path.name for path in pt(folder).parent.iterdir())
    assert names == ["pt.json", "pt.json.damaged-1", "pt.json.damaged-2"]


def test_a_look_alone_moves_nothing(sessions: Sessions, folder: Path) -> None:
    """Who only looks is told of the damage and leaves it where it is."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    pt(folder).write_text("{", encoding="utf-8")

    loaded = sessions.look(THREAD, caller=USER)

    assert (loaded.damaged, loaded.aside) == ("not_json", None)
    assert pt(folder).read_text(encoding="utf-8") == "{"


def test_a_file_of_another_owner_than_its_folder_is_damage(
    sessions: Sessions, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else put it there, and his constraints are nobody's here."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    assert sessions.look(THREAD, caller=USER).damaged is None
    fstat = os.fstat
    ids = {pt(folder).stat().st_ino}

    def of_somebody_else(descriptor: int) -> os.stat_result:
        status = fstat(descriptor)
        parts = list(status)
        parts[stat.ST_UID] += status.st_ino in ids
        return os.stat_result(parts)

    monkeypatch.setattr(os, "fstat", of_somebody_else)

    assert sessions.look(THREAD, caller=USER).damaged == "not_the_owners"


def test_a_link_in_the_place_of_the_file_is_damage(sessions: Sessions, folder: Path, tmp_path: Path) -> None:
    """Nothing is read through it, and nothing written through it."""
    target = tmp_path / "target.json"
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    file = pt(folder)
    file.rename(target)
    file.symlink_to(target)

    assert sessions.look(THREAD, caller=USER).damaged == "not_a_file"
    before = target.read_bytes()
    sessions.merge(THREAD, [finding("leather")], caller=USER)
    assert target.read_bytes() == before
    assert not file.is_symlink()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_damage_and_goes_with_the_thread(
    sessions: Sessions, folder: Path, make: Callable[[Path], None]
) -> None:
    """A folder or a pipe of the file's name reads as empty, is put aside and is in nobody's way."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    pt(folder).unlink()
    make(file := next(folder.glob("*/*")) / "pt.json")

    assert sessions.look(THREAD, caller=USER, aside=True).damaged == "not_a_file"
    make(file)
    assert sessions.merge(THREAD, [finding("leather")], caller=USER).state.counts == {"negative_hard": 1}
    assert sessions.clear(THREAD, caller=USER)
    assert list(folder.glob("*/*")) == []


@pytest.mark.parametrize("reply", ["x" * 70_000, "half a \ud800"], ids=["too long", "no text"])
def test_a_reply_that_no_memory_can_hold_is_kept_without(sessions: Sessions, reply: str) -> None:
    """What could never be kept does not keep the rest of the turn from being kept."""
    sessions.add_turn(THREAD, "hello", reply, caller=USER)

    assert [(one.user_text, one.reply) for one in sessions.turns(THREAD, caller=USER)] == [("hello", None)]


def test_files_and_folders_are_their_owners_alone(sessions: Sessions, folder: Path) -> None:
    """Mode 0600 for files, 0700 for folders, whatever was there before; and nothing half-written stays."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    pt(folder).parent.chmod(0o755)
    pt(folder).chmod(0o644)
    sessions.merge(THREAD, [finding("leather")], caller=USER)
    sessions.add_turn(THREAD, "hello", "hi", caller=USER)

    file = pt(folder)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.parent.parent.stat().st_mode) == 0o700
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in file.parent.iterdir()} == {
        "pt.json": 0o600,
        "turns.json": 0o600,
    }


NAMES = [
    "../x",
    "a/b",
    "a_b",
    "A/b",
    "a",
    "A",
    "\u00e9",
    "e\u0301",
    " a",
    "a ",
    "..",
    ".",
    "con",
    "x" * 300,
    "a\0b",
]


def test_no_two_threads_share_a_folder_and_none_escapes(sessions: Sessions, folder: Path) -> None:
    """Separators, dots, case, Unicode forms and length make names of their own, below the folder."""
    for number, thread in enumerate(NAMES):
        sessions.merge(thread, [finding(f"thing-{number}")], caller=USER)

    for number, thread in enumerate(NAMES):
        assert [one.slug for one in sessions.load(thread, caller=USER).findings] == [f"thing-{number}"]
    names = [path.name for path in folder.glob("*/*")]
    assert len({name.casefold() for name in names}) == len(NAMES)
    assert [path.name for path in folder.parent.iterdir()] == ["sessions"]


@pytest.mark.parametrize("thread", ["", "  ", "\ud800"])
def test_a_thread_without_a_name_is_refused(sessions: Sessions, thread: str) -> None:
    """There is no thread that everybody without one would share."""
    with pytest.raises(DocumentValueError, match="thread"):
        sessions.load(thread, caller=USER)


def test_a_copied_file_is_not_taken_for_ones_own(sessions: Sessions, folder: Path) -> None:
    """A file says whose it is; in another thread's folder it is damage."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)
    stolen = pt(folder).read_bytes()
    sessions.merge("thread-2", [finding("leather")], caller=USER)
    for file in folder.glob("*/*/pt.json"):
        file.write_bytes(stolen)

    assert sessions.look("thread-2", caller=USER).damaged == "of_another_thread"
    assert sessions.look(THREAD, caller=USER).damaged is None


def test_the_file_survives_the_memory(folder: Path, clock: FrozenClock) -> None:
    """Constraints hold over a restart, also where the store of the records ends with the process."""
    for turn in ([finding("plastic")], [finding("leather")]):
        with GovernedMemory.open("memory:", clock=clock) as memory:
            state = Sessions(memory, folder=folder, clock=clock).merge(THREAD, turn, caller=USER).state

    assert [one.slug for one in state.findings] == ["plastic", "leather"]


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of one's own, named by the environment."""
    for name in ("AGENT_RUNTIME_SESSIONS", "WORKBUDDY_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AGENT_RUNTIME_HOME", str(tmp_path / "home"))
    return tmp_path


def test_load_merge_and_save_without_more_words(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The three steps for the local user, in the folder that the environment names."""
    state = merge(load(THREAD), TURN)
    assert not (own / "home").exists()

    save(state, THREAD)

    assert replace(load(THREAD), saved_at_us=None) == state
    assert len(list((own / "home/sessions").glob("*/*/pt.json"))) == 1
    monkeypatch.setenv("AGENT_RUNTIME_SESSIONS", str(own / "elsewhere"))
    assert load(THREAD) == SessionState()


def test_the_file_holds_what_its_schema_in_the_manual_says(sessions: Sessions, folder: Path) -> None:
    """Version, owner, life, instant, findings: nothing else, and the findings read back."""
    sessions.merge(THREAD, [finding("plastic")], caller=USER)

    document = json.loads(pt(folder).read_text(encoding="utf-8"))
    assert list(document) == ["version", "of", "life", "saved_at_us", "findings", "record_ids"]
    assert document["findings"] == [finding("plastic").to_document()]
