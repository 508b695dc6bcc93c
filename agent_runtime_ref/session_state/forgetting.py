"""What forgetting a person removed of his threads, and the receipt that counts it.

The records of a thread are about its life and not about the person, so that the store does not count them
with his. Whoever asked for the forgetting has the receipt as his proof, so they have to be in it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent_runtime_ref.contracts import ForgetReceipt

__all__ = ["ForgottenThreads", "with_threads"]


@dataclass(frozen=True, slots=True)
class ForgottenThreads:
    """How many threads went, or would go, and the receipts of the records that were theirs."""

    threads: int = 0
    receipts: tuple[ForgetReceipt, ...] = ()  # one for each life


def with_threads(receipt: ForgetReceipt, gone: ForgottenThreads) -> ForgetReceipt:
    """Return the receipt of a person with the records of his threads in its counts and digests.

    Of a class that several receipts have, the digest is that over theirs, sorted, one a line: what the log
    says of each removal leads to it.
    """
    every = [receipt, *gone.receipts]
    by_class: Counter[str] = Counter()
    digests: dict[str, list[str]] = {}
    for one in every:
        by_class.update(one.by_class)
        for name, digest in one.digests.items():
            digests.setdefault(name, []).append(digest)
    return replace(
        receipt,
        records=sum(one.records for one in every),
        derived=sum(one.derived for one in every),
        superseded=sum(one.superseded for one in every),
        terms=sum(one.terms for one in every),
        dedup_keys=sum(one.dedup_keys for one in every),
        tombstones=sum(one.tombstones for one in every),
        by_class=dict(sorted(by_class.items())),
        digests={name: _over(found) for name, found in sorted(digests.items())},
    )


def _over(digests: Sequence[str]) -> str:
    if len(digests) == 1:
        return digests[0]
    return "sha256:" + hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()
