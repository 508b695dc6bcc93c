"""From what a user says to what is kept from him: findings, as the enforcer holds items to them."""

from __future__ import annotations

import pytest

from agent_runtime_ref.curator import RuleJudge
from agent_runtime_ref.session_state import Enforcer, SessionState, in_turn, merge
from tests.constraining import Preference

# What is said · an item that it names · one that it does not.
SAID = [
    ("please no plastic ones", "Plastic bowl for the kitchen", "Steel bowl for the kitchen"),
    ("no plastic in the kitchen please", "Plastic bowl for the kitchen", "Steel bowl for the kitchen"),
    ("no plastic for the kids' room", "Plastic box for the kids' room", "Pine box for the kids' room"),
    ("I always avoid plastic at home", "Plastic bowl", "Steel bowl for your home"),
    ("I never use plastic when travelling", "塑料水杯", "Steel flask for travelling"),
    ("not the plastic ones please", "Plastic bowl", "Steel bowl"),
    ("no wooden stuff please", "Wood shelf", "Steel shelf"),
    ("no glass things for the balcony", "Glass table", "Steel table for the balcony"),
    ("no paper ones this time", "Paper cups", "Steel cups"),
    ("no nylon stuff please", "Nylon strap", "Canvas strap"),
    ("no scented ones please", "Scented candle", "Plain candle"),
    ("no pork in my food please", "Pork dumplings", "Shrimp dumplings, frozen food"),
    ("no red ones", "Red scarf", "Blue scarf"),
    ("no plastic whatsoever", "Plastic bowl", "Steel bowl"),
    ("no plastic bags in the kitchen please", "Plastic bags", "Plastic bowl for the kitchen"),
    ("I never use bamboo at work", "Bamboo tray", "Steel tray for work"),
    ("I always avoid wool while hiking", "Wool socks", "Bamboo socks for hiking"),
    ("I never want anything made of leather", "Leather belt", "Hand-made canvas belt"),
    ("I never eat peanuts at parties", "Peanut bar", "Oat bar for parties"),
    ("I never buy dairy products", "Dairy spread, a fine product", "Oat spread, a fine product"),
    ("不要塑料的东西", "塑料碗", "不锈钢碗"),
    ("厨房不要塑料的东西", "塑料碗", "厨房用不锈钢碗"),
    ("不要塑料的那种", "Plastic bowl", "Steel bowl"),
    ("不要塑料材质的", "塑料碗", "陶瓷材质的碗"),
    ("不要放在厨房的塑料", "塑料碗", "厨房用不锈钢碗"),
    ("不要玻璃做的", "玻璃杯", "不锈钢杯"),
    ("不要红色的那个", "红色围巾", "蓝色围巾"),
    ("我从来不用塑料制品", "塑料碗", "不锈钢制品"),
    ("我从来不买皮革的东西", "皮革腰带", "帆布腰带"),
    ("我一向不用尼龙的东西", "尼龙背带", "帆布背带"),
    ("我从不吃花生类的东西", "花生酥", "燕麦酥"),
]


@pytest.mark.parametrize(("said", "named", "innocent"), SAID)
def test_what_is_said_keeps_out_what_it_names(said: str, named: str, innocent: str) -> None:
    """Where it holds and words such as "ones" are no part of the thing; nothing else is kept out."""
    findings = RuleJudge().judge(said)
    session = [one for one in findings if one.scope == "session"]
    standing = tuple(
        Preference(one.slug, one.polarity, one.strength, one.category, one.domain)
        for one in findings
        if one.scope == "standing"
    )
    items = [{"id": title, "title": title} for title in (named, innocent)]

    with in_turn(merge(SessionState(), session), standing):
        enforced = Enforcer().apply(items)

    assert findings
    assert [one.item["id"] for one in enforced.dropped] == [named]


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        ("I never drink coffee after lunch", "coffee-after-lunch"),
        ("I never drink coffee in the evening", "coffee-evening"),
        ("I never drink tea in bags", "tea-bags"),
        ("I never want meetings on Fridays", "meetings-fridays"),
        ("I never use emojis in the minutes", "emojis-minutes"),
    ],
)
def test_what_would_be_another_thing_is_not_cut(said: str, slug: str) -> None:
    """An hour, a form, and what is no item: without it a preference would say more than was said."""
    (one,) = RuleJudge().judge(said)

    assert one.slug == slug
