"""A policy bundle: Rego modules, settings and identity, read once and then fixed.

What was loaded stays what is enforced: nothing is read from the folder again, so a change on disk takes
effect as another bundle or not at all, and a decision names the digest of the text that made it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.errors import BundleError, DocumentError
from agent_runtime_ref.policy.bundle_files import MANIFEST, Content, Files, check_tests, decides, read_content
from agent_runtime_ref.policy.engine import BundleIdentity
from agent_runtime_ref.policy.json_value import decoded, parsed
from agent_runtime_ref.policy.manifest import DIGEST, UNVERSIONED, Manifest, manifest_of
from agent_runtime_ref.policy.metadata import RuleInfo, rules_of
from agent_runtime_ref.policy.settings_check import check_references, line_of
from agent_runtime_ref.resources import policies_path

if TYPE_CHECKING:
    from agent_runtime_ref.policy.signing import Verification

__all__ = ["UNVERSIONED", "Bundle", "bundle_of", "load_bundle"]

_SETTINGS = "memory/settings/data.json"
_ENTRYPOINT = re.compile(r"^decision\b", re.MULTILINE)


@dataclass(frozen=True)
class Bundle:
    """Policies as loaded; immutable, so that threads may share it."""

    modules: tuple[tuple[str, str], ...]  # path and text, sorted, tests left out
    data_json: str
    digest: str
    revision: str
    settings: Mapping[str, Any]
    detectors: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""

    @property
    def identity(self) -> BundleIdentity:
        """Which policies these are."""
        return BundleIdentity(self.digest, self.revision)

    @cached_property
    def rules(self) -> tuple[RuleInfo, ...]:
        """The rules as their METADATA describes them; read at the first use, since YAML is slow."""
        return tuple(rule for path, text in self.modules for rule in rules_of(path, text))


def load_bundle(
    path: Path | str | None = None,
    *,
    expected_digest: str | None = None,
    verification: Verification | None = None,
) -> Bundle:
    """Return the bundle in a folder or a .tar.gz archive; without a path, the bundled one.

    With `verification` it must be signed, and nothing of it is looked at before the signature holds.

    Raises:
        BundleError: reason bundle_missing (nothing there to decide with), bundle_tampered (another digest
            than expected, or a signature that does not hold) or settings_malformed (data or manifest not
            usable).
        ResourceNotFoundError: the path does not exist.
        UsageError: the verification key cannot be read.
    """
    content = read_content(policies_path(path), whole=verification is not None)
    return bundle_of(content, expected_digest=expected_digest, verification=verification)


def bundle_of(
    content: Content, *, expected_digest: str | None = None, verification: Verification | None = None
) -> Bundle:
    """Return the bundle that `content` holds.

    Raises:
        BundleError: as with `load_bundle`.
        UsageError: the verification key cannot be read.
    """
    try:
        return _bundle(content, expected_digest, verification)
    except RecursionError as error:
        raise BundleError("settings_malformed", f"{content.location}: data nested too deeply") from error


def _bundle(content: Content, expected_digest: str | None, verification: Verification | None) -> Bundle:
    location = str(content.location)
    found = content.files()
    if verification is not None:
        from agent_runtime_ref.policy.signing import verify

        verify(found, verification, location)
    edited = not content.is_archive and verification is None
    files = tuple((name, raw) for name, raw in found if decides(name, edited=edited))
    check_tests(found)
    documents = {name: parsed(name, raw) for name, raw in files if not name.endswith(".rego")}
    manifest = manifest_of(documents.pop(MANIFEST, None))
    digest = _checked_digest(files, manifest, location, expected_digest)
    modules = _in_order((name, decoded(name, raw)) for name, raw in files if name.endswith(".rego"))
    if not modules:
        raise BundleError("bundle_missing", f"no Rego module in {location}")
    data = _data(documents)
    manifest.check(modules, data)
    return Bundle(
        modules=modules,
        data_json=json.dumps(_for_engine(data), ensure_ascii=False, separators=(",", ":")),
        digest=digest,
        revision=manifest.revision,
        settings=_settings(data, location, dict(files)),
        detectors=_mapping(data, "memory", "detectors"),
        source=location,
    )


def _checked_digest(files: Files, manifest: Manifest, location: str, expected: str | None) -> str:
    """Return the digest of what decides, which is the expected one and the one that the manifest names."""
    digest = _digest(files, manifest)
    if expected is not None and digest != expected:
        raise BundleError("bundle_tampered", f"{location} has digest {digest}, expected {expected}")
    if manifest.metadata.get(DIGEST, digest) != digest:
        raise BundleError("bundle_tampered", f"{location} has digest {digest}, its manifest names another")
    return digest


def _in_order(modules: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Return the modules with those first that hold an entrypoint, then by path.

    regorus resolves a rule under `with`, as tests use it, by the first module of its package.
    """
    return tuple(sorted(modules, key=lambda module: (_ENTRYPOINT.search(module[1]) is None, module[0])))


