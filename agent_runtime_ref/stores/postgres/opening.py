"""What a database says of itself when it is opened, and who may not open it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_runtime_ref.errors import StoreCapabilityError, StoreError
from agent_runtime_ref.recall.analysis import ANALYSER_VERSION
from agent_runtime_ref.stores.postgres.connection import CONNECT_SECONDS, SETTINGS, translated
from agent_runtime_ref.stores.postgres.migrate import newer, version_of
from agent_runtime_ref.stores.postgres.schema import MIGRATIONS
from agent_runtime_ref.stores.postgres.subjects import checked
from agent_runtime_ref.telemetry import diagnostics

if TYPE_CHECKING:
    import psycopg

_REMEDY = "run `agent-runtime-ref migrate` as the owner of its schema"
# Who is a superuser, has BYPASSRLS, or may act as one who has, or as the owner, could step round the walls.
_UNWALLED = (
    "SELECT rolname FROM pg_roles r WHERE pg_has_role(session_user, r.oid, 'MEMBER')"
    " AND (r.rolsuper OR r.rolbypassrls"
    " OR r.oid = (SELECT relowner FROM pg_class WHERE oid = 'agent_memory.records'::regclass)) LIMIT 1"
)
# Without them a crash of its machine may leave the server's files broken.
_LOSING = (
    "SELECT name FROM pg_settings"
    " WHERE setting = 'off' AND name IN ('fsync', 'full_page_writes') ORDER BY name"
)


class Known(NamedTuple):
    """What a store is opened with."""

    store_key: bytes
    application: str
    inspection: str


def examined(url: str, place: str) -> Known:
    """What the table meta of the database holds.

    Raises:
        StoreVersionError: the schema is newer than this version.
        StoreCapabilityError: who logs in could step round the walls, or may not act as the application.
        StoreError: the database cannot be reached, or has not been migrated to this version.
    """
    import psycopg

    with (
        translated(place),
        psycopg.connect(
            url, connect_timeout=CONNECT_SECONDS, options=SETTINGS, autocommit=True
        ) as connection,
    ):
        meta = _meta(connection, place)
        version = version_of(meta.get("version"), place)
        if version > len(MIGRATIONS):
            raise newer(place, version)
        if version < len(MIGRATIONS) or meta.get("analyser_version") != str(ANALYSER_VERSION).encode():
            raise StoreError(place, f"its schema is older than this version; {_REMEDY}")
        _require_walls(connection, place)
        names = [meta.get(name, b"").decode("utf-8", "replace") for name in ("application", "inspection")]
        _require_member(connection, place, names[0])
        key = checked(meta.get("store_key"), place)
        _tell_if_losing(connection, place)
        return Known(key, names[0], names[1])


def _tell_if_losing(connection: psycopg.Connection, place: str) -> None:
    """Warn whoever runs it of a server that gives up its files for speed: a client cannot turn that back."""
    found = connection.execute(_LOSING).fetchall()
    if found:
        told = ", ".join(f"{row[0]} = off" for row in found)
        detail = f"{place}: its server runs with {told}; a crash of its machine may lose what it acknowledged"
        diagnostics.warning("server_may_lose_commits", detail=detail)


def _meta(connection: psycopg.Connection, place: str) -> dict[str, bytes]:
    found = connection.execute(
        "SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = 'agent_memory'"
    ).fetchone()
    if found is None:
        raise StoreError(place, f"there is no store in the database; {_REMEDY}")
    if not found[0]:
        raise StoreCapabilityError(place, "who logs in is not a member of the application's role")
    return dict(connection.execute("SELECT name, value FROM meta").fetchall())


def _require_walls(connection: psycopg.Connection, place: str) -> None:
    found = connection.execute(_UNWALLED).fetchone()
    if found is not None:
        problem = (
            f"who logs in may act as `{found[0]}`, whom no wall holds; log in as a member of the"
            " application's role alone"
        )
        raise StoreCapabilityError(place, problem)


def _require_member(connection: psycopg.Connection, place: str, application: str) -> None:
    found = connection.execute(
        "SELECT 1 FROM pg_roles WHERE rolname = %s AND pg_has_role(session_user, oid, 'MEMBER')",
        (application,),
    ).fetchone()
    if found is None:
        raise StoreCapabilityError(place, f"who logs in is not a member of the role `{application}`")
