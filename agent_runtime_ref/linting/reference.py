"""The page docs/reference/lint-rules.md, made from the table of rules."""

from __future__ import annotations

from collections.abc import Iterator

from agent_runtime_ref.linting.rules import GROUPS, RULES

__all__ = ["lint_rules_page"]

_HEAD = """\
# Rules of lint

<!-- Written by `make docs` from agent_runtime_ref/linting/rules.py; changes made here are lost. -->

What `agent-runtime-ref lint` looks for.
A finding is a line `file:line:column: severity RULE-ID message`, and all findings come from one run.
They are sorted by path, line, column and rule.
Errors end the command with code 1, warnings only with `--fail-on warning`.
With `--fail-on never` neither does.
A path that does not exist, or has nothing to lint in it, ends it with code 2.
There is no way to silence a rule.
"""
_FORMATS = """\
## Formats

- `text`: a line for each finding.
- `json`: `schema_version`, `files`, `errors`, `warnings` and `findings`.
  A finding has `path`, `line`, `column`, `severity`, `rule_id`, `message`, `remedy`.
- `sarif`: SARIF 2.1.0; addresses are relative to the working folder, fingerprints do not depend on lines.
- `junit`: a test case for each finding and for each file without one; an error is a failure.
- `github`: workflow commands, errors first.
"""


def lint_rules_page() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_groups(), _FORMATS])


def _groups() -> Iterator[str]:
    for letter, what in GROUPS.items():
        rows = [
            f"| {rule.rule_id} | {rule.severity} | {_cell(rule.title)} | {_cell(rule.remedy)} |"
            for rule in RULES.values()
            if rule.group == letter
        ]
        head = ["| rule | severity | what is demanded | what to do |", "| --- | --- | --- | --- |"]
        yield "\n".join([f"## {what[0].upper()}{what[1:]}", "", *head, *rows, ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
