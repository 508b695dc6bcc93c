"""Where an event's line stands in the decision log: what makes each exported event an anchor of the log.

Whoever holds an event that left the process knows the number and the hash of one line. A log that does not
have that line, with that hash, is not the log that was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime_ref.telemetry.chain import Position
from agent_runtime_ref.telemetry.events import Event

# The chains of a log: two in a store that keeps its own, one in a file that holds all lines.
WRITES, READS, ALL = "writes", "reads", "log"
PLACE_FIELDS = _CHAIN, _SEQ, _HASH = "log_chain", "log_seq", "log_hash"
_SEQ_MAX = 2**62
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
# An event line begins with its type and its id, right behind the seal.
_EVENT_LINE = re.compile(
    r'\{"seq":([0-9]+),"prev_hash":"[0-9a-f]{64}","hash":"([0-9a-f]{64})","type":"event","event_id":"([^"]+)"'
)


def chain_name(log_mode: str, *, read: bool) -> str:
    """Return the name of the chain that a line goes to, by how its store keeps the log."""
    if log_mode in ("file", "write_ahead"):
        return ALL
    return READS if read else WRITES


def placed(events: Sequence[Event], sealed: Sequence[str], *, chain: str) -> list[Event]:
    """Return `events`, each with the place of its line among `sealed`; one that has none there as it is."""
    places: dict[str, tuple[int, str]] = {}
    for line in sealed:
        found = _EVENT_LINE.match(line)
        if found is not None:
            places[found[3]] = int(found[1]), found[2]
    return [_placed(event, chain, places.get(event.event_id)) for event in events]


def position_of(payload: Mapping[str, Any]) -> Position | None:
    """Return the place that the payload of an exported event carries; None where it carries none."""
    position = payload.get(_CHAIN), payload.get(_SEQ), payload.get(_HASH)
    return Position(*position) if is_position(position) else None  # type: ignore[arg-type]


def place_of(position: Position) -> dict[str, Any]:
    """Return the fields by which the payload of an exported event carries a place."""
    return {_CHAIN: position.chain, _SEQ: position.seq, _HASH: position.hash}


def is_position(found: tuple[Any, Any, Any]) -> bool:
    """Tell whether these are the name of a chain, the number of a line and a hash."""
    name, seq, digest = found
    if not isinstance(name, str) or type(seq) is not int or not isinstance(digest, str):
        return False
    return 0 < seq < _SEQ_MAX and _DIGEST.match(digest) is not None


def _placed(event: Event, chain: str, place: tuple[int, str] | None) -> Event:
    if place is None:
        return event
    payload = {**event.payload, **place_of(Position(chain, *place))}
    return Event(event.event_type, event.trace_id, event.at_us, payload)
