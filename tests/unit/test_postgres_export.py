"""The export of a store with a chain for each tenant: every chain has its own place in the cursor."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_runtime_ref import GovernedMemory
from agent_runtime_ref.__main__ import main
from tests.postgres import OPERATOR, SERVICE, PostgresProcess
from tests.support import caller, candidate, query


def test_tenants_are_exported_chain_by_chain(
    postgres: PostgresProcess, database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A tenant that turns up later is found; the cursor lies where the operator says, and has to be named."""
    cursor = tmp_path / "memory.cursor"
    words = ["trace", "export", "--store", postgres.url(OPERATOR, database), "--format", "jsonl"]
    with GovernedMemory.open(postgres.url(SERVICE, database)) as memory:
        memory.write(candidate(), caller=caller())
        assert main([*words, "--cursor", str(cursor)]) == 0
        first = capsys.readouterr().out.splitlines()
        memory.write(candidate(tenant_id="tenant-b"), caller=caller(tenant_id="tenant-b"))
        memory.read(query(), caller=caller(), text="queue")
        assert main([*words, "--cursor", str(cursor)]) == 0
        second = capsys.readouterr().out.splitlines()

    events = [json.loads(line) for line in (*first, *second)]
    assert (len(first), len(second)) == (2, 4)
    assert len({event["payload"]["event_id"] for event in events}) == 6
    assert {event["payload"]["tenant_id"] for event in events} == {"tenant-acme", "tenant-b"}
    assert {event["payload"]["log_chain"] for event in events} <= set(
        json.loads(cursor.read_text())["chains"]
    )
    assert main(words) == 2
    assert "--cursor" in capsys.readouterr().err
