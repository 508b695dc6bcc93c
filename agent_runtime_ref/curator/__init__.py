"""The curator: judges what a conversation says of its user, and is the only one who writes it down."""

from __future__ import annotations

from agent_runtime_ref.curator.curator import CurationResult, Curator
from agent_runtime_ref.curator.judging import Judge
from agent_runtime_ref.curator.model_judge import JudgeBudget, ModelJudge
from agent_runtime_ref.curator.rules.judge import RuleJudge

__all__ = ["CurationResult", "Curator", "Judge", "JudgeBudget", "ModelJudge", "RuleJudge"]
