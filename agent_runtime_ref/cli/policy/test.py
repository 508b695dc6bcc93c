"""`policy test`: the Rego tests of a bundle, what they reach, and which changes they notice."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings, settings_of
from agent_runtime_ref.cli.output import add_format, format_of
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import note, warn

if TYPE_CHECKING:
    from agent_runtime_ref.policy.mutation import MutationReport

FORMATS = ("text", "json", "junit")
WORKERS_MAX = 4


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "test",
        help="run the Rego tests of a bundle, without an OPA binary",
        description=(
            "Run the Rego tests of a bundle in the embedded engine and say what lines and rules they reach.\n"
            "With --mutate, also change the bundle in small ways, one by one, and name each change that no\n"
            "test notices. The exit code is 1 if a test fails, a change goes unnoticed or there are no tests."
        ),
        epilog=example(
            "policy test", "policy test --policies ./policies --mutate --format junit -o tests.xml"
        ),
    )
    parser.add_argument(
        "--mutate", action="store_true", help="test the tests as well: change the rules and see who notices"
    )
    add_format(parser, *FORMATS)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the report to a file; default: -, standard output"
    )
    add_settings(parser, "policies")


def run(args: argparse.Namespace) -> int:
    """Print or write the report and return the exit code."""
    from agent_runtime_ref.cli.policy.test_formats import rendered
    from agent_runtime_ref.cli.reports import print_report, require_target
    from agent_runtime_ref.policy.rego_tests import run_rego_tests

    require_target(args.output)
    policies = settings_of(args).policies
    report = run_rego_tests(policies)
    mutation = None
    if not report.results:
        warn(
            "there are no tests; they lie in files `*_test.rego` beside the rules, and an archive holds none"
        )
    elif report.failed and args.mutate:
        warn("no rule was changed, since tests fail already; mend them first")
    elif args.mutate:
        mutation = _mutated(policies)
    if report.failed:
        note(
            "the tests state what the settings they came with make of a case; where a setting was changed on "
            "purpose, change the cases that name its old value"
        )
    print_report(args.output, rendered(report, mutation, format_of(args, otherwise=FORMATS[0])))
    failed = not report.results or report.failed or (mutation is not None and mutation.survived)
    return REFUSED if failed else DONE


def _mutated(policies: Any) -> MutationReport:
    """Return what the tests notice; a person who waits at a terminal sees how far it is."""
    import sys

    from agent_runtime_ref.policy.mutation import run_mutants

    workers = min(os.cpu_count() or 1, WORKERS_MAX)
    if sys.stderr is None or not sys.stderr.isatty():
        return run_mutants(policies, workers=workers)
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("changes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("changes", total=None)
        return run_mutants(
            policies,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            workers=workers,
        )
