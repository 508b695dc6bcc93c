"""Keyed digests of content: what a tombstone keeps of a forgotten record."""

import hashlib
import hmac

from agent_runtime_ref.recall.analysis import normalize_text


def tombstone_digest(store_key: bytes, tenant_id: str, content: str) -> bytes:
    """The digest under which a tenant's content is known as forgotten, whoever it was about.

    Keyed, so that whoever sees it in a log, an event or a receipt cannot test guesses; whoever has the
    store's file has the key as well. Over the normal form, so that the same memory with other spacing, case
    or compatibility characters is known again.
    """
    tenant = tenant_id.encode("utf-8", "surrogatepass")
    text = normalize_text(content).encode("utf-8", "surrogatepass")
    return hmac.digest(store_key, len(tenant).to_bytes(8, "big") + tenant + text, hashlib.sha256)
