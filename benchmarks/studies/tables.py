"""Tables of studies: as Markdown in reports, of what a text says, and with intervals of means."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym import __version__
from hpcgym.report import canvas
from hpcgym.report.cells import latex
from hpcgym.study.intervals import FEWEST

Floats = NDArray[np.float64]

#: What functions yield that :func:`of_rows` makes tables of.
Rows = Iterator[Mapping[Any, Any]]
Given = ParamSpec("Given")


def of_rows(rows: Callable[Given, Rows]) -> Callable[Given, pd.DataFrame]:
    """Return a function that makes a table of the rows which another one yields."""

    @wraps(rows)
    def made(*values: Given.args, **named: Given.kwargs) -> pd.DataFrame:
        return pd.DataFrame(list(rows(*values, **named)))

    return made


# --- Tables as Markdown ---------------------------------------------------------------------------

#: What is in the heads of columns of numbers about 1 or below.
_PARTS = re.compile(r"\bratio\b| / |\bshare\b|Spearman|Kendall")


def table_text(table: pd.DataFrame) -> str:
    """Return a table as Markdown: numbers to the right, ratios and gains with few digits."""
    sides = ["---:" if number else "---" for number in _numeric(table)]
    lines = [f"| {' | '.join(map(str, table.columns))} |", f"|{'|'.join(sides)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(cells)} |" for cells in _cells(table))]) + "\n"


def latex_text(table: pd.DataFrame) -> str:
    """Return a table as LaTeX, with the digits of :func:`table_text`; words stand in front."""
    heads, numeric = [str(column) for column in table.columns], _numeric(table)
    words = numeric.index(True) if True in numeric else len(numeric)
    rows = [[(cell.replace("\\|", "|"), False) for cell in cells] for cells in _cells(table)]
    return latex(heads, rows, min(max(words, 1), len(heads)))


def _numeric(table: pd.DataFrame) -> list[bool]:
    """Return which columns are of numbers."""
    return [table[column].dtype.kind in "if" for column in table.columns]


def _cells(table: pd.DataFrame) -> Iterator[list[str]]:
    """Return the cells of each row for people."""
    for row in table.itertuples(index=False):
        yield [_cell(str(head), value) for head, value in zip(table.columns, row, strict=True)]


def _cell(head: str, value: Any) -> str:
    """Return a value for people."""
    if isinstance(value, str):
        return value.replace("|", "\\|")
    if value is None or value != value:  # NaN
        return ""
    if "%" in head:
        return f"{value:+.1f}"
    form = ".3f" if _PARTS.search(head) else ",.2f" if isinstance(value, float) else ","
    return format(value, form)


def read_texts(
    module: str, file: str = "report.md", **values: Any
) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return what is said in a report: its head, and by name of a table its heading and a note.

    Parameters
    ----------
    module : the file of the study's module.
    file : beside it, in Markdown: the head, then ``## name: heading`` and a note for each table.
    values : what stands in notes for names in braces; those of the head are left to the report,
        but for the version.
    """
    text = Path(module).with_name(file).read_text(encoding="utf-8")
    head, *sections = text.replace("{version}", __version__).split("\n## ")
    texts = {}
    for section in sections:
        title, _, note = section.partition("\n")
        name, heading = title.split(": ", 1)
        texts[name] = heading, " ".join(note.split()).format(**values)
    return head, texts


#: Name of a table -> its heading in a report, and what is said below that; in order.
Texts = Mapping[str, tuple[str, str]]


def table_sections(made: Mapping[str, pd.DataFrame], texts: Texts) -> list[str]:
    """Return the parts of a report that have tables.

    Parameters
    ----------
    made : the tables by name; columns without any value, such as of what is not published, are
        left out.
    texts : name of a table -> heading, and what is said below it; the order of the report.
    """
    parts = []
    for name, (heading, note) in texts.items():
        if name in made:
            said = [f"{note}\n"] if note else []
            filled = made[name].dropna(axis="columns", how="all")
            parts += [f"## {heading}\n", *said, table_text(filled)]
    return parts


#: What is found of a sentence of a text: in words, and whether it is so; None: nothing is known.
Finding = tuple[str, bool | str | None]
NOT_SIMULATED: Finding = ("not simulated", None)
NOT_KNOWN: Finding = ("not known", None)


def statements_table(
    said: Sequence[Mapping[str, str]], findings_by_name: Mapping[str, Sequence[Finding]]
) -> pd.DataFrame:
    """Return sentences of a text, and whether they are so.

    Parameters
    ----------
    said : "item", "sentence", and how it is "published".
    findings_by_name : what it was looked at in, such as a trace -> findings, one a sentence.
    """
    table = pd.DataFrame(said, columns=["item", "sentence", "published"])
    words = {True: "yes", False: "no", None: ""}
    for name, findings in findings_by_name.items():
        table[f"ours, {name}"] = [ours for ours, _ in findings]
        table[f"so, {name}"] = [words.get(so, so) for _, so in findings]  # type: ignore[arg-type]
    return table


def checked(said: Sequence[Mapping[str, str]], frames: Mapping[str, pd.DataFrame]) -> list[Finding]:
    """Return whether sentences are so; in words of how many rows, and means of what they name.

    Parameters
    ----------
    said, frames : see :func:`rows_about`; "share" of the rows for which a sentence must be so, "":
        all. A row without a value of what the sentence names is not known, and not counted.
    """
    findings: list[Finding] = []
    for sentence in said:
        rows = rows_about(sentence, frames)
        known, so = so_of(rows, sentence["so"])
        if not len(known):
            findings.append(NOT_KNOWN if len(rows) else NOT_SIMULATED)
            continue
        words = [f"in {so.sum()} of {len(so)}"] if len(so) > 1 else []
        means = known[named_in(known, sentence["so"])].astype(float).mean()
        words += [listed(means.rename(lambda name: name.replace("_", " ")), "{:,.4g}")]
        findings.append((": ".join(words), bool(so.mean() >= float(sentence["share"] or 1))))
    return findings


