"""Documents and decisions in the words of a person who reads no code."""

from __future__ import annotations

from collections.abc import Sequence

from agent_runtime_ref.review.evaluation import Outcome
from agent_runtime_ref.review.model import Change
from agent_runtime_ref.review.situations import REVIEWS, Situation
from agent_runtime_ref.review.text import plain
from agent_runtime_ref.review.units import in_words

__all__ = ["EFFECTS", "effect_sentence", "outcome_of", "result_of", "sentence_of"]

EFFECTS = {
    ("memory.read", "deny"): "Refuses the whole question; nothing is read.",
    ("memory.read", "wall"): "Hides the record as if it did not exist: it is neither counted nor named.",
    ("memory.read", "selector"): "Leaves out what was not asked for; it is not counted.",
    ("memory.read", "filter"): "Keeps the record out of the answer and counts it under the reason.",
    ("memory.write", "deny"): "Refuses the record; nothing is kept.",
    ("memory.write", "quarantine"): "Keeps the record apart: nobody reads it until it is released.",
    ("memory.write", "obligation"): "Demands something of the gate beside its decision.",
}
_NAMES = {
    "trust_rank": "trust",
    "confidence_millionths": "confidence",
    "created_ns": "an age of",
    "size_bytes": "a size of",
    "content_digest": "digest of its content",
    "memory_class": "memory class",
    "record_id": "id",
    "tenant_id": "tenant",
    "principal_id": "principal",
    "revision_mode": "revision",
    "allowed_classes": "memory classes",
    "trust_min_rank": "least trust",
    "max_age_days": "greatest age",
    "record_ids": "ids",
    "reason_chars": "a reason of",
    "reason_findings": "a reason that holds",
    "limit": "a limit of",
}
_YES_NO = {
    "provenance_known": ("known provenance", "unknown provenance"),
    "outranked": ("a better record beside it", "no better record beside it"),
    "repeats": ("another record that says the same", "no other record that says the same"),
    "tombstoned": ("content that was forgotten", "content that was never forgotten"),
    "duplicate": ("the same memory active already", "no such memory active"),
    "derived": ("other records behind it", "no other records behind it"),
    "anonymous": ("no name", "a name"),
    "require_provenance": ("known provenance demanded", "no provenance demanded"),
}
_AROUND = frozenset({"query", "caller", "review", "operation"})
_WHO = {
    "inspection": "An operator inspects: ",
    "removal": "Removal of all about ",
    "release": "Release of ",
    "rejection": "Rejection of ",
    "quarantine": "Putting into quarantine of ",
    "merging": "Removal of a repetition, ",
}
_RESULTS = {
    ("search", "let in"): "let in",
    ("inspection", "let in"): "shown",
    ("write", "let in"): "kept",
    ("removal", "let in"): "permitted",
    ("search", "refused"): "question refused",
    ("inspection", "refused"): "question refused",
    ("write", "quarantined"): "held back until released",
    ("write", "redacted"): "kept, with parts taken out",
    ("release", "let in"): "released",
    ("rejection", "let in"): "rejected",
    ("quarantine", "let in"): "put into quarantine",
    ("merging", "let in"): "removed",
}


def effect_sentence(package: str, effect: str) -> str:
    """Return what happens where a rule speaks up; empty where its effect is not known."""
    if package in REVIEWS and effect == "deny":
        return "Refuses the step of the review; the record stays as it is."
    package = "memory.write" if package in REVIEWS else package
    return EFFECTS.get((package, effect), "")


def outcome_of(outcome: Outcome, rule_id: str) -> str:
    """Return in a word what became of a document, seen from one rule."""
    kinds = {kind for kind, one, _ in outcome.rows if one == rule_id} or {kind for kind, _, _ in outcome.rows}
    if "deny" in kinds:
        return "refused"
    if "quarantine" in kinds:
        return "quarantined"
    if "obligations" in kinds:
        demanded = {reason for kind, _, reason in outcome.rows if kind == "obligations"}
        return "redacted" if "redact" in demanded else "obliged"
    if "excluded" in kinds:
        return "kept out"
    return "let in"


def result_of(situation: str, outcome_word: str, outcome: Outcome, rule_id: str) -> str:
    """Return what became of a document, with reasons and the other rules that took part."""
    allowed = _RESULTS.get((situation, "let in"), "let in")
    text = f"{allowed}, and more" if outcome_word == "obliged" else outcome_word
    text = _RESULTS.get((situation, outcome_word), text)
    reasons = dict.fromkeys(plain(reason) for _, one, reason in outcome.rows if one == rule_id and reason)
    if reasons and outcome_word != "redacted":
        text += f": {', '.join(reasons)}"
    others = [plain(one) for one in outcome.rule_ids if one != rule_id]
    return text + (f"; also by {', '.join(others)}" if others and rule_id in outcome.rule_ids else "")


def sentence_of(situation: Situation, changes: Sequence[Change]) -> str:
    """Return what was tried: the record, its changes, and how it is asked for or by whom written."""
    text = _WHO.get(situation.name, "") + situation.base
    around = [one for one in changes if one.attribute.partition(".")[0] in _AROUND]
    record = [_changed(one) for one in changes if one not in around]
    with_ = [one.removeprefix("with ") for one in record if one.startswith("with ")]
    phrases = [one for one in record if not one.startswith("with ")]
    text += "".join(f" {one}" for one in phrases) + (f" with {' and '.join(with_)}" if with_ else "")
    if not changes:
        return text + (" as it is" if situation.name != "removal" else ", asked for by that person")
    verb, asked = "written" if situation.name == "write" else "asked for", False
    for part, words in (("query", "with"), ("review", "with"), ("caller", "by a caller with")):
        own = [_changed(one).removeprefix("with ") for one in around if one.attribute.startswith(f"{part}.")]
        text += (f" {words} " if asked else f", {verb} {words} ") + " and ".join(own) if own else ""
        asked = asked or bool(own)
    return text + "".join(f", {_changed(one)}" for one in around if one.attribute == "operation")


def _changed(change: Change) -> str:
    """Return a change as a phrase, most of them after `with`."""
    name = change.attribute.rpartition(".")[2]
    shown, now = plain(_NAMES.get(name, name)), in_words(name, change.now)
    if change.removed:
        return f"with no {shown.removeprefix('a ').removeprefix('an ').removesuffix(' of')} given"
    if name in _YES_NO and isinstance(change.now, bool):
        return f"with {_YES_NO[name][0 if change.now else 1]}"
    if change.attribute == "operation":
        return f"as {now} instead of {in_words(name, change.was)}"
    if name in ("content", "lineage", "replaces", "expires_ns", "findings", "written_by", "reviewer"):
        return {
            "content": f"with the words “{now}”",
            "written_by": f"written by {now}",
            "reviewer": f"reviewed by {now}",
            "lineage": f"derived from {now}",
            "replaces": f"in place of {now}",
            "expires_ns": f"that {now}",
        }.get(name, f"with findings of {now}")
    was = "" if change.was is None or change.was in ([], "") else f" instead of {in_words(name, change.was)}"
    if change.now == "":
        return f"with an empty {shown}{was}"
    return f"with no {shown}{was}" if change.now is None or change.now == [] else f"with {shown} {now}{was}"
