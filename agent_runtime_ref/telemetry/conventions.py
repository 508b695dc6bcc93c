"""Every name that leaves the process over OpenTelemetry: attributes, spans and metrics.

Events have their own catalogue (`events`); a field of one is here as the attribute that it becomes. Names of
the GenAI conventions are written out, since the package with their constants does not have those of memory.
docs/reference/telemetry.md is generated from this module, and tests hold what is emitted to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from agent_runtime_ref.telemetry.events import CATALOGUE, EVENT_NAME_PREFIX

SCOPE = "agent_runtime_ref"

OPERATION_NAME = "gen_ai.operation.name"
CONVERSATION_ID = "gen_ai.conversation.id"
AGENT_ID = "gen_ai.agent.id"
REQUEST_MODEL = "gen_ai.request.model"
TOOL_NAME = "gen_ai.tool.name"
MEMORY_RECORD_ID = "gen_ai.memory.record.id"
MEMORY_RECORD_COUNT = "gen_ai.memory.record.count"
ERROR_TYPE = "error.type"
OPERATION = f"{EVENT_NAME_PREFIX}operation"
EFFECT = f"{EVENT_NAME_PREFIX}effect"
DECISION_ID = f"{EVENT_NAME_PREFIX}decision_id"
RULE_IDS = f"{EVENT_NAME_PREFIX}rule_ids"
RULE_ID = f"{EVENT_NAME_PREFIX}rule_id"
EVENT_TYPE = f"{EVENT_NAME_PREFIX}event_type"
TRACE_ID = f"{EVENT_NAME_PREFIX}trace_id"
REDACTED_FIELDS = f"{EVENT_NAME_PREFIX}redacted_fields"
INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
LOG = f"{EVENT_NAME_PREFIX}log"


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of a span or a metric, or one of a log record that is no field of its event."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Span:
    """A kind of span: its name is the operation."""

    name: str
    operations: tuple[str, ...]  # of the gates, as `agent_memory.operation` tells them
    attributes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Metric:
    """An instrument, and the attributes that its values are told apart by: few values each."""

    name: str
    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    meaning: str
    attributes: tuple[str, ...]

    @property
    def prometheus(self) -> tuple[str, ...]:
        """The names under which a Prometheus server knows it, after the rules of OpenTelemetry."""
        base = prometheus_name(self.name)
        if self.unit == "s":
            base += "_seconds"
        if self.kind == "counter":
            return (f"{base}_total",)
        return (
            tuple(base + end for end in ("_bucket", "_sum", "_count"))
            if self.kind == "histogram"
            else (base,)
        )


def prometheus_name(name: str) -> str:
    """The form in which a Prometheus server keeps the name of a metric or an attribute."""
    return name.replace(".", "_")


_ATTRIBUTES = (
    Attribute(OPERATION_NAME, "string", "what the call is in the GenAI conventions of memory and of agents"),
    Attribute(CONVERSATION_ID, "string", "the session, where there is one"),
    Attribute(AGENT_ID, "string", "the agent, where the caller names one"),
    Attribute(REQUEST_MODEL, "string", "the model, as the application calls it"),
    Attribute(TOOL_NAME, "string", "the tool, where there is one of the name that the model gave"),
    Attribute(MEMORY_RECORD_ID, "string", "the record, where the call is about one"),
    Attribute(MEMORY_RECORD_COUNT, "int", "how many records were shown, kept or removed"),
    Attribute(ERROR_TYPE, "string", "the class of the error that reached the caller, or of its cause"),
    Attribute(OPERATION, "string", "what was asked of the gate"),
    Attribute(EFFECT, "string", "what was decided: allow, deny or quarantine"),
    Attribute(DECISION_ID, "string", "the decision, where the call made one"),
    Attribute(RULE_IDS, "string[]", "the rules that gave the reasons of that decision"),
    Attribute(RULE_ID, "string", "a rule that gave a reason; `other` behind the first 200"),
    Attribute(EVENT_TYPE, "string", "the event, without the prefix of its name"),
    Attribute(TRACE_ID, "string", "the trace that the caller named, which is not the one of OpenTelemetry"),
    Attribute(REDACTED_FIELDS, "string[]", "fields that an allow-list kept back"),
    Attribute(LOG, "string", "which log is meant: `writes`, `reads`, or `log` for both in one"),
)
ATTRIBUTES: Mapping[str, Attribute] = {one.name: one for one in _ATTRIBUTES}

_OF_EVERY_SPAN = (
    OPERATION_NAME,
    OPERATION,
    CONVERSATION_ID,
    AGENT_ID,
    DECISION_ID,
    EFFECT,
    RULE_IDS,
    MEMORY_RECORD_ID,
    MEMORY_RECORD_COUNT,
    ERROR_TYPE,
)
SPANS = (
    Span("search_memory", ("search", "get", "list", "inspect"), _OF_EVERY_SPAN),
    Span("upsert_memory", ("write", "release", "quarantine"), _OF_EVERY_SPAN),
    Span("delete_memory", ("delete", "reject"), _OF_EVERY_SPAN),
)
OPERATIONS: Mapping[str, str] = {operation: span.name for span in SPANS for operation in span.operations}

# What a metric calls the decision about a turn, which is made before any gate is asked.
PRECHECK = "precheck"
METRIC_OPERATIONS = (*OPERATIONS, PRECHECK)
OTHER = "other"  # any operation that is none of these

_OF_A_TURN = (OPERATION_NAME, CONVERSATION_ID, AGENT_ID, DECISION_ID, EFFECT, ERROR_TYPE)
# A span is called by its operation, and behind it the model or the tool.
AGENT_SPANS = (
    Span(INVOKE_AGENT, (), _OF_A_TURN),
    Span(CHAT, (), (OPERATION_NAME, REQUEST_MODEL, ERROR_TYPE)),
    Span(EXECUTE_TOOL, (), (OPERATION_NAME, TOOL_NAME, ERROR_TYPE)),
)

DECISIONS = Metric(
    f"{EVENT_NAME_PREFIX}decisions", "counter", "{decision}", "decisions of the policies", (OPERATION, EFFECT)
)
DECISION_RULES = Metric(
    f"{EVENT_NAME_PREFIX}decision.rules",
    "counter",
    "{reason}",
    "reasons that rules gave for a decision; one decision may have several",
    (RULE_ID, EFFECT),
)
FAILURES = Metric(
    f"{EVENT_NAME_PREFIX}failures",
    "counter",
    "{failure}",
    "events of severity ERROR: an engine or a store that failed, a store that showed what it must not",
    (EVENT_TYPE, ERROR_TYPE),
)
DURATION = Metric(
    f"{EVENT_NAME_PREFIX}operation.duration",
    "histogram",
    "s",
    "how long a gate took, from the question to the answer, with policy, store and log",
    (OPERATION_NAME, OPERATION, ERROR_TYPE),
)
EXPORT_LAG = Metric(
    f"{EVENT_NAME_PREFIX}export.lag",
    "gauge",
    "{event}",
    "events in the log that the exporter has not delivered",
    (LOG,),
)
QUARANTINE_DEPTH = Metric(
    f"{EVENT_NAME_PREFIX}quarantine.depth", "gauge", "{record}", "records that wait for their review", ()
)
METRICS = (DECISIONS, DECISION_RULES, FAILURES, DURATION, EXPORT_LAG, QUARANTINE_DEPTH)
# In seconds: a read from a file takes a millisecond, a bulk write through a server some seconds.
DURATION_BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


def event_attributes() -> Mapping[str, tuple[str, ...]]:
    """Every attribute that stands for a field of an event, with the events that may carry it."""
    found: dict[str, list[str]] = {}
    for row in CATALOGUE.values():
        for field in sorted(row.allowed):
            name = field if field == ERROR_TYPE else EVENT_NAME_PREFIX + field
            found.setdefault(name, []).append(row.name)
    return {name: tuple(events) for name, events in sorted(found.items())}


def names() -> Iterator[str]:
    """Every name of an attribute, a span or a metric, each once."""
    yield from dict.fromkeys(
        (
            *ATTRIBUTES,
            *event_attributes(),
            *(span.name for span in (*SPANS, *AGENT_SPANS)),
            *(one.name for one in METRICS),
        )
    )
