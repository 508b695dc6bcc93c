"""Mutants of a module: rules that never hold, expressions dropped or negated, bounds and numbers moved.

An expression is dropped by writing `true` in its place and a rule by a body of `false`, so that whatever
names the rule still compiles. Binding a variable is no condition: assignments and `some` are only dropped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.policy.mutation.mutants import Mutant
from agent_runtime_ref.policy.rego_source import (
    Body,
    Node,
    Rule,
    closed,
    line_of,
    nodes,
    rules_in,
    text_between,
)

__all__ = ["source_mutants"]

_SIGNS = {"Eq": "==", "Ne": "!=", "Lt": "<", "Le": "<=", "Gt": ">", "Ge": ">="}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", "<=": ">", ">": "<="}
_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_SIGN = re.compile(rb"==|!=|<=|>=|<|>")
_INTEGER = re.compile(rb"\d+\Z")
_NOT = re.compile(r"not\s+")
NEVER = "if { false }"


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replace the bytes from `start` to `end`; `frame` is what a reader is shown before and after."""

    operation: str
    start: int
    end: int
    text: str
    frame: tuple[int, int]


def source_mutants(path: str, text: str) -> Iterator[Mutant]:
    """Yield the mutants of a module, in the order of the file.

    Raises:
        BundleError: the module does not parse.
    """
    raw = text.encode("utf-8")
    numbers: Counter[str] = Counter()
    for rule in rules_in(path, text):
        for edits in _parts(raw, rule):
            numbers[rule.label] += 1
            name = f"{rule.label}#{numbers[rule.label]}"
            seen: set[bytes] = set()
            for edit in edits:
                content = raw[: edit.start] + edit.text.encode("utf-8") + raw[edit.end :]
                if content not in seen:  # two ways to the same change are one mutant
                    seen.add(content)
                    yield _mutant(path, raw, name, edit, content)


def _mutant(path: str, raw: bytes, name: str, edit: _Edit, content: bytes) -> Mutant:
    start, end = edit.frame
    return Mutant(
        file=path,
        line=line_of(raw, edit.start),
        rule=name,
        operation=edit.operation,
        original=text_between(raw, start, end),
        mutated=text_between(content, start, end + len(content) - len(raw)),
        content=content.decode("utf-8"),
        package=package_of(raw.decode("utf-8")),
    )


def _parts(raw: bytes, rule: Rule) -> Iterator[Iterator[_Edit]]:
    """Yield the edits of each body of a rule; those of its head go with the first."""
    head = (rule.head_start, rule.head_end)
    if rule.is_default:
        dropped = _Edit("drop rule", rule.start, rule.end, "", (rule.start, rule.end))
        yield iter((dropped, *_literals(raw, rule.head, head)))
    elif not rule.bodies:
        never = _Edit("drop rule", rule.end, rule.end, f" {NEVER}", (rule.start, rule.end))
        yield iter((never, *_expressions(raw, rule.head, head)))
    for number, body in enumerate(rule.bodies):
        values = _expressions(raw, rule.head, head) if number == 0 else iter(())
        # What never holds anyway, as the empty beginning of a set, cannot be made to.
        no_more = [] if _is_never(raw, body) else [_never(raw, body, head)]
        yield iter((*no_more, *values, *_query(raw, body.query)))


def _is_never(raw: bytes, body: Body) -> bool:
    return raw[body.start : body.end].split() in ([b"if", b"false"], NEVER.encode("utf-8").split())


def _never(raw: bytes, body: Body, head: tuple[int, int]) -> _Edit:
    """Return the edit by which a body never holds; an `else` goes whole."""
    text = NEVER if raw.startswith(b"if", body.start) else "{ false }"
    frame = (body.start, body.end) if body.is_else else (head[0], body.end)
    return _Edit("drop rule", body.start, body.end, "" if body.is_else else text, frame)


