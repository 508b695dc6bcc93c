"""What the statements of a rule look at: fields of the input, settings with their paths, literals.

A setting is followed through the names that a rule gives it, `limits := settings.limits`, so that a reviewer
is shown `limits.query_max` and not all limits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.policy.portable import masked
from agent_runtime_ref.review.source import Block

__all__ = ["Look", "constants_of", "look_of", "used_settings"]

SETTINGS = "memory.settings"
EACH = "*"  # a step over every name or element
_ROOT = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_STEP = re.compile(r"\.(\w+)")
_ALIAS = re.compile(r"(?:^|[\s{|;])(?P<name>\w+)\s*:=\s*(?=[A-Za-z_])")
_END = re.compile(r"[ \t]*(?:$|[\n;|}]|if\b)")
_NUMBER = re.compile(r"(?<![\w.])\d{1,18}(?![\w.])")
_STRING = re.compile(r'"(?P<value>(?:\\.|[^"\\\n])*)"(?P<key>\s*:)?')
# What a rule says about itself is no value that it compares with.
_ABOUT = re.compile(r'"(?:rule_id|reason|role|passed|operator|attribute|type)"\s*:\s*"[^"\n]*"')

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What a rule looks at, its helpers included, each in order of appearance."""

    fields: tuple[str, ...]  # of the candidate by their names; query.limit, caller.roles, operation
    settings: tuple[Path, ...]  # ("classes", "*", "durable")
    strings: tuple[str, ...]
    numbers: tuple[int, ...]


def look_of(
    blocks: Sequence[Block], attributes: Sequence[str], known: Collection[str], constants: Mapping[str, Path]
) -> Look:
    """Return what `blocks` look at; `known` are the names of a candidate's attributes.

    `constants` are rules of the package that stand for a setting.
    """
    fields: dict[str, None] = dict.fromkeys(attributes)
    settings: dict[Path, None] = {}
    for block in blocks:
        aliases = _aliases(block, constants)
        for root, steps, is_alias in _references(block):
            path = _settings_path(block, root, steps, aliases)
            if path is not None:
                if not is_alias:
                    settings[path] = None
            elif (field := _field(root, steps, known)) is not None:
                fields[field] = None
    strings = dict.fromkeys(one for block in blocks for one in _strings(block))
    numbers = dict.fromkeys(int(one) for block in blocks for one in _NUMBER.findall(block.code))
    return Look(tuple(fields), tuple(settings), tuple(strings), tuple(numbers))


def constants_of(blocks: Sequence[Block]) -> dict[str, Path]:
    """Return the rules of a package that stand for a setting: `purpose := settings.purposes[...]`."""
    found: dict[str, Path] = {}
    for block in blocks:
        alias = next(iter(_aliases(block, {}).items()), None)
        if alias is not None and alias[0] == block.name and block.code.startswith(block.name):
            found[block.name] = alias[1]
    return found


def used_settings(paths: Sequence[Path], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of `settings` that `paths` lead to, in the shape of the settings."""
    used: dict[str, Any] = {}
    for path in sorted(set(paths), key=lambda one: (one[:1], len(one), one)):
        _take(used, path, settings)
    return used


def _take(target: dict[str, Any], path: Path, value: Any) -> None:
    """Copy what `path` leads to from `value` into `target`; a path that leads nowhere adds nothing."""
    step, rest = path[0], path[1:]
    while rest and rest[-1] == EACH:  # over everything of it: all of it
        rest = rest[:-1]
    names = list(value) if step == EACH and isinstance(value, Mapping) else [step]
    for name in names:
        if not isinstance(value, Mapping) or name not in value:
            continue
        inner, held = value[name], target.get(name)
        if not rest or not isinstance(inner, Mapping):
            target[name] = inner
        elif held is None or (isinstance(held, dict) and held is not inner):
            part: dict[str, Any] = target.setdefault(name, {})
            _take(part, rest, inner)


def _aliases(block: Block, constants: Mapping[str, Path]) -> dict[str, Path]:
    """Return the names that a statement gives to settings, and those of the package."""
    aliases = dict(constants)
    for match in _ALIAS.finditer(block.code):
        root, steps, end = _reference(block, match.end())
        if _END.match(block.code, end):
            path = _settings_path(block, root, steps, aliases, whole=True)
            if path is not None:
                aliases[match["name"]] = path
            elif match["name"] not in constants:
                aliases.pop(match["name"], None)
    return {name: path for name, path in aliases.items() if name not in block.imports}


def _references(block: Block) -> Iterator[tuple[str, Path, bool]]:
    """Yield every reference, and whether it only gives another name to what it refers to."""
    found = list(_ALIAS.finditer(block.code))
    names, named = {match.start("name") for match in found}, {match.end() for match in found}
    for match in _ROOT.finditer(block.code):
        if match.start() in names:
            continue
        root, steps, end = _reference(block, match.start())
        yield root, steps, match.start() in named and _END.match(block.code, end) is not None


def _reference(block: Block, start: int) -> tuple[str, Path, int]:
    """Return root, steps and end of the reference that begins at `start`."""
    code, match = block.code, _ROOT.match(block.code, start)
    assert match is not None
    root, steps, place = match[0], [], match.end()
    while place < len(code):
        if (step := _STEP.match(code, place)) is not None:
            steps.append(step[1])
            place = step.end()
        elif code[place] == "[" and (end := _bracket_end(code, place)):
            inner = block.text[place + 1 : end - 1].strip()
            steps.append(inner[1:-1] if re.fullmatch(r'"[^"\\]*"', inner) else EACH)
            place = end
        else:
            break
    return root, tuple(steps), place


def _bracket_end(code: str, start: int) -> int:
    """Return the offset after the bracket that closes the one at `start`; 0 where none does."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] == "[") - (code[place] == "]")
        if depth == 0:
            return place + 1
    return 0


def _settings_path(
    block: Block, root: str, steps: Path, aliases: Mapping[str, Path], *, whole: bool = False
) -> Path | None:
    """Return which setting a reference leads to; None for none, and for all of them unless `whole`."""
    if root in block.imports or root == "data":
        words = (*block.imports[root].split("."), *steps) if root in block.imports else steps
        prefix = tuple(SETTINGS.split("."))
        if words[: len(prefix)] != prefix:
            return None
        path = words[len(prefix) :]
    elif root in aliases:
        path = (*aliases[root], *steps)
    else:
        return None
    return path if path or whole else None


def _field(root: str, steps: Path, known: Collection[str]) -> str | None:
    """Return which field of the input a reference leads to."""
    if root == "input":
        if steps[:1] in (("query",), ("caller",), ("review",)) and len(steps) > 1:
            return ".".join(steps[:2])
        if steps[:1] == ("operation",):
            return "operation"
        steps = steps[2:] if steps[:1] == ("candidates",) else ()
    if len(steps) > 1 and f"{steps[0]}.{steps[1]}" in known:
        return f"{steps[0]}.{steps[1]}"
    return steps[0] if steps and steps[0] in known else None


def _strings(block: Block) -> Iterator[str]:
    """Yield the literals that a statement may compare with."""
    kept = _ABOUT.sub(lambda match: " " * len(match[0]), block.text)
    _, strings = masked(kept)
    for match in _STRING.finditer(kept):
        is_literal = strings[match.start()] == '"' and not match["key"]
        if is_literal and match["value"] and "\\" not in match["value"]:
            yield match["value"]
