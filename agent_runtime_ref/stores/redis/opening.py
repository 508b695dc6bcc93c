"""What a server says of itself when a store on it is opened, and which servers are refused."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, NamedTuple

from agent_runtime_ref.errors import (
    StoreAddressError,
    StoreCapabilityError,
    StoreDamagedError,
    StoreError,
    StoreVersionError,
)
from agent_runtime_ref.stores.redis.connection import Server
from agent_runtime_ref.stores.redis.names import PREFIX, STORE, Names
from agent_runtime_ref.stores.redis.scripts import CHANGE, FIELD, OPEN
from agent_runtime_ref.stores.redis.view import Wanted, load

FORMAT = 1
OLDEST = (6, 2)
_KEY_BYTES = 32
_TRIAL = Names(f"{PREFIX}trial:")
# What forces each write to the server's disk before it is acknowledged. The last one: otherwise nothing is
# forced while a child of the server saves or rewrites its file. `aof-load-truncated` is not among them: a
# file that was cut short at its end lacks what was never acknowledged, and half a script is left out whole.
_FORCING = (("appendonly", "yes"), ("appendfsync", "always"), ("no-appendfsync-on-rewrite", "no"))


class Known(NamedTuple):
    """What a store is opened with."""

    identity: str
    store_key: bytes
    volatile_because: str | None  # None: what it acknowledges is on its disk


def examined(server: Server, *, must_exist: bool) -> Known:
    """What the server holds of a store, which is made where there is none and none has to be.

    Raises:
        StoreCapabilityError: the server could lose single keys, sends its clients elsewhere, takes no
            writes, or refuses what a store does.
        StoreVersionError: a newer version of this package made the store.
        StoreDamagedError: what stands in its place is none.
        StoreAddressError: there is none, and it must exist.
        StoreError: the server cannot be reached.
    """
    _require_fit(server, _told(server))
    made = () if must_exist else (secrets.token_hex(16), secrets.token_hex(_KEY_BYTES))
    found = server.ask(OPEN, PREFIX, str(FORMAT), *made)
    identity, key = _checked(server.place, found)
    server.identity = identity
    _require_rights(server)
    return Known(identity, key, _volatile_because(server))


def _told(server: Server) -> Mapping[str, Any]:
    """What INFO says; where it may not be asked, nothing is known, and that is refused."""
    told: dict[str, Any] = {}
    for section in ("server", "replication", "memory", "cluster"):
        answer = server.command("INFO", section)
        if not isinstance(answer, Mapping):
            raise StoreError(server.place, "it does not say what it is")
        told |= answer
    return told


def _require_fit(server: Server, told: Mapping[str, Any]) -> None:
    version = str(told.get("redis_version", ""))
    numbers = tuple(int(one) if one.isdigit() else 0 for one in version.split(".")[:2])
    if numbers < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        raise StoreCapabilityError(
            server.place, f"its version is {version or 'unknown'}; {wanted} is the oldest"
        )
    if str(told.get("cluster_enabled", "0")) != "0" or told.get("redis_mode") == "cluster":
        problem = "it is part of a cluster, where one script cannot change what two tenants share"
        raise StoreCapabilityError(server.place, f"{problem}; name a server of its own")
    if told.get("role") not in ("master", None):
        raise StoreCapabilityError(server.place, "it is a replica, which takes no writes; name its primary")
    policy = told.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        problem = f"its maxmemory-policy is {policy}, which throws away records, tombstones and log lines"
        raise StoreCapabilityError(server.place, f"{problem}; set it to noeviction")


def _checked(place: str, found: Any) -> tuple[str, bytes]:
    """Identity and key out of the server."""
    if not isinstance(found, list) or len(found) != 3:
        raise StoreDamagedError(place, f"what stands under `{STORE}` is no store")
    if found == [None, None, None]:
        raise StoreAddressError(place, "there is no store in this database")
    version, identity, key = (
        one.decode("ascii", "replace") if isinstance(one, bytes) else "" for one in found
    )
    if version.isdigit() and int(version) > FORMAT:
        raise StoreVersionError(place, f"its format is {version}, known is {FORMAT}")
    try:
        known = bytes.fromhex(key)
    except ValueError:
        known = b""
    if version != str(FORMAT) or not identity or len(known) != _KEY_BYTES:
        raise StoreDamagedError(place, f"what stands under `{STORE}` is no store")
    return identity, known


def _require_rights(server: Server) -> None:
    """Do once, on keys of its own, all that a store does: half of a write is what nobody can take back."""
    text, index, lines = _TRIAL.index("text"), _TRIAL.index("index"), _TRIAL.index("lines")
    members = _TRIAL.index("names")
    steps = (
        ("put", text, "1", "1000"), ("swap", text, "2"), ("drop", text),
        ("join", index, "1", "1000"), ("join", index, "2", ""), ("part", index, "1"),
        ("set", _TRIAL.standing, "a", "1"), ("count", _TRIAL.standing, "b", "1"),
        ("unset", _TRIAL.standing, "a"), ("tail", lines, "0"), ("line", lines, "1"),
        ("name", members, "1"),
    )  # fmt: skip
    # First too: an earlier trial may have ended half way.
    server.command("DEL", _TRIAL.standing, index, lines, members)
    server.run(CHANGE, secrets.token_hex(8), *(word for step in steps for word in step))
    server.run(FIELD, _TRIAL.standing, "c", "1")
    everything = Wanted({"1": None}, {b"1": None}, {"a": None}, {("1", "1"): None}, {b"1": None})
    load(server, {None: everything})
    server.command("LRANGE", lines, 0, 1)
    server.command("SMEMBERS", members)
    server.command("DEL", _TRIAL.standing, index, lines, members)


def _volatile_because(server: Server) -> str | None:
    """Why a write may be acknowledged before it is on disk; None where it never is."""
    for name, wanted in _FORCING:
        try:
            answer = server.command("CONFIG", "GET", name)
        except StoreError:
            return "its server does not say whether it forces writes to its disk; allow `config|get`"
        pairs = (
            answer.items() if isinstance(answer, Mapping) else zip(answer[::2], answer[1::2], strict=False)
        )
        values = [_word(value) for _, value in pairs]
        if values != [wanted]:
            return f"its server runs with `{name} {' '.join(values) or '(untold)'}`; set it to `{wanted}`"
    return None


def _word(value: object) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
