"""Who may read a record: the read policy is asked, purpose by purpose, what it would do with it.

Nobody reads anything here. The question is a hypothetical one, by the subject of the record or, where it is
about nobody in particular, by anybody in its tenant, without any role.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_runtime_ref.contracts import Atom, Caller, Clause, MemoryRecord, Plan, Readability, RetrievalQuery
from agent_runtime_ref.enforcement.attributes import Attributes
from agent_runtime_ref.enforcement.ruling import DecisionPoint
from agent_runtime_ref.stores.attributes import TRUST_RANKS, record_attributes
from agent_runtime_ref.stores.base import SearchRequest, Store

ANYBODY = "reader"


class Readers:
    """Asks the read policy about records that are about to be readable."""

    def __init__(
        self, *, point: DecisionPoint, store: Store, attributes: Attributes, purposes: Iterable[str]
    ) -> None:
        self._point = point
        self._store = store
        self._attributes = attributes
        self._purposes = tuple(purposes)

    def of(self, record: MemoryRecord, *, now_us: int) -> Readability:
        """Return for which purposes `record` is admitted, and what keeps it from the others.

        Raises:
            EngineFailureError: the engine gave no clear answer.
        """
        shown = self._attributes.candidate(
            record_attributes(record, outranked=self._is_outranked(record, now_us))
        )
        admitted: list[str] = []
        kept_from: dict[str, tuple[str, ...]] = {}
        for purpose in self._purposes:
            reasons = self._reasons(record, shown, purpose, now_us)
            if reasons is None:
                admitted.append(purpose)
            else:
                kept_from[purpose] = reasons
        return Readability(record.tenant_id, record.subject, tuple(admitted), kept_from)

    def _reasons(
        self, record: MemoryRecord, shown: dict[str, Any], purpose: str, now_us: int
    ) -> tuple[str, ...] | None:
        """Return why one purpose does not see the record, or None where it does."""
        reader = Caller(record.tenant_id, record.subject or ANYBODY)
        query = RetrievalQuery(
            trace_id="trace",
            session_id="session",
            tenant_id=record.tenant_id,
            principal_id=reader.principal_id,
            purpose=purpose,
            allowed_classes=(record.memory_class,),
            limit=1,
        )
        asked = self._attributes.read(query, reader, now_us=now_us, has_text=False, operation="search")
        answer = self._point.read({**asked, "candidates": [shown]}).document
        if answer["allow"] is True and answer["admitted"] == [0]:
            return None
        rows = sorted((row["rule_id"], row["reason"]) for row in (*answer["deny"], *answer["excluded"]))
        return tuple(dict.fromkeys(reason for _, reason in rows)) or ("not_permitted",)

    def _is_outranked(self, record: MemoryRecord, now_us: int) -> bool:
        """Say whether a record of higher trust is active under the same subject and key."""
        if record.key is None:
            return False
        about = (
            Atom("subject", "is_null") if record.subject is None else Atom("subject", "eq", record.subject)
        )
        walls = (
            (Atom("key", "eq", record.key),),
            (about,),
            (Atom("status", "eq", "active"),),
            (Atom("trust_rank", "gt", TRUST_RANKS[record.trust_level]),),
            (Atom("expires_ns", "is_null"), Atom("expires_ns", "gt", now_us * 1000)),
        )
        plan = Plan(tuple(Clause("wall", "GATE", "better", atoms) for atoms in walls), True, 1)
        page = self._store.search(SearchRequest((record.tenant_id,), plan, None, now_us, 1, 0))
        return page.considered > 0
