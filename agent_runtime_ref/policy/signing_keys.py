"""Keys that sign bundles and keys that verify them: read from files, and each good for its algorithms only.

What a signature says of its own algorithm is never believed. A public key in a file permits the algorithms of
its kind; a secret permits one only where the algorithm was named, since text that was meant as a public key
would otherwise be a secret that everybody knows.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from jwt.api_jws import PyJWS

__all__ = ["SIGNING_ALGORITHMS", "Key", "jws_of", "signing_key", "verifying_key"]

_SECRET = {"HS256": 32, "HS384": 48, "HS512": 64}  # with the least bytes that RFC 7518 asks of a secret
_RSA = ("RS256", "RS384", "RS512")
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
# PS256 and its like salt each signature, so that the same policies would never be the same bytes twice.
SIGNING_ALGORITHMS = (*_SECRET, *_RSA, *_CURVES.values())
_SALTED = ("PS256", "PS384", "PS512")

_FILE_BYTES_MAX = 64 * 1024
_RSA_BITS_MIN = 2048
_PEM = b"-----BEGIN"


@dataclass(frozen=True, slots=True)
class Key:
    """A key and the algorithms it may be used with."""

    value: Any  # bytes of a secret, or a key of `cryptography`
    algorithms: tuple[str, ...]
    notes: tuple[str, ...] = ()  # what whoever signs with it should know


def signing_key(path: Path, algorithm: str) -> Key:
    """Return the private key or secret in a file, for `algorithm`.

    Raises:
        UsageError: the file is not readable, or is no key of that kind.
    """
    raw = _read(path)
    if algorithm in _SECRET:
        return Key(_secret(raw, path), (algorithm,), tuple(_notes(raw, path, _SECRET[algorithm])))
    serialization = _cryptography()
    try:
        key = serialization.load_pem_private_key(raw, password=None)
    except TypeError as error:
        raise UsageError(f"key `{path}` is encrypted; give one without a password") from error
    except Exception as error:
        raise UsageError(f"key `{path}` is no private key in PEM; `{algorithm}` needs one") from error
    if algorithm not in _algorithms_of(key, path):
        raise UsageError(f"key `{path}` is of another kind than `{algorithm}` needs")
    return Key(key, (algorithm,))


def verifying_key(path: Path, algorithm: str | None) -> Key:
    """Return the public key in a PEM file, or the secret where `algorithm` is one with a secret.

    Raises:
        UsageError: the file is not readable, or holds no such key.
    """
    raw = _read(path)
    if algorithm is not None and algorithm in _SECRET:
        if len(raw) < _SECRET[algorithm]:
            raise UsageError(f"secret `{path}` is shorter than {_SECRET[algorithm]} bytes and can be guessed")
        return Key(_secret(raw, path), (algorithm,))
    if _PEM not in raw:
        raise UsageError(
            f"verification key `{path}` is no public key in PEM; "
            "where it is a secret, name its algorithm, such as HS256"
        )
    key = _public(raw, path)
    permitted = _algorithms_of(key, path)
    if algorithm is not None and algorithm not in permitted:
        raise UsageError(f"verification key `{path}` is of another kind than `{algorithm}` needs")
    return Key(key, permitted if algorithm is None else (algorithm,))


def _public(raw: bytes, path: Path) -> Any:
    serialization = _cryptography()
    try:
        if b"CERTIFICATE-----" in raw:
            from cryptography.x509 import load_pem_x509_certificate

            return load_pem_x509_certificate(raw).public_key()
        return serialization.load_pem_public_key(raw)
    except Exception as error:
        what = "a private one; give its public part" if b"PRIVATE KEY-----" in raw else "no public key in PEM"
        raise UsageError(f"verification key `{path}` is {what}") from error


def _algorithms_of(key: Any, path: Path) -> tuple[str, ...]:
    """Return the algorithms a key may be used with.

    Raises:
        UsageError: it is of a kind that bundles are not signed with, or too short.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    if isinstance(key, (rsa.RSAPublicKey, rsa.RSAPrivateKey)):
        if key.key_size < _RSA_BITS_MIN:
            raise UsageError(f"key `{path}` is shorter than {_RSA_BITS_MIN} bits")
        return (*_RSA, *_SALTED)
    if isinstance(key, (ec.EllipticCurvePublicKey, ec.EllipticCurvePrivateKey)) and key.curve.name in _CURVES:
        return (_CURVES[key.curve.name],)
    raise UsageError(
        f"key `{path}` is of a kind that OPA cannot verify; use RSA, or a P-256, P-384 or P-521 key"
    )


def _secret(raw: bytes, path: Path) -> bytes:
    """Return a secret, which is the file as it is: OPA, too, takes a line end for a part of it."""
    if _PEM in raw:
        raise UsageError(f"key `{path}` is a PEM file, and no secret; name the algorithm that belongs to it")
    if not raw:
        raise UsageError(f"secret `{path}` is empty")
    return raw


def _notes(raw: bytes, path: Path, bytes_min: int) -> Iterator[str]:
    """Yield what is wrong with a secret that OPA would take all the same."""
    if len(raw) < bytes_min:
        yield (
            f"secret `{path}` is shorter than {bytes_min} bytes: whoever has the bundle can guess it, "
            "and it is not accepted as a verification key here"
        )
    if raw != raw.strip():
        yield f"secret `{path}` begins or ends with a blank or a line end, which is a part of the key"


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"key `{path}` is no file; name the file that holds it")
        with path.open("rb") as file:
            raw = file.read(_FILE_BYTES_MAX + 1)
    except OSError as error:
        reason = (error.strerror or "cannot be opened").lower()
        raise UsageError(f"key `{path}` not readable: {reason}; keys are read from files only") from error
    if len(raw) > _FILE_BYTES_MAX:
        raise UsageError(f"key `{path}` is larger than a key")
    return raw


def jws_of(algorithms: tuple[str, ...]) -> PyJWS:
    """Return what makes and reads signatures of these algorithms, and of no other.

    Raises:
        UsageError: the extra `signing` is not installed.
    """
    try:
        from jwt.api_jws import PyJWS
    except ImportError as error:
        raise _missing() from error

    jws = PyJWS(algorithms=list(algorithms))
    for name in algorithms:
        if name in _CURVES.values():
            jws.unregister_algorithm(name)
            jws.register_algorithm(name, _deterministic(name))
    return jws


def _deterministic(name: str) -> Any:
    """Return ECDSA as RFC 6979 has it: the same key and the same text give the same signature."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from jwt.algorithms import ECAlgorithm
    from jwt.utils import der_to_raw_signature

    class Deterministic(ECAlgorithm):
        """Signs without a random number."""

        def sign(self, msg: bytes, key: Any) -> bytes:
            """Return the signature of `msg`, as JWS writes it."""
            signature = key.sign(msg, ec.ECDSA(self.hash_alg(), deterministic_signing=True))
            return der_to_raw_signature(signature, key.curve)

    return Deterministic({"2": ECAlgorithm.SHA256, "3": ECAlgorithm.SHA384, "5": ECAlgorithm.SHA512}[name[2]])


def _cryptography() -> ModuleType:
    try:
        from cryptography.hazmat.primitives import serialization
    except ImportError as error:
        raise _missing() from error
    return serialization


def _missing() -> UsageError:
    return UsageError("signed bundles need the extra `signing`: pip install '.[signing]' in a checkout")
