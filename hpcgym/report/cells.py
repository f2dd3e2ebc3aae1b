"""Numbers and rows of cells as texts: for a terminal, in Markdown, in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table as RichTable


# --- Numbers as people read them ------------------------------------------------------------------


def shown_p(value: float) -> str:
    """Return a p-value with three significant digits, without zeros behind them.

    >>> shown_p(0.0123456), shown_p(0.5), shown_p(1.0), shown_p(0.00002)
    ('0.0123', '0.5', '1', '2e-05')
    """
    return "-" if math.isnan(value) else f"{value:.3g}"


# --- Rows of cells as texts -----------------------------------------------------------------------

#: A text, and whether it is the best of its column.
Cell = tuple[str, bool]
Rows = Sequence[Sequence[Cell]]

_ESCAPES = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"}, "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

#: A minus before a number, which in text would be a hyphen.
_MINUS = re.compile(r"(?<![\w.,-])-(?=\d)")


#: Columns of a table in LaTeX: more do not fit into a column of a page.
MOST_COLUMNS = 7


def latex(
    heading: Sequence[str], rows: Rows, words: int = 1, groups: Sequence[Hashable] = ()
) -> str:
    """Return rows as LaTeX's ``tabular`` with booktabs, the best bold.

    The first ``words`` columns are to the left, the others, which are numbers, to the right. More
    than seven columns become several tables, each with the words in front; a comment says so.
    Neighbours that have the same value in ``groups``, one for each number, stay in one table. Each
    of several tables leaves out rows of which it has no number.
    """
    together = [len([*same]) for _, same in groupby(groups)] or [1] * (len(heading) - words)
    widths = _shared_out(together, max(MOST_COLUMNS - words, 1))
    ends = [words, *(words + end for end in accumulate(widths))]
    tables = []
    for place, (begin, end) in enumerate(pairwise(ends), 1):
        columns = [*range(words), *range(begin, end)]
        which_part = (
            f"% part {place} of {len(widths)}: {len(heading)} columns do not fit into one table"
        )
        cells = [[row[column] for column in columns] for row in rows]
        if len(widths) > 1:
            cells = [row for row in cells if any(text for text, _ in row[words:])]
        table = _tabular([heading[column] for column in columns], cells, words)
        tables.append(f"{which_part}\n{table}" if len(widths) > 1 else table)
    return "\n".join(tables)


def _shared_out(groups: Sequence[int], room: int) -> list[int]:
    """Return how many columns each table has: as few tables as can be, and these alike wide.

    ``groups`` are the numbers of columns that stay together, if they are not more than ``room``.
    """
    sizes = [part for size in groups for part in ([size] if size <= room else [1] * size)]

    def filled(most: int) -> list[int]:
        widths = [0]
        for size in sizes:
            if widths[-1] + size > most:
                widths.append(0)
            widths[-1] += size
        return widths

    fewest = len(filled(room))
    least = max(sizes, default=0)
    return next(widths for most in range(least, room + 1) if len(widths := filled(most)) == fewest)


def _tabular(heading: Sequence[str], rows: Rows, words: int) -> str:
    """Return one table."""
    lines = []
    for row in rows:
        cells = [rf"\textbf{{{_escaped(text)}}}" if top else _escaped(text) for text, top in row]
        cells[words:] = [_MINUS.sub("$-$", text) for text in cells[words:]]
        lines.append(" & ".join(cells) + r" \\")
    sides = "l" * words + "r" * (len(heading) - words)
    begin = rf"\begin{{tabular}}{{{sides}}}  % needs \usepackage{{booktabs}}"
    titles = [*map(_escaped, heading[:words]), *map(_narrow, heading[words:])]
    end = [r"\bottomrule", r"\end{tabular}", ""]
    return "\n".join([begin, r"\toprule", " & ".join(titles) + r" \\", r"\midrule", *lines, *end])


def _narrow(heading: str) -> str:
    """Return the heading of numbers in two lines, if it is broken somewhere."""
    if " " not in heading:
        return _escaped(heading)
    lines = [_escaped(line) for line in two_lines(heading).split("\n") if line]
    broken = r" \\ ".join(lines)
    return rf"\shortstack[r]{{{broken}}}"


def _escaped(text: str) -> str:
    """Return a text with the signs that mean something to LaTeX escaped."""
    return "".join(_ESCAPES.get(sign, sign) for sign in text)


def markdown(heading: Sequence[str], rows: Rows, words: int = 1) -> str:
    """Return rows as a table in Markdown, with columns as :func:`latex` has them, the best bold."""
    bold = [[f"**{text}**" if top else text for text, top in row] for row in rows]
    sides = ["---"] * words + ["---:"] * (len(heading) - words)
    cells = (
        " | ".join(text.replace("|", "\\|") for text in row) for row in [heading, sides, *bold]
    )
    return "".join(f"| {line} |\n" for line in cells)


def rich_table(heading: Sequence[str], rows: Rows, words: int = 1, caption: str = "") -> RichTable:
    """Return rows for a terminal, with columns as :func:`latex` has them; ``*`` marks the best.

    ``caption`` stands below if one is marked. Numbers and their headings have room for a mark.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable
    from rich.text import Text

    marked = any(top for row in rows for _, top in row)
    table = RichTable(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False,
        caption=caption if caption and marked else None, caption_justify="left",
    )  # fmt: skip
    for title in heading[:words]:
        table.add_column(title, overflow="fold")
    for title in heading[words:]:
        lines = "\n".join(f"{line} " for line in title.split("\n"))
        table.add_column(lines, justify="right", no_wrap=True)
    for row in rows:
        numbers = (
            Text(f"{text}*", "bold green") if top else Text(f"{text} ") for text, top in row[words:]
        )
        table.add_row(*(Text(text) for text, _ in row[:words]), *numbers)
    return table


