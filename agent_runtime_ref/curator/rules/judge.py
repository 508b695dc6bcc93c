"""The rule judge: deterministic, offline, bilingual, and silent where it is not sure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from agent_runtime_ref.contracts.finding import CONTENT_CHARACTERS_MAX, Finding
from agent_runtime_ref.curator.rules.amounts import budgets
from agent_runtime_ref.curator.rules.joining import joined
from agent_runtime_ref.curator.rules.lifting import lift_of
from agent_runtime_ref.curator.rules.marker import Marker, first, tables
from agent_runtime_ref.curator.rules.session import Wish, wishes
from agent_runtime_ref.curator.rules.standing import Statement, statements
from agent_runtime_ref.curator.rules.text import CHARACTERS_MAX, HIDDEN, Clause, clauses, folded, hidden
from agent_runtime_ref.curator.rules.things import Thing, is_nameless, several, thing_of

__all__ = ["FINDINGS_MAX", "RuleJudge", "is_silenced"]

FINDINGS_MAX = 32
# Nobody says more in a turn; a text of commas alone would otherwise be thousands of clauses.
CLAUSES_MAX = 128
# What explains a preference rather than being a second one.
_REASONS = frozenset({"allergy", "diet", "health", "identity", "trait"})
_OWN_CHARACTERS_MIN = 2
_BEHIND_MAX = 3


class RuleJudge:
    """Judges by tables of markers; the same utterance always gives the same findings."""

    name = "rules"

    def judge(self, user_text: str, reply: str = "") -> list[Finding]:
        """Return what `user_text` says of what its speaker wants, in the order in which he says it.

        `reply` is not looked at: what the assistant says is no statement of the user, and "yes, always" names
        nothing that could be kept.
        """
        text = user_text[:CHARACTERS_MAX]
        plain = folded(text)
        if is_silenced(plain):
            return []
        found: list[Finding] = []
        for finding in _findings(text, hidden(plain)):
            if finding not in found:
                found.append(finding)
        return found[:FINDINGS_MAX]


def is_silenced(plain: str) -> bool:
    """Say whether the utterance as a whole is not to be believed: an order to the machine, or irony."""
    vetoes = tables("untrusted")
    return first(vetoes["injected"], plain) is not None or first(vetoes["sarcastic"], plain) is not None


@dataclass(slots=True)
class _Context:
    """What earlier clauses of the sentence say about when the next one holds."""

    sentence: int = -1
    standing: Marker | None = None
    is_session: bool = False
    is_vetoed: bool = False
    is_spoken_for: bool = False  # the speaker was named

    def enter(self, clause: Clause) -> None:
        if clause.sentence != self.sentence:
            self.sentence, self.standing = clause.sentence, None
            self.is_session = self.is_vetoed = self.is_spoken_for = False


def _findings(text: str, plain: str) -> list[Finding]:
    """Return the findings of all clauses; a preference and its reason in one sentence are one finding."""
    found: list[tuple[Clause, Finding]] = []
    for clause, findings in _by_clause(text, plain):
        before = found[-1] if found else None
        if before is not None and findings and _is_same(before, clause, findings[0]):
            whole = text[before[0].start : clause.end][:CONTENT_CHARACTERS_MAX].strip()
            found = [
                (one[0], replace(one[1], content=whole)) if one[0] is before[0] else one for one in found
            ]
            findings = [one for one in findings if one.scope == "session"]
        found += [(clause, finding) for finding in findings]
    return [finding for _, finding in found]


def _is_same(before: tuple[Clause, Finding], clause: Clause, finding: Finding) -> bool:
    """Say whether two lasting statements of a sentence are one: "I'm coeliac, so never any bread"."""
    if before[1].scope != "standing" or finding.scope != "standing" or before[0].sentence != clause.sentence:
        return False
    links = tables("links")
    if first(links["further"], clause.text) is not None:
        return False
    is_reasoned = first(links["reason"], clause.text) or first(links["reason"], before[0].text)
    return is_reasoned is not None or not _REASONS.isdisjoint((before[1].category, finding.category))


def _by_clause(text: str, plain: str) -> Iterator[tuple[Clause, list[Finding]]]:
    context = _Context()
    for clause in joined(clauses(plain)[:CLAUSES_MAX], plain):
        context.enter(clause)
        if first(tables("vetoes")["sentence"], clause.text) is not None:
            context.is_vetoed = True
        if context.is_vetoed or not _readable(clause.text):
            continue
        yield clause, list(_of_clause(text, clause, context))


def _readable(text: str) -> bool:
    """Say whether enough of a clause is the speaker's own, beside what he quotes."""
    return len(text) - text.count(HIDDEN) >= _OWN_CHARACTERS_MIN


