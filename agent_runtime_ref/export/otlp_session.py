"""The session of requests that batches are sent over: what the `OTEL_*` variables say counts in it.

A session of requests has three habits that would be in the way. A variable that names certificates for all of
its users goes before the one of the exporter; what `~/.netrc` says of a host takes the place of the header by
which the exporter is to identify itself; and its timeout begins anew with each byte of an answer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from requests import PreparedRequest, Session

_CREDENTIALS = (
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER",
    "OTEL_PYTHON_EXPORTER_OTLP_HTTP_LOGS_CREDENTIAL_PROVIDER",
)


def session_of_environment() -> Any:
    """Return a session; that of a provider of credentials, where a variable of the SDK names one.

    Raises:
        UsageError: there is no such provider.
    """
    import requests

    name = next((os.environ[one] for one in _CREDENTIALS if os.environ.get(one)), None)
    session = _provided(name) if name is not None else requests.Session()
    if name is None:
        session.auth = _of_the_address
        for scheme in ("http://", "https://"):
            session.mount(scheme, _deadline_adapter())
    _certified(session)
    return session


def _provided(name: str) -> Session:
    from importlib.metadata import entry_points

    import requests

    for found in entry_points(group="opentelemetry_otlp_credential_provider", name=name):
        session = found.load()()
        if isinstance(session, requests.Session):
            return session
    raise UsageError(f"credential provider `{name}` is not installed, or gives no session of requests")


def _of_the_address(request: PreparedRequest) -> PreparedRequest:
    """Take user and password of the address, if it has them; without a word here those of ~/.netrc count."""
    from requests.auth import HTTPBasicAuth
    from requests.utils import get_auth_from_url

    user, password = get_auth_from_url(request.url or "")
    return HTTPBasicAuth(user, password)(request) if user or password else request


def _certified(session: Session) -> None:
    """Let the certificate that the exporter puts into the session go before what is said for everybody."""
    merged = session.merge_environment_settings

    def settings(url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        own = session.verify if verify is None and session.verify is not True else verify
        return merged(url, proxies, stream, own, cert)

    session.merge_environment_settings = settings  # type: ignore[method-assign]


def _deadline_adapter() -> Any:
    """Return an adapter whose connections keep to the deadline of the call that uses them."""
    from requests.adapters import HTTPAdapter
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
    from urllib3.util.ssl_ import create_urllib3_context

    from agent_runtime_ref.policy.opa_server.calls import DeadlineTLSSocket, connected

    def new_connection(self: Any) -> Any:
        return connected(self._dns_host, self.port, self.socket_options)

    def pool(base: Any, kind: Any) -> Any:
        connection = type("_Connection", (kind,), {"_new_conn": new_connection})
        return type("_Pool", (base,), {"ConnectionCls": connection})

    context = create_urllib3_context()
    context.sslsocket_class = DeadlineTLSSocket

    class _Adapter(HTTPAdapter):
        def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
            super().init_poolmanager(*arguments, ssl_context=context, **options)
            self.poolmanager.pool_classes_by_scheme = {
                "http": pool(HTTPConnectionPool, HTTPConnection),
                "https": pool(HTTPSConnectionPool, HTTPSConnection),
            }

    return _Adapter()
