"""The key of a preference, `polarity:category:domain:slug`, derived from its parts and from nothing else.

A model may suggest words for the parts; it never names a key. So whatever path a preference comes by, the
same parts make the same key, and a person who reads it reads words, in whatever script they were said.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, NamedTuple, cast

from agent_runtime_ref.contracts.key_part import part, words_of
from agent_runtime_ref.errors import PreferenceInvalidError

__all__ = ["ANY_DOMAIN", "FRAMING", "Key", "Polarity", "slug_of"]

Polarity = Literal["like", "dislike"]
# Of everywhere: what is said without a field, and what a question of any field is answered with.
ANY_DOMAIN = "general"
_POLARITIES = ("like", "dislike")
# Words that say that something is liked or not, how much, and who says it. At the beginning of a sentence and
# at its end only: in the middle, as in `coffee without sugar`, they are a part of what is meant.
FRAMING = frozenset(
    "a an the i im ive id me my mine we our you your please do does did dont doesnt not no never none always"
    " ever really very so much just only generally usually rather too is are isnt arent be been being was"
    " to of for with in on at it its this that these those and or but any some anything something stuff"
    " like likes liked love loves loved loving prefer prefers preferred preferring enjoy enjoys enjoyed"
    " want wants wanted hate hates hated hating dislike dislikes disliked detest avoid avoids avoided can"
    " cannot cant wish would will wont without have has had get got give user when if from all most".split()
)
_PHRASES = re.compile(r"\b(?:cannot|cant|can not|couldnt) (?:stand|bear)\b|\b(?:big |huge )?fan of\b")
# The same where words are written without spaces: at the beginning of a run and at its end only, since the
# same characters stand inside words that say what.
_FRAMING_BEFORE = re.compile(
    "(?:用户|请|我们|我|一直|一向|总是|从来|从不|向来|平时|通常|真的|非常|特别|十分|比较|以后|今后|永远|"
    "(?:最|很|都|就|还是|更|也)(?=不|喜|讨|爱|想|偏|反|厌|避|拒|从)|"
    "不太喜欢|不喜欢|不想要|不想|不要|不用|不能|不吃|不买|不爱|讨厌|厌恶|反感|避免|拒绝|喜欢|偏好|偏爱|热爱|爱好|"
    "爱吃|爱用|想要|希望|别给|别买|任何|含有|带有)+"
)
_FRAMING_AFTER = re.compile("(?:的东西|的商品|东西|的|了|吧|啊|呢|呀|哦)+$")


class Key(NamedTuple):
    """The four parts of a derived key."""

    polarity: Polarity
    category: str
    domain: str
    slug: str

    def __str__(self) -> str:
        """Return the key as it is kept and shown."""
        return ":".join(self)

    @classmethod
    def of(cls, polarity: str, category: str, domain: str, slug: str) -> Key:
        """Return the key of parts in whatever form somebody wrote them.

        Raises:
            PreferenceInvalidError: the polarity is none, or a part has no letter and no digit.
        """
        if polarity not in _POLARITIES:
            raise PreferenceInvalidError("polarity", "must be `like` or `dislike`")
        parts = {"category": part(category), "domain": part(domain) or ANY_DOMAIN, "slug": part(slug)}
        for name, value in parts.items():
            if not value:
                raise PreferenceInvalidError(name, "must have a letter or a digit")
        return cls(cast("Polarity", polarity), **parts)

    @classmethod
    def parsed(cls, text: str | None) -> Key | None:
        """Return the parts of a key that code derived; None for anything else."""
        if text is None or text.count(":") != 3:
            return None
        polarity, *parts = text.split(":")
        if polarity not in _POLARITIES or any(not one or part(one) != one for one in parts):
            return None
        return cls(cast("Polarity", polarity), *parts)

    @classmethod
    def read(cls, text: str) -> Key | None:
        """Return the key that somebody wrote, its parts as code derives them; None for what is none."""
        parts = text.strip().casefold().split(":")
        try:
            return cls.of(*parts) if len(parts) == 4 else None
        except PreferenceInvalidError:
            return None

    @property
    def opposite(self) -> Key:
        """The key of the same thing, liked where this one is disliked: both cannot be true of one person."""
        return self._replace(polarity="dislike" if self.polarity == "like" else "like")


def slug_of(content: str) -> str:
    """Return what a sentence is about, as a part: without the words that say whether it is liked.

    Where nothing else stands there, the whole of it.
    """
    folded = unicodedata.normalize("NFKC", content).casefold().replace("'", "").replace("’", "")
    words = [bare for word in words_of(_PHRASES.sub(" ", folded)) if (bare := _bare(word))]
    while words and words[0] in FRAMING:
        words.pop(0)
    while words and words[-1] in FRAMING:
        words.pop()
    return part(" ".join(words)) or part(content)


def _bare(run: str) -> str:
    head = _FRAMING_BEFORE.match(run)
    return _FRAMING_AFTER.sub("", run if head is None else run[head.end() :])
