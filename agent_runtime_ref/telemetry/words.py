"""Which strings may stand as written in policy documents, log lines and events.

Ids, keys, sources and provenance are free text from outside, so a secret can hide in them. A word is
shown as it is only if it looks like an identifier and no detector fires on it; otherwise a keyed
digest stands for it, the same digest every time, so that equality still means equality.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from typing import Protocol

_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}\Z")
# Ids that this package makes carry nothing but random digits; scanning each one again would cost
# more than the decision about the record it names.
_OWN_ID = re.compile(r"(?:mem|dec|evt)-[0-9a-f]{24}\Z")
_CACHE_ENTRIES_MAX = 20_000


class Words:
    """Turns free strings into words that may be logged."""

    def __init__(self, *, suspicious: Callable[[str], bool], key: bytes) -> None:
        self._suspicious = suspicious
        self._key = key
        self._cache: dict[str, str] = {}
        # The look-up alone, for loops over many words; None where `safe` has to decide.
        self.known = self._cache.get

    def safe(self, value: str) -> str:
        """Return `value`, or `hmac:` and 32 hex digits where it must not be shown."""
        known = self._cache.get(value)
        if known is not None:
            return known
        if _OWN_ID.match(value):
            return value
        if not value.strip():
            return ""  # nobody and nothing: a digest of it would pass for a name
        shown = value if self._may_be_shown(value) else self.digest(value)
        if len(self._cache) >= _CACHE_ENTRIES_MAX:
            self._cache.clear()
        self._cache[value] = shown
        return shown

    def optional(self, value: str | None) -> str | None:
        """Return the safe form of `value`, and None for None."""
        return None if value is None else self.safe(value)

    def each(self, values: Iterable[str]) -> list[str]:
        """Return the safe form of every value, in order."""
        return [self.safe(value) for value in values]

    def digest(self, value: str) -> str:
        """Return a keyed digest of `value`: who sees it and has no store file cannot test a guess."""
        return (
            "hmac:"
            + hmac.digest(self._key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()[:32]
        )

    def _may_be_shown(self, value: str) -> bool:
        # INVARIANT: nothing is shown that looks like a digest: nobody can be called what another is shown as.
        if not _IDENTIFIER.match(value) or value.startswith(("hmac:", "subject:")):
            return False
        return not self._suspicious(value)


class KeyRing(Protocol):
    """Where the keys of subjects come from."""

    def of(self, tenant_id: str, subject: str, *, create: bool) -> bytes:
        """Return the subject's key: its own, made if `create` is set, or one that ends with the process."""

    def renew(self) -> None:
        """Give up the keys that end with the process."""


class Pseudonyms:
    """Names of subjects in log lines: an HMAC under the subject's own key.

    Forgetting a subject destroys the key. The chain of lines still verifies afterwards, and nobody
    can tell whom the lines were about.
    """

    def __init__(self, keys: KeyRing, forgets: Callable[[], int]) -> None:
        """Take keys from `keys`, and drop what is remembered of them when `forgets` has grown."""
        self._keys = keys
        self._forgets = forgets
        self._seen = 0
        self._cache: dict[tuple[str, str, str], str] = {}
        self._kept: set[tuple[str, str]] = set()

    def refresh(self) -> None:
        """Give up every pseudonym if somebody was forgotten since, by any process: one of them is stale."""
        if not self._cache and not self._kept:
            return  # nothing is remembered that could be stale, and a store may be far away
        count = self._forgets()
        if count != self._seen:
            self._seen = count
            self._clear()

    def keep(self, tenant_id: str, subject: str) -> None:
        """Have a lasting key for a subject that a record is about to be kept of."""
        place = (tenant_id, subject)
        if place not in self._kept:
            self._keys.of(tenant_id, subject, create=True)
            self._clear()
            self._kept.add(place)

    def of(self, tenant_id: str, subject: str, value: str) -> str:
        """Return the pseudonym of `value` (the subject's id, or a key of one of its records)."""
        place = (tenant_id, subject, value)
        known = self._cache.get(place)
        if known is None:
            if len(self._cache) >= _CACHE_ENTRIES_MAX:
                self._cache.clear()
            key = self._keys.of(tenant_id, subject, create=False)
            digest = hmac.digest(key, value.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()
            known = self._cache[place] = f"subject:{digest[:32]}"
        return known

    def drop(self) -> None:
        """Stop using the key of a subject that has just been forgotten, and every passing key."""
        self._keys.renew()
        self._clear()

    def _clear(self) -> None:
        self._cache.clear()
        self._kept.clear()
