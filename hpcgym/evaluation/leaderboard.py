"""What an evaluation found: a row a policy, a value a slice, intervals, wins and regret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import RandomOrder
from hpcgym.baselines.schedulers import described
from hpcgym.errors import HpcgymError, PolicyWarning, unknown, warn_caller
from hpcgym.evaluation.brought import Groups, folded, folded_failures
from hpcgym.evaluation.intervals import (
    Drawn,
    Ends,
    Rows,
    intervals,
    iqm,
    iqms_of,
    means_of,
    p_values,
    win_rates,
)
from hpcgym.files.writing import csv_text, json_text, whole_text
from hpcgym.report.tables import Cell, best, latex, shown_p, text_of
from hpcgym.schedule.metrics import LESS, MORE, Metric, known_metrics
from hpcgym.scheduler.rules import Scheduler

if TYPE_CHECKING:
    import pandas as pd


# --- The columns of a leaderboard that people are shown -------------------------------------------

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


def cells_of(board: Leaderboard, metric: Metric) -> list[Cell]:
    """Return the texts of a column, and which are the best of it."""
    values: Sequence[float] = board.table[metric.name].tolist()
    tops = best(metric, values)
    texts = [shown_p(value) if metric is _P else text_of(metric, value) for value in values]
    return list(zip(texts, tops, strict=True))


def interval_of(metric: Metric, row: Any) -> tuple[str, str] | None:
    """Return the ends of an interval of a row of the table; None without one."""
    low, high = row[f"{metric.name}_low"], row[f"{metric.name}_high"]
    return None if low != low else (text_of(metric, low), text_of(metric, high))


def lines_of(board: Leaderboard) -> tuple[list[str], list[list[Cell]]]:
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


# --- What an evaluation found ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Leaderboard:
    """What :func:`hpcgym.evaluation.evaluate` returns.

    Attributes
    ----------
    by_slice : the metric of each slice: a row a slice, a column a policy; of several trainings
        their mean; nan where the policy failed.
    schedulers : policy -> the rules it was simulated with; None for one that acted in an
        environment.
    static_weights : feature -> weight of the row "best-static"; empty if it was left out.
    failures : (policy, slice) -> what went wrong.
    seed, resamples : of the confidence intervals.
    costs : what else to look at, since a policy may buy slowdown with it: a row a policy, with the
        means over the slices of ``mean_wait_s`` and ``utilization``, and of ``mean_bsld`` where
        policies are ranked by another metric.
    references : rows that all are compared with, by the best of them: that which was asked for; or
        dispatchers and references, if a dispatcher that solves a model is among them; under budgets
        of energy "powercap", where jobs share nodes "filler-co"; else none.
    energy : under limits of power and energy: ``energy_j``, that of the whole schedule, and
        ``limited_energy_j``, that while limits hold -> values as in ``by_slice`` [J].
    makespans : where jobs share nodes, values as in ``by_slice`` [s]; else None.
    metric : by which policies are ranked, a name of :data:`hpcgym.schedule.metrics.METRICS`.
    plain : the row that all are compared with where there are no ``references``; None: with none.
    members : metric -> row of several trainings -> values of each of them, a row a slice.
    around : what was around slices: ``start``, ``warmup``, ``arrivals`` and ``horizon``, as
        :class:`hpcgym.envs.core.episodes.Episodes` takes them; empty where there can be nothing.
    groups : where an evaluation was ``by`` class or user, a row for each of them on each slice
        under each policy that did not fail: columns workload, slice, class or user, scheduler, jobs
        (their number) and the metric, nan without jobs; what :func:`hpcgym.evaluation.intervals`
        takes. Else None.
    left_out : how many jobs of these weeks or months are in no slice, as they cross the end of one.
    unseen : policy that acted on a window of jobs -> places of the window, and how many jobs waited
        at once at most; of those for which these were more.
    """

    by_slice: pd.DataFrame
    schedulers: Mapping[str, Scheduler | None]
    static_weights: Mapping[str, float]
    failures: Mapping[tuple[str, str], str]
    seed: int = 0
    resamples: int = 2000
    costs: pd.DataFrame | None = None
    references: tuple[str, ...] = ()
    energy: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    makespans: pd.DataFrame | None = None
    metric: str = "mean_bsld"
    plain: str | None = None
    members: Mapping[str, Mapping[str, pd.DataFrame]] = field(default_factory=dict)
    around: Mapping[str, Any] = field(default_factory=dict)
    groups: pd.DataFrame | None = None
    left_out: int = 0
    unseen: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def __repr__(self) -> str:
        slices, policies = self.by_slice.shape
        return f"Leaderboard({policies} policies, {slices} slices)"

    @property
    def ranked_by(self) -> Metric:
        """The metric by which policies are ranked."""
        return known_metrics()[self.metric]

    @property
    def short(self) -> str:
        """What columns call the metric: "bsld" for ``mean_bsld``, else its name."""
        return "bsld" if self.metric == "mean_bsld" else self.metric

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row a policy, the best first; those that failed last.

        Columns are called by the metric, here ``mean_bsld``; of another, such as ``max_wait_s``,
        they are ``max_wait_s``, ``max_wait_s_low``, ``median_max_wait_s``, ``iqm_max_wait_s`` and
        so on.

        - ``mean_bsld``: the mean over the slices of the mean bounded slowdown of their jobs;
          ``mean_bsld_low`` and ``mean_bsld_high``: its 95 % bootstrap confidence interval, the
          percentiles of the means over random resamples of the slices, the same resamples for all
          policies; of several trainings these are resampled too, see
          :mod:`hpcgym.evaluation.intervals`; nan with fewer than five slices, whose resamples would
          say nothing. It says how far the mean depends on the choice of slices and seeds; slices
          that overlap are worth less than their number.
        - ``median_bsld``: the median over the slices of the same. ``iqm_bsld``: the mean of the
          middle half of all values, of all slices and trainings, with its interval.
        - ``win_rate``: share of the slices on which no policy is better; k policies that are
          equally good get 1/k each, so that the rates add up to 1.
        - ``mean_regret``: mean over the slices of BSLD / BSLD of the slice's best policy - 1; where
          more is better, of the inverse; without slices whose best is 0.
        - ``mean_wait_s``, ``utilization``: means over the slices, see ``costs``.
        - ``above_reference``, where there is a :attr:`reference`: the mean BSLD less that of it;
          ``above_reference_low`` and ``above_reference_high``: the interval of :meth:`difference`;
          ``p_value``: of that difference being 0, see
          :func:`hpcgym.evaluation.intervals.p_values`; nan of the reference itself. Nothing is
          corrected for the number of rows.
        - ``energy_j``, ``limited_energy_j``, under limits: the means of :attr:`energy`, each with
          its ``_low`` and ``_high``; where jobs share nodes ``makespan_s`` likewise, and
          ``improvement``: mean over the slices of the makespan of the reference over the policy's,
          less 1, with its interval.
        - ``seeds``, where a row is of several trainings: how many.
        - ``slices``, ``failed``: number of slices, and of those on which the policy failed. If it
          did, its means are nan: those of the other slices could not be compared with anything.
        """
        import pandas as pd

        values = self.by_slice.to_numpy()
        rows = self._rows(self.metric, self.by_slice)
        sign = -1 if self.ranked_by.better == MORE else 1
        columns = {
            **self._with_interval(self.metric, rows),
            f"median_{self.short}": np.median(values, axis=0),
            **self._ends(f"iqm_{self.short}", np.array([iqm(one) for one in rows]), rows, iqms_of),
            "win_rate": win_rates(sign * values),
            "mean_regret": _regret(values, sign),
            "slices": np.full(values.shape[1], len(values)),
            "failed": np.isnan(values).sum(axis=0),
        }
        if self.members:
            columns["seeds"] = np.array([len(one) for one in rows])
        if self.reference is not None:
            columns |= self._above(self.reference, rows)
        if self.costs is not None:
            for name in self.costs:
                columns[str(name)] = self.costs[name].to_numpy()
        for name, values_of in self._others.items():
            columns |= self._with_interval(name, self._rows(name, values_of))
        if self.makespans is not None and self.reference is not None:
            base = self.makespans[self.reference].to_numpy()
            each = [base / one - 1 for one in self._rows("makespan_s", self.makespans)]
            columns |= self._with_interval("improvement", each)
        index = pd.Index(list(self.by_slice.columns), name="policy")
        table = pd.DataFrame(columns, index=index)
        return table.sort_values(self.metric, kind="stable", ascending=sign == 1)

    @property
    def _others(self) -> dict[str, pd.DataFrame]:
        """What has intervals beside the metric: its name -> values as in ``by_slice``."""
        more = {} if self.makespans is None else {"makespan_s": self.makespans}
        return {n: one for n, one in {**self.energy, **more}.items() if n != self.metric}

    @property
    def reference(self) -> str | None:
        """The best of ``references``; ``plain`` if there are none, None if all of them failed."""
        if not self.references:
            return self.plain
        means = self.by_slice[list(self.references)].mean(skipna=False).dropna()
        if means.empty:
            return None
        return str(means.idxmax() if self.ranked_by.better == MORE else means.idxmin())

    def _rows(self, metric: str, by_slice: pd.DataFrame) -> list[NDArray[np.float64]]:
        """Return the values of each policy, (seeds, slices)."""
        several = self.members.get(metric, {})
        return [several.get(str(name), by_slice[[name]]).to_numpy().T for name in by_slice]

    def _above(self, reference: str, rows: Rows) -> dict[str, NDArray[np.float64]]:
        """Return the columns of how far above a reference all are, and of p-values."""
        place = list(self.by_slice).index(reference)
        less = self.by_slice.sub(self.by_slice[reference], axis=0).to_numpy()

        def differences(rows: Rows, drawn: Drawn) -> NDArray[np.float64]:
            means = means_of(rows, drawn)
            return means - means[:, [place]]

        p = p_values(less, self.seed)
        p[place] = np.nan
        above = self._ends("above_reference", less.mean(axis=0), rows, differences)
        return {**above, "p_value": p}

    def _with_interval(self, name: str, rows: Rows) -> dict[str, NDArray[np.float64]]:
        """Return the columns of the means of policies, and of their intervals."""
        return self._ends(name, np.array([one.mean() for one in rows]), rows, means_of)

    def _ends(
        self, name: str, values: NDArray[np.float64], rows: Rows, statistic: Any
    ) -> dict[str, NDArray[np.float64]]:
        """Return the columns of a statistic, and of its intervals."""
        low, high = intervals(rows, statistic, self.resamples, self.seed)
        return {name: values, f"{name}_low": low, f"{name}_high": high}

    def difference(
        self, policy: str, reference: str, metric: str | None = None
    ) -> tuple[float, float, float]:
        """Return the mean of one policy less that of another, and its 95 % interval.

        By default of the metric by which policies are ranked. Under limits ``metric`` may be one of
        :attr:`energy` as well, and where jobs share nodes "makespan_s".

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
        known = {self.metric: self.by_slice, **self._others}
        metric = self.metric if metric is None else metric
        if metric not in known:
            raise HpcgymError(unknown("metric", metric, known))
        for name in (policy, reference):
            if name not in self.by_slice:
                raise HpcgymError(unknown("policy", name, self.by_slice.columns))
        # one row if both are the same
        rows = self._rows(metric, known[metric][[*dict.fromkeys((policy, reference))]])

        def less(rows: Rows, drawn: Drawn) -> NDArray[np.float64]:
            means = means_of(rows, drawn)
            return means[:, :1] - means[:, -1:]

        ends: Ends = intervals(rows, less, self.resamples, self.seed)
        return float(rows[0].mean() - rows[-1].mean()), float(ends[0][0]), float(ends[1][0])

    # -- out of here -------------------------------------------------------------------------------

    @property
    def _rules(self) -> dict[str, dict[str, str | float | None]]:
        """The rules of rows that were simulated; a random order is called so."""
        known = {name: one for name, one in self.schedulers.items() if one is not None}
        return {
            name: one.in_words() if isinstance(one, RandomOrder) else described(one)
            for name, one in known.items()
        }

    def facts(self) -> dict[str, Any]:
        """Return everything as plain dictionaries, for JSON."""
        policies = []
        for name, row in self.table.to_dict(orient="index").items():
            policies.append({"name": name, **row, "scheduler": self._rules.get(str(name))})
        members = {
            name: of.to_dict(orient="index")
            for name, of in self.members.get(self.metric, {}).items()
        }
        return {
            "metric": self.metric,
            "policies": policies,
            "static_weights": dict(self.static_weights),
            "reference": self.reference,
            "left_out": self.left_out,
            "unseen": {name: list(numbers) for name, numbers in self.unseen.items()},
            "by_slice": self.by_slice.to_dict(orient="index"),
            **{f"{name}_by_slice": of.to_dict(orient="index") for name, of in self._others.items()},
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
        return [
            {
                "name": name,
                **{str(c): value for c, value in row.items()},
                **rules.get(str(name), blank),
            }
            for name, row in self.table.to_dict(orient="index").items()
        ]

    def to_json(self, path: str | Path | None = None) -> str | None:
        """Return :meth:`facts` as JSON, or write it into a file; what is no number is null."""
        return _told(json_text(self.facts()), path)

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Return :meth:`rows` as CSV, numbers in full, or write it into a file."""
        return _told(csv_text(self.rows()), path)

    def to_latex(self, path: str | Path | None = None) -> str | None:
        """Return the table for people as LaTeX's ``tabular``, or write it into a file.

        It needs the package booktabs. The best of a column is bold.
        """
        heading, rows = lines_of(self)
        return _told(latex([one.replace("\n", " ") for one in heading], rows), path)