def _expressions(raw: bytes, tree: Any, frame: tuple[int, int]) -> Iterator[_Edit]:
    """Yield the edits of an expression outside a body: of its literals and of the bodies inside it."""
    yield from _literals(raw, tree, frame)
    yield from _nested(raw, tree)


def _nested(raw: bytes, tree: Any) -> Iterator[_Edit]:
    """Yield the edits of the bodies that comprehensions and `every` hold, at any depth."""
    if isinstance(tree, list):
        for one in tree:
            yield from _nested(raw, one)
    elif isinstance(tree, dict):
        for key, value in tree.items():
            if key == "query" and isinstance(value, dict):
                yield from _query(raw, value)
            else:
                yield from _nested(raw, value)


def _query(raw: bytes, query: Node) -> Iterator[_Edit]:
    for statement in query["stmts"]:
        yield from _statement(raw, statement)


def _statement(raw: bytes, statement: Node) -> Iterator[_Edit]:
    """Yield the edits of one expression of a body."""
    start, end = statement["span"]["start"], closed(raw, statement["span"]["end"])
    frame = (start, end)
    text = raw[start:end].decode("utf-8")
    if text == "true":
        return
    yield _Edit("drop", start, end, "true", frame)
    ((kind, literal),) = statement["literal"].items()
    inner = literal.get("expr", {})
    if kind == "NotExpr":
        yield _Edit("negate", start, end, _NOT.sub("", text, count=1), frame)
    elif kind == "Every" or kind == "Expr" and "AssignExpr" not in inner:
        yield _negated(raw, inner, text, frame)
    yield from _boundary(raw, inner, frame)
    yield from _literals(raw, statement, frame)
    yield from _nested(raw, statement)


def _negated(raw: bytes, inner: Node, text: str, frame: tuple[int, int]) -> _Edit:
    """Return the edit that makes a condition its opposite."""
    sign = _sign(raw, inner)
    if sign is None:
        return _Edit("negate", *frame, f"not {text}", frame)
    start, end = sign
    return _Edit("negate", start, end, _OPPOSITE[raw[start:end].decode()], frame)


def _boundary(raw: bytes, inner: Node, frame: tuple[int, int]) -> Iterator[_Edit]:
    """Yield the edit by which a bound takes in, or leaves out, the value it names."""
    sign = _sign(raw, inner)
    if sign is not None and (moved := _BOUNDARY.get(raw[slice(*sign)].decode())) is not None:
        yield _Edit("boundary", *sign, moved, frame)


def _sign(raw: bytes, inner: Node) -> tuple[int, int] | None:
    """Return where the sign of a comparison stands; None for anything else."""
    compared = inner.get("BoolExpr")
    if compared is None:
        return None
    left, right = (next(iter(compared[side].values()))["span"] for side in ("lhs", "rhs"))
    found = _SIGN.search(raw, closed(raw, left["end"]), right["start"])
    assert found is not None and found[0].decode() == _SIGNS[compared["op"]]
    return found.span()


def _literals(raw: bytes, tree: Any, frame: tuple[int, int]) -> Iterator[_Edit]:
    """Yield each integer a little greater and a little smaller, and each boolean as the other."""
    for kind, node in nodes(_without_queries(tree), "Number", "Bool"):
        start, end = node["span"]["start"], node["span"]["end"]
        if kind == "Bool":
            yield _Edit("boolean", start, end, "false" if node["value"] else "true", frame)
        elif _INTEGER.match(raw, start, end):
            for moved in (int(raw[start:end]) + 1, int(raw[start:end]) - 1):
                yield _Edit("number", start, end, str(moved), frame)


def _without_queries(tree: Any) -> Any:
    """Return a part of the tree without the bodies in it, whose literals are told with their expressions."""
    if isinstance(tree, list):
        return [_without_queries(one) for one in tree]
    if isinstance(tree, dict):
        return {key: _without_queries(value) for key, value in tree.items() if key != "query"}
    return tree
