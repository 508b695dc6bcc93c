"""Normalize: from a text that somebody typed to the query that every later stage works with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agent_runtime_ref.clock import Ids, RandomIds, SystemClock, instant
from agent_runtime_ref.contracts.parts import text_of
from agent_runtime_ref.contracts.stored import captured
from agent_runtime_ref.errors import RemoteMemoryValidationError, TextError
from agent_runtime_ref.recall.analysis import normalize_text, query_terms

__all__ = ["LIMIT_MAX", "RecallQuery", "check_limit", "check_text", "moment_of", "normalize_recall_query"]

LIMIT_MAX = 10
Moment = datetime | str


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """One question to one user's memory; binds candidates, scores and hits together by its id."""

    query_id: str
    text: str  # as it was typed, white space folded
    normalized_text: str
    terms: tuple[str, ...]  # sorted, so that the order of words changes nothing
    user_scope: str
    limit: int
    issued_at: str

    def to_dict(self) -> dict[str, Any]:
        """Return the query as tool results show it."""
        return {
            "query_id": self.query_id,
            "text": self.text,
            "normalized_text": self.normalized_text,
            "terms": list(self.terms),
            "user_scope": self.user_scope,
            "limit": self.limit,
        }


def normalize_recall_query(
    text: str,
    *,
    user_scope: str,
    limit: int = 5,
    query_id: str | None = None,
    issued_at: Moment | None = None,
    ids: Ids | None = None,
) -> RecallQuery:
    """Return the query of a text: NFKC, case and white space folded, and its terms.

    Raises:
        RemoteMemoryValidationError: the text is blank, no Unicode, has no searchable terms or too many, or
            `limit` is not between 1 and 10.
    """
    check_text(text)
    check_limit(limit)
    if query_id is not None:
        check_text(query_id, "query_id")
    try:
        terms = query_terms(text)
    except TextError as error:
        raise RemoteMemoryValidationError(f"query {error.values['problem']}") from error
    issued = instant(SystemClock().now_us()) if issued_at is None else moment_of("issued_at", issued_at)
    return RecallQuery(
        query_id=query_id or (ids or RandomIds()).new("query"),
        text=" ".join(text.split()),
        normalized_text=normalize_text(text),
        terms=tuple(sorted(terms)),
        user_scope=user_scope,
        limit=limit,
        issued_at=str(text_of(issued)),
    )


def check_text(text: object, name: str = "query") -> None:
    """Return if a query, or another part of one, is text.

    Raises:
        RemoteMemoryValidationError: it is not, or holds half of a character, which no answer could be sent
            back with.
    """
    if not isinstance(text, str):
        raise RemoteMemoryValidationError(f"{name} must be a string")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RemoteMemoryValidationError(f"{name} must be Unicode text, without lone surrogates") from None


def check_limit(limit: object) -> None:
    """Return if as many hits may be asked for.

    Raises:
        RemoteMemoryValidationError: it is no whole number from 1 to 10.
    """
    if type(limit) is not int or not 1 <= limit <= LIMIT_MAX:
        raise RemoteMemoryValidationError(f"limit must be between 1 and {LIMIT_MAX}")


def moment_of(name: str, moment: Moment) -> datetime:
    """Return an instant in UTC, whether it comes as an aware datetime or as RFC 3339 text.

    Raises:
        RemoteMemoryValidationError: it has no zone, or is no instant.
    """
    return captured(name, text_of(moment) if isinstance(moment, datetime) else moment)
