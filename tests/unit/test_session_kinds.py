"""What belongs to a kind, and what only looks so."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from agent_runtime_ref.session_state import Enforcer, SessionState, in_turn, merge
from agent_runtime_ref.session_state.kinds import speaks_of_kind
from tests.constraining import finding, like

BELONG = [
    ("Walnut cake", "nut"),
    ("Roasted hazelnuts", "nuts"),
    ("Peanut bar", "nut"),
    ("花生酱", "坚果"),
    ("核桃仁", "nut"),
    ("Cashew cream", "tree-nuts"),
    ("Groundnut oil", "peanut"),
    ("Grilled prawns", "shellfish"),
    ("鲜虾云吞", "shellfish"),
    ("Crab cakes", "seafood"),
    ("Smoked salmon", "fish"),
    ("Aged cheddar", "dairy"),
    ("butter cookies", "milk"),
    ("peanut butter cookies with butter", "milk"),
    ("Barley soup", "gluten"),
    ("wheat beer", "gluten"),
    ("Fried tofu", "soy"),
    ("Hummus with tahini", "sesame"),
    ("Lemon meringue", "egg"),
    ("PVC clutch", "plastic"),
    ("Vinyl bag", "塑料"),
    ("亚克力盒", "plastic"),
    ("Suede boots", "leather"),
    ("牛皮钱包", "leather"),
]
INNOCENT = [
    ("Coconut water", "nut"),
    ("Nutmeg", "nut"),
    ("Doughnut", "nut"),
    ("Butternut squash", "nut"),
    ("Walnut wood bowl", "nut"),
    ("walnut-free cake", "nut"),
    ("Peanut bar", "tree-nut"),
    ("Hazelnut spread", "peanut"),
    ("Mixed nuts", "walnut"),
    ("Walnut cake", "hazelnut"),
    ("Smoked salmon", "shellfish"),
    ("Buckwheat noodles", "wheat"),
    ("Eggplant dip", "egg"),
    ("Cocoa butter lotion", "milk"),
    ("Peanut butter", "milk"),
    ("Oyster mushrooms", "shellfish"),
    ("neural plasticity", "plastic"),
    ("A vinyl record", "plastic"),
    ("faux suede boots", "leather"),
    ("牛皮纸袋", "leather"),
    ("Polyester scarf", "plastic"),
]


@pytest.mark.parametrize(("text", "slug"), BELONG)
def test_what_belongs_to_a_kind_is_found(text: str, slug: str) -> None:
    """By the usual words, in English and Chinese."""
    assert speaks_of_kind(text, slug)


@pytest.mark.parametrize(("text", "slug"), INNOCENT)
def test_what_does_not_is_left_alone(text: str, slug: str) -> None:
    """Longer words, other things of the name, siblings, and the kind itself where a part of it was named."""
    assert not speaks_of_kind(text, slug)


def test_a_dislike_holds_for_what_belongs_to_it_and_a_wish_for_its_own_word() -> None:
    """Whoever wants leather has not asked for suede; whoever is allergic to nuts is shown no walnuts."""
    items = [{"title": "Walnut cake"}, {"title": "Suede bag"}]
    allergy = finding("nut", category="allergy", domain="food")
    with in_turn(merge(SessionState(), [allergy, like("leather")])):
        enforced = Enforcer().apply(items)

    assert [(one.item["title"], one.reasons) for one in enforced.dropped] == [
        ("Walnut cake", ("dislike:allergy:nut",))
    ]
    assert [(one.item["title"], one.reasons) for one in enforced.kept] == [("Suede bag", ())]


def test_every_word_of_the_table_finds_itself() -> None:
    """A word that an innocent phrase, or the border of words, keeps from ever being found is no use."""
    text = files("agent_runtime_ref.session_state").joinpath("kinds.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["kind"]

    assert [
        word for row in rows for word in row.get("of", ()) if not speaks_of_kind(word, row["names"][0])
    ] == []
    assert all(row["reason"] for row in rows)
