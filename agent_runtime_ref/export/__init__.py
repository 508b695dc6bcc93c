"""Events on their way out of the decision log, which is the durable outbox, and what arrived of them."""

from agent_runtime_ref.export.answers import Answer, Sender
from agent_runtime_ref.export.cursor import Cursor, Reached
from agent_runtime_ref.export.delivery import Delivery, Report
from agent_runtime_ref.export.jsonl import FileSender, StreamSender
from agent_runtime_ref.export.outgoing import AllowList, Outgoing

__all__ = [
    "AllowList",
    "Answer",
    "Cursor",
    "Delivery",
    "FileSender",
    "Outgoing",
    "Reached",
    "Report",
    "Sender",
    "StreamSender",
]
