"""Which texts speak of a thing, and which only look as if they did."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import agent_runtime_ref.curator
from agent_runtime_ref.session_state import speaks_of
from agent_runtime_ref.session_state.words import same_thing

THINGS = Path(agent_runtime_ref.curator.__file__).parent / "rules" / "things.toml"
SPEAK = [
    ("two geese", "goose"),
    ("か\u3099ラス", "か\u3099ラス"),
    ("A plastic box", "plastic"),
    ("Plastics", "plastic"),
    ("the PLASTIC's colour", "plastic"),
    ("a plastic box", "plastics"),
    ("not only plastic", "plastic"),
    ("Plastic, free shipping", "plastic"),
    ("plastic free shipping", "plastic"),
    ("no lid, plastic handle", "plastic"),
    ("plastic-free lid; plastic body", "plastic"),
    ("faux-leather bag", "faux leather"),
    ("kitchen knives", "knife"),
    ("berries", "berry"),
    ("tomatoes", "tomato"),
    ("canvas shoes", "shoe"),
    ("drinking glasses", "glass"),
    ("woolen hat", "wool"),
    ("Café au lait", "cafe"),
    ("塑料收纳盒", "塑料"),
    ("无毒塑料杯", "塑料"),
    ("是不是塑料的", "塑料"),
    ("塑料收纳盒", "plastic"),
    ("Plastic bin", "塑料"),
    ("金属杯", "metal"),
    ("真皮沙发", "皮"),
    ("皮鞋", "皮"),
    ("皮质手环", "leather"),
    ("PU皮", "皮"),
    ("蓝裙", "blue"),
    ("木桌", "wood"),
    ("中辣", "辣"),
    ("麻辣香锅", "spicy"),
    ("烤鱼片", "fish"),
    ("羊毛衫", "wool"),
    ("An orange scarf", "orange-color"),
    ("दाल मखनी", "दाल"),
    ("A book about C++", "c-plus-plus"),
    ("\N{PEANUTS} butter", "peanut"),
    ("علبة بلَاستيك", "بلاستيك"),
    ("A duck down parka", "down"),
]
KEEP_SILENT = [
    ("not made of tin, plastic-free", "plastic"),
    ("not heavy, without plastic", "plastic"),
    ("<i>elastic</i>", "plastic"),
    ("a<b>plastic</b>ity", "plastic"),
    ("か\u3099", "か"),
    ("neural plasticity", "plastic"),
    ("दिल की दवा", "दाल"),
    ("A book about C#", "c-plus-plus"),
    ("plasticine", "plastic"),
    ("thermoplastics", "plastic"),
    ("plastic-free bag", "plastic"),
    ("Plastic free bag", "plastic"),
    ("non-plastic", "plastic"),
    ("without any plastic", "plastic"),
    ("free of plastic", "plastic"),
    ("instead of plastics", "plastic"),
    ("without plastic or rubber", "rubber"),
    ("faux leather", "leather"),
    ("infrared lamp", "red"),
    ("the bus", "bu"),
    ("不含塑料", "塑料"),
    ("无塑料", "plastic"),
    ("仿皮革", "leather"),
    ("不辣", "辣"),
    ("去皮", "皮"),
    ("皮特的书", "皮"),
    ("皮肤护理", "皮"),
    ("Sit down", "down"),
    ("茶几", "tea"),
    ("鳄鱼纹", "fish"),
    ("酒店用品", "alcohol"),
    ("皮卡丘", "leather"),
    ("调皮", "皮"),
    ("蓝牙耳机", "blue"),
    ("红包", "red"),
    ("网红", "red"),
    ("积木", "wood"),
    ("木星", "wood"),
    ("高铁", "铁"),
    ("黄金属于我", "金属"),
    ("和服务", "和服"),
]
DISGUISED = [
    "pla\u200bstic box",
    "pl\u0430stic box",
    "ｐｌａｓｔｉｃ box",
    "plástic box",
    "PLASTIC\u00ad box",
    "pla\u115fs\u3164tic box",
    "pla\ufe0fs\ufffctic box",
    "p\u0336l\u20dda\u0489stic box",
    "<b>pla</b>stic box",
    "pla&shy;st&#105;c box",
    "red<br>plastic<br>box",
    "plastic2go 2plastic",
    "not plastic-free",
    "no longer plastic free",
    "not without plastic",
    "不是不含塑料",
    "没有不含塑料的盒子",
]


@pytest.mark.parametrize(("text", "slug"), SPEAK)
def test_a_text_that_speaks_of_a_thing_is_found(text: str, slug: str) -> None:
    """Plurals, possessives, the other language, and a mention beside a denial."""
    assert speaks_of(text, slug)


@pytest.mark.parametrize(("text", "slug"), KEEP_SILENT)
def test_a_text_that_only_looks_so_is_not(text: str, slug: str) -> None:
    """Longer words, denials, and characters that belong to other words."""
    assert not speaks_of(text, slug)


@pytest.mark.parametrize("text", DISGUISED)
def test_a_disguised_word_is_found(text: str) -> None:
    """Whoever sells it cannot slip it past by letters that look alike or cannot be seen."""
    assert speaks_of(text, "plastic")


@pytest.mark.parametrize(
    ("one", "other"),
    [("plastic", "plastics"), ("塑料", "plastic"), ("faux-leather", "Faux_Leather"), ("灰", "grey")],
)
def test_words_for_one_thing_are_one_thing(one: str, other: str) -> None:
    """A later constraint about plastics is about plastic, whichever language it comes in."""
    assert same_thing(one) == same_thing(other)


def test_what_the_rule_judge_names_is_found_by_its_own_words() -> None:
    """A constraint on a material, a colour or a food that the judge knows finds it in either language."""
    known = tomllib.loads(THINGS.read_text(encoding="utf-8"))["known"]
    missed = [
        (slug, word)
        for category in ("material", "color", "food")
        for slug, words in known[category].items()
        if slug != "domain"
        for word in words
        if not speaks_of(word, slug)
    ]

    # Ways of eating are said of people; what they eat is described by the words that are found.
    assert {slug for slug, _ in missed} <= {"vegetarian", "vegan", "halal"}


def test_different_things_stay_different() -> None:
    """Leather is not faux leather."""
    assert (
        len({same_thing(slug) for slug in ("leather", "faux-leather", "plastic", "plasticity", "皮特")}) == 5
    )
