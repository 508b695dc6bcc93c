"""A signed anchor: how far each chain of a log had come at one instant, and with which hashes.

It is one JSON document that a person can read. The signature is over its other fields as JSON with sorted
keys, without blanks and in ASCII, behind a line that says what is signed, so that nothing else that the key
ever signs can pass for an anchor. Which algorithm may be used is said by whoever verifies, never by the file.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.places import is_position

if TYPE_CHECKING:
    from agent_runtime_ref.telemetry.verify import Account

ED25519, HMAC_SHA256 = "ed25519", "hmac-sha256"
ALGORITHMS = (ED25519, HMAC_SHA256)

_CONTEXT = b"agent-runtime-ref log anchor 1\n"
_SECRET_BYTES_MIN = 32
_KEY_BYTES_MAX = 64 * 1024
_FILE_BYTES_MAX = 16 * 1024 * 1024
_PEM = b"-----BEGIN"
# A public key in another notation: as a secret it would be one that everybody has.
_PUBLIC = (b"ssh-", b"ecdsa-", b"sk-ssh-", b"0*0\x05\x06\x03+ep")
_MISSING = "ed25519 needs the extra `signing`: pip install '.[signing]' in a checkout; or use hmac-sha256"


class Signer(Protocol):
    """Signs, or checks a signature, with one key of one algorithm."""

    def sign(self, text: bytes) -> bytes:
        """Return the signature of `text`."""

    def holds(self, signature: bytes, text: bytes) -> bool:
        """Tell whether this is the key's signature of `text`."""


@dataclass(frozen=True, slots=True)
class _Secret:
    value: bytes

    def sign(self, text: bytes) -> bytes:
        return hmac.digest(self.value, text, hashlib.sha256)

    def holds(self, signature: bytes, text: bytes) -> bool:
        return hmac.compare_digest(signature, self.sign(text))


@dataclass(frozen=True, slots=True)
class _Ed25519:
    public: Any
    private: Any = None  # None where it only verifies

    def sign(self, text: bytes) -> bytes:
        signature: bytes = self.private.sign(text)
        return signature

    def holds(self, signature: bytes, text: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.public.verify(signature, text)
        except InvalidSignature:
            return False
        return True


def signing_key(path: Path, algorithm: str) -> Signer:
    """Return the private key or the secret in a file that nobody but its owner may open.

    Raises:
        UsageError: the file is not readable, open to others, or no key for `algorithm`.
    """
    raw, mode = _key_bytes(path)
    if algorithm == HMAC_SHA256:
        _require_unread(path, mode)
        return _secret(raw, path)
    # What kind of key it is comes first: nobody need hide a public one, which cannot sign anyway.
    key = _pem(raw, path, private=True)
    _require_unread(path, mode)
    return _Ed25519(key.public_key(), key)


def verifying_key(path: Path, algorithm: str) -> Signer:
    """Return the public key, or the secret, by which anchors are verified.

    Raises:
        UsageError: the file is not readable, may be written by others, or is no key for `algorithm`.
    """
    raw, mode = _key_bytes(path)
    if algorithm == HMAC_SHA256:
        _require_unread(path, mode)
        return _secret(raw, path)
    return _Ed25519(_pem(raw, path, private=False))


def anchor_document(
    accounts: Sequence[Account], *, anchored_at: str, signer: Signer, algorithm: str
) -> dict[str, Any]:
    """Return the signed anchor of chains that were verified; the same chains and key give the same one."""
    document: dict[str, Any] = {
        "kind": "log_anchor",
        "version": 1,
        "anchored_at": anchored_at,
        "algorithm": algorithm,
        "chains": [_chain(account) for account in accounts],
    }
    signature = base64.b64encode(signer.sign(_signed(document))).decode()
    return document | {"signature": signature}


def anchored_positions(path: Path, signer: Signer, algorithm: str) -> list[Position]:
    """Return the positions in a signed anchor.

    Raises:
        UsageError: the file is no anchor, or it is not signed with this key.
    """
    document = _document(path)
    try:
        signature = base64.b64decode(document.pop("signature"), validate=True)
        genuine = document["algorithm"] == algorithm and signer.holds(signature, _signed(document))
    except (KeyError, TypeError, binascii.Error, ValueError):
        genuine = False
    if not genuine:
        raise UsageError(
            f"anchor `{path}` is not signed with this key as {algorithm}; nothing was verified by it"
        )
    try:
        positions = [
            Position(one["chain"], row["seq"], row["hash"])
            for one in document["chains"]
            for row in (*one["closed"], {"seq": one["seq"], "hash": one["hash"]})
        ]
    except (KeyError, TypeError) as error:
        raise UsageError(f"anchor `{path}` is signed, but by another version of this program") from error
    return [position for position in positions if is_position(position)]


def _chain(account: Account) -> dict[str, Any]:
    return {
        "chain": account.chain,
        "count": account.lines,
        "first_seq": account.first,
        "seq": account.last,
        "hash": account.last_hash,
        "closed": [{"seq": seq, "hash": digest} for seq, digest in account.closed],
    }


def _signed(document: dict[str, Any]) -> bytes:
    return _CONTEXT + json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode(
        "ascii"
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise UsageError(f"anchor `{path}` is no file; name the file that holds it")
        with path.open("rb") as file:
            raw = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"anchor `{path}` not readable: {(error.strerror or str(error)).lower()}") from error
    try:
        document = json.loads(raw, object_pairs_hook=_once) if len(raw) <= _FILE_BYTES_MAX else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or document.get("kind") != "log_anchor":
        raise UsageError(f"`{path}` is no anchor; make one with `agent-runtime-ref trace anchor`")
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; one that says something twice says one thing to a reader and another to a program."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name stands twice")
    return members


