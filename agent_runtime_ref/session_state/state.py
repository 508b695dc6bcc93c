"""P_t: what a user asked for in one thread so far, as constraints that code can enforce.

Every constraint is a `Finding` of scope `session`: positive or negative, hard or soft; a bound of the budget;
or the category that the conversation is about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import Any

from agent_runtime_ref.contracts.finding import Amount, Finding
from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.session_state.words import same_thing

__all__ = ["EMPTY", "FINDINGS_MAX", "SessionState", "finding_of", "kind_of", "thing_of"]

# Nothing but time, clearing and a later constraint removes one, so there has to be a bound to how many enter.
FINDINGS_MAX = 64
GENERAL = "general"  # the domain that is every domain

_KINDS = ("positive_hard", "positive_soft", "negative_hard", "negative_soft", "budget", "category")


@dataclass(frozen=True, slots=True)
class SessionState:
    """The constraints of one thread; what was said last stands last.

    Raises:
        DocumentValueError: two of them are about the same thing, one is no session's, or there are too many.
    """

    findings: tuple[Finding, ...] = ()
    saved_at_us: int | None = None  # microseconds since 1970; None before the first save
    # The memory that each constraint was kept as, by what it is about (`thing_of`); where that is known.
    records: Mapping[tuple[str, ...], str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "findings", tuple(self.findings))
        require_session(self.findings)
        if len(self.findings) > FINDINGS_MAX:
            raise DocumentValueError(f"session state: must have at most {FINDINGS_MAX} constraints")
        if any(finding.lifts_budget for finding in self.findings):
            raise DocumentValueError("session state: must have no constraint that only takes one back")
        things = [thing_of(finding) for finding in self.findings]
        if len(set(things)) != len(things):
            raise DocumentValueError("session state: must have one constraint about one thing")

    def __bool__(self) -> bool:
        """Whether there is any constraint."""
        return bool(self.findings)

    @property
    def positive_hard(self) -> tuple[Finding, ...]:
        """What the user must have."""
        return self._of("positive_hard")

    @property
    def positive_soft(self) -> tuple[Finding, ...]:
        """What the user would like."""
        return self._of("positive_soft")

    @property
    def negative_hard(self) -> tuple[Finding, ...]:
        """What the user will not have."""
        return self._of("negative_hard")

    @property
    def negative_soft(self) -> tuple[Finding, ...]:
        """What the user would rather not have."""
        return self._of("negative_soft")

    @property
    def budget(self) -> tuple[Finding, ...]:
        """The bounds of the budget: a greatest, a least, or both."""
        return self._of("budget")

    @property
    def category(self) -> tuple[Finding, ...]:
        """What the conversation is about."""
        return self._of("category")

    @property
    def counts(self) -> dict[str, int]:
        """How many constraints there are of each kind; kinds without any are left out."""
        return counted(self.findings)

    def record_ids(self, findings: Iterable[Finding]) -> tuple[str, ...]:
        """Return the ids of the memories that constraints of this state were kept as, in their order."""
        found = (self.records.get(thing_of(finding)) for finding in findings)
        return tuple(one for one in found if one is not None)

    def _of(self, kind: str) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if kind_of(finding) == kind)


def kind_of(finding: Finding) -> str:
    """Return which part of the state a finding belongs to."""
    if finding.anchor == "budget" or (finding.anchor == "category" and finding.polarity == "like"):
        return finding.anchor
    side = "positive" if finding.polarity == "like" else "negative"
    return f"{side}_{finding.strength}"


def thing_of(finding: Finding) -> tuple[str, ...]:
    """Return what a finding is about, whatever it says of it: the later of two about one thing counts."""
    if finding.amount is not None:
        return ("budget", finding.amount.bound)
    if finding.lifts_budget:
        return ("budget", "lifted")
    return ("thing", finding.category, finding.domain, same_thing(finding.slug))


def counted(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many findings there are of each kind that occurs, in the order of the kinds."""
    kinds = [kind_of(finding) for finding in findings]
    return {kind: kinds.count(kind) for kind in _KINDS if kind in kinds}


def require_session(findings: Iterable[object]) -> None:
    """Return if every finding is of the session; a standing preference is kept elsewhere.

    Raises:
        DocumentValueError: one is not.
    """
    for finding in findings:
        if not isinstance(finding, Finding) or finding.scope != "session":
            raise DocumentValueError(
                "session state $.findings: must be findings of scope `session`", path="$.findings"
            )


def finding_of(document: Any) -> Finding:
    """Return the finding of a document as `Finding.to_document` makes it.

    Raises:
        DocumentTypeError, DocumentValueError, KeyError, TypeError: it is none.
    """
    fields = _known(document, Finding)
    if fields["amount"] is not None:
        fields["amount"] = Amount(**_known(fields["amount"], Amount))
    fields["keys_to_supersede"] = tuple(fields["keys_to_supersede"])
    return Finding(**fields)


def _known(document: Any, kind: type[Finding] | type[Amount]) -> dict[str, Any]:
    """Return the document if it has the fields of `kind` and no others."""
    if not isinstance(document, Mapping) or sorted(document) != sorted(one.name for one in fields_of(kind)):
        raise TypeError(f"it is no {kind.__name__}")
    return dict(document)


EMPTY = SessionState()
