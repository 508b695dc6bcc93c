"""What a clause asks for now: budgets, the thing that is searched for, and wishes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_runtime_ref.contracts.finding import Amount, Polarity, Strength
from agent_runtime_ref.curator.rules.amounts import budgets
from agent_runtime_ref.curator.rules.marker import document, first, tables
from agent_runtime_ref.curator.rules.standing import Statement
from agent_runtime_ref.curator.rules.things import anchor_in, is_known, slug_of

__all__ = ["Wish", "wishes"]

_WORD = re.compile(r"[^\W_]{2,}|[\u3400-\u9fff]")
_GAP = re.compile(r"\s*$|\s{2,}")
# What remains of a clause once its thing and its budget are taken out, and says nothing more.
_FILLER = re.compile(
    r"\b(?:i|i'm|i'd|am|we|need|want|like|would|to|buy|get|me|a|an|some|new|the|for|looking|look|find|book|order|search|"
    r"shopping|please|can|could|you|help|recommend|show|good|with|of|in|budget|about|around|my|is|it|than|less|more|"
    r"under|below|max|at|most|least|minimum|above|from|starting|per|person|head|each|guest|range|works|fine|is|anything|something|exceed|go|spend|more|can't|cannot|tops|come|comes|has|must|should|be|ideally|somewhere|euro|quid|chf|all|in|total|cap|limit|ceiling|price|for|purchase|night|up|and|so|this|time|today|ok|spend|pay|on|dollars?|euros?|pounds?|bucks|let's|stay|"
    r"between|keep|whole|thing|shouldn't|cost|over|no|not|within|cheaper|winter|rent|suggest)\b"
    r"|帮我|给我|找|买|想要|想|要|订|推荐|需要|我|一|个|家|件|张|款|双|台|份|间|套|部|把|只|的|吧|预算|这次|以内|以下|左右|大概|"
    r"最多|不能超过|不能超|不超过|不想|希望|上下|人均|每人|一晚|封顶|超过|超|能|别|比|谢谢|都行|行|总共|一共|整个|就|上限|是|我的|别超过|控制在|价格|总价|在|到|之间|块|元|花|一下|今天|冬天|点|便宜|内|吗|呢|看看|看"
)


@dataclass(frozen=True, slots=True)
class Wish:
    """A constraint of this session in a clause, and where its thing stands."""

    reason: str
    polarity: Polarity
    strength: Strength
    start: int
    end: int
    amount: Amount | None = None
    anchor_slug: str | None = None
    category: str | None = None
    lifts_budget: bool = False  # the budget is taken back

    @classmethod
    def of(cls, statement: Statement) -> Wish:
        """Return what would last as a wish for now."""
        one = statement
        return cls(one.reason, one.polarity, one.strength, one.start, one.end, category=one.category)


def wishes(text: str) -> Iterator[Wish]:
    """Yield what the clause `text` asks for; nothing, if it asks for nothing."""
    rest = list(text)
    for budget in budgets(text):
        yield Wish("a budget", "like", "hard", budget.start, budget.end, amount=budget.amount)
        rest[budget.start : budget.end] = " " * (budget.end - budget.start)
    anchor = _anchor("".join(rest))
    if anchor is not None:
        yield Wish("a search", "like", "hard", anchor[1], anchor[2], anchor_slug=anchor[0])
        rest[anchor[1] : anchor[2]] = " " * (anchor[2] - anchor[1])
    left = "".join(rest)
    if left == text or _WORD.search(_FILLER.sub(" ", left)):
        yield from _wish(text, left)


def _anchor(text: str) -> tuple[str, int, int] | None:
    """Return the slug of the thing that is searched for, and where it stands; colours and seats are none."""
    if first(tables("wishes")["unsought"], text) is not None:
        return None
    known = anchor_in(text)
    search = first(tables("wishes")["search"], text)
    if known is not None and search is not None and search[1].start() <= known[1]:
        return known
    other = first(tables("wishes")["search_other"], text)
    if other is None:
        return None
    start, end = other[1].span("what")
    words = text[start:end].split()
    if not words or words[-1] in document("wishes")["words"]["no_anchor"] or is_known(words[-1]):
        return None
    return slug_of(" ".join(words[-2:])), start, end


def _wish(text: str, left: str) -> Iterator[Wish]:
    found = first(tables("wishes")["wish"], left)
    if found is None:
        return
    marker, match = found
    start, end = match.span("what") if match.groupdict().get("what") else match.span()
    if left != text and not _WORD.search(_FILLER.sub(" ", left[start:end])):
        return
    if (
        left != text
    ):  # what was taken out of it is no part of the wish: "red bags" is a search for bags, in red
        start += len(left[start:end]) - len(left[start:end].lstrip())
        end = start + len(_GAP.split(left[start:end], maxsplit=1)[0])
    yield Wish(marker.reason, marker.polarity, marker.strength, start, end)
