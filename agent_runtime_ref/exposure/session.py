"""All that the log holds of one session: its runs, decisions and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.exposure.allowed import exported
from agent_runtime_ref.exposure.log_events import log_lines_of, parsed
from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["SessionExport", "session_export"]

Line = Mapping[str, Any]
_BEGINS, _ENDS = "run_start", ("run_complete", "run_failed")
_OPEN = "open"  # of a run whose end the log does not tell: it goes on, or its process ended


@dataclass(frozen=True, slots=True)
class SessionExport:
    """A session as the log tells it, oldest first."""

    session_id: str
    tenant_id: str | None
    principal_id: str | None  # whose decision or event came first
    runs: tuple[Mapping[str, Any], ...]
    decisions: tuple[Line, ...]
    events: tuple[Line, ...]

    def to_document(self) -> dict[str, Any]:
        """Return it as the command prints it."""
        return {
            "session_id": self.session_id,
            "tenant_id": self.tenant_id,
            "principal_id": self.principal_id,
            "runs": list(self.runs),
            "decisions": list(self.decisions),
            "events": list(self.events),
        }


@dataclass(slots=True)
class _Found:
    """What was found of a session in one tenant."""

    decisions: list[Line] = field(default_factory=list)
    events: list[Line] = field(default_factory=list)
    principal_id: str | None = None


def session_export(memory: GovernedMemory, session_id: str, tenant_id: str | None) -> SessionExport:
    """Return what the log holds of a session of a tenant; of the only one that has it, where none is named.

    Fields leave by an allow-list; each line says in `redacted_fields` which were left out.

    Raises:
        UsageError: no tenant has the session, or several have one of that name.
        DocumentUnreadableError: a line of the log is damaged; it says which.
    """
    tenants: dict[str | None, _Found] = {}
    wanted = None if tenant_id is None else memory.log_name(tenant_id)
    names = {memory.log_name(session_id)}
    if tenant_id is not None:
        names.add(memory.pseudonym(tenant_id, session_id))
    decided: dict[str, str | None] = {}
    masked: list[Line] = []
    for line in _lines(memory, names, tenant_id):
        own = _tenant_of(line)
        if own is None and "event_type" not in line:
            masked.append(line)  # its events say whose it is
            continue
        if wanted is None or own == wanted:
            _take(tenants.setdefault(own, _Found()), line, decided, own)
    for line in masked:
        own = decided.get(str(line.get("decision_id")))
        if own in tenants:
            tenants[own].decisions.append(line)
    return _only(session_id, tenant_id, tenants)


def _lines(memory: GovernedMemory, names: set[str], tenant_id: str | None) -> Iterator[Line]:
    """Yield the lines about a session; nothing else of a log is read as JSON."""
    for line in log_lines_of(memory, tenant_id):
        if not any(name in line.text for name in names):
            continue
        document = parsed(line)
        payload = document.get("payload")
        told = payload.get("session_id") if isinstance(payload, Mapping) else document.get("session_id")
        if told in names:
            yield document


def _tenant_of(line: Line) -> str | None:
    payload, asked = line.get("payload"), line.get("input")
    if isinstance(payload, Mapping):
        tenant = payload.get("tenant_id")
    else:
        asker = asked.get("caller") if isinstance(asked, Mapping) else None
        tenant = asker.get("tenant_id") if isinstance(asker, Mapping) else None
    return tenant if isinstance(tenant, str) else None


def _take(found: _Found, line: Line, decided: dict[str, str | None], tenant: str | None) -> None:
    payload = line.get("payload")
    if isinstance(payload, Mapping):
        found.events.append(line)
        decided[str(payload.get("decision_id"))] = tenant
        principal = payload.get("principal_id")
    else:
        found.decisions.append(line)
        principal = line.get("requested_by")
    if found.principal_id is None and isinstance(principal, str):
        found.principal_id = principal


def _only(session_id: str, tenant_id: str | None, tenants: Mapping[str | None, _Found]) -> SessionExport:
    if not tenants:
        where = "in any tenant" if tenant_id is None else f"in tenant `{tenant_id}`"
        raise UsageError(f"the log has no session `{session_id}` {where}; `trace inspect` lists traces")
    if len(tenants) > 1:
        named = ", ".join(f"`{one}`" for one in sorted(map(str, tenants)))
        raise UsageError(f"several tenants have a session `{session_id}`: {named}; name one with --tenant")
    ((own, found),) = tenants.items()
    decisions = sorted(found.decisions, key=lambda line: _sort_key(line.get("timestamp")))
    return SessionExport(
        session_id=session_id,
        tenant_id=tenant_id or own,
        principal_id=found.principal_id,
        runs=tuple(_runs(found.events)),
        decisions=tuple(map(exported, decisions)),
        events=tuple(map(exported, found.events)),
    )


def _runs(events: list[Line]) -> list[dict[str, Any]]:
    """Return each run that began in the session, with how it ended; several may have one trace."""
    runs: list[dict[str, Any]] = []
    under_way: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        kind, trace_id = event.get("event_type"), str(event.get("trace_id"))
        if kind == _BEGINS:
            run = {
                "trace_id": trace_id,
                "purpose": event["payload"].get("purpose"),
                "started_at": event.get("timestamp"),
                "ended_at": None,
                "status": _OPEN,
            }
            runs.append(run)
            under_way.setdefault(trace_id, []).append(run)
        elif kind in _ENDS and under_way.get(trace_id):
            told = event["payload"].get("status")
            status = told if isinstance(told, str) else str(kind).removeprefix("run_")
            under_way[trace_id].pop().update(ended_at=event.get("timestamp"), status=status)
    return runs


def _sort_key(instant: object) -> str:
    text = str(instant).removesuffix("Z")
    return text if "." in text else f"{text}."
