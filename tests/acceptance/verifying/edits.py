"""What somebody does who can write a log, and what the command then says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from agent_runtime_ref.telemetry import chain
from tests.acceptance.command import Answer

Lines = list[bytes]


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
