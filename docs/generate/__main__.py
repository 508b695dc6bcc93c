"""Writes the reference pages: `python -m docs.generate`; with `--check` it only compares, and exits 1."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from agent_runtime_ref.cli.reference import page as commands_page
from agent_runtime_ref.linting.reference import lint_rules_page
from docs.generate.from_code import errors_page, events_page
from docs.generate.from_conventions import telemetry_page
from docs.generate.from_policies import rules_page, settings_page
from docs.generate.from_schemas import schemas_page

FOLDER = Path(__file__).resolve().parents[1] / "reference"
PAGES: Mapping[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "errors.md": errors_page,
    "events.md": events_page,
    "lint-rules.md": lint_rules_page,
    "rules.md": rules_page,
    "schemas.md": schemas_page,
    "settings.md": settings_page,
    "telemetry.md": telemetry_page,
}


def main(argv: Sequence[str]) -> int:
    """Write the pages, or with `--check` compare them; return the exit code."""
    checking = "--check" in argv
    stale = []
    for name, written in PAGES.items():
        path, text = FOLDER / name, written()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not checking:
            path.write_text(text, encoding="utf-8")
        print(f"docs/reference/{name}: {'not as generated; run make docs' if checking else 'written'}")
    return 1 if checking and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