def _regret(values: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
    """Return the mean regret of each policy, over slices whose best is not 0."""
    best = sign * np.fmin.reduce(sign * values, axis=1)[:, None]  # fmin passes over nan
    some = best[:, 0] != 0
    if not some.any():
        return np.full(values.shape[1], np.nan)
    values, best = values[some], best[some]
    with np.errstate(divide="ignore"):
        shares = values / best if sign == 1 else best / values
    return np.asarray((shares - 1.0).mean(axis=0))


def _told(text: str, path: str | Path | None) -> str | None:
    """Return a text, or write it into a file."""
    if path is None:
        return text
    with whole_text(path) as file:
        file.write(text)
    return None


# --- What was measured of policies on slices, made into a leaderboard -----------------------------


@dataclass(frozen=True)
class Measured:
    """Values of policies.

    Attributes
    ----------
    values : row -> its metrics on each slice, nan where it failed.
    slices : their names.
    metric : by which rows are ranked.
    beside : metrics that are shown beside it.
    failures : (row, slice) -> what went wrong.
    groups : rows of the table that are several of these.
    """

    values: Mapping[str, Sequence[Mapping[str, float]]]
    slices: Sequence[str]
    metric: str
    beside: Sequence[str]
    failures: Mapping[tuple[str, str], str]
    groups: Groups

    def frame(self, metric: str) -> pd.DataFrame:
        """Return a metric, a row a slice, a column a row of the lineup."""
        import pandas as pd

        index = pd.Index(list(self.slices), name="slice")
        columns = {name: [one[metric] for one in found] for name, found in self.values.items()}
        return pd.DataFrame(columns, index=index)

    def with_value(self) -> list[bool]:
        """Return which slices have a value of the metric for all that did not fail.

        Raises
        ------
        HpcgymError : none has.
        """
        frame = self.frame(self.metric)
        for row, where in self.failures:
            frame.loc[where, row] = 0.0
        known: list[bool] = frame.notna().all(axis=1).tolist()
        if not any(known):
            raise HpcgymError(
                f"metric {self.metric!r}: there is no value of it on any slice; it is of schedules,"
                " or of jobs, that are not among these"
            )
        return known


def board_of(
    measured: Measured,
    schedulers: Mapping[str, Scheduler | None],
    *,
    energies: Sequence[str] = (),
    makespans: bool = False,
    **given: Any,
) -> Leaderboard:
    """Return what was measured as a leaderboard.

    Parameters
    ----------
    measured : the values.
    schedulers : row of the lineup -> its rules; None for what acted.
    energies : metrics [J] that have intervals.
    makespans : whether makespans have.
    given : other attributes of the leaderboard.
    """
    import pandas as pd

    known, groups = measured.with_value(), measured.groups

    def frame(metric: str) -> pd.DataFrame:
        return folded(measured.frame(metric)[known], groups)

    def members(metric: str) -> dict[str, pd.DataFrame]:
        found = measured.frame(metric)[known]
        return {name: found[list(rows)] for name, rows in groups.items()}

    others = [*energies, *(["makespan_s"] if makespans else [])]
    beside = [name for name in measured.beside if name not in (measured.metric, *others)]
    ranked = frame(measured.metric)
    rows = {**schedulers, **dict.fromkeys(groups)}
    return Leaderboard(
        by_slice=ranked,
        schedulers={str(name): rows[str(name)] for name in ranked},
        failures=folded_failures(measured.failures, groups),
        costs=pd.DataFrame({name: frame(name).mean(skipna=False) for name in beside}),
        energy={name: frame(name) for name in energies},
        makespans=frame("makespan_s") if makespans else None,
        metric=measured.metric,
        members={m: members(m) for m in (measured.metric, *others)} if groups else {},
        **given,
    )


def warn_of_failures(board: Leaderboard) -> None:
    """Say of each policy that failed on how many slices, and what went wrong on the first.

    Warns
    -----
    PolicyWarning : for each of them.
    """
    for name in dict.fromkeys(policy for policy, _ in board.failures):
        at = [where for policy, where in board.failures if policy == name]
        warn_caller(
            f"{name} failed on {len(at)} of {len(board.by_slice)} slices, first on {at[0]}:"
            f" {board.failures[name, at[0]]}; see Leaderboard.failures",
            PolicyWarning,
        )
