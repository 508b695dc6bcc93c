"""equivalent_mutants.yaml: changes that no test can notice, each read by a person and given a reason.

It lies in the folder of the policies and decides nothing, so it is no part of the digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_runtime_ref.errors import BundleError
from agent_runtime_ref.policy.mutation.mutants import Mutant

__all__ = ["EQUIVALENT", "Equivalent", "read_equivalent", "told_apart"]

EQUIVALENT = "equivalent_mutants.yaml"


@dataclass(frozen=True, slots=True)
class Equivalent:
    """A change after which the policies decide as before."""

    file: str
    rule: str  # MEM-R-105#2
    original: str
    mutated: str
    reason: str
    reviewed: str  # by whom and when
    line: int  # of the entry

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The mutant's name, as `Mutant.identity`."""
        return self.file, self.rule, self.original, self.mutated


def read_equivalent(folder: Path) -> tuple[Equivalent, ...]:
    """Return the entries of the file in a folder; none where there is no such file.

    Raises:
        DocumentError: the file does not follow its schema, which allows five entries.
    """
    path = folder / EQUIVALENT
    if not path.is_file():
        return ()
    from agent_runtime_ref.validation import check_source, read_document

    source = read_document(path, schema="equivalent_mutants")
    rows: list[dict[str, str]] = check_source(source, "equivalent_mutants")["equivalent"]
    return tuple(
        Equivalent(**row, line=(source.positions.place(("equivalent", index)) or (1, 1))[0])
        for index, row in enumerate(rows)
    )


def told_apart(
    entries: Sequence[Equivalent], survived: Sequence[Mutant], killed: Mapping[tuple[str, str, str, str], str]
) -> tuple[Mutant, ...]:
    """Return the survivors that no entry explains.

    Raises:
        BundleError: an entry names no mutant, several, one that a test notices, or what another entry names.
    """
    known: dict[tuple[str, str, str, str], int] = {}
    for mutant in survived:
        known[mutant.identity] = known.get(mutant.identity, 0) + 1
    for entry in entries:
        problem = _problem(entry, known, killed, entries)
        if problem:
            raise BundleError("settings_malformed", f"{EQUIVALENT}:{entry.line}: {entry.rule}: {problem}")
    excused = {entry.identity for entry in entries}
    return tuple(mutant for mutant in survived if mutant.identity not in excused)


def _problem(
    entry: Equivalent,
    known: Mapping[tuple[str, str, str, str], int],
    killed: Mapping[tuple[str, str, str, str], str],
    entries: Iterable[Equivalent],
) -> str:
    """Return what is wrong with an entry; empty where it is in order."""
    if sum(other.identity == entry.identity for other in entries) > 1:
        return "stands twice; remove one"
    if entry.identity in killed:
        return f"is noticed by {killed[entry.identity]}, so it is not equivalent; remove the entry"
    if known.get(entry.identity, 0) > 1:
        return "names several changes; change the rule so that they differ"
    if entry.identity not in known:
        return "names no change that is tried; copy file, rule, original and mutated from the report"
    return ""
