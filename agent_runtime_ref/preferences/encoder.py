"""The encoder that is always there: lexical, deterministic, offline. It is no model.

A text becomes counts of its words and of their pieces, each put into one of 1,024 places by a digest. Texts
that share words or parts of words are near each other; texts that only mean the same are not. Whoever wants
that takes `packaged_embedder` of the extra `embeddings`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from agent_runtime_ref.preferences.keys import FRAMING
from agent_runtime_ref.recall.analysis import record_tokens
from agent_runtime_ref.recall.embedding import Embedder, Vector

__all__ = ["lexical_encoder"]

PLACES = 1024
_PIECE = 3
_WORD_WEIGHT = 2.0
# Words of every sentence: sharing them says nothing, and a text of nothing else is near to no other.
_EVERYWHERE = FRAMING | frozenset(
    "am as at but by me so 的 了 我 是 在 和 也 都 很 就 要 有 不 喜欢 不要 讨厌".split()
)


def lexical_encoder() -> Embedder:
    """Return the encoder; the same text has the same vector in every process and version of Python."""
    return _encoded


def _encoded(texts: Sequence[str], *, query: bool) -> Sequence[Vector]:
    return [_vector(text) for text in texts]


def _vector(text: str) -> Vector:
    numbers = [0.0] * PLACES
    for word in record_tokens(None, text):
        if word in _EVERYWHERE:
            continue
        numbers[_place(word)] += _WORD_WEIGHT
        for start in range(len(word) - _PIECE + 1):
            numbers[_place(f"\0{word[start : start + _PIECE]}")] += 1.0
    return numbers


@lru_cache(maxsize=50_000)
def _place(piece: str) -> int:
    return int.from_bytes(hashlib.blake2b(piece.encode("utf-8"), digest_size=4).digest()) % PLACES
