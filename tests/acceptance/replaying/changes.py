"""Changes of the policies, and what a replay under them says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.acceptance.command import Command
from tests.acceptance.replay_logs import policies_with

COUNTS = ("newly_exposed", "newly_hidden", "newly_admitted", "newly_refused", "newly_quarantined")


def high_only(settings: dict[str, Any]) -> None:
    """Let long-term memory be of high trust alone."""
    settings["trust_floors"] = {"low": ["short_term"], "medium": ["profile"], "high": ["long_term"]}


def high_floor(settings: dict[str, Any]) -> None:
    """Ask more confidence of long-term memory."""
    settings["classes"]["long_term"]["confidence_floor_millionths"] = 950_000


def replayed(
    command: Command, tmp_path: Path, log: Path, change: Any, *more: str
) -> tuple[int, dict[str, Any]]:
    """Replay a log under changed policies; return the exit code and the report."""
    answer = command(
        *("policy", "replay", "--policies", policies_with(tmp_path, change), "--log", log),
        *("--format", "json", *more),
    )
    return answer.code, answer.document


def counts(document: dict[str, Any]) -> dict[str, int]:
    """Return the counts of a report that are not zero."""
    return {name: document[name] for name in COUNTS if document[name]}