def two_lines(heading: str) -> str:
    """Return a heading broken where it becomes narrowest."""
    words = heading.split()
    breaks = [(" ".join(words[:at]), " ".join(words[at:])) for at in range(len(words))]
    return "\n".join(min(breaks, key=lambda lines: max(map(len, lines))))


WIDTH = 10_000  # letters of a line where there is no terminal: no table folds


@dataclass(frozen=True)
class Table:
    """Rows of texts for people.

    Attributes
    ----------
    headings : of the columns, of one line or several.
    rows : of cells, each a text, or (text, is it the best of its column).
    words : how many columns in front are words, which stand to the left and may be folded. The
        others are numbers, which are never cut.
    title : what it is of.
    groups : as of :func:`latex`.
    below : what is said of it, in lines.
    """

    headings: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    words: int = 1
    title: str = ""
    groups: Sequence[Hashable] = ()
    below: Sequence[str] = ()

    @property
    def cells(self) -> list[list[Cell]]:
        """All cells with their marks."""
        return [[(c, False) if isinstance(c, str) else c for c in row] for row in self.rows]

    @property
    def heads(self) -> list[str]:
        """The headings in one line each."""
        return [" ".join(heading.split()) for heading in self.headings]

    def text(self) -> str:
        """Return it as on a terminal, without colours; lines are as long as they need to be."""
        from rich.console import Console

        out = Console(width=WIDTH, no_color=True, highlight=False, force_jupyter=False)
        with out.capture() as capture:
            out.print(rich_table(self.headings, self.cells, self.words))
        return "\n".join(line.rstrip() for line in capture.get().splitlines())

    def latex(self) -> str:
        """Return it in LaTeX, :func:`latex`; what it is of, and what is below, are comments."""
        said = "".join(f"% {line}\n" for line in [self.title, *self.below] if line)
        return said + latex(self.heads, self.cells, self.words, self.groups)

    def markdown(self) -> str:
        """Return it in Markdown: :func:`markdown`."""
        return markdown(self.heads, self.cells, self.words)
