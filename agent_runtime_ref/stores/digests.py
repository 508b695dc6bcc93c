"""Keyed digests of content: what a tombstone keeps of a forgotten record."""

import hashlib
import hmac

from agent_runtime_ref.recall.analysis import normalize_text


def tombstone_digest(store_key: bytes, tenant_id: str, subject: str | None, content: str) -> bytes:
    """The digest under which content about a subject of a tenant is known as forgotten.

    The subject is part of it: one person's forgetting must not refuse what another says in the same words.

    Keyed, so that whoever sees it in a log, an event or a receipt cannot test guesses; whoever has the
    store's file has the key as well. Over the normal form, so that the same memory with other spacing, case
    or compatibility characters is known again.
    """
    # Lengths first, so that no two triples make the same text; nobody's content has no subject to measure.
    named = b"-" if subject is None else b"+" + _measured(subject)
    text = normalize_text(content).encode("utf-8", "surrogatepass")
    return hmac.digest(store_key, _measured(tenant_id) + named + text, hashlib.sha256)


def writer_digest(store_key: bytes, tenant_id: str, memory_id: str, name: str) -> bytes:
    """The digest by which a reviewer is known as the one who wrote a record, as principal or as agent.

    The record is part of it: two records do not tell that one person wrote both. It outlives the forgetting
    of that person, who could otherwise be forgotten and then release what she wrote.
    """
    words = (tenant_id, memory_id, name)
    return hmac.digest(store_key, b"writer" + b"".join(map(_measured, words)), hashlib.sha256)


def _measured(word: str) -> bytes:
    encoded = word.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "big") + encoded
