"""langgraph's SqliteStore with a vector index over the content."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

from child import DIMENSIONS, answer_requests, embedding
from langgraph.store.base import PutOp, SearchOp
from langgraph.store.sqlite import SqliteStore

Row = dict[str, Any]


class Peer:
    """Each tenant is a namespace; a search is one operation for each class, merged by score."""

    def __init__(self, folder: Path) -> None:
        connection = sqlite3.connect(folder / "store.db", check_same_thread=False, isolation_level=None)
        # `text_fields`: with the documented `fields` this version embeds the whole record.
        index = {
            "dims": DIMENSIONS,
            "embed": lambda texts: [embedding(text) for text in texts],
            "text_fields": ["content"],
        }
        self._store = SqliteStore(connection, index=index)
        self._store.setup()

    def load(self, rows: list[Row]) -> int:
        """Put a batch."""
        self._store.batch([PutOp((row["tenant_id"],), row["memory_id"], row) for row in rows])
        return len(rows)

    def write(self, row: Row) -> int:
        """Put one record."""
        self._store.put((row["tenant_id"],), row["memory_id"], row)
        return 1

    def read(self, question: dict[str, Any]) -> int:
        """Search; return how many were found, five at most."""
        operations = [
            SearchOp(
                (question["tenant_id"],),
                filter={
                    "memory_class": limit["memory_class"],
                    "trust_rank": {"$gte": limit["trust_rank"]},
                    "created_us": {"$gte": limit["created_us"]},
                },
                limit=question["limit"],
                query=question["text"],
            )
            for limit in question["limits"]
        ]
        found = [item for items in self._store.batch(operations) for item in items]
        found.sort(key=lambda item: -(item.score or 0.0))
        return len(found[: question["limit"]])


if __name__ == "__main__":
    answer_requests(Peer(Path(sys.argv[1])))
