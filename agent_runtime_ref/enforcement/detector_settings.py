"""Detector settings (`data.memory.detectors`) compiled: what one bundle looks for, ready to be run.

A pattern is a regular expression over named lists of words (`{{name}}`), so that a reviewer adds a word
without reading the expression. Settings that do not compile are a refusal: a detector that is left out in
silence would let in what it was there for.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_runtime_ref.enforcement.secret_values import CHECKS
from agent_runtime_ref.errors import BundleError

__all__ = ["DIGIT", "STEM_SIZE", "WORD", "CompiledDetectors", "Pattern", "compile_detectors", "stem_mark"]

# The words of a text are cheap to collect, and tell which patterns can match at all.
WORD = re.compile(r"[a-z]+")
DIGIT = "#"  # stands for any digit, in lists that are only looked up
STEM_SIZE = 4  # letters of a word by which an entry that ends in `*` is looked up

_LOOKED_UP = re.compile(r"[a-z]{4,}\*\Z|[a-z][^*]*\Z|[a-z]+[^a-z*].*\Z|#\Z")
_STARRED = re.compile(r"[a-z]*\*")
_PLACE = re.compile(r"\{\{([a-z_]+)\}\}")
# A repetition without an upper bound makes matching time explode; in escapes and classes there is none.
_LITERAL = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_UNBOUNDED = re.compile(r"[+*]|\{\d*,\}")
_TYPE = re.compile(r"(?:secret|instruction|rights|exfiltration)\.[a-z_]+\Z")
_FIELDS = frozenset(
    {"type", "pattern", "flags", "languages", "note", "check"}
    | {"needs", "literals", "require", "near", "unless"}
)


class Fragments(dict[str, str]):
    """The word lists as expressions, each made when it is first needed."""

    def __init__(self, vocabulary: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.vocabulary = vocabulary

    def __missing__(self, name: str) -> str:
        self[name] = expression = _alternatives(self.vocabulary[name])
        return expression


class Expression:
    """A regular expression that is compiled when it is first needed.

    Compiling all of them takes longer than most commands run, and an ordinary text needs very few.
    """

    __slots__ = ("_compiled", "_fragments", "name", "source")

    def __init__(self, name: str, source: str, fragments: Fragments) -> None:
        self.name = name
        self.source = source
        self._fragments = fragments
        self._compiled: re.Pattern[str] | None = None

    @property
    def compiled(self) -> re.Pattern[str]:
        """Return the compiled expression.

        Raises:
            BundleError: reason settings_malformed; the expression does not compile.
        """
        if self._compiled is None:
            try:
                whole = _PLACE.sub(lambda match: self._fragments[match[1]], self.source)
                self._compiled = re.compile(whole, re.DOTALL)
            except (re.error, OverflowError, RecursionError) as error:
                raise _malformed(f"{self.name} does not compile ({error})") from error
        return self._compiled


@dataclass(frozen=True, slots=True)
class Pattern:
    """One detector pattern; which text each expression looks at is said in the schema."""

    type: str
    search: Expression
    lower: bool
    guarded: bool
    groups: tuple[frozenset[str], ...]  # a sentence has a mark of each of them, or is not looked at
    literals: tuple[str, ...]
    require: Expression | None
    near: Expression | None
    unless: Expression | None
    check: str | None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Return every expression of the pattern."""
        return tuple(e for e in (self.search, self.require, self.near, self.unless) if e is not None)


@dataclass(frozen=True, slots=True)
class CompiledDetectors:
    """Everything that scanning needs: patterns of values, patterns of sentences, and the words they know."""

    values: tuple[Pattern, ...]  # gated by literals, over the whole text
    sentences: tuple[Pattern, ...]  # gated by word groups, a sentence at a time
    reported: Expression
    quoted: Expression
    words: frozenset[str]
    tells: tuple[tuple[str, ...], tuple[str, ...]]


def compile_detectors(settings: Mapping[str, Any]) -> CompiledDetectors:
    """Return `settings` compiled.

    Raises:
        BundleError: reason settings_malformed; the detail names the pattern.
    """
    try:
        vocabulary = {name: _words_of(name, entries) for name, entries in settings["vocabulary"].items()}
        fragments = Fragments(vocabulary)
        groups = {name: _marks_of(entries) for name, entries in vocabulary.items()}
        patterns = [
            _pattern(f"pattern {number} ({entry['type']})", entry, fragments, groups)
            for number, entry in enumerate(settings["patterns"], 1)
        ]
        reported = _expression("reported_speech", settings["reported_speech"]["pattern"], fragments)
        quoted = _expression("quoted_speech", settings["quoted_speech"]["pattern"], fragments)
        tell_words = _words_of("tell_words", settings["tell_words"])
    except (KeyError, TypeError, AttributeError) as error:
        raise _malformed(f"a part is missing or of the wrong type ({error!r})") from error
    if not patterns:
        raise _malformed("there is no pattern")
    spoken = " ".join(entry for entries in vocabulary.values() for entry in entries if entry.isascii())
    plain = {word for word in WORD.findall(spoken) if len(word) > 1}
    return CompiledDetectors(
        values=tuple(pattern for pattern in patterns if pattern.literals),
        sentences=tuple(pattern for pattern in patterns if not pattern.literals),
        reported=reported,
        quoted=quoted,
        words=_SMALL_WORDS.union(plain, tell_words),
        tells=(
            tuple(word[::-1] for word in tell_words),
            tuple(codecs.encode(word, "rot13") for word in tell_words),
        ),
    )


