"""Folders: where large stores are kept between runs, in the user's cache, outside the checkout."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from agent_runtime_ref.recall.analysis import ANALYSER_VERSION
from agent_runtime_ref.stores.sqlite.schema import MIGRATIONS
from bench import data
from bench.direct import models

CHECKOUT = Path(__file__).parents[1]  # where a process that runs a module of this package must stand


def cache_folder() -> Path:
    """Return the folder of everything that measurements keep."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "agent-runtime-ref" / "bench"


def kept_folder(records: int) -> Path:
    """Return the folder of a build, made if need be, whose name says what it was built from.

    Folders of the same size that were built from something else are removed: each holds gigabytes.
    """
    folder = cache_folder() / f"{records}-{_digest()}"
    for other in cache_folder().glob(f"{records}-*"):
        if other != folder:
            shutil.rmtree(other)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _digest() -> str:
    """Return a digest of what a store's contents follow from: its tables, policy, the records."""
    assigned = sorted(
        (kind, record.trust_level, record.retention, str(lives)) for kind, (record, lives) in models().items()
    )
    parts = (MIGRATIONS, ANALYSER_VERSION, assigned, data.VERSION, data.SEED)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
