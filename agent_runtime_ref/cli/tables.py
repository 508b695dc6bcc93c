"""Tables for people: with rich on a terminal, plain columns in a pipe, a block a row where it is narrow.

Cells hold other people's words. They are never read as markup, and what a terminal would act on is escaped
before it gets here or by `shown`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from agent_runtime_ref.cli.output import write
from agent_runtime_ref.cli.terminal import is_terminal, shown

NARROW_COLUMNS = 72
_PROSE_COLUMNS = 20  # the least that words are readable in
_GAP = 3  # between two columns


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, prose: int = 1, caption: str = ""
) -> None:
    """Print `rows` under `headings`; the last `prose` columns share the room left, the others never fold."""
    cells = [[shown(cell) for cell in row] for row in rows]
    if is_terminal() and os.environ.get("TERM") != "dumb":
        _print_rich(headings, cells, prose, shown(caption))
    else:
        _print_plain(headings, cells)


def _print_rich(headings: Sequence[str], rows: Sequence[Sequence[str]], prose: int, caption: str) -> None:
    from rich.text import Text

    console = _console()
    if console.width < _least_width(headings, rows, prose):
        for row in rows:
            for heading, cell in zip(headings, row, strict=True):
                # An id that is wider than the terminal is left to it, so that it can be copied whole.
                console.print(Text.assemble((f"{heading}: ", "bold"), cell), soft_wrap=" " not in cell)
            console.print()
    elif rows:
        console.print(_rich_table(headings, rows, prose))
    if caption:
        console.print(Text(caption, style="dim"))


def _least_width(headings: Sequence[str], rows: Sequence[Sequence[str]], prose: int) -> int:
    """Return the width below which a table would break an id, or leave no room for its prose."""
    from rich.cells import cell_len

    fixed = len(headings) - prose
    ids = sum(max(cell_len(row[index]) for row in [headings, *rows]) for index in range(fixed))
    return max(NARROW_COLUMNS, ids + _GAP * (len(headings) - 1) + _PROSE_COLUMNS * prose)


def _rich_table(headings: Sequence[str], rows: Sequence[Sequence[str]], prose: int) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, heading in enumerate(headings):
        folds = index >= len(headings) - prose
        table.add_column(Text(heading), overflow="fold", no_wrap=not folds, ratio=1 if folds else None)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _console() -> Any:
    from rich.console import Console

    # NO_COLOR asks for no colours; without a colour system rich writes no escape sequence at all.
    colors: Any = None if os.environ.get("NO_COLOR") else "auto"
    return Console(color_system=colors, highlight=False, markup=False, emoji=False)


def _print_plain(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns, a row a line, for whoever pipes a table into another command."""
    widths = [max(len(row[index]) for row in [headings, *rows]) for index in range(len(headings))]
    for row in [headings, *rows]:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        write(line.rstrip())
