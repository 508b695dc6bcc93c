"""What came back over HTTP, believed only as far as it is an answer of an OPA."""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from agent_runtime_ref import compact_json
from agent_runtime_ref.errors import BundleError, EngineFailureError
from agent_runtime_ref.policy.json_value import parsed
from agent_runtime_ref.policy.opa_server.calls import Call, Connections

__all__ = [
    "ANSWER_BYTES_MAX",
    "POLICIES_BYTES_MAX",
    "QUERY",
    "Asking",
    "Question",
    "Reply",
    "failure_of",
    "require_length",
    "too_large",
]

# A thousand candidates, each kept out for several reasons, are about two megabytes.
ANSWER_BYTES_MAX = 4 * 1024 * 1024
# The server's own account of its modules brings the syntax tree of each along.
POLICIES_BYTES_MAX = 64 * 1024 * 1024
_DETAIL_MAX = 200
_WRAPPED_MAX = 16  # errors within an error that are looked at
# An error of a built-in is an error, as it is to the embedded engine, and each answer names its bundles.
QUERY = {"provenance": "true", "strict-builtin-errors": "true"}


class Asking(Protocol):
    """A client of the server; safe to call from any thread."""

    connections: Connections

    def decision(self, package: str, question: Question) -> Any:
        """Return what the server answers to a question about `package`.decision.

        Raises:
            EngineFailureError: there is no answer, or none that is JSON.
        """
        ...

    def fetched(self, path: str, call: Call) -> Any:
        """Return what the server tells at `path`, below /v1.

        Raises:
            EngineFailureError: there is no answer, or none that is JSON.
        """
        ...

    def close(self) -> None:
        """Give the sockets back."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """An input document on its way, as JSON already: the client hands it on without looking into it."""

    body: bytes  # {"input": ...}
    call: Call

    @classmethod
    def of(cls, document: str, call: Call) -> Question:
        """Return the question about an input document, a JSON text.

        Raises:
            EngineFailureError: reason engine_exception, it is no Unicode text.
        """
        try:
            return cls(b'{"input":' + document.encode() + b"}", call)
        except UnicodeEncodeError as error:
            raise EngineFailureError("engine_exception", "the input is no Unicode text") from error


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body of an HTTP answer, with the two methods that the client calls on one.

    The body is that of a status of 200; no other is read.
    """

    status: int
    body: bytes

    def raise_for_status(self) -> None:
        """Return if the status is 200; a redirect is followed nowhere.

        Raises:
            EngineFailureError: reason engine_http_error.
        """
        if self.status != 200:
            raise EngineFailureError("engine_http_error", f"HTTP status {self.status}")

    def json(self) -> Any:
        """Return the value of the body.

        Raises:
            EngineFailureError: reason engine_malformed, it is no JSON, or such as two readers could take for
                two things: a key that stands twice, NaN, a number beyond all bounds, half a character.
        """
        body = self.body.rstrip()
        with suppress(ValueError, TypeError):
            value = compact_json.parsed(body)
            # What is written back as it came, as nearly every answer is, says nothing twice.
            if compact_json.compact(value).encode() == body:
                return value
        try:
            return parsed("the answer", body)
        except BundleError as error:
            raise EngineFailureError("engine_malformed", "the answer is no clear JSON") from error


def require_length(headers: Mapping[str, str], bytes_max: int) -> None:
    """Return if the headers announce a body that may be read.

    Raises:
        EngineFailureError: it is packed although nobody asked for that, or larger than any answer is.
    """
    if headers.get("Content-Encoding", "identity").lower() != "identity":
        raise EngineFailureError("engine_malformed", "the answer is packed, which was not asked for")
    announced = headers.get("Content-Length", "")
    if announced.isdecimal() and int(announced[:20]) > bytes_max:
        raise too_large(bytes_max)


def too_large(bytes_max: int) -> EngineFailureError:
    """Return the refusal of an answer above the bound."""
    return EngineFailureError("engine_answer_too_large", f"more than {bytes_max} bytes")


def failure_of(
    error: BaseException, call: Call, address: object, *, no_http: bool = False
) -> EngineFailureError:
    """Return what an error of an HTTP library means, asked for a server at `address`."""
    if call.left <= 0 or isinstance(error, TimeoutError):
        return call.passed()
    if no_http:
        return EngineFailureError("engine_malformed", "the answer is no HTTP")
    # Libraries wrap what the system said, as a cause, a context or an argument; that is what a person needs.
    told = list(_within(error))
    system = [one for one in told if isinstance(one, OSError) and one.strerror]
    # A refused certificate is told as an operation that is not permitted as well.
    system.sort(key=lambda one: not isinstance(one, ssl.SSLError))
    if not system:
        # A library's own words may quote the token.
        return EngineFailureError(
            "engine_unreachable", f"no answer from {address} ({type(told[-1]).__name__})"
        )
    return EngineFailureError("engine_unreachable", f"no connection to {address}: {_reason(system[0])}")


def _within(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and, outermost first, those that it was made of."""
    seen: list[BaseException] = []
    left = [error]
    while left and len(seen) < _WRAPPED_MAX:
        one = left.pop(0)
        if one not in seen:
            seen.append(one)
            yield one
            inner = (one.__cause__, one.__context__, *one.args)
            left += [part for part in inner if isinstance(part, BaseException)]


def _reason(error: OSError) -> str:
    """Return what the system says, without the address and the call that libraries write beside it."""
    if isinstance(error, ssl.SSLCertVerificationError):
        said = getattr(error, "verify_message", error.strerror)
        return f"its certificate is refused: {_one_line(str(said))}"
    if isinstance(error, ssl.SSLError) or error.errno not in errno.errorcode:
        return _one_line(str(error.strerror))
    return os.strerror(error.errno or 0).lower()


def _one_line(text: str) -> str:
    return " ".join(text.split())[:_DETAIL_MAX] or "the connection ended"
