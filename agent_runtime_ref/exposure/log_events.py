"""Both logs of a store as one, oldest line first; of each line no more is read than is asked for."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from agent_runtime_ref.errors import DocumentUnreadableError
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["LogLine", "log_lines_of", "parsed"]

_TIMESTAMP = re.compile(
    r'"timestamp":"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?Z"'
)
_NO_INSTANT = ""


class LogLine(NamedTuple):
    """A line of a log, as text, and where it stands."""

    instant: str  # sorts by time; empty where the line says none
    source: str
    number: int  # in its chain, from 1
    text: str


def log_lines_of(memory: GovernedMemory, tenant_id: str | None) -> Iterator[LogLine]:
    """Yield the lines of both logs by time; where each tenant has a chain, those of `tenant_id` alone.

    A chain is as its writers left it, so its lines are in the order of their commits: one line of each is
    held at a time, however long the logs are. Tenants that share a chain are for the reader to tell apart.
    """
    chains = [
        _lines(f"{kind} log", chain.raw())
        for kind, read in (("write", False), ("read", True))
        for chain in memory.log_chains(read=read)
        if tenant_id is None or chain.tenant_id in (None, tenant_id)
    ]
    return heapq.merge(*chains, key=lambda line: line.instant)


def parsed(line: LogLine) -> Mapping[str, Any]:
    """Return what stands in a line.

    Raises:
        DocumentUnreadableError: it is no JSON object.
    """
    try:
        document = json.loads(line.text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise DocumentUnreadableError(
            "line of the log not readable: it is no JSON object; `agent-runtime-ref trace verify` says more",
            source=line.source,
            line=line.number,
        )
    return document


def _lines(source: str, raw: Iterator[bytes]) -> Iterator[LogLine]:
    latest = _NO_INSTANT
    for number, data in enumerate(raw, start=1):
        text = data.decode("utf-8", "replace")
        found = _TIMESTAMP.search(text)
        if found is not None:
            # A clock that was put back must not move a line before the one it follows.
            latest = max(latest, found[1] + (found[2] or ".").ljust(10, "0"))
        yield LogLine(latest, source, number, text)
