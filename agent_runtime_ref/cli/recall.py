"""`recall`: what a user talked about, found by a text and shown through the read gate."""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.exit_codes import DONE
from agent_runtime_ref.cli.options import (
    add_settings,
    add_user,
    names_store,
    opened,
    require_store_file,
    require_writable,
    settings_of,
)
from agent_runtime_ref.cli.output import add_format, format_of, print_document, write
from agent_runtime_ref.cli.parsers import example, worded
from agent_runtime_ref.cli.refusals import reported
from agent_runtime_ref.cli.terminal import note, shown
from agent_runtime_ref.errors import PolicyDeniedError, UsageError
from agent_runtime_ref.resources import user_of

if TYPE_CHECKING:
    from agent_runtime_ref.recall import Ranker, RecallResult
    from agent_runtime_ref.remote_memory import GovernedFile
    from agent_runtime_ref.runtime import GovernedMemory

_FIRST_BYTES = 1 << 16


def add_parser(subparsers: Any) -> None:
    """Add the command's options."""
    parser = subparsers.add_parser(
        "recall",
        help="recall what a user talked about, through the read gate",
        description=(
            "Recall what a user talked about, through the read gate, and print the result as JSON. Without\n"
            "a store it is the user's own remote memory: a file below AGENT_RUNTIME_HOME, else\n"
            "WORKBUDDY_HOME, else the platform's data folder."
        ),
        epilog=example(
            "recall 'layered memory' --demo",
            "recall 'SQLite persistence decision' --limit 3",
            "recall 'support queue' --store sqlite:memory.db --tenant tenant-acme --principal user-42",
        ),
    )
    parser.add_argument("text", metavar="TEXT", help="what to look for, in words that stood there")
    parser.add_argument("--limit", type=int, default=5, metavar="N", help="1 to 10 hits; default: 5")
    parser.add_argument("--demo", action="store_true", help="over a teaching set in a store that is removed")
    parser.add_argument(
        "--ranker",
        choices=("lexical", "bm25", "hybrid"),
        default="lexical",
        help="hybrid needs the extra `embeddings`; default: lexical",
    )
    group = add_user(
        parser,
        "whose memory, and who looks",
        tenant="of a named store",
        acts="who asks; default: the user",
        user="the user; default:",
    )
    group.add_argument(
        "--purpose", type=worded, default="answer_generation", metavar="PURPOSE", help="what it is for"
    )
    add_format(parser, "json", "yaml", "context")
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Print the result and return the exit code."""
    style = format_of(args)
    with reported("yaml" if style == "yaml" else "json"):
        result = _recalled(args)
        if style == "context":
            _print_context(result)
        else:
            print_document(result.to_dict(), style)
    return DONE


def _recalled(args: argparse.Namespace) -> RecallResult:
    if not args.demo and names_store(args):
        file = _remote_file(settings_of(args).store)
        if file is None:
            return _from_store(args)
        with _user_file(args, file) as governed:
            return _from_file(args, governed)
    with _user_file(args, None) as governed:
        if not args.demo and not governed.store.path.exists():
            note(f"user `{governed.caller.own_subject}` has no remote memory yet at {governed.store.path}")
        return _from_file(args, governed)


def _from_store(args: argparse.Namespace) -> RecallResult:
    """Return what a governed store recalls."""
    from agent_runtime_ref.contracts import Caller

    if args.tenant is None:
        raise UsageError("a store holds several tenants; name yours with --tenant")
    principal = args.principal or args.user or user_of()
    caller = Caller(args.tenant, principal, subject=args.user, roles=tuple(args.role or ()))
    with opened(args) as memory:
        ranker = _ranker(args)
        return memory.recall(args.text, caller=caller, purpose=args.purpose, limit=args.limit, ranker=ranker)


def _from_file(args: argparse.Namespace, governed: GovernedFile) -> RecallResult:
    """Return what a user's own file recalls, and say what of it the write gate did not admit."""
    ranker = _ranker(args)
    result = governed.recall(args.text, purpose=args.purpose, limit=args.limit, ranker=ranker)
    reasons: Counter[str] = Counter()
    for _, outcome in governed.outcomes():
        if isinstance(outcome, PolicyDeniedError) or outcome.effect != "allow":
            reasons.update(outcome.decision.reasons)
    if reasons:
        told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        note(f"records of `{governed.store.path}` that the write policy did not admit: {told}")
    return result


def _ranker(args: argparse.Namespace) -> Ranker | None:
    """Return what ranks in place of words and time."""
    if args.ranker == "lexical":
        return None
    from agent_runtime_ref.recall import HybridRanker, packaged_embedder

    return HybridRanker(packaged_embedder() if args.ranker == "hybrid" else None)


@contextmanager
def _user_file(args: argparse.Namespace, file: Path | None) -> Iterator[GovernedFile]:
    """Yield a user's file behind the gates; with --demo, the teaching set in its place."""
    from agent_runtime_ref.contracts import Caller
    from agent_runtime_ref.remote_memory import GovernedFile, RemoteMemoryStore
    from agent_runtime_ref.remote_memory.governed import LOCAL_TENANT
    from agent_runtime_ref.remote_memory.runtime import user_file
    from agent_runtime_ref.remote_memory.teaching import taught

    user = args.user or user_of()
    caller = Caller(
        args.tenant or LOCAL_TENANT, args.principal or user, subject=user, roles=tuple(args.role or ())
    )
    with ExitStack() as undone:
        if args.demo:
            folder = undone.enter_context(tempfile.TemporaryDirectory(prefix="agent-runtime-demo-"))
            store = taught(Path(folder) / "remote-memory.jsonl", user_id=user)
        else:
            store = RemoteMemoryStore(file or user_file(user), user_id=user)
        governed = GovernedFile(store, caller=caller, open_memory=lambda: _memory(args))
        yield undone.enter_context(governed)


def _memory(args: argparse.Namespace) -> GovernedMemory:
    from agent_runtime_ref.runtime import GovernedMemory

    settings = replace(settings_of(args), store="memory:")
    require_writable("log", settings.log)
    require_writable("trace", settings.trace)
    return GovernedMemory.from_settings(settings, follow_policies=False)


def _remote_file(address: str) -> Path | None:
    """Return the file of a `jsonl:` address where it is one user's remote memory and no governed store."""
    import json

    scheme, _, name = address.partition(":")
    if scheme != "jsonl" or not name.strip():
        return None
    require_store_file(address)
    try:
        with open(name, "rb") as file:
            line = file.readline(_FIRST_BYTES)
        first = json.loads(line)
    except (OSError, ValueError, RecursionError):
        return None  # opening it as a store says what is wrong
    return Path(name) if isinstance(first, dict) and "user_scope" in first else None


def _print_context(result: RecallResult) -> None:
    """Print the hits as a prompt would hold them; nothing where there are none."""
    from agent_runtime_ref.recall import render_recall_context

    text = render_recall_context(result)
    for line in text.splitlines():
        write(shown(line))
    if not text:
        note(f"nothing recalled: {result.empty_reason}")
