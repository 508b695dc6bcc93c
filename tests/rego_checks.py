"""What a real OPA says of policies/: python -m tests.rego_checks (part of `make lint`).

Layout, strictness, the portable subset, the names that rules read of their input and of the settings, and the
Rego tests, which have to reach every line of every policy.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
POLICIES = Path("policies")  # as seen from ROOT, where OPA is run
TIMEOUT = "120s"


def main() -> int:
    """Run every check, print what is wrong, and return the exit code."""
    found = subprocess.run([ROOT / ".ci" / "opa", "find"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        needed = os.environ.get("CI") == "true"
        said = "it must be there in CI" if needed else "its own checks of policies/ are left out"
        print(f"no opa binary, so {said} (.ci/opa build makes one)", file=sys.stderr)
        return 1 if needed else 0
    opa = Path(found.stdout.strip())
    problems = [*format_problems(opa), *check_problems(opa, POLICIES), *test_problems(opa)]
    print(
        "\n".join(problems) or "policies: fmt, check, schemas, capabilities and tests with every line reached"
    )
    return 1 if problems else 0


def format_problems(opa: Path) -> Iterator[str]:
    """Yield the files that `opa fmt` would write otherwise."""
    yield from _said(opa, "fmt", "--list", "--fail", POLICIES)


def check_problems(opa: Path, policies: Path) -> Iterator[str]:
    """Yield what is not strict, not portable, or reads a name that neither input nor settings have."""
    # Tests of a bundle may use more than the bundle does: the embedded engine runs them as they are.
    subset = POLICIES / "capabilities.json"
    yield from _said(opa, "check", "--strict", "--capabilities", subset, "--ignore", "*_test.rego",
                     "--bundle", policies)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="agent-runtime-schemas-") as folder:
        # OPA loads every file of a folder, the examples of what is invalid too; so it gets a folder of three.
        for schema in (ROOT / "schemas").glob("policy_*.schema.json"):
            shutil.copy(schema, folder)
        yield from _said(opa, "check", "--strict", "--schema", folder, "--bundle", policies)


def test_problems(opa: Path) -> Iterator[str]:
    """Yield the tests that fail, or the lines of policies that no test reaches."""
    command = ("test", "--timeout", TIMEOUT, "--bundle", POLICIES)
    report = _run(opa, *command, "--coverage", "--format=json")
    if report.returncode == 0:
        yield from unreached(json.loads(report.stdout))
    else:  # the report of coverage does not say which test fails
        yield from list(_said(opa, *command)) or ["opa test --coverage fails"]


def unreached(report: dict[str, Any]) -> Iterator[str]:
    """Yield each range of lines of a policy that a coverage report of OPA counts as not covered."""
    reached = 0
    for path, file in sorted(report["files"].items()):
        if path.endswith("_test.rego"):
            continue
        reached += len(file.get("covered", ()))
        for part in file.get("not_covered", ()):
            yield f"{path}:{part['start']['row']}: no test reaches this line"
    if not reached:
        yield "the coverage report names no line of any policy"


def _said(opa: Path, *arguments: str | Path) -> Iterator[str]:
    """Yield what a command of OPA says if it fails."""
    answer = _run(opa, *arguments)
    if answer.returncode != 0:
        shown = answer.stderr + answer.stdout
        yield f"opa {arguments[0]} fails:\n{shown.strip()[-4000:]}"


def _run(opa: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([opa, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
