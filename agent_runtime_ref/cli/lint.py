"""`lint`: everything that is wrong with schemas, documents, settings and policies, in one run."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.output import add_format, format_of
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.reports import STDOUT, print_report, require_target

if TYPE_CHECKING:
    from agent_runtime_ref.linting import Report

FORMATS = ("text", "json", "sarif", "junit", "github")
FAIL_ON = ("error", "warning", "never")


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "lint",
        help="check schemas, documents, configs, seeds and policies",
        description="Check schemas, their examples, documents, configs, seeds and policies, all in one run.",
        epilog=example(
            "lint", "lint policies configs/memory.yaml --format sarif -o lint.sarif --fail-on warning"
        ),
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a file or folder; default: what is bundled")
    add_format(parser, *FORMATS)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the report to a file; default: -, standard output"
    )
    parser.add_argument(
        "--fail-on",
        choices=FAIL_ON,
        default="error",
        help="least severity that ends in code 1; default: error",
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the report and return the exit code."""
    from agent_runtime_ref.linting import bundled_paths, lint_paths, rendered

    require_target(args.output)
    # The option is global; here it names one more file to look at, so that it is never ignored.
    report = lint_paths(args.paths or bundled_paths(), settings=args.settings)
    text = rendered(report, format_of(args, otherwise=FORMATS[0]))
    if text or args.output not in (None, STDOUT):
        print_report(args.output, text)
    _summary(report)
    return _code(report, args.fail_on)


def _code(report: Report, fail_on: str) -> int:
    counted = {"error": report.count("error"), "warning": len(report.findings), "never": 0}
    return REFUSED if counted[fail_on] else DONE


def _summary(report: Report) -> None:
    """Say on stderr what was looked at, and what to do about each rule that found something."""
    remedies = {one.rule_id: one.remedy for one in report.findings}
    for rule_id, remedy in sorted(remedies.items()):
        print(f"{rule_id}: {remedy}", file=sys.stderr)
    counts = f"{_number(report.count('error'), 'error')}, {_number(report.count('warning'), 'warning')}"
    print(f"{_number(len(report.files), 'file')} checked: {counts}", file=sys.stderr)


def _number(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
