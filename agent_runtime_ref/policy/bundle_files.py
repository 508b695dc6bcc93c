"""The files of a bundle that decide: manifest, Rego modules, data; from a folder or an archive."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path, PurePosixPath

from agent_runtime_ref.errors import BundleError

__all__ = ["Files", "read_files", "read_tests"]

Files = tuple[tuple[str, bytes], ...]  # path with forward slashes and bytes, sorted by path

FILE_BYTES_MAX = 8 * 1024 * 1024
FILES_MAX = 2_000


def read_files(location: Path) -> Files:
    """Return the files of the bundle at `location` that count.

    Raises:
        BundleError: reason bundle_missing: nothing readable there, or more than a bundle may hold.
    """
    try:
        found = _from_folder(location) if location.is_dir() else _from_archive(location)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise BundleError("bundle_missing", f"{location}: {error}") from error
    return tuple(sorted(found.items()))


def read_tests(location: Path) -> tuple[tuple[str, str], ...]:
    """Return path and text of the Rego tests in a folder, sorted; an archive brings none."""
    if not location.is_dir():
        return ()
    paths = sorted(location.rglob("*_test.rego"))
    return tuple((path.relative_to(location).as_posix(), path.read_text(encoding="utf-8")) for path in paths)


def _counts(name: str) -> bool:
    """Say whether a file decides; refuse those that an OPA would load and this loader would not."""
    base = PurePosixPath(name).name
    if base in {"data.yaml", "data.yml"}:
        raise BundleError("settings_malformed", f"{name}: write data as data.json")
    return (
        name == ".manifest"
        or base == "data.json"
        or (base.endswith(".rego") and not base.endswith("_test.rego"))
    )


def _keep(found: dict[str, bytes], name: str, raw: bytes) -> None:
    if len(raw) > FILE_BYTES_MAX or len(found) >= FILES_MAX:
        raise BundleError("bundle_missing", f"{name}: larger than a bundle may be")
    if name in found:
        raise BundleError("bundle_tampered", f"{name} stands twice in the archive")
    found[name] = raw


def _from_folder(location: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for folder, folders, names in os.walk(location):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            relative = path.relative_to(location).as_posix()
            if _counts(relative):
                _keep(found, relative, path.read_bytes())
    return found


def _from_archive(location: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(location, "r:gz") as archive:
        for member in archive:
            name = member.name.removeprefix("./").lstrip("/")
            if not member.isfile() or not _counts(name):
                continue
            if member.size > FILE_BYTES_MAX:
                raise BundleError("bundle_missing", f"{name}: larger than a bundle may be")
            content = archive.extractfile(member)
            assert content is not None  # a plain file has content
            _keep(found, name, content.read())
    return found
