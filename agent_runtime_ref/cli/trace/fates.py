"""What became of one record in each line of a trace: by the line, else by looking at the store again."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from agent_runtime_ref.cli.options import opened, operator_of
from agent_runtime_ref.cli.terminal import warn
from agent_runtime_ref.cli.trace.log_view import Line, Trace, fates_in, layers_with
from agent_runtime_ref.errors import BundleError, DecisionLogError, PolicyDeniedError, UsageError

if TYPE_CHECKING:
    from agent_runtime_ref.replay.why import Judge
    from agent_runtime_ref.runtime import GovernedMemory

Fates = dict[int, dict[str, Any]]  # by the place of the line in its trace

# Of these the line does not say why.
_UNTOLD = frozenset({"not_considered", "not_in_log"})
# Lines of which these come say nothing of the record itself, nor that there is one.
_ABOUT_ANY = frozenset({"read_refused", "not_returned"}) | _UNTOLD
_SENTENCES = {
    "absent": "the tenant had no such record then",
    "elsewhere": "this store had no such record then; the one that entered the context is kept elsewhere",
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


def require_known(args: argparse.Namespace, traces: Sequence[Trace], found: Sequence[Fates]) -> None:
    """Return if a line of the traces names the record, or the store that is named has it.

    Raises:
        UsageError: neither; of a log alone it cannot be said.
    """
    fates = [fate for one in found for fate in one.values()]
    is_named = any(fate["outcome"] not in _ABOUT_ANY for fate in fates) or any(
        layers_with(line, args.record) for trace in traces for line in trace.lines
    )
    judged = {fate["evaluated"]["outcome"] for fate in fates if "evaluated" in fate}
    if args.store is None or is_named or judged - {"absent", "unknown"} or _is_kept(args):
        return
    raise UsageError(
        f"there is no record `{args.record}`: the store has none of that id, and no line that was looked at "
        "names one"
    )


def _is_kept(args: argparse.Namespace) -> bool:
    """Tell whether the store has the record now, in any tenant and of any status."""
    from agent_runtime_ref.cli.options import system_user
    from agent_runtime_ref.runtime import Inspection

    with opened(argparse.Namespace(**{**vars(args), "log": None})) as memory:
        look = Inspection(principal_id=system_user(), limit=1, record_ids=(args.record,))
        try:
            return bool(memory.inspect(look, caller=operator_of(None)).hits)
        except (PolicyDeniedError, DecisionLogError):
            return True  # nobody can say that it is not there


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
        except (PolicyDeniedError, DecisionLogError) as refused:
            warn(f"what the log leaves open was not looked up: {refused}")
            return
        with closing(judge):
            name = memory.log_name(args.record)
            for trace, fates in zip(traces, found, strict=True):
                is_shown = any(layers_with(line, name) for line in trace.lines)
                for place, fate in fates.items():
                    if fate["outcome"] in _UNTOLD:
                        told = fate["evaluated"] = _evaluated(judge, trace.lines[place], name)
                        if is_shown and told["outcome"] == "absent":
                            told["outcome"] = "elsewhere"  # such as preferences in a store of their own


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
