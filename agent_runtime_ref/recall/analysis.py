"""Turn text into the terms by which records are found: the one analyser of queries, stores and digests.

Words of every script that separates them are whole terms. Chinese and Japanese do not separate words, so a
run of ideographs or kana becomes its overlapping pairs; a record also yields the single characters of such
a run, so that a query of one character still finds it. Of a longer word its beginning is the term: an index
of a store has no room for an image in base64, nor for a page of a script that writes no spaces.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

from agent_runtime_ref.errors import TextError

# A store keeps this number beside its postings and reindexes when it changes.
ANALYSER_VERSION = 2

TEXT_CHARACTERS_MAX = 4096
TERMS_MAX = 64
# At most 1,024 bytes, as a tenant's id beside it: B-trees of PostgreSQL take 2,704 in all.
TERM_CHARACTERS_MAX = 256

_ASCII_SEPARATORS = {code: " " for code in range(128) if not chr(code).isalnum()}
# Iteration marks, kana and ideographs: what is written without spaces between words.
_KANA = "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff"
_UNSPACED = f"{_KANA}\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNSPACED_RUN = re.compile(f"[{_UNSPACED}]+")
_RUNS = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_VARIATION_SELECTORS = frozenset([*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
_CLASSES_MAX = 20_000


class _CharacterClasses(dict[int, str]):
    """What `str.translate` makes of a character: itself, a separator, a token of its own, or nothing.

    Filled as characters are met: walking all of Unicode at import would cost more than a command may.
    """

    def __missing__(self, code: int) -> str:
        replacement = _replacement(code)
        if len(self) < _CLASSES_MAX:  # text made of every character there is must not fill the memory
            self[code] = replacement
        return replacement


def _replacement(code: int) -> str:
    character = chr(code)
    category = unicodedata.category(character)
    if code in _VARIATION_SELECTORS:
        return ""
    if category[0] in "LMN":
        return character
    return f" {character} " if category == "So" else " "


_classes = _CharacterClasses()


def normalize_text(text: str) -> str:
    """`text` with compatibility forms, case and white space folded; equal for what reads the same."""
    return " ".join(_folded(text).split())


def query_terms(text: str) -> tuple[str, ...]:
    """The distinct terms of a query, in the order in which they first appear.

    Raises:
        TextError: the text is blank, too long, or has no or too many terms.
    """
    if not text.strip():
        raise TextError("must not be empty")
    if len(text) > TEXT_CHARACTERS_MAX:
        raise TextError(f"must not be longer than {TEXT_CHARACTERS_MAX} characters")
    terms = tuple(dict.fromkeys(_tokens(text, singles=False)))
    if not terms:
        raise TextError("has no searchable terms")
    if len(terms) > TERMS_MAX:
        raise TextError(f"must not have more than {TERMS_MAX} distinct terms")
    return terms


def record_terms(summary: str | None, content: str) -> frozenset[str]:
    """The terms of a record's searchable text."""
    # Two calls, not one joined text: a pair must not reach across the border between summary and content.
    terms = frozenset(_tokens(content, singles=True))
    return terms | frozenset(_tokens(summary, singles=True)) if summary else terms


def record_tokens(summary: str | None, content: str) -> tuple[str, ...]:
    """The terms of a record's searchable text as often as they stand there, in their order."""
    return (*_tokens(summary or "", singles=True), *_tokens(content, singles=True))


def label_terms(kind: str, key: str | None) -> frozenset[str]:
    """The words of kind and key, by which a record is found where no term is in its text."""
    terms = frozenset(_tokens(kind, singles=True))
    return terms | frozenset(_tokens(key, singles=True)) if key else terms


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    # Case folding can leave a form that NFKC composes again, hence the second pass.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def _tokens(text: str, *, singles: bool) -> Iterator[str]:
    words = _words(text, singles=singles)
    if len(text) <= TERM_CHARACTERS_MAX and text.isascii():  # anything else may become longer when folded
        return words
    return (word[:TERM_CHARACTERS_MAX] for word in words)


def _words(text: str, *, singles: bool) -> Iterator[str]:
    if text.isascii():
        yield from text.lower().translate(_ASCII_SEPARATORS).split()
        return
    for word in _folded(text).translate(_classes).split():
        if _UNSPACED_RUN.search(word) is None:
            if not unicodedata.category(word[0]).startswith("M") or any(map(str.isalnum, word)):
                yield word
            continue
        for run in _RUNS.findall(word):
            yield from _run_tokens(run, singles=singles)


def _run_tokens(run: str, *, singles: bool) -> Iterator[str]:
    if _UNSPACED_RUN.match(run) is None:
        yield run
        return
    if len(run) == 1 or singles:
        yield from run
    for left, right in pairwise(run):
        yield left + right
