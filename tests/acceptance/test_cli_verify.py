"""`trace verify` and `trace anchor`: what somebody who can write the log cannot hide."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from agent_runtime_ref.telemetry import chain
from agent_runtime_ref.telemetry.segments import closed_segments
from tests.acceptance.command import WHO, Answer, Command, fact, file_of, question

Lines = list[bytes]


@pytest.fixture
def log(command: Command, tmp_path: Path) -> Path:
    """A log file of two reads over the bundled seeds: 24 lines, of which a trace holds the events."""
    path = tmp_path / "log.jsonl"
    asked = file_of(tmp_path / "q.yaml", question())
    for _ in range(2):
        command("read", "--query", asked, *WHO, "--log", path, "--trace", tmp_path / "trace.jsonl")
    return path


@pytest.fixture
def store(command: Command, tmp_path: Path) -> Path:
    """A SQLite store with two writes and two reads, and a trace of the events."""
    path, trace = tmp_path / "memory.db", tmp_path / "trace.jsonl"
    for number in range(2):
        file = file_of(tmp_path / "c.yaml", fact(content=f"Invoice {number} is due."))
        command("write", "--candidate", file, *WHO, "--store", f"sqlite:{path}", "--trace", trace)
        asked = file_of(tmp_path / "q.yaml", question())
        command("read", "--query", asked, *WHO, "--store", f"sqlite:{path}", "--trace", trace)
    return path


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    """An Ed25519 key for anchors, and its public part."""
    return written_keys(tmp_path, "anchor")


def written_keys(folder: Path, name: str) -> tuple[Path, Path]:
    """Write a new key, and return its two files."""
    key = ed25519.Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    private.chmod(0o600)
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


def told(answer: Answer) -> list[tuple[int, str]]:
    """Line and kind of each finding."""
    return [(one["line"], one["kind"]) for one in answer.document["findings"]]


def edited(path: Path, edit: Callable[[Lines], Lines]) -> None:
    """Write the lines of a file as `edit` leaves them."""
    path.write_bytes(b"".join(edit(path.read_bytes().splitlines(keepends=True))))


def resealed(lines: Lines, at: int, find: str, put: str) -> Lines:
    """Change a line and seal the chain anew from it on, as somebody does who knows how it is made."""
    texts = [line.decode().rstrip("\n") for line in lines]
    bodies = [chain.body(text) for text in texts]
    assert find in bodies[at - 1]
    bodies[at - 1] = bodies[at - 1].replace(find, put)
    seq, before = chain.head(texts[at - 2])
    anew = [line for _, line in chain.seal_all(bodies[at - 1 :], seq=seq, prev_hash=before)]
    return [f"{line}\n".encode() for line in [*texts[: at - 1], *anew]]


def test_a_whole_log_without_anchors(command: Command, log: Path) -> None:
    """Nothing is found, and it is said that nothing vouches for the tail: in the data and beside it."""
    answer = command("trace", "verify", log)

    assert (answer.code, answer.document["lines"], answer.document["ok"]) == (0, 24, True)
    assert answer.document["findings"] == []
    assert answer.document["tail"] == "tail unverified"
    assert "tail unverified: 24 lines after line 0" in answer.err
    assert "tail unverified" in command("trace", "verify", log, "--format", "text").out


def test_exported_events_are_anchors(command: Command, log: Path, tmp_path: Path) -> None:
    """With the trace of the same reads, all is verified up to the last event."""
    answer = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert (answer.code, answer.err) == (0, "")
    assert (answer.document["ok"], answer.document["tail"]) == (True, "verified")
    assert answer.document["chains"] == [
        {"chain": "log", "lines": 24, "first": 1, "last": 24, "anchored": 24, "tail_lines": 0}
    ]


EDITS: dict[str, tuple[Callable[[Lines], Lines], list[tuple[int, str]]]] = {
    "changed": (lambda ls: [*ls[:6], ls[6].replace(b"acme", b"acmE", 1), *ls[7:]], [(7, "altered")]),
    "removed first": (lambda ls: ls[1:], [(1, "missing")]),
    "removed": (lambda ls: [*ls[:9], *ls[10:]], [(10, "missing")]),
    "swapped": (
        lambda ls: [*ls[:4], ls[5], ls[4], *ls[6:]],
        [(5, "reordered"), (6, "reordered")],
    ),
    "twice": (lambda ls: [*ls[:8], ls[2], *ls[8:]], [(3, "reordered")]),
    "two at once": (
        lambda ls: [*ls[:2], *ls[3:6], ls[6].replace(b"acme", b"acmE", 1), *ls[7:]],
        [(3, "missing"), (7, "altered")],
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_is_found_without_anchors_too(command: Command, log: Path, name: str) -> None:
    """Whoever does not seal the chain anew is found by the chain alone; the exit code is 1."""
    edit, expected = EDITS[name]
    edited(log, edit)
    answer = command("trace", "verify", log)

    assert answer.code == 1
    assert answer.document["ok"] is False
    assert told(answer) == expected
    assert {one["chain"] for one in answer.document["findings"]} == {"log"}


def test_a_finding_says_where_it_stands(command: Command, log: Path) -> None:
    """File and line there, beside the number that the line has in the log."""
    edited(log, EDITS["two at once"][0])
    _, changed = command("trace", "verify", log).document["findings"]
    text = command("trace", "verify", log, "--format", "text").out

    assert (changed["file"], changed["at"], changed["line"]) == (str(log), 6, 7)
    assert f"{log}:6: line 7 altered: " in text
    assert "chain log: 23 lines, does not hold" in text


def test_a_chain_that_was_sealed_anew(command: Command, log: Path, tmp_path: Path) -> None:
    """Without an anchor it fits, and is told as unverified; each exported event finds it."""
    edited(log, lambda lines: resealed(lines, 10, '"effect":"allow"', '"effect":"deny"'))
    alone = command("trace", "verify", log)
    known = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert (alone.code, alone.document["tail"]) == (0, "tail unverified")
    assert known.code == 1
    assert told(known) == [(11, "altered")]  # line 10 is a decision; line 11 is the next event
    assert "lines 10 to 11" in known.document["findings"][0]["detail"]


def test_a_tail_that_was_cut_off(command: Command, log: Path, tmp_path: Path) -> None:
    """No chain can show that lines are gone from its end; an anchor below them does, and says which."""
    edited(log, lambda lines: lines[:20])
    alone = command("trace", "verify", log)
    known = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert (alone.code, alone.document["tail"]) == (0, "tail unverified")
    assert (known.code, told(known)) == (1, [(21, "truncated")])
    assert known.document["findings"][0]["until"] == 24


def test_a_store_has_two_chains(command: Command, store: Path, tmp_path: Path) -> None:
    """Lines of writes and of reads are verified each by itself."""
    answer = command("trace", "verify", "--store", f"sqlite:{store}", "--anchors", tmp_path / "trace.jsonl")

    assert (answer.code, answer.document["tail"]) == (0, "verified")
    assert [one["chain"] for one in answer.document["chains"]] == ["writes", "reads"]
    assert answer.document["lines"] == sum(one["lines"] for one in answer.document["chains"]) == 12


ROWS: dict[str, tuple[str, str, list[tuple[int, str]]]] = {
    "changed": ("", "UPDATE log SET line=replace(line,'acme','acmE') WHERE seq=2", [(2, "altered")]),
    "removed": ("", "DELETE FROM log WHERE seq=3", [(3, "missing")]),
    "removed last": ("", "DELETE FROM log WHERE seq>4", [(5, "truncated")]),
    "removed all": (".reads", "DELETE FROM log", [(1, "truncated")]),
    "another type": (".reads", "UPDATE log SET line=x'FF00' WHERE seq=1", [(1, "altered")]),
    "no text": (".reads", "UPDATE log SET line=CAST(x'FF' AS TEXT) WHERE seq=1", [(1, "altered")]),
    "renumbered": ("", "UPDATE log SET seq=-7 WHERE seq=3", [(3, "reordered")]),
    "added": ("", "INSERT INTO log SELECT 99, line FROM log WHERE seq=1", [(1, "reordered")]),
}


@pytest.mark.parametrize("name", ROWS)
def test_an_edit_of_rows_is_found(command: Command, store: Path, tmp_path: Path, name: str) -> None:
    """Whoever opens the database itself is found like whoever edits a file."""
    suffix, statement, expected = ROWS[name]
    with closing(sqlite3.connect(f"{store}{suffix}")) as connection, connection:
        connection.execute(statement)
    answer = command("trace", "verify", "--store", f"sqlite:{store}", "--anchors", tmp_path / "trace.jsonl")

    assert answer.code == 1
    assert told(answer) == expected
    assert {one["chain"] for one in answer.document["findings"]} == {"reads" if suffix else "writes"}


def test_a_log_of_reads_that_is_gone(command: Command, store: Path, tmp_path: Path) -> None:
    """Its anchors know it; the whole of it is cut off."""
    Path(f"{store}.reads").unlink()
    answer = command("trace", "verify", "--store", f"sqlite:{store}", "--anchors", tmp_path / "trace.jsonl")

    assert (answer.code, told(answer)) == (1, [(1, "truncated")])


def test_a_signed_anchor_vouches_for_all_before_it(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """It names number, hash, count and instant; what is written later is the unverified tail."""
    private, public = keys
    anchor = tmp_path / "anchor.json"
    made = command("trace", "anchor", "--log", log, "-o", anchor, "--key", private)
    command("read", "--query", tmp_path / "q.yaml", *WHO, "--log", log)
    later = command("trace", "verify", log, "--anchor", anchor, "--key", public)
    edited(log, lambda lines: resealed(lines, 10, '"effect":"allow"', '"effect":"deny"'))
    rewritten = command("trace", "verify", log, "--anchor", anchor, "--key", public)
    edited(log, lambda lines: lines[:23])
    cut = command("trace", "verify", log, "--anchor", anchor, "--key", public)

    assert made.code == 0
    assert made.document == json.loads(anchor.read_text())
    (one,) = made.document["chains"]
    assert (one["chain"], one["count"], one["seq"]) == ("log", 24, 24)
    assert made.document["anchored_at"].endswith("Z")
    assert (later.code, later.document["tail"]) == (0, "tail unverified")
    assert later.document["chains"][0]["anchored"] == 24
    assert told(rewritten) == [(24, "altered")]
    assert told(cut) == [(24, "truncated")]


def test_an_anchor_of_a_store_names_both_chains(
    command: Command, store: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """Each is found cut by it; a secret signs too, where its algorithm is named."""
    secret = tmp_path / "secret"
    secret.write_bytes(os.urandom(32))
    secret.chmod(0o600)
    anchor = tmp_path / "anchor.json"
    words = ["--key", secret, "--algorithm", "hmac-sha256"]
    made = command("trace", "anchor", "--store", f"sqlite:{store}", "-o", anchor, *words)
    verified = command("trace", "verify", "--store", f"sqlite:{store}", "--anchor", anchor, *words)
    Path(f"{store}.reads").unlink()
    cut = command("trace", "verify", "--store", f"sqlite:{store}", "--anchor", anchor, *words)

    assert [one["chain"] for one in made.document["chains"]] == ["writes", "reads"]
    assert (verified.code, verified.document["tail"]) == (0, "verified")
    assert told(cut) == [(1, "truncated")]


@pytest.mark.parametrize(
    ("find", "put"),
    [('"seq": 24', '"seq": 23'), ('"anchored_at": "2', '"anchored_at": "1'), ("ed25519", "hmac-sha256")],
)
def test_a_changed_anchor_proves_nothing(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path], find: str, put: str
) -> None:
    """Every field is signed, and the algorithm is not the file's to choose."""
    private, public = keys
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", log, "-o", anchor, "--key", private)
    text = anchor.read_text()
    assert find in text
    anchor.write_text(text.replace(find, put))
    answer = command("trace", "verify", log, "--anchor", anchor, "--key", public)

    assert (answer.code, answer.out) == (2, "")
    assert "not signed with this key" in answer.err


