"""When two names are taken for one person: only where that keeps somebody from judging herself.

Everywhere else ids are compared byte for byte, so that nobody reads what belongs to a name that looks alike.
Four eyes are the opposite case. Directories disregard case and blanks, and a name with an invisible letter is
a second account of the first one's owner more often than a colleague; so whoever could be the same counts as
the same, and a third person is asked.
"""

from __future__ import annotations

import unicodedata

from agent_runtime_ref.enforcement.homoglyphs import LOOK_ALIKES

__all__ = ["folded", "may_be_one"]

_LOOK_ALIKES = str.maketrans(LOOK_ALIKES)


def folded(name: str) -> str:
    """Return `name` without case, blanks, marks and what cannot be seen, in Latin letters where it looks so.

    A name of which nothing is left stays as it is: two of them are not one.
    """
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_LOOK_ALIKES)
    letters = unicodedata.normalize("NFKD", plain).casefold()
    kept = "".join(one for one in letters if unicodedata.category(one)[0] not in "CZM")
    return kept or name


def may_be_one(one: str | None, other: str | None) -> bool:
    """Tell whether two names may stand for the same person; where one is missing they do not."""
    return one is not None and other is not None and folded(one) == folded(other)
