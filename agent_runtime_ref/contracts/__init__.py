"""The values that travel through the package: frozen, checked once, unaware of stores and policies."""

from __future__ import annotations

from agent_runtime_ref.contracts.caller import Caller
from agent_runtime_ref.contracts.candidate import MemoryCandidate
from agent_runtime_ref.contracts.decision import Decision
from agent_runtime_ref.contracts.finding import Amount, Finding
from agent_runtime_ref.contracts.plan import Atom, Clause, Plan
from agent_runtime_ref.contracts.query import RetrievalQuery
from agent_runtime_ref.contracts.receipts import ForgetReceipt, Readability, ReviewReceipt, WriteReceipt
from agent_runtime_ref.contracts.record import MemoryRecord, Origin
from agent_runtime_ref.contracts.result import Hit, RetrievalResult, ScoreBreakdown

__all__ = [
    "Amount",
    "Atom",
    "Caller",
    "Clause",
    "Decision",
    "Finding",
    "ForgetReceipt",
    "Hit",
    "MemoryCandidate",
    "MemoryRecord",
    "Origin",
    "Plan",
    "Readability",
    "RetrievalQuery",
    "RetrievalResult",
    "ReviewReceipt",
    "ScoreBreakdown",
    "WriteReceipt",
]
