"""The columns of a leaderboard that people are shown, and the table as LaTeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hpcgym.report.numbers import shown_p
from hpcgym.report.tables import best, text_of
from hpcgym.schedule.metrics import LESS, MORE, Metric

if TYPE_CHECKING:
    from hpcgym.evaluation.leaderboard import Leaderboard

_WINS = Metric("win_rate", "wins\n(%)", "", MORE, 100)
_REGRET = Metric("mean_regret", "regret\n(%)", "", LESS, 100)
_P = Metric("p_value", "p", "")
_BSLD = Metric("mean_bsld", "mean\nBSLD", "", LESS)
_WAIT = Metric("mean_wait_s", "mean wait\n(s)", "", LESS)
_UTILIZATION = Metric("utilization", "utilization\n(%)", "", MORE, 100)
_LIMITED = (
    Metric("limited_energy_j", "energy under\nlimits (kWh)", "", LESS, 1 / 3.6e6),
    Metric("energy_j", "energy of\nall (kWh)", "", LESS, 1 / 3.6e6),
)
_SHARED = (
    Metric("makespan_s", "makespan\n(h)", "", LESS, 1 / 3600),
    Metric("improvement", "improvement\n(%)", "", MORE, 100),
)

_ESCAPES = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"}, "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def columns_of(board: Leaderboard) -> list[Metric]:
    """Return the columns, but for intervals; headings have up to two lines.

    Beside the metric, by which policies are ranked, how far all are above the reference is there
    where one was asked for or there is a usual one, and the interquartile mean where a row is of
    several trainings.
    """
    ranked = board.ranked_by
    short, unit = f"{ranked.title}", f"\n({ranked.unit})" if ranked.unit else ""

    def like(name: str, title: str) -> Metric:
        return Metric(name, title, "", ranked.better, ranked.scale)

    first = like(ranked.name, f"{short}{unit}" if unit else _broken(short))
    spread = [like(f"median_{board.short}", "median\nBSLD" if short == "mean BSLD" else "median")]
    if board.members:
        spread.append(like(f"iqm_{board.short}", "IQM"))
    above = [like("above_reference", f"above\n{board.reference}")] if board.references else []
    if board.makespans is not None:
        found = [first, *above, _P, *_SHARED, _BSLD, _WAIT]
    elif board.energy:
        found = [first, *above, _P, _BSLD, _WAIT, *_LIMITED]
    else:
        found = [first, *spread, _WINS, _REGRET, *above, _P, _BSLD, _WAIT, _UTILIZATION]
    each = {metric.name: metric for metric in reversed(found)}  # the first of a name counts
    return [one for one in found if each[one.name] is one and one.name in board.table]


def _broken(heading: str) -> str:
    """Return a heading of two words on two lines."""
    first, _, second = heading.rpartition(" ")
    return f"{first}\n{second}" if first else second


def has_interval(board: Leaderboard, metric: Metric) -> bool:
    """Tell whether a column has an interval."""
    return f"{metric.name}_low" in board.table


def interval_title(metric: Metric) -> str:
    """Return the heading of an interval; beside that of the metric, one of differences says so."""
    of_differences = metric.name == "above_reference"
    above = metric.title.replace("\n", " ")
    return f"95 % interval\n{above}" if of_differences else "95 %\ninterval"


def cells_of(board: Leaderboard, metric: Metric) -> list[tuple[str, bool]]:
    """Return the texts of a column, and which are the best of it."""
    values: Sequence[float] = board.table[metric.name].tolist()
    tops = best(metric, values)
    texts = [shown_p(value) if metric is _P else text_of(metric, value) for value in values]
    return list(zip(texts, tops, strict=True))


def interval_of(metric: Metric, row: Any) -> tuple[str, str] | None:
    """Return the ends of an interval of a row of the table; None without one."""
    low, high = row[f"{metric.name}_low"], row[f"{metric.name}_high"]
    return None if low != low else (text_of(metric, low), text_of(metric, high))


def lines_of(board: Leaderboard) -> tuple[list[str], list[list[tuple[str, bool]]]]:
    """Return headings, of up to two lines, and rows of (text, is it the best of its column)."""
    heading, columns = ["policy"], [[(str(one), False) for one in board.table.index]]
    for metric in columns_of(board):
        heading.append(metric.title)
        columns.append(cells_of(board, metric))
        if has_interval(board, metric):
            heading.append(interval_title(metric))
            ends = [interval_of(metric, row) for _, row in board.table.iterrows()]
            texts = ["-" if end is None else f"{end[0]} to {end[1]}" for end in ends]
            columns.append([(text, False) for text in texts])
    return heading, [list(row) for row in zip(*columns, strict=True)]


def latex(board: Leaderboard) -> str:
    """Return the table as LaTeX's ``tabular``, with booktabs; the best of a column is bold."""
    metrics = columns_of(board)
    heading, columns = ["policy"], [[escaped(str(name)) for name in board.table.index]]
    for metric in metrics:
        heading.append(escaped(metric.title.replace("\n", " ")))
        columns.append(
            [rf"\textbf{{{text}}}" if top else text for text, top in cells_of(board, metric)]
        )
        if has_interval(board, metric):
            heading.append(escaped(interval_title(metric).replace("\n", " ")))
            ends = [interval_of(metric, row) for _, row in board.table.iterrows()]
            columns.append(["-" if end is None else f"{end[0]} to {end[1]}" for end in ends])
    return tabular(heading, columns)


#: A minus before a number, which in text would be a hyphen.
_MINUS = re.compile(r"(?<![\w.,-])-(?=\d)")


def tabular(heading: Sequence[str], columns: Sequence[Sequence[str]], words: int = 1) -> str:
    """Return columns of LaTeX as a ``tabular`` with booktabs.

    The first ``words`` columns are to the left, the others, which are numbers, to the right.
    """
    others = [[_MINUS.sub("$-$", text) for text in column] for column in columns[words:]]
    lines = [" & ".join(row) + r" \\" for row in zip(*columns[:words], *others, strict=True)]
    return "\n".join(
        [
            r"\begin{tabular}{"
            + "l" * words
            + "r" * (len(heading) - words)
            + "}  % needs \\usepackage{booktabs}",
            r"\toprule",
            " & ".join(heading) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            "",
        ]
    )


def markdown(heading: Sequence[str], rows: Sequence[Sequence[tuple[str, bool]]], words: int) -> str:
    """Return rows of (text, is it the best) as a table in Markdown, the best bold.

    The first ``words`` columns are to the left, the others, which are numbers, to the right.
    """
    bold = [[f"**{text}**" if top else text for text, top in row] for row in rows]
    sides = ["---"] * words + ["---:"] * (len(heading) - words)
    lines = [list(heading), sides, *bold]
    cells = (" | ".join(cell.replace("|", "\\|") for cell in line) for line in lines)
    return "".join(f"| {line} |\n" for line in cells)


def escaped(text: str) -> str:
    """Return a text with the signs that mean something to LaTeX escaped."""
    return "".join(_ESCAPES.get(sign, sign) for sign in text)
