"""The context of a turn: layers of items, what of them entered, and the text that a model is shown.

A layer is a block, and an item an element in it. Whatever an item says is escaped: it can neither close its
block nor open another, so no memory, message or tool result passes for a layer that it is not in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.contracts import RetrievalResult
from agent_runtime_ref.recall.render import attribute, element_text, render_memory

__all__ = [
    "LAYERS",
    "Context",
    "Item",
    "Layer",
    "LeftOut",
    "Manifest",
    "retrieved_items",
    "tool_item",
]

LAYERS = ("static", "session", "retrieved", "tool")


@dataclass(frozen=True, slots=True)
class Item:
    """One part of a layer. `block` is its element, escaped where it was made."""

    kind: str  # instructions, profile, constraints, preferences, memory or the name of a tool
    text: str  # as it was before it was escaped
    block: str
    record_ids: tuple[str, ...] = ()
    status: str = ""  # of a tool's result: ok, refused or failed

    @classmethod
    def of(cls, kind: str, text: str, *, record_ids: Sequence[str] = ()) -> Item:
        """Return an item whose text is escaped into an element of its own."""
        return cls(
            kind, text, f"<item{attribute('kind', kind)}>{element_text(text)}</item>", tuple(record_ids)
        )

    @property
    def size_bytes(self) -> int:
        """How much of a budget it takes: its block as UTF-8."""
        return len(self.block.encode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Layer:
    """One of the four parts of a context."""

    name: str  # static, session, retrieved or tool
    items: tuple[Item, ...]

    @property
    def record_ids(self) -> tuple[str, ...]:
        """The records that entered with it, in order."""
        return tuple(one for item in self.items for one in item.record_ids)

    def rendered(self) -> str:
        """Return the layer as a block; an empty string where nothing is in it."""
        if not self.items:
            return ""
        blocks = "\n".join(item.block for item in self.items)
        return f"<context_layer{attribute('name', self.name)}>\n{blocks}\n</context_layer>"

    def to_document(self) -> dict[str, Any]:
        """Return what entered, without its text."""
        items = [
            {"kind": one.kind, "bytes": one.size_bytes, "record_ids": [*one.record_ids]} for one in self.items
        ]
        return {"name": self.name, "items": items, "record_ids": [*self.record_ids]}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that the policy let out and the budget did not let in."""

    record_id: str
    rank: int  # from 1
    size_bytes: int
    reason: str = "budget"

    def to_document(self) -> dict[str, Any]:
        """Return it as a mapping of plain values."""
        return {
            "record_id": self.record_id,
            "rank": self.rank,
            "bytes": self.size_bytes,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Manifest:
    """What entered a context, what did not, and by which decision."""

    layers: tuple[Layer, ...]
    left_out: tuple[LeftOut, ...]
    retrieved_bytes: int
    retrieved_bytes_max: int
    excluded: dict[str, int]  # records that the policy kept out, by reason
    decision_id: str

    def to_document(self) -> dict[str, Any]:
        """Return the manifest as a mapping of plain values; it holds no content."""
        return {
            "layers": [layer.to_document() for layer in self.layers],
            "left_out": [one.to_document() for one in self.left_out],
            "retrieved_bytes": self.retrieved_bytes,
            "retrieved_bytes_max": self.retrieved_bytes_max,
            "excluded": dict(self.excluded),
            "decision_id": self.decision_id,
        }


@dataclass(slots=True)
class Context:
    """The layers of one turn while they are built; tool results come in as they are called for."""

    static: tuple[Item, ...] = ()
    session: tuple[Item, ...] = ()
    retrieved: tuple[Item, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    excluded: dict[str, int] = field(default_factory=dict)
    tools: list[Item] = field(default_factory=list)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All four, in their order."""
        parts = (self.static, self.session, self.retrieved, tuple(self.tools))
        return tuple(Layer(name, items) for name, items in zip(LAYERS, parts, strict=True))

    def rendered(self) -> str:
        """Return the text that a model is shown, a block for each layer that has something in it."""
        return "\n".join(filter(None, (layer.rendered() for layer in self.layers)))

    def manifest(self, *, budget: int, decision_id: str) -> Manifest:
        """Return what entered and what did not."""
        used = sum(item.size_bytes for item in self.retrieved)
        return Manifest(self.layers, self.left_out, used, budget, dict(self.excluded), decision_id)


def retrieved_items(result: RetrievalResult, budget: int) -> tuple[tuple[Item, ...], tuple[LeftOut, ...]]:
    """Return the records of a read that fit into `budget` bytes, and those that do not.

    Those left out are the lowest ranks: a record that would fit behind one that does not stays out too, since
    a context with a gap says that what is missing matters less than what is there.
    """
    items: list[Item] = []
    left_out: list[LeftOut] = []
    used = 0
    for hit in result.hits:
        record = hit.record
        item = Item("memory", record.content, render_memory(record, hit.rank), (record.memory_id,))
        used += item.size_bytes
        if left_out or used > budget:
            left_out.append(LeftOut(record.memory_id, hit.rank, item.size_bytes))
        else:
            items.append(item)
    return tuple(items), tuple(left_out)


def tool_item(name: str, text: str, *, status: str, budget: int, record_ids: Sequence[str]) -> Item:
    """Return the result of a tool, cut where it is larger than `budget` bytes."""
    data = text.encode("utf-8", "replace")
    is_cut = len(data) > budget
    shown = data[:budget].decode("utf-8", "ignore") if is_cut else text
    head = attribute("tool", name) + attribute("status", status) + (' cut="true"' if is_cut else "")
    block = f"<tool_result{head}>{element_text(shown)}</tool_result>"
    return Item(name, shown, block, tuple(record_ids), status)
