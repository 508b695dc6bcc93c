"""Building a bundle: the policies as one archive that OPA loads, the same bytes for the same policies.

What does not decide (tests, controls, an editor's files) stays out. The manifest repeats the digest, by which
a running OPA and this package can be seen to decide by the same policies.
"""

from __future__ import annotations

import io
import json
import os
import re
import struct
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.file_sync import sync_folder
from agent_runtime_ref.policy.bundle import bundle_of
from agent_runtime_ref.policy.bundle_files import MANIFEST, SIGNATURES, Files, decides, read_content
from agent_runtime_ref.policy.embedded import EmbeddedEngine
from agent_runtime_ref.policy.json_value import parsed
from agent_runtime_ref.policy.manifest import DIGEST, REGO_VERSION, UNVERSIONED, Manifest, manifest_of
from agent_runtime_ref.policy.signing import Signer, signatures_file

__all__ = ["BuiltBundle", "build_bundle", "write_bundle"]

_REVISION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,127}\Z")
_DERIVED = re.compile(r"\+[0-9a-f]{12}\Z")
# A gzip header by hand: no name, no time, no operating system, whichever Python writes it.
_GZIP = b"\x1f\x8b\x08\0\0\0\0\0\x02\xff"


@dataclass(frozen=True, slots=True)
class BuiltBundle:
    """An archive and what is in it."""

    archive: bytes
    digest: str
    revision: str
    roots: tuple[str, ...]
    names: tuple[str, ...]


def build_bundle(policies: Path, *, revision: str | None = None, signer: Signer | None = None) -> BuiltBundle:
    """Return the bundle of the policies in a folder or archive, signed where there is a signer.

    Without a `revision` it is the one of the policies' own manifest, with the beginning of the digest.

    Raises:
        BundleError: the policies cannot be used.
        UsageError: the revision is none, or the extra `signing` is missing.
    """
    if revision is not None and not _REVISION.match(revision):
        raise UsageError(
            f"revision `{revision}` must be 1 to 128 letters, digits or any of _ . : + -, the first no mark"
        )
    content = read_content(policies)
    bundle = bundle_of(content)
    EmbeddedEngine(bundle).close()  # what does not parse, or permits an empty question, is not shipped
    files = {name: raw for name, raw in content.files() if decides(name, edited=not content.is_archive)}
    document = parsed(MANIFEST, files.pop(MANIFEST)) if MANIFEST in files else None
    manifest = manifest_of(document)
    revision = revision or _derived(manifest.revision, bundle.digest)
    files[MANIFEST] = _manifest(manifest, revision, bundle.digest)
    if signer is not None:
        files[SIGNATURES] = signatures_file(_sorted(files), signer)
    packed = _sorted(files)
    return BuiltBundle(
        archive=_compressed(_tar(packed)),
        digest=bundle.digest,
        revision=revision,
        roots=tuple(sorted(manifest.roots)),
        names=tuple(name for name, _ in packed),
    )


def write_bundle(built: BuiltBundle, path: Path) -> None:
    """Write the archive to `path`, in one step: who reads it meanwhile sees the old one or the new one.

    Raises:
        UsageError: it cannot be written.
    """
    try:
        descriptor, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(built.archive)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)
        Path(name).replace(path)
        sync_folder(path.absolute().parent)
    except OSError as error:
        Path(name).unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> UsageError:
    reason = (error.strerror or "the file cannot be made").lower()
    return UsageError(f"bundle `{path}` not writable: {reason}; name another file with -o")


def _derived(revision: str, digest: str) -> str:
    """Return a revision that only these policies have."""
    mark = digest.partition(":")[2][:12]
    own = _DERIVED.sub("", revision)
    return mark if own == UNVERSIONED or not _REVISION.match(own) else f"{own}+{mark}"


def _manifest(manifest: Manifest, revision: str, digest: str) -> bytes:
    document = {
        "revision": revision,
        "roots": sorted(manifest.roots),
        "rego_version": REGO_VERSION,
        "metadata": {**manifest.metadata, DIGEST: digest},
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode() + b"\n"


def _sorted(files: dict[str, bytes]) -> Files:
    return tuple(sorted(files.items()))


def _tar(files: Files) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, raw in files:
            member = tarfile.TarInfo(name)  # owner 0, time 0
            member.mode = 0o600
            member.size = len(raw)
            archive.addfile(member, io.BytesIO(raw))
    return target.getvalue()


def _compressed(data: bytes) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    packed = deflate.compress(data) + deflate.flush()
    return _GZIP + packed + struct.pack("<II", zlib.crc32(data), len(data))