_SMALL_WORDS = frozenset(
    "all the your my our and to of in on for with any every these those this that is are be you user now not"
    " never previous prior earlier above system from instructions instruction rules prompt reveal tell as no"
    " me it".split()
)


def _malformed(detail: str) -> BundleError:
    return BundleError("settings_malformed", f"memory.detectors: {detail}")


def _words_of(name: str, entries: Sequence[str]) -> tuple[str, ...]:
    """Return the entries of one word list, checked."""
    if not isinstance(entries, list) or not entries:
        raise _malformed(f"word list `{name}` must be a list of words")
    for entry in entries:
        if not isinstance(entry, str) or not entry.strip("* ") or entry != entry.lower():
            raise _malformed(f"word list `{name}` has an entry that is no lower-case word: `{entry}`")
        if entry.isascii() and not _LOOKED_UP.match(entry):
            raise _malformed(
                f"word list `{name}`: `{entry}` must begin with a letter, {STEM_SIZE} if it ends in `*`"
            )
    return tuple(entries)


def stem_mark(word: str) -> str:
    """Return the mark that a word shares with the entries ending in `*` that begin like it."""
    return word[:STEM_SIZE] + "*"


def _marks_of(entries: Sequence[str]) -> frozenset[str]:
    """Return what a text must have one of for an entry of a word list to be in it; see `Marks`."""
    marks: set[str] = set()
    for entry in entries:
        if not entry.isascii() or entry.isalpha() or entry == DIGIT:
            marks.add(entry)
        elif entry[:-1].isalpha():
            marks.add(stem_mark(entry))
        else:
            # The longest whole word of a phrase is the one that fewest other texts have.
            marks.add(max(WORD.findall(_STARRED.sub("", entry)), key=len))
    return frozenset(marks)


def _alternatives(entries: Sequence[str]) -> str:
    """Return the entries as one expression, longest first; `*` is more letters, a space any space."""
    parts = []
    for entry in sorted(entries, key=len, reverse=True):
        words = re.escape(entry.removesuffix("*")).replace("\\ ", r"\s{1,3}")
        # Letters, not `\b`: in mixed text a Latin word may stand right beside a Chinese one.
        edge = "(?![a-z0-9])" if entry[-1].isascii() else ""
        parts.append(words + (r"[a-z0-9_]{0,12}" if entry.endswith("*") else "") + edge)
    if all(entry.isascii() for entry in entries):
        # One look behind for all of them keeps the common case cheap.
        return rf"(?<![a-z0-9])(?:{'|'.join(parts)})"
    return "(?:" + "|".join(("(?<![a-z0-9])" if part[0].isascii() else "") + part for part in parts) + ")"


def _expression(name: str, expression: str, fragments: Fragments) -> Expression:
    """Return `expression`, checked as far as it can be without compiling it.

    Raises:
        BundleError: it could take more than linear time, or names an unknown word list.
    """
    if _UNBOUNDED.search(_LITERAL.sub("", expression)):
        raise _malformed(f"{name} repeats something without an upper bound: `{expression}`")
    unknown = [place for place in _PLACE.findall(expression) if place not in fragments.vocabulary]
    if unknown:
        raise _malformed(f"{name} names an unknown word list `{unknown[0]}`")
    return Expression(name, expression, fragments)


def _pattern(
    name: str, entry: Mapping[str, Any], fragments: Fragments, groups: Mapping[str, frozenset[str]]
) -> Pattern:
    """Return one entry of the settings, checked."""
    if set(entry) - _FIELDS:
        raise _malformed(f"{name} has an unknown field `{sorted(set(entry) - _FIELDS)[0]}`")
    if not _TYPE.match(entry["type"]) or set(entry.get("flags", ())) - {"i"}:
        raise _malformed(f"{name} has an unknown type or flag")
    check = entry.get("check")
    if check is not None and (check not in CHECKS or "(?P<value>" not in entry["pattern"]):
        raise _malformed(f"{name} names an unknown check, or has no group `value` for it")
    needs, literals = entry.get("needs", ()), tuple(entry.get("literals", ()))
    if not needs and not literals or not all(literals):
        raise _malformed(f"{name} must say in `needs` or `literals` which texts it can match")

    def optional(field: str) -> Expression | None:
        return _expression(f"{name} {field}", entry[field], fragments) if field in entry else None

    return Pattern(
        type=entry["type"],
        search=_expression(name, entry["pattern"], fragments),
        lower="i" in entry.get("flags", ()),
        guarded=not entry["type"].startswith("secret."),
        groups=tuple(groups[need] for need in needs),
        literals=literals,
        require=optional("require"),
        near=optional("near"),
        unless=optional("unless"),
        check=check,
    )
