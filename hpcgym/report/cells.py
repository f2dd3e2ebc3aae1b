"""Numbers and rows of cells as texts: for a terminal, in Markdown, in LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table


# --- Numbers as people read them ------------------------------------------------------------------

DIGITS = 4  # significant ones


def shown(value: float) -> str:
    """Return a number with four significant digits, whole ones in full, commas at thousands.

    >>> shown(92.57654), shown(0.0123456), shown(28481), shown(14805.23), shown(1.0)
    ('92.58', '0.01235', '28,481', '14,805', '1.000')
    """
    if isinstance(value, Integral):
        return f"{value:,}"
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if value == 0:
        return "0"
    # Rounding first: 9.9999 has one digit before the point, but is shown as 10.00.
    magnitude = math.floor(math.log10(abs(float(f"{value:.{DIGITS - 1}e}"))))
    if magnitude < -DIGITS:
        return f"{value:.{DIGITS - 1}e}"
    return f"{value:,.{max(DIGITS - 1 - magnitude, 0)}f}"


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


def latex(heading: Sequence[str], rows: Rows, words: int = 1) -> str:
    """Return rows as LaTeX's ``tabular`` with booktabs, the best bold.

    The first ``words`` columns are to the left, the others, which are numbers, to the right. More
    than seven columns become several tables, each with the words in front; a comment says so.
    """
    room = max(MOST_COLUMNS - words, 1)
    parts = [range(at, min(at + room, len(heading))) for at in range(words, len(heading), room)]
    tables = []
    for place, numbers in enumerate(parts or [range(0)], 1):
        columns = [*range(words), *numbers]
        told = [f"% part {place} of {len(parts)}: {len(heading)} columns do not fit into one table"]
        cells = [[row[column] for column in columns] for row in rows]
        some = [heading[column] for column in columns]
        tables.append("\n".join([*(told if len(parts) > 1 else ()), _tabular(some, cells, words)]))
    return "\n".join(tables)


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
    cells = (" | ".join(one.replace("|", "\\|") for one in row) for row in [heading, sides, *bold])
    return "".join(f"| {line} |\n" for line in cells)


def rich_table(heading: Sequence[str], rows: Rows, words: int = 1, caption: str = "") -> Table:
    """Return rows for a terminal, with columns as :func:`latex` has them; ``*`` marks the best.

    ``caption`` stands below if one is marked. Numbers and their headings have room for a mark.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    marked = any(top for row in rows for _, top in row)
    table = Table(
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
