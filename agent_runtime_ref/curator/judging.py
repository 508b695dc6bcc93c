"""What a judge is, and what is believed of what it returns.

A judge may be a table or a model; both get the words of the user and of the assistant and nothing else. What
comes back is untrusted: a finding has to stand in the user's own words, outside of what he quotes. The rules
hide quotations before they read, and give the whole clause as its words: "sign off with 'Kind regards'".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.curator.rules.judge import FINDINGS_MAX, RuleJudge
from agent_runtime_ref.curator.rules.text import CHARACTERS_MAX, folded, hidden, is_said
from agent_runtime_ref.errors import JudgeError

__all__ = ["Judge", "believed"]


class Judge(Protocol):
    """Says what an utterance says of what its speaker wants, now or always."""

    @property
    def name(self) -> str:
        """What the judge is called in events."""

    def judge(self, user_text: str, reply: str = "") -> list[Finding]:
        """Return the findings of one turn; whatever it raises, nothing is kept of the turn."""


def believed(answer: object, user_text: str, judge: object = None) -> list[Finding]:
    """Return the findings of the answer of `judge` whose words the user says himself in `user_text`.

    Raises:
        JudgeError: the answer is no list of findings, or a longer one than an utterance could have.
    """
    if not isinstance(answer, list | tuple) or not all(isinstance(one, Finding) for one in answer):
        raise JudgeError("malformed", "the answer is no list of findings")
    if len(answer) > FINDINGS_MAX:
        raise JudgeError("malformed", f"there are more than {FINDINGS_MAX} findings")
    # Not a class of its own that says it is one: what another one makes of the rules is not known.
    return list(_said(answer, user_text[:CHARACTERS_MAX], hides_quotations=type(judge) is RuleJudge))


def _said(answer: Iterable[Finding], user_text: str, *, hides_quotations: bool) -> Iterable[Finding]:
    if hides_quotations:
        return (finding for finding in answer if finding.content in user_text)
    own = hidden(folded(user_text))
    return (finding for finding in answer if is_said(finding.content, user_text, own))
