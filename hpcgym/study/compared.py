"""Comparisons of schedules of the same jobs: metrics, paired intervals, groups that lose."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Unpack

import numpy as np

from hpcgym.baselines.labels import check_label, scheduler_names
from hpcgym.errors import HpcgymError, check_choice, check_each_once, unknown
from hpcgym.report.tables import ABOVE, COMPARED, of_scarce_resources, remarks, tables_of, with_past
from hpcgym.schedule.gains import same_jobs, who_pays
from hpcgym.schedule.measures import weekly_sums
from hpcgym.schedule.metrics import told_metrics
from hpcgym.schedule.result import Result
from hpcgym.schedule.schedule import check_not_past
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import Arguments, simulate
from hpcgym.study.intervals import (
    Floats,
    Mean,
    against,
    block_length,
    bootstrap,
    short_of_weeks,
)
from hpcgym.units import HOUR_S
from hpcgym.words import shown
from hpcgym.workload.load import jobs_and_machine
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: What two schedules can be compared by, job by job -> what it is in words.
PAIRED = {"bsld": "mean bounded slowdown", "wait_s": "mean wait [s]"}
_NONE = Mean(*[float("nan")] * 3)


def paired(result: Result, other: Result, of: str = "bsld") -> Mean:
    """Return by how much the mean of a schedule is above that of another, with its 95 % interval.

    The mean is over jobs. The interval is a bootstrap over the weeks in which jobs were submitted,
    several that follow one another at a time (:func:`hpcgym.study.intervals.block_length`): jobs
    of a week wait in one queue, and are no independent draws.

    Parameters
    ----------
    result, other : schedules of the same jobs.
    of : "bsld", or "wait_s" [s].

    Returns
    -------
    value, low, high : below 0 the first is better; the ends of the interval are nan where there are
        fewer than five blocks of weeks.

    Raises
    ------
    HpcgymError : another ``of``, or these are not the same jobs.

    Examples
    --------
    >>> import hpcgym
    >>> log = hpcgym.load_workload("lublin:jobs=2000,processors=64,seed=0")
    >>> saf, easy = (hpcgym.simulate(log, name) for name in ("saf", "easy"))
    >>> hpcgym.paired(saf, easy).value < 0
    True
    """
    check_choice("of", of, PAIRED)
    check_same([result, other])
    jobs, bsld, wait_h = _of_weeks(result, other)
    _, other_bsld, other_wait_h = _of_weeks(other, result)
    sums = bsld - other_bsld if of == "bsld" else (wait_h - other_wait_h) * HOUR_S
    return _mean(sums, jobs)


def _share_above(result: Result, other: Result) -> Mean:
    """Return the difference of mean bounded slowdowns as a share of the other's.

    Both are drawn anew in each resample, so no end is below -1, and the ends have the signs of
    those of :func:`paired`.
    """
    _, bsld, _ = _of_weeks(result, other)
    _, other_bsld, _ = _of_weeks(other, result)
    return _mean(bsld - other_bsld, other_bsld)


def _of_weeks(result: Result, beside: Result) -> Floats:
    """Return sums over the jobs of each week that count in both schedules, (3, n_weeks).

    See :func:`weekly_sums`; a part of a log has no weeks before it.
    """
    sums = weekly_sums(result, result.counted & beside.counted).T
    return sums[:, int(np.argmax(sums[0] > 0)) :]


def _mean(sums: Floats, counts: Floats) -> Mean:
    """Return the sum of the first over that of the second, with its interval over weeks."""
    if not counts.any():
        return _NONE
    low, high = bootstrap(sums[:, None], block=block_length(len(counts)), counts=counts)
    return Mean(float(sums.sum() / counts.sum()), float(low[0]), float(high[0]))


def check_same(results: Iterable[Result]) -> None:
    """Raise an HpcgymError unless these are schedules of the same jobs."""
    first, *others = (result.workload for result in results)
    for other in others:
        if len(other) != len(first) or not (
            np.array_equal(other.job_number, first.job_number)
            and np.array_equal(other.since_first_submit, first.since_first_submit)
        ):
            names = dict.fromkeys((first.name, other.name))
            raise HpcgymError(
                f"{' and '.join(names)}: two schedules are compared only if they have the same"
                " jobs, submitted at the same times"
            )


@dataclass(frozen=True, repr=False)
class Comparison(Mapping[str, Result]):
    """Schedules of one workload, name -> schedule; all are compared with the first.

    A schedule of other jobs than the first, or in which jobs are submitted at other times, as
    quotas of submitted jobs make them, is there, but not compared: it has no interval.

    Attributes
    ----------
    results : name -> schedule.
    """

    results: Mapping[str, Result]

    def __getitem__(self, name: str) -> Result:
        if name not in self.results:
            raise KeyError(unknown("scheduler", name, self.results))
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    @cached_property
    def above(self) -> dict[str, Mean]:
        """Of all but the first: how far its slowdown is above; see :func:`hpcgym.paired`.

        nan of those of other jobs, or of jobs submitted at other times.
        """
        return self._with_first(paired)

    @cached_property
    def _same(self) -> dict[str, Result]:
        """The schedules of the jobs of the first, which are submitted when they are there."""
        return same_jobs(self.results)

    def _with_first(self, how: Callable[[Result, Result], Mean]) -> dict[str, Mean]:
        """Return what compares each other schedule with the first."""
        first, *others = self.results
        return {
            name: how(self.results[name], self.results[first]) if name in self._same else _NONE
            for name in others
        }

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each schedule: its metrics, and how far its slowdown is above the first's.

        If the log tells when its jobs started, that past is the last row, ``recorded``.

        ``above`` is the paired difference of mean bounded slowdowns, ``above_low`` and
        ``above_high`` are the ends of its 95 % interval: see :func:`hpcgym.paired`.
        """
        import pandas as pd

        rows = {}
        for name, result in with_past(self.results).items():
            known = told_metrics(result)
            rows[name] = {
                metric: known[metric]
                for metric in (*COMPARED, *of_scarce_resources(result))
                if metric in known
            }
            rows[name] |= self.columns(name)
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("scheduler")

    def columns(self, name: str) -> dict[str, float]:
        """Return how far a schedule's slowdown is above the first's, as columns of its row."""
        above = self.above.get(name, _NONE)
        return dict(zip(ABOVE, above, strict=True))

    @property
    def beside(self) -> dict[str, dict[str, float]]:
        """Of each schedule the :meth:`columns`."""
        return {name: self.columns(name) for name in self.results}

    @cached_property
    def findings(self) -> list[str]:
        """What came out, a line for each schedule behind the first.

        By how many per cent its slowdown differs, with the 95 % interval, and how many users lose.
        """
        first = next(iter(self.results))
        paid, lines = who_pays(self.results), []
        for name, share in self._with_first(_share_above).items():
            if name in self._same:
                change, low, high = (100 * end for end in share)
                weeks = _of_weeks(self.results[name], self.results[first]).shape[1]
                slowdown = against(first, change, low, high, short_of_weeks(weeks))
                users = paid[name].users if name in paid else 0
                losers = f"; {paid[name].lose:,} of {users:,} users lose" if users > 1 else ""
                lines.append(f"{name}: slowdown {slowdown}{losers}")
        return lines

    @cached_property
    def remarks(self) -> list[str]:
        """What the numbers do not say by themselves, such as jobs that were cut."""
        return remarks(self.results)

    def by(self, group: str, *metrics: str) -> pd.DataFrame:
        """Return :meth:`hpcgym.Result.by` of each schedule, below each other: who pays, who gains.

        The rows are of (group, scheduler). Metrics that are named have their ratios to those of the
        first schedule beside them, as ``mean_bsld_ratio``; nan of schedules that are not compared.
        """
        import pandas as pd

        parts = {name: result.by(group, *metrics) for name, result in self.results.items()}
        first = next(iter(parts.values()))
        for name, table in parts.items():
            for metric in dict.fromkeys(metrics):
                ratios = table[metric] / first[metric]
                table[f"{metric}_ratio"] = ratios if name in self._same else np.nan
        groups = dict.fromkeys(row for table in parts.values() for row in table.index)
        rows = [
            (row, name) for row in groups for name, table in parts.items() if row in table.index
        ]
        return (
            pd.concat(parts, names=["scheduler"])
            .swaplevel()
            .reindex(pd.MultiIndex.from_tuples(rows, names=[group, "scheduler"]))
        )

    def to_latex(self, *metrics: str | Sequence[str]) -> str:
        """Return the tables of ``hpcgym compare --format latex``; they need the package booktabs.

        ``metrics`` : the columns of the first table, one by one or as a list; without any: those
        that a terminal has. "above", "above_low" and "above_high" are those of :attr:`table`.
        """
        names = [n for metric in metrics for n in ([metric] if isinstance(metric, str) else metric)]
        made = tables_of(self.results, names or None, self.beside)
        return "\n".join(table.latex() for table in made)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw how far each mean bounded slowdown is above the first's, with 95 % intervals.

        Schedules that are not compared with the first are left out.

        Raises
        ------
        HpcgymError : matplotlib is not installed, or something else than its axes.
        """
        from hpcgym.report.canvas import BLUE, axes_or_new, plain

        first, *others = self._same
        axes = axes_or_new(axes, 6, 1.2 + 0.35 * len(others))
        places = np.arange(len(others))[::-1]
        change, low, high = np.array([self.above[name] for name in others]).reshape(-1, 3).T
        axes.errorbar(
            change, places, xerr=[change - low, high - change], fmt="o", color=BLUE, capsize=3
        )
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_yticks(places, others)
        axes.set_ylim(-0.6, len(others) - 0.4)
        axes.set_xlabel(f"mean bounded slowdown above that of {first}; less is better")
        plain(axes, grid="x")
        return axes

    def __repr__(self) -> str:
        return "\n".join([*self.findings, "", self.table.map(shown).to_string(), *self.remarks])

    def _repr_html_(self) -> str:
        above, below = (
            "".join(f"<p>{escape(line)}</p>" for line in lines)
            for lines in (self.findings, self.remarks)
        )
        return above + self.table.map(shown).to_html() + below


def compare(
    workload: Workload | str | os.PathLike[str] | pd.DataFrame,
    schedulers: Iterable[str | Scheduler] | Mapping[str, str | Scheduler] = ("easy", "saf"),
    **how: Unpack[Arguments],
) -> Comparison:
    """Simulate several schedulers on the same jobs.

    Parameters
    ----------
    workload : jobs, or what :func:`hpcgym.load_workload` takes.
    schedulers : names or rules, no functions that dispatch; the first is what the others are
        compared with. A mapping gives them names of your own: ``{"mine": rules}``.
    how : other arguments of :func:`hpcgym.simulate`, for all: ``cluster``, ``estimate``, ...

    Raises
    ------
    HpcgymError : no schedulers, or what :func:`hpcgym.simulate` raises.

    Examples
    --------
    >>> import hpcgym
    >>> comparison = hpcgym.compare("lublin:jobs=500,processors=64", ["easy", "saf"])
    >>> list(comparison.table.index)
    ['easy', 'saf']
    """
    named = named_schedulers(schedulers)
    jobs, _ = jobs_and_machine(workload, how.get("cluster"), how.get("processors"))
    return Comparison({name: simulate(jobs, scheduler, **how) for name, scheduler in named.items()})


def named_schedulers(
    schedulers: Iterable[str | Scheduler] | Mapping[str, str | Scheduler],
) -> dict[str, str | Scheduler]:
    """Return name -> scheduler: names as they are given, or what tells the rules apart.

    Raises
    ------
    HpcgymError : no schedulers, one of them twice, or a name that is another scheduler's.
    """
    if isinstance(schedulers, Mapping):
        named = dict(schedulers)
    else:
        alone = isinstance(schedulers, (str, Scheduler)) or callable(schedulers)
        chosen = [schedulers] if alone else list(schedulers)
        rules = [scheduler for scheduler in chosen if isinstance(scheduler, Scheduler)]
        called = dict(zip(rules, scheduler_names(rules), strict=True))
        names = [
            called[scheduler] if isinstance(scheduler, Scheduler) else str(scheduler)
            for scheduler in chosen
        ]
        check_each_once("schedulers", names)
        named = dict(zip(names, chosen, strict=True))
        for name in names:
            if ":=" in name:
                own, _, text = name.rpartition(":=")
                raise HpcgymError(
                    f"schedulers: {name!r} is for the command line; here give {{{own!r}: {text!r}}}"
                )
    if not named:
        raise HpcgymError("schedulers: name at least one")
    for name, scheduler in named.items():
        if not isinstance(scheduler, str | Scheduler):
            given = "Scheduler(policy=function)" if callable(scheduler) else "a name or a Scheduler"
            raise HpcgymError(f"schedulers: give {given}, not {scheduler!r}")
        check_not_past(name)
        check_label(name, scheduler)
    return named
