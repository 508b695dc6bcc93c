"""What became of one record in each line of a trace: by the line, else by looking at the store again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.options import opened, operator_of
from agent_runtime_ref.cli.terminal import warn
from agent_runtime_ref.cli.trace.log_view import Line, Trace, fates_in
from agent_runtime_ref.errors import BundleError, PolicyDeniedError

if TYPE_CHECKING:
    from agent_runtime_ref.replay.why import Judge
    from agent_runtime_ref.runtime import GovernedMemory

Fates = dict[int, dict[str, Any]]  # by the place of the line in its trace

# Of these the line does not say why.
_UNTOLD = frozenset({"not_considered", "not_in_log"})
_SENTENCES = {
    "absent": "the tenant had no such record then",
    "erased": "it may have been there and is erased since, so nobody can say",
    "outranked": "the policies let it in, and it ranked {rank}, behind what was returned",
    "admitted": "the policies let it in; whether the text found it is kept nowhere",
    "returned": "the policies let it in, and it ranked {rank}, within the limit",
}


def fates_of(args: argparse.Namespace, traces: Sequence[Trace]) -> list[Fates]:
    """Return for each trace what its lines say of the record; with --store also what they leave open."""
    found: list[Fates] = [fates_in(trace, args.record) for trace in traces]
    _name_rules(args, traces, found)
    untold = any(fate["outcome"] in _UNTOLD for fates in found for fate in fates.values())
    if args.store is not None and untold:
        _look_again(args, traces, found)
    return found


def sentences_of(fates: Mapping[int, Mapping[str, Any]]) -> dict[int, str]:
    """Return the sentence about each line of which the store had to be asked."""
    return {place: _sentence(fate["evaluated"]) for place, fate in fates.items() if "evaluated" in fate}


def _sentence(evaluated: Mapping[str, Any]) -> str:
    outcome = evaluated["outcome"]
    why = f"{', '.join(evaluated['reasons'])} ({', '.join(evaluated['rule_ids'])})"
    otherwise = {
        "kept_out": f"the policies keep it out: {why}",
        "refused": f"the policies refuse the read: {why}",
    }
    said = _SENTENCES.get(outcome, otherwise.get(outcome, "the store cannot tell either"))
    said = said.format(rank=evaluated.get("rank"))
    others = "" if evaluated["same_policies"] else ", by other policies than those that decided"
    return f"as it was then: {said}{others}"


def _name_rules(args: argparse.Namespace, traces: Sequence[Trace], found: Sequence[Fates]) -> None:
    """Add the rules behind the reasons for which records were kept out, where those policies are at hand."""
    from agent_runtime_ref.cli.options import settings_of
    from agent_runtime_ref.policy.bundle import load_bundle
    from agent_runtime_ref.replay.rule_names import RuleNames

    if not any(fate["outcome"] == "kept_out" for fates in found for fate in fates.values()):
        return
    try:
        bundle = load_bundle(settings_of(args).policies)
    except BundleError:
        return  # a log can be read where no policies are
    names = RuleNames(bundle)
    for trace, fates in zip(traces, found, strict=True):
        for place, fate in fates.items():
            if fate["outcome"] == "kept_out" and _digest(trace.lines[place]) == bundle.digest:
                fate["rule_ids"] = list(names.of("read", [{"reason": fate["reason"]}]))


def _look_again(args: argparse.Namespace, traces: Sequence[Trace], found: Sequence[Fates]) -> None:
    with opened(argparse.Namespace(**{**vars(args), "log": None})) as memory:
        try:
            judge = _judge(memory)
        except PolicyDeniedError as refused:
            warn(f"what the log leaves open was not looked up: {refused}")
            return
        with closing(judge):
            name = memory.log_name(args.record)
            for trace, fates in zip(traces, found, strict=True):
                for place, fate in fates.items():
                    if fate["outcome"] in _UNTOLD:
                        fate["evaluated"] = _evaluated(judge, trace.lines[place], name)


def _judge(memory: GovernedMemory) -> Judge:
    from agent_runtime_ref.clock import SystemClock
    from agent_runtime_ref.replay.why import Judge

    return Judge(memory, memory.bundle, operator=operator_of(None), clock=SystemClock())


def _evaluated(judge: Judge, line: Line, name: str) -> dict[str, Any]:
    from agent_runtime_ref.telemetry.reader import decision_of

    decision = decision_of(line, source="log", line=0)
    assert decision is not None, "only decisions leave open what became of a record"
    return judge.of(decision, name).to_document() | {"same_policies": decision.digest == judge.digest}


def _digest(line: Line) -> str | None:
    from agent_runtime_ref.telemetry.reader import decision_of

    decision = decision_of(line, source="log", line=0)
    return None if decision is None else decision.digest
