"""`policy review`: the rules, controls and tests of a bundle for somebody who reads no code."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, json_text
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.reports import print_report, require_target

if TYPE_CHECKING:
    from agent_runtime_ref.review import Review


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    review = subparsers.add_parser(
        "review",
        help="a report on the rules, controls and tests, for somebody who reads no code",
        description=(
            "Write a report on a bundle of policies: each rule in plain words with its severity, controls,\n"
            "settings, tests, and examples of what it lets in and keeps out, computed by running the\n"
            "policies. The exit code is 1 if a finding is an error."
        ),
        epilog=example(
            "policy review -o review.html",
            "policy review --policies ./policies --format markdown -o review.md",
            "policy review --format json",
        ),
    )
    review.add_argument(
        "-o", "--output", metavar="FILE", help="write the report to a file; default: -, standard output"
    )
    add_format(review, "html", "markdown", "json")
    add_settings(review, "policies")


def run(args: argparse.Namespace) -> int:
    """Write the report and return the exit code."""
    from agent_runtime_ref.review import ERROR, review_bundle

    settings = settings_of(args)
    require_target(args.output)
    review = review_bundle(
        settings.policies, expected_digest=settings.policies_digest, verification=settings.verification
    )
    text = _text(review, format_of(args, otherwise="html"))
    print_report(args.output, text)
    print(_summary(review), file=sys.stderr)
    return REFUSED if review.count(ERROR) else DONE


def _text(review: Review, style: str) -> str:
    from agent_runtime_ref.review import document_of, html_text, markdown_text

    if style == "json":
        return json_text(document_of(review)) + "\n"
    return (markdown_text if style == "markdown" else html_text)(review)


def _summary(review: Review) -> str:
    """Return what was reviewed and found, in a line; there is nothing in it but numbers."""
    counts = ", ".join(f"{review.count(word)} {word}" for word in ("error", "warning", "low"))
    return f"{len(review.rules)} rules, {len(review.controls)} controls; findings: {counts}"
