"""The policy documents: what the decision point is told about a request (the PIP's work).

Content never enters one. Every other free string enters as `Words` shows it: as written where it is a
harmless identifier, else as a keyed digest. The same transformation on both sides of a comparison
keeps equality intact, and a decision's input can be logged and replayed as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.contracts import Atom, Caller, Clause, MemoryCandidate, Plan, RetrievalQuery
from agent_runtime_ref.contracts.arguments import require_integer, require_string, require_strings
from agent_runtime_ref.errors import DocumentValueError
from agent_runtime_ref.stores.attributes import TRUST_RANKS, confidence_millionths, provenance_known
from agent_runtime_ref.telemetry.lines import CONSIDERED_COLUMNS
from agent_runtime_ref.telemetry.words import Pseudonyms, Words

ANONYMOUS = frozenset({"", "anonymous", "anon", "guest"})
_WORDS_OF_A_RECORD = (
    "record_id",
    "tenant_id",
    "subject",
    "memory_class",
    "kind",
    "key",
    "source",
    "provenance",
    "status",
)


@dataclass(frozen=True, slots=True)
class Inspection:
    """What an operator wants to look at: every argument narrows, None leaves open."""

    principal_id: str
    limit: int
    purpose: str = "inspection"
    tenant_id: str | None = None
    classes: tuple[str, ...] | None = None
    kinds: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    trust_min: str | None = None
    record_ids: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is of the wrong type or no text; everything else is the policy's to judge."""
        for name in ("principal_id", "purpose"):
            require_string(f"inspection $.{name}", getattr(self, name))
        for name in ("tenant_id", "trust_min"):
            require_string(f"inspection $.{name}", getattr(self, name), optional=True)
        if self.trust_min is not None and self.trust_min not in TRUST_RANKS:
            raise DocumentValueError(
                f"inspection $.trust_min: must be one of {', '.join(TRUST_RANKS)}", path="$.trust_min"
            )
        require_integer("inspection $.limit", self.limit)
        for name in ("classes", "kinds", "sources", "record_ids", "statuses"):
            values = getattr(self, name)
            if values is not None or name != "classes":
                object.__setattr__(self, name, require_strings(f"inspection $.{name}", values))


