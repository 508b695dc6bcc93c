"""Reads YAML: composed first, each node looked at, constructed last.

Both PyYAML loaders keep the last of two duplicate keys, expand aliases and accept a byte-order mark in
silence, so nothing is constructed before the nodes have been walked. A plain scalar that YAML 1.1 turns into
something its writer hardly meant (a date, an octal, a sexagesimal) becomes a `Surprise`, which no schema
accepts: the error is then the documented one of that field. In an instant field a plain timestamp is the text
as written.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.yaml_source.positions import (
    DEPTH_MAX,
    Location,
    Positions,
    SourceDocument,
    Surprise,
    decoded,
    line_and_column,
    refusal,
)

if TYPE_CHECKING:
    from yaml import Node

__all__ = ["read_yaml"]

_CORE = "tag:yaml.org,2002:"
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,38})")
_FLOAT = re.compile(
    r"[-+]?(0|[1-9][0-9]*)\.[0-9]*([eE][-+]?[0-9]{1,3})?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_TRUE = frozenset({"yes", "true", "on"})


def read_yaml(data: bytes, *, source: str = "<yaml>", instant_fields: Collection[str] = ()) -> SourceDocument:
    """Return the one document in `data`; None where it is empty.

    Raises:
        DocumentUnreadableError: it is no YAML, or it does not mean one thing only; with line and column.
    """
    import yaml

    text = decoded(data, source=source)
    try:
        node = _loader()(text).get_single_node()
    except yaml.reader.ReaderError as error:
        line, column = line_and_column(text, error.position)
        reason = "character that YAML does not permit"
        raise refusal(reason, source=source, line=line, column=column) from error
    except yaml.MarkedYAMLError as error:
        raise _from_yaml(error, source) from error
    reader = _Reader(source, frozenset(instant_fields))
    value = reader.value(node, (), None) if node is not None else None
    return SourceDocument(value, reader.positions, source)


def _from_yaml(error: Any, source: str) -> Exception:
    """Return our refusal for one of PyYAML's, in one line."""
    mark = error.problem_mark or error.context_mark
    context = error.context or ""
    problem = error.problem or "no YAML"
    if "single document" in context:
        problem = "a second document begins here"
    elif "'\\t'" in problem:
        problem = "tab where YAML wants spaces"
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return refusal(" ".join(problem.split()), source=source, line=line, column=column)


@cache
def _loader() -> type[Any]:
    """Return the composing loader: aliases are refused, depth is bounded, before a node exists."""
    import yaml

    composer_error: Any = yaml.composer.ComposerError
    peek_event: Any = yaml.SafeLoader.peek_event

    class Loader(yaml.SafeLoader):
        depth = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = peek_event(self)
            if isinstance(event, yaml.AliasEvent):
                raise composer_error(None, None, f"alias `*{event.anchor}`; write it out", event.start_mark)
            self.depth += 1
            if self.depth > DEPTH_MAX:
                problem = f"nested deeper than {DEPTH_MAX} levels"
                raise composer_error(None, None, problem, event.start_mark)
            node = super().compose_node(parent, index)
            self.depth -= 1
            return node

    return Loader


class _Reader:
    """Turns nodes into values and remembers where each stood."""

    def __init__(self, source: str, instant_fields: frozenset[str]) -> None:
        self.positions = Positions()
        self._source = source
        self._instants = instant_fields

    def value(self, node: Node, location: Location, field: str | None) -> object:
        """Return the value of a node; `field` is the nearest key around it."""
        import yaml

        self.positions.values[location] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if isinstance(node, yaml.MappingNode):
            self._demand(node, "map")
            return self._mapping(node, location)
        if isinstance(node, yaml.SequenceNode):
            self._demand(node, "seq")
            return [self.value(item, (*location, index), field) for index, item in enumerate(node.value)]
        return self._scalar(node, field)

    def _mapping(self, node: Any, location: Location) -> dict[str, object]:
        """Return a mapping, refusing duplicate keys, merge keys and keys that are no strings."""
        found: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            if key in found:
                raise self._refuse(f"duplicate key `{key}`", key_node)
            place = (*location, key)
            self.positions.keys[place] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            found[key] = self.value(value_node, place, key)
        return found

    def _key(self, node: Any) -> str:
        """Return the text of a key."""
        if node.tag == _CORE + "merge":
            raise self._refuse("merge key `<<`; write the fields out", node)
        if not isinstance(node.value, str):
            raise self._refuse("key that is a list or a mapping", node)
        if node.tag not in (_CORE + "str", _CORE + "value"):
            raise self._refuse(f"key `{node.value}` is not read as a string; put it in quotes", node)
        return node.value

    def _scalar(self, node: Any, field: str | None) -> object:
        """Return a scalar by its tag, explicit or resolved."""
        text: str = node.value
        kind = node.tag.removeprefix(_CORE)
        if kind in ("str", "value"):
            return text
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() in _TRUE
        if kind == "int":
            return int(text) if _INTEGER.fullmatch(text) else Surprise(text, "number")
        if kind == "float":
            return _number(text)
        if kind == "timestamp":
            return text if field in self._instants else Surprise(text, "timestamp")
        raise self._refuse(f"tag `{node.tag}` is not permitted", node)

    def _demand(self, node: Node, kind: str) -> None:
        """Refuse a collection with a tag of its own."""
        if node.tag != _CORE + kind:
            raise self._refuse(f"tag `{node.tag}` is not permitted", node)

    def _refuse(self, reason: str, node: Node) -> Exception:
        """Return the refusal at a node."""
        mark = node.start_mark
        return refusal(reason, source=self._source, line=mark.line + 1, column=mark.column + 1)


def _number(text: str) -> object:
    """Return a decimal float; NaN and infinity go through, so that the field's own sentence refuses them."""
    if not _FLOAT.fullmatch(text):
        return Surprise(text, "number")
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
