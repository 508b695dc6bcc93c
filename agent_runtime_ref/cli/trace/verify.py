"""`trace verify`: whether a decision log is the one that was written."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings, is_volatile, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example
from agent_runtime_ref.cli.records import counted
from agent_runtime_ref.cli.terminal import note, shown
from agent_runtime_ref.cli.trace.logs import Log, logs_of
from agent_runtime_ref.errors import UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.telemetry.anchors import Anchors
    from agent_runtime_ref.telemetry.verify import Account

UNVERIFIED = "tail unverified"


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    verify = subparsers.add_parser(
        "verify",
        help="find lines of a decision log that were changed, removed, moved or cut off",
        description=(
            "Walk the chain of a decision log and say which lines are altered, missing, reordered or\n"
            "truncated; the exit code is 1 where any is. Anchors are hashes of lines that are known from\n"
            "elsewhere: events that left the process (--anchors), or a file of `trace anchor` (--anchor).\n"
            f"Up to the last anchor no change stays unseen; what comes after it is told as `{UNVERIFIED}`."
        ),
        epilog=example(
            "trace verify decisions.jsonl --anchors trace.jsonl",
            "trace verify --store sqlite:memory.db --anchor anchor.json --key anchor.pub",
        ),
    )
    verify.add_argument(
        "file", nargs="?", metavar="FILE", help="a decision log; its closed segments FILE.N belong to it"
    )
    verify.add_argument(
        "--anchors", metavar="FILE", action="append", default=[], help="a JSONL trace; may be repeated"
    )
    verify.add_argument(
        "--anchor", metavar="FILE", action="append", default=[], help="a signed anchor; may be repeated"
    )
    verify.add_argument("--key", metavar="FILE", help="the public key, or the secret, of the signed anchors")
    add_algorithm(verify)
    add_format(verify, "json", "text")
    add_settings(verify, "store", "engine", "policies")


def add_algorithm(parser: argparse.ArgumentParser) -> None:
    """Add how anchors are signed."""
    parser.add_argument(
        "--algorithm",
        choices=("ed25519", "hmac-sha256"),
        default="ed25519",
        help="ed25519 with a PEM key, or hmac-sha256 with a secret of 32 bytes or more; default: ed25519",
    )


def run(args: argparse.Namespace) -> int:
    """Print what was found and return the exit code: 1 where anything was."""
    from agent_runtime_ref.telemetry.anchors import Anchors

    if bool(args.anchor) is not (args.key is not None):
        raise UsageError("a signed anchor is verified with a key: name both --anchor and --key")
    require_kept(args, args.file)
    with ExitStack() as stack:
        anchors = stack.enter_context(Anchors())
        _gather(args, anchors)
        logs = stack.enter_context(logs_of(args, args.file))
        _require_anchors(args, anchors, [log.chain for log in logs])
        accounts = [accounted(log, anchors) for log in logs]
        # A log that is gone altogether is still known to its anchors.
        accounts += [_lost(chain, anchors) for chain in anchors.chains() if _is_lost(chain, logs)]
    ok = all(account.ok for account in accounts)
    if format_of(args) == "json":
        print_document(_report(accounts))
        _note_tails(accounts)  # the text has them already
    else:
        for line in _text(accounts):
            write(shown(line))
    return DONE if ok else REFUSED


def require_kept(args: argparse.Namespace, file: str | None) -> None:
    """Return if there is a log that outlives the command.

    Raises:
        UsageError: there is none.
    """
    settings = settings_of(args)
    if args.store is not None and file is not None:
        return  # refused where the log is opened
    if args.store is None and (file or settings.log) is not None:
        return
    if is_volatile(settings.store):
        raise UsageError("no log is named that outlives a command: name a file, or --store sqlite:FILE")


def accounted(log: Log, anchors: Anchors) -> Account:
    """Return what became of the verification of one log.

    Raises:
        UsageError: the log has lines, and none of them is sealed.
        DocumentUnreadableError: it cannot be read, or is a store.
    """
    from agent_runtime_ref.telemetry.segments import first_number
    from agent_runtime_ref.telemetry.verify import verify_chain

    first = next(iter(log.lines()), None)
    if first is not None and _is_foreign(first.data):
        raise UsageError(
            f"`{log.name}` is not sealed: only decision logs that this program wrote have a chain to verify"
        )
    # A chain of a store is known to be one, whatever became of its rows; a file may be any file.
    if first is not None and log.chain == "log" and not log.is_sealed:
        raise UsageError(f"`{log.name}` is no decision log: no line of it is one; name another file")
    begins_at = first_number(Path(log.name)) if log.chain == "log" else None
    return verify_chain(log.lines(), chain=log.chain, anchors=anchors, begins_at=begins_at)


def _is_foreign(line: bytes) -> bool:
    """Tell whether the first line is one of a trace, or of the log of an OPA server."""
    import json

    if line.startswith(b'{"seq":'):
        return False
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return False
    document = document[0] if isinstance(document, list) and document else document
    return isinstance(document, dict) and not {"event_type", "decision_id", "msg"}.isdisjoint(document)


def _gather(args: argparse.Namespace, anchors: Anchors) -> None:
    from agent_runtime_ref.telemetry.anchor_file import anchored_positions, verifying_key
    from agent_runtime_ref.telemetry.anchors import exported_positions

    if args.key is not None:
        signer = verifying_key(Path(args.key), args.algorithm)
        for name in args.anchor:
            anchors.add(anchored_positions(Path(name), signer, args.algorithm))
    for name in args.anchors:
        anchors.add(exported_positions(Path(name)))


def _require_anchors(args: argparse.Namespace, anchors: Anchors, chains: Sequence[str]) -> None:
    """Return if anchors were named and are about this log, or none were named.

    Raises:
        UsageError: they are about another kind of log, so that they would prove nothing.
    """
    if not args.anchors and not args.anchor:
        return
    known = anchors.chains()
    if not known:
        raise UsageError("the anchors name no line of any log, so nothing could be verified by them")
    if set(known).isdisjoint({*chains, "reads"} if "writes" in chains else chains):
        raise UsageError(
            f"the anchors are about the chains {', '.join(known)}, and this log has {', '.join(chains)}"
        )


def _is_lost(chain: str, logs: Sequence[Log]) -> bool:
    have = {log.chain for log in logs}
    if chain in have or "writes" not in have:
        return False
    # A store with a chain for each tenant lacks that of a tenant whose lines are all gone.
    return chain == "reads" or chain.startswith(("reads:", "writes:"))


def _lost(chain: str, anchors: Anchors) -> Account:
    from agent_runtime_ref.telemetry.verify import verify_chain

    return verify_chain((), chain=chain, anchors=anchors)


def _report(accounts: Sequence[Account]) -> dict[str, Any]:
    return {
        "lines": sum(account.lines for account in accounts),
        "ok": all(account.ok for account in accounts),
        "findings": [_finding(account, one) for account in accounts for one in account.findings],
        "more_findings": sum(account.more_findings for account in accounts),
        "tail": UNVERIFIED if any(map(_is_unverified, accounts)) else "verified",
        "chains": [
            {
                "chain": account.chain,
                "lines": account.lines,
                "first": account.first,
                "last": account.last,
                "anchored": account.anchored,
                "tail_lines": account.tail,
            }
            for account in accounts
        ],
    }


def _finding(account: Account, finding: Any) -> dict[str, Any]:
    document = {"line": finding.line, "kind": finding.kind, "chain": account.chain, "detail": finding.detail}
    if finding.until is not None:
        document["until"] = finding.until
    if finding.source is not None:
        document |= {"file": finding.source, "at": finding.place}
    return document


def _text(accounts: Sequence[Account]) -> list[str]:
    lines = []
    for account in accounts:
        for one in account.findings:
            place = "" if one.source is None else f"{one.source}:{one.place}: "
            until = "" if one.until is None else f" to {one.until}"
            lines.append(f"{place}line {one.line}{until} {one.kind}: {one.detail}")
        if account.more_findings:
            lines.append(f"and {account.more_findings} more")
        state = "holds" if account.ok else "does not hold"
        lines.append(f"chain {account.chain}: {counted(account.lines, 'line')}, {state}; {_tail(account)}")
    return lines


def _is_unverified(account: Account) -> bool:
    """Tell whether nothing vouches for the end of a chain; nothing ever does for one without lines."""
    return bool(account.tail) or not account.last


def _tail(account: Account) -> str:
    if account.tail:
        lines = counted(account.tail, "line")
        origin = "whoever can write the log could have made them"
        return f"{UNVERIFIED}: {lines} after line {account.anchored}; {origin}"
    if not account.last:
        why = (
            "an anchor knows lines of it" if account.findings else "no anchor says whether it ever had a line"
        )
        return f"{UNVERIFIED}: it is empty, and {why}"
    if not account.ok:
        return f"checked against the anchors up to line {account.anchored}"
    return f"verified up to line {account.last}"


def _note_tails(accounts: Sequence[Account]) -> None:
    for account in accounts:
        if _is_unverified(account):
            note(f"chain {account.chain}: {_tail(account)}")
