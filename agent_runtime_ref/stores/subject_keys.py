"""Keys for the pseudonyms of subjects: their own, or one of this process that is written nowhere."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets

from agent_runtime_ref.stores.base import Store


class SubjectKeys:
    """Hands out subjects' keys without making one for everybody who is merely mentioned.

    A refused write, a read or a dry run may name somebody the store knows nothing of. Such a name gets a
    pseudonym all the same, under a key that ends with the process: nothing is stored about the subject, and
    later nobody can tell whom the line was about.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._passing = secrets.token_bytes(32)

    def of(self, tenant_id: str, subject: str, *, create: bool) -> bytes:
        """Return the subject's own key, made if `create` is set; else, where it has none, a passing one."""
        own = self._store.subject_key(tenant_id, subject, create)
        if own is not None:
            return own
        name = json.dumps([tenant_id, subject]).encode("ascii")
        return hmac.digest(self._passing, name, hashlib.sha256)

    def renew(self) -> None:
        """Give up the passing key, so that what it named cannot be told any more by this process either."""
        self._passing = secrets.token_bytes(32)
