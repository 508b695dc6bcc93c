"""OTLP over HTTP: the exporter of the SDK, with an eye on what the collector answers.

The exporter says success or failure and no more. Whether records were rejected, whether a failure is the
batch's fault, and whether a success is one (it takes a redirect for that) stands in the response.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from agent_runtime_ref.export.answers import Answer
from agent_runtime_ref.export.otlp import Records, answer_of, timeout_seconds, worded
from agent_runtime_ref.export.otlp_session import session_of_environment
from agent_runtime_ref.export.outgoing import Outgoing

# By these a collector says that the batch is at fault, and not the way to it or its own state.
_REFUSALS = (400, 413, 422)
_BODY_BYTES_MAX = 1024 * 1024
_BODY_SECONDS_MAX = 30.0  # a timeout of the session counts from one byte to the next


class _Heard(NamedTuple):
    """An answer."""

    status: int
    reason: str
    body: bytes
    retry_after: str | None = None


class HttpSender:
    """Sends batches and reads the answers."""

    def __init__(self, endpoint: str | None) -> None:
        """Send to `endpoint`, the full address for log records, else where the environment says."""
        from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

        self._records = Records()
        self._heard: _Heard | None = None
        session = session_of_environment()
        session.hooks["response"].append(self._answered)
        session.send = self._told(session.send)
        self._failure = ""
        self._tried = False
        self._exporter: Any = OTLPLogExporter(endpoint, session=session)

    def send(self, events: Sequence[Outgoing]) -> Answer:
        """Hand over a batch; a collector that is not there is tried again within the exporter's timeout."""
        from opentelemetry.sdk._logs.export import LogRecordExportResult

        from agent_runtime_ref.policy.opa_server.calls import Call, Connections, Within

        self._heard, self._failure, self._tried = None, "", False
        batch = self._records.of(events)
        with Within(Call(timeout_seconds(), Connections())):
            result = self._exporter.export(batch)
        heard = self._last()
        if not self._tried and result is not LogRecordExportResult.SUCCESS:
            return Answer("refused", reason="it is larger than a request may be")  # nobody was asked
        if heard is None:
            return Answer("unavailable", reason=f"no answer from the collector{self._failure}")
        if result is LogRecordExportResult.SUCCESS and 200 <= heard.status < 300:
            return answer_of(heard.body)
        said = f"the collector answered {heard.status} {worded(heard.reason)}".rstrip()
        if heard.status in _REFUSALS:
            return Answer("refused", reason=said)
        return Answer("unavailable", reason=said, wait_seconds=_seconds(heard.retry_after))

    def close(self) -> None:
        """Close the connection."""
        self._exporter.shutdown()

    def _answered(self, response: Any, *_: Any, **__: Any) -> None:
        """Take what there is to know of an answer, before the session reads all of a body without end."""
        self._heard = None
        body, end = b"", time.monotonic() + _BODY_SECONDS_MAX
        for part in response.iter_content(65_536):
            body += part
            if len(body) > _BODY_BYTES_MAX or time.monotonic() > end:
                response.close()
                raise ValueError("the answer is too long for one of OTLP")
        response._content = body  # as the session itself would have left it
        self._heard = _Heard(
            response.status_code, response.reason or "", body, response.headers.get("retry-after")
        )

    def _told(self, send: Callable[..., Any]) -> Callable[..., Any]:
        """Remember what kind of error kept a request from being answered; the exporter keeps it to itself."""

        def sent(*arguments: Any, **options: Any) -> Any:
            self._tried = True
            try:
                return send(*arguments, **options)
            except Exception as error:
                self._failure = f": {type(error).__name__}"
                raise

        return sent

    def _last(self) -> _Heard | None:
        return self._heard  # what the hook has put there meanwhile


def _seconds(retry_after: str | None) -> float:
    """Return how long a collector asks to be left alone; 0 where it says nothing that can be read."""
    text = "" if retry_after is None else retry_after.strip()
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        until = parsedate_to_datetime(text)
        return max(0.0, until.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError, OSError):
        return 0.0
