"""Means over slices, seeds and shuffles, as a table for people, in any format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcgym.cli.tables import Sheet, rows_of
from hpcgym.errors import HpcgymError, check_choice, check_each_once
from hpcgym.report.cells import Table
from hpcgym.study.sweep import OF_GROUPS, OF_JOBS

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.schedule.metrics import Metric

_IMPROVEMENT = "makespan_improvement"

_UNEQUAL = (
    "rows over some of the simulations only, as 4 of 12, are means over other jobs than the other"
    " rows: none of them is marked as the best"
)


class Means(NamedTuple):
    """Means over slices, seeds and shuffles.

    Attributes
    ----------
    sheet : what people see.
    rows : the numbers in full; without statistics those of each simulation.
    few : why no row has an interval; empty if one has, or none is asked for.
    """

    sheet: Sheet
    rows: list[dict[str, Any]]
    few: str


def split_metrics(given: Iterable[str], known: Collection[str]) -> list[str]:
    """Return the metrics of ``--metric``, which are also joined by commas.

    Raises
    ------
    HpcgymError : an unknown one, or one twice.
    """
    chosen = [name.strip() for text in given for name in text.split(",")]
    check_each_once("--metric", chosen)
    return [check_choice("--metric", name, known) for name in chosen]


@dataclass(frozen=True)
class MeansTable:
    """What a table of means has.

    Experiment
    ----------
    metric NAME... : Metrics, also joined by commas. [default: some of the main ones; the first of
        these with the options below]
    ci : 95 % intervals of the means, over resampled simulations.
    paired SCHEDULER : How far the others are above this one on the same jobs, with its interval,
        effect size (mean over standard deviation of the differences) and p-value (permutations).
    normalise SCHEDULER : Geometric means of the ratios to this one's values on the same jobs.
    by slice|seed|shuffle|class|size|user|queue|... : A row for each, such as each week. Groups of
        jobs need by = ["class", "user"], say, in the experiment; classes by run time are short,
        below 10 minutes, medium, below 2 hours, and long. [default: one row for all]
    """

    metric: list[str] | None = None
    ci: bool = False
    paired: str | None = None
    normalise: str | None = None
    by: str | None = None

    @property
    def statistics(self) -> bool:
        """Whether more than the usual means are asked for."""
        return bool(self.ci or self.paired or self.normalise or self.by)

    def read(self, folder: Path) -> pd.DataFrame:
        """Return the rows of a sweep that the table is made of."""
        from hpcgym.schedule.groups import GROUPED_BY
        from hpcgym.study import read_table

        if self.by in GROUPED_BY:
            return read_table(folder, self.by)
        rows = read_table(folder)
        if self.by is not None:
            known = [name for name in OF_JOBS if name in rows]
            check_choice("--by", self.by, [*known, *GROUPED_BY])
        return rows

    def metrics_of(self, rows: pd.DataFrame) -> list[Metric]:
        """Return the metrics of the table.

        Raises
        ------
        HpcgymError : one that the sweep has not, or one twice; or none is done yet that has any.
        """
        from hpcgym.report.tables import COMPARED, SHARED, described
        from hpcgym.schedule.groups import GROUPED_BY

        keys = (*OF_GROUPS, *OF_JOBS, *GROUPED_BY, "scheduler")
        columns = [str(name) for name in rows.columns if name not in keys]
        if self.metric:
            if rows.empty:
                raise HpcgymError("--metric is of simulations that are done, and none is yet")
            return described(split_metrics(self.metric, columns))
        usual = SHARED if "speedups" in rows else COMPARED
        names = [name for name in usual if name in columns] or columns
        return described(names[:1] if self.statistics else names)

    def numbers(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the table as numbers; see :func:`hpcgym.study.intervals.summary`."""
        from hpcgym.study.intervals import summary

        names = [metric.name for metric in self.metrics_of(rows)]
        return summary(
            rows,
            names,
            intervals=names if self.ci else [name for name in names if name == _IMPROVEMENT],
            paired=self.paired,
            normalise=self.normalise,
            by=self.by,
        )


