"""The tables of a PostgreSQL store, its walls and grants, and the way from every older version to this one.

Every tenant table is partitioned by a hash of the tenant, has the tenant first in every key and index, and
has row-level security FORCEd: the application's role reads and writes rows of the tenant that is set inside
the transaction, and of no other. Text is compared byte for byte (collation "C").
"""

from __future__ import annotations

SCHEMA = "agent_memory"
PARTITIONS = 8
# One lock for all migrations of a database: "AGMG" as a number.
MIGRATION_LOCK = 0x41474D47

# What the application's role may do with each table that holds rows of tenants. The log only grows.
TENANT_TABLES: dict[str, str] = {
    "records": "SELECT, INSERT, UPDATE (status), DELETE",
    "contents": "SELECT, INSERT, DELETE",
    "postings": "SELECT, INSERT, DELETE",
    "derivations": "SELECT, INSERT, DELETE",
    "revisions": "SELECT, INSERT, UPDATE (revision)",
    "dedup": "SELECT, INSERT, DELETE",
    "tombstones": "SELECT, INSERT, UPDATE (at_us)",
    "subject_keys": "SELECT, INSERT, DELETE",
    "quarantine": "SELECT, INSERT, DELETE",
    "chains": "SELECT, INSERT, UPDATE (rid, seq, hash)",
    "log": "SELECT, INSERT",
}
# What belongs to no tenant.
COMMON_TABLES: dict[str, str] = {
    "meta": "SELECT",
    "forgettings": "SELECT, UPDATE (count)",
    "store_chains": "SELECT, UPDATE (seq, hash)",
    "store_log": "SELECT, INSERT",
}
# Keys of subjects open the pseudonyms in the log; whoever inspects or exports has no use for them.
NOT_INSPECTED = frozenset({"subject_keys"})

# INVARIANT: nullif, because a setting that was made for one transaction leaves '' behind, not NULL.
WALL = "tenant_id = nullif(current_setting('app.tenant', true), '')"

_TEXT = 'text COLLATE "C"'
_TENANT = f"tenant_id {_TEXT} NOT NULL"
_TABLES: dict[str, str] = {
    "records": f"""
        rid bigint NOT NULL, status {_TEXT} NOT NULL, memory_class {_TEXT} NOT NULL, subject {_TEXT},
        trust_rank smallint NOT NULL, created_us bigint NOT NULL, expires_us bigint,
        provenance_known boolean NOT NULL, memory_id {_TEXT} NOT NULL, key {_TEXT},
        confidence_millionths bigint NOT NULL, revision bigint NOT NULL, derived boolean NOT NULL,
        kind {_TEXT} NOT NULL, source {_TEXT} NOT NULL, provenance {_TEXT} NOT NULL,
        PRIMARY KEY (tenant_id, rid), UNIQUE (tenant_id, memory_id)""",
    # The confidence as the text of its number, so that 1 and 1.0 come back as they were.
    "contents": f"""
        rid bigint NOT NULL, content {_TEXT} NOT NULL, summary {_TEXT}, confidence {_TEXT} NOT NULL,
        retention {_TEXT}, details {_TEXT}, dedup bytea, original bytea, PRIMARY KEY (tenant_id, rid)""",
    "postings": f"""
        term {_TEXT} NOT NULL, rid bigint NOT NULL, label boolean NOT NULL,
        PRIMARY KEY (tenant_id, term, rid) INCLUDE (label)""",
    "derivations": f"""
        parent_id {_TEXT} NOT NULL, rid bigint NOT NULL, PRIMARY KEY (tenant_id, parent_id, rid)""",
    "revisions": f"""
        memory_class {_TEXT} NOT NULL, kind {_TEXT} NOT NULL, revision bigint NOT NULL,
        PRIMARY KEY (tenant_id, memory_class, kind)""",
    "dedup": "digest bytea NOT NULL, rid bigint NOT NULL, PRIMARY KEY (tenant_id, digest)",
    "tombstones": "digest bytea NOT NULL, at_us bigint NOT NULL, PRIMARY KEY (tenant_id, digest)",
    "subject_keys": f"subject {_TEXT} NOT NULL, key bytea NOT NULL, PRIMARY KEY (tenant_id, subject)",
    "quarantine": """
        rid bigint NOT NULL, principal bytea NOT NULL, agent bytea, replaces boolean NOT NULL,
        PRIMARY KEY (tenant_id, rid)""",
    # Where each of a tenant's two chains stands; the row of writes also counts its records and is their lock.
    "chains": f"""
        reads boolean NOT NULL, rid bigint NOT NULL, seq bigint NOT NULL, hash {_TEXT} NOT NULL,
        PRIMARY KEY (tenant_id, reads)""",
    "log": f"""
        reads boolean NOT NULL, seq bigint NOT NULL, line {_TEXT} NOT NULL,
        PRIMARY KEY (tenant_id, reads, seq)""",
}
_INDEXES = (
    """CREATE INDEX records_by_key ON records (tenant_id, key, subject, trust_rank)
        WHERE status = 'active' AND key IS NOT NULL""",
    "CREATE INDEX records_by_subject ON records (tenant_id, subject) WHERE subject IS NOT NULL",
    "CREATE INDEX postings_by_record ON postings (tenant_id, rid)",
    "CREATE INDEX derivations_by_record ON derivations (tenant_id, rid)",
    "CREATE INDEX dedup_by_record ON dedup (tenant_id, rid)",
)
_COMMON = (
    f"CREATE TABLE meta (name {_TEXT} PRIMARY KEY, value bytea NOT NULL)",
    "CREATE TABLE forgettings (one boolean PRIMARY KEY DEFAULT true CHECK (one), count bigint NOT NULL)",
    "INSERT INTO forgettings (count) VALUES (0)",
    f"CREATE TABLE store_chains (reads boolean PRIMARY KEY, seq bigint NOT NULL, hash {_TEXT} NOT NULL)",
    "INSERT INTO store_chains VALUES (false, 0, repeat('0', 64)), (true, 0, repeat('0', 64))",
    f"""CREATE TABLE store_log (
        reads boolean NOT NULL, seq bigint NOT NULL, line {_TEXT} NOT NULL, PRIMARY KEY (reads, seq))""",
)
# Rows that were forgotten stay in the files until they are vacuumed away, so that is done early.
_VACUUMED_EARLY = "autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 50"


