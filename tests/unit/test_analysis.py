"""What text is found by."""

from __future__ import annotations

import pytest

from agent_runtime_ref.errors import TextError
from agent_runtime_ref.recall.analysis import label_terms, normalize_text, query_terms, record_terms


def test_words_are_lower_case_and_split_at_everything_else() -> None:
    """Letters and digits make words; underscore, hyphen and punctuation separate."""
    assert query_terms("Create_ticket: TICKET-42, don't") == ("create", "ticket", "42", "don", "t")


def test_chinese_and_japanese_become_pairs() -> None:
    """A run of ideographs or kana becomes its pairs; words around it stay whole."""
    assert query_terms("SQLite数据库テスト") == ("sqlite", "数据", "据库", "库テ", "テス", "スト")


def test_a_single_character_query_finds() -> None:
    """A run of one character is that character; records hold the single characters of every run."""
    assert query_terms("库") == ("库",)
    assert "库" in record_terms(None, "数据库")
    assert "库" not in query_terms("数据库")


def test_pairs_do_not_reach_over_a_border() -> None:
    """Neither punctuation nor the border between summary and content is bridged."""
    assert query_terms("记，忆") == ("记", "忆")
    assert "记忆" not in record_terms("记", "忆")


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("ＦＵＬＬ", "full"),
        ("Straße", "STRASSE"),
        ("ﬁle", "file"),
        ("ｶﾞｲﾄﾞ", "ガイド"),
        ("한국어", "한국어"),
        ("हिन्दी", "हिन्दी"),
        ("İstanbul", "i̇stanbul"),
    ],
)
def test_forms_of_one_text_are_one(written: str, asked: str) -> None:
    """Composed or not, wide or narrow, upper or lower case: the same terms."""
    assert set(query_terms(asked)) <= record_terms(None, written)


def test_an_emoji_is_a_word() -> None:
    """Each emoji is a term, with or without its variation selector."""
    assert query_terms("ship\U0001f680it ❤\ufe0f") == ("ship", "\U0001f680", "it", "❤")


def test_labels_are_split_like_text() -> None:
    """Kind and key are found by their words."""
    assert label_terms("language_preference", "preferred-language") == {"language", "preference", "preferred"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must not be empty"),
        (" \n\u3000", "must not be empty"),
        ("?! __ --", "no searchable terms"),
        ("\u0301", "no searchable terms"),
        ("x" * 4097, "4096"),
        (" ".join(f"t{number}" for number in range(65)), "64"),
    ],
)
def test_unsearchable_text_is_refused(text: str, problem: str) -> None:
    """A text without a term, or with too many, is refused by name."""
    with pytest.raises(TextError, match=problem):
        query_terms(text)


def test_the_normal_form_folds_case_width_and_space() -> None:
    """What reads the same has the same normal form."""
    assert normalize_text("  Ａｃｍｅ\n\tQUEUE ") == "acme queue"
