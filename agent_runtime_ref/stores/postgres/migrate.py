"""Make or migrate the schema of a store, as its owner: forward only, in one transaction, under one lock."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from agent_runtime_ref.errors import StoreAddressError, StoreCapabilityError, StoreError, StoreVersionError
from agent_runtime_ref.recall.analysis import ANALYSER_VERSION
from agent_runtime_ref.stores.postgres import reindex
from agent_runtime_ref.stores.postgres.address import checked, shown
from agent_runtime_ref.stores.postgres.connection import CONNECT_SECONDS, SETTINGS, translated
from agent_runtime_ref.stores.postgres.schema import MIGRATION_LOCK, MIGRATIONS, SCHEMA, grants

if TYPE_CHECKING:
    import psycopg

APPLICATION, INSPECTION = "agent_memory_app", "agent_memory_inspection"
_ROLE = "SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = %s"
_MEMBER = "SELECT pg_has_role(%s, current_user, 'MEMBER')"


class Migrated(NamedTuple):
    """What a migration did; both versions are the same where there was nothing to do."""

    store: str
    before: int  # 0: there was no schema
    version: int


def migrate(url: str, *, application: str = APPLICATION, inspection: str = INSPECTION) -> Migrated:
    """Bring the database at `url` to this version; whoever logs in owns what is made.

    `application` and `inspection` are roles that exist; they are given what they need, and no more.

    Raises:
        StoreVersionError: the schema is newer than this version; nothing was changed.
        StoreCapabilityError: a role is missing, or could step round the walls.
        StoreError: the database did not do it; nothing was changed.
    """
    import psycopg

    place = shown(url)
    with (
        translated(place),
        psycopg.connect(checked(url), connect_timeout=CONNECT_SECONDS, options=SETTINGS) as connection,
    ):
        _require_utf8(connection, place)
        for role in (application, inspection):
            _require_role(connection, place, role)
        if application == inspection:
            raise StoreCapabilityError(place, "application and inspection must be two roles")
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATION_LOCK,))
        before = _schema_version(connection, place)
        _migrated(connection, before, application, inspection)
        return Migrated(place, before, len(MIGRATIONS))


def _migrated(connection: psycopg.Connection, before: int, application: str, inspection: str) -> None:
    from psycopg import sql

    for statements in MIGRATIONS[before:]:
        for statement in statements:
            connection.execute(statement.encode())
    first = [
        ("store_key", secrets.token_bytes(32)),
        ("analyser_version", str(ANALYSER_VERSION).encode()),
    ]
    now = [
        ("version", str(len(MIGRATIONS)).encode()),
        ("application", application.encode()),
        ("inspection", inspection.encode()),
    ]
    for role in _given_up(connection, {application, inspection}):
        name = sql.Identifier(role).as_string(connection)
        connection.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA {SCHEMA} FROM {name}".encode())
        connection.execute(f"REVOKE ALL ON SCHEMA {SCHEMA} FROM {name}".encode())
    insert = "INSERT INTO meta (name, value) VALUES (%s, %s) ON CONFLICT (name) DO"
    with connection.cursor() as cursor:
        cursor.executemany(f"{insert} NOTHING", first)
        cursor.executemany(f"{insert} UPDATE SET value = excluded.value", now)
    reindex.reindex_if_changed(connection)
    quoted = [sql.Identifier(role).as_string(connection) for role in (application, inspection)]
    for statement in grants(*quoted):
        connection.execute(statement.encode())


def _given_up(connection: psycopg.Connection, roles: set[str]) -> list[str]:
    """Roles that were served before and are not any more."""
    found = connection.execute(
        "SELECT rolname FROM meta JOIN pg_roles ON rolname = convert_from(value, 'UTF8')::name"
        " WHERE name IN ('application', 'inspection')"
    )
    return sorted({row[0] for row in found} - roles)


def _schema_version(connection: psycopg.Connection, place: str) -> int:
    """The version of the schema, which is made where there is none."""
    there = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (SCHEMA,)).fetchone()
    if there is None:
        connection.execute(f"CREATE SCHEMA {SCHEMA}".encode())
        return 0
    if connection.execute("SELECT to_regclass('agent_memory.meta')").fetchone() == (None,):
        return 0
    row = connection.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()
    version = version_of(None if row is None else row[0], place)
    if version > len(MIGRATIONS):
        raise newer(place, version)
    return version


def version_of(value: object, place: str) -> int:
    """A version out of the table meta.

    Raises:
        StoreError: it is none.
    """
    if not isinstance(value, bytes) or not value.isdigit():
        raise StoreError(place, "the version in its table meta is no number")
    return int(value)


def newer(place: str, version: int) -> StoreVersionError:
    """The refusal of a schema that this version does not know."""
    return StoreVersionError(
        place, f"its schema has version {version}, the newest known is {len(MIGRATIONS)}"
    )


def _require_utf8(connection: psycopg.Connection, place: str) -> None:
    found = connection.execute("SHOW server_encoding").fetchone()
    if found != ("UTF8",):
        raise StoreAddressError(place, "the database must have the encoding UTF8")


def _require_role(connection: psycopg.Connection, place: str, role: str) -> None:
    found = connection.execute(_ROLE, (role,)).fetchone()
    if found is None:
        raise StoreCapabilityError(place, f"there is no role `{role}`; create it first")
    owns = connection.execute(_MEMBER, (role,)).fetchone()
    if any(found) or owns != (False,):
        problem = (
            f"role `{role}` is a superuser, has BYPASSRLS or may act as the owner, so no wall would hold it"
        )
        raise StoreCapabilityError(place, problem)