def test_another_key_is_refused(command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """An anchor of somebody else, and a public key in the place of a secret, prove nothing."""
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", log, "-o", anchor, "--key", keys[0])
    other = written_keys(tmp_path, "other")[1]
    foreign = command("trace", "verify", log, "--anchor", anchor, "--key", other)
    keys[1].chmod(0o600)
    confused = command(
        "trace", "verify", log, "--anchor", anchor, "--key", keys[1], "--algorithm", "hmac-sha256"
    )

    assert (foreign.code, confused.code) == (2, 2)
    assert "not signed with this key" in foreign.err
    assert "is a PEM file, and no secret" in confused.err


def _refusal(command: Command, log: Path, key: Path, *words: str) -> str:
    answer = command("trace", "anchor", "--log", log, "-o", log.parent / "a.json", "--key", key, *words)
    assert (answer.code, answer.out) == (2, "")
    assert not (log.parent / "a.json").exists()
    return answer.err


def test_keys_are_kept_as_keys(command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """A key that others may read, a short secret, another kind of key, and no key at all are refused."""
    private, public = keys
    short = tmp_path / "short"
    short.write_bytes(b"guess")
    short.chmod(0o600)
    public.chmod(0o600)
    other = tmp_path / "rsa.key"
    other.write_bytes(
        rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    other.chmod(0o600)

    assert "shorter than 32 bytes" in _refusal(command, log, short, "--algorithm", "hmac-sha256")
    assert "is a public one" in _refusal(command, log, public)
    assert "no Ed25519 private key" in _refusal(command, log, other)
    assert "not readable: no such file" in _refusal(command, log, tmp_path / "none")
    assert "is no file" in _refusal(command, log, tmp_path)
    private.chmod(0o640)
    assert "open to other users" in _refusal(command, log, private)


def test_a_public_key_that_others_may_write(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """Whoever can replace the key can replace the anchor."""
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", log, "-o", anchor, "--key", keys[0])
    keys[1].chmod(0o666)
    answer = command("trace", "verify", log, "--anchor", anchor, "--key", keys[1])

    assert answer.code == 2
    assert "may be written by other users" in answer.err


def test_an_anchor_is_not_written_over(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """The older one may be the only proof of what was there."""
    anchor = tmp_path / "anchor.json"
    anchor.write_text("kept")
    answer = command("trace", "anchor", "--log", log, "-o", anchor, "--key", keys[0])

    assert (answer.code, anchor.read_text()) == (2, "kept")
    assert "is there already" in answer.err


def test_a_log_that_an_older_anchor_disowns_is_not_signed(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """Its chain holds, since it was sealed anew; named beside it, the older anchor finds that."""
    words = ["trace", "anchor", "--log", log, "--key", keys[0], "-o"]
    command(*words, tmp_path / "1.json")
    edited(log, lambda lines: resealed(lines, 10, '"effect":"allow"', '"effect":"deny"'))
    answer = command(*words, tmp_path / "2.json", "--anchor", tmp_path / "1.json")

    assert (answer.code, answer.out) == (1, "")
    assert "line 24 altered" in answer.err
    assert not (tmp_path / "2.json").exists()


def test_a_log_that_does_not_hold_is_not_signed(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """An anchor of it would vouch for what somebody made of it."""
    edited(log, EDITS["changed"][0])
    answer = command("trace", "anchor", "--log", log, "-o", tmp_path / "a.json", "--key", keys[0])

    assert (answer.code, answer.out) == (1, "")
    assert "line 7 altered" in answer.err
    assert not (tmp_path / "a.json").exists()


@pytest.fixture
def rotated(command: Command, tmp_path: Path) -> Path:
    """A log over several files."""
    log = tmp_path / "rotated.jsonl"
    file = file_of(tmp_path / "runtime.yaml", {"log": str(log), "log_rotate_bytes": 65536})
    asked = file_of(tmp_path / "q.yaml", question())
    for _ in range(14):
        command("read", "--query", asked, *WHO, "--settings", file)
    assert len(closed_segments(log)) >= 2
    return log


def test_a_rotated_log_is_one_chain(command: Command, rotated: Path) -> None:
    """All its files are verified in order; a finding names the file, and a file that is gone is missed."""
    whole = command("trace", "verify", rotated)
    first, second = closed_segments(rotated)[:2]
    begins = json.loads(second.read_text().splitlines()[0])["seq"]
    edited(second, lambda lines: [lines[0], lines[1].replace(b"acme", b"acmE", 1), *lines[2:]])
    changed = command("trace", "verify", rotated)
    first.unlink()
    gone = command("trace", "verify", rotated)

    assert (whole.code, whole.document["lines"]) == (0, 14 * 12)
    (finding,) = changed.document["findings"]
    assert (finding["file"], finding["at"], finding["line"]) == (str(second), 2, begins + 1)
    assert told(gone)[: begins - 1] == [(n, "missing") for n in range(1, begins)]


def test_closed_files_may_be_archived(
    command: Command, rotated: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """An anchor knows where each file ends: what is left verifies by it, and what was moved by itself."""
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", rotated, "-o", anchor, "--key", keys[0])
    first, second = closed_segments(rotated)[:2]
    archive = tmp_path / "archive"
    archive.mkdir()
    moved = archive / second.name
    os.rename(first, archive / first.name)
    os.rename(second, moved)
    known = ["--anchor", anchor, "--key", keys[1]]
    left = command("trace", "verify", rotated, *known)
    alone = command("trace", "verify", moved, *known)
    without = command("trace", "verify", rotated)

    signing = ["trace", "anchor", "--log", rotated, "--key", keys[0], "-o"]
    assert command(*signing, tmp_path / "2.json").code == 1
    assert command(*signing, tmp_path / "2.json", "--anchor", anchor).code == 0
    assert (left.code, left.document["tail"]) == (0, "verified")
    assert left.document["chains"][0]["first"] > 1
    assert (alone.code, alone.document["tail"]) == (0, "verified")
    assert without.code == 1
    edited(moved, lambda lines: lines[:-1])
    assert command("trace", "verify", moved, *known).document["tail"] == "tail unverified"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no log is named that outlives a command"),
        (["trace.jsonl"], "is not sealed"),
        (["none.jsonl"], "not readable"),
        (["log.jsonl", "--anchor", "anchor.json"], "name both --anchor and --key"),
        (["log.jsonl", "--key", "anchor.pub"], "name both --anchor and --key"),
        (["log.jsonl", "--anchors", "q.yaml"], "the anchors name no line"),
        (["log.jsonl", "--anchor", "q.yaml", "--key", "anchor.pub"], "is no anchor"),
        (["log.jsonl", "--store", "sqlite:memory.db"], "not both"),
    ],
)
def test_what_cannot_be_verified_is_said(
    command: Command,
    log: Path,
    keys: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    said: str,
) -> None:
    """No log, another file, half of an anchor: the command ends with 2 and never claims that all is well."""
    monkeypatch.chdir(log.parent)
    answer = command("trace", "verify", *words)

    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_anchors_of_another_kind_of_log_prove_nothing(
    command: Command, log: Path, store: Path, tmp_path: Path
) -> None:
    """Events of a store are no anchors of a file."""
    (tmp_path / "trace.jsonl").unlink()
    command("read", "--query", tmp_path / "q.yaml", *WHO, "--store", f"sqlite:{store}", "--trace",
            tmp_path / "trace.jsonl")  # fmt: skip
    answer = command("trace", "verify", log, "--anchors", tmp_path / "trace.jsonl")

    assert answer.code == 2
    assert "about the chains reads, and this log has log" in answer.err


def test_an_anchor_says_nothing_twice(
    command: Command, log: Path, tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    """A field beside the signed one of the same name would be what a person reads."""
    anchor = tmp_path / "anchor.json"
    command("trace", "anchor", "--log", log, "-o", anchor, "--key", keys[0])
    anchor.write_text(anchor.read_text().replace('"anchored_at"', '"anchored_at": "1999", "anchored_at"'))
    answer = command("trace", "verify", log, "--anchor", anchor, "--key", keys[1])

    assert (answer.code, answer.out) == (2, "")
    assert "is no anchor" in answer.err


@pytest.mark.parametrize("notation", ["ssh", "der"])
def test_a_public_key_is_no_secret(command: Command, log: Path, tmp_path: Path, notation: str) -> None:
    """Whatever it is written in: everybody has it, and could sign with it."""
    public = ed25519.Ed25519PrivateKey.generate().public_key()
    encodings = {
        "ssh": (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
        "der": (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
    }
    key = tmp_path / "key"
    key.write_bytes(public.public_bytes(*encodings[notation]))
    key.chmod(0o600)

    assert "is a public key, and no secret" in _refusal(command, log, key, "--algorithm", "hmac-sha256")
