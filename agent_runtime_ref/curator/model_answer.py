"""The form in which a model answers, and what is made of it.

The form is checked before anything is believed: an answer with one wrong part is no answer, since nobody
knows what the rest of it means.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from agent_runtime_ref.contracts.finding import CONTENT_CHARACTERS_MAX, Amount, Finding
from agent_runtime_ref.curator.rules.amounts import numbers
from agent_runtime_ref.curator.rules.judge import FINDINGS_MAX
from agent_runtime_ref.curator.rules.text import folded, hidden, is_said
from agent_runtime_ref.curator.rules.things import Thing, is_known, is_nameless, thing_of
from agent_runtime_ref.errors import DocumentError, JudgeError
from agent_runtime_ref.preferences.keys import slug_of

__all__ = ["FORMAT", "findings_of"]

_THING_CHARACTERS_MAX = 100
_AMOUNT: dict[str, Any] = {
    "type": ["object", "null"],
    "properties": {
        "value": {"type": "string", "description": "a decimal number, such as 300 or 12.5"},
        "currency": {"type": ["string", "null"], "description": "ISO 4217; null where none is named"},
        "bound": {"enum": ["max", "min"]},
    },
    "required": ["value", "currency", "bound"],
    "additionalProperties": False,
}
_FINDING: dict[str, Any] = {
    "type": "object",
    "properties": {
        "scope": {"enum": ["session", "standing"]},
        "polarity": {"enum": ["like", "dislike"]},
        "thing": {"type": "string", "minLength": 1, "maxLength": _THING_CHARACTERS_MAX},
        "quote": {"type": "string", "minLength": 1, "maxLength": CONTENT_CHARACTERS_MAX},
        "anchor": {"enum": ["none", "budget", "category"]},
        "amount": _AMOUNT,
    },
    "required": ["scope", "polarity", "thing", "quote", "anchor", "amount"],
    "additionalProperties": False,
}
_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"findings": {"type": "array", "items": _FINDING, "maxItems": FINDINGS_MAX}},
    "required": ["findings"],
    "additionalProperties": False,
}
# As endpoints take it; one that does not know it answers in prose, and that is no answer.
FORMAT: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {"name": "findings", "strict": True, "schema": _ANSWER},
}


def findings_of(content: str, user_text: str) -> list[Finding]:
    """Return the findings of a model's answer that stand in the user's own words.

    Raises:
        JudgeError: the answer does not have the form.
    """
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise JudgeError("malformed", "the answer is no JSON") from error
    _check(answer)
    own = hidden(folded(user_text))
    try:
        return list(_findings(answer["findings"], user_text, own))
    except DocumentError as error:
        raise JudgeError("malformed", error.path) from error


def _check(answer: object) -> None:
    import jsonschema_rs

    try:
        jsonschema_rs.validate(_ANSWER, answer)
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise JudgeError("malformed", "the answer does not have the form of findings") from error


def _findings(answer: list[Mapping[str, Any]], user_text: str, own: str) -> Iterator[Finding]:
    for one in answer:
        if not is_said(one["quote"], user_text, own) or is_nameless(folded(one["thing"])):
            continue
        finding = _finding(one, own)
        if finding is not None:
            yield finding


def _finding(one: Mapping[str, Any], own: str) -> Finding | None:
    """Return a finding as code makes it of a model's words; None for an anchor that cannot be.

    An amount has to stand in the quote: a budget that nobody named would keep everything out.
    """
    anchor = one["anchor"]
    if anchor != "none" and one["scope"] != "session" or (one["amount"] is not None) != (anchor == "budget"):
        return None
    amount = None if one["amount"] is None else Amount(**one["amount"])
    if amount is not None and Decimal(amount.value) not in numbers(folded(one["quote"])):
        return None
    thing = _thing(one, amount, own)
    return Finding(
        one["scope"],
        one["polarity"],
        "soft",
        thing.category,
        thing.domain,
        thing.slug,
        one["quote"],
        stated=False,
        anchor=anchor,
        amount=amount,
    )


def _thing(one: Mapping[str, Any], amount: Amount | None, own: str) -> Thing:
    """Return what a finding is about, in no word of the model's own: later prompts show its key."""
    if amount is not None:
        return Thing("budget", "general", f"budget-{amount.bound}")
    category = "category" if one["anchor"] == "category" else None
    named, quote = folded(one["thing"]), folded(one["quote"])
    if not is_known(named) and any(word not in own for word in named.split()):
        named = slug_of(quote).replace("-", " ")
    return thing_of(named, category=category, around=quote)
