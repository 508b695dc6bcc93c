"""The text of the rules, read without an engine: which parts a rule has, and what it and its helpers look at.

The reading is by names. Where it errs, it errs towards more: an attribute too many costs a few trials, a
setting too many is shown with its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent_runtime_ref.policy.metadata import package_of
from agent_runtime_ref.policy.portable import masked

__all__ = ["Block", "Sources", "sources_of"]

_START = re.compile(r"^(?:default[ \t]+)?(?P<name>[A-Za-z_]\w*)", re.MULTILINE)
_NO_RULE = frozenset({"package", "import", "else"})
_IMPORT = re.compile(r"^import[ \t]+data\.(?P<path>[\w.]+)(?:[ \t]+as[ \t]+(?P<alias>\w+))?", re.MULTILINE)
_RULE_ID = re.compile(r'"rule_id"\s*:\s*"(?P<value>[^"\n]*)"')
_REASON = re.compile(r'"reason"\s*:\s*"(?P<value>[^"\n]*)"')
_TYPE = re.compile(r'"type"\s*:\s*"(?P<value>\w+)"')
_ROLE = re.compile(r'"role"\s*:\s*"(?P<value>\w+)"')
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.\w+)*")
_BLOCKS_MAX = 200  # of one rule with its helpers


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """One statement of a module: a rule, a part of a rule, a helper or a constant."""

    package: str
    file: str
    name: str
    first: int  # line
    last: int
    text: str
    code: str  # strings and comments blanked, as long as the text
    rule_ids: tuple[str, ...]
    imports: Mapping[str, str]  # alias -> path below `data`

    @property
    def reasons(self) -> tuple[str, ...]:
        """The reasons that it may give."""
        return tuple(dict.fromkeys(_found(_REASON, self.text, self.code)))

    @property
    def answers(self) -> tuple[str, ...]:
        """The reasons that it may give, or the obligations that it lays on the gate."""
        return self.reasons or tuple(dict.fromkeys(_found(_TYPE, self.text, self.code)))

    @property
    def role(self) -> str:
        """The role of its clause; empty where it makes none."""
        return next(_found(_ROLE, self.text, self.code), "")


@dataclass(frozen=True, slots=True)
class Sources:
    """All statements of a bundle, and which of them make up a rule."""

    blocks: tuple[Block, ...]
    packages: frozenset[str]
    named: Mapping[tuple[str, str], Sequence[Block]]  # package and name -> statements

    def of(self, rule_id: str) -> tuple[Block, ...]:
        """Return the statements that answer with a rule id."""
        return tuple(block for block in self.blocks if rule_id in block.rule_ids)

    def below(self, file: str, line: int) -> tuple[Block, ...]:
        """Return the statement that follows a line; METADATA describes it."""
        after = [block for block in self.blocks if block.file == file and block.first > line]
        return (min(after, key=lambda block: block.first),) if after else ()

    def with_helpers(self, parts: Sequence[Block]) -> tuple[Block, ...]:
        """Return the statements of a rule and those they refer to, never those of other rules."""
        held = {id(block): block for block in parts}
        todo = list(parts)
        while todo and len(held) < _BLOCKS_MAX:
            for helper in self._referred(todo.pop(0)):
                if not helper.rule_ids and id(helper) not in held:
                    held[id(helper)] = helper
                    todo.append(helper)
        return tuple(held.values())

    def _referred(self, block: Block) -> Iterator[Block]:
        for match in _NAME.finditer(block.code):
            words = match[0].split(".")
            if words[0] in block.imports:
                words = [*block.imports[words[0]].split("."), *words[1:]]
            elif words[0] == "data":
                words = words[1:]
            else:
                yield from self.named.get((block.package, words[0]), ())
                continue
            for size in range(1, len(words)):
                yield from self.named.get((".".join(words[:size]), words[size]), ())


def sources_of(modules: Sequence[tuple[str, str]]) -> Sources:
    """Return the statements of the modules of a bundle."""
    blocks = tuple(block for path, text in modules for block in _blocks(path, text))
    named: dict[tuple[str, str], list[Block]] = {}
    for block in blocks:
        named.setdefault((block.package, block.name), []).append(block)
    return Sources(blocks, frozenset(block.package for block in blocks), named)


def _blocks(path: str, text: str) -> Iterator[Block]:
    code, _ = masked(text)
    package = package_of(text)
    imports = {
        found["alias"] or found["path"].rpartition(".")[2]: found["path"] for found in _IMPORT.finditer(code)
    }
    starts = [found for found in _START.finditer(code) if found["name"] not in _NO_RULE]
    others = [found.start() for found in _START.finditer(code) if found["name"] in ("package", "import")]
    bounds = [*(one.start() for one in starts), len(text)]
    for found, following in zip(starts, bounds[1:], strict=True):
        end = min([following, *(one for one in others if one > found.start())])
        part = code[found.start() : end].rstrip()
        raw = text[found.start() : found.start() + len(part)]
        first = text.count("\n", 0, found.start()) + 1
        yield Block(
            package=package,
            file=path,
            name=found["name"],
            first=first,
            last=first + part.count("\n"),
            text=raw,
            code=part,
            rule_ids=tuple(dict.fromkeys(_found(_RULE_ID, raw, part))),
            imports=imports,
        )


def _found(pattern: re.Pattern[str], text: str, code: str) -> Iterator[str]:
    """Yield what a pattern that begins with a string finds, comments left out."""
    for match in pattern.finditer(text):
        if code[match.start()] == '"':
            yield match["value"]
