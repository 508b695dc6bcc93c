"""Keys of subjects, whose destruction makes their pseudonyms in the log nobody's."""

from __future__ import annotations

import secrets

from agent_runtime_ref.errors import StoreDamagedError
from agent_runtime_ref.stores.postgres.connection import Pool
from agent_runtime_ref.stores.postgres.session import Session

_KEY_BYTES = 32
_FIND = "SELECT key FROM subject_keys WHERE tenant_id=$1 AND subject=$2"
_MAKE = "INSERT INTO subject_keys(tenant_id,subject,key) VALUES($1,$2,$3) ON CONFLICT DO NOTHING"


def subject_key(pool: Pool, tenant_id: str, subject: str, *, create: bool) -> bytes | None:
    """The key of a subject in a tenant, made where there is none and `create` is set.

    Never remembered in memory: another process may destroy it at any time.
    """
    found = pool.ask(tenant_id, _FIND, (tenant_id, subject))
    if found or not create:
        return checked(found[0][0], pool.place) if found else None

    def made(session: Session) -> bytes:
        session.become(tenant_id)
        session.run(_MAKE, (tenant_id, subject, secrets.token_bytes(_KEY_BYTES)))
        # Another process may have been first.
        return checked(session.rows(_FIND, (tenant_id, subject))[0][0], pool.place)

    return pool.write(made)


def checked(key: object, place: str) -> bytes:
    """A key out of the database.

    Raises:
        StoreDamagedError: it is none.
    """
    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        raise StoreDamagedError(place, "one of its keys is none")
    return key
