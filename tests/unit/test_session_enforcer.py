"""What code keeps to, whatever a model passed on: the second channel of P_t."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError
from agent_runtime_ref.session_state import Enforcer, ItemView, SessionState, in_turn, merge
from tests.constraining import Preference, about, budget, finding, like
from tests.enforcing import ITEMS, enforced, ids


def test_a_call_that_passes_nothing_is_enforced_all_the_same() -> None:
    """No exclusions, no budget: what was said two turns ago is kept to."""
    result = enforced(finding("plastic"), budget("30"))

    assert ids(result) == ["tin"]
    assert {one.item["id"]: one.reasons for one in result.dropped} == {
        "box": ("dislike:material:plastic",),
        "bag": ("budget:max",),
    }


def test_soft_ones_cost_and_wishes_earn() -> None:
    """A soft dislike drops nothing, it goes last; a wish goes first, a hard one before a soft one."""
    result = enforced(finding("plastic", strength="soft"), like("blue", category="color"))
    assert ids(result) == ["bag", "tin", "box"]

    result = enforced(like("tin"), like("blue", category="color", strength="hard"))
    assert ids(result) == ["bag", "tin", "box"]


def test_the_category_of_the_conversation_is_a_wish() -> None:
    """What the conversation is about comes first and keeps nothing else out."""
    assert ids(enforced(about("bag"))) == ["bag", "box", "tin"]


def test_items_of_equal_score_keep_their_order() -> None:
    """The picker's order stands where the constraints say nothing; its scores count beside theirs."""
    assert ids(enforced()) == ["box", "tin", "bag"]
    with in_turn(merge(SessionState(), [like("tin")])):
        picked = Enforcer(score=lambda item: {"bag": 0.9}.get(item["id"], 0.1)).apply(ITEMS)
    assert ids(picked) == ["bag", "tin", "box"]


def test_what_a_model_passes_adds_and_takes_nothing() -> None:
    """Its exclusions and its budget are enforced too; a wider budget does not widen the user's."""
    assert ids(enforced(exclude=["tins"])) == ["box", "bag"]
    assert ids(enforced(budget="$15")) == ["box"]
    assert ids(enforced(budget("15"), budget="$1000")) == ["box"]
    assert ids(enforced(budget("15"), budget=1000)) == ["box"]
    with pytest.raises(DocumentValueError, match="budget"):
        enforced(budget="as cheap as can be")


def test_a_soft_budget_costs_and_a_least_price_counts() -> None:
    """Around thirty is no wall; at least fifteen is one."""
    assert ids(enforced(budget("30", strength="soft"))) == ["box", "tin", "bag"]
    assert ids(enforced(budget("15", bound="min"), budget("30"))) == ["tin"]