def means_of(rows: pd.DataFrame, first: str, asked: MeansTable, above: Sequence[str] = ()) -> Means:
    """Return the means over slices, seeds and shuffles.

    Makespans improve over those of the scheduler ``first``. ``above``: what stands above the table.
    """
    from hpcgym.report.cells import two_lines
    from hpcgym.study.intervals import why_no_small_p

    table = asked.numbers(rows)
    metrics = asked.metrics_of(rows)
    keys = [str(name) for name in table.columns[: list(table.columns).index("simulations")]]
    lines = table.to_dict("records")
    wholes = _wholes(lines, rows, keys)
    columns = [_column(metric, asked, lines, keys, wholes) for metric in metrics]
    heading = [*keys, "simulations", *(text for column in columns for text in column[0])]
    cells = [
        [
            *((word(line[key]), False) for key in keys),
            (_number(line["simulations"], whole), False),
            *(cell for _, rows_of in columns for cell in rows_of[place]),
        ]
        for place, (line, whole) in enumerate(zip(lines, wholes, strict=True))
    ]
    few = _few(lines) if any(name.endswith("_low") for name in table.columns) else ""
    no_small_p = "" if asked.paired is None else why_no_small_p(_most(lines), "simulations")
    notes = _notes(lines, metrics, first, asked, few)
    notes += [no_small_p] if no_small_p else []
    if any(line["simulations"] < whole for line, whole in zip(lines, wholes, strict=True)):
        notes.insert(0, _UNEQUAL)
    notes.insert(0, "means over simulations; * best of its workload")
    groups = ["simulations"]
    for metric, (heads, _) in zip(metrics, columns, strict=True):
        groups += [metric.name] * len(heads)
    shown = Table([*map(two_lines, heading)], cells, len(keys), groups=groups)
    below_csv = "; ".join(line for line in (few, no_small_p) if line) if asked.statistics else ""
    return Means(
        Sheet(above, [shown], notes), _plain_rows(table if asked.statistics else rows), below_csv
    )


def _wholes(lines: list[dict[Hashable, Any]], rows: pd.DataFrame, keys: list[str]) -> list[int]:
    """Return for each line how many simulations a scheduler has that did all of its workload."""
    jobs = [name for name in OF_JOBS if name in rows]
    once = rows.drop_duplicates([*keys[:-1], *jobs]).to_dict("records")
    known = Counter(_group(row, keys) for row in once)
    return [known[_group(line, keys)] for line in lines]


def _group(line: Mapping[Hashable, Any], keys: list[str]) -> tuple[str, ...]:
    """Return what a line is of, but for its scheduler."""
    return tuple(word(line[key]) for key in keys[:-1])


def _number(simulations: int, whole: int) -> str:
    return f"{simulations:,}" + (f" of {whole:,}" if simulations < whole else "")


