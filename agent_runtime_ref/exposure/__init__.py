"""What went where: the contexts that a record entered, and all that the log holds of a session."""

from agent_runtime_ref.exposure.contexts import Context, contexts_of
from agent_runtime_ref.exposure.session import SessionExport, session_export

__all__ = ["Context", "SessionExport", "contexts_of", "session_export"]
