"""The table of controls: what controls.yaml says, or, in a bundle without it, what the METADATA names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agent_runtime_ref.policy.controls import CONTROLS, Control, NoControls
from agent_runtime_ref.review.model import ERROR, WARNING, ControlView, Finding, RuleView

__all__ = ["control_findings", "controls_of"]


def controls_of(
    table: tuple[Control, ...] | NoControls, rules: Sequence[RuleView]
) -> tuple[ControlView, ...]:
    """Return the controls, in the order of the table; those that only a rule names come after, by id."""
    listed: dict[str, ControlView] = {}
    for one in () if isinstance(table, NoControls) else table:
        listed.setdefault(
            one.control_id,
            ControlView(
                one.control_id, one.framework, one.title, one.evidence, tuple(dict.fromkeys(one.rule_ids))
            ),
        )
    for name in sorted({name for rule in rules for name in rule.controls} - set(listed)):
        behind = tuple(rule.rule_id for rule in rules if name in rule.controls)
        listed[name] = ControlView(name, "", "", "", behind)
    return tuple(listed.values())


def control_findings(table: tuple[Control, ...] | NoControls, rules: Sequence[RuleView]) -> Iterator[Finding]:
    """Yield controls without a rule, rules without a control, and where table and METADATA disagree."""
    for rule in rules:
        if not rule.controls:
            message = f"{rule.rule_id} serves no control; name one in its METADATA and in {CONTROLS}"
            yield Finding(ERROR, "rule-without-control", f"{rule.file}:{rule.line}", message)
    if isinstance(table, NoControls):
        message = f"{table}; the controls below are those that the METADATA of the rules names"
        severity, name = (WARNING, "controls-missing") if table.missing else (ERROR, "controls-unreadable")
        yield Finding(severity, name, CONTROLS, message)
        return
    yield from _disagreements(table, rules)
    seen: set[str] = set()
    for control in table:
        if control.control_id in seen:
            yield Finding(ERROR, "control-twice", CONTROLS, f"control {control.control_id} stands twice")
        seen.add(control.control_id)


def _disagreements(table: Sequence[Control], rules: Sequence[RuleView]) -> Iterator[Finding]:
    by_id = {control.control_id: control for control in table}
    for rule in rules:
        place = f"{rule.file}:{rule.line}"
        for name in rule.controls:
            if name not in by_id:
                message = f"{rule.rule_id} names the control {name}, which is not in {CONTROLS}"
                yield Finding(ERROR, "control-unknown", place, message)
            elif rule.rule_id not in by_id[name].rule_ids:
                message = f"{rule.rule_id} names the control {name}, which does not list it"
                yield Finding(ERROR, "control-disagrees", place, message)
    known = {rule.rule_id: rule for rule in rules}
    for control in table:
        yield from _unsupported(control, known)


def _unsupported(control: Control, known: Mapping[str, RuleView]) -> Iterator[Finding]:
    """Yield what the table says of a control and the rules do not."""
    if not control.rule_ids:
        message = f"no rule stands behind the control {control.control_id}"
        yield Finding(WARNING, "control-without-rule", CONTROLS, message)
    for rule_id in control.rule_ids:
        if rule_id not in known:
            message = f"control {control.control_id} lists the rule {rule_id}, which is not in this bundle"
            yield Finding(ERROR, "control-lists-unknown-rule", CONTROLS, message)
        elif control.control_id not in known[rule_id].controls:
            message = f"control {control.control_id} lists {rule_id}, whose METADATA does not name it"
            yield Finding(ERROR, "control-disagrees", CONTROLS, message)
