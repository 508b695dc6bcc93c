"""Two sets of policies compared: rules by id, data by path, controls by id, and what belongs to no rule."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.policy.bundle_files import MANIFEST
from agent_runtime_ref.policy.controls import Control
from agent_runtime_ref.policy.metadata import package_of, rules_of
from agent_runtime_ref.replay.module_text import parts_of
from agent_runtime_ref.replay.sources import Policies

__all__ = ["Difference", "PartDifference", "difference"]

_RULE_FIELDS = ("title", "description", "severity", "scope", "package", "controls", "attributes", "settings")
_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")


@dataclass(frozen=True, slots=True)
class PartDifference:
    """What is new, gone and other among things that have names; each row is a JSON object with its name."""

    added: tuple[Mapping[str, Any], ...] = ()
    removed: tuple[Mapping[str, Any], ...] = ()
    changed: tuple[Mapping[str, Any], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    def to_document(self) -> dict[str, Any]:
        """Return the three lists."""
        return {name: list(getattr(self, name)) for name in ("added", "removed", "changed")}


@dataclass(frozen=True, slots=True)
class Difference:
    """All that differs between two sets of policies."""

    old: Mapping[str, Any]
    new: Mapping[str, Any]
    rules: PartDifference
    settings: PartDifference
    controls: PartDifference
    packages: PartDifference  # text that belongs to no rule with an id: helpers, imports, the decision itself
    controls_compared: bool  # False: one of the two brings no list of controls

    def __bool__(self) -> bool:
        return bool(self.rules or self.settings or self.controls or self.packages)

    def to_document(self) -> dict[str, Any]:
        """Return the JSON report."""
        return {
            "old": dict(self.old),
            "new": dict(self.new),
            "same": not self,
            "rules": self.rules.to_document(),
            "settings": self.settings.to_document(),
            "controls": self.controls.to_document() | {"compared": self.controls_compared},
            "packages": self.packages.to_document(),
        }


def difference(old: Policies, new: Policies) -> Difference:
    """Return what differs between two sets of policies.

    Raises:
        BundleError: a file of one of them cannot be read.
    """
    compared = old.controls is not None and new.controls is not None
    return Difference(
        old=_identity(old),
        new=_identity(new),
        rules=_compared(_rules(old), _rules(new), "rule_id", _rule_changes),
        settings=_settings(_leaves(old), _leaves(new)),
        controls=_compared(_controls(old.controls), _controls(new.controls), "control_id", _field_changes)
        if compared
        else PartDifference(),
        packages=_compared(_packages(old), _packages(new), "package", _rule_changes),
        controls_compared=compared,
    )


def _identity(policies: Policies) -> dict[str, Any]:
    return {"source": policies.name, "revision": policies.revision, "digest": policies.digest}


def _compared(old: Mapping[str, Any], new: Mapping[str, Any], key: str, changes: Any) -> PartDifference:
    """Return the difference of two tables from name to fields."""
    changed = [
        {key: name, "changes": found}
        for name in sorted(old.keys() & new.keys())
        if (found := changes(old[name], new[name]))
    ]
    return PartDifference(
        added=tuple({key: name, **_shown(new[name])} for name in sorted(new.keys() - old.keys())),
        removed=tuple({key: name, **_shown(old[name])} for name in sorted(old.keys() - new.keys())),
        changed=tuple(changed),
    )


def _shown(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in fields.items() if name in ("title", "severity", "framework", "rules")
    }


def _field_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {"old": old[name], "new": new[name]} for name in old if old[name] != new[name]}


def _rule_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that differ, the text as the lines of a unified diff."""
    found = _field_changes(old, new)
    if "text" in found:
        lines = difflib.unified_diff(old["text"], new["text"], "old", "new", lineterm="", n=2)
        found["text"] = list(lines)[2:]
    return found


def _rules(policies: Policies) -> dict[str, dict[str, Any]]:
    """Return every rule with an id: what METADATA says of it, and its Rego."""
    found: dict[str, dict[str, Any]] = {}
    for path, text in policies.modules:
        code = {part.line: part.lines for part in parts_of(text)}
        for rule in rules_of(path, text):
            fields = {name: _plain(getattr(rule, name)) for name in _RULE_FIELDS}
            # An id that stands twice is a finding of lint; here both count, with all that is said of them.
            known = found.setdefault(rule.rule_id, fields | {"text": []})
            if known["text"]:
                known["text"].append(f"# {json.dumps(fields, ensure_ascii=False)}")
            known["text"] += code.get(rule.line, ())
    return found


def _packages(policies: Policies) -> dict[str, dict[str, Any]]:
    """Return for each package the lines that belong to no rule with an id, wherever in it they stand."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for path, text in policies.modules:
        named = {rule.line for rule in rules_of(path, text)}
        parts = [part.lines for part in parts_of(text) if part.line not in named]
        found.setdefault(package_of(text), []).extend(parts)
    return {
        name: {"text": [line for part in sorted(parts) for line in part]} for name, parts in found.items()
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _leaves(policies: Policies) -> dict[str, Any]:
    """Return every value in the data by its path, and what the manifest decides."""
    found: dict[str, Any] = {}
    for place, value in policies.data:
        found.update(_flat("".join(map(_step, place)), value))
    found.update(_flat(f".{MANIFEST}", policies.deciding))
    return {path.removeprefix("."): value for path, value in found.items()}


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from _flat(f"{path}{_step(key)}", part)
    elif isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        for number, part in enumerate(value):
            yield from _flat(f"{path}[{number}]", part)
    else:
        yield path, value


def _step(key: str) -> str:
    """Return a name as a step of a path: one that holds a dot or a bracket is quoted: no two are alike."""
    return f".{key if _NAME.match(key) else json.dumps(key, ensure_ascii=False)}"


def _settings(old: Mapping[str, Any], new: Mapping[str, Any]) -> PartDifference:
    return PartDifference(
        added=tuple({"path": path, "new": new[path]} for path in sorted(new.keys() - old.keys())),
        removed=tuple({"path": path, "old": old[path]} for path in sorted(old.keys() - new.keys())),
        changed=tuple(
            {"path": path, "old": old[path], "new": new[path]}
            for path in sorted(old.keys() & new.keys())
            if not _same(old[path], new[path])
        ),
    )


def _same(old: Any, new: Any) -> bool:
    """Say whether two values are the same to a policy: `true` is not 1, and 1 is not 1.0."""
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return type(old) is type(new) and bool(old == new)


def _controls(controls: tuple[Control, ...] | None) -> dict[str, dict[str, Any]]:
    return {
        one.control_id: {
            "framework": one.framework,
            "title": one.title,
            "evidence": one.evidence,
            "rules": list(one.rule_ids),
        }
        for one in controls or ()
    }
