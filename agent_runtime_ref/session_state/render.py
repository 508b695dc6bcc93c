"""P_t as a block of a prompt: data, escaped and bounded. What does not fit is enforced all the same."""

from __future__ import annotations

from agent_runtime_ref.contracts.finding import Finding
from agent_runtime_ref.recall.render import attribute, element_text
from agent_runtime_ref.session_state.state import SessionState, kind_of

__all__ = ["CHARACTERS_MAX", "render", "rendered"]

CHARACTERS_MAX = 4_000
# What code enforces without exception comes first, so that a short block lacks the least.
_ORDER = ("negative_hard", "budget", "positive_hard", "category", "negative_soft", "positive_soft")
_NAMES = {"like": "want", "dislike": "avoid"}


def render(state: SessionState, *, characters_max: int = CHARACTERS_MAX) -> str:
    """Return the constraints of a session as a block of at most `characters_max` characters.

    Hard before soft, what was said last before what was said earlier; `omitted` counts what did not fit.
    Nothing stands for nothing: an empty state, or a bound below the frame, renders to an empty text.
    """
    return rendered(state, characters_max=characters_max)[0]


def rendered(state: SessionState, *, characters_max: int = CHARACTERS_MAX) -> tuple[str, tuple[Finding, ...]]:
    """Return the block that `render` returns, and the constraints whose lines are in it, in their order."""
    latest = list(reversed(state.findings))
    ordered = sorted(latest, key=lambda finding: _ORDER.index(kind_of(finding)))
    lines = [_line(finding) for finding in ordered]
    for count in range(len(lines), 0, -1):
        block = _block(lines[:count], len(lines) - count)
        if len(block) <= characters_max:
            return block, tuple(ordered[:count])
    return "", ()


def _block(lines: list[str], omitted: int) -> str:
    more = attribute("omitted", str(omitted)) if omitted else ""
    return "\n".join([f"<session_constraints{more}>", *lines, "</session_constraints>"])


def _line(finding: Finding) -> str:
    said = f">{element_text(' '.join(finding.content.split()))}</"
    amount = finding.amount
    if amount is not None:
        currency = attribute("currency", amount.currency) if amount.currency is not None else ""
        where = attribute("bound", amount.bound) + attribute("value", amount.value) + currency
        return f"<budget{where}{_strength(finding)}{said}budget>"
    if kind_of(finding) == "category":
        return f"<category{attribute('name', finding.slug)}{said}category>"
    name = _NAMES[finding.polarity]
    what = attribute("category", finding.category)
    return f"<{name}{what}{attribute('name', finding.slug)}{_strength(finding)}{said}{name}>"


def _strength(finding: Finding) -> str:
    return attribute("strength", finding.strength)
