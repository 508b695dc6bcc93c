"""Clauses that the commas cut apart too far: marks behind a statement, questions behind it, and lists."""

from __future__ import annotations

import re
from dataclasses import replace

from agent_runtime_ref.curator.rules.marker import first, tables
from agent_runtime_ref.curator.rules.text import Clause

__all__ = ["joined"]

# "dogs", "tree nuts", "and soy": an item of a list that began in the clause before.
_ITEM = re.compile(r"(?:(?:and|or|nor) )?[\w'-]+(?: [\w'-]+){0,2}(?: (?:and|or|nor) [\w'-]+(?: [\w'-]+)?)?")
_LAST_ITEM = re.compile(r"(?:^|\s)(?:and|or|nor)\s")
_ITEMS_MAX = 6


def joined(found: list[Clause], plain: str) -> list[Clause]:
    """Return the clauses with what belongs to the clause before put back to it."""
    result: list[Clause] = []
    place = 0
    while place < len(found):
        clause = found[place]
        last = result[-1] if result else None
        items = _items(found, place) if last is not None and last.sentence == clause.sentence else 0
        if last is not None and _is_tag(last, clause):
            result[-1] = replace(last, is_question=last.is_question or clause.is_question)
        elif last is not None and items:
            result[-1] = _with(last, found[place + items - 1], plain, is_part=True)
            place += items - 1
        elif last is not None and _is_behind(last, clause, found[place + 1 : place + 2]):
            result[-1] = _with(last, clause, plain, is_part=False)
        else:
            result.append(clause)
        place += 1
    return result


def _with(last: Clause, clause: Clause, plain: str, *, is_part: bool) -> Clause:
    """Return `last` and all up to the end of `clause` as one; `is_part`: this belongs to the thing."""
    whole = plain[last.start : clause.end]
    body = len(whole) if is_part else last.body
    return replace(last, end=clause.end, text=whole, body=body, is_question=clause.is_question)


def _is_tag(last: Clause, clause: Clause) -> bool:
    return last.sentence == clause.sentence and first(tables("links")["tag"], clause.text) is not None


def _is_behind(last: Clause, clause: Clause, following: list[Clause]) -> bool:
    """Say whether `clause` is a mark that belongs to the clause before it."""
    links = tables("links")
    if first(links["tail"], clause.text) is not None:  # may be a sentence of its own: "Always have."
        return last.sentence in (clause.sentence, clause.sentence - 1)
    is_last = not following or following[0].sentence != clause.sentence
    is_alone = first(links["alone"], clause.text) is not None
    return last.sentence == clause.sentence and is_last and is_alone


def _items(found: list[Clause], place: int) -> int:
    """Return how many clauses from `place` on are the rest of a list; 0 where none is."""
    for count, clause in enumerate(found[place : place + _ITEMS_MAX], start=1):
        if clause.sentence != found[place].sentence or not _is_item(clause.text):
            return 0
        if _LAST_ITEM.search(clause.text):
            return count
    return 0


def _is_item(text: str) -> bool:
    if _ITEM.fullmatch(text) is None:
        return False
    marks = (
        ("now", "session"),
        ("always", "standing"),
        ("wishes", "wish"),
        ("body", "own"),
        ("links", "alone"),
    )
    return all(first(tables(file)[name], text) is None for file, name in marks)
