"""Whether a value that stands where a secret would is one: placeholders, references and words are not."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

__all__ = ["CHECKS", "entropy_bits"]

_PLACEHOLDER_WORDS = frozenset(
    "changeme change_me password passwd pass secret placeholder example sample dummy redacted removed hidden"
    " none null nil true false todo tbd xxx foo bar foobar test testing required optional masked insert"
    " replace_me replaceme your mytoken mypassword yourpassword yourtoken fixme here undefined empty string"
    " value".split()
)
_REFERENCE = re.compile(
    r"\$\{|\$\(|\{\{|%\(|^\$[A-Za-z_]|^<.*>$|^\[.*\]$|^\{.*\}$|\*{3}|\.{3}|…|x{4}|X{4}|_{4}|•{3}|#{4}"
    r"|environ|getenv|process\.env|env\.|secrets?\.|vault:|secret://|keyring|arn:|^op://|^https?://|^/|\(\)|^\.",
)
_WORD = re.compile(r"[A-Za-z]+")
_TRAILING = "\"'`,.;:!?)>]}。，；！？）」』》”’"


def entropy_bits(value: str) -> float:
    """Return the entropy of `value` in bits a character, from its own characters' frequencies."""
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())


def _is_placeholder(value: str) -> bool:
    """Return whether `value` only shows where a secret would go."""
    if _REFERENCE.search(value) or len(set(value)) < 4:
        return True
    words = _WORD.findall(value.lower())
    # Words that stand alone between marks count; letters inside a random value are no words.
    known = sum(len(word) for word in words if word in _PLACEHOLDER_WORDS)
    return value.lower() in _PLACEHOLDER_WORDS or known * 2 >= sum(map(len, words)) > 0


def _is_password(value: str) -> bool:
    """Return whether `value` reads like a password: no ordinary word, number, date or unit."""
    value = value.strip("\"'`“‘「『《").rstrip(_TRAILING)
    if not 6 <= len(value) <= 200 or _is_placeholder(value):
        return False
    kinds = sum(any(map(test, value[1:])) for test in (str.islower, str.isupper, str.isdigit))
    marks = any(not c.isalnum() and c not in "-'/.:,()" for c in value)
    # `min-12`, `bcrypt-12` or `90days` have letters and digits too, yet are words with a number beside them.
    worded = re.fullmatch(r"[a-z]+-?\d{1,2}|\d{1,4}-?[a-z]+|v?[\d.:/-]+|[A-Za-z'-]+", value)
    return worded is None and (kinds >= 2 or (kinds >= 1 and marks))


def _is_token(value: str) -> bool:
    """Return whether `value` is random enough for a key that a machine made."""
    value = value.strip("\"'`").rstrip(_TRAILING)
    if len(value) < 12 or _is_placeholder(value) or not any(c.isdigit() for c in value):
        return False
    if value.isdigit() or "." in value.strip(".") and not re.search(r"\d[A-Za-z]|[A-Za-z]\d", value):
        return False
    return entropy_bits(value) >= 3.0


def _is_set(value: str) -> bool:
    """Return whether `value` is anything but a placeholder."""
    return not _is_placeholder(value)


# What a pattern's `check` may name; the group `value` of the match is what it looks at.
CHECKS: Mapping[str, Callable[[str], bool]] = {"password": _is_password, "token": _is_token, "set": _is_set}
