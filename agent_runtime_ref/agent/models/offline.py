"""The model that comes along: it quotes what the context holds, says so, and makes nothing up.

It is no language model and does not pretend to be one. The same context gives the same reply, so an
application can be tried, tested and measured without a network.
"""

from __future__ import annotations

import json
import re

from agent_runtime_ref.agent.layers import Item
from agent_runtime_ref.agent.models.base import Answer, Request, ToolCall

__all__ = ["OfflineModel"]

QUOTED_MAX = 3
QUOTED_CHARACTERS_MAX = 400
_NOTE = "(Answered offline, from the context alone.)"
_RECALL, _FORGET = "recall_history", "forget_preference"
# What asks for an earlier conversation, in English and Chinese.
_PAST = re.compile(
    r"\b(?:last time|earlier|previously|did (?:we|i) (?:talk|say|decide|discuss)|remember when|we (?:talked|"
    r"discussed|decided|agreed))\b|上次|之前|以前|我们(?:说|聊|谈|讨论)过",
    re.IGNORECASE,
)
_FORGETTING = re.compile(
    r"\s*(?:(?:please\s+)?forget\s+(?:that\s+)?(?P<what>.+?)\s*[.!]*|(?:请)?(?:忘记|忘掉|忘了)(?P<was>.+?)[。!]*)\Z",
    re.IGNORECASE | re.DOTALL,
)


class OfflineModel:
    """Answers from the context; deterministic, and without a network."""

    name = "offline"

    def answer(self, request: Request) -> Answer:
        """Return a tool call where the message asks for one, else what the context holds."""
        call = None if request.exchanges else _wanted(request)
        if call is not None:
            return Answer(calls=(call,))
        return Answer(text="\n".join([*_told(request), _NOTE]))


def _wanted(request: Request) -> ToolCall | None:
    """Return the tool that a message plainly asks for, if there is such a tool."""
    names = {tool.name for tool in request.tools}
    forgetting = _FORGETTING.match(request.message)
    if _FORGET in names and forgetting is not None:
        return ToolCall(_FORGET, {"text_or_key": (forgetting["what"] or forgetting["was"]).strip()}, "call-1")
    if _RECALL in names and _PAST.search(request.message):
        return ToolCall(_RECALL, {"query": request.message}, "call-1")
    return None


def _told(request: Request) -> list[str]:
    """Return the lines of a reply."""
    context = request.context
    lines = []
    for item in context.tools[:QUOTED_MAX]:
        lines += _recalled(item) if item.kind == _RECALL else [f"From {item.kind}: {_quoted(item.text)}"]
    if context.retrieved:
        lines.append("From memory:")
        lines += [f"- {_quoted(item.text)} [{item.record_ids[0]}]" for item in context.retrieved[:QUOTED_MAX]]
    if not lines:
        lines.append("Nothing that may be used here answers this.")
    return lines


def _recalled(item: Item) -> list[str]:
    """Return what a recall found, out of its JSON; as it is where it is something else."""
    try:
        hits = [(hit["snippet"], hit["memory_id"]) for hit in json.loads(item.text)["hits"]]
    except (ValueError, KeyError, TypeError):
        return [f"From {item.kind}: {_quoted(item.text)}"]
    if not hits:
        return ["No earlier conversation is about that."]
    return ["From earlier conversations:", *(f"- {_quoted(text)} [{id_}]" for text, id_ in hits[:QUOTED_MAX])]


def _quoted(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= QUOTED_CHARACTERS_MAX else text[:QUOTED_CHARACTERS_MAX].rstrip() + "…"
