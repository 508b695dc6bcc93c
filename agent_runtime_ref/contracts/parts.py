"""The parts that values and documents write differently: instants and lists."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["NOT_AN_INSTANT", "frozen_list", "in_utc", "instant_of", "listed", "text_of"]

# Stands in a document for what no instant is, so that the schema refuses it with the field's own sentence:
# a string would pass as one although the attribute wants a datetime.
NOT_AN_INSTANT = False


def text_of(moment: object) -> object:
    """Return the text of an aware datetime, with a fraction only where there is one."""
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        return NOT_AN_INSTANT
    if moment.tzinfo is not UTC:
        moment = in_utc(moment)
    return moment.isoformat().replace("+00:00", "Z")


def in_utc(moment: datetime) -> datetime:
    """Return an aware datetime in UTC; one that UTC cannot express stays, for the schema to refuse."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return moment


def instant_of(text: str | None) -> datetime | None:
    """Return the instant of a checked text."""
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)


def frozen_list(value: object) -> object:
    """Return a list as the tuple that values hold; anything else stays, for the schema to refuse."""
    return tuple(value) if isinstance(value, list) else value


def listed(value: object) -> object:
    """Return a tuple as the list that documents hold; anything else stays, for the schema to refuse."""
    return list(value) if isinstance(value, tuple) else value
