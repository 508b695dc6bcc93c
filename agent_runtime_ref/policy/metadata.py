"""Rules as their METADATA comments describe them, read by us: an engine's own reader is not portable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Annotation", "RuleInfo", "annotations_of", "package_of", "rules_of"]

_PACKAGE = re.compile(r"^package\s+([A-Za-z0-9_.]+)", re.MULTILINE)
_MARK = "# METADATA"


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """One rule of a policy, for a reviewer, a report or an explanation."""

    rule_id: str
    title: str
    description: str
    severity: str
    controls: tuple[str, ...]
    attributes: tuple[str, ...]
    settings: tuple[str, ...]
    scope: str  # query, record or candidate
    package: str
    file: str
    line: int  # of the METADATA comment


@dataclass(frozen=True, slots=True)
class Annotation:
    """One METADATA block: where it stands, what it says, and the first line of the rule below it."""

    line: int
    value: Any
    problem: str | None
    head: str


def rules_of(path: str, text: str) -> Iterator[RuleInfo]:
    """Yield the rules of a module that METADATA gives an id, in the order of the file."""
    package = package_of(text)
    for annotation in annotations_of(text):
        value = annotation.value if isinstance(annotation.value, Mapping) else {}
        custom = value.get("custom")
        if isinstance(custom, Mapping) and isinstance(custom.get("rule_id"), str):
            yield _rule(value, custom, package, path, annotation.line)


def package_of(text: str) -> str:
    """Return the package of a module; empty if it names none."""
    found = _PACKAGE.search(text)
    return found[1] if found else ""


def annotations_of(text: str) -> Iterator[Annotation]:
    """Yield every METADATA block of a module. A block that is no YAML has a `problem` and no value."""
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        if lines[index].rstrip() != _MARK:
            index += 1
            continue
        end = index + 1
        while end < len(lines) and lines[end].startswith("#") and lines[end].rstrip() != _MARK:
            end += 1
        block = "\n".join(line[2:] if line.startswith("# ") else line[1:] for line in lines[index + 1 : end])
        value, problem = _yaml(block)
        head = lines[end] if end < len(lines) else ""
        yield Annotation(index + 1, value, problem, head)
        index = end


def _yaml(block: str) -> tuple[Any, str | None]:
    import yaml

    # The reader in C is ten times as fast; it is not part of every build.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(block, loader), None
    except yaml.YAMLError as error:
        return None, " ".join(str(error).split())


def _rule(
    value: Mapping[str, Any], custom: Mapping[str, Any], package: str, path: str, line: int
) -> RuleInfo:
    return RuleInfo(
        rule_id=custom["rule_id"],
        title=str(value.get("title", "")),
        description=str(value.get("description", "")),
        severity=str(custom.get("severity", "")),
        controls=_names(custom, "controls"),
        attributes=_names(custom, "attributes"),
        settings=_names(custom, "settings"),
        scope=str(custom.get("scope", "")),
        package=package,
        file=path,
        line=line,
    )


def _names(custom: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = custom.get(name)
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
