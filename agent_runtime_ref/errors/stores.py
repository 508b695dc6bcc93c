"""Stores that cannot be opened, cannot do what is asked, or hold something else."""

from __future__ import annotations

from agent_runtime_ref.errors.base import GovernanceError


class StoreError(GovernanceError):
    """A store could not do what was asked of it."""

    code = "store.error"
    message = "store `{store}`: {problem}"
    is_told = False  # whether a gate has written down that it happened

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
