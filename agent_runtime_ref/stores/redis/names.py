"""Names of keys: whatever an id is made of, two ids never make the same name.

A name is the prefix, the tenant, a letter for what it holds, and ids; each id in base64, in which no `:`
stands, behind a `+`. A `-` alone stands for what has no name: no tenant, or no subject.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass

from agent_runtime_ref.errors import StoreDamagedError

PREFIX = "agent-memory:"
STORE = f"{PREFIX}store"  # hash: identity, format, key, and counts of the whole store
TENANTS = f"{PREFIX}tenants"  # set: every tenant that ever had something
NOBODY = "-"


def encoded(name: str | None) -> str:
    """The text that stands for an id within a name."""
    if name is None:
        return NOBODY
    return "+" + urlsafe_b64encode(name.encode("utf-8", "surrogatepass")).decode().rstrip("=")


def decoded(text: str, place: str) -> str:
    """The id that `encoded` made the text of.

    Raises:
        StoreDamagedError: it made no such text.
    """
    try:
        padded = text[1:] + "=" * (-len(text[1:]) % 4)
        name = urlsafe_b64decode(padded.encode("ascii")).decode("utf-8", "surrogatepass")
    except ValueError:
        name = ""
    if encoded(name) != text:
        raise StoreDamagedError(place, "one of its names is none")
    return name


@dataclass(frozen=True, slots=True)
class Names:
    """The keys of one tenant; of the store itself where the tenant is none."""

    base: str

    @classmethod
    def of(cls, tenant_id: str | None) -> Names:
        """The names of a tenant's keys."""
        return cls(f"{PREFIX}{encoded(tenant_id)}:")

    @property
    def standing(self) -> str:
        """Hash: how often the tenant was changed, and where its two chains stand."""
        return f"{self.base}h"

    @property
    def tombstones(self) -> str:
        """Hash: digest of forgotten content to when that was."""
        return f"{self.base}t"

    @property
    def revisions(self) -> str:
        """Hash: class and kind to the highest revision that was ever given."""
        return f"{self.base}v"

    @property
    def subject_keys(self) -> str:
        """Hash: subject to its key."""
        return f"{self.base}x"

    def lines(self, *, read: bool) -> str:
        """List: the sealed lines of one of the two logs."""
        return f"{self.base}l:{'r' if read else 'w'}"

    def record(self, memory_id: str) -> str:
        """String: the record, which the server removes when it expires."""
        return f"{self.base}r:{encoded(memory_id)}"

    def dedup(self, digest: bytes) -> str:
        """String: the id of the record that holds the digest; goes when the record does."""
        return f"{self.base}d:{digest.hex()}"

    def index(self, name: str) -> str:
        """Sorted set: ids of records by when the server removes them."""
        return f"{self.base}{name}"


EVERYTHING = "a"


def of_subject(subject: str | None) -> str:
    """The index of the records about a subject."""
    return f"s:{encoded(subject)}"


def from_subject(subject: str) -> str:
    """The index of the records derived from some about a subject, which may have expired since."""
    return f"f:{encoded(subject)}"


def of_key(subject: str | None, key: str) -> str:
    """The index of the active records under a key."""
    return f"k:{encoded(subject)}:{encoded(key)}"


def from_record(memory_id: str) -> str:
    """The index of the records derived from one."""
    return f"c:{encoded(memory_id)}"


def of_slot(memory_class: str, kind: str) -> str:
    """The field of a class and kind."""
    return f"{encoded(memory_class)}:{encoded(kind)}"
