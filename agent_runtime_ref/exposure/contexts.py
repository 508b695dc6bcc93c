"""The contexts that records entered, out of the events that say which context was built of which records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.exposure.log_events import LogLine, log_lines_of, parsed
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["Context", "contexts_of"]

# As our writer puts it; whatever else has these words in it is told apart once it is read.
_EVENT = "context_layers_built"
_SAID = f'"event_type":"{_EVENT}"'


@dataclass(frozen=True, slots=True)
class Context:
    """One record in one context that was handed to an agent."""

    trace_id: str | None
    session_id: str | None
    principal_id: str | None  # as the log names it; a pseudonym where it is the subject of the call
    at: str | None  # RFC 3339, UTC
    via: str  # the id of the record that entered

    def to_document(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        return {
            "trace_id": self.trace_id,
            "session_id": self.session_id,
            "principal_id": self.principal_id,
            "at": self.at,
            "via": self.via,
        }


def contexts_of(memory: GovernedMemory, record_ids: Sequence[str], tenant_id: str) -> Iterator[Context]:
    """Yield each context of a tenant that one of the records entered, by time, then as the records stand.

    A look of an operator or of a reviewer is no context: nothing was handed to an agent. However long the
    log is, one line of it is held at a time.

    Raises:
        DocumentUnreadableError: a line of the log is damaged; it says which.
    """
    called = {memory.log_name(one): one for one in record_ids}
    order = {one: place for place, one in enumerate(record_ids)}
    tenant = memory.log_name(tenant_id)
    for line in log_lines_of(memory, tenant_id):
        if _SAID in line.text:
            yield from _entered(line, called, order, tenant)


def _entered(
    line: LogLine, called: Mapping[str, str], order: Mapping[str, int], tenant: str
) -> Iterator[Context]:
    event = parsed(line)
    payload = event.get("payload")
    if event.get("event_type") != _EVENT or not isinstance(payload, Mapping):
        return
    if payload.get("tenant_id") != tenant:
        return
    layers = payload.get("record_ids")
    names = [
        name
        for layer in (layers.values() if isinstance(layers, Mapping) else ())
        if isinstance(layer, list)
        for name in layer
        if isinstance(name, str)
    ]
    found = {called[name] for name in names if name in called}
    who = (_text(event.get("trace_id")), _text(payload.get("session_id")), _text(payload.get("principal_id")))
    for record_id in sorted(found, key=order.__getitem__):
        yield Context(*who, at=_text(event.get("timestamp")), via=record_id)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
