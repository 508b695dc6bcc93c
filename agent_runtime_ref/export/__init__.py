"""Events on their way out of the decision log, which is the durable outbox, and what arrived of them."""

from agent_runtime_ref.export.answers import Answer, Sender
from agent_runtime_ref.export.collected import Arrived, arrived_in
from agent_runtime_ref.export.cursor import Cursor, Reached
from agent_runtime_ref.export.delivery import Delivery, Report
from agent_runtime_ref.export.jsonl import FileSender, StreamSender
from agent_runtime_ref.export.lag import backlog
from agent_runtime_ref.export.outgoing import AllowList, Outgoing
from agent_runtime_ref.export.reconcile import Reconciler, Reconciliation

__all__ = [
    "AllowList",
    "Answer",
    "Arrived",
    "Cursor",
    "Delivery",
    "FileSender",
    "Outgoing",
    "Reached",
    "Reconciler",
    "Reconciliation",
    "Report",
    "Sender",
    "StreamSender",
    "arrived_in",
    "backlog",
]
