"""The files of a bundle: all there are, and which of them decide; from a folder or an archive."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.archive import (
    ARCHIVE_BYTES_MAX,
    FILE_BYTES_MAX,
    FILES_MAX,
    TOTAL_BYTES_MAX,
    Files,
    archive_files,
)
from agent_runtime_ref.policy.json_value import decoded
from agent_runtime_ref.policy.metadata import package_of

__all__ = [
    "MANIFEST",
    "SIGNATURES",
    "Content",
    "Files",
    "check_tests",
    "decides",
    "read_content",
    "read_tests",
]

MANIFEST = ".manifest"
SIGNATURES = ".signatures.json"
_TEST = "_test.rego"
# What an OPA would load and this loader would not; both must decide by the same.
_OTHER_BUNDLES = frozenset({"patch.json", "policy.wasm", "plan.json", "plan.pb", ".manifest.pb"})


@dataclass(frozen=True, slots=True)
class Content:
    """What stood at a place when it was read: the files of a folder, or one archive."""

    location: Path
    raw: Files  # of an archive: itself, under an empty name
    is_archive: bool

    @property
    def mark(self) -> str:
        """What tells this content from another one; unlike a bundle's digest it needs nothing unpacked."""
        total = hashlib.sha256()
        for name, raw in self.raw:
            total.update(f"{name}\0{hashlib.sha256(raw).hexdigest()}\n".encode("utf-8", "surrogateescape"))
        return total.hexdigest()

    def files(self) -> Files:
        """Return the files, with those that do not decide.

        Raises:
            BundleError: the archive is none, or has what no bundle has.
        """
        return archive_files(self.raw[0][1], str(self.location)) if self.is_archive else self.raw


def read_content(location: Path, *, whole: bool = False) -> Content:
    """Return what is at `location`, read once; of a folder only what decides, unless the `whole` is wanted.

    Raises:
        BundleError: reason bundle_missing: nothing readable there, or more than a bundle may hold.
    """
    try:
        if location.is_dir():
            return Content(location, tuple(sorted(_from_folder(location, whole).items())), is_archive=False)
        return Content(location, (("", _read(location, ARCHIVE_BYTES_MAX)),), is_archive=True)
    except OSError as error:
        raise BundleError(
            "bundle_missing", f"{error.filename or location}: {error.strerror or error}"
        ) from error


def read_tests(location: Path) -> tuple[tuple[str, str], ...]:
    """Return path and text of the Rego tests in a folder, sorted; an archive brings none.

    Raises:
        BundleError: one cannot be read, is no text, is larger than a file of a bundle may be, or adds to the
            package of a rule, so that other rules would be tested than are enforced.
    """
    if not location.is_dir():
        return ()
    root = location.resolve()
    names = [name for name in _names(root, whole=False) if name.endswith(_TEST)]
    found = []
    for name in sorted(one for one in names if not _is_hidden(PurePosixPath(one))):
        if not _is_text(name):
            raise BundleError("settings_malformed", f"{name!a}: a name must be text; rename the file")
        try:
            raw = _read(root / name, FILE_BYTES_MAX)
        except OSError as error:
            raise BundleError("bundle_missing", f"{name}: {error.strerror or error}") from error
        found.append((name, raw))
    check_tests(found)
    return tuple((name, decoded(name, raw)) for name, raw in found)


def check_tests(found: Iterable[tuple[str, bytes]]) -> None:
    """Return if nothing but tests is called one: an OPA would load it, and this loader does not.

    Raises:
        BundleError: reason settings_malformed.
    """
    for name, raw in found:
        if name.endswith(_TEST) and not package_of(decoded(name, raw)).endswith("_test"):
            raise BundleError("settings_malformed", f"{name}: the package of a test must end in `_test`")


def decides(name: str, *, edited: bool) -> bool:
    """Say whether a file decides; refuse those that an OPA would load and this loader would not.

    In a folder that somebody may be editing (`edited`), hidden files are the editor's.

    Raises:
        BundleError: an OPA would decide by this file, and this loader could not.
    """
    path = PurePosixPath(name)
    base = path.name
    if base in {"data.yaml", "data.yml"}:
        raise BundleError("settings_malformed", f"{name}: write data as data.json")
    own = name in {MANIFEST, SIGNATURES}
    if edited and not own and _is_hidden(path):
        return False
    loaded = own or base == "data.json" or base.endswith(".rego")
    if base in _OTHER_BUNDLES or (base.endswith((MANIFEST, SIGNATURES)) and not own):
        raise BundleError("settings_malformed", f"{name} cannot be part of a bundle; take it out")
    return loaded and name != SIGNATURES and not base.endswith(_TEST)


def _from_folder(location: Path, whole: bool) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    # Where the place is a link that is set anew meanwhile, all is read of where it led at first.
    root = location.resolve()
    for relative in _names(root, whole):
        if not (whole or decides(relative, edited=True)):
            continue
        if not _is_text(relative):
            raise BundleError("settings_malformed", f"{relative!a}: a name must be text; rename the file")
        found[relative] = _read(root / relative, FILE_BYTES_MAX)
        total += len(found[relative])
        if len(found) > FILES_MAX or total > TOTAL_BYTES_MAX:
            raise BundleError("bundle_missing", f"{location}: more than a bundle may hold")
    return found


def _names(root: Path, whole: bool) -> Iterator[str]:
    """Yield the path of every file below `root`.

    What is passed over may hold a rule that denies. So a folder that cannot be listed, or that is a link, is
    refused, unless it is hidden and nobody asked for the `whole`.

    Raises:
        BundleError: reason bundle_missing.
    """
    unlisted: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=unlisted.append):
        folders.sort()
        below = Path(folder).relative_to(root)
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in linked:
            if whole or not _is_hidden(below / name):
                place = Path(folder, name)
                raise BundleError("bundle_missing", f"{place} is a link to a folder; put the folder there")
        yield from ((below / name).as_posix() for name in sorted(names))
    for error in unlisted:
        if whole or not _is_hidden(Path(error.filename).relative_to(root)):
            raise BundleError("bundle_missing", f"{error.filename}: {error.strerror or error}") from error


def _is_hidden(path: PurePosixPath | Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read(path: Path, bytes_max: int) -> bytes:
    """Return the bytes of a plain file, or of what a link to one leads to."""
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise BundleError("bundle_missing", f"{path} is no file")
        raw = file.read(bytes_max + 1)
    if len(raw) > bytes_max:
        raise BundleError("bundle_missing", f"{path}: larger than {bytes_max} bytes")
    return raw


def _without_waiting(path: str, flags: int) -> int:
    """Open without waiting for the other end of a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
