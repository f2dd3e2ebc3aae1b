"""Tables that fit a terminal: names and numbers stay whole, columns that matter least go first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Column, Table

#: Columns of words are folded, but not to fewer letters than this.
LEAST_LETTERS = 12


def print_table(out: Console, table: Table, least: Sequence[str] | None = None) -> None:
    """Print a table whole; on a terminal that is too narrow, without columns that matter least.

    A line below the table says which columns were left out. Rows that are still too long go on
    in the next line of the terminal. Only a terminal is ever too narrow: files have all columns.

    Parameters
    ----------
    out : where to print.
    table : its columns with ``no_wrap`` are never cut, the others are folded to no less than their
        ``min_width``, or 12 letters.
    least : headings of columns that may be left out, the first of these first; None: all with
        ``no_wrap`` but the first two columns, from the right.
    """
    for column in table.columns:
        column.min_width = _least_width(column)
    columns = table.columns
    if least is None:
        least = [_heading(one) for one in reversed(columns[2:]) if one.no_wrap]
    part, gone = table, set[str]()
    for heading in least:
        if not out.is_terminal or _needed(out, part) <= out.width:
            break
        gone.add(heading)
        part = _part(table, [one for one in columns if _heading(one) not in gone])
    needed = _needed(out, part)
    if needed > out.width:
        part.width = needed
    out.print(part, crop=False)
    told = [name for name in map(_heading, columns) if name in gone]
    if told:
        text = f"left out, as the terminal is too narrow: {', '.join(told)}"
        out.print(text, markup=False, soft_wrap=True)


def _needed(out: Console, table: Table) -> int:
    """Return how wide a table is at least, with what stands between its columns."""
    from rich.measure import Measurement

    unbounded = out.options.update(max_width=1_000_000)
    whole = Measurement.get(out, unbounded, table).maximum
    return whole - sum(_width(one) - (one.min_width or 0) for one in table.columns)


def _least_width(column: Column) -> int:
    """Return how narrow a column may be."""
    if column.no_wrap:
        return _width(column)
    return min(_width(column), column.min_width or LEAST_LETTERS)


def _width(column: Column) -> int:
    """Return the length of the longest line of a column."""
    from rich.cells import cell_len

    texts = [str(column.header), *map(str, column.cells)]
    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _heading(column: Column) -> str:
    """Return the heading of a column in one line."""
    return " ".join(str(column.header).split())


def _part(table: Table, columns: Sequence[Column]) -> Table:
    """Return a table with some of its columns only."""
    from rich.table import Table

    part = Table(
        title=table.title,
        caption=table.caption,
        box=table.box,
        show_edge=table.show_edge,
        pad_edge=table.pad_edge,
        title_style=table.title_style,
        title_justify=table.title_justify,
        caption_justify=table.caption_justify,
    )
    for one in columns:
        part.add_column(
            one.header,
            justify=one.justify,
            overflow=one.overflow,
            no_wrap=one.no_wrap,
            min_width=one.min_width,
        )
    cells = zip(*(one.cells for one in columns), strict=True)
    for row, texts in zip(table.rows, cells, strict=True):
        part.add_row(*texts, end_section=row.end_section)
    return part
