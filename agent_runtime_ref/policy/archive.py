"""The files in a bundle archive, which anybody may have made: read in memory, bounded, never unpacked.

An archive is refused whole for one member that this reader and OPA could take for different things: a link, a
name that leaves the bundle, one that stands twice or differs from another by case alone.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import unicodedata
import zlib
from pathlib import PurePosixPath

from agent_runtime_ref.errors import BundleError

__all__ = ["ARCHIVE_BYTES_MAX", "FILES_MAX", "FILE_BYTES_MAX", "TOTAL_BYTES_MAX", "Files", "archive_files"]

Files = tuple[tuple[str, bytes], ...]  # path with forward slashes and bytes, sorted by path

FILE_BYTES_MAX = 8 * 1024 * 1024
FILES_MAX = 2_000
ARCHIVE_BYTES_MAX = 32 * 1024 * 1024
TOTAL_BYTES_MAX = 64 * 1024 * 1024
_END = bytes(2 * tarfile.BLOCKSIZE)
_GZIP = b"\x1f\x8b"
_NAME_MAX = 512
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\\:]")
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)
_MOVING = frozenset({"size", "hdrcharset"})
# What OPA goes by when it looks at a name; one that has it in other letters only looks as if it counted.
_LOADED = (".rego", "data.json", "data.yaml", "data.yml", ".manifest", ".signatures.json")


def archive_files(raw: bytes, source: str) -> Files:
    """Return every file of the .tar.gz in `raw`, under its path within the bundle.

    Raises:
        BundleError: reason bundle_missing (no archive, cut off or too large) or bundle_tampered (a member
            that no bundle has).
    """
    data = _decompressed(raw, source)
    found: dict[str, bytes] = {}
    folded: set[str] = set()
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for number, member in enumerate(archive):
                if number >= 2 * FILES_MAX:
                    raise BundleError("bundle_missing", f"{source}: more files than a bundle may have")
                if member.isdir():
                    continue
                name = _name(member, source)
                if _folded(name) in folded:
                    raise BundleError(
                        "bundle_tampered", f"`{name}` stands twice in {source}, or by case alone"
                    )
                folded.add(_folded(name))
                found[name] = _content(archive, member, name, source)
                if archive.pax_headers.keys() - {"comment"}:  # as of `git archive`; OPA passes over them all
                    raise BundleError("bundle_tampered", f"{source} has headers that are for all its files")
            end = data[archive.offset :]
    except tarfile.TarError as error:
        raise BundleError("bundle_missing", f"{source} is no tar archive, or is damaged") from error
    # tarfile takes a damaged header for the end, which would be half of a bundle.
    if not end.startswith(_END) or end.strip(b"\0"):
        raise BundleError("bundle_missing", f"{source} is cut off or damaged, or goes on after its end")
    if len(found) > FILES_MAX:
        raise BundleError("bundle_missing", f"{source}: more files than a bundle may have")
    return tuple(sorted(found.items()))


def _decompressed(raw: bytes, source: str) -> bytes:
    """Return the tar file; at most so much is ever held as a bundle may have."""
    if not raw.startswith(_GZIP):
        what = "is no bundle: neither a folder nor a .tar.gz archive" if raw else "is empty"
        raise BundleError("bundle_missing", f"{source} {what}")
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            data = file.read(TOTAL_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise BundleError(
            "bundle_missing", f"{source} is cut off or damaged, or goes on after its end"
        ) from error
    if len(data) > TOTAL_BYTES_MAX:
        raise BundleError("bundle_missing", f"{source}: more than {TOTAL_BYTES_MAX} bytes when unpacked")
    return data


def _name(member: tarfile.TarInfo, source: str) -> str:
    """Return the path of a member within the bundle; OPA writes a slash before it, tar perhaps `./`."""
    name = member.name.removeprefix("./").removeprefix("/")
    shown = ascii(name)[:_NAME_MAX]
    # Contiguous files are plain to Python and unknown to Go; some pax headers move what they describe.
    if member.type not in _PLAIN or member.issparse() or _MOVING & member.pax_headers.keys():
        raise BundleError("bundle_tampered", f"{shown} in {source} is no plain file")
    parts = name.split("/")
    if not name.isprintable() or len(name) > _NAME_MAX or _UNSAFE.search(name) or {"", ".", ".."} & {*parts}:
        raise BundleError("bundle_tampered", f"{shown} in {source} is no path within a bundle")
    base = parts[-1]
    if any(_folded(base).endswith(one) and not base.endswith(one) for one in _LOADED):
        raise BundleError("bundle_tampered", f"{shown} in {source} is not the name it looks like")
    return str(PurePosixPath(name))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, source: str) -> bytes:
    if member.size > FILE_BYTES_MAX:
        raise BundleError("bundle_missing", f"`{name}` in {source}: larger than {FILE_BYTES_MAX} bytes")
    file = archive.extractfile(member)
    assert file is not None  # a plain file has content
    return file.read()
