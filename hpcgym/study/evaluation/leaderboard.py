"""What an evaluation found: a row a policy, a value a slice, intervals, wins and regret."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.baselines.chance import RandomOrder
from hpcgym.baselines.schedulers import described
from hpcgym.errors import check_choice
from hpcgym.files.writing import csv_text, json_text, whole_text
from hpcgym.report.cells import Table, shown_p
from hpcgym.report.tables import best, text_of
from hpcgym.schedule.gains import FLOOR_H, FLOOR_WEIGHTED_H, MOST, broken_by
from hpcgym.schedule.metrics import LESS, MORE, Metric, metric_called
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.intervals import (
    Drawn,
    Floats,
    Rows,
    intervals,
    iqm,
    iqms_of,
    means_of,
    p_values,
    why_no_intervals,
    why_no_small_p,
    win_rates,
)
from hpcgym.units import HOUR_S

if TYPE_CHECKING:
    import pandas as pd

Columns = dict[str, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """What :func:`hpcgym.study.evaluate` returns.

    Attributes
    ----------
    values : metric -> its value on each slice: a row a slice, a column a policy, or each of several
        trainings; nan where it failed. The metric by which policies are ranked is one of them.
    schedulers : policy -> the rules it was simulated with; None for one that acted in an
        environment.
    metric : by which policies are ranked, a name of :data:`hpcgym.schedule.metrics.METRICS`.
    trainings : policy -> the columns of ``values`` that are trainings of it.
    failures : (policy, slice) -> what went wrong.
    intervals_of : metrics that have intervals beside the one that ranks: under limits of power and
        energy ``energy_j``, that of the whole schedule, and ``limited_energy_j``, that while limits
        hold [J]; where jobs share nodes ``makespan_s``.
    reference : the row that all are compared with; None: with none.
    compared : whether people are shown how far all are above it: it was asked for, or is
        "powercap", under budgets of energy, or "filler-co", where jobs share nodes.
    static_weights : feature -> weight of the row "best-static"; empty if it was left out.
    seed, resamples : of the confidence intervals.
    around : what was around slices: ``start``, ``warmup``, ``arrivals`` and ``horizon``, as
        :class:`hpcgym.envs.core.episodes.Episodes` takes them; empty where there can be nothing.
    groups : where an evaluation was ``by`` class or user, a row for each of them on each slice
        under each policy that did not fail: columns workload, slice, class or user, scheduler, jobs
        (their number) and the metric, nan without jobs; what :func:`hpcgym.study.summary`
        takes. Else None.
    left_out : how many jobs of these weeks or months are in no slice, as they cross the end of one.
    unseen : policy that acted on a window of jobs -> places of the window, and how many jobs waited
        at once at most; of those for which these were more.
    unlike : row -> rules that it has and the policies that act do not, in words; of those that have
        any.
    easy : the row of EASY, or of what stands in its place, on which gains are; None: no gains.
    """

    values: Mapping[str, pd.DataFrame]
    schedulers: Mapping[str, Scheduler | None]
    metric: str = "mean_bsld"
    trainings: Mapping[str, Sequence[str]] = field(default_factory=dict)
    failures: Mapping[tuple[str, str], str] = field(default_factory=dict)
    intervals_of: tuple[str, ...] = ()
    reference: str | None = None
    compared: bool = False
    static_weights: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    resamples: int = 2000
    around: Mapping[str, Any] = field(default_factory=dict)
    groups: pd.DataFrame | None = None
    left_out: int = 0
    unseen: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    unlike: Mapping[str, str] = field(default_factory=dict)
    easy: str | None = None

    def __repr__(self) -> str:
        tables = tables_of(self)
        return "\n".join([*(table.text() for table in tables), *notes_of(self, tables[0])])

    @property
    def ranked_by(self) -> Metric:
        """The metric by which policies are ranked."""
        metric = metric_called(self.metric)
        assert metric is not None  # or there was an error
        return metric

    @property
    def short(self) -> str:
        """What columns call the metric: "bsld" for ``mean_bsld``, else its name."""
        return "bsld" if self.metric == "mean_bsld" else self.metric

    @cached_property
    def by_slice(self) -> pd.DataFrame:
        """The metric on each slice: a row a slice, a column a policy; of trainings their mean."""
        return self.of(self.metric)

    def of(self, metric: str) -> pd.DataFrame:
        """Return another of ``values`` as :attr:`by_slice`."""
        import pandas as pd

        values = self.values[metric]
        columns = {
            name: values[self._columns(name)].mean(axis=1, skipna=False) for name in self.schedulers
        }
        return pd.DataFrame(columns, index=values.index)

    def _columns(self, name: str) -> list[str]:
        return list(self.trainings.get(name, (name,)))

    def _rows(self, metric: str) -> list[Floats]:
        """Return the values of each policy, (seeds, slices)."""
        values = self.values[metric]
        return [values[self._columns(name)].to_numpy().T for name in self.schedulers]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a policy, the best first; those that failed last.

        Columns are called by the metric, here ``mean_bsld``; of another, such as ``max_wait_s``,
        they are ``max_wait_s``, ``max_wait_s_low``, ``median_max_wait_s``, ``iqm_max_wait_s`` and
        so on.

        - ``mean_bsld``: the mean over the slices of the mean bounded slowdown of their jobs;
          ``mean_bsld_low`` and ``mean_bsld_high``: its 95 % confidence interval, the
          percentiles of the means over random subsets of the slices, the same subsets for all
          policies, see :func:`hpcgym.study.intervals.subsets`; of several trainings these are
          resampled too; nan with fewer than five slices, whose subsets would say nothing. It says
          how far the mean depends on the choice of slices and seeds.
        - ``median_bsld``: the median over the slices of the same. ``iqm_bsld``: the mean of the
          middle half of all values, of all slices and trainings, with its interval.
        - ``win_rate``: share of the slices on which no policy is better; k policies that are
          equally good get 1/k each, so that the rates add up to 1.
        - ``mean_regret``: mean over the slices of BSLD / BSLD of the slice's best policy - 1; where
          more is better, of the inverse; without slices whose best is 0.
        - ``mean_wait_s``, ``area_weighted_wait_s``, ``utilization``: means over the slices;
          policies may buy slowdown with them.
        - ``longest_wait_s``: the longest wait of all slices, and trainings.
        - ``gain``, where there is a row ``easy``: the mean over the slices of log(EASY's mean BSLD
          / that of the policy), with its interval: each slice counts alike, where a mean of
          slowdowns is that of a few crowded ones. ``gated_gain``: the same, 0 of a training that
          breaks the gate, see :attr:`gate`.
        - ``above_reference``, where there is a ``reference``: the mean BSLD less that of it;
          ``above_reference_low`` and ``above_reference_high``: the interval of :meth:`difference`;
          ``p_value``: of that difference being 0, see
          :func:`hpcgym.study.intervals.p_values`; nan of the reference itself. Nothing is
          corrected for the number of rows.
        - ``energy_j``, ``limited_energy_j``, under limits: the means of the energy of all, and of
          that while limits hold [J], each with its ``_low`` and ``_high``; where jobs share nodes
          ``makespan_s`` likewise, and ``improvement``: mean over the slices of the makespan of the
          reference over the policy's, less 1, with its interval.
        - ``seeds``, where a row is of several trainings: how many.
        - ``slices``, ``failed``: number of slices, and of those on which the policy failed. If it
          did, its means are nan: those of the other slices could not be compared with anything.
        """
        import pandas as pd

        values, rows = self.by_slice.to_numpy(), self._rows(self.metric)
        sign = -1 if self.ranked_by.better == MORE else 1
        columns: Columns = {
            **self._with_interval(self.metric, rows),
            f"median_{self.short}": np.median(values, axis=0),
            **self._ends(
                f"iqm_{self.short}", np.array([iqm(trainings) for trainings in rows]), rows, iqms_of
            ),
            "win_rate": win_rates(sign * values),
            "mean_regret": _regret(values, sign),
            "slices": np.full(values.shape[1], len(values)),
            "failed": np.isnan(values).sum(axis=0),
        }
        if self.trainings:
            columns["seeds"] = np.array([len(trainings) for trainings in rows])
        if self.reference is not None:
            columns |= self._above(list(self.schedulers).index(self.reference), rows)
        if _LONGEST in self.values:
            longest = [trainings.max() for trainings in self._rows(_LONGEST)]
            columns["longest_wait_s"] = np.array(longest)
        if self.easy is not None:
            columns |= self._gains(list(self.schedulers).index(self.easy))
        for name in self.values:
            if name in self.intervals_of:
                columns |= self._with_interval(name, self._rows(name))
            elif name not in (self.metric, _LONGEST):
                columns[name] = self.of(name).mean(skipna=False).to_numpy()
        if "makespan_s" in self.values and self.reference is not None:
            base = self.of("makespan_s")[self.reference].to_numpy()
            each = [base / makespans - 1 for makespans in self._rows("makespan_s")]
            columns |= self._with_interval("improvement", each)
        table = pd.DataFrame(columns, index=pd.Index(list(self.schedulers), name="policy"))
        return table.sort_values(self.metric, kind="stable", ascending=sign == 1)

    def _above(self, place: int, rows: Rows) -> Columns:
        """Return the columns of how far above a reference all are, and of p-values."""
        values = self.by_slice.to_numpy()
        less = values - values[:, [place]]

        def differences(rows: Rows, drawn: Drawn) -> Floats:
            means = means_of(rows, drawn)
            return means - means[:, [place]]

        p = p_values(less, self.seed)
        p[place] = np.nan
        above = self._ends("above_reference", less.mean(axis=0), rows, differences)
        return {**above, "p_value": p}

    @property
    def gate(self) -> dict[str, str]:
        """What breaks the gate of :mod:`hpcgym.schedule.gains`, by policy; "" if nothing does.

        It bounds ``longest_wait_s`` and ``area_weighted_wait_s``; of several trainings the first
        that breaks it. Empty without a row ``easy``.
        """
        if self.easy is None:
            return {}
        words = [", ".join(next((words for words in every if words), ())) for every in self._broken]
        return dict(zip(self.schedulers, words, strict=True))

    @cached_property
    def _broken(self) -> list[list[tuple[str, ...]]]:
        """What breaks the gate, of each policy by training."""
        both = zip(self._rows(_LONGEST), self._rows(_WEIGHTED), strict=True)
        waits = [
            [*zip((longest / HOUR_S).max(axis=1), (area / HOUR_S).mean(axis=1), strict=True)]
            for longest, area in both
        ]
        (easy,) = waits[list(self.schedulers).index(str(self.easy))]
        return [[broken_by(easy, own) for own in trainings] for trainings in waits]

    def _gains(self, easy: int) -> Columns:
        """Return the columns of what policies gain on EASY, which is the row of this number."""
        slowdowns = self._rows("mean_bsld")
        gains = [np.log(slowdowns[easy] / own) for own in slowdowns]
        kept = [np.array([not words for words in every]) for every in self._broken]
        gated = [
            (gain.mean(axis=1) * those).mean() for gain, those in zip(gains, kept, strict=True)
        ]
        return {**self._with_interval("gain", gains), _GATED: np.array(gated)}

    def _with_interval(self, name: str, rows: Rows) -> Columns:
        """Return the columns of the means of policies, and of their intervals."""
        return self._ends(name, np.array([trainings.mean() for trainings in rows]), rows, means_of)

    def _ends(
        self, name: str, values: Floats, rows: Rows, statistic: Callable[[Rows, Drawn], Floats]
    ) -> Columns:
        """Return the columns of a statistic, and of its intervals."""
        low, high = intervals(rows, statistic, self.resamples, self.seed)
        return {name: values, f"{name}_low": low, f"{name}_high": high}

    def difference(
        self, policy: str, reference: str, metric: str | None = None
    ) -> tuple[float, float, float]:
        """Return the mean of one policy less that of another, and its 95 % interval.

        By default of the metric by which policies are ranked; ``metric`` may be one of
        ``intervals_of`` as well.

        The interval is that of paired resamples: if it does not hold 0, the two differ by more than
        the choice of slices (and of seeds) explains.

        Returns
        -------
        mean, low, high : nan if one of them failed on a slice; the interval also with fewer than
            five slices.

        Raises
        ------
        HpcgymError : no such policy, or no such metric.
        """
        metric = self.metric if metric is None else metric
        check_choice("metric", metric, (self.metric, *self.intervals_of))
        for name in (policy, reference):
            check_choice("policy", name, self.schedulers)
        every = dict(zip(self.schedulers, self._rows(metric), strict=True))
        # one row if both are the same
        rows = [every[name] for name in dict.fromkeys((policy, reference))]

        def less(rows: Rows, drawn: Drawn) -> Floats:
            means = means_of(rows, drawn)
            return means[:, :1] - means[:, -1:]

        low, high = intervals(rows, less, self.resamples, self.seed)
        return float(rows[0].mean() - rows[-1].mean()), float(low[0]), float(high[0])

    # -- out of here -------------------------------------------------------------------------------

    @property
    def _rules(self) -> dict[str, dict[str, str | float | None]]:
        """The rules of rows that were simulated; a random order is called so."""
        return {
            name: scheduler.in_words()
            if isinstance(scheduler, RandomOrder)
            else described(scheduler)
            for name, scheduler in self.schedulers.items()
            if scheduler is not None
        }

    def facts(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, for JSON."""
        rules, each = self._rules, self.values[self.metric]
        members = {
            name: each[list(of)].to_dict(orient="index") for name, of in self.trainings.items()
        }
        return {
            "metric": self.metric,
            "policies": [
                {"name": name, **row, **self._gate_of(name), "scheduler": rules.get(str(name))}
                for name, row in self.table.to_dict(orient="index").items()
            ],
            "static_weights": dict(self.static_weights),
            "reference": self.reference,
            "left_out": self.left_out,
            "unseen": {name: list(numbers) for name, numbers in self.unseen.items()},
            "unlike": dict(self.unlike),
            "by_slice": self.by_slice.to_dict(orient="index"),
            **{f"{n}_by_slice": self.of(n).to_dict(orient="index") for n in self.intervals_of},
            **({"seeds_by_slice": members} if members else {}),
            "failures": [
                {"policy": policy, "slice": where, "error": error}
                for (policy, where), error in self.failures.items()
            ],
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as a list, each row with the rules of the scheduler, or without any."""
        rules = self._rules
        blank = dict.fromkeys(next(iter(rules.values()), {}))
        table = self.table.rename_axis("name").reset_index().to_dict("records")
        return [
            {**row, **self._gate_of(row["name"]), **rules.get(row["name"], blank)}  # type: ignore[dict-item]
            for row in table
        ]

    def _gate_of(self, name: Any) -> dict[str, str]:
        """Return what breaks the gate as an entry of a policy's row."""
        return {"gate": self.gate[str(name)]} if self.easy is not None else {}

    def to_json(self) -> str:
        """Return :meth:`facts` as JSON; what is no number is null."""
        return json_text(self.facts())

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Return :meth:`rows` as CSV, numbers in full; or write them into a file."""
        text = csv_text(self.rows())
        if path is None:
            return text
        with whole_text(path) as file:
            file.write(text)
        return None

    def to_latex(self) -> str:
        """Return the table for people as LaTeX's ``tabular``.

        It needs the package booktabs. The best of a column is bold.
        """
        return "\n".join(table.latex() for table in tables_of(self))


def _regret(values: Floats, sign: int) -> Floats:
    """Return the mean regret of each policy, over slices whose best is not 0."""
    best = sign * np.fmin.reduce(sign * values, axis=1)[:, None]  # fmin passes over nan
    some = best[:, 0] != 0
    if not some.any():
        return np.full(values.shape[1], np.nan)
    values, best = values[some], best[some]
    with np.errstate(divide="ignore"):
        shares = values / best if sign == 1 else best / values
    return np.asarray((shares - 1.0).mean(axis=0))


# --- The table that people are shown --------------------------------------------------------------

#: Metrics of each slice by which the gate is broken, or kept.
_LONGEST, _WEIGHTED = "max_wait_s", "area_weighted_wait_s"
_GATED, _BY = "gated_gain", re.compile(r"(longest|weighted) wait ")  # which wait breaks it

_P = Metric("p_value", "p", "")
_BSLD = Metric("mean_bsld", "mean\nBSLD", "", LESS)
_WAIT = Metric("mean_wait_s", "mean wait\n(h)", "", LESS, 1 / HOUR_S)
_TAILS = (
    Metric("longest_wait_s", "longest\nwait (h)", "", LESS, 1 / HOUR_S),
    Metric(_WEIGHTED, "weighted\nwait (h)", "", LESS, 1 / HOUR_S),
)
_ON_SLICES = (
    Metric("win_rate", "wins\n(%)", "", MORE, 100),
    Metric("mean_regret", "regret\n(%)", "", LESS, 100),
)
_LIMITED = (
    Metric("limited_energy_j", "energy under\nlimits (kWh)", "", LESS, 1 / 3.6e6),
    Metric("energy_j", "energy of\nall (kWh)", "", LESS, 1 / 3.6e6),
)
_SHARED = (
    Metric("makespan_s", "makespan\n(h)", "", LESS, 1 / HOUR_S),
    Metric("improvement", "improvement\n(%)", "", MORE, 100),
)
_UTILIZATION = Metric("utilization", "utilization\n(%)", "", MORE, 100)


def _columns_of(board: Leaderboard) -> list[Metric]:
    """Return the columns of the first table, but for intervals; headings have up to two lines.

    Beside the metric, by which policies are ranked, how far all are above the reference is there
    where one was asked for or there is a usual one, and the interquartile mean where a row is of
    several trainings.
    """
    ranked = board.ranked_by
    short = ranked.title
    begin, _, end = short.rpartition(" ")
    broken = f"{begin}\n{end}" if begin else short

    def like(name: str, title: str) -> Metric:
        return Metric(name, title, "", ranked.better, ranked.scale)

    first = like(ranked.name, f"{short}\n({ranked.unit})" if ranked.unit else broken)
    spread = [like(f"median_{board.short}", "median\nBSLD" if short == "mean BSLD" else "median")]
    spread += [like(f"iqm_{board.short}", "IQM")] if board.trainings else []
    above = [like("above_reference", f"above\n{board.reference}")] if board.compared else []
    if "makespan_s" in board.intervals_of:
        columns = [first, *above, _P, *_SHARED, _BSLD]
    elif board.intervals_of:
        columns = [first, *above, _P, _BSLD, *_LIMITED]
    else:
        # with all of these it would be wider than a terminal
        wide = [*_ON_SLICES[:1], *above, _P] if above else [*_ON_SLICES, _P, _UTILIZATION]
        columns = [first, *spread, *wide, _BSLD]
    return _known(board, columns)


def _columns_of_gains(board: Leaderboard) -> list[Metric]:
    """Return those of the second table: what is gained week by week, and who waits for that."""
    gain = Metric("gain", f"gain on\n{board.easy}", "", MORE)
    gated = Metric(_GATED, "under\nthe gate", "", MORE)
    columns = _known(board, [gain, gated, *_TAILS, _WAIT])
    return [column for column in columns if column.name != board.metric]


def _known(board: Leaderboard, columns: Sequence[Metric]) -> list[Metric]:
    """Return the columns that a board has; the first of a name counts."""
    each = {metric.name: metric for metric in reversed(columns)}
    return [
        column for column in columns if each[column.name] is column and column.name in board.table
    ]


def tables_of(board: Leaderboard) -> list[Table]:
    """Return the tables for people: by what policies are ranked, and what jobs wait for that."""
    tables = [_table_of(board, _columns_of(board))]
    if gains := _columns_of_gains(board):
        tables.append(_table_of(board, gains))
    return tables


def _table_of(board: Leaderboard, metrics: Sequence[Metric]) -> Table:
    """Return some columns of a leaderboard; intervals stay beside what they are of."""
    table = board.table
    heading, columns, groups = ["policy"], [[(str(policy), False) for policy in table.index]], []
    for metric in metrics:
        name, values = metric.name, table[metric.name].tolist()
        texts = [_text_of(metric, value) for value in values]
        if name == _GATED:
            by = [_BY.findall(board.gate[str(policy)]) for policy in table.index]
            broken = zip(texts, by, strict=True)
            texts = [f"{text} ({', '.join(waits)})" if waits else text for text, waits in broken]
        heading.append(metric.title)
        groups.append(name)
        columns.append(list(zip(texts, best(metric, values), strict=True)))
        if f"{name}_low" in table:
            ends = zip(table[f"{name}_low"], table[f"{name}_high"], strict=True)
            of_differences = name == "above_reference"
            above = metric.title.replace("\n", " ")
            groups.append(name)
            heading.append(f"95 % interval\n{above}" if of_differences else "95 %\ninterval")
            columns.append([(interval_in_words(metric, *each), False) for each in ends])
    return Table(heading, [list(row) for row in zip(*columns, strict=True)], groups=groups)


def _text_of(metric: Metric, value: float) -> str:
    """Return a number for people; gains are logarithms, of which a hundredth is one per cent."""
    if metric is _P:
        return shown_p(value)
    if metric.name in ("gain", _GATED) and value == value:
        return f"{value:.2f}"
    return text_of(metric, value)


def interval_in_words(metric: Metric, low: float, high: float) -> str:
    """Return an interval for people; "-" without one."""
    return "-" if low != low else f"{_text_of(metric, low)} to {_text_of(metric, high)}"


# --- What is said below it ------------------------------------------------------------------------


def of_few_slices(board: Leaderboard) -> list[str]:
    """Return what so few slices cannot have, in lines: intervals, or p-values that are small."""
    number = len(board.by_slice)
    lines = [why_no_intervals(number, "slices")]
    lines += [] if board.reference is None else [why_no_small_p(number, "slices")]
    return [line for line in lines if line]


def notes_of(board: Leaderboard, table: Table) -> list[str]:
    """Return what is said below a leaderboard, of which ``table`` is shown, in lines."""
    marked = any(best for row in table.cells for _, best in row)
    lines = ["* best of its column"] if marked else []
    lines += of_few_slices(board)
    if (other := board.reference) is not None:
        above = [f"above {other}: {board.ranked_by.title} less that of {other}"]
        chance = f"p: chance of a difference this large if the policy is as good as {other}"
        lines.append("; ".join([*(above if board.compared else ()), chance]))
    if (easy := board.easy) is not None:
        lines += [
            f"gain: the mean over slices of log({easy} / policy) of mean BSLDs; each slice counts"
            " alike, where the mean BSLD is that of a few crowded ones",
            f"under the gate: 0 if the longest wait is over {MOST:g} times that of {easy} and"
            f" {FLOOR_H:g} h, or the wait weighted by area over {MOST:g} times that of {easy} and"
            f" {FLOOR_WEIGHTED_H:g} h",
        ]
    for name, members in board.trainings.items():
        if len(members) > 1:
            lines.append(f"{name}: means of {len(members)} trainings; intervals resample them too")
    lines += _of_acting(board)
    if board.static_weights:
        weights = ", ".join(f"{w:.3g} {name}" for name, w in board.static_weights.items())
        lines.append(f"best-static: {weights}; chosen on the train part")
    return lines


def _of_acting(board: Leaderboard) -> list[str]:
    """Return what there is to know of policies that act in an environment, in lines."""
    if None not in board.schedulers.values():
        return []
    lines = [
        f"rules behind a name, as in {name}, are those of the environment in which policies act"
        for name, scheduler in board.schedulers.items()
        if name.endswith(")") and scheduler is not None
    ][:1]
    if board.unlike:
        others = "; ".join(f"{row}: {rules}" for row, rules in board.unlike.items())
        lines.append(f"rules that policies which act here do not have: {others}")
    return lines + [
        f"{name}: sees at most {places:,} waiting jobs, and up to {waiting:,} waited at once: the"
        " others come after these"
        for name, (places, waiting) in board.unseen.items()
    ]
