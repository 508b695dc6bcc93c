"""Where the rules of a module stand in its text, by the syntax tree that regorus makes of it.

Offsets count the bytes of UTF-8, as the tree does. Its spans were compared with the text: they hold, brackets
included, but a span whose last token is a string ends before the closing quote; `closed` mends that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.errors import BundleError

__all__ = ["Body", "Rule", "closed", "engine_sentence", "line_of", "nodes", "rules_in", "text_between"]

Node = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Body:
    """One body of a rule, or an `else` of it; `query` is its part of the tree."""

    start: int
    end: int
    is_else: bool
    query: Node


@dataclass(frozen=True, slots=True)
class Rule:
    """One definition of a rule: `deny contains {...} if {...}` is one of many that `deny` has."""

    name: str
    rule_id: str  # of the head; empty where it puts no id into a decision
    is_default: bool
    start: int
    end: int
    head_start: int
    head_end: int
    head: Node
    bodies: tuple[Body, ...]
    path: tuple[str, ...] = ()  # the words of the head before anything that is computed
    is_indexed: bool = False  # something in brackets follows them
    is_function: bool = False

    @property
    def label(self) -> str:
        """What a reader knows the rule by: its id, else its name."""
        return self.rule_id or self.name


def rules_in(path: str, text: str) -> Iterator[Rule]:
    """Yield the rules of a module in the order of the file.

    Raises:
        BundleError: reason engine_exception: the module does not parse.
    """
    import regorus

    engine = regorus.Engine()
    try:
        engine.add_policy(path, text)
    except RuntimeError as error:
        raise BundleError("engine_exception", engine_sentence(error)) from error
    raw = text.encode("utf-8")
    for node in json.loads(engine.get_ast_as_json())[0]["ast"]["rules"]:
        ((kind, spec),) = node.items()
        yield _default(raw, spec) if kind == "Default" else _rule(raw, spec)


def _default(raw: bytes, spec: Node) -> Rule:
    start, end = spec["span"]["start"], closed(raw, spec["span"]["end"])
    path, is_indexed = _path(raw, spec["refr"])
    head = {"value": spec["value"]}
    return Rule(path[0], "", True, start, end, start, end, head, (), path, is_indexed)


def _rule(raw: bytes, spec: Node) -> Rule:
    ((kind, head),) = spec["head"].items()
    bodies = tuple(
        Body(one["span"]["start"], closed(raw, one["span"]["end"]), one["is_else"], one["query"])
        for one in spec["bodies"]
    )
    start, end = spec["span"]["start"], closed(raw, spec["span"]["end"])
    head_end = len(raw[start : bodies[0].start].rstrip()) + start if bodies else end
    path, is_indexed = _path(raw, head["refr"])
    return Rule(
        path[0], _rule_id(head), False, start, end, start, head_end, head, bodies,
        path, is_indexed, kind == "Func",
    )  # fmt: skip


def _path(raw: bytes, reference: Node) -> tuple[tuple[str, ...], bool]:
    """Return the words that a rule's head begins with (`a`, `b` of `a.b[index]`), and if brackets follow."""
    ((kind, part),) = reference.items()
    if "refr" not in part:
        return (str(part.get("value", text_between(raw, part["span"]["start"], part["span"]["end"]))),), False
    path, is_indexed = _path(raw, part["refr"])
    if is_indexed or kind != "RefDot":
        return path, True
    return (*path, str(part["field"][-1])), False


def _rule_id(head: Node) -> str:
    """Return the id that a head puts into a decision."""
    for _, node in nodes({"head": head}, "Object"):
        for _, key, value in node["fields"]:
            if key.get("String", {}).get("value") == "rule_id" and "String" in value:
                return str(value["String"]["value"])
    return ""


def nodes(tree: Any, *kinds: str) -> Iterator[tuple[str, Node]]:
    """Yield kind and content of every node of some kinds below `tree`, outer ones first."""
    if isinstance(tree, list):
        for one in tree:
            yield from nodes(one, *kinds)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key in kinds and isinstance(value, dict) and "span" in value:
                yield key, value
            yield from nodes(value, *kinds)


def closed(raw: bytes, end: int) -> int:
    """Return where a span really ends: behind the quote that closes its last token."""
    return end + 1 if raw[end : end + 1] in (b'"', b"`") else end


def text_between(raw: bytes, start: int, end: int) -> str:
    """Return a part of a module on one line."""
    return " ".join(raw[start:end].decode("utf-8").split())


def line_of(raw: bytes, offset: int) -> int:
    """Return the line, counted from 1, of an offset."""
    return raw.count(b"\n", 0, offset) + 1


def engine_sentence(error: BaseException) -> str:
    """Return what regorus says is wrong, as `file:line:column: sentence`, without source and stack."""
    lines = [line.strip() for line in str(error).split("Stack backtrace")[0].splitlines() if line.strip()]
    place = next((line.removeprefix("--> ") for line in lines if line.startswith("--> ")), "")
    said = next((line for line in lines if line.startswith("error:")), lines[-1] if lines else "")
    sentence = said.removeprefix("error:").strip() or type(error).__name__
    return f"{place}: {sentence}" if place else sentence