def _key_bytes(path: Path) -> tuple[bytes, int]:
    """Return what is in a key's file, and its mode.

    Raises:
        UsageError: it is not readable, no file, or may be written by others.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise UsageError(f"key `{path}` is no file; name the file that holds it")
        with path.open("rb") as file:
            raw = file.read(_KEY_BYTES_MAX + 1)
    except OSError as error:
        raise UsageError(f"key `{path}` not readable: {(error.strerror or str(error)).lower()}") from error
    if os.name == "posix" and mode & 0o022:
        raise UsageError(
            f"key `{path}` may be written by other users; take that away with `chmod go-w {path}`"
        )
    if len(raw) > _KEY_BYTES_MAX:
        raise UsageError(f"key `{path}` is larger than a key")
    return raw, mode


def _require_unread(path: Path, mode: int) -> None:
    """Return if nobody but its owner may open the file of a private key or a secret.

    Raises:
        UsageError: others may.
    """
    if os.name == "posix" and mode & 0o077:
        raise UsageError(f"key `{path}` is open to other users; take that away with `chmod 600 {path}`")


def _secret(raw: bytes, path: Path) -> _Secret:
    if _PEM in raw:
        raise UsageError(f"key `{path}` is a PEM file, and no secret; its algorithm is {ED25519}")
    if raw.lstrip().startswith(_PUBLIC):
        raise UsageError(f"key `{path}` is a public key, and no secret")
    if len(raw) < _SECRET_BYTES_MIN:
        raise UsageError(f"secret `{path}` is shorter than {_SECRET_BYTES_MIN} bytes")
    return _Secret(raw)


def _pem(raw: bytes, path: Path, *, private: bool) -> Any:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError as error:
        raise UsageError(_MISSING) from error
    what = f"no Ed25519 {'private' if private else 'public'} key in PEM without a password"
    if not private and b"PRIVATE KEY-----" in raw:
        what = "a private one; give its public part"
    elif private and b"-----BEGIN PUBLIC KEY-----" in raw:
        what = "a public one, and no private key to sign with"
    try:
        key: Any = (
            serialization.load_pem_private_key(raw, password=None)
            if private
            else serialization.load_pem_public_key(raw)
        )
    except Exception as error:  # whatever the library makes of bytes that are no key
        raise UsageError(f"key `{path}` is {what}") from error
    if not isinstance(key, (ed25519.Ed25519PrivateKey, ed25519.Ed25519PublicKey)):
        raise UsageError(f"key `{path}` is {what}")
    return key
