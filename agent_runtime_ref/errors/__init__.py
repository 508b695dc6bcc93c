"""Every error that the package raises on purpose, each with a code that never changes.

`code` is what a program may branch on, `message` the template of the sentence, `str(error)` the filled
template. docs/reference/errors.md is generated from these classes, module by module, so a class without a
docstring, a code or a message does not pass the tests.
"""

from agent_runtime_ref.errors.agent import (
    ModelError,
    ToolError,
)
from agent_runtime_ref.errors.base import (
    GovernanceError,
)
from agent_runtime_ref.errors.command import (
    UsageError,
)
from agent_runtime_ref.errors.curator import (
    JudgeError,
)
from agent_runtime_ref.errors.decisions import (
    ENGINE_FAILURE_REASONS,
    BundleError,
    EngineFailureError,
    PolicyDeniedError,
    SeedsRefusedError,
    TextError,
    WriteInterruptedError,
)
from agent_runtime_ref.errors.documents import (
    DocumentError,
    DocumentTypeError,
    DocumentUnreadableError,
    DocumentValueError,
    ResourceNotFoundError,
    SchemaNotFoundError,
)
from agent_runtime_ref.errors.export import (
    CursorError,
    LogNotContinuedError,
)
from agent_runtime_ref.errors.preferences import (
    AnonymousUserError,
    PreferenceError,
    PreferenceInvalidError,
    WritingRightError,
)
from agent_runtime_ref.errors.remote_memory import (
    ModelNotConfiguredError,
    RemoteMemoryCorruptionError,
    RemoteMemoryDuplicateError,
    RemoteMemoryError,
    RemoteMemoryScopeError,
    RemoteMemoryValidationError,
)
from agent_runtime_ref.errors.session_state import (
    NoTurnError,
    SessionStateError,
)
from agent_runtime_ref.errors.stores import (
    DecisionLogError,
    DuplicateRecordError,
    NotInQuarantineError,
    RecordNotFoundError,
    RevisionConflictError,
    StoreAddressError,
    StoreCapabilityError,
    StoreDamagedError,
    StoreError,
    StoreForeignError,
    StoreVersionError,
)

__all__ = [
    "ENGINE_FAILURE_REASONS",
    "AnonymousUserError",
    "BundleError",
    "CursorError",
    "DecisionLogError",
    "DocumentError",
    "DocumentTypeError",
    "DocumentUnreadableError",
    "DocumentValueError",
    "DuplicateRecordError",
    "EngineFailureError",
    "GovernanceError",
    "JudgeError",
    "LogNotContinuedError",
    "ModelError",
    "ModelNotConfiguredError",
    "NoTurnError",
    "NotInQuarantineError",
    "PolicyDeniedError",
    "PreferenceError",
    "PreferenceInvalidError",
    "RecordNotFoundError",
    "RemoteMemoryCorruptionError",
    "RemoteMemoryDuplicateError",
    "RemoteMemoryError",
    "RemoteMemoryScopeError",
    "RemoteMemoryValidationError",
    "ResourceNotFoundError",
    "RevisionConflictError",
    "SchemaNotFoundError",
    "SeedsRefusedError",
    "SessionStateError",
    "StoreAddressError",
    "StoreCapabilityError",
    "StoreDamagedError",
    "StoreError",
    "StoreForeignError",
    "StoreVersionError",
    "TextError",
    "ToolError",
    "UsageError",
    "WriteInterruptedError",
    "WritingRightError",
]
