"""A long log is replayed in the memory that a short one takes."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.replay import read_lines
from tests.acceptance.replay_logs import policies_with

LINES = 100_000
# Prints the peak of the process after the report: what a growing list would show.
PROGRAM = (
    "import sys; from agent_runtime_ref.__main__ import main; code = main(sys.argv[1:]);"
    "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'));"
    "print(code, peak.split()[1], file=sys.stderr)"
)


def _peak_kib(policies: Path, log: Path, report: Path) -> int:
    words = ("policy", "replay", "--policies", policies, "--log", log, "--format", "json")
    with report.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *map(str, words)],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            timeout=280,
        )
    code, peak = done.stderr.split()
    assert code == "0"
    return int(peak)


def _log(path: Path, body: str, count: int) -> Path:
    """Write one line again and again, each time as another decision."""
    first, _, last = body.partition("dec-0")
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{first}dec-{number}{last}\n" for number in range(count))
    return path


@pytest.mark.timeout(300)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_a_hundred_thousand_lines_take_no_more_memory_than_a_thousand(tmp_path: Path) -> None:
    """Each line changes a record; the report names all of them, and the process grows by next to nothing."""

    def high(settings: dict[str, object]) -> None:
        settings["trust_floors"] = {"low": ["short_term"], "medium": ["profile"], "high": ["long_term"]}

    policies = policies_with(tmp_path, high)
    line = read_lines(limit=1)[0]
    sealed = ("seq", "prev_hash", "hash")
    body = json.dumps(
        {name: value for name, value in line.items() if name not in sealed} | {"decision_id": "dec-0"}
    )
    short = _log(tmp_path / "short.jsonl", body, 1_000)
    long = _log(tmp_path / "long.jsonl", body, LINES)
    report = tmp_path / "report.json"

    peaks = [_peak_kib(policies, log, report) for log in (short, long)]
    assert peaks[1] - peaks[0] < 24 * 1024
    assert peaks[1] < 160 * 1024
    with report.open(encoding="utf-8") as lines:
        head = "".join(itertools.takewhile(lambda line: '"changes"' not in line, lines))
        changed = sum(line.startswith('    {"decision_id"') for line in lines)
    counts = json.loads(head.rstrip(",\n") + "}")
    assert (changed, counts["decisions"], counts["newly_hidden"]) == (LINES, LINES, LINES)
