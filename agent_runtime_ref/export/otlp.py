"""Delivery to an OpenTelemetry collector, over OTLP/HTTP, or over gRPC with the extra for it.

The SDK makes the log records and its exporter sends them, so every `OTEL_*` variable that these know counts.
Its batch processor is left out: it loses what is in its queue, and says of nothing whether it arrived. No
provider is set for the process.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.export.answers import Answer, Sender
from agent_runtime_ref.export.outgoing import Outgoing
from agent_runtime_ref.telemetry.conventions import SCOPE
from agent_runtime_ref.telemetry.events import EVENT_NAME_PREFIX
from agent_runtime_ref.web_address import origin_of

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk._logs import ReadableLogRecord

_PATH = "/v1/logs"
_PROTOCOL = ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_HTTP, _GRPC = "http/protobuf", "grpc"
_TIMEOUT = ("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
_TIMEOUT_MAX = 86_400.0
_TIMEOUT_SECONDS = 10.0  # that of the exporter, which takes seconds
_COMPRESSION = ("OTEL_EXPORTER_OTLP_LOGS_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION")
_COMPRESSIONS = ("none", "gzip", "deflate")
_FILES = tuple(
    f"OTEL_EXPORTER_OTLP_{signal}{name}"
    for name in ("CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY")
    for signal in ("LOGS_", "")
)
_ENDPOINT = ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_DEFAULTS = {_HTTP: "http://localhost:4318", _GRPC: "http://localhost:4317"}  # those of the specification
_EXTRAS = {
    _HTTP: ("opentelemetry.exporter.otlp.proto.http", "otel"),
    _GRPC: ("opentelemetry.exporter.otlp.proto.grpc", "otel-grpc"),
}


def is_switched_off() -> str | None:
    """Return the variable by which nothing is to be sent, if there is one."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return "OTEL_SDK_DISABLED"
    if os.environ.get("OTEL_LOGS_EXPORTER", "").strip().lower() == "none":
        return "OTEL_LOGS_EXPORTER"
    return None


def otlp_sender(endpoint: str | None = None) -> Sender:
    """Return what sends to the collector at `endpoint`, else where the `OTEL_*` variables say.

    Raises:
        UsageError: an extra is missing, or an address or a variable cannot be followed.
    """
    protocol = _protocol()
    _require_followed(protocol)
    package, extra = _EXTRAS[protocol]
    if not _is_installed(package):
        raise UsageError(f"sending over {protocol} needs the extra `{extra}`; pip install '.[{extra}]'")
    _require_usable(endpoint, protocol)
    if protocol == _GRPC:
        from agent_runtime_ref.export.otlp_grpc import GrpcSender

        return GrpcSender(endpoint)
    from agent_runtime_ref.export.otlp_http import HttpSender

    return HttpSender(None if endpoint is None else _logs_url(endpoint))


def collector_of(endpoint: str | None) -> str:
    """Return the scheme, host and port that events are sent to, for a message: never a user or a path."""
    named = endpoint or next((os.environ[name] for name in _ENDPOINT if os.environ.get(name)), None)
    # gRPC takes an address without a scheme too
    return origin_of(named or _DEFAULTS[_protocol()]) or "the collector"


def _protocol() -> str:
    return next((os.environ[name] for name in _PROTOCOL if os.environ.get(name)), _HTTP).strip()


def timeout_seconds() -> float:
    """Return how long a batch may take, by the variables, else as long as the exporter says.

    Raises:
        UsageError: a variable says no time.
    """
    name = next((one for one in _TIMEOUT if os.environ.get(one)), None)
    if name is None:
        return _TIMEOUT_SECONDS
    try:
        seconds = float(os.environ[name])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < _TIMEOUT_MAX:
        raise UsageError(f"{name} must be a number of seconds above 0, and below {_TIMEOUT_MAX:.0f}")
    return seconds


def events_max() -> int | None:
    """The size of a batch that a variable asks for."""
    return _positive("OTEL_BLRP_MAX_EXPORT_BATCH_SIZE")


def schedule_seconds() -> float | None:
    """The time between two batches that a variable asks for."""
    milliseconds = _positive("OTEL_BLRP_SCHEDULE_DELAY")
    return None if milliseconds is None else milliseconds / 1000


