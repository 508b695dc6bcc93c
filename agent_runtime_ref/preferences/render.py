"""Preferences as a block for a prompt: bounded, and every value escaped."""

from __future__ import annotations

from collections.abc import Sequence

from agent_runtime_ref.preferences.preference import Preference
from agent_runtime_ref.recall.render import attribute, element_text

__all__ = ["BLOCK_CHARACTERS_MAX", "format_preferences"]

BLOCK_CHARACTERS_MAX = 4_000
CONTENT_CHARACTERS_MAX = 300
_NAME = "user_long_term_preferences"
# What makes text look like other text, and what is no character at all: to a model it is noise.
_HIDDEN = (1564, 65279, 65534, 65535, *range(8203, 8208), *range(8234, 8239), *range(8288, 8304))
_UNSEEN = dict.fromkeys(_HIDDEN)


def format_preferences(
    preferences: Sequence[Preference], *, characters_max: int = BLOCK_CHARACTERS_MAX
) -> str:
    """Return the block `<user_long_term_preferences>`, the hard ones first, else in the order given.

    It holds whole elements and at most `characters_max` characters; what does not fit is counted in an
    element `omitted`. An empty string where there is nothing to show.
    """
    ordered = sorted(preferences, key=lambda one: one.strength != "hard")
    frame = (f"<{_NAME}>", f"</{_NAME}>")
    room = characters_max - sum(len(line) + 1 for line in frame) - len(_omitted(len(ordered)))
    lines: list[str] = []
    for preference in ordered:
        line = _line(preference)
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    if len(lines) < len(ordered) and lines:
        lines.append(_omitted(len(ordered) - len(lines)))
    return "\n".join((frame[0], *lines, frame[1])) if lines else ""


def _line(preference: Preference) -> str:
    attributes = (
        ("key", str(preference.key)),
        ("strength", preference.strength),
        ("said_by", "user" if preference.stated else "inference"),
        ("confidence", f"{preference.confidence:g}"),
    )
    head = "".join(attribute(name, value) for name, value in attributes)
    content = " ".join(preference.content.translate(_UNSEEN).split())
    if len(content) > CONTENT_CHARACTERS_MAX:
        content = content[: CONTENT_CHARACTERS_MAX - 1] + "…"
    return f"<preference{head}>{element_text(content)}</preference>"


def _omitted(number: int) -> str:
    return f'<omitted count="{number}"/>'