def _column(
    metric: Metric,
    asked: MeansTable,
    lines: list[dict[Hashable, Any]],
    keys: list[str],
    wholes: list[int],
) -> tuple[list[str], list[list[tuple[str, bool]]]]:
    """Return the headings of what there is of a metric, and the cells of each line.

    Only lines over all jobs of their workload may be the best: ``wholes`` of :func:`_wholes`.
    """
    from hpcgym.report.cells import shown_p
    from hpcgym.report.tables import best, text_of
    from hpcgym.words import shown

    name = metric.name
    shows: Callable[[float], str] = partial(text_of, metric)
    heading = [metric.heading]
    if asked.normalise is not None:
        heading = [f"{metric.title} / {asked.normalise}"]
        shows = shown
    with_ends = any(f"{name}_low" in line for line in lines)
    heading += ["95 % interval"] if with_ends else []
    lacking = any(line["simulations"] > line.get(f"{name}_ratios", 0) for line in lines)
    with_ratios = asked.normalise is not None and lacking
    heading += ["ratios"] if with_ratios else []
    if asked.paired is not None:
        heading += _of_differences(asked.paired)
    rows = []
    whole = [line["simulations"] == number for line, number in zip(lines, wholes, strict=True)]
    shown_as = metric if asked.normalise is None else metric._replace(scale=1)
    for place, line in enumerate(lines):
        group = _group(line, keys)
        rivals = [k for k, rival in enumerate(lines) if whole[k] and _group(rival, keys) == group]
        tops = best(shown_as, [lines[k][name] for k in rivals])
        top = whole[place] and tops[rivals.index(place)]
        cells = [(shows(line[name]), top)]
        cells += [(_ends(line, name, shows), False)] if with_ends else []
        cells += [(f"{line[f'{name}_ratios']:,}", False)] if with_ratios else []
        if asked.paired is not None:
            above = f"{name}_above"
            texts = [text_of(metric, line[above]), _ends(line, above, partial(text_of, metric))]
            texts += [shown(line[f"{name}_effect"]), shown_p(line[f"{name}_p"])]
            cells += [(text, False) for text in texts]
        rows.append(cells)
    return heading, rows


def _of_differences(reference: str) -> list[str]:
    """Return the headings of what there is of differences from a scheduler."""
    above = f"above {reference}"
    return [above, f"95 % interval {above}", "effect", "p"]


def _ends(line: Mapping[Hashable, Any], name: str, shows: Callable[[float], str]) -> str:
    """Return an interval of a line in words."""
    low, high = line[f"{name}_low"], line[f"{name}_high"]
    return "-" if low != low else f"{shows(low)} to {shows(high)}"


def _notes(
    lines: list[dict[Hashable, Any]], metrics: list[Metric], first: str, asked: MeansTable, few: str
) -> list[str]:
    """Return what is said below the table; ``few`` as of :class:`Means`."""
    from hpcgym.schedule.groups import classes_in_words

    on_intervals = few or "intervals of resampled simulations"
    improves = any(metric.name == _IMPROVEMENT for metric in metrics)
    notes = [f"makespans improve over those of {first}; {on_intervals}"] if improves else []
    if (asked.ci or asked.paired) and not improves:
        notes.append(on_intervals)
    if asked.paired is not None:
        notes.append(
            f"above {asked.paired}: mean of the differences on the same jobs, in the unit of the"
            " metric; effect: that mean over their standard deviation; p: permutation test, not"
            " corrected for the number of rows"
        )
    if asked.by in ("class", "size"):
        notes.append(classes_in_words(asked.by))
    if asked.normalise is not None:
        notes.append(f"ratios to {asked.normalise} on the same jobs: geometric means")
        for metric in metrics:
            without = sum(line["simulations"] - line[f"{metric.name}_ratios"] for line in lines)
            if without:
                text = f"{without:,} simulations have no ratio of {metric.name}"
                notes.append(f"{text}: one of the values is missing or not above 0")
    return notes


def _few(lines: list[dict[Hashable, Any]]) -> str:
    """Return that all lines have too few simulations for an interval; nothing if one has enough."""
    from hpcgym.study.intervals import why_no_intervals

    return why_no_intervals(_most(lines), "simulations")


def _most(lines: list[dict[Hashable, Any]]) -> int:
    """Return the number of simulations of the line that has most."""
    return max((line["simulations"] for line in lines), default=0)


def word(value: Any) -> str:
    """Return a value in a table; of what is missing nothing."""
    return "" if value is None or value != value else str(value)  # such as no seed


def _plain_rows(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table; without a seed it is None."""
    if "seed" in rows:
        rows = rows.assign(seed=rows["seed"].astype(object).where(rows["seed"].notna(), None))
    return rows_of(rows)
