"""OTLP over gRPC: the exporter of the SDK, with an eye on what the collector answers.

The exporter drops the answer, in which a collector says that it rejected records. So its stub is wrapped; it
makes a new one each time that it opens a channel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_runtime_ref.export.answers import Answer
from agent_runtime_ref.export.otlp import Records, partial_answer, worded
from agent_runtime_ref.export.outgoing import Outgoing

# By this a collector says that the batch is at fault, and not the way to it or its own state.
_REFUSAL = "INVALID_ARGUMENT"
# And by this too, beside that it is busy; only its words tell them apart.
_EXHAUSTED, _TOO_LARGE = "RESOURCE_EXHAUSTED", "larger than max"


class GrpcSender:
    """Sends batches and reads the answers."""

    def __init__(self, endpoint: str | None) -> None:
        """Send to `endpoint`, else where the environment says."""
        from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter

        heard = self._heard = _Heard()

        class _Watched(OTLPLogExporter):
            _watched: Any = None

            @property
            def _client(self) -> Any:
                return self._watched

            @_client.setter
            def _client(self, stub: Any) -> None:
                self._watched = None if stub is None else _Stub(stub, heard)

        self._records = Records()
        self._exporter: Any = _Watched(endpoint)

    def send(self, events: Sequence[Outgoing]) -> Answer:
        """Hand over a batch; a collector that is not there is tried again within the exporter's timeout."""
        from opentelemetry.sdk._logs.export import LogRecordExportResult

        heard = self._heard
        heard.forget()
        result = self._exporter.export(self._records.of(events))
        if result is LogRecordExportResult.SUCCESS and heard.response is not None:
            return partial_answer(heard.response.partial_success)
        if heard.code is None:
            return Answer("unavailable", reason="no answer from the collector")
        said = f"the collector answered {heard.code} {worded(heard.details)}".rstrip()
        return Answer("refused" if heard.is_refusal else "unavailable", reason=said)

    def close(self) -> None:
        """Close the channel."""
        self._exporter.shutdown()


class _Heard:
    """The last answer."""

    def __init__(self) -> None:
        self.response: Any = None
        self.code: str | None = None
        self.details = ""

    @property
    def is_refusal(self) -> bool:
        """Whether the batch is at fault, so that the same one would be refused again."""
        return self.code == _REFUSAL or (self.code == _EXHAUSTED and _TOO_LARGE in self.details)

    def forget(self) -> None:
        """Be as before the first answer."""
        self.response, self.code, self.details = None, None, ""


class _Stub:
    """Calls the collector and keeps what it answers."""

    def __init__(self, stub: Any, heard: _Heard) -> None:
        self._stub = stub
        self._heard = heard

    def Export(self, **options: Any) -> Any:  # noqa: N802 - the name of the service's method
        """Send a request as the exporter wants it sent."""
        import grpc

        self._heard.response = None
        try:
            self._heard.response = self._stub.Export(**options)
        except grpc.RpcError as error:
            self._heard.code, self._heard.details = error.code().name, str(error.details() or "")
            if self._heard.is_refusal:
                raise _final(error) from error
            raise
        return self._heard.response


def _final(error: Any) -> Exception:
    """Return an error that the exporter does not try again after: it takes a batch too large for a busy one.

    Tried again until its time is over, what it heard last would be that, and not what the collector said.
    """
    import grpc

    class _Final(grpc.RpcError):  # type: ignore[misc]
        def code(self) -> Any:
            return grpc.StatusCode.INVALID_ARGUMENT

        def details(self) -> Any:
            return error.details()

        def trailing_metadata(self) -> tuple[()]:
            return ()

    return _Final()
