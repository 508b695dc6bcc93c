"""The work after a reply: candidates, write gate, curation and compaction, never in the reply's way."""

from agent_runtime_ref.background.candidates import Proposer, conversation_of
from agent_runtime_ref.background.jobs import Curation
from agent_runtime_ref.background.pending import PendingFile, Unkept, taken_over
from agent_runtime_ref.background.turn import Turn
from agent_runtime_ref.background.worker import BackgroundWorker

__all__ = [
    "BackgroundWorker",
    "Curation",
    "PendingFile",
    "Proposer",
    "Turn",
    "Unkept",
    "conversation_of",
    "taken_over",
]
