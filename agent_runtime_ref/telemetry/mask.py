"""What stays out of decision lines because an operator said so, in the manner of OPA's `system.log.mask`.

A mask is a list of JSON pointers under `/input` or `/result`. It is applied before a line is sealed, so the
chain covers the masked text and nothing else was ever written. The line names what was removed in `erased`
and what was replaced in `masked`, by which whoever replays it knows what it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.errors import DocumentValueError

# Without these a line does not say what was decided.
KEPT = frozenset({"/input/operation", "/result/allow", "/result/effect"})
_ROOTS = ("input", "result")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_GONE = object()


@dataclass(frozen=True, slots=True)
class Rule:
    """One part of a line that is removed, or replaced by `value`."""

    pointer: str
    tokens: tuple[str, ...]
    removes: bool
    value: Any = None


class Mask:
    """Takes parts out of the input and the result of a decision."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = tuple(rules)

    @classmethod
    def of(cls, entries: Sequence[str | Mapping[str, Any]]) -> Mask | None:
        """Return the mask of a setting: pointers to remove, or mappings of `op`, `path` and `value`.

        None where there is nothing to mask.

        Raises:
            DocumentValueError: a pointer points elsewhere, or to what a line must say.
        """
        rules = [_rule(entry, index) for index, entry in enumerate(entries)]
        return cls(rules) if rules else None

    def applied(
        self, asked: Mapping[str, Any], answer: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any], dict[str, list[str]]]:
        """Return input and result without what is masked, and the lists that say so.

        What was given stays as it was. A pointer to what is not there changes nothing and is not listed.
        """
        parts: dict[str, Any] = {"input": asked, "result": answer}
        told: dict[str, list[str]] = {}
        for rule in self._rules:
            root, *path = rule.tokens
            changed = _without(parts[root], path, rule)
            if changed is not parts[root]:
                parts[root] = changed
                told.setdefault("erased" if rule.removes else "masked", []).append(rule.pointer)
        return parts["input"], parts["result"], told


def _rule(entry: str | Mapping[str, Any], index: int) -> Rule:
    given: Mapping[str, Any] = {"path": entry} if isinstance(entry, str) else entry
    pointer, operation = str(given.get("path")), given.get("op", "remove")
    tokens = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    problem = None
    if len(tokens) < 2 or not pointer.startswith("/") or tokens[0] not in _ROOTS or "" in tokens:
        problem = "must be a JSON pointer to a part of `/input` or `/result`"
    elif pointer in KEPT:
        problem = "a line must say what was decided, so this stays"
    elif operation not in ("remove", "upsert") or (operation == "upsert") is not ("value" in given):
        problem = "`op` is `remove`, or `upsert` with a `value`"
    if problem is not None:
        raise DocumentValueError(f"log_mask[{index}]: `{pointer}`: {problem}", path=f"$.log_mask[{index}]")
    return Rule(pointer, tokens, operation == "remove", given.get("value"))


def _without(part: Any, path: Sequence[str], rule: Rule) -> Any:
    """Return `part` with what `path` leads to removed or replaced; `part` itself where it leads nowhere."""
    name, rest = path[0], path[1:]
    held = _member(part, name)
    if rest:
        if held is _GONE:
            return part
        changed = _without(held, rest, rule)
        return part if changed is held else _with(part, name, changed)
    if rule.removes:
        return part if held is _GONE else _with(part, name, _GONE)
    # As with OPA a name may be added to an object that is there; nothing is added to a list.
    if held is _GONE and not isinstance(part, Mapping):
        return part
    return _with(part, name, rule.value)


def _member(part: Any, name: str) -> Any:
    if isinstance(part, Mapping):
        return part.get(name, _GONE)
    if isinstance(part, (list, tuple)) and _INDEX.fullmatch(name) and int(name) < len(part):
        return part[int(name)]
    return _GONE


def _with(part: Any, name: str, value: Any) -> Any:
    """Return a copy of `part` with another member, or without it."""
    if isinstance(part, Mapping):
        kept = {key: one for key, one in part.items() if key != name or value is not _GONE}
        return kept if value is _GONE else kept | {name: value}
    index = int(name)
    return [*part[:index], *([] if value is _GONE else [value]), *part[index + 1 :]]
