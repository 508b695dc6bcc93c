"""`trace anchor`: what an anchor vouches for, and what it does not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from tests.acceptance.command import WHO, Command
from tests.acceptance.verifying.edits import EDITS, edited, resealed, told, written_keys


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
