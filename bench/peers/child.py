"""What the two peer scripts share: an embedder, and the loop that answers requests.

Runs in a peer's environment, where neither this project nor its packages are installed.
"""

import json
import math
import sys
import time
from collections.abc import Iterator
from zlib import crc32

DIMENSIONS = 384


def embedding(text: str) -> list[float]:
    """Return a vector of a text that follows from its words and pairs of ideographs alone."""
    vector = [0.0] * DIMENSIONS
    for term in _terms(text):
        code = crc32(term.encode())
        vector[code % DIMENSIONS] += 1.0 if code & 0x8000_0000 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


def answer_requests(store: object) -> None:
    """Answer a JSON line with a JSON line, and the nanoseconds that the peer's own part took."""
    out, sys.stdout = sys.stdout, sys.stderr  # a peer that prints must not end up among the answers
    for line in sys.stdin:
        request = json.loads(line)
        cpu = time.thread_time_ns()
        wall = time.perf_counter_ns()
        getattr(store, request["do"])(request["with"])
        took = {"wall": time.perf_counter_ns() - wall, "cpu": time.thread_time_ns() - cpu}
        print(json.dumps(took), file=out, flush=True)


def _terms(text: str) -> Iterator[str]:
    for word in text.split():
        if word.isascii():
            yield word
        else:
            yield from (word[place : place + 2] for place in range(len(word) - 1))
