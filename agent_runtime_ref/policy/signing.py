"""Signatures of bundles, as OPA makes and checks them: one JWT over the name and hash of each file.

A Rego module is hashed as it is. JSON (data and the manifest) is hashed by its value: keys in order, no
blanks, numbers as they are written.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle_files import MANIFEST, SIGNATURES, Files
from agent_runtime_ref.policy.json_value import parsed
from agent_runtime_ref.policy.signing_keys import Key, jws_of, verifying_key

__all__ = ["KEY_ID", "Signer", "Verification", "signatures_file", "verify"]

KEY_ID = "default"  # the id that OPA gives a key that nobody named
_OWN_PLUGINS = (None, "", "_default")  # as OPA names its own way to sign
_HASHES = {"SHA-256": hashlib.sha256, "SHA-384": hashlib.sha384, "SHA-512": hashlib.sha512}


@dataclass(frozen=True, slots=True)
class Signer:
    """Who signs: a private key or secret, the id under which OPA knows it, and what for."""

    key: Key
    keyid: str = KEY_ID
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a signature is held to; the file is read anew each time, so that a key can be replaced."""

    key_file: Path
    algorithm: str | None = None  # None: whatever a public key of this kind may be used with
    keyid: str | None = None  # None: under whatever id
    scope: str = ""  # as with OPA: no scope permits only a signature without one


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def signatures_file(files: Files, signer: Signer) -> bytes:
    """Return the `.signatures.json` of these files; for the same files and key the same bytes."""
    (algorithm,) = signer.key.algorithms
    rows = [
        {"name": name, "hash": _hash(name, raw, "SHA-256"), "algorithm": "SHA-256"} for name, raw in files
    ]
    payload: dict[str, Any] = {"files": rows, "keyid": signer.keyid}
    if signer.scope:
        payload["scope"] = signer.scope
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of short secrets; `Key.notes` says so in our words
        token = jws_of(signer.key.algorithms).encode(
            json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode(),
            signer.key.value,
            algorithm=algorithm,
            headers={"kid": signer.keyid},
            sort_headers=True,
        )
    return json.dumps({"signatures": [token]}, indent=1).encode() + b"\n"


def verify(files: Files, verification: Verification, source: str) -> None:
    """Return if the signature holds for these files, and for all of them.

    Raises:
        BundleError: reason bundle_tampered; nothing of the bundle may be used.
        UsageError: the key cannot be read.
    """
    key = verifying_key(verification.key_file, verification.algorithm)
    found = dict(files)
    raw = found.pop(SIGNATURES, None)
    if raw is None:
        raise _refused(source, f"it is not signed ({SIGNATURES} missing), and a verification key is set")
    header, payload = _opened(raw, key, source)
    named = header.get("kid") or payload.get("keyid")
    if verification.keyid is not None and named != verification.keyid:
        raise _refused(source, f"it is signed under another key id than `{verification.keyid}`")
    if (payload.get("scope") or "") != verification.scope:
        raise _refused(source, f"its signature is of another scope than `{verification.scope}`")
    signed = _signed(payload, source)
    if missing := sorted(signed.keys() - found.keys()):
        raise _refused(source, f"signed file `{missing[0]}` is missing")
    if extra := sorted(found.keys() - signed.keys()):
        raise _refused(source, f"file `{extra[0]}` is not signed")
    for name, (algorithm, digest) in signed.items():
        if _hash(name, found[name], algorithm) != digest:
            raise _refused(source, f"file `{name}` is not the one that was signed")


def _opened(raw: bytes, key: Key, source: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return header and payload of the signature, once it has been checked."""
    document = parsed(SIGNATURES, raw)
    tokens = document.get("signatures") if isinstance(document, dict) else None
    if not isinstance(tokens, list) or len(tokens) != 1 or not isinstance(tokens[0], str):
        raise _refused(source, f"{SIGNATURES} must hold one signature")
    if document.get("plugin") not in _OWN_PLUGINS:
        raise _refused(source, f"{SIGNATURES} asks for a plugin of OPA")
    from jwt import PyJWTError

    try:
        opened = jws_of(key.algorithms).decode_complete(tokens[0], key.value, algorithms=list(key.algorithms))
    except (PyJWTError, ValueError, TypeError) as error:
        raise _refused(source, f"its signature does not hold: {error}") from error
    payload = parsed(f"{SIGNATURES} payload", opened["payload"])
    if not isinstance(payload, dict):
        raise _refused(source, "its signature is about nothing")
    return opened["header"], payload


def _signed(payload: Mapping[str, Any], source: str) -> dict[str, tuple[str, str]]:
    """Return hash algorithm and hash of each signed file."""
    rows = payload.get("files")
    signed: dict[str, tuple[str, str]] = {}
    for row in rows if isinstance(rows, list) else [None]:
        parts = row if isinstance(row, dict) else {}
        name, algorithm, digest = (parts.get(part) for part in ("name", "algorithm", "hash"))
        if not (isinstance(name, str) and isinstance(algorithm, str) and isinstance(digest, str)):
            raise _refused(source, "its signature lists a file without name, algorithm or hash")
        if algorithm not in _HASHES:
            raise _refused(source, f"its signature lists `{name}` with a hash that is not strong enough")
        if signed.setdefault(name, (algorithm, digest.lower())) != (algorithm, digest.lower()):
            raise _refused(source, f"its signature lists `{name}` twice")
    return signed


def _hash(name: str, raw: bytes, algorithm: str) -> str:
    base = PurePosixPath(name).name
    if base == "data.json" or base == MANIFEST:
        raw = _by_value(parsed(name, raw, parse_int=_Number, parse_float=_Number)).encode()
    return _HASHES[algorithm](raw).hexdigest()


def _by_value(value: Any) -> str:
    """Return JSON as Go writes it with sorted keys, so that it hashes alike."""
    if isinstance(value, _Number):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{_by_value(key)}:{_by_value(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_by_value, value)) + "]"
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _refused(source: str, problem: str) -> BundleError:
    return BundleError("bundle_tampered", f"{source}: {problem}")