@pytest.mark.parametrize(
    ("price", "reasons"),
    [
        ({"price": 300, "currency": "EUR"}, ("rate_unknown",)),
        ({"price": "¥20"}, ("rate_unknown",)),
        ({}, ("price_unknown",)),
        ({"price": None}, ("price_unknown",)),
        ({"price": "call us"}, ("price_unknown",)),
        ({"price": float("nan"), "currency": "USD"}, ("price_unknown",)),
        ({"price": -1, "currency": "USD"}, ("price_unknown",)),
        ({"price": "$10-$40"}, ("budget:max",)),
        ({"price": {"amount": 31, "currency": "usd"}}, ("budget:max",)),
        ({"price_usd": 31}, ("budget:max",)),
    ],
)
def test_what_cannot_be_told_to_be_within_a_budget_is_not(
    price: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    """Another currency is not compared without a rate, and no price is no bargain; the reason says which."""
    result = enforced(budget("30"), items=[{"id": "x", "title": "Tin", **price}])

    assert [one.reasons for one in result.dropped] == [reasons]


def test_a_rate_makes_currencies_comparable() -> None:
    """With a rate, 200 yuan are less than 30 dollars."""
    with in_turn(merge(SessionState(), [budget("30")])):
        rates = {("CNY", "USD"): Decimal("0.14")}
        enforcer = Enforcer(rates=lambda one, other: rates.get((one, other)))
        result = enforcer.apply([{"id": "a", "price": "200元"}, {"id": "b", "price": "300元"}])

    assert ids(result) == ["a"]


def test_a_budget_without_a_currency_is_compared_and_says_so() -> None:
    """It most likely means the shop's own; the verdict does not keep quiet about it."""
    result = enforced(budget("30", None))

    assert [one.reasons for one in result.kept] == [("currency_assumed",)] * 2
    assert [one.reasons for one in result.dropped] == [("currency_assumed", "budget:max")]


def test_a_standing_hard_dislike_filters_like_one_of_the_session() -> None:
    """Hard ones drop, soft ones cost, likes earn; whoever keeps them."""
    assert ids(enforced(standing=(Preference("plastic"),))) == ["tin", "bag"]
    assert ids(enforced(standing=(Preference("plastic", strength="soft"),))) == ["tin", "bag", "box"]
    assert ids(enforced(standing=(Preference("canvas", polarity="like"),))) == ["bag", "box", "tin"]


def test_the_users_later_word_sets_a_standing_dislike_aside_for_this_session() -> None:
    """What he says himself counts, what was inferred of him does not."""
    standing = (Preference("plastic"),)

    assert "box" in ids(enforced(like("plastics"), standing=standing))
    assert "box" not in ids(enforced(like("plastic", stated=False), standing=standing))
    assert "box" not in ids(enforced(like("cotton"), standing=standing))


def test_a_softer_word_of_the_same_kind_sets_no_standing_dislike_aside() -> None:
    """Who would rather not have today what he never has has not said that he will take it."""
    standing = (Preference("plastic"),)

    assert "box" not in ids(enforced(finding("plastics", strength="soft"), standing=standing))
    here = [like("plastic"), finding("plastic", domain="shoes", strength="soft")]
    with in_turn(merge(SessionState(), here), standing):
        assert "box" not in ids(Enforcer(domain="shoes").apply(ITEMS))
        assert "box" in ids(Enforcer(domain="home").apply(ITEMS))


def test_what_was_said_of_one_domain_lifts_nothing_of_another() -> None:
    """Where nobody says what is picked, both count; the wall is the safe one of them."""
    for said in (
        [finding("plastic", domain="travel"), like("plastic", domain="home")],
        [finding("plastic"), like("plastic", domain="home")],
    ):
        assert "box" not in ids(enforced(*said))
    assert "box" in ids(enforced(finding("plastic", domain="home"), like("plastic", domain="home")))


@pytest.mark.parametrize(
    ("of_rule", "picked"),
    [("home", "Home"), ("Home", "home"), ("pet-food", "pet food"), ("Pet_Food", "pet-food"), ("home", " ")],
)
def test_domains_are_compared_as_parts_of_keys(of_rule: str, picked: str) -> None:
    """Case and the sign between words are no difference, and a domain without a word is none."""
    with in_turn(merge(SessionState(), [finding("plastic", domain=of_rule)])):
        assert "box" not in ids(Enforcer(domain=picked).apply(ITEMS))
    with in_turn(SessionState(), [Preference("plastic", domain=of_rule)]):
        assert "box" not in ids(Enforcer(domain=picked).apply(ITEMS))
        assert "box" in ids(Enforcer(domain="garden").apply(ITEMS))


def test_a_constraint_counts_in_its_domain() -> None:
    """Said of shoes it says nothing of boxes, where the application says what is picked; else it counts."""
    said = [finding("plastic", domain="shoes")]
    with in_turn(merge(SessionState(), said)):
        assert "box" in ids(Enforcer(domain="home").apply(ITEMS))
        assert "box" not in ids(Enforcer(domain="shoes").apply(ITEMS))
        assert "box" not in ids(Enforcer().apply(ITEMS))
    # Of two about one thing the later counts where both do.
    with in_turn(merge(SessionState(), [finding("plastic"), like("plastic", domain="shoes")])):
        assert "box" in ids(Enforcer(domain="shoes").apply(ITEMS))
        assert "box" not in ids(Enforcer(domain="home").apply(ITEMS))


def test_an_item_cannot_choose_what_it_is_held_to() -> None:
    """A domain that an item claims for itself takes nothing from a constraint."""
    claims = [{"id": "x", "title": "plastic thing", "domain": "elsewhere"}]

    assert ids(enforced(finding("plastic", domain="shoes"), items=claims)) == []


def test_the_innocent_live() -> None:
    """Neither a denial, nor a longer word, nor the name of a field is a hit."""
    innocent = [
        {"id": "free", "title": "Plastic-free soap"},
        {"id": "book", "title": "Brain plasticity, a primer"},
        {"id": "flag", "title": "Soap", "attributes": {"plastic": False, "plastic_free": True}},
        {"id": "link", "title": "Soap", "url": "https://shop.example/no-plastic/plastic"},
        {"id": "cn", "title": "不含塑料的肥皂"},
    ]
    assert len(ids(enforced(finding("plastic"), items=innocent))) == len(innocent)

    jeans = {"id": "red", "title": "Red bag", "color": "red", "description": "Goes well with blue jeans."}
    assert ids(enforced(finding("blue", category="color"), items=[jeans])) == ["red"]


def test_words_are_found_wherever_they_stand() -> None:
    """In lists, in nested attributes, in the other language."""
    guilty = [
        {"id": "1", "title": "Box", "tags": ["storage", "plastics"]},
        {"id": "2", "title": "Box", "specs": {"parts": [{"material": "Plastic"}]}},
        {"id": "3", "title": "塑料盒"},
    ]
    assert ids(enforced(finding("plastic"), items=guilty)) == []


@pytest.mark.parametrize(
    ("attributes", "is_kept"),
    [
        ({"plastic": True}, False),
        ({"contains_plastic": True}, False),
        ({"composition": {"cotton": "60%", "plastic": "40 %"}}, False),
        ({"composition": {"cotton": 100, "plastic": 0}}, True),
        ({"composition": {"cotton": "100%", "plastic": "0%"}}, True),
        ({"plastic": False}, True),
        ({"plastic": "yes"}, False),
        ({"plastic": " True "}, False),
        ({"plastic": "no"}, True),
        ({"plastic": Decimal("0.4")}, False),
        ({"plastic": Decimal("NaN")}, True),
        ({"no_plastic": True, "plastic_free": True, "non-plastic": 1}, True),
    ],
)
def test_the_name_of_a_part_counts_where_it_says_yes_or_how_much(
    attributes: dict[str, Any], is_kept: bool
) -> None:
    """Shops write what is in a thing as flags and shares, too."""
    items = [{"id": "x", "title": "Box", "attributes": attributes}]

    assert bool(ids(enforced(finding("plastic"), items=items))) == is_kept


def test_an_item_that_cannot_be_looked_at_whole_is_kept_out() -> None:
    """A word behind twenty thousand characters, or ten levels down, is a word that somebody hid."""
    deep: Any = "plastic"
    for _ in range(10):
        deep = {"more": [deep]}
    hiding = [
        {"id": "long", "title": "x " * 15_000 + "plastic"},
        {"id": "deep", "title": "Box", "more": deep},
    ]

    result = enforced(finding("plastic"), items=hiding)

    assert [one.reasons for one in result.dropped] == [("not_readable",), ("not_readable",)]
    assert ids(enforced(finding("plastic", strength="soft"), items=hiding)) == ["long", "deep"]


@pytest.mark.parametrize(
    "item",
    [
        {"title": "Blue dress", "color": ""},
        {"title": "Blue dress", "color": " "},
        {"title": "Blue dress", "color": "see photo"},
        {"title": "Blue dress", "color": ["red", "see photo"]},
        {"title": "Dress", "color": "", "attributes": {"color": "blue"}},
        {"title": "Dress", "color": "red", "attributes": {"color": "blue"}},
        {"title": "Dress", "color": "red", "specs": {"Colours": ["blue"]}},
        {"title": "Dress", "color": "red", "variants": [{"color": "blue"}]},
        {"title": "Dress", "color": "red", "attributes": [{"name": "color", "value": "blue"}]},
    ],
)
def test_an_attribute_speaks_for_an_item_only_with_a_known_value(item: dict[str, Any]) -> None:
    """A blank or empty phrase takes nothing from what the rest says, and one part nothing from another."""
    result = enforced(finding("blue", category="color"), items=[item])

    assert [one.reasons for one in result.dropped] == [("dislike:color:blue",)]


@pytest.mark.parametrize(
    ("category", "slug", "item", "is_kept"),
    [
        ("color", "blue", {"title": "Bag, goes with blue jeans", "Colour": "dark red"}, True),
        ("color", "blue", {"title": "Bag for blue jeans", "color": "红色"}, True),
        ("size", "large", {"title": "Large pattern shirt", "size": "M / L"}, True),
        ("size", "large", {"title": "Large shirt", "size": "2 photos"}, False),
        ("size", "large", {"title": "Large shirt", "size": "large"}, False),
        ("brand", "acme", {"title": "Acme dress", "brand": "see label"}, False),
    ],
)
def test_what_a_known_value_says_counts_before_the_description(
    category: str, slug: str, item: dict[str, Any], is_kept: bool
) -> None:
    """Colors and sizes are known; no list of brands could be whole, so there every text counts."""
    assert bool(enforced(finding(slug, category=category), items=[item]).items) == is_kept


@pytest.mark.parametrize(
    "title",
    [
        b"Plastic box",
        (word for word in ["plastic"]),
        {"plastic": 1}.keys(),
        object(),
        {b"plastic": True},
        "a box of \u202ecitsalp",
        [[bytearray(b"plastic")]],
    ],
    ids=["bytes", "generator", "keys", "object", "bytes as a name", "turned round", "nested"],
)
def test_what_is_of_no_readable_kind_keeps_an_item_out(title: Any) -> None:
    """Words in a form that nobody reads are words that somebody hid; numbers and nothing hold none."""
    result = enforced(finding("plastic"), items=[{"id": "x", "title": title}])

    assert [one.reasons for one in result.dropped] == [("not_readable",)]
    plain = {"id": "x", "title": None, "weight": 1.5, "price": Decimal("2"), "new": True, "tags": ("tin",)}
    assert ids(enforced(finding("plastic"), items=[plain])) == ["x"]


def test_an_item_of_another_form_needs_a_reader() -> None:
    """What is no mapping is refused, not passed; an application says how its items are read."""
    with in_turn(merge(SessionState(), [finding("plastic")])):
        with pytest.raises(DocumentTypeError, match="item"):
            Enforcer().apply(["a plastic box"])
        result = Enforcer(view=lambda item: ItemView((item,))).apply(["a plastic box", "a tin"])
    assert result.items == ("a tin",)


def test_an_inferred_wish_for_one_domain_does_not_lift_what_was_said_of_all() -> None:
    """The user's own word counts in every domain until he takes it back."""
    guess = like("plastic", domain="shoes", stated=False)
    with in_turn(merge(SessionState(), [finding("plastic"), guess])):
        assert "box" not in ids(Enforcer(domain="shoes").apply(ITEMS))


@pytest.mark.parametrize(
    ("exclude", "kept"), [("wool", ["a silk hat"]), (None, ["a wool hat", "a silk hat"])]
)
def test_one_word_in_the_place_of_a_list_is_that_word(exclude: str | None, kept: list[str]) -> None:
    """A model that passes a bare word means it; its letters are no words, and nothing is nothing."""
    hats = [{"title": "a wool hat"}, {"title": "a silk hat"}]
    assert [item["title"] for item in enforced(items=hats, exclude=exclude).items] == kept


@pytest.mark.parametrize("exclude", [5, [5], [None], [["wool"]]])
def test_what_is_no_list_of_words_is_refused(exclude: Any) -> None:
    """Left out in silence it would pass for enforced."""
    with in_turn(SessionState()), pytest.raises(DocumentTypeError, match="must be a list of words"):
        Enforcer().apply([{"title": "a wool hat"}], exclude=exclude)


@pytest.mark.parametrize(
    "price", ["from $45", "From 45 USD", "$45+", "$45 and up", "starting at $45", "45元起"]
)
def test_a_least_price_is_within_no_greatest(price: str) -> None:
    """What it comes to in the end may be more, and unknown counts as beyond; a least budget it may meet."""
    item = {"id": "bag", "title": "Canvas bag", "price": price}
    currency = "CNY" if "元" in price else "USD"

    assert enforced(budget("50", currency), items=[item]).dropped[0].reasons == ("price_unknown",)
    assert ids(enforced(budget("40", currency, bound="min"), items=[item])) == ["bag"]
    assert enforced(budget("40", currency), items=[item]).dropped[0].reasons == ("budget:max",)


@pytest.mark.parametrize("price", ["from $40 to $45", "$40-45", "$45", "Shipped from Spain: $45"])
def test_a_price_with_an_end_is_within(price: str) -> None:
    """A range has a greatest, and a word elsewhere says nothing of the price."""
    assert ids(enforced(budget("50"), items=[{"id": "bag", "title": "Bag", "price": price}])) == ["bag"]
