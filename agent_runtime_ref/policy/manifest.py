"""The manifest of a bundle: its revision, and the roots outside which it may neither rule nor hold data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.bundle_files import MANIFEST
from agent_runtime_ref.policy.metadata import package_of

__all__ = ["DIGEST", "UNVERSIONED", "Manifest", "manifest_of"]

UNVERSIONED = "unversioned"
REGO_VERSION = 1
REVISION_MAX = 256
DIGEST = "digest"  # the key of `metadata` under which a built bundle repeats its own digest


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest says, with what OPA takes where it says nothing."""

    revision: str = UNVERSIONED
    roots: tuple[str, ...] = ("",)  # without slashes at their ends; an empty one is all
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def deciding(self) -> bytes:
        """The part that decides: a revision is a name for policies, and metadata are notes on them."""
        return json.dumps({"rego_version": REGO_VERSION, "roots": sorted(self.roots)}).encode()

    def check(self, modules: Iterable[tuple[str, str]], data: Mapping[str, Any]) -> None:
        """Return if all packages and data lie within the roots.

        Raises:
            BundleError: reason settings_malformed: an OPA would refuse this bundle too.
        """
        for name, text in modules:
            package = package_of(text)
            if not self._permits(package.split(".")):
                raise BundleError("settings_malformed", f"{name}: package `{package}` lies outside the roots")
        self._check_data(data, ())

    def _permits(self, path: Sequence[str]) -> bool:
        roots = [root.split("/") for root in self.roots]
        return any(root == [""] or list(path[: len(root)]) == root for root in roots)

    def _check_data(self, value: object, path: tuple[str, ...]) -> None:
        if path and self._permits(path):
            return
        above_a_root = any(root.split("/")[: len(path)] == list(path) for root in self.roots)
        if not isinstance(value, Mapping) or not (above_a_root or "" in self.roots or not path):
            raise BundleError("settings_malformed", f"data at `{'/'.join(path)}` lies outside the roots")
        for key, part in value.items():
            self._check_data(part, (*path, key))


def manifest_of(document: object) -> Manifest:
    """Return the manifest in a document; None stands for a bundle without one.

    Raises:
        BundleError: reason settings_malformed.
    """
    if document is None:
        return Manifest()
    if not isinstance(document, Mapping):
        raise _malformed("must be a mapping")
    revision = document.get("revision") or UNVERSIONED
    if not isinstance(revision, str) or len(revision) > REVISION_MAX or not revision.isprintable():
        raise _malformed(f"revision must be printable text of at most {REVISION_MAX} characters")
    if document.get("rego_version", REGO_VERSION) != REGO_VERSION or document.get("file_rego_versions"):
        raise _malformed(f"rego_version must be {REGO_VERSION}, for all files")
    if document.get("wasm"):
        raise _malformed("wasm modules cannot be part of a bundle")
    metadata = document.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise _malformed("metadata must be a mapping")
    return Manifest(revision, _roots(document.get("roots")), metadata)


def _roots(value: object) -> tuple[str, ...]:
    if value is None:
        return ("",)
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _malformed("roots must be a list of texts")
    roots = tuple(root.strip("/") for root in value)
    for one, other in combinations([root.split("/") for root in roots], 2):
        shared = min(len(one), len(other))
        if [""] in (one, other) or one[:shared] == other[:shared]:
            raise _malformed(f"roots `{'/'.join(one)}` and `{'/'.join(other)}` overlap")
    return roots


def _malformed(problem: str) -> BundleError:
    return BundleError("settings_malformed", f"{MANIFEST}: {problem}")
