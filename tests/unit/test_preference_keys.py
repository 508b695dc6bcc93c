"""Keys of preferences are derived from their parts, and read as words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_runtime_ref.contracts.key_part import part
from agent_runtime_ref.curator.rules.things import thing_of
from agent_runtime_ref.errors import PreferenceInvalidError
from agent_runtime_ref.preferences import Key
from agent_runtime_ref.preferences.keys import slug_of
from agent_runtime_ref.preferences.offered import finding_of


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        ("I always hate plastic", "plastic"),
        ("no plastic please", "plastic"),
        ("Never give me anything with peanuts", "peanuts"),
        ("I can't stand cilantro", "cilantro"),
        ("I like coffee without sugar", "coffee-without-sugar"),
        ("一直讨厌塑料", "塑料"),
        ("不要塑料", "塑料"),
        ("我最不喜欢含有塑料的东西", "塑料"),
        ("我很喜欢都市风格的", "都市风格"),
        ("love", "love"),
    ],
)
def test_a_slug_is_what_a_sentence_is_about(content: str, slug: str) -> None:
    """What says whether, how much and who is left out; words of any script stay legible."""
    assert slug == slug_of(content)


def test_a_key_that_is_offered_is_not_looked_at() -> None:
    """An input with `key` and one with `canonical_key` for the same preference have one derived key."""
    parts = {"content": "I always hate plastic", "category": "Material", "polarity": "dislike"}
    one = finding_of(parts | {"key": "dislike:material:3ed27e94957c"})
    other = finding_of(parts | {"content": "不要塑料", "slug": "Plastic", "canonical_key": "plastic"})

    assert Key("dislike", "material", "general", "plastic") == Key.of(
        one.polarity, one.category, one.domain, one.slug
    )
    assert (one.category, one.domain, one.slug) == (other.category, other.domain, other.slug)


@pytest.mark.parametrize(
    ("offered", "name"),
    [
        ({"content": " ", "category": "color", "polarity": "like"}, "content"),
        ({"content": "blue", "category": "", "polarity": "like"}, "category"),
        ({"content": "blue", "category": "color", "polarity": "meh"}, "polarity"),
        ({"content": "...", "category": "color", "polarity": "like"}, "slug"),
        ({"content": 7, "category": "color", "polarity": "like"}, "content"),
        ({"content": "blue", "category": "color", "polarity": "like", "keys_to_supersede": "x"},
         "keys_to_supersede"),
    ],
)  # fmt: skip
def test_what_lacks_a_part_is_no_preference(offered: dict[str, object], name: str) -> None:
    """The error names the part."""
    with pytest.raises(PreferenceInvalidError) as raised:
        finding_of(offered)

    assert name == raised.value.values["name"]


def test_hard_is_only_what_was_stated() -> None:
    """Strength counts where the offer says that the user said it himself; an inference is soft."""
    parts = {"content": "blue", "category": "color", "polarity": "like", "strength": "hard"}

    assert finding_of(parts).strength == "soft"
    assert finding_of(parts | {"stated": True}).strength == "hard"
    assert finding_of(parts | {"stated": "yes"}).strength == "soft"


@pytest.mark.parametrize(
    "word", ["दाल", "दिल", "प्लास्टिक", "พลาสติก", "প্লাস্টিক", "பிளாஸ்டிக்", "ပလတ်စတစ်", "ប្លាស្ទិក", "شكولاتة", "пластик"]
)
def test_a_word_of_any_script_is_one_word(word: str) -> None:
    """Also where vowels are marks on letters: else two things have one key, and none can be read."""
    assert part(word) == word
    assert slug_of(word) == word
    assert thing_of(word).slug == word


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        ("I hate C++", "c-plus-plus"),
        ("I hate C#", "c-sharp"),
        ("I hate C", "c"),
        ("I hate \N{PEANUTS}", "peanuts"),
        ("讨厌\N{SHRIMP}", "shrimp"),
        ("follow #news", "follow-news"),
    ],
)
def test_a_sign_that_makes_another_word_is_spelt(content: str, slug: str) -> None:
    """So are pictures; else one thing takes the other's place, or is it that the user likes."""
    assert slug_of(content) == slug


def test_points_over_letters_are_no_other_word() -> None:
    """Vowel points that a script mostly leaves out, and marks heaped on letters, make no key of their own."""
    assert part("كَلْب") == part("كلب")
    assert part("פְּלַסְטִיק") == part("פלסטיק")
    assert part("z\u0337\u0322a\u0336l\u0334g\u0338o\u0335") == "zalgo"
    assert part("क\u094d\u200dष") == "क्ष"


@given(st.text(max_size=200) | st.text("दािल्\u200dเ็ো\u09c7\u09be\u0301\u0327e-٠َ", max_size=20))
def test_a_part_is_its_own_part(text: str) -> None:
    """Deriving twice is deriving once, and the divider of keys is in no part."""
    derived = part(text)

    assert derived == part(derived)
    assert ":" not in derived
    assert len(derived) <= 64


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_a_derived_key_is_read_as_it_was_made(category: str, domain: str, slug: str) -> None:
    """Whatever the parts are, the key either cannot be made or comes back with the same parts."""
    try:
        key = Key.of("like", category, domain, slug)
    except PreferenceInvalidError:
        return

    assert key == Key.parsed(str(key))
    assert key == key.opposite.opposite


@pytest.mark.parametrize(
    "text",
    [None, "", "dislike:material:3ed27e94957c", "hate:a:b:c", "like:A:b:c", "like:a::c", "like:a:b:c:d"],
)
def test_what_code_did_not_derive_is_no_key(text: str | None) -> None:
    """Three parts, another polarity, unfolded or empty parts: none of them is a key."""
    assert Key.parsed(text) is None
