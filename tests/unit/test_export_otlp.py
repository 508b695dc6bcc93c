"""What a collector answers is believed in its details: taken, rejected, refused, or not to be reached."""

from __future__ import annotations

import base64
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.export import Answer
from agent_runtime_ref.export.otlp import collector_of, otlp_sender
from tests.exporting import event_body, events, sent
from tests.opa import free_port
from tests.otlp_receiver import TAKEN, Receiver, Response, attribute, event_id, partly, records_of, refused

pytestmark = pytest.mark.usefixtures("short_timeout")


def test_a_log_record_has_name_time_severity_body_and_flat_attributes(receiver: Receiver) -> None:
    """The contract's names; what is nested is JSON text, and what has no value is left out."""
    (event,) = events(
        event_body(1, "retrieval", effect="deny", exclusions={"trust": 2}, rule_ids=["MEM-R-1"], limit=None)
    )
    answer = sent(receiver.url, event)

    (record,) = records_of(receiver.lines)
    assert answer == Answer("taken")
    assert record["eventName"] == "agent_memory.retrieval"
    assert (record["timeUnixNano"], record["severityText"]) == ("1796029200000001000", "INFO")
    assert record["body"] == {"stringValue": "retrieval deny"}
    assert attribute(record, "agent_memory.event_type") == "retrieval"
    assert attribute(record, "agent_memory.exclusions") == '{"trust": 2}'
    assert attribute(record, "agent_memory.rule_ids") == {"values": [{"stringValue": "MEM-R-1"}]}
    assert attribute(record, "agent_memory.limit") is None
    assert event_id(record) == "evt-001"


def test_an_event_that_happened_in_a_span_is_correlated_with_it(receiver: Receiver) -> None:
    """Also when it is exported long after the span; an id that is none is passed over."""
    span = {"otel_trace_id": "0af7651916cd43dd8448eb211c80319c", "otel_span_id": "b7ad6b7169203331"}
    sent(receiver.url, *events(event_body(1, **span), event_body(2, **span | {"otel_span_id": "rubbish"})))

    inside, outside = records_of(receiver.lines)
    ids = [base64.b64decode(inside[name]).hex() for name in ("traceId", "spanId")]
    assert ids == [span["otel_trace_id"], span["otel_span_id"]]
    assert "spanId" not in outside


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (partly(1, "too\n long"), Answer("taken", rejected=1, reason="too long")),
        (partly(0, "a warning"), Answer("taken", reason="a warning")),
        (refused(400), Answer("refused", reason="the collector answered 400 Bad Request")),
        (refused(413), Answer("refused", reason="the collector answered 413 Request Entity Too Large")),
        (refused(401), Answer("unavailable", reason="the collector answered 401 Unauthorized")),
        (refused(404), Answer("unavailable", reason="the collector answered 404 Not Found")),
        (refused(503), Answer("unavailable", reason="the collector answered 503 Service Unavailable")),
        (refused(302), Answer("unavailable", reason="the collector answered 302 Found")),
        (
            Response(200, b"<!doctype html><title>It works</title>", content_type="text/html"),
            Answer("unavailable", reason="its answer is none of OTLP; is it a collector?"),
        ),
        (
            Response(200, b"\n" * 2_000_000),
            Answer("unavailable", reason="no answer from the collector: ValueError"),
        ),
    ],
    ids=[
        "rejected-in-part",
        "warning",
        "400",
        "413",
        "401",
        "404",
        "503",
        "redirect",
        "page",
        "endless",
    ],
)
def test_an_answer_is_a_success_only_where_it_says_so(response: Response, expected: Answer) -> None:
    """A redirect, a page, one without end and a refusal are none, whatever the exporter makes of them."""
    with Receiver(lambda _: response) as receiver:
        assert sent(receiver.url) == expected


def test_a_collector_that_is_not_there_or_does_not_answer_is_unavailable(receiver: Receiver) -> None:
    """Neither is taken for a delivery, and neither raises."""
    import time

    def slow(_: Any) -> Response:
        time.sleep(1)
        return TAKEN

    receiver.decide = slow

    answers = [sent(receiver.url), sent(f"http://127.0.0.1:{free_port()}")]

    assert [answer.outcome for answer in answers] == ["unavailable"] * 2
    assert [answer.reason.rpartition(": ")[2] for answer in answers] == ["ReadTimeout", "ConnectionError"]


