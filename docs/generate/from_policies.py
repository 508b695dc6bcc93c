"""The pages about the rules of the bundled policies and about the settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agent_runtime_ref import config
from agent_runtime_ref.policy.bundle import Bundle, load_bundle
from agent_runtime_ref.policy.metadata import RuleInfo
from agent_runtime_ref.resources import policies_path
from docs.generate.from_schemas import Row, limits_of, outline, read_schema
from docs.generate.markdown import MARK, Part, names, page, sentences, table

_RULES_HEAD = """\
What the bundled policies decide, rule by rule.
A wall or a selector says which records a query considers at all; what it keeps out is not even counted.
A filter keeps a considered record out, and the record is counted under the filter's reason.
A denial refuses a whole query, or one candidate of a write.
A quarantine keeps a candidate where nobody reads it until it is released.
An obligation is what the gate must do before it keeps a candidate."""
_GATE_REASONS = (
    ("`GATE`", "not_permitted", "No rule denies, and the policy does not permit either."),
    ("`GATE`", "obligation_unknown", "The decision demands something that the gate cannot do."),
    ("`GATE`", "secret_not_redactable", "A secret stands in a field that cannot be kept in part."),
    ("`GATE`", "not_admitted", "The second check did not admit a record, and names no rule."),
    ("`ENGINE`", "any of the engine", "See [errors](errors.md#reasons-of-an-engine-failure)."),
)
_PLACES = {"query": "the query as a whole", "record": "each record", "candidate": "each candidate"}
_EFFECTS = {"obligations": "obligation", "excluded": "filter"}
_RUNTIME_HEAD = f"""\
A setting is taken from the option, else from the environment, else from runtime.yaml, else from the defaults.
The file is the one that the option `--settings` or the variable `{config.SETTINGS_VARIABLE}` names,
else the bundled one.
Relative paths in the file are taken from its own folder.
An empty variable counts as unset.""".replace(",\nelse", ", else")
_POLICIES_HEAD = """\
These are data, `data.memory.settings`, in `policies/memory/settings/data.json`.
Shown are the values of the bundled policies.
Settings that do not follow their schema are refused when the memory is opened.
Names that the schema does not know may stand beside these, for rules of one's own."""


def rules_page() -> str:
    """Return docs/reference/rules.md."""
    bundle = load_bundle()
    parts: list[Part] = ["# Rules", MARK.format(origin="the METADATA of policies/"), _RULES_HEAD]
    for package in ("memory.read", "memory.write", "memory.review", "memory.release"):
        rules = [rule for rule in bundle.rules if rule.package == package]
        parts.append(f"## {package}")
        for rule in sorted(rules, key=lambda rule: rule.rule_id):
            text = [f"**{rule.title}.**", *sentences(rule.description)]
            parts += [f"### {rule.rule_id}", text, _rule_rows(rule, bundle)]
    return page(
        *parts,
        "## Refusals that are not the policy's",
        "A gate that cannot carry out an answer, or gets none, refuses under an id of its own.",
        table(("id", "reason", "when"), _GATE_REASONS),
        "## Controls",
        "Which rules serve which control is a claim of this project, not a certificate.",
        table(("control", "framework", "title"), _control_rows()),
    )


def _rule_rows(rule: RuleInfo, bundle: Bundle) -> Iterator[str]:
    effect, reason = effect_of(rule, dict(bundle.modules)[rule.file])
    yield f"- effect: {effect}" + (f", reason `{reason}`" if reason else "")
    attributes = f": {names(rule.attributes)}" if rule.attributes else ""
    yield f"- looks at: {_PLACES.get(rule.scope, rule.scope)}{attributes}"
    yield f"- severity: {rule.severity}"
    if rule.settings:
        links = (f"[`{name}`](settings.md#{name})" for name in rule.settings)
        yield f"- settings: {', '.join(links)}"
    yield f"- controls: {', '.join(rule.controls)}"
    yield f"- defined in: `policies/{rule.file}`"


def effect_of(rule: RuleInfo, text: str) -> tuple[str, str | None]:
    """Return what a rule does, such as deny or filter, and the reason it gives."""
    body = text.split("\n", rule.line)[rule.line].split("# METADATA\n")[0]
    head = re.search(r"^(deny|quarantine|obligations|clauses|excluded) contains", body, re.MULTILINE)
    assert head is not None, f"{rule.file}:{rule.line}: no rule under the METADATA"
    role = re.search(r'"role": "(\w+)"', body)
    reason = re.search(r'"reason": "(\w+)"', body)
    return role[1] if role else _EFFECTS.get(head[1], head[1]), reason[1] if reason else None


def _control_rows() -> list[tuple[str, ...]]:
    import yaml

    text = (policies_path() / "compliance" / "controls.yaml").read_text(encoding="utf-8")
    return [(row["id"], row["framework"], row["title"]) for row in yaml.safe_load(text)["controls"]]


def settings_page() -> str:
    """Return docs/reference/settings.md."""
    origin = "policies/memory/settings/data.json, schemas/ and agent_runtime_ref/config.py"
    return page(
        "# Settings",
        MARK.format(origin=origin),
        "## Of the runtime",
        _RUNTIME_HEAD,
        table(("in runtime.yaml", "variable", "default", "meaning"), _runtime_rows()),
        "## Of the policies",
        _POLICIES_HEAD,
        *_policy_parts(),
    )


def _runtime_rows() -> Iterator[tuple[str, ...]]:
    defaults = config.Settings()
    for row in outline(read_schema("runtime_config")):
        if row.name == "policies":
            continue
        variable = config.ENVIRONMENT.get(row.name.replace("policies.path", "policies").replace(".", "_"))
        default = getattr(defaults, row.name.replace(".", "_"), None)
        yield (
            f"`{row.name}`",
            f"`{variable}`" if variable else "",
            f"`{default}`" if default else "",
            _meaning(row),
        )


def _meaning(row: Row) -> str:
    """Return what a setting is for, and between which bounds a number must lie."""
    if row.meaning and row.limits and row.type == "integer":
        return f"{row.meaning} Limits: {row.limits}."
    return row.meaning or row.limits


def _policy_parts() -> Iterator[Part]:
    schema, settings = read_schema("policy_settings"), load_bundle().settings
    for name, part in schema["properties"].items():
        value, limits = settings[name], limits_of(part, schema)
        yield f"### {name}"
        yield [*sentences(part.get("description", "")), *([f"Limits: {limits}."] if limits else [])]
        yield f"```json\n{json.dumps(value, indent=2 if _is_deep(value) else None)}\n```"


def _is_deep(value: Any) -> bool:
    inner = value if isinstance(value, list) else [value]
    return any(isinstance(one, Mapping) for one in inner)
