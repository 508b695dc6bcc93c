"""A mutant: one small change of a bundle, made to see whether any test notices."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Mutant", "Survivor"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change, and what the bundle's part reads like after it."""

    file: str
    line: int
    rule: str  # MEM-R-105#2: the second body of that rule in the file; or settings.limits.query_max
    operation: str  # drop rule, drop, negate, boundary, number, boolean, entry, level
    original: str
    mutated: str
    content: str  # the whole module, or the data as JSON
    package: str  # whose tests must notice; empty for settings: those of all

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What names the mutant in the file of equivalent ones; lines may move."""
        return self.file, self.rule, self.original, self.mutated

    @property
    def label(self) -> str:
        """The rule that was changed, by its id or name."""
        return self.rule.partition("#")[0]


@dataclass(frozen=True, slots=True)
class Survivor:
    """A change that no test noticed."""

    file: str
    line: int
    rule: str
    rule_id: str  # MEM-R-105; the name of the rule where it has no id; settings.limits.query_max
    operation: str
    original: str
    mutated: str

    @classmethod
    def of(cls, mutant: Mutant) -> Survivor:
        """Return what is told of a mutant that survived."""
        return cls(
            mutant.file, mutant.line, mutant.rule, mutant.label,
            mutant.operation, mutant.original, mutant.mutated,
        )  # fmt: skip

    @property
    def sentence(self) -> str:
        """Say on one line what was changed and where."""
        return (
            f"{self.file}:{self.line}: {self.rule}: {self.operation}: `{self.original}` -> `{self.mutated}`"
        )
