"""The value that a judge returns: what it refuses, and how it reads as JSON."""

from __future__ import annotations

from typing import Any

import pytest

from agent_runtime_ref.contracts import Amount, Finding
from agent_runtime_ref.errors import DocumentTypeError, DocumentValueError

PLASTIC: dict[str, Any] = {
    "scope": "standing",
    "polarity": "dislike",
    "strength": "hard",
    "category": "material",
    "domain": "general",
    "slug": "plastic",
    "content": "I always hate plastic",
}


def test_a_finding_reads_as_json() -> None:
    """Every part stands in the document, an amount with its own."""
    budget = PLASTIC | {"scope": "session", "polarity": "like", "category": "budget", "slug": "budget"}
    finding = Finding(**budget, anchor="budget", amount=Amount("300", "CNY"))

    expected = budget | {
        "stated": True,
        "anchor": "budget",
        "amount": {"value": "300", "currency": "CNY", "bound": "max"},
        "keys_to_supersede": [],
    }
    assert expected == finding.to_document()


@pytest.mark.parametrize("slug", ["plastic", "塑料", "white-noise", "v2.0", "window_seat"])
def test_a_slug_is_words_of_any_script(slug: str) -> None:
    """A part of a key may be written in the user's own script."""
    assert slug == Finding(**PLASTIC | {"slug": slug}).slug


@pytest.mark.parametrize(
    ("part", "error", "sentence"),
    [
        ({"scope": "forever"}, DocumentValueError, "finding $.scope: must be one of session, standing"),
        ({"strength": True}, DocumentTypeError, "finding $.strength: must be a string"),
        ({"slug": "a:b"}, DocumentValueError, "finding $.slug: must be words joined by hyphens"),
        ({"slug": "<b>"}, DocumentValueError, "finding $.slug: must be words joined by hyphens"),
        ({"slug": ""}, DocumentValueError, "finding $.slug: must be words joined by hyphens"),
        ({"slug": "a\n"}, DocumentValueError, "finding $.slug: must be words joined by hyphens"),
        ({"domain": "a" * 65}, DocumentValueError, "finding $.domain: must be at most 64 characters"),
        ({"content": " "}, DocumentValueError, "finding $.content: must not be empty"),
        ({"content": "\ud800"}, DocumentValueError, "finding $.content: must be text that has a UTF-8 form"),
        ({"stated": 1}, DocumentTypeError, "finding $.stated: must be a boolean"),
        (
            {"keys_to_supersede": "ab"},
            DocumentTypeError,
            "finding $.keys_to_supersede: must be a list of strings",
        ),
        (
            {"anchor": "category"},
            DocumentValueError,
            "finding $.anchor: must be `none` for a standing preference",
        ),
        (
            {"amount": Amount("3")},
            DocumentValueError,
            "finding $.amount: must stand in a budget and nowhere else",
        ),
    ],
)
def test_a_finding_refuses_what_it_is_not(
    part: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    """A wrong part is named with its place and the rule it breaks."""
    with pytest.raises(error) as raised:
        Finding(**PLASTIC | part)

    assert sentence == str(raised.value)


@pytest.mark.parametrize("value", ["-3", "1e9", "NaN", "١٢", "03", "1" * 16, ""])
def test_an_amount_is_a_plain_decimal(value: str) -> None:
    """Signs, exponents, other scripts' digits and endless numbers are no amounts."""
    with pytest.raises(DocumentValueError, match="must be a decimal number"):
        Amount(value)
