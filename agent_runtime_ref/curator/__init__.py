"""The curator: judges what a conversation says of its user, and is the only one who writes it down."""

from __future__ import annotations

from agent_runtime_ref.curator.rules.judge import RuleJudge

__all__ = ["RuleJudge"]
