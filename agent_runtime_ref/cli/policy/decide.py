"""`policy decide`: what the policies answer to an input document, with no store in play."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from agent_runtime_ref.cli.documents import checked_document
from agent_runtime_ref.cli.exit_codes import DONE, REFUSED
from agent_runtime_ref.cli.options import add_settings, settings_of
from agent_runtime_ref.cli.output import add_format, format_of, print_document
from agent_runtime_ref.cli.parsers import example

_GATE = "GATE"  # whose refusal it is where no rule refuses


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    decide = subparsers.add_parser(
        "decide",
        help="print the decision for an input document; 1 on deny",
        description=(
            "Print what the policies answer to an input document, with the effect that the gate would\n"
            "carry out. No store is opened and nothing is logged. The exit code is 1 on deny, and 2 for a\n"
            "document that does not follow the schema of the policy's input: no engine is asked then."
        ),
        epilog=example(
            "policy decide read --input input.json", "policy decide write --input - --policies ./policies"
        ),
    )
    decide.add_argument("gate", choices=("read", "write"), help="which policy is asked")
    decide.add_argument("--input", metavar="FILE", required=True, help="the input document, - for stdin")
    add_format(decide, "json", "yaml")
    add_settings(decide, "policies", "engine")


def run(args: argparse.Namespace) -> int:
    """Print the decision and return the exit code."""
    from agent_runtime_ref.clock import SystemClock
    from agent_runtime_ref.enforcement.ruling import DecisionPoint
    from agent_runtime_ref.policy.bundle import load_bundle
    from agent_runtime_ref.policy.engines import open_engine
    from agent_runtime_ref.policy.inputs import INPUT_SCHEMAS

    question = checked_document(args.input, schema=INPUT_SCHEMAS[f"memory.{args.gate}"])
    settings = settings_of(args)
    bundle = load_bundle(
        settings.policies, expected_digest=settings.policies_digest, verification=settings.verification
    )
    engine = open_engine(settings.engine, bundle, opa=settings.opa)
    point = DecisionPoint(engine, SystemClock())
    try:
        # As a gate asks: an answer that it would not believe is no decision here either.
        answer = (point.read if args.gate == "read" else point.write)(question).document
    finally:
        engine.close()
    effect = _read_effect(answer) if args.gate == "read" else _write_effect(answer, question)
    decided = {
        "effect": effect,
        **_reasons(answer, effect, args.gate),
        "policy_digest": engine.identity.digest,
        "policy_revision": engine.identity.revision,
        "engine": engine.name,
    }
    print_document(decided | dict(answer), format_of(args))
    return REFUSED if effect == "deny" else DONE


def _read_effect(answer: Mapping[str, Any]) -> str:
    """Return allow only for a clear one: permitted, nothing against it, no duty that the gate cannot do."""
    clear = answer.get("allow") is True and not answer.get("deny") and not answer.get("obligations")
    return "allow" if clear else "deny"


def _write_effect(answer: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Return the effect on the candidates together: a refusal of one is a deny."""
    candidates = question.get("candidates")
    allowed = answer.get("allowed")
    if not isinstance(candidates, list) or not candidates or not isinstance(allowed, list):
        return "deny"
    if (
        answer.get("deny")
        or _unmet(answer, "write")
        or any(index not in allowed for index in range(len(candidates)))
    ):
        return "deny"
    return "quarantine" if answer.get("quarantine") else "allow"


def _unmet(answer: Mapping[str, Any], gate: str) -> bool:
    """Tell whether the answer demands what the gate cannot do: all there is on a write is to redact."""
    from agent_runtime_ref.enforcement.amend import KNOWN_OBLIGATIONS

    obligations = answer.get("obligations") or []
    if gate == "read":
        return bool(obligations)
    return any(
        not isinstance(one, Mapping)
        or one.get("type") not in KNOWN_OBLIGATIONS
        or not isinstance(one.get("findings"), list)
        for one in obligations
    )


def _reasons(answer: Mapping[str, Any], effect: str, gate: str) -> dict[str, list[str]]:
    """Return the reasons of the effect and their rules, by rule id; a deny always has one."""
    if effect == "allow":
        return {"reasons": [], "rule_ids": []}
    rows = answer.get("quarantine" if effect == "quarantine" else "deny") or []
    pairs = {(str(row["rule_id"]), str(row["reason"])) for row in rows}
    if effect == "deny" and _unmet(answer, gate):
        pairs.add((_GATE, "obligation_unknown"))
    if not pairs:  # no rule denies, and none permits either
        pairs.add((_GATE, "not_permitted"))
    ordered = sorted(pairs)
    return {
        "reasons": list(dict.fromkeys(reason for _, reason in ordered)),
        "rule_ids": list(dict.fromkeys(rule_id for rule_id, _ in ordered)),
    }
