"""What there is to lint below a path: schemas, examples, documents and bundles, each found once.

Files that belong together are checked together: data of a bundle brings its bundle, a schema its examples. A
module that is named is checked as part of its bundle, and only what is wrong with itself is told.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_runtime_ref.policy.metadata import package_of

__all__ = ["EXPECTATION", "SCHEMA_SUFFIX", "Target", "bundle_file", "targets_of", "unique"]

SCHEMA_SUFFIX = ".schema.json"
EXPECTATION = ".expect"
_DOCUMENTS = frozenset({".yaml", ".yml", ".json"})
_ARCHIVES = (".tar.gz", ".tgz")
_BUNDLE_NAMES = frozenset(
    {".manifest", "data.json", "controls.yaml", "capabilities.json", "equivalent_mutants.yaml"}
)
_LEFT_OUT = frozenset({"__pycache__", "node_modules"})
_DIRECTIONS = frozenset({"valid", "invalid"})


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to check."""

    kind: str  # schema, example, stray, document, bundle, module, archive, closed
    path: Path
    schema: str | None = None  # where it is known before the file is read
    named: bool = False  # by the user, and not found in a folder
    bundle: Path | None = None  # of a module that was named: what it is part of


def targets_of(path: Path) -> list[Target]:
    """Return what there is to lint at a path that exists; empty where there is nothing."""
    if not path.is_dir():
        return list(_file(path, named=True)) if path.is_file() else []
    root = _manifest_root(path)
    if root is not None and (root == path or _has_rego(path)):
        return [Target("bundle", root)]
    found: list[Target] = []
    for folder, names in _walk(path, found):
        if any(one.kind == "bundle" and folder.is_relative_to(one.path) for one in found):
            continue  # its files are part of the bundle
        if ".manifest" in names:
            found += [Target("bundle", folder)] if _decides_memory(folder) else []
        else:
            found += [target for name in names for target in _file(folder / name, named=False)]
    roots = [Path(os.path.realpath(one.path)) for one in found if one.kind == "bundle"]
    return unique(one for one in found if not (one.kind == "document" and _is_part(one.path, roots)))


def unique(targets: Iterable[Target]) -> list[Target]:
    """Return each target once, sorted; one that was named counts as named."""
    found: dict[tuple[str, str], Target] = {}
    for target in sorted(targets, key=lambda one: (not one.named, one.schema is None)):
        found.setdefault((target.kind, os.path.realpath(target.path)), target)
    return sorted(found.values(), key=lambda one: (os.fspath(one.path), one.kind))


def bundle_file(path: Path) -> bool:
    """Say whether a file is one that a bundle consists of."""
    return path.suffix == ".rego" or path.name in _BUNDLE_NAMES


def _is_part(path: Path, roots: Sequence[Path]) -> bool:
    """Say whether a file is part of a bundle that is known by its modules only, after the file was found."""
    return bundle_file(path) and any(Path(os.path.realpath(path)).is_relative_to(root) for root in roots)


def _walk(path: Path, found: list[Target]) -> Iterator[tuple[Path, list[str]]]:
    """Yield each folder below `path` with the names of its files, sorted; hidden ones are left out.

    A folder that cannot be listed becomes a target of its own: passing it over would look like a clean run.
    """

    def refused(error: OSError) -> None:
        found.append(Target("closed", Path(error.filename)))

    for folder, folders, names in os.walk(path, onerror=refused):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".")
            and name not in _LEFT_OUT
            and not os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
        )
        yield Path(folder), sorted(names)


def _file(path: Path, *, named: bool) -> Iterator[Target]:
    """Yield the targets that a file is part of."""
    if path.name.endswith(SCHEMA_SUFFIX):
        yield Target("schema", path, named=named)
        if named:
            yield from _examples(path)
    elif (example := _example(path)) is not None:
        yield example
    elif bundle_file(path) and (root := _bundle_root(path)) is not None:
        if named and path.suffix == ".rego":
            yield Target("module", path, named=True, bundle=root)
        elif named or _decides_memory(root):
            yield Target("bundle", root)
    elif path.name.endswith(_ARCHIVES):
        if named:
            yield Target("archive", path, named=True)
    elif path.suffix.lower() in _DOCUMENTS and path.is_file():
        yield Target("document", path, named=named)


def _examples(schema: Path) -> Iterator[Target]:
    """Yield the examples of a schema."""
    folder = schema.parent / "examples" / schema.name.removesuffix(SCHEMA_SUFFIX)
    for path in sorted(folder.glob("*/*")):
        example = _example(path)
        if example is not None:
            yield example


def _example(path: Path) -> Target | None:
    """Return the example that a file is, or whose expectation it is; None for any other file."""
    folder = path.parent.parent
    if path.parent.name not in _DIRECTIONS or folder.parent.name != "examples":
        return None
    schemas = folder.parent.parent
    schema = schemas / (folder.name + SCHEMA_SUFFIX)
    if not schema.is_file():
        beside = any(schemas.glob("*" + SCHEMA_SUFFIX))
        return Target("stray", folder) if beside else None
    if path.suffix == EXPECTATION:
        path = path.with_suffix(".json")
    known = path.suffix.lower() in _DOCUMENTS and path.is_file()
    return Target("example", path, schema=os.fspath(schema)) if known else None


def _manifest_root(path: Path) -> Path | None:
    """Return the nearest folder, upwards, with a manifest."""
    for folder in (path, *path.absolute().parents):
        if (folder / ".manifest").is_file():
            return folder
    return None


def _decides_memory(root: Path) -> bool:
    """Say whether policies are about memory; a folder may hold others, which are none of our business."""
    return any(
        package_of(path.read_text(encoding="utf-8", errors="replace")).split(".")[0] == "memory"
        for path in root.rglob("*.rego")
        if path.is_file()
    )


def _has_rego(path: Path) -> bool:
    return next(path.rglob("*.rego"), None) is not None


def _bundle_root(path: Path) -> Path | None:
    """Return the folder of the bundle that a file is part of; without a manifest, by a module's package."""
    root = _manifest_root(path.parent)
    if root is not None or path.suffix != ".rego":
        return root
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return path.parent
    parts = re.sub(r"_test$", "", package_of(text)).split(".")
    folders = path.parent.absolute().parts
    if folders[-len(parts) :] == tuple(parts):
        return Path(os.path.normpath(path.parent.joinpath(*[os.pardir] * len(parts))))
    return path.parent