def _of_clause(text: str, clause: Clause, context: _Context) -> Iterator[Finding]:
    session = first(tables("now")["session"], clause.text)
    standing = first(tables("always")["standing"], clause.text)
    if first(tables("links")["alone"], clause.text) is not None:
        context.is_session, context.standing = session is not None, None if standing is None else standing[0]
        return
    if first(tables("vetoes")["clause"], clause.text) is not None:
        return
    is_asked = clause.is_question and first(tables("vetoes")["request"], clause.text) is None
    is_session = session is not None or context.is_session or _spends(clause.text)
    lift = None if is_asked or context.standing else lift_of(clause.text, is_for_now=is_session)
    if lift is not None:
        yield from _session(text, clause, lift)
        return
    # A mark that stood alone holds for the clause behind it, and on until there is another.
    context.is_session = context.is_session and standing is None
    said = _said(clause, standing[0] if standing is not None else context.standing, is_asked, context)
    if not is_session:
        for statement in said:
            yield from _standing(text, clause, statement)
        if said:
            return
    wished = [] if is_asked else list(wishes(clause.text))
    # What would last, were it not for a mark of this session, is a constraint of it.
    for wish in wished or [Wish.of(statement) for statement in said]:
        yield from _session(text, clause, wish)


def _spends(text: str) -> bool:
    """Say whether a clause tells what its speaker spends at most: that is a budget, and no budget lasts."""
    return first(tables("wishes")["spending"], text) is not None and bool(budgets(text))


def _said(clause: Clause, mark: Marker | None, is_asked: bool, context: _Context) -> list[Statement]:
    """Return what the clause says for good, or would say without a mark of this session."""
    if _is_passing(clause.text, context):
        return []
    said = statements(clause.text, mark, is_question=is_asked, is_spoken_for=context.is_spoken_for)
    context.is_spoken_for = context.is_spoken_for or "我" in clause.text
    return list(said)


def _is_passing(text: str, context: _Context) -> bool:
    """Say whether the clause tells of an event, a doubt or a thing: of nothing wanted for good."""
    vetoes = tables("vetoes")
    is_thing = context.standing is None and first(vetoes["thing"], text) is not None
    return is_thing or first(vetoes["lasting"], text) is not None


def _standing(text: str, clause: Clause, statement: Statement) -> Iterator[Finding]:
    for words in _things(clause, statement.start, statement.end):
        thing = thing_of(words, category=statement.category, around=clause.text)
        yield _finding(
            text, clause, thing, Finding("standing", statement.polarity, statement.strength, *_BLANK)
        )


def _session(text: str, clause: Clause, wish: Wish) -> Iterator[Finding]:
    if wish.amount is not None:
        draft = Finding("session", "like", "hard", *_BLANK, anchor="budget", amount=wish.amount)
        yield _finding(text, clause, Thing("budget", "general", f"budget-{wish.amount.bound}"), draft)
        return
    if wish.lifts_budget:
        draft = Finding("session", wish.polarity, wish.strength, *_BLANK, anchor="budget")
        yield _finding(text, clause, Thing("budget", "general", "budget"), draft)
        return
    if wish.anchor_slug is not None:
        draft = Finding("session", "like", "hard", *_BLANK, anchor="category")
        yield _finding(text, clause, Thing("category", "shopping", wish.anchor_slug), draft)
        return
    for words in _things(clause, wish.start, wish.end):
        thing = thing_of(words, category=wish.category, around=clause.text)
        yield _finding(text, clause, thing, Finding("session", wish.polarity, wish.strength, *_BLANK))


def _things(clause: Clause, start: int, end: int) -> Iterator[str]:
    """Yield the words for each thing in a part of a clause; a mark behind the statement names none."""
    start = _behind_verb(clause.text, start, end)
    part = _named(clause.text[start : max(start, min(end, clause.body))] or clause.text[start:end])
    for first_place, last_place in several(part):
        if not is_nameless(part[first_place:last_place]):
            yield part[first_place:last_place]


def _behind_verb(text: str, start: int, end: int) -> int:
    """Return where the thing begins in `text`, behind a verb of showing it: "show me Nike" is about Nike."""
    for marker in tables("links")["verb"]:
        for pattern in marker.patterns:
            match = pattern.match(text, start, end)
            if match is not None and not is_nameless(text[match.end() : end]):
                return match.end()
    return start


def _named(part: str) -> str:
    """Return what names the thing, without what is said behind it: "sugar in this one" is about sugar."""
    for _ in range(_BEHIND_MAX):
        behind = first(tables("links")["behind"], part)
        if behind is None or behind[1].start() == 0:
            return part
        part = part[: behind[1].start()]
    return part


# Category, domain, slug and content, until they are known.
_BLANK = ("preference", "general", "unnamed", "-")


def _finding(text: str, clause: Clause, thing: Thing, draft: Finding) -> Finding:
    content = text[clause.start : clause.end][:CONTENT_CHARACTERS_MAX].strip()
    return replace(draft, category=thing.category, domain=thing.domain, slug=thing.slug, content=content)
