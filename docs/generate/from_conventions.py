"""The page about what leaves over OpenTelemetry, and about diagnostics."""

from __future__ import annotations

from collections.abc import Iterator

from agent_runtime_ref.telemetry import conventions
from agent_runtime_ref.telemetry.diagnostics import FIELDS
from docs.generate.markdown import MARK, Part, names, page, table

_HEAD = """\
Everything that leaves the process over OpenTelemetry has one of these names.
A test holds what is emitted to them.
No attribute has the content of a memory or the text of a query in it.
Events are on [their own page](events.md)."""
_SPANS = """\
A gate opens a span of the GenAI convention of memory, where the application has set up tracing.
Its kind is INTERNAL, and its name the operation.
Its status is ERROR where an error reached the caller."""
_AGENT = """\
A turn of `AgentRuntime` is a span of the GenAI convention of agents.
Its gates, each step of its model and each call of a tool are below it.
The name of the latter two goes on with that of the model or the tool.
Gates that are asked behind the reply have spans of their own, which link to the span of the turn."""
_METRICS = """\
A metric is recorded where the application has set up metrics.
Its attributes have few values each: no tenant, principal, record or session is among them."""
_DIAGNOSTICS = """\
A line of diagnostics has the fields `event`, `level` and `timestamp`, and of these the ones that it needs.
Whatever else it is handed is left out."""


def _agent_spans() -> Iterator[tuple[str, str]]:
    return ((f"`{one.name}`", names(one.attributes)) for one in conventions.AGENT_SPANS)


def telemetry_page() -> str:
    """Return docs/reference/telemetry.md."""
    parts: list[Part] = ["# Spans, metrics and attributes"]
    parts += [MARK.format(origin="agent_runtime_ref/telemetry/conventions.py"), _HEAD, "## Spans", _SPANS]
    spans = ((f"`{one.name}`", names(one.operations), names(one.attributes)) for one in conventions.SPANS)
    parts.append(table(("span", "operations of the gates", "attributes"), spans))
    parts += [_AGENT, table(("span", "attributes"), _agent_spans())]
    metrics = (
        (
            f"`{one.name}`",
            one.kind,
            f"`{one.unit}`",
            one.meaning,
            names(one.attributes),
            names(one.prometheus),
        )
        for one in conventions.METRICS
    )
    heads = ("metric", "kind", "unit", "meaning", "attributes", "in Prometheus")
    operations = ", ".join(f"`{one}`" for one in conventions.METRIC_OPERATIONS)
    known = (
        f"`agent_memory.operation` of a metric is one of {operations}, else `{conventions.OTHER}`.\n"
        f"`{conventions.PRECHECK}` is the decision about a turn of the runtime, before any gate is asked."
    )
    parts += ["## Metrics", _METRICS, table(heads, metrics), known, "## Attributes"]
    parts.append("These stand on spans, metrics and log records beside the fields of events.")
    own = ((f"`{one.name}`", one.type, one.meaning) for one in conventions.ATTRIBUTES.values())
    parts.append(table(("attribute", "type", "meaning"), own))
    parts += [
        "## Attributes that are fields of events",
        "An attribute that every event may have is marked so.",
    ]
    carried = conventions.event_attributes()
    most = max(map(len, carried.values()))
    rows = ((f"`{name}`", "every event" if len(on) == most else names(on)) for name, on in carried.items())
    parts += [table(("attribute", "events"), rows), "## Diagnostics", _DIAGNOSTICS]
    parts.append(table(("field", "meaning"), ((f"`{name}`", text) for name, text in FIELDS.items())))
    return page(*parts)
