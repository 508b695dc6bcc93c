"""Policies by the name that a command is given: a folder, a bundle archive, or a git revision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from agent_runtime_ref.errors import BundleError, EngineFailureError, UsageError
from agent_runtime_ref.policy.bundle import Bundle, bundle_of
from agent_runtime_ref.policy.bundle_files import MANIFEST, Content, decides, read_content
from agent_runtime_ref.policy.controls import CONTROLS, Control, NoControls, read_controls
from agent_runtime_ref.policy.json_value import decoded, parsed
from agent_runtime_ref.policy.manifest import manifest_of
from agent_runtime_ref.replay.git import files_of_revision

__all__ = ["Policies", "policies_at"]

_DATA = "data.json"


@dataclass(frozen=True, slots=True)
class Policies:
    """The files of a bundle, whether or not this version could decide by them, and its controls."""

    name: str
    content: Content
    files: Mapping[str, bytes]  # those that decide
    controls: tuple[Control, ...] | None  # None: what was named brings no list of controls

    def bundle(self) -> Bundle:
        """Return the bundle, ready for an engine.

        Raises:
            BundleError: this version cannot decide by it.
        """
        return bundle_of(self.content)

    @property
    def fault(self) -> str | None:
        """Why no decision could be made by these policies; None where one could."""
        from agent_runtime_ref.policy.embedded import EmbeddedEngine

        try:
            EmbeddedEngine(self.bundle()).close()
        except (BundleError, EngineFailureError) as error:
            return str(error)
        return None

    @property
    def digest(self) -> str | None:
        """The digest of the bundle; None of one that this version cannot decide by."""
        try:
            return self.bundle().digest
        except BundleError:
            return None

    @property
    def revision(self) -> str | None:
        """What the manifest calls this version of the policies."""
        raw = self.files.get(MANIFEST)
        manifest = {} if raw is None else parsed(MANIFEST, raw)
        revision = manifest.get("revision") if isinstance(manifest, dict) else None
        return revision if isinstance(revision, str) and revision else None

    @property
    def deciding(self) -> Any:
        """What the manifest says that decides, with what holds where it says nothing."""
        raw = self.files.get(MANIFEST)
        document = None if raw is None else parsed(MANIFEST, raw)
        try:
            return {"roots": sorted(manifest_of(document).roots)}
        except BundleError:  # of another version, or malformed: as it stands
            return document

    @property
    def modules(self) -> Iterator[tuple[str, str]]:
        """Path and text of each Rego module."""
        for path, raw in sorted(self.files.items()):
            if path.endswith(".rego"):
                yield path, decoded(path, raw)

    @property
    def data(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        """Each data file as the place of its value and the value."""
        for path, raw in sorted(self.files.items()):
            if PurePosixPath(path).name == _DATA:
                yield PurePosixPath(path).parent.parts, parsed(path, raw)


def policies_at(name: str) -> Policies:
    """Return the policies called `name`; a path that exists is taken before a revision of that name.

    Raises:
        UsageError: there is nothing of that name, or its controls cannot be read.
        BundleError: what is there are no files of a bundle.
    """
    path = Path(name)
    if name and "\0" not in name and path.exists():
        content = read_content(path)
        listed = path / CONTROLS
        raw = listed.read_bytes() if not content.is_archive and listed.is_file() else None
    else:
        content, raw = _of_revision(name)
    found = content.files()
    if content.is_archive:
        raw = next((one for path_, one in found if path_.endswith(CONTROLS)), None)
    files = {path_: one for path_, one in found if _is_policy(path_)}
    if not any(path_.endswith(".rego") for path_ in files):
        raise BundleError("bundle_missing", f"no Rego module in `{name}`")
    return Policies(name, content, files, None if raw is None else _controls(name, raw))


def _of_revision(name: str) -> tuple[Content, bytes | None]:
    files = files_of_revision(name, _is_wanted)
    if len(files) == 1 and not files[0][0]:
        return Content(Path(name), files, is_archive=True), None
    return Content(Path(name), files, is_archive=False), dict(files).get(CONTROLS)


def _is_wanted(path: str) -> bool:
    """Tell whether a file of a folder is read: what decides, and the list of controls."""
    return path == CONTROLS or decides(path, edited=True)


def _is_policy(path: str) -> bool:
    """Tell whether a file is a part of the policies; tests and hidden files are not."""
    parts = PurePosixPath(path.lstrip("/")).parts
    if any(part.startswith(".") for part in parts):
        return parts == (MANIFEST,)
    return parts[-1] == _DATA or (parts[-1].endswith(".rego") and not parts[-1].endswith("_test.rego"))


def _controls(name: str, raw: bytes) -> tuple[Control, ...]:
    with TemporaryDirectory(prefix="policies-") as folder:
        path = Path(folder, CONTROLS)
        path.parent.mkdir()
        path.write_bytes(raw)
        found = read_controls(Path(folder))
    if isinstance(found, NoControls):
        raise UsageError(f"controls of `{name}` not readable: {found}")
    return found
