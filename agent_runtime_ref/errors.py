"""Every error that the package raises on purpose, each with a code that never changes.

`code` is what a program may branch on, `message` the template of the sentence, `str(error)` the filled
template. docs/reference/errors.md is generated from these classes, so a class without a docstring, a code or
a message does not pass the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

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


class GovernanceError(Exception):
    """Something was refused or could not be done; the base of every error of this package."""

    code: ClassVar[str] = "governance.error"
    message: ClassVar[str] = "{reason}"

    def __init__(self, **values: object) -> None:
        # The values are kept as the only argument: that is what makes the error picklable.
        super().__init__(values)
        self.values = values
        for name, value in values.items():
            setattr(self, name, value)

    def __str__(self) -> str:
        """Return the message with the user's own values filled in."""
        return self.message.format_map(self.values)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by keyword, since subclasses take nothing by position."""
        return (_rebuild, (type(self), self.values))


def _rebuild(cls: type[GovernanceError], values: dict[str, object]) -> GovernanceError:
    """Return an error of `cls` as it was before it was pickled."""
    return cls(**values)


# Documents --------------------------------------------------------------------------------------------------


class DocumentError(GovernanceError):
    """A document does not follow its schema; the base of the two errors that say how."""

    code = "document.invalid"
    message = "{sentence}"

    def __init__(
        self,
        sentence: str,
        *,
        path: str = "$",
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(sentence=sentence, path=path, line=line, column=column, source=source)
        self.sentence = sentence
        self.path = path
        self.line = line
        self.column = column
        self.source = source

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known; what a command prints before the sentence."""
        parts = [part for part in (self.source, self.line, self.column) if part is not None]
        return ":".join(str(part) for part in parts)

    def __str__(self) -> str:
        """Return exactly the documented sentence."""
        return self.sentence


class DocumentTypeError(DocumentError, TypeError):
    """A part of a document is of the wrong type, or a mapping or list is missing."""

    code = "document.type"


class DocumentValueError(DocumentError, ValueError):
    """A part of a document has the right type and a value that is not permitted."""

    code = "document.value"


class DocumentUnreadableError(DocumentValueError):
    """A file is not readable as a document: broken, ambiguous or larger than permitted."""

    code = "document.unreadable"

    def __init__(
        self,
        sentence: str,
        *,
        reason: str | None = None,
        path: str = "$",
        line: int | None = None,
        column: int | None = None,
        source: str | None = None,
    ) -> None:
        super().__init__(sentence, path=path, line=line, column=column, source=source)
        self.reason = reason if reason is not None else sentence
        self.values["reason"] = self.reason


class SchemaNotFoundError(GovernanceError):
    """No schema of that name is in the schema directory."""

    code = "schema.not_found"
    message = "no schema named `{name}` in {directory}; try `agent-runtime-ref lint`"

    def __init__(self, name: str, directory: object) -> None:
        super().__init__(name=name, directory=str(directory))


class ResourceNotFoundError(GovernanceError):
    """Policies, schemas or configs are not where they were said to be, nor in the package."""

    code = "resource.not_found"
    message = "no {kind} at {looked}; name an existing path or leave it out to use the bundled one"

    def __init__(self, kind: str, looked: object) -> None:
        super().__init__(kind=kind, looked=str(looked))


# Decisions --------------------------------------------------------------------------------------------------


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


# Stores -----------------------------------------------------------------------------------------------------


class StoreError(GovernanceError):
    """A store could not do what was asked of it."""

    code = "store.error"
    message = "store `{store}`: {problem}"

    def __init__(self, store: str, problem: str) -> None:
        super().__init__(store=store, problem=problem)


class StoreAddressError(StoreError):
    """A store address names no known kind of store, or is not complete."""

    code = "store.address"
    message = "store address `{store}` not understood: {problem}"


class StoreVersionError(StoreError):
    """A store was written by a newer version of this package and is left as it is."""

    code = "store.version"
    message = "store `{store}` is newer than this version: {problem}"


class StoreDamagedError(StoreError):
    """A store holds what it never wrote; nothing was changed."""

    code = "store.damaged"
    message = "store `{store}` is damaged: {problem}; restore it from a backup"


class StoreForeignError(StoreDamagedError):
    """A file that was named as a store or a log is something else; it was left as it is."""

    code = "store.foreign"
    message = "`{store}` {problem}; name another file, or restore it if it ever was one"


class StoreCapabilityError(StoreError):
    """A store cannot do what the operation needs, so the operation was refused."""

    code = "store.capability"
    message = "store `{store}` cannot do this: {problem}"


class RevisionConflictError(StoreError):
    """Another writer changed the record first; nothing was written."""

    code = "store.revision_conflict"
    message = "store `{store}`: revision moved under the write: {problem}; read again and retry"


class DuplicateRecordError(StoreError):
    """The same memory is there already; `existing` names the record that holds it."""

    code = "store.duplicate"
    message = "store `{store}`: the same memory is there already: {problem}"

    def __init__(self, store: str, existing: str) -> None:
        super().__init__(store, existing)
        self.existing = existing

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.values["store"], self.existing))


class RecordNotFoundError(StoreError):
    """No record of that id is visible in that tenant."""

    code = "store.record_not_found"
    message = "store `{store}`: no record `{problem}`"


class NotInQuarantineError(RecordNotFoundError):
    """A record that is to be released or rejected does not wait for that in any tenant."""

    code = "store.not_in_quarantine"


class DecisionLogError(StoreError):
    """The decision log could not be written, so the operation did not happen."""

    code = "store.decision_log"
    message = "decision log of `{store}` not writable: {problem}; nothing was read or written"


# Remote memory ----------------------------------------------------------------------------------------------


class RemoteMemoryError(GovernanceError, RuntimeError):
    """A user's remote memory could not do what was asked of it."""

    code = "remote_memory.error"
    message = "remote memory: {problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by position, as it is raised."""
        return (type(self), (self.values["problem"],))


class RemoteMemoryValidationError(RemoteMemoryError, ValueError):
    """A record or a query is not one; nothing was written."""

    code = "remote_memory.validation"


class RemoteMemoryDuplicateError(RemoteMemoryValidationError):
    """A record of that id is there already; nothing was written."""

    code = "remote_memory.duplicate"


class RemoteMemoryScopeError(RemoteMemoryError):
    """A file or a record belongs to another user; nothing of it was shown."""

    code = "remote_memory.scope"


class RemoteMemoryCorruptionError(RemoteMemoryError):
    """A line inside a file is no record; the message names the line."""

    code = "remote_memory.corruption"


class ModelNotConfiguredError(RemoteMemoryError):
    """A model was about to be asked and nobody said which."""

    code = "remote_memory.model"
    message = "{problem}; name the model that is to answer"


# Command ----------------------------------------------------------------------------------------------------


class UsageError(GovernanceError):
    """The command was called in a way that it does not understand."""

    code = "command.usage"
    message = "{problem}"

    def __init__(self, problem: str) -> None:
        super().__init__(problem=problem)
