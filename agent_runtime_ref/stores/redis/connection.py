"""The server: scripts run on it, again where a connection was lost; its errors in this package's words."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.errors import StoreCapabilityError, StoreDamagedError, StoreError
from agent_runtime_ref.stores.redis.address import Address
from agent_runtime_ref.stores.redis.names import PREFIX
from agent_runtime_ref.stores.redis.scripts import Script

if TYPE_CHECKING:
    import redis

CONNECT_SECONDS = 10
ANSWER_SECONDS = 30
CONNECTIONS_MAX = 16
# A script whose connection was lost is sent this often again, with these pauses between.
PAUSES_SECONDS = (0.05, 0.2, 0.8)

# What a server answers, by the first word of it; the rest may quote what was sent, and is not told.
_REFUSED = {
    "NOPERM": "who logs in may not do this; docs/how-to/keep-a-session-in-redis.md has the rights it needs",
    "READONLY": "it is a replica, which takes no writes",
    "MOVED": "it is part of a cluster, and another server is named; that is not followed",
    "ASK": "it is part of a cluster, and another server is named; that is not followed",
    "CLUSTERDOWN": "it is part of a cluster that is down",
    "CROSSSLOT": "it is part of a cluster",
    "OOM": "it is out of memory; nothing was written",
    "MISCONF": "it cannot write to its disk; nothing was written",
    "NOREPLICAS": "too few of its replicas answer; nothing was written",
}
_CANNOT = frozenset({"NOPERM", "READONLY", "MOVED", "ASK", "CROSSSLOT"})
_WORDS = {
    "NoPermissionError": "NOPERM",
    "ReadOnlyError": "READONLY",
    "MovedError": "MOVED",
    "AskError": "ASK",
    "ClusterDownError": "CLUSTERDOWN",
    "ClusterCrossSlotError": "CROSSSLOT",
    "OutOfMemoryError": "OOM",
}


class Server:
    """One database of one server, for all threads of a process; after a fork, by new connections."""

    def __init__(self, address: Address) -> None:
        self.place = address.shown
        self.identity = ""
        self._address = address
        self._closed = False
        self._pid = os.getpid()
        self._client = self._made()

    def _made(self) -> redis.Redis:
        import redis
        from redis.backoff import NoBackoff
        from redis.maint_notifications import MaintNotificationsConfig
        from redis.retry import Retry

        kind = redis.SSLConnection if self._address.tls else redis.Connection
        pool = redis.BlockingConnectionPool(  # type: ignore[no-untyped-call]
            connection_class=kind,
            max_connections=CONNECTIONS_MAX,
            timeout=CONNECT_SECONDS,
            socket_connect_timeout=CONNECT_SECONDS,
            socket_timeout=ANSWER_SECONDS,
            protocol=2,
            # A server must not send its clients to another one.
            maint_notifications_config=MaintNotificationsConfig(enabled=False),
            # Repeated here, where it is known what may be repeated.
            retry=Retry(NoBackoff(), 0),
            client_name="agent-runtime-ref",
            **self._address.options(),
        )
        return redis.Redis(connection_pool=pool)

    def run(self, script: Script, *arguments: str | bytes) -> list[Any]:
        """What a script answers about the store that was opened; tried again where the connection was lost.

        Raises:
            StoreError: the server cannot be reached, refuses, or no longer has the store.
        """
        reply = self.ask(script, PREFIX, self.identity, *arguments)
        assert isinstance(reply, list), "every script answers with a list"
        word = reply[0]
        if word == b"lost":
            problem = "the server no longer has what was opened: it was emptied, or started without its data"
            raise StoreError(self.place, f"{problem}; open the store again")
        if word == b"type":
            raise StoreDamagedError(self.place, f"the key `{_text(reply[1])}` holds another type of value")
        return reply

    def ask(self, script: Script, *arguments: str | bytes) -> Any:
        """What a script answers, whatever the store is."""
        for pause in (*PAUSES_SECONDS, None):
            try:
                with translated(self.place):
                    return self.send(script, arguments)
            except StoreError as error:
                if pause is None or not _is_lost(error.__cause__):
                    raise
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def send(self, script: Script, arguments: Sequence[str | bytes]) -> Any:
        """Run a script once."""
        from redis.exceptions import NoScriptError

        client = self._opened()
        try:
            return client.evalsha(script.sha, 0, *arguments)
        except NoScriptError:
            return client.eval(script.text, 0, *arguments)

    def command(self, *words: str | int) -> Any:
        """What the server answers to a command that changes nothing."""
        with translated(self.place):
            return self._opened().execute_command(*words)  # type: ignore[no-untyped-call]

    def _opened(self) -> redis.Redis:
        if self._closed:
            raise StoreError(self.place, "the store is closed")
        if self._pid != os.getpid():
            # The locks of the parent's pool may be held by threads that are not here.
            self._pid, self._client = os.getpid(), self._made()
        return self._client

    def close(self) -> None:
        """Give up every connection of this process."""
        self._closed = True
        if self._pid == os.getpid():
            self._client.connection_pool.disconnect()


def _is_lost(error: BaseException | None) -> bool:
    """Whether the same may succeed on another connection."""
    from redis import exceptions

    refused = (exceptions.AuthenticationError, exceptions.MaxConnectionsError)
    return isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError) and not isinstance(
        error, refused
    )


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Turn what the driver raises into what the package documents."""
    from redis.exceptions import RedisError

    try:
        yield
    except RedisError as error:
        raise _store_error(place, error) from error
    except UnicodeError:
        # Without the cause: it quotes the text.
        raise StoreError(place, "a text is no Unicode and cannot be sent") from None


def _store_error(place: str, error: Exception) -> StoreError:
    from redis import exceptions

    if isinstance(error, exceptions.AuthenticationError):
        return StoreError(place, "it refuses the login")
    if isinstance(error, exceptions.BusyLoadingError):
        return StoreError(place, "it is still loading its data")
    if isinstance(error, exceptions.TimeoutError):
        return StoreError(place, "it does not answer in time; whether something was written is not known")
    if isinstance(error, exceptions.ConnectionError):
        return StoreError(place, f"no connection to it ({_first_line(error)})")
    if "WRONGTYPE" in str(error):
        return StoreDamagedError(place, "one of its keys holds another type of value")
    # For some the driver has classes of their own, and takes the word off the text.
    word = _WORDS.get(type(error).__name__) or _first_line(error).partition(" ")[0]
    kind = StoreCapabilityError if word in _CANNOT else StoreError
    return kind(place, _REFUSED.get(word, f"it refuses a script ({type(error).__name__})"))


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _text(value: object) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
