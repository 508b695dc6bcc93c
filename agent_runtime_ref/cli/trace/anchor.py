"""`trace anchor`: sign how far a decision log has come, so that it cannot be rewritten unseen."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings
from agent_runtime_ref.cli.output import json_text, print_document
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.terminal import warn
from agent_runtime_ref.cli.trace.logs import logs_of
from agent_runtime_ref.cli.trace.verify import accounted, add_algorithm, require_kept
from agent_runtime_ref.errors import UsageError
from agent_runtime_ref.file_sync import sync_folder


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    anchor = subparsers.add_parser(
        "anchor",
        help="sign how far a decision log has come",
        description=(
            "Verify the chains of a decision log and sign, for each, the number and the hash of its last\n"
            "line and how many lines there are. Keep the file where whoever can write the log cannot:\n"
            "`trace verify --anchor` finds every change up to it. A log that does not hold, has no line, or\n"
            "is not the one that an older anchor knows, is not signed."
        ),
        epilog=example(
            "trace anchor --store sqlite:memory.db -o anchor.json --key anchor.key",
            "trace anchor --log decisions.jsonl --anchor anchor.json -o anchor-2.json --key anchor.key",
        ),
    )
    anchor.add_argument("-o", "--output", metavar="FILE", required=True, help="a new file for the anchor")
    anchor.add_argument("--key", metavar="FILE", required=True, help="the private key, or the secret")
    anchor.add_argument(
        "--anchor",
        metavar="FILE",
        action="append",
        default=[],
        help="an older anchor made with this key, to which the log is held first; may be repeated",
    )
    add_algorithm(anchor)
    add_settings(anchor, "store", "engine", "policies", "log")


def run(args: argparse.Namespace) -> int:
    """Write the anchor and return the exit code: 1 where a chain does not hold, and nothing is signed."""
    from agent_runtime_ref.clock import SystemClock, timestamp
    from agent_runtime_ref.telemetry.anchor_file import anchor_document, anchored_positions, signing_key
    from agent_runtime_ref.telemetry.anchors import Anchors

    signer = signing_key(Path(args.key), args.algorithm)
    require_kept(args, args.log)
    with Anchors() as older, logs_of(args, args.log) as logs:
        for name in args.anchor:
            older.add(anchored_positions(Path(name), signer, args.algorithm))
        accounts = [accounted(log, older) for log in logs]
    broken = [(account, one) for account in accounts for one in account.findings]
    if broken:
        for account, one in broken[:10]:
            warn(f"chain {account.chain}: line {one.line} {one.kind}: {one.detail}")
        warn("the log does not hold, so nothing was signed; `trace verify` says all that is wrong with it")
        return REFUSED
    if not any(account.last for account in accounts):
        names = ", ".join(f"`{log.name}`" for log in logs)
        raise UsageError(
            f"{names} has no line, so there is nothing to sign; was it emptied, or never written?"
        )
    now = timestamp(SystemClock().now_us())
    document = anchor_document(accounts, anchored_at=now, signer=signer, algorithm=args.algorithm)
    _write_new(Path(args.output), json_text(document) + "\n")
    print_document(document)
    return DONE


def _write_new(path: Path, text: str) -> None:
    """Write a file that was not there before: an older anchor is evidence, and is not written over.

    Raises:
        UsageError: it is there, or cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.absolute().parent)
    except FileExistsError as error:
        raise UsageError(f"`{path}` is there already, and an anchor is evidence; name a new file") from error
    except OSError as error:
        raise UsageError(
            f"anchor `{path}` cannot be written: {(error.strerror or str(error)).lower()}"
        ) from error
