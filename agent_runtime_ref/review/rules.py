"""The rules of a bundle: what their METADATA says, what their text shows beside it, and examples of both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.policy.bundle import Bundle
from agent_runtime_ref.policy.metadata import RuleInfo
from agent_runtime_ref.review.examples import Found, Search
from agent_runtime_ref.review.model import ERROR, LOW, WARNING, Finding, RuleView
from agent_runtime_ref.review.references import EACH, Look, Path, constants_of, look_of, used_settings
from agent_runtime_ref.review.situations import Seed, Situation, situations
from agent_runtime_ref.review.source import Block, Sources, sources_of
from agent_runtime_ref.review.tested import Tested
from agent_runtime_ref.review.wording import setting_rows

__all__ = ["RuleReader", "rule_findings"]

SEVERITIES = ("critical", "high", "medium", "low")
_COLLECTIONS = {"deny": "deny", "quarantine": "quarantine", "obligations": "obligation", "excluded": "filter"}


@dataclass(frozen=True, slots=True)
class _Read:
    """One rule as its METADATA and its text have it."""

    info: RuleInfo
    parts: tuple[Block, ...]
    look: Look
    settings: Mapping[str, Any]


class RuleReader:
    """Reads the rules of one bundle and finds examples for each."""

    def __init__(self, bundle: Bundle, search: Search, seeds: Sequence[Seed], found: Tested) -> None:
        self._bundle = bundle
        self._search = search
        self._tested = found
        self._sources: Sources = sources_of(bundle.modules)
        self._offered: dict[str, tuple[Situation, ...]] = {
            package: situations(package, seeds, bundle.settings) for package in self._sources.packages
        }
        self._constants: dict[str, Mapping[str, Path]] = {
            package: constants_of([block for block in self._sources.blocks if block.package == package])
            for package in self._sources.packages
        }

    def rules(self) -> tuple[RuleView, ...]:
        """Return the rules by package and id; one that no METADATA describes is there without its words."""
        return tuple(self._view(read) for read in self._read())

    def findings(self) -> Iterator[Finding]:
        """Yield what is wrong with the rules themselves, by their text and their METADATA."""
        yield from self._unnamed()
        yield from self._unanswered()
        yield from self._settings_findings()

    def _unnamed(self) -> Iterator[Finding]:
        """Yield what answers without an id, or with one that METADATA does not know or knows twice."""
        described = [rule.rule_id for rule in self._bundle.rules]
        for block in self._sources.blocks:
            place = f"{block.file}:{block.first}"
            if block.name in _COLLECTIONS and block.reasons and not block.rule_ids:
                yield Finding(
                    ERROR, "rule-without-id", place, f"a rule of `{block.name}` answers without an id"
                )
            for rule_id in block.rule_ids:
                if rule_id not in described:
                    yield Finding(
                        ERROR, "rule-undescribed", place, f"no METADATA describes the rule {rule_id}"
                    )
                    described.append(rule_id)
        for rule_id in sorted({one for one in described if described.count(one) > 1}):
            again = [rule for rule in self._bundle.rules if rule.rule_id == rule_id][1:]
            for rule in again:
                yield Finding(
                    ERROR, "rule-twice", f"{rule.file}:{rule.line}", f"{rule_id} is described twice"
                )

    def _unanswered(self) -> Iterator[Finding]:
        """Yield what METADATA describes and no statement answers with: words about no rule."""
        answered = {rule_id for block in self._sources.blocks for rule_id in block.rule_ids}
        for info in self._bundle.rules:
            below = self._sources.below(info.file, info.line)
            # A statement without an id of its own may make it of something; that is a finding already.
            if info.rule_id not in answered and all(block.rule_ids for block in below):
                message = f"METADATA describes {info.rule_id}, and no rule answers with it"
                yield Finding(ERROR, "rule-unanswered", f"{info.file}:{info.line}", message)

    def _settings_findings(self) -> Iterator[Finding]:
        """Yield settings that METADATA names otherwise than the rule's text does.

        A rule is to name those that it looks at itself; those that its helpers look at it may name.
        """
        for read in self._read():
            place = f"{read.info.file}:{read.info.line}"
            own = look_of(read.parts, (), (), self._constants.get(read.info.package, {}))
            used = {path[0] for path in own.settings} & self._bundle.settings.keys()
            unsaid = sorted(used - set(read.info.settings))
            if unsaid:
                message = f"{read.info.rule_id} uses {', '.join(unsaid)}, which its METADATA does not name"
                yield Finding(LOW, "setting-unnamed", place, message)
            idle = sorted(set(read.info.settings) - used - {path[0] for path in read.look.settings})
            if idle and EACH not in {path[0] for path in read.look.settings}:
                message = f"{read.info.rule_id} does not use {', '.join(idle)}, which its METADATA names"
                yield Finding(WARNING, "setting-unused", place, message)

    def _read(self) -> list[_Read]:
        described = {rule.rule_id: rule for rule in reversed(self._bundle.rules)}
        for block in self._sources.blocks:
            for rule_id in block.rule_ids:
                described.setdefault(rule_id, _undescribed(rule_id, block))
        ordered = sorted(described.values(), key=lambda rule: (rule.package, rule.rule_id))
        return [self._one(rule) for rule in ordered]

    def _one(self, info: RuleInfo) -> _Read:
        parts = self._sources.of(info.rule_id) or self._sources.below(info.file, info.line)
        reach = self._sources.with_helpers(parts)
        known = _attributes(self._offered.get(info.package, ()))
        named = [known.get(name, name) for name in info.attributes]
        look = look_of(reach, named, set(known.values()), self._constants.get(info.package, {}))
        settings = used_settings(look.settings, self._bundle.settings)
        # What the METADATA names and the text does not show is there for a reason that nobody can read off.
        for name in info.settings:
            if name not in settings and name in self._bundle.settings:
                settings[name] = self._bundle.settings[name]
        return _Read(info, parts, look, dict(sorted(settings.items())))

    def _view(self, read: _Read) -> RuleView:
        info, found = read.info, self._examples(read)
        own = sorted((block.file, block.first, block.last) for block in read.parts)
        return RuleView(
            rule_id=info.rule_id,
            title=info.title,
            description=info.description.strip(),
            severity=info.severity,
            controls=info.controls,
            attributes=info.attributes,
            scope=info.scope,
            effect=_effect(read.parts),
            reasons=tuple(dict.fromkeys(reason for block in read.parts for reason in block.answers)),
            settings=read.settings,
            setting_rows=setting_rows(read.settings, self._bundle.settings),
            package=info.package,
            file=info.file,
            line=info.line,
            lines=tuple((first, last) for file, first, last in own if file == info.file),
            missed=self._missed(own),
            tests=self._tested.of(info.rule_id),
            admits=found.admits,
            keeps_out=found.keeps_out,
        )

    def _missed(self, own: Sequence[tuple[str, int, int]]) -> tuple[int, ...]:
        """Return the lines of a rule, given as file, first and last line, that no test runs."""
        missed = self._tested.missed
        lines = {line for file, first, last in own for line in missed.get(file, ()) if first <= line <= last}
        return tuple(sorted(lines))

    def _examples(self, read: _Read) -> Found:
        offered = self._offered.get(read.info.package, ())
        return self._search.examples(read.info.rule_id, read.look, read.settings, offered)


def _attributes(offered: Sequence[Situation]) -> dict[str, str]:
    """Return the attributes that candidates have, by the name that METADATA may give them."""
    names: dict[str, str] = {}
    for situation in offered:
        for name, value in situation.candidate.items():
            if name == "queue":
                names |= {inner: f"{name}.{inner}" for inner in value if inner not in names}
            else:
                names[name] = name
    return names


def rule_findings(rules: Sequence[RuleView]) -> Iterator[Finding]:
    """Yield rules that a reviewer cannot understand from the report: no words, no severity, no example."""
    for rule in rules:
        place = f"{rule.file}:{rule.line}"
        for name, value in (("title", rule.title), ("description", rule.description)):
            if not value.strip():
                yield Finding(WARNING, f"no-{name}", place, f"{rule.rule_id} has no {name} in its METADATA")
        if rule.severity not in SEVERITIES:
            message = f"{rule.rule_id} has no severity of {', '.join(SEVERITIES)}"
            yield Finding(WARNING, "no-severity", place, message)
        for name, examples in (("keeps out", rule.keeps_out), ("lets in", rule.admits)):
            if not examples:
                message = f"no example was found of what {rule.rule_id} {name}"
                yield Finding(LOW, "no-example", place, message)


def _undescribed(rule_id: str, block: Block) -> RuleInfo:
    return RuleInfo(
        rule_id=rule_id,
        title="",
        description="",
        severity="",
        controls=(),
        attributes=(),
        settings=(),
        scope="",
        package=block.package,
        file=block.file,
        line=block.first,
    )


def _effect(parts: Sequence[Block]) -> str:
    """Return what a rule does; a clause says it best, since walls and filters exclude alike."""
    role = next((block.role for block in parts if block.role), "")
    return role or next((_COLLECTIONS[block.name] for block in parts if block.name in _COLLECTIONS), "")
