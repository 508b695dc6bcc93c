"""Layers of a context, for whatever anybody writes into a memory, a message or a tool."""

from __future__ import annotations

from xml.etree import ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_runtime_ref.agent.layers import LAYERS, Context, Item, retrieved_items, tool_item
from agent_runtime_ref.contracts import Hit, RetrievalResult
from agent_runtime_ref.testing import make_record

# Whatever a record may hold; half a surrogate pair is no text, and no record.
TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("<>/&\"'=\n")),
    min_size=1,
    max_size=80,
).filter(lambda text: text.strip() and "\x00" not in text)


def result_of(texts: list[str]) -> RetrievalResult:
    """Return the answer of a read with these contents, in this order."""
    hits = tuple(
        Hit(make_record(f"mem-{rank}", content=text), rank, None, "rule")
        for rank, text in enumerate(texts, start=1)
    )
    return RetrievalResult({}, hits, {}, None, False)


@settings(max_examples=30)
@given(texts=st.lists(TEXTS, min_size=1, max_size=4), said=TEXTS, name=TEXTS, returned=TEXTS)
def test_nothing_leaves_its_layer(texts: list[str], said: str, name: str, returned: str) -> None:
    """The text is the four layers and their items, whatever stands in them: none closes or opens a block."""
    retrieved, _ = retrieved_items(result_of(texts), 10**6)
    result = tool_item(name, returned, status="ok", budget=10**6, record_ids=())
    context = Context(
        (Item.of("instructions", said),), (Item.of("profile", said),), retrieved, tools=[result]
    )

    # XML forbids a few characters that are harmless in a prompt; they are no part of the structure.
    allowed = "".join(one if _is_xml(one) else "\N{REPLACEMENT CHARACTER}" for one in context.rendered())
    root = ElementTree.fromstring(f"<context>{allowed}</context>")
    assert [layer.get("name") for layer in root] == list(LAYERS)
    assert [len(layer) for layer in root] == [1, 1, len(texts), 1]
    assert all(len(item) == 0 for layer in root for item in layer)


def _is_xml(one: str) -> bool:
    code = ord(one)
    return code in (0x9, 0xA, 0xD) or 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or code >= 0x10000


@given(texts=st.lists(TEXTS, max_size=8), budget=st.integers(0, 2_000))
def test_the_budget_is_kept_from_the_lowest_rank(texts: list[str], budget: int) -> None:
    """What entered fits, in the order of rank and without a gap; all that is left out is named."""
    items, left_out = retrieved_items(result_of(texts), budget)

    assert sum(item.size_bytes for item in items) <= budget
    names = [id_ for item in items for id_ in item.record_ids] + [one.record_id for one in left_out]
    assert names == [f"mem-{rank}" for rank in range(1, len(texts) + 1)]
    if left_out:
        assert sum(item.size_bytes for item in items) + left_out[0].size_bytes > budget


@given(text=st.text(max_size=200), budget=st.integers(0, 100))
def test_a_tool_is_cut_at_its_budget(text: str, budget: int) -> None:
    """The shown text is a beginning of the answer, within the bound, and still text."""
    item = tool_item("tool", text, status="ok", budget=budget, record_ids=())

    assert item.text == text or len(item.text.encode()) <= budget
    assert text.startswith(item.text)
    assert ('cut="true"' in item.block) == (item.text != text)
