"""What commands print: tables for people, JSON, CSV, Markdown, LaTeX, or a page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from hpcgym.files.writing import csv_text, json_text
from hpcgym.report.cells import WIDTH, Table, rich_table

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

Row = Mapping[str, Any]


class Format(StrEnum):
    """How results are printed."""

    table = "table"
    json = "json"
    csv = "csv"
    markdown = "markdown"
    latex = "latex"


@dataclass(frozen=True)
class Sheet:
    """What people see of a result.

    Attributes
    ----------
    above, below : lines; the first one is the title.
    tables : of these.
    shown : what rich prints in place of the first table.
    """

    above: Sequence[str]
    tables: Sequence[Table]
    below: Sequence[str] = ()
    shown: Any = None

    def print(self) -> None:
        """Print it for people."""
        out = console()
        for place, line in enumerate(self.above):
            _print_line(out, line, style=None if place else "bold")
        for place, table in enumerate(self.tables):
            if table.title or self.above:
                out.print()
            if table.title:
                _print_line(out, table.title, style="bold")
            made = None if place else self.shown
            _print_whole(out, made or rich_table(table.headings, table.cells, table.words))
        for line in self.below:
            _print_line(out, line)

    def write(self, format: Format) -> None:
        """Print the tables as Markdown or LaTeX, and on the error stream what is said of them."""
        parts = [
            table.markdown() if format is Format.markdown else table.latex()
            for table in self.tables
        ]
        sys.stdout.write("\n".join(parts))
        for line in self.below:
            sys.stderr.write(f"{line}\n")

    def page(self, record: Mapping[str, Any], pictures: Iterable[tuple[Any, str]] = ()) -> str:
        """Return it as a page whose tables can be sorted, with where it is from.

        ``pictures`` : figures of matplotlib, and what each is called.
        """
        from html import escape

        from hpcgym.explore.document import Cell, paragraphs, picture, sheet, table

        parts = []
        for shown in self.tables:
            rows = [[Cell(*cell) for cell in row] for row in shown.cells]
            caption = "A click on a heading sorts."
            if any(cell.best for row in rows for cell in row):
                caption = f"★ best of its column. {caption}"
            parts += [f"<h2>{escape(shown.title)}</h2>"] if shown.title else []
            parts.append(
                table(shown.heads, rows, words=range(shown.words), sortable=True, caption=caption)
            )
        parts += [picture(figure, name) for figure, name in pictures]
        title, *more = self.above or [next((table.title for table in self.tables), "")]
        return sheet(title, more, "\n".join([*parts, paragraphs(self.below)]), record)


def show(
    format: Format,
    sheet: Callable[[], Sheet],
    rows: Callable[[], Iterable[Row]],
    facts: Callable[[], Any] | None = None,
) -> None:
    """Print a result as ``--format`` says: facts as JSON, rows as CSV, or what people see.

    Without facts JSON has the rows. Floats are in full; in JSON what is no number (0 / 0) is null,
    in CSV what a row lacks is empty.
    """
    if format is Format.json:
        sys.stdout.write(json_text((facts or rows)()))
    elif format is Format.csv:
        sys.stdout.write(csv_text(rows()))
    elif format is Format.table:
        sheet().print()
    else:
        sheet().write(format)


def of_rows(rows: Iterable[Row], *columns: str, title: str = "") -> Table:
    """Return a table of rows, or of some of their columns."""
    given = list(rows)
    names = columns or list(dict.fromkeys(name for row in given for name in row))
    values_of = {name: [row.get(name) for row in given] for name in names}
    values_of = {name: values for name, values in values_of.items() if any(map(_known, values))}
    words = [name for name, values in values_of.items() if not all(map(_number, values))]
    return _words_first(values_of, words, title)


def _known(value: Any) -> bool:
    return value is not None and value == value


def _number(value: Any) -> bool:
    return not _known(value) or (isinstance(value, (int, float)) and not isinstance(value, bool))


def of_frame(frame: pd.DataFrame, title: str = "") -> Table:
    """Return a table of data: words before numbers, "-" for what is missing."""
    frame = frame.dropna(axis="columns", how="all")
    words = [str(name) for name in frame if frame[name].dtype.kind not in "iuf"]
    return _words_first({str(name): frame[name].tolist() for name in frame}, words, title)


def _words_first(columns: Mapping[str, Sequence[Any]], words: Sequence[str], title: str) -> Table:
    """Return a table of columns, those of words before those of numbers."""
    heads = [*words, *(name for name in columns if name not in words)]
    rows = zip(*(columns[name] for name in heads), strict=True)
    cells = [[_text(*cell) for cell in zip(heads, row, strict=True)] for row in rows]
    return Table(heads, cells, len(words), title)


def _text(column: str, value: Any) -> str:
    """Return a value for people."""
    from hpcgym.words import shown, signed

    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value != value:
        return "-"
    if "/" in column:
        return f"{value:.3f}"
    return signed(value, 1) if "%" in column else shown(value)


def rows_of(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, by the names of its columns."""
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def console() -> Console:
    """Return where tables go; without a terminal, lines are as long as they need to be."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH)


def _print_line(out: Console, line: str, style: str | None = None) -> None:
    """Print a line; on a terminal that is narrower it goes on in the next, word by word."""
    out.print(line, style=style, markup=False, soft_wrap=not sys.stdout.isatty())


_LEAST_LETTERS = 12  # to which columns of words are folded


def _print_whole(out: Console, table: Any) -> None:
    """Print a table of rich; on a narrow terminal its lines go on in the next."""
    from rich.cells import cell_len
    from rich.measure import Measurement

    for column in table.columns:
        texts = [column.header, *column.cells]
        widest = max(cell_len(line) for text in texts for line in str(text).split("\n"))
        column.min_width = widest if column.no_wrap else min(widest, _LEAST_LETTERS)
    least = Measurement.get(out, out.options.update(max_width=1_000_000), table).minimum
    table.width = least if least > out.width else None
    out.print(table, crop=False)
