"""From whatever offers itself as a preference to a finding: by the names of its parts, and by no type.

A `key` or `canonical_key` that it carries is not looked at: the key is derived from the parts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_runtime_ref.contracts.finding import CONTENT_CHARACTERS_MAX, KEYS_MAX, Finding
from agent_runtime_ref.contracts.key_part import part
from agent_runtime_ref.errors import DocumentError, PreferenceInvalidError
from agent_runtime_ref.preferences.keys import ANY_DOMAIN, Key, slug_of

__all__ = ["finding_of", "require_standing"]

_REQUIRED = ("content", "category", "polarity")


def finding_of(offered: object) -> Finding:
    """Return the standing finding in an object or a mapping with content, category and polarity.

    `domain` and `slug` are derived where they are missing: `general`, and what the content is about. It is
    inferred, and soft, unless it says `stated` is true; then `strength` counts.

    Raises:
        PreferenceInvalidError: a part is missing, empty or not known, or it is a finding of a session.
    """
    if isinstance(offered, Finding):
        require_standing(offered)
        return offered
    values = {name: _text(offered, name) for name in _REQUIRED}
    for name, value in values.items():
        if not value.strip():
            raise PreferenceInvalidError(name, "must not be empty")
    content = " ".join(values["content"].split())
    if len(content) > CONTENT_CHARACTERS_MAX:
        raise PreferenceInvalidError("content", f"must be at most {CONTENT_CHARACTERS_MAX} characters long")
    polarity = values["polarity"].strip().casefold()
    slug = part(_text(offered, "slug")) or slug_of(content)
    if not slug:
        raise PreferenceInvalidError("slug", "must be named where the content has no letter and no digit")
    key = Key.of(polarity, values["category"], _text(offered, "domain") or ANY_DOMAIN, slug)
    stated = _value(offered, "stated") is True
    hard = _is_hard(offered) and stated
    try:
        return Finding(
            "standing",
            key.polarity,
            "hard" if hard else "soft",
            key.category,
            key.domain,
            key.slug,
            content,
            stated=stated,
            keys_to_supersede=_keys(_value(offered, "keys_to_supersede")),
        )
    except DocumentError as error:
        raise PreferenceInvalidError("content", str(error)) from error


def require_standing(finding: Finding) -> None:
    """Return if a finding holds for good.

    Raises:
        PreferenceInvalidError: it holds for a session.
    """
    if finding.scope != "standing":
        raise PreferenceInvalidError("scope", "must be `standing`; what holds for a session is kept there")


def _keys(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise PreferenceInvalidError("keys_to_supersede", "must be a list of keys")
    keys = tuple(one for one in value if isinstance(one, str))
    if len(keys) != len(value) or len(keys) > KEYS_MAX:
        raise PreferenceInvalidError("keys_to_supersede", f"must be at most {KEYS_MAX} keys")
    return keys


def _is_hard(offered: object) -> bool:
    """Say whether an offer is a condition; an unknown strength is refused, and does not make a wish of it."""
    strength = _value(offered, "strength")
    if strength is not None and strength not in ("hard", "soft"):
        raise PreferenceInvalidError("strength", "must be `hard` or `soft`")
    return bool(strength == "hard")


def _text(offered: object, name: str) -> str:
    value = _value(offered, name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise PreferenceInvalidError(name, "must be text")
    return value


def _value(offered: object, name: str) -> Any:
    return offered.get(name) if isinstance(offered, Mapping) else getattr(offered, name, None)