class Records:
    """Makes log records of events, with the resource and the limits that the environment asks for."""

    def __init__(self) -> None:
        from opentelemetry._logs import SeverityNumber
        from opentelemetry.sdk._logs import LoggerProvider, LogRecordProcessor, ReadWriteLogRecord
        from opentelemetry.sdk.resources import Resource

        from agent_runtime_ref import __version__

        made: list[ReadWriteLogRecord] = []

        class _Kept(LogRecordProcessor):
            def on_emit(self, log_record: ReadWriteLogRecord) -> None:
                made.append(log_record)

            def shutdown(self) -> None:
                """Nothing is held here."""

            def force_flush(self, timeout_millis: int = 30_000) -> bool:
                return True

        self._made = made
        self._severity = SeverityNumber
        self._resource = Resource.create(_named())
        provider = LoggerProvider(self._resource, shutdown_on_exit=False)
        provider.add_log_record_processor(_Kept())
        self._logger = provider.get_logger(SCOPE, __version__)

    def of(self, events: Sequence[Outgoing]) -> list[ReadableLogRecord]:
        """Return the log records of `events`, in their order."""
        from opentelemetry.sdk._logs import ReadableLogRecord

        self._made.clear()
        for event in events:
            self._logger.emit(
                event_name=EVENT_NAME_PREFIX + event.event_type,
                timestamp=event.at_us * 1000,
                context=_span_context(event),
                severity_number=self._severity[event.severity],
                severity_text=event.severity,
                body=event.body,
                attributes=event.attributes(),
            )
        return [
            ReadableLogRecord(one.log_record, self._resource, one.instrumentation_scope, one.limits)
            for one in self._made
        ]


def _span_context(event: Outgoing) -> Context:
    """The span that an event happened in, as far as it names one; none of the exporter's own."""
    from opentelemetry import trace
    from opentelemetry.context import Context

    ids = [_hexadecimal(event.payload.get(name)) for name in ("otel_trace_id", "otel_span_id")]
    # Whether it was sampled is not known here; the log record is sent in either case.
    span = trace.SpanContext(ids[0], ids[1], is_remote=True)
    return trace.set_span_in_context(trace.NonRecordingSpan(span), Context()) if span.is_valid else Context()


def _hexadecimal(text: object) -> int:
    try:
        return int(text, 16) if isinstance(text, str) else 0
    except ValueError:
        return 0


def answer_of(body: bytes) -> Answer:
    """Return what a collector said with a response that is a success.

    A 200 that is no answer of OTLP comes from something else, which keeps nothing.
    """
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

    try:
        response = ExportLogsServiceResponse.FromString(body)
    except DecodeError:
        return Answer("unavailable", reason="its answer is none of OTLP; is it a collector?")
    return partial_answer(response.partial_success)


def partial_answer(partial: Any) -> Answer:
    """Return what the part of an answer says that tells of rejected records."""
    return Answer(
        "taken", rejected=max(0, partial.rejected_log_records), reason=worded(partial.error_message)
    )


def worded(text: str) -> str:
    """Return what a collector said, short and on one line."""
    return " ".join(text.split())[:200]


def _require_followed(protocol: str) -> None:
    if protocol not in _EXTRAS:
        raise UsageError(f"OTLP protocol `{protocol}` is not spoken here; use {_HTTP} or {_GRPC}")
    if os.environ.get("OTEL_CONFIG_FILE") or os.environ.get("OTEL_EXPERIMENTAL_CONFIG_FILE"):
        raise UsageError(
            "OTEL_CONFIG_FILE would be ignored here; unset it, and set the OTEL_EXPORTER_OTLP_* variables"
        )
    exporter = os.environ.get("OTEL_LOGS_EXPORTER", "otlp").strip().lower()
    if exporter not in ("", "otlp"):
        raise UsageError(f"OTEL_LOGS_EXPORTER is `{exporter}`; this command sends by otlp, or by none")


def _require_usable(endpoint: str | None, protocol: str) -> None:
    """Return if each variable can be followed: the exporter goes on without one that it cannot follow."""
    variable = next((one for one in _ENDPOINT if os.environ.get(one)), None)
    if endpoint is not None:
        _require_address(endpoint, "--endpoint")
    elif variable is not None and protocol == _HTTP:  # gRPC takes an address without a scheme too
        _require_address(os.environ[variable], variable)
    timeout_seconds()
    name = next((one for one in _COMPRESSION if os.environ.get(one)), None)
    if name is not None and os.environ[name].strip().lower() not in _COMPRESSIONS:
        raise UsageError(f"{name} names no compression that is known here; use {', '.join(_COMPRESSIONS)}")
    for name in _FILES:
        if os.environ.get(name) and not os.access(os.environ[name], os.R_OK):
            raise UsageError(f"{name} names a file that cannot be read")


def _require_address(endpoint: str, name: str) -> None:
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # It is not quoted: what is no address may be a password at any place.
        raise UsageError(f"{name} is no address; write it as http://127.0.0.1:4318")


def _logs_url(endpoint: str) -> str:
    """Return the full address for log records; what is given may be the base of all signals."""
    base = endpoint.rstrip("/")
    return base if base.endswith(_PATH) else base + _PATH


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # a part of its name
        return False


def _named() -> Mapping[str, str]:
    """The name of the service, unless the environment gives one: what is said here would go before that."""
    given = os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    named = os.environ.get("OTEL_SERVICE_NAME") or any(
        part.split("=")[0].strip() == "service.name" for part in given.split(",")
    )
    return {} if named else {"service.name": "agent-runtime-ref"}


def _positive(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise UsageError(f"{name} is `{text}`, and must be a whole number from 1")
    return int(text)