def filled(
    said: Sequence[Mapping[str, str]], frames: Mapping[str, pd.DataFrame]
) -> dict[str, bool]:
    """Return sentences of a text, and whether they are so.

    Parameters
    ----------
    said, frames : see :func:`rows_about`; a "sentence" is one for each row, whose values stand in
        it for names in braces. With a "share", of the rows that must be so, it is one of all rows,
        and "{share}" stands for how many are.
    """
    so_by_sentence = {}
    for about in said:
        known, so = so_of(rows_about(about, frames), about["so"])
        if about["share"] and len(known):
            sentence = about["sentence"].format(share=so.mean())
            so_by_sentence[sentence] = bool(so.mean() >= float(about["share"]))
        elif len(known):
            sentences = [about["sentence"].format(**row) for row in known.to_dict("records")]
            so_by_sentence |= dict(zip(sentences, so.tolist(), strict=True))
    return so_by_sentence


def rows_about(sentence: Mapping[str, str], frames: Mapping[str, pd.DataFrame]) -> Any:
    """Return the rows that a sentence is about.

    Parameters
    ----------
    sentence : "of", the frame that it is about; "where", which of its rows, "": all.
    frames : by name.
    """
    rows: Any = frames[sentence["of"]]
    return rows.query(sentence["where"]) if sentence["where"] and len(rows) else rows


def so_of(rows: Any, expression: str) -> tuple[Any, Any]:
    """Return the rows that have a value of all that an expression names, and whether it is so."""
    known = rows.dropna(subset=named_in(rows, expression))
    return known, known.eval(expression).astype(bool) if len(known) else None


def named_in(rows: Any, expression: str) -> list[str]:
    """Return the columns that an expression names."""
    return [name for name in rows if re.search(rf"\b{re.escape(name)}\b", expression)]


def listed(values: Any, form: str) -> str:
    """Return values by their names in one line; ``form`` is of a value, such as "{:.2f}"."""
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


# --- Intervals of means, by resamples of what was averaged ----------------------------------------


def resampled(values: Floats, random: np.random.Generator | None = None) -> Floats:
    """Return the means of 2,000 resamples of values; seeded."""
    random = np.random.default_rng(0) if random is None else random
    means: Floats = values[random.integers(0, len(values), (2_000, len(values)))].mean(axis=1)
    return means


def interval(values: Floats, digits: int = 2) -> str:
    """Return the 95 % interval of a mean, of 2,000 resamples of the values; seeded."""
    return interval_of_groups([values], digits)


def interval_of_groups(groups: Sequence[Floats], digits: int = 2) -> str:
    """Return the interval of :func:`ends_of_groups` as a text."""
    ends = ends_of_groups(groups)
    return "-" if ends is None else "[{:.{d}f}, {:.{d}f}]".format(*ends, d=digits)


def ends_of_groups(groups: Sequence[Floats]) -> tuple[float, float] | None:
    """Return the ends of the 95 % interval of the mean of the means of groups; None: too few.

    Each group is resampled by itself.
    """
    if min(map(len, groups)) < FEWEST:
        return None
    random = np.random.default_rng(0)
    means = np.mean([resampled(values, random) for values in groups], axis=0)
    low, high = np.percentile(means, [2.5, 97.5]).tolist()
    return low, high


def pearson(first: Floats, second: Floats) -> float:
    """Return the linear correlation of two series; NaN where one of them does not vary."""
    a, b = first - first.mean(), second - second.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else float("nan")


# --- Pictures -------------------------------------------------------------------------------------


def log_ticks(axis: Any, digits: Sequence[float] = (1, 2, 5)) -> None:
    """Put these multiples of the powers of ten beside a logarithmic axis."""
    from matplotlib.ticker import LogLocator

    axis.set_major_locator(LogLocator(subs=digits))
    axis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.set_minor_formatter("")


def finish(
    axes: canvas.Axes,
    heading: str = "",
    note: str = "",
    *,
    x: str = "",
    y: str = "",
    log: str = "",
    grid: str | None = "y",
) -> None:
    """Label axes, and put what their lines are called and a heading above them.

    Parameters
    ----------
    heading, note : in bold, and below it; without a heading there is none, and no legend.
    x, y : labels.
    log : which axes are logarithmic: "x", "y" or "xy".
    grid : see :func:`hpcgym.report.canvas.plain`.
    """
    for name in log:
        axes.set(**{f"{name}scale": "log"})
        log_ticks(axes.xaxis if name == "x" else axes.yaxis)
    axes.set(**{f"{name}label": text for name, text in (("x", x), ("y", y)) if text})
    canvas.plain(axes, grid)
    if heading:
        _, names = axes.get_legend_handles_labels()
        rows = canvas.legend_above(axes, names) if names else 0
        canvas.title(axes, heading, note, legend_rows=rows)


def legend_below(figure: canvas.Figure, handles: Any, labels: Any, columns: int) -> None:
    """Put one legend below all panels of a figure."""
    style: dict[str, Any] = {"ncols": columns, "fontsize": 8, "frameon": False}
    figure.legend(handles, labels, loc="outside lower center", **style)


def heading_above(figure: canvas.Figure, text: str) -> None:
    """Put a heading above all panels of a figure."""
    figure.suptitle(text, x=0.01, horizontalalignment="left", fontsize=10, fontweight="bold")