def test_what_is_larger_than_a_request_may_be_is_refused_and_not_asked_for_ever(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A smaller part of the batch may go; what is too large by itself must not hold up the others."""
    exporter = "opentelemetry.exporter.otlp.proto.http._log_exporter"
    monkeypatch.setattr(f"{exporter}._DEFAULT_MAX_REQUEST_SIZE", 2_000)

    assert sent(receiver.url, *events(event_body(1, record_id="m" * 3_000))).outcome == "refused"
    assert sent(receiver.url).outcome == "taken"


def test_the_variables_of_opentelemetry_are_followed(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Address, headers, compression, resource and limits come from where every other exporter has them."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=memory")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    monkeypatch.setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "4")
    with pytest.warns(UserWarning, match="dropped due to limits"):
        assert sent(None).outcome == "taken"

    headers = {name.lower(): value for name, value in receiver.headers[0].items()}
    assert (headers["x-team"], headers["content-encoding"]) == ("memory", "gzip")
    assert '"shop"' in receiver.lines[0]
    assert '"deployment.environment.name"' in receiver.lines[0]
    (record,) = records_of(receiver.lines)
    assert [one["key"] for one in record["attributes"]][-2:] == [
        "agent_memory.log_hash",
        "agent_memory.event_id",
    ]
    assert len(record["attributes"]) == 4


def test_an_address_of_all_signals_and_one_of_log_records_lead_to_the_same(receiver: Receiver) -> None:
    """`--endpoint` may be either."""
    for address in (receiver.url, f"{receiver.url}/", f"{receiver.url}/v1/logs"):
        assert sent(address).outcome == "taken"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "is not spoken here"),
        ("OTEL_CONFIG_FILE", "otel.yaml", "OTEL_CONFIG_FILE would be ignored"),
        ("OTEL_LOGS_EXPORTER", "console", "sends by otlp"),
    ],
)
def test_a_variable_that_cannot_be_followed_is_said(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    """Rather than sent elsewhere, or otherwise, than somebody asked for."""
    monkeypatch.setenv(name, value)

    with pytest.raises(UsageError, match=said):
        otlp_sender(None)


@pytest.mark.parametrize("address", ["localhost:4318", "ftp://127.0.0.1", "http://", "http://127.0.0.1:no"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    """The sentence shows how one looks."""
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:4318"):
        otlp_sender(address)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("ftp://user:hidden@127.0.0.1/hidden?hidden", "--endpoint is no address"),
        ("http://user:hidden@127.0.0.1:0/hidden?hidden", "--endpoint is no address"),
        ("user:hidden@127.0.0.1:4318", "--endpoint is no address"),
        ("http://user:hidden/@127.0.0.1", "--endpoint is no address"),
    ],
)
def test_an_address_that_is_refused_is_not_quoted(address: str, shown: str) -> None:
    """It may hold a user, a password or a token."""
    with pytest.raises(UsageError, match=shown) as raised:
        otlp_sender(address)

    assert "hidden" not in f"{raised.value!r} {raised.value}"
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("endpoint", "variables", "where"),
    [
        ("http://user:secret@127.0.0.1:9/private", {}, "http://127.0.0.1:9"),
        (None, {}, "http://localhost:4318"),
        (None, {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://localhost:4317"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://[::1]/x?token=secret"}, "https://[::1]"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost:4317"}, "the collector"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://here:port"}, "the collector"),
    ],
)
def test_a_collector_is_named_without_what_is_secret(
    endpoint: str | None, variables: dict[str, str], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message has scheme, host and port of where events go, and never a user, a path or a query."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert collector_of(endpoint) == where


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has installed the package alone is told what to install."""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)

    with pytest.raises(UsageError, match=r"pip install '\.\[otel\]'"):
        otlp_sender("http://127.0.0.1:4318")


def test_no_provider_is_set_for_the_process(receiver: Receiver) -> None:
    """Sending leaves the application's own choice open."""
    from opentelemetry import _logs

    before = _logs.get_logger_provider()
    sent(receiver.url)

    assert _logs.get_logger_provider() is before


class GrpcCollector:
    """A collector that speaks gRPC and answers as it is told."""

    def __init__(self) -> None:
        import grpc
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as messages
        from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as service

        self.answer = messages.ExportLogsServiceResponse()
        self.code: Any = None
        self.details = "no\nway"
        self.names: list[str] = []
        self.asked = 0
        collector = self

        class Service(service.LogsServiceServicer):
            def Export(self, request: Any, context: Any) -> Any:
                collector.asked += 1
                if collector.code is not None:
                    context.abort(collector.code, collector.details)
                records = request.resource_logs[0].scope_logs[0].log_records
                collector.names += [record.event_name for record in records]
                return collector.answer

        self._server = grpc.server(ThreadPoolExecutor(1))
        service.add_LogsServiceServicer_to_server(Service(), self._server)
        self.url = f"http://127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def close(self) -> None:
        """End it."""
        self._server.stop(None).wait()


def test_grpc_says_the_same_as_http(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taken, rejected in part, refused, and not to be reached."""
    import grpc

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "2")
    collector = GrpcCollector()
    try:
        taken = sent(collector.url)
        collector.answer.partial_success.rejected_log_records = 1
        partial = sent(collector.url)
        collector.code = grpc.StatusCode.INVALID_ARGUMENT
        refusal = sent(collector.url)
        collector.code = grpc.StatusCode.UNAUTHENTICATED
        locked_out = sent(collector.url)
        collector.code, collector.details = (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "received message larger than max",
        )
        too_large = sent(collector.url)
    finally:
        collector.close()
    gone = sent(collector.url)

    assert (taken, partial) == (Answer("taken"), Answer("taken", rejected=1))
    assert refusal == Answer("refused", reason="the collector answered INVALID_ARGUMENT no way")
    assert (locked_out.outcome, too_large.outcome, gone.outcome) == ("unavailable", "refused", "unavailable")
    assert collector.names == ["agent_memory.memory_persisted"] * 2


def test_grpc_sends_a_batch_that_is_too_large_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be too large again, and until the time is over the answer would be that the time is over."""
    import grpc

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_TIMEOUT", "5")
    collector = GrpcCollector()
    collector.code, collector.details = (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "larger than max (9 vs. 8)",
    )
    try:
        answer = sent(collector.url)
    finally:
        collector.close()

    said = "the collector answered RESOURCE_EXHAUSTED larger than max (9 vs. 8)"
    assert (collector.asked, answer) == (1, Answer("refused", reason=said))