def _digest(files: Files, manifest: Manifest) -> str:
    """Return SHA-256 over the sorted paths and the SHA-256 of each file; of the manifest what decides.

    So a folder and the archive that is built of it have one digest, whatever revision that was given.
    """
    deciding = {**dict(files), MANIFEST: manifest.deciding}
    total = hashlib.sha256()
    for name, raw in sorted(deciding.items()):
        total.update(f"{name}\0{hashlib.sha256(raw).hexdigest()}\n".encode())
    return f"sha256:{total.hexdigest()}"


def _data(documents: Mapping[str, Any]) -> dict[str, Any]:
    """Return all data.json files as one document, each at the place that its folder says."""
    merged: dict[str, Any] = {}
    for name, value in documents.items():
        for part in reversed(PurePosixPath(name).parent.parts):
            value = {part: value}
        if not isinstance(value, dict):
            raise BundleError("settings_malformed", f"{name} must be a mapping")
        _merge(merged, value, name)
    return merged


def _merge(target: dict[str, Any], value: dict[str, Any], name: str) -> None:
    for key, part in value.items():
        if key not in target:
            target[key] = part
        elif isinstance(target[key], dict) and isinstance(part, dict):
            _merge(target[key], part, name)
        else:
            raise BundleError("settings_malformed", f"{name} gives `{key}` a second value")


def _mapping(data: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    value: Any = data
    for part in path:
        value = value.get(part, {}) if isinstance(value, dict) else {}
    return value if isinstance(value, dict) else {}


def _for_engine(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data that rules read; detector patterns are Python's and would cost each decision 0.1 ms."""
    memory = {name: part for name, part in _mapping(data, "memory").items() if name != "detectors"}
    return {**data, "memory": memory}


def _settings(data: Mapping[str, Any], source: str, files: Mapping[str, bytes]) -> Mapping[str, Any]:
    """Return `data.memory.settings`, checked against its schema and for what it refers to.

    Raises:
        BundleError: reason settings_malformed.
    """
    from agent_runtime_ref.validation import check

    settings = _mapping(data, "memory", "settings")
    if not settings:
        raise BundleError("settings_malformed", _no_settings(source, files))
    # Data may stand in any folder above as well; its lines are known where it stands alone.
    raw = files.get(_SETTINGS)
    place = source if raw is None else f"{source}/{_SETTINGS}"
    try:
        check("policy_settings", settings)
    except DocumentError as error:
        line = None if raw is None else line_of(error.path, raw)
        where = place if line is None else f"{place}:{line}"
        raise BundleError("settings_malformed", f"{where}: {error}") from error
    problem = next(check_references(settings), None)
    if problem is not None:
        raise BundleError("settings_malformed", f"{place}: {problem}")
    return settings


def _no_settings(source: str, files: Mapping[str, bytes]) -> str:
    """Return what is wrong with policies that have no settings at all, and what was meant perhaps."""
    if _SETTINGS in files:
        return f"{source}/{_SETTINGS} is empty"
    below = sorted(name.removesuffix(f"/{_SETTINGS}") for name in files if name.endswith(f"/{_SETTINGS}"))
    hint = f"; did you mean {source}/{below[0]}?" if below else ", so these are no policies of a memory"
    return f"{source}/{_SETTINGS} is missing{hint}"