class Attributes:
    """Builds policy documents and keeps what is needed to take an answer back to real values."""

    def __init__(self, words: Words, pseudonyms: Pseudonyms) -> None:
        self.words = words
        self.pseudonyms = pseudonyms

    def caller(self, caller: Caller) -> dict[str, Any]:
        """Return who asks, from the trusted context only."""
        return {
            "tenant_id": self.words.safe(caller.tenant_id),
            "principal_id": self.words.safe(caller.principal_id),
            "subject": self.words.safe(caller.own_subject),
            "roles": sorted(self.words.each(caller.roles)),
            "anonymous": caller.principal_id.strip().casefold() in ANONYMOUS,
        }

    def read(
        self, query: RetrievalQuery, caller: Caller, *, now_us: int, has_text: bool, operation: str
    ) -> dict[str, Any]:
        """Return the read policy's input for a retrieval query, without candidates."""
        words = self.words
        asked = {
            "tenant_id": words.safe(query.tenant_id),
            "principal_id": words.safe(query.principal_id),
            "purpose": words.safe(query.purpose),
            "allowed_classes": words.each(query.allowed_classes),
            "limit": query.limit,
            "trust_min_rank": None if query.trust_min is None else TRUST_RANKS[query.trust_min],
            "max_age_days": query.max_age_days,
            "require_provenance": query.require_provenance,
            "subject": words.optional(query.subject),
            "kinds": words.each(query.kinds),
            "sources": words.each(query.sources),
            "keys": words.each(query.keys),
            "record_ids": words.each(query.record_ids),
            "statuses": [],
            "has_text": has_text,
        }
        return self._document(operation, caller, now_us, asked)

    def inspect(self, inspection: Inspection, caller: Caller, *, now_us: int) -> dict[str, Any]:
        """Return the read policy's input for an operator's look, without candidates."""
        words = self.words
        trust_min = inspection.trust_min
        asked = {
            "tenant_id": words.optional(inspection.tenant_id),
            "principal_id": words.safe(inspection.principal_id),
            "purpose": words.safe(inspection.purpose),
            "allowed_classes": None if inspection.classes is None else words.each(inspection.classes),
            "limit": inspection.limit,
            "trust_min_rank": None if trust_min is None else TRUST_RANKS[trust_min],
            "max_age_days": None,
            "require_provenance": False,
            "subject": None,
            "kinds": words.each(inspection.kinds),
            "sources": words.each(inspection.sources),
            "keys": [],
            "record_ids": words.each(inspection.record_ids),
            "statuses": words.each(inspection.statuses),
            "has_text": False,
        }
        return self._document("inspect", caller, now_us, asked)

    def candidate(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the policy's view of a stored record from the attributes the store supplied."""
        shown = dict(attributes)
        known, safe = self.words.known, self.words.safe
        for name in _WORDS_OF_A_RECORD:
            value = shown[name]
            if value is not None:
                shown[name] = known(value) or safe(value)
        return shown

    def row(self, attributes: Mapping[str, Any], shown: Mapping[str, Any] | None = None) -> list[Any]:
        """Return a record's metadata for a log line; whom it is about stands as a pseudonym.

        `shown` is the policy's view, where it has been made already.
        """
        if shown is None:
            shown = self.candidate(attributes)
        subject = attributes["subject"]
        if subject is not None:
            tenant_id, key = attributes["tenant_id"], attributes["key"]
            pseudonym = self.pseudonyms.of
            masks = {"subject": pseudonym(tenant_id, subject, subject)}
            if key is not None:
                masks["key"] = pseudonym(tenant_id, subject, key)
            shown = {**shown, **masks}
        return [shown[column] for column in CONSIDERED_COLUMNS]

    def masked(self, document: Mapping[str, Any], caller: Caller, subjects: Sequence[str]) -> dict[str, Any]:
        """Return `document` for the log, whoever it is about as a pseudonym.

        The caller's own subject always is one; each of `subjects`, which the request names, wherever it
        stands; and then the keys that the query names, since they are likely to be about that subject.
        """
        pseudonym = self.pseudonyms.of
        tenant_id = caller.tenant_id
        names = {self.words.safe(subject): pseudonym(tenant_id, subject, subject) for subject in subjects}
        shown: dict[str, Any] = _replaced(dict(document), names) if names else dict(document)
        own = caller.own_subject
        if document["caller"]["subject"] == self.words.safe(own):
            shown["caller"] = {**shown["caller"], "subject": pseudonym(tenant_id, own, own)}
        keys = document.get("query", {}).get("keys")
        if subjects and keys:
            masks = [pseudonym(tenant_id, subjects[0], key) for key in keys]
            shown["query"] = {**shown["query"], "keys": masks}
        return shown

    def _document(
        self, operation: str, caller: Caller, now_us: int, query: Mapping[str, Any]
    ) -> dict[str, Any]:
        return {
            "operation": operation,
            "now_ns": now_us * 1000,
            "caller": self.caller(caller),
            "query": query,
            "candidates": [],
        }


def subjects_named(caller: Caller, *others: str | None) -> tuple[str, ...]:
    """Return the subjects that a request names on purpose; a bare principal is not one."""
    named = (caller.subject, *others)
    return tuple(dict.fromkeys(subject for subject in named if subject is not None))


def real_plan(plan: Plan, words: Words, values: Sequence[str]) -> Plan:
    """Return `plan` with digests that stand for this request's own strings turned back into them."""
    back = {words.safe(value): value for value in values}
    if all(shown == value for shown, value in back.items()):
        return plan
    clauses = tuple(_real_clause(clause, back) for clause in plan.clauses)
    return Plan(clauses=clauses, complete=plan.complete, limit=plan.limit)


def request_strings(query: RetrievalQuery, caller: Caller) -> list[str]:
    """Return every free string of a read request that a plan may hand back."""
    optional = [query.subject] if query.subject is not None else []
    return [
        caller.tenant_id,
        caller.own_subject,
        query.tenant_id,
        *optional,
        *query.allowed_classes,
        *query.kinds,
        *query.sources,
        *query.keys,
        *query.record_ids,
    ]


def write_candidate(
    candidate: MemoryCandidate,
    words: Words,
    *,
    findings: Sequence[Mapping[str, str]],
    content_digest: str,
    size_bytes: int,
    language: str,
    lineage: Mapping[str, Any],
    replaces: Mapping[str, Any] | None,
    tombstoned: bool,
) -> dict[str, Any]:
    """Return the write policy's view of a candidate."""
    return {
        "tenant_id": words.safe(candidate.tenant_id),
        "subject": words.optional(candidate.subject),
        "memory_class": words.safe(candidate.memory_class),
        "kind": words.safe(candidate.kind),
        "key": words.optional(candidate.key),
        "source": words.safe(candidate.source),
        "provenance": words.safe(candidate.provenance),
        "provenance_known": provenance_known(candidate.provenance),
        "confidence_millionths": confidence_millionths(candidate.confidence),
        "revision_mode": candidate.revision_mode,
        "size_bytes": size_bytes,
        "content_digest": content_digest,
        "language": language,
        "findings": list(findings),
        "lineage": dict(lineage),
        "replaces": None if replaces is None else dict(replaces),
        "tombstoned": tombstoned,
    }


def _real_clause(clause: Clause, back: Mapping[str, str]) -> Clause:
    return Clause(
        role=clause.role,
        rule_id=clause.rule_id,
        reason=clause.reason,
        any_of=tuple(
            Atom(attribute=atom.attribute, operator=atom.operator, value=_replaced(atom.value, back))
            for atom in clause.any_of
        ),
        classes=None if clause.classes is None else tuple(back.get(name, name) for name in clause.classes),
        passed=clause.passed,
    )


def _replaced(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {name: _replaced(inner, names) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(inner, names) for inner in value)
    return value
