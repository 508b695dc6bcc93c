"""Keys that are made for a test run, and archives that nobody should believe."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

SECRET = b"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
_CURVES = {"ES256": ec.SECP256R1(), "ES384": ec.SECP384R1(), "ES512": ec.SECP521R1()}

Member = tuple[str, bytes] | tarfile.TarInfo


@cache
def _private(kind: str, number: int) -> rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey:
    """Return a key that lasts for this run; another number is another key."""
    if kind in _CURVES:
        return ec.generate_private_key(_CURVES[kind])
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def key_files(folder: Path, algorithm: str, *, number: int = 0) -> tuple[Path, Path]:
    """Return the files of the key that signs with `algorithm` and of the one that verifies it."""
    folder.mkdir(parents=True, exist_ok=True)
    if algorithm.startswith("HS"):
        path = folder / f"secret-{number}"
        path.write_bytes(SECRET if number == 0 else SECRET[::-1])
        return path, path
    key = _private(algorithm if algorithm in _CURVES else "RSA", number)
    private, public = folder / f"{algorithm}-{number}.pem", folder / f"{algorithm}-{number}.pub"
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    return private, public


def unpacked(archive: bytes) -> dict[str, bytes]:
    """Return the files of an archive by name."""
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def packed(members: Mapping[str, bytes] | Sequence[Member]) -> bytes:
    """Return an archive of these members, whatever they are."""
    rows: Sequence[Member] = list(members.items()) if isinstance(members, Mapping) else members
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for row in rows:
            if isinstance(row, tarfile.TarInfo):
                tar.addfile(row)
                continue
            member = tarfile.TarInfo(row[0])
            member.size = len(row[1])
            tar.addfile(member, io.BytesIO(row[1]))
    return gzip.compress(target.getvalue(), mtime=0)