def _tenant_table(name: str, columns: str) -> list[str]:
    walled = "ALTER TABLE {} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"
    made = [f"CREATE TABLE {name} ({_TENANT}, {columns}) PARTITION BY HASH (tenant_id)", walled.format(name)]
    for number in range(PARTITIONS):
        # A partition has no policy and no grant of its own: whoever names it directly sees nothing.
        part = f"{name}_{number}"
        share = f"(MODULUS {PARTITIONS}, REMAINDER {number})"
        made += [
            f"CREATE TABLE {part} PARTITION OF {name} FOR VALUES WITH {share} WITH ({_VACUUMED_EARLY})",
            walled.format(part),
        ]
    return made


_VERSION_1 = (
    *_COMMON,
    *(statement for name, columns in _TABLES.items() for statement in _tenant_table(name, columns)),
    *_INDEXES,
)

# Forward only: entry n takes a database from version n to n + 1.
MIGRATIONS: tuple[tuple[str, ...], ...] = (_VERSION_1,)


def grants(application: str, inspection: str) -> list[str]:
    """Policies and grants, made anew with every migration; both roles as quoted identifiers.

    The owner has no policy: with FORCE, it sees no row of any tenant either.
    """
    made = ["REVOKE ALL ON ALL TABLES IN SCHEMA agent_memory FROM PUBLIC"]
    made.append(f"GRANT USAGE ON SCHEMA agent_memory TO {application}, {inspection}")
    for name, rights in TENANT_TABLES.items():
        made += [
            f"DROP POLICY IF EXISTS tenant_wall ON {name}",
            f"DROP POLICY IF EXISTS inspection ON {name}",
            f"CREATE POLICY tenant_wall ON {name} TO {application} USING ({WALL}) WITH CHECK ({WALL})",
            f"GRANT {rights} ON {name} TO {application}",
        ]
        if name not in NOT_INSPECTED:
            made += [
                f"CREATE POLICY inspection ON {name} FOR SELECT TO {inspection} USING (true)",
                f"GRANT SELECT ON {name} TO {inspection}",
            ]
    for name, rights in COMMON_TABLES.items():
        made += [f"GRANT {rights} ON {name} TO {application}", f"GRANT SELECT ON {name} TO {inspection}"]
    return made
