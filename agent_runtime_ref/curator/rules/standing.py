"""What holds beyond this session: found only where the speaker says so himself, of himself, and for good."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent_runtime_ref.contracts.finding import Polarity, Strength
from agent_runtime_ref.curator.rules.marker import Marker, earliest, first, tables
from agent_runtime_ref.curator.rules.things import is_nameless

__all__ = ["Statement", "statements"]

# What may stand before the mark with which an order begins.
_POLITE = re.compile(r"(?:(?:and|but|so|also|please|ok|okay|oh|well|then|yes|just|for me)[ ,]+)*")
_NEGATED = re.compile(r"n't\b|\b(?:not|never|no longer|rarely|seldom|hardly|barely|dont|neither)\b")
_TOPIC = re.compile(
    r"(?P<what>.{2,40}?),? (?:is|are|was|were)? ?"
    r"(?:something|things?|what|one thing|somewhere)? ?(?:that )?\bi\b"
)
_POINTING = re.compile(r"(?:this|that|it(?! an? (?:point|rule|habit|priority)\b)|these|those)\b")
_SPEAKER = re.compile(r"\bi(?:'d|'ll)? (?!\w+$)")
_NEGATED_BEHIND = re.compile(r"(?:(?:it )?a point )?(?:of |to )?(?:not|never|no)\b")
_HARD_LIKE = re.compile(r"\b(?:must|only|need|require|insist|have to|strictly|exclusively)\b")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_CONNECTIVE = re.compile(r"因为|所以|虽然|但是|不过|而且|还有|另外|尽管|其实|可是|比起|[,\s]")
_SUBJECT_MIN = 2
_OWN_CHINESE = re.compile(r"我|本人|咱|俺")
_ORDERED_CHINESE = re.compile(
    r"^(?:请|麻烦|以后|今后|往后|从|默认|永远|每次|务必|凡是|不管|无论)|给我|帮我|回答我|叫我|提醒我|请"
)
_HAN_MARK = re.compile(
    r"^(?:请|那|还有|另外|不过|但是|但|而且|因为|所以|虽然|其实|对了|我们家|我家|我们|我|本人|咱|俺|的|自己|也|都|就|是|真的|个人|这个?人)+"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A lasting preference in a clause: what it is about, and where that stands."""

    reason: str
    polarity: Polarity
    strength: Strength
    start: int  # of the thing, in the clause
    end: int
    category: str | None = None


def statements(
    text: str, frame: Marker | None, *, is_question: bool, is_spoken_for: bool = False
) -> Iterator[Statement]:
    """Yield what the clause `text` says for good; `frame` is the mark of a habit in it or before it.

    `is_spoken_for`: the speaker was named earlier in the sentence, so that a Chinese clause need not.
    """
    # A question mark behind an order is politeness; behind a habit it asks whether it is one.
    if is_question:
        return
    own = first(tables("body")["own"], text) or first(tables("statements")["own"], text)
    if own is not None:
        yield _own(*own, text)
    elif frame is not None:
        found = _chinese(text, frame, is_spoken_for) if _CHINESE.search(text) else None
        found = found or _english(text, frame)
        if found is not None:
            yield found


def _own(marker: Marker, match: re.Match[str], text: str) -> Statement:
    start, end = _span(match, text)
    return Statement(marker.reason, marker.polarity, marker.strength, start, end, marker.category)


def _span(match: re.Match[str], text: str) -> tuple[int, int]:
    """Return where the thing stands: the group `what`, else all that matched."""
    if match.groupdict().get("what"):
        return match.span("what")
    return match.span() if match.end() > match.start() else (0, len(text))


# --- English --------------------------------------------------------------------------------------


def _english(text: str, frame: Marker) -> Statement | None:
    habits = tables("habits")
    order = first(habits["order"], text) or first(habits["order"], _without_lead(text, frame))
    attitude = _attitude(text, frame)
    if attitude is not None and (order is None or order[0].polarity == attitude.polarity):
        return attitude
    if order is not None and (frame.strength == "hard" or order[0].polarity == "dislike"):
        return replace(_own(*order, text), category=None)
    fitting = first(habits["fitting"], text)
    return attitude if fitting is None else _own(*fitting, text)


