"""The curator's hand: it has the one right to write preferences, and uses it for findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_runtime_ref.contracts import Caller
from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.preferences.curation import Curated
from agent_runtime_ref.preferences.writer import PreferenceWriter, WritingRight, claim_writing_right

if TYPE_CHECKING:
    from agent_runtime_ref.runtime import GovernedMemory

__all__ = ["KEEPER", "Keeper"]


class Keeper:
    """Keeps standing preferences, through the writer that only the curator can make."""

    def __init__(self, right: WritingRight) -> None:
        self._writer = PreferenceWriter(right)

    def keep(
        self,
        findings: Sequence[Finding],
        *,
        memory: GovernedMemory,
        caller: Caller,
        source_session: str | None = None,
    ) -> tuple[Curated, ...]:
        """Keep findings of scope `standing`; see `PreferenceWriter.write` for what it raises."""
        return self._writer.write(findings, memory=memory, caller=caller, source_session=source_session)


# The right is claimed when the curator is imported: whoever comes second, or first in its place, is refused.
KEEPER = Keeper(claim_writing_right())
