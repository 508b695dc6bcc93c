"""Damaged files that were put aside beside a store: their names, and what forgetting has to say of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_MOST = 1000
_NAMED_MAX = 10


def free_name(path: Path) -> Path | None:
    """Return the next name for a damaged file beside `path`; None where all are taken."""
    return next((one for one in _names(path) if not os.path.lexists(one)), None)


def notes(path: Path) -> tuple[str, ...]:
    """Say that damaged files lie beside `path`; without its own name, which may be that of a person.

    What is damaged cannot be told apart, so that none of it is removed with one of the persons in it.
    """
    endings = [one.name[len(path.name) :] for one in _names(path) if os.path.lexists(one)]
    if not endings:
        return ()
    named = ", ".join(f"`*{one}`" for one in endings[:_NAMED_MAX])
    more = f" and {len(endings) - _NAMED_MAX} more" if len(endings) > _NAMED_MAX else ""
    told = f"damaged files that lay aside beside the store ({named}{more}); whose words they hold is unknown"
    remedy = "look at them and remove them (`preferences forget --all` removes those of a user's own file)"
    return (f"{told}: {remedy}",)


def _names(path: Path) -> Iterator[Path]:
    # By name, not by a look into the folder: who may open the store need not be let to list its folder.
    return (path.with_name(f"{path.name}.damaged-{number}") for number in range(1, _MOST))
