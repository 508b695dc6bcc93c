"""What the policy refuses, and engines and bundles that give no clear answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_runtime_ref.errors.base import GovernanceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_runtime_ref.contracts import Decision

ENGINE_FAILURE_REASONS = frozenset(
    (
        "engine_undefined engine_wrong_type engine_exception engine_panic engine_timeout"
        " engine_unreachable engine_http_error engine_malformed engine_answer_too_large"
        " engine_breaker_open bundle_mismatch bundle_missing bundle_tampered settings_malformed"
        " input_malformed input_too_large obligation_unknown"
    ).split()
)


class PolicyDeniedError(GovernanceError):
    """The policy refused the operation; nothing was read and nothing was written."""

    code = "policy.denied"
    message = "`{operation}` refused by policy: {reasons} ({rule_ids})"

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision=decision)
        self.decision = decision

    def __str__(self) -> str:
        """Return the operation, the reasons and the rules, in the order of the decision."""
        return self.message.format(
            operation=self.decision.operation,
            reasons=", ".join(self.decision.reasons),
            rule_ids=", ".join(self.decision.rule_ids) or "no rule",
        )


class EngineFailureError(PolicyDeniedError):
    """The engine gave no clear answer, which is a refusal; `reason` says what happened instead."""

    code = "policy.engine_failure"
    message = "`{operation}` refused because the policy engine failed: {reason} ({detail})"

    def __init__(
        self, reason: str, detail: str = "", *, operation: str = "decide", decision: Decision | None = None
    ) -> None:
        assert reason in ENGINE_FAILURE_REASONS, reason
        # The gate supplies the decision: an engine that failed has none, and the refusal is logged anyway.
        GovernanceError.__init__(self, reason=reason, detail=detail, operation=operation, decision=decision)
        self.reason = reason
        self.detail = detail
        self.operation = operation
        self.decision = decision  # type: ignore[assignment]

    def __str__(self) -> str:
        """Return the operation and what the engine did."""
        decision: Decision | None = self.decision
        operation = self.operation if decision is None else decision.operation
        return self.message.format(operation=operation, reason=self.reason, detail=self.detail or "no detail")


class BundleError(GovernanceError):
    """A policy bundle could not be opened; `reason` is one of the engine failure reasons."""

    code = "policy.bundle"
    message = "policy bundle not usable: {reason}: {detail}"

    def __init__(self, reason: str, detail: str = "") -> None:
        assert reason in ENGINE_FAILURE_REASONS, reason
        super().__init__(reason=reason, detail=detail)
        self.reason = reason
        self.detail = detail


def _why(decision: Decision) -> str:
    """Return reasons and rules of a decision, in its order."""
    return f"{', '.join(decision.reasons)} ({', '.join(decision.rule_ids) or 'no rule'})"


class SeedsRefusedError(GovernanceError):
    """The write policy refuses records of a seed file; nothing of it can be read until it is mended."""

    code = "policy.seeds_refused"
    message = "seed records refused by the write policy: {refused}; mend the file or the policy"

    def __init__(self, outcomes: Sequence[tuple[int, str, PolicyDeniedError]]) -> None:
        rows = [
            f"#{number} `{memory_id}` {_why(outcome.decision)}" for number, memory_id, outcome in outcomes
        ]
        super().__init__(outcomes=outcomes, refused="; ".join(rows))
        self.outcomes = tuple(outcomes)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by the outcomes, from which the sentence is made."""
        return (type(self), (self.outcomes,))


class WriteInterruptedError(GovernanceError):
    """A bulk write failed after some of it was done; `outcomes` are those of the candidates before."""

    code = "write.interrupted"
    message = "{done} of {total} candidates are settled, the others not written: {failure}"

    def __init__(self, outcomes: Sequence[object], total: int, failure: GovernanceError) -> None:
        super().__init__(outcomes=tuple(outcomes), total=total, failure=failure, done=len(outcomes))
        self.outcomes = tuple(outcomes)  # receipts and refusals, in the order of the candidates
        self.failure = failure

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.outcomes, self.values["total"], self.failure))


class TextError(GovernanceError, ValueError):
    """A query text has nothing in it to search by, or is larger than permitted."""

    code = "query.text"
    message = "query text {problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)
