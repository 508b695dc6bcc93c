"""A test double for an embedding: texts that share letters are near each other. It is no model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

SIZE = 64


class HashEmbedding:
    """Counts hashed pairs of letters; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        """Return a vector for each text."""
        self.asked += texts
        return [_vector(text.casefold()) for text in texts]


def _vector(text: str) -> list[float]:
    vector = [0.0] * SIZE
    for start in range(len(text) - 1):
        digest = hashlib.sha256(text[start : start + 2].encode("utf-8", "surrogatepass")).digest()
        vector[digest[0] % SIZE] += 1.0
    return vector
