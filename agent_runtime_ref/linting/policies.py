"""Policy bundles: what the policy package finds in the rules, and where data and settings are wrong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_runtime_ref import validation
from agent_runtime_ref.errors import BundleError, DocumentError, DocumentUnreadableError
from agent_runtime_ref.linting.documents import telling, unreadable
from agent_runtime_ref.linting.findings import Finding, finding, shown_path
from agent_runtime_ref.linting.targets import bundle_file
from agent_runtime_ref.policy.bundle import load_bundle
from agent_runtime_ref.policy.controls import CONTROLS
from agent_runtime_ref.policy.lint import lint_bundle
from agent_runtime_ref.policy.portable import PolicyFinding, not_portable
from agent_runtime_ref.policy.settings_check import check_references
from agent_runtime_ref.yaml_source import Positions, read_file, read_json

__all__ = ["bundle_files", "lint_archive", "lint_module", "lint_policies"]

_SETTINGS = ("memory", "settings")
_OF_THE_WHOLE = ("LINT-P-000", "LINT-P-012")
_PLACE = re.compile(r":(\d+):(\d+)")
_SETTING = re.compile(r"memory\.settings\.([A-Za-z0-9_.]+) ")
_RETENTION = re.compile(r"\$\.classes\.[^.]+\.retention\b")
_LISTED = re.compile(r"control `([^`]+)` lists `([^`]+)`")


def lint_policies(root: Path) -> Iterator[Finding]:
    """Yield everything that is wrong with the bundle in a folder."""
    files = bundle_files(root)
    broken = {path: problem for path in files if (problem := _unreadable(path)) is not None}
    yield from broken.values()
    data = [*_data(root), *_detectors(root)]
    yield from data
    found = () if broken else lint_bundle(root)
    if broken or any(one.rule_id == "LINT-P-000" for one in found):
        # The bundle does not load, so its modules are looked at one by one, for one run to tell it all.
        for path in files:
            if path not in broken and path.suffix == ".rego" and not path.stem.endswith("_test"):
                yield from _module(path, path.read_text(encoding="utf-8"))
    told = any(one.severity == "error" for one in data)
    for one in found:
        # What already stands at its place in the settings is not told again of the whole bundle.
        if not (told and one.rule_id == "LINT-P-000" and one.message.startswith("settings_malformed")):
            yield _shown(root, one)


def lint_module(path: Path, root: Path) -> Iterator[Finding]:
    """Yield what is wrong with one module of the bundle in a folder, and nothing about its other files."""
    problem = _unreadable(path)
    if problem is not None:
        yield problem
        return
    shown = shown_path(path)
    own = os.path.realpath(path)
    # Alone, since a bundle that does not load tells nothing of its modules.
    found = {*_module(path, path.read_text(encoding="utf-8"))}
    for one in lint_bundle(root):
        if one.rule_id != "LINT-P-000" and os.path.realpath(root / one.path) == own:
            found.add(replace(_shown(root, one), path=shown))
    yield from sorted(found)


def lint_archive(path: Path) -> Iterator[Finding]:
    """Yield what is wrong with the rules in an archive; controls and tests are not part of one."""
    try:
        bundle = load_bundle(path)
    except BundleError as error:
        yield finding("LINT-P-000", path, str(error))
        return
    for name, text in bundle.modules:
        yield from _module(path / name, text)


def bundle_files(root: Path) -> list[Path]:
    """Return the files of a bundle, sorted."""
    return sorted(path for path in root.rglob("*") if bundle_file(path) and path.is_file())


def _unreadable(path: Path) -> Finding | None:
    """Return the finding for a file that is no text, or is JSON or YAML that lies."""
    try:
        if path.suffix == ".rego":
            path.read_bytes().decode("utf-8")
        elif path.name == ".manifest":
            read_json(path.read_bytes(), source=str(path))
        else:
            read_file(path)
    except DocumentUnreadableError as error:
        return unreadable(path, error)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return finding("LINT-F-001", path, "not readable: invalid UTF-8", (line, 1))
    except OSError as error:
        return finding("LINT-F-001", path, f"not readable: {(error.strerror or 'cannot be opened').lower()}")
    return None


def _module(path: Path, text: str) -> Iterator[Finding]:
    """Yield what is wrong with one module, seen alone."""
    import regorus

    try:
        regorus.Engine().add_policy(str(path), text)
    except RuntimeError as error:
        said = str(error).split("Stack backtrace")[0]
        place = _PLACE.search(said)
        reason = next((line for line in said.splitlines() if "error:" in line), "does not parse")
        where = (int(place[1]), int(place[2])) if place else None
        yield finding("LINT-P-001", path, reason.strip().removeprefix("error: "), where)
    for one in not_portable(str(path), text):
        yield finding(one.rule_id, path, one.message, (one.line, one.column), severity=one.severity)


def _shown(root: Path, one: PolicyFinding) -> Finding:
    """Return a finding of the policy package as one of lint, with the best place that is known."""
    path = root if one.rule_id in _OF_THE_WHOLE else root / one.path
    place: tuple[int | None, int | None] = (one.line, one.column)
    if one.path == CONTROLS and (listed := _LISTED.search(one.message)) is not None:
        place = _control_place(path, listed[1], listed[2]) or place
    return finding(one.rule_id, path, one.message, place, severity=one.severity)


def _control_place(path: Path, control_id: str, rule_id: str) -> tuple[int, int] | None:
    """Return where controls.yaml lists a rule under a control."""
    document = read_file(path)
    value: Any = document.value
    for index, row in enumerate(value["controls"]):
        if row["id"] == control_id and rule_id in row["rules"]:
            return document.positions.place(("controls", index, "rules", row["rules"].index(rule_id)))
    return None


def _data(root: Path) -> Iterator[Finding]:
    """Yield what is wrong with the settings, each at its place; nothing where they lie in several files."""
    holders = [(path, part) for path in root.rglob("data.json") if (part := _holds(root, path)) is not None]
    if len(holders) != 1:
        return
    path, inside = holders[0]
    try:
        document = read_file(path)
    except DocumentError:
        return  # reported as unreadable
    settings: Any = document.value
    for name in inside:
        settings = settings[name]
    positions = _Inside(document.positions, inside)
    found = list(telling(validation.findings("policy_settings", settings, positions=positions)))
    for one in found:
        rule_id = "LINT-P-103" if _RETENTION.match(one.path) else "LINT-P-101"
        yield finding(rule_id, path, one.sentence, (one.line, one.column))
    if not found:
        yield from _references(path, settings, positions)


def _holds(root: Path, path: Path) -> tuple[str, ...] | None:
    """Return where in a data file the settings lie; None where they do not."""
    folders = path.parent.relative_to(root).parts
    if folders != _SETTINGS[: len(folders)]:
        return None
    inside = _SETTINGS[len(folders) :]
    try:
        value: Any = read_file(path).value
    except DocumentError:
        return inside
    for name in inside:
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return inside


def _references(path: Path, settings: Mapping[str, Any], positions: _Inside) -> Iterator[Finding]:
    for sentence in check_references(settings):
        named = _SETTING.match(sentence)
        location = tuple(named[1].split(".")) if named else ()
        yield finding("LINT-P-102", path, sentence, positions.place(location))


def _detectors(root: Path) -> Iterator[Finding]:
    from agent_runtime_ref.enforcement.detectors import Detectors

    path = root / "memory" / "detectors" / "data.json"
    if not path.is_file():
        return  # a bundle need not bring any
    try:
        value = read_file(path).value
        Detectors(value if isinstance(value, Mapping) else {})
    except DocumentError:
        return  # reported as unreadable
    except BundleError as error:
        yield finding("LINT-P-104", path, error.detail)


class _Inside:
    """The places of a part of a document, by locations that begin at the part."""

    def __init__(self, positions: Positions, prefix: tuple[str, ...]) -> None:
        self._positions = positions
        self._prefix = prefix

    def place(self, location: tuple[str | int, ...], *, key: bool = False) -> tuple[int, int] | None:
        """Return the place of a part, as `Positions.place` does."""
        return self._positions.place((*self._prefix, *location), key=key)
