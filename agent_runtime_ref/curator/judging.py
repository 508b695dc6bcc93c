"""What a judge is, and what is believed of what it returns.

A judge may be a table or a model; both get the words of the user and of the assistant and nothing else. What
comes back is untrusted: a finding has to stand in the user's own words, outside of what he quotes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.curator.rules.judge import FINDINGS_MAX
from agent_runtime_ref.curator.rules.text import CHARACTERS_MAX
from agent_runtime_ref.errors import JudgeError

__all__ = ["Judge", "believed"]


class Judge(Protocol):
    """Says what an utterance says of what its speaker wants, now or always."""

    @property
    def name(self) -> str:
        """What the judge is called in events."""

    def judge(self, user_text: str, reply: str = "") -> list[Finding]:
        """Return the findings of one turn; whatever it raises, nothing is kept of the turn."""


def believed(answer: object, user_text: str) -> list[Finding]:
    """Return the findings of a judge's answer whose words stand in `user_text`.

    Raises:
        JudgeError: the answer is no list of findings, or a longer one than an utterance could have.
    """
    if not isinstance(answer, list | tuple) or not all(isinstance(one, Finding) for one in answer):
        raise JudgeError("malformed", "the answer is no list of findings")
    if len(answer) > FINDINGS_MAX:
        raise JudgeError("malformed", f"there are more than {FINDINGS_MAX} findings")
    return list(_said(answer, user_text[:CHARACTERS_MAX]))


def _said(answer: Iterable[Finding], user_text: str) -> Iterable[Finding]:
    return (finding for finding in answer if finding.content in user_text)
