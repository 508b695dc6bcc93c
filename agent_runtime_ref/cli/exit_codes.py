"""Exit codes, and what is printed for each error: one line, its place first where one is known."""

from __future__ import annotations

from agent_runtime_ref import errors
from agent_runtime_ref.cli.output import OutputLostError

DONE = 0
REFUSED = 1  # by the policy, or findings
USAGE = 2  # usage, configuration or unreadable input
INTERNAL = 3  # a mistake of ours, or an engine or store that failed

# Of two classes that fit, the first counts: a subclass stands before its base.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (errors.EngineFailureError, INTERNAL),
    (errors.PolicyDeniedError, REFUSED),
    (errors.SeedsRefusedError, REFUSED),
    (errors.DocumentError, USAGE),
    (errors.TextError, USAGE),
    (errors.UsageError, USAGE),
    (errors.CursorError, USAGE),
    (errors.LogNotContinuedError, USAGE),
    (errors.SchemaNotFoundError, USAGE),
    (errors.ResourceNotFoundError, USAGE),
    (errors.StoreAddressError, USAGE),
    (errors.StoreVersionError, USAGE),
    (errors.StoreDamagedError, USAGE),
    (errors.StoreCapabilityError, USAGE),
    (errors.NotInQuarantineError, REFUSED),
    (errors.RecordNotFoundError, USAGE),
    (errors.RemoteMemoryError, USAGE),
    (errors.PreferenceInvalidError, USAGE),
    (errors.AnonymousUserError, USAGE),
    (errors.SessionStateError, USAGE),
)
# A bundle that cannot be used (not there, not the pinned one, broken Rego) is configuration; a panic is ours.
_BUNDLE_INTERNAL = frozenset({"engine_panic"})


def code_of(error: BaseException) -> int:
    """Return the exit code for an error."""
    if isinstance(error, errors.BundleError):
        return INTERNAL if error.reason in _BUNDLE_INTERNAL else USAGE
    if isinstance(error, errors.WriteInterruptedError):
        return code_of(error.failure)
    return next((code for kind, code in _CODES if isinstance(error, kind)), INTERNAL)


def sentence_of(error: BaseException) -> str:
    """Return the line that says what happened, beginning with `file:line:column` where that is known."""
    if isinstance(error, errors.DocumentError) and error.place:
        return f"{error.place}: {error}"
    if isinstance(error, errors.GovernanceError):
        return f"agent-runtime-ref: {error}"
    if isinstance(error, OutputLostError):
        return f"agent-runtime-ref: standard output not written: {error}; what the command did stays done"
    said = " ".join(str(error).split())[:300]
    detail = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return f"agent-runtime-ref: internal error: {detail}; run it with --debug to see where"
