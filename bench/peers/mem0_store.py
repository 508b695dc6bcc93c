"""mem0 without a language model (`infer=False`), over its local vector store."""

import os
import sys
from pathlib import Path
from typing import Any

from child import DIMENSIONS, answer_requests, embedding

os.environ["MEM0_DIR"] = sys.argv[1]  # read when mem0 is imported

from mem0 import Memory
from mem0.embeddings.base import EmbeddingBase

Row = dict[str, Any]


class _Embedder(EmbeddingBase):
    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return embedding(text)


class Peer:
    """Each tenant is a user; the limits of each class go into the filter."""

    def __init__(self, folder: Path) -> None:
        self._memory = Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "path": str(folder / "qdrant"),
                        "on_disk": True,
                        "embedding_model_dims": DIMENSIONS,
                        "collection_name": "bench",
                    },
                },
                # Neither is ever called: there is nothing to infer, and the embedder is replaced below.
                "llm": {"provider": "openai", "config": {"api_key": "none"}},
                "embedder": {"provider": "openai", "config": {"api_key": "none"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _Embedder()

    def load(self, rows: list[Row]) -> int:
        """Add a batch; there is no other way than one by one."""
        for row in rows:
            self.write(row)
        return len(rows)

    def write(self, row: Row) -> int:
        """Add one record."""
        metadata = {name: row[name] for name in row if name not in ("tenant_id", "content")}
        self._memory.add(row["content"], user_id=row["tenant_id"], metadata=metadata, infer=False)
        return 1

    def read(self, question: dict[str, Any]) -> int:
        """Search; return how many were found, five at most."""
        limits = [
            {
                "memory_class": limit["memory_class"],
                "trust_rank": {"gte": limit["trust_rank"]},
                "created_us": {"gte": limit["created_us"]},
            }
            for limit in question["limits"]
        ]
        found = self._memory.search(
            question["text"],
            top_k=question["limit"],
            threshold=0.0,
            filters={"user_id": question["tenant_id"], "OR": limits},
        )
        return len(found["results"])


if __name__ == "__main__":
    answer_requests(Peer(Path(sys.argv[1])))