def _without_lead(text: str, frame: Marker) -> str:
    """Return `text` with the mark at its beginning blanked: behind it an order begins like any other."""
    mark = frame.search(text)
    if mark is None or frame.polarity == "dislike" or not _POLITE.fullmatch(text[: mark.start()]):
        return text
    return " " * mark.end() + text[mark.end() :]


def _attitude(text: str, frame: Marker) -> Statement | None:
    """Return what the speaker says that he likes, does, dislikes or does not do."""
    found = [(marker, match) for marker in tables("habits")["attitude"] if (match := marker.search(text))]
    if not found:
        return None
    marker, match = min(found, key=lambda one: one[1].start("verb"))
    if _POINTING.match(match["what"] or ""):  # "I usually do this by hand" is about no thing of its own
        return None
    later = _SPEAKER.search(match["what"] or "")
    if later is not None and text.startswith(
        ("when", "if", "and when", "but when")
    ):  # "when I travel I stay ...": the statement is the second half
        begun = match.start("what") + later.start()
        inner = _attitude(text[begun:], frame)
        if inner is not None:
            return replace(inner, start=inner.start + begun, end=inner.end + begun)
    is_negated = (
        _NEGATED.search(match["gap"]) is not None or _NEGATED_BEHIND.match(match["what"] or "") is not None
    )
    is_disliked = is_negated != (marker.polarity == "dislike")
    start, end = match.span("what") if match["what"] else match.span("verb")
    if is_nameless(text[start:end]) and (topic := _TOPIC.match(text)) is not None:
        start, end = topic.span("what")
    soft = frame.strength == "soft"
    if is_disliked:
        return Statement(marker.reason, "dislike", "soft" if soft else "hard", start, end)
    hard = not soft and _HARD_LIKE.search(text) is not None
    return Statement(marker.reason, "like", "hard" if hard else "soft", start, end)


# --- Chinese --------------------------------------------------------------------------------------


def _chinese(text: str, frame: Marker, is_spoken_for: bool) -> Statement | None:
    """Return what is said after the mark, or around it: Chinese puts the thing first as often as last."""
    mark = frame.search(text)
    if mark is not None and frame.is_habit and not (is_spoken_for or _is_own(text, mark.start())):
        return None
    after = mark.end() if mark is not None else 0
    lead = _HAN_MARK.match(text[after:])
    after += lead.end() if lead is not None else 0
    for name in ("attitude_zh", "rest_zh"):
        for start in dict.fromkeys((after, 0)):
            found = earliest(tables("habits")[name], text[start:])
            if found is not None:
                return _said(text, frame, found[0], found[1], start)
    return None


def _is_own(text: str, place: int) -> bool:
    """Say whether a habit told of at `place` is the speaker's: he is named, or nobody is."""
    before = _CONNECTIVE.sub("", text[:place])
    return len(before) < _SUBJECT_MIN or _OWN_CHINESE.search(text[: place + 4]) is not None


def _topic(text: str, frame: Marker) -> tuple[int, int]:
    """Return where the thing stands that a clause begins with: 橄榄我从来不吃."""
    mark = frame.search(text)
    places = [place for place in (text.find("我"), mark.start() if mark is not None else -1) if place > 0]
    return 0, min(places, default=0)


def _said(text: str, frame: Marker, marker: Marker, match: re.Match[str], offset: int) -> Statement:
    start, end = (place + offset for place in _span(match, text[offset:]))
    if is_nameless(text[start:end].lstrip("爱会").rstrip("的")):
        start, end = _topic(text, frame)
    mark = frame.search(text)
    is_denied = mark is not None and mark.group().endswith(("不", "别", "没"))
    is_disliked = marker.polarity == "dislike" or frame.polarity == "dislike" or is_denied
    is_ordered = _ORDERED_CHINESE.search(text) is not None
    strength = marker.strength
    if is_disliked and marker.polarity == "dislike":
        strength = "soft" if frame.strength == "soft" and not is_ordered else marker.strength
    elif is_ordered and frame.strength == "hard":
        strength = "hard"
    elif is_disliked:
        strength = frame.strength
    return Statement(marker.reason, "dislike" if is_disliked else "like", strength, start, end)
