"""Proof, by the text of the policies, that the instant of a question does nothing to a plan but move it.

Many questions are alike but for `input.now_ns`. Where the policies only ever subtract from that instant and
put the result into what they answer, the answer at another instant is the same answer with those numbers
moved, and a replay need not ask again. Whatever this proof does not understand, it does not prove.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.metadata import package_of

__all__ = ["only_shifts"]

Node = Mapping[str, Any]
_PACKAGE = "memory.read"
_NOW = "now_ns"
# Built-ins whose answer is another one next time, or that look at more than they are handed.
_UNSTEADY = frozenset({"time", "rand", "uuid", "http", "opa", "io", "net", "walk", "print", "trace", "rego"})
_PLAIN_IMPORTS = ("future.", "rego.", "data.memory.settings")


class _UnprovenError(Exception):
    """Something that this proof does not follow."""


def only_shifts(bundle: Bundle) -> bool:
    """Say whether the read policy's answer to a question without candidates moves with `now_ns` only.

    Then the answers at two instants, integers from 1, are equal but for numbers in the plan, each of which
    differs by as much as the instants do.
    """
    import regorus

    engine: Any = regorus.Engine()
    try:
        for path, text in bundle.modules:
            # Rules of other packages are reached by an import, which is looked at, or by their whole path.
            if package_of(text).startswith(_PACKAGE):
                engine.add_policy(path, text)
        modules = json.loads(engine.get_ast_as_json())
        _require_imports(modules)
        _follow([rule for module in modules for rule in module["ast"]["rules"]])
    except (_UnprovenError, RuntimeError, KeyError, TypeError, IndexError, ValueError, RecursionError):
        return False
    return True


def _require_imports(modules: list[Any]) -> None:
    for module in modules:
        for one in module["ast"]["imports"]:
            path = ".".join(_path(one["refr"]))
            if not f"{path}.".startswith(_PLAIN_IMPORTS) and path not in _PLAIN_IMPORTS:
                raise _UnprovenError


def _follow(rules: list[Any]) -> None:
    """Go on until no more rules are found whose value moves with the instant."""
    moving: set[str] = set()
    while True:
        found = {name for rule in rules if (name := _moved_by(rule, frozenset(moving))) is not None}
        if found <= moving:
            return
        moving |= found


def _moved_by(rule: Node, moving: frozenset[str]) -> str | None:
    """Return the name of a rule whose value moves, None of one that stays.

    Raises:
        _UnprovenError: the rule does something else with the instant, or with what moves.
    """
    if "Default" in rule:
        _require_still(rule["Default"]["value"], moving)
        return None
    spec = rule["Spec"]
    if spec["bodies"] and all(_needs_candidates(body) for body in spec["bodies"]):
        _require_plain_input(rule)
        return None  # without candidates it says nothing, whatever the instant
    known = moving
    for body in spec["bodies"]:
        for statement in body["query"]["stmts"]:
            known |= _assigned(statement, known)
    (head,) = spec["head"].values()
    outputs = [head.get("key"), (head.get("assign") or {}).get("value")]
    outputs += [(body["assign"] or {}).get("value") for body in spec["bodies"]]
    moves = [_placed(output, known) for output in outputs if output is not None]
    name = _name(head["refr"])
    _require_still(head["refr"], known - {name})
    return name if any(moves) else None


def _name(reference: Node) -> str:
    """Return the name of a rule by the reference in its head, which may go on behind it."""
    while "Var" not in reference:
        ((_, part),) = reference.items()
        reference = part["refr"]
    name: str = reference["Var"]["value"]
    return name


def _needs_candidates(body: Node) -> bool:
    """Tell whether a body holds for a candidate only, so that it never holds where there is none."""
    loops = (statement["literal"].get("SomeIn") for statement in body["query"]["stmts"])
    return any(loop is not None and _path(loop["collection"]) == ["input", "candidates"] for loop in loops)


def _assigned(statement: Node, moving: frozenset[str]) -> frozenset[str]:
    """Return the variable that a statement gives an instant to, if it does only that."""
    node = statement["literal"].get("Expr", {}).get("expr", {})
    assigned = node.get("AssignExpr")
    replaced = bool(statement.get("with_mods"))
    named = assigned is not None and not replaced and "Var" in assigned["lhs"]
    if named and _is_instant(assigned["rhs"], moving):
        return frozenset({assigned["lhs"]["Var"]["value"]})
    if replaced or not _holds_for_each_instant(node.get("BoolExpr")):
        _require_still(statement, moving)
    return frozenset()


def _holds_for_each_instant(comparison: Node | None) -> bool:
    """Tell whether a comparison only asks if the instant is a number from 1, which each of them is."""
    if comparison is None or _path(comparison["lhs"]) != ["input", _NOW]:
        return False
    other = comparison["rhs"]
    if comparison["op"] == "Gt" and "Number" in other:
        return float(other["Number"]["value"]) <= 0
    # In the order of types every number comes before every text.
    return comparison["op"] == "Lt" and "String" in other


def _placed(node: Any, moving: frozenset[str]) -> bool:
    """Tell whether something that moves is put into an answer here, as it is and nowhere else."""
    if "Object" in node:
        fields = node["Object"]["fields"]
        for field in fields:
            _require_still(field[1], moving)
        return _any_placed([field[2] for field in fields], moving)
    if "Array" in node:
        return _any_placed(node["Array"]["items"], moving)
    if _is_instant(node, moving):
        return True
    _require_still(node, moving)
    return False


def _any_placed(nodes: list[Any], moving: frozenset[str]) -> bool:
    """Look at every one of `nodes`, and tell whether something that moves is put into one."""
    return True in [_placed(node, moving) for node in nodes]


def _is_instant(node: Node, moving: frozenset[str]) -> bool:
    """Tell whether an expression is the instant, the instant less something, or a name for one of these."""
    if "ArithExpr" in node:
        arithmetic = node["ArithExpr"]
        if arithmetic["op"] != "Sub" or not _is_instant(arithmetic["lhs"], moving):
            return False
        _require_still(arithmetic["rhs"], moving)
        return True
    if "Var" in node:
        return node["Var"]["value"] in moving
    return "RefDot" in node and _path(node) == ["input", _NOW]


def _require_still(node: Any, moving: frozenset[str]) -> None:
    """Return if nothing in a part of a rule moves with the instant.

    Raises:
        _UnprovenError: something may.
    """
    for name, part in _references(node):
        if name == "input" and part in (None, _NOW):
            raise _UnprovenError
        if name in moving or name in _UNSTEADY or (name == "data" and part != "memory.settings"):
            raise _UnprovenError


def _require_plain_input(node: Any) -> None:
    for name, part in _references(node):
        if name == "input" and part is None:
            raise _UnprovenError


def _references(node: Any) -> Iterator[tuple[str, str | None]]:
    """Yield each variable with the field that is asked of it: `input.query.limit` is input and query."""
    if isinstance(node, list):
        for item in node:
            yield from _references(item)
    elif isinstance(node, Mapping):
        if "RefDot" in node:
            path = _path(node)
            if path:
                yield path[0], ".".join(path[1:3]) if path[0] == "data" else path[1]
                return
        if "Var" in node:
            yield node["Var"]["value"], None
            return
        for part in node.values():
            yield from _references(part)


def _path(node: Node) -> list[str]:
    """Return the names along a reference by dots, from its variable; empty where it is something else."""
    if "Var" in node:
        return [node["Var"]["value"]]
    if "RefDot" not in node:
        return []
    before = _path(node["RefDot"]["refr"])
    return [*before, node["RefDot"]["field"][1]] if before else []
