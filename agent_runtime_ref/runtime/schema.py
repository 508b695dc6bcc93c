"""The schema of a store that many machines share, made or migrated by its owner."""

from __future__ import annotations

from agent_runtime_ref.stores.registry import require_driver


def migrate_store(
    url: str, *, application: str | None = None, inspection: str | None = None
) -> dict[str, str | int]:
    """Make or migrate the schema of a PostgreSQL store as its owner, and return what was done.

    `application` and `inspection` name the roles that may use it; left out, those of the how-to.

    Raises:
        StoreAddressError: the address is no `postgresql://...`.
        StoreVersionError: the schema is newer than this version; nothing was changed.
        StoreCapabilityError: the driver or a role is missing, or a role could step round the walls.
        StoreError: the database did not do it; nothing was changed.
    """
    require_driver(url)
    from agent_runtime_ref.stores.postgres import migrate

    roles = {"application": application, "inspection": inspection}
    done = migrate(url, **{name: role for name, role in roles.items() if role is not None})
    return {"store": done.store, "before": done.before, "version": done.version}
