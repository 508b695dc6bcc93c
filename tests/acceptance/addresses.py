"""Addresses of empty stores that outlive a command: a file of each kind, and a real PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.postgres import OPERATOR

DURABLE = ("sqlite", "jsonl", "postgresql")


@pytest.fixture(params=DURABLE)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty durable store, each kind in turn."""
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres")
        return str(server.url(OPERATOR, request.getfixturevalue("database")))
    return f"{request.param}:{tmp_path / 'memory.store'}"
