"""Documents and decisions in the words of a person who reads no code."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime_ref.review.evaluation import Outcome
from agent_runtime_ref.review.model import Change
from agent_runtime_ref.review.situations import DAY_NS, NOW_NS, SECOND_NS, Situation
from agent_runtime_ref.review.text import plain, value_text

__all__ = ["EFFECTS", "effect_sentence", "outcome_of", "result_of", "sentence_of"]

EFFECTS = {
    ("memory.read", "deny"): "Refuses the whole question; nothing is read.",
    ("memory.read", "wall"): "Hides the record as if it did not exist: it is neither counted nor named.",
    ("memory.read", "selector"): "Leaves out what was not asked for; it is not counted.",
    ("memory.read", "filter"): "Keeps the record out of the answer and counts it under the reason.",
    ("memory.write", "deny"): "Refuses the record; nothing is kept.",
    ("memory.write", "quarantine"): "Keeps the record apart: nobody reads it until it is released.",
    ("memory.write", "obligation"): "Lets the record in only after what it names was taken out.",
}
_NAMES = {
    "trust_rank": "trust",
    "confidence_millionths": "certainty",
    "created_ns": "an age of",
    "size_bytes": "a size of",
    "memory_class": "memory class",
    "record_id": "id",
    "tenant_id": "tenant",
    "principal_id": "principal",
    "revision_mode": "revision",
    "allowed_classes": "memory classes",
    "trust_min_rank": "least trust",
    "max_age_days": "greatest age",
    "record_ids": "ids",
    "limit": "a limit of",
}
_YES_NO = {
    "provenance_known": ("known provenance", "unknown provenance"),
    "outranked": ("a better record beside it", "no better record beside it"),
    "tombstoned": ("content that was forgotten", "content that was never forgotten"),
    "derived": ("other records behind it", "no other records behind it"),
    "anonymous": ("no name", "a name"),
    "require_provenance": ("known provenance demanded", "no provenance demanded"),
}
_LEVELS = {1: "low", 2: "medium", 3: "high"}
_OPERATIONS = {
    "search": "a search",
    "get": "a get",
    "list": "a list",
    "inspect": "an inspection",
    "write": "a write",
    "delete": "a removal",
    "export": "an export",
}
_WHO = {"search": "", "inspection": "An operator inspects: ", "write": "", "removal": "Removal of all about "}
_RESULTS = {
    ("search", "let in"): "let in",
    ("inspection", "let in"): "shown",
    ("write", "let in"): "kept",
    ("removal", "let in"): "permitted",
    ("search", "refused"): "question refused",
    ("inspection", "refused"): "question refused",
    ("write", "quarantined"): "held back until released",
    ("write", "redacted"): "kept, with parts taken out",
}


def effect_sentence(package: str, effect: str) -> str:
    """Return what happens where a rule speaks up; empty where its effect is not known."""
    return EFFECTS.get((package, effect), "")


def outcome_of(outcome: Outcome, rule_id: str) -> str:
    """Return in a word what became of a document, seen from one rule."""
    kinds = {kind for kind, one, _ in outcome.rows if one == rule_id} or {kind for kind, _, _ in outcome.rows}
    if "deny" in kinds:
        return "refused"
    if "quarantine" in kinds:
        return "quarantined"
    if "obligations" in kinds:
        return "redacted"
    if "excluded" in kinds:
        return "kept out"
    return "let in"


def result_of(situation: str, outcome_word: str, outcome: Outcome, rule_id: str) -> str:
    """Return what became of a document, with reasons and the other rules that took part."""
    text = _RESULTS.get((situation, outcome_word), outcome_word)
    reasons = dict.fromkeys(plain(reason) for _, one, reason in outcome.rows if one == rule_id and reason)
    if reasons and outcome_word != "redacted":
        text += f": {', '.join(reasons)}"
    others = [plain(one) for one in outcome.rule_ids if one != rule_id]
    return text + (f"; also by {', '.join(others)}" if others and rule_id in outcome.rule_ids else "")


def sentence_of(situation: Situation, changes: Sequence[Change]) -> str:
    """Return what was tried: the record, its changes, and how it is asked for or by whom written."""
    text = _WHO[situation.name] + situation.base
    record = [_changed(one) for one in changes if "." not in one.attribute and one.attribute != "operation"]
    with_ = [one.removeprefix("with ") for one in record if one.startswith("with ")]
    phrases = [one for one in record if not one.startswith("with ")]
    text += "".join(f" {one}" for one in phrases) + (f" with {' and '.join(with_)}" if with_ else "")
    if not changes:
        return text + (" as it is" if situation.name != "removal" else ", asked for by that person")
    verb, asked = "written" if situation.name == "write" else "asked for", False
    for part, words in (("query", "with"), ("caller", "by a caller with")):
        own = [_changed(one).removeprefix("with ") for one in changes if one.attribute.startswith(f"{part}.")]
        text += (f" {words} " if asked else f", {verb} {words} ") + " and ".join(own) if own else ""
        asked = asked or bool(own)
    return text + "".join(f", {_changed(one)}" for one in changes if one.attribute == "operation")


def _changed(change: Change) -> str:
    """Return a change as a phrase, most of them after `with`."""
    name = change.attribute.rpartition(".")[2]
    shown, now = plain(_NAMES.get(name, name)), _value(name, change.now)
    if change.removed:
        return f"with no {shown.removeprefix('a ').removeprefix('an ').removesuffix(' of')} given"
    if name in _YES_NO and isinstance(change.now, bool):
        return f"with {_YES_NO[name][0 if change.now else 1]}"
    if change.attribute == "operation":
        return f"as {now} instead of {_value(name, change.was)}"
    if name in ("content", "lineage", "replaces", "expires_ns", "findings"):
        return {
            "content": f"with the words “{now}”",
            "lineage": f"derived from {now}",
            "replaces": f"in place of {now}",
            "expires_ns": f"that {now}",
        }.get(name, f"with findings of {now}")
    was = "" if change.was is None or change.was in ([], "") else f" instead of {_value(name, change.was)}"
    if change.now == "":
        return f"with an empty {shown}{was}"
    return f"with no {shown}{was}" if change.now is None or change.now == [] else f"with {shown} {now}{was}"


def _value(name: str, value: Any) -> str:
    """Return a value of an attribute, in its unit."""
    if name in ("trust_rank", "trust_min_rank") and value in _LEVELS and not isinstance(value, bool):
        return _LEVELS[value]
    if isinstance(value, int) and not isinstance(value, bool):
        if name == "created_ns":
            return _span(NOW_NS - value)
        if name == "expires_ns":
            behind = NOW_NS - value
            return (
                "expires at this very instant"
                if behind == 0
                else (f"expired {_span(behind)} ago" if behind > 0 else f"expires in {_span(-behind)}")
            )
        if name == "confidence_millionths":
            return f"{value / 1_000_000:.6f}".rstrip("0").rstrip(".") or "0"
        if name == "size_bytes":
            return f"{value:,} bytes"
        if name == "max_age_days":
            return _counted(value, "day")
    if name == "expires_ns" and value is None:
        return "never expires"
    if name == "operation" and isinstance(value, str):
        return _OPERATIONS.get(value, plain(value))
    if isinstance(value, Mapping):
        return _mapping(name, value)
    if name == "findings" and isinstance(value, list):
        return ", ".join(plain(one.get("type")) for one in value if isinstance(one, Mapping)) or "none"
    return value_text(value)


def _span(length_ns: int) -> str:
    """Return a length of time in days and seconds; what lies ahead has a minus."""
    days, rest = divmod(abs(length_ns), DAY_NS)
    seconds = rest // SECOND_NS
    parts = [_counted(days, "day")] * (days > 0) + [_counted(seconds, "second")] * (seconds > 0)
    return ("-" if length_ns < 0 else "") + (" and ".join(parts) or "0 seconds")


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if abs(number) == 1 else f"{number:,} {what}s"


def _mapping(name: str, value: Mapping[str, Any]) -> str:
    if name == "replaces":
        return f"a record of {_LEVELS.get(value.get('trust_rank', 0), 'no')} trust"
    if name == "lineage":
        if value.get("count") == 0:
            return "nothing"
        if not value.get("known"):
            return "a record that is not there"
        if not value.get("subjects_match"):
            return "a record about somebody else"
        return f"a record of {_LEVELS.get(value.get('min_trust_rank', 0), 'no')} trust"
    return plain(json.dumps(value, ensure_ascii=False, sort_keys=True))
