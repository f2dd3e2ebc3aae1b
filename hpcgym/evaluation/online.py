"""Learning while it runs: learners and references on one pass through a stream of jobs."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents import import_agent
from hpcgym.baselines.schedulers import is_variant
from hpcgym.cluster import Cluster
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, check_whole, unknown
from hpcgym.evaluation.intervals import block_length, bootstrap
from hpcgym.evaluation.lineup import (
    by_name,
    find_policy,
    listed,
    other_scheduler,
    scheduler_of,
    with_references,
)
from hpcgym.evaluation.slices import Progress, silent
from hpcgym.evaluation.stage import acts, checked_rules
from hpcgym.evaluation.static_weights import best_static
from hpcgym.evaluation.stream import learn_through
from hpcgym.schedule.measures import measures, weekly_sums
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.usage import without_idle_shares
from hpcgym.simulation.prepare import machine_of
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload, load_workload

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

#: The row of the best weights that do not change, chosen knowing all jobs.
FIXED = "best fixed, in hindsight"

#: Learners of this library by name -> module of hpcgym.agents and class.
LEARNERS = {
    "policy-bandit": ("policy_bandit", "PolicyBandit"),
    "weight-bandit": ("weight_bandit", "WeightBandit"),
}

_ALWAYS = ("saf-typical",)  # a reference beside those of each leaderboard
_NAMED = re.compile(r"([A-Za-z_][\w.]*):([A-Za-z_]\w*)")
_SHOWN = ("mean_bsld", "weekly_bsld", "mean_wait_h", "p99_wait_h", "max_wait_h")


@dataclass(frozen=True)
class Prequential:
    """What learners and references have come to on one stream of jobs.

    A job counts for the week in which it was submitted; weeks are those of the log.

    Attributes
    ----------
    stream : the jobs.
    results : name -> schedule of all jobs; learners first, the last is :data:`FIXED`.
    decisions : name of a learner -> how often it chose.
    weights : of :data:`FIXED`, feature -> weight.
    resamples, seed : of the intervals.
    """

    stream: Workload
    results: dict[str, Result]
    decisions: dict[str, int]
    weights: dict[str, float]
    resamples: int = 2000
    seed: int = 0

    @property
    def table(self) -> pd.DataFrame:
        """A row for each learner and reference, the least mean bounded slowdown first.

        Columns: ``mean_bsld`` over all jobs; ``weekly_bsld``, the geometric mean over the weeks;
        ``mean_wait_h``, ``p99_wait_h``, ``max_wait_h`` [h]; ``regret``, how much the mean bounded
        slowdown is above that of :data:`FIXED` [%]; and how often a learner chose, ``decisions``,
        0 of what is simulated. ``mean_bsld`` and ``regret`` have 95 % intervals, ``_low`` and
        ``_high``: a bootstrap of blocks of :func:`hpcgym.evaluation.intervals.block_length` weeks,
        the same for all rows; nan of fewer than five blocks.
        """
        import pandas as pd

        jobs, sums = self._weeks
        low, high = self._interval(sums, jobs)
        regret = {name: self.difference(name, FIXED) for name in self.results}
        rows = []
        for place, (name, result) in enumerate(self.results.items()):
            found = measures(result, np.ones(len(self.stream), bool))
            row: dict[str, Any] = {"mean_bsld": found["mean_bsld"]}
            row |= {"mean_bsld_low": low[place], "mean_bsld_high": high[place]}
            row |= dict(zip(("regret", "regret_low", "regret_high"), regret[name], strict=True))
            row |= {measure: found[measure] for measure in _SHOWN[1:]}
            rows.append({"policy": name, **row, "decisions": self.decisions.get(name, 0)})
        table = pd.DataFrame(rows).set_index("policy")
        return table.sort_values("mean_bsld", kind="stable")

    @property
    def regret(self) -> pd.DataFrame:
        """Regret against :data:`FIXED` up to the end of each week, a row a week of the log.

        It is the sum of the bounded slowdowns of the jobs submitted by then, less the same sum
        under :data:`FIXED`, in per cent of what :data:`FIXED` has in the whole stream: the last row
        is the ``regret`` of the table. A column for each learner and reference.
        """
        sums = self.by_week(sums=True).drop(columns="jobs")
        fixed = sums[FIXED]
        return 100 * sums.sub(fixed, axis="index").cumsum() / fixed.sum()

    def by_week(self, sums: bool = False) -> pd.DataFrame:
        """Return the mean bounded slowdowns of the jobs submitted in each week of the log.

        Parameters
        ----------
        sums : return their sums instead.

        Returns
        -------
        A row a week from the first to the last, nan where no job is submitted; columns ``jobs``,
        and one for each learner and reference.
        """
        import pandas as pd

        jobs, values = self._weeks
        first = int(self._week_numbers[0])
        index = pd.RangeIndex(first, first + len(jobs), name="week")
        with np.errstate(invalid="ignore"):
            shown = values if sums else values / jobs[:, None]
        table = pd.DataFrame(shown, index=index, columns=list(self.results))
        table.insert(0, "jobs", jobs.astype(int))
        return table

    def difference(self, one: str, other: str) -> tuple[float, float, float]:
        """Return how much the mean bounded slowdown of one is above that of another [%].

        With the ends of the 95 % interval, of the same blocks of weeks for both.

        Raises
        ------
        HpcgymError : a name that is no row.
        """
        names = list(self.results)
        for name in (one, other):
            if name not in names:
                raise HpcgymError(unknown("policy", name, names))
        sums = self._weeks[1]
        mine, theirs = (sums[:, names.index(name)] for name in (one, other))
        above = 100 * (mine - theirs)[:, None]
        low, high = self._interval(above, theirs)
        return float(above.sum() / theirs.sum()), float(low[0]), float(high[0])

    @property
    def _week_numbers(self) -> NDArray[np.int64]:
        """The first and the last week with jobs."""
        jobs = weekly_sums(next(iter(self.results.values())), np.ones(len(self.stream), bool))[:, 0]
        return np.flatnonzero(jobs)[[0, -1]]

    @property
    def _weeks(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Jobs of each week (n_weeks,), and sums of slowdowns (n_weeks, n_policies)."""
        first, last = self._week_numbers
        every = np.ones(len(self.stream), bool)
        found = np.stack([weekly_sums(one, every) for one in self.results.values()], axis=2)
        found = found[first : last + 1]
        return found[:, 0, 0], found[:, 1]

    def _interval(
        self, values: NDArray[np.float64], counts: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the intervals of sums over weeks, divided by the sums of ``counts``."""
        block = block_length(len(counts))
        return bootstrap(values, self.resamples, self.seed, block=block, counts=counts)

    def figure(self) -> Figure:
        """Return a picture of the regret over time.

        Raises
        ------
        HpcgymError : matplotlib is not installed.
        """
        from hpcgym.evaluation.regret_picture import draw

        return draw(self)

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``board.csv``, ``weeks.csv``, ``regret.csv`` and ``regret.png``; return them.

        Raises
        ------
        HpcgymError : a file that cannot be written, or no matplotlib.
        """
        from hpcgym.files.writing import whole_text
        from hpcgym.report.canvas import save_figure

        tables = {"board": self.table, "weeks": self.by_week(), "regret": self.regret}
        files = [Path(folder, f"{name}.csv") for name in tables]
        for file, table in zip(files, tables.values(), strict=True):
            with whole_text(file, folders=True) as text:
                text.write(table.to_csv())
        files.append(Path(folder, "regret.png"))
        save_figure(self.figure(), files[-1], ".png")
        return files


def prequential(
    learners: Any,
    workload: Any,
    *,
    interval: Any = "day",
    part: str = "all",
    train_share: float = 0.5,
    cluster: Cluster | str | os.PathLike[str] | None = None,
    budget: int = 200,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
    **rules: Any,
) -> Prequential:
    """Let learners go through a whole trace once, learning as they go, and compare what they reach.

    Each learner sets the weights that order the queue, in :class:`hpcgym.envs.MixedPolicy`, for a
    day at a time, and is told of jobs once they have ended: see
    :class:`hpcgym.agents.learner.Learner`. Nothing is trained before, and all jobs count from
    the first one on (prequential, after Dawid, Statistical theory: the prequential approach, 1984).
    The references of each leaderboard, "saf-typical", and the best fixed weights in hindsight are
    simulated on the same jobs.

    Parameters
    ----------
    learners : one, several, or several with names of one's own in a mapping: a name of
        :data:`LEARNERS`; "module:Class", a class or an object of
        :class:`hpcgym.agents.learner.Learner`; a function of (observation, info), which does
        not learn. An object goes on with what it has learned before. What is simulated may be
        named, too, as for :func:`hpcgym.evaluation.evaluate`.
    workload : a workload, or what :func:`hpcgym.load_workload` takes.
    interval : for how long weights hold: "day", "week", "hour", "6h", a number of submissions.
    part : "all" of the trace, "train", its first ``train_share`` of the jobs, or "test", the rest.
        The machine is empty at first.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    budget : number of weight vectors, over the six features of document 002, among which the best
        fixed ones are sought, each on the whole stream.
    resamples, seed : of the intervals; the seed also draws the weight vectors.
    progress : shows how far it is; :func:`hpcgym.progress.counting` does on a terminal.
    rules : as for :func:`hpcgym.evaluation.evaluate`, of learners and references.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or a learner that fails.
    WorkloadError : a job that the empty machine does not hold.

    Examples
    --------
    >>> from hpcgym.evaluation import prequential
    >>> board = prequential("weight-bandit", "lublin:jobs=2000,processors=64", budget=20)
    >>> sorted(board.table.index)[:3]
    ['best fixed, in hindsight', 'easy', 'easy-sjbf']
    """
    check_whole("budget", budget, 1)
    check_whole("resamples", resamples, 1)
    rules = checked_rules(rules)
    chosen = by_name(listed(learners), find_learner, other_scheduler)
    for name, one in chosen.items():
        if acts(one) and hasattr(one, "begin"):
            raise HpcgymError(
                f"{name} looks into its environment when an episode begins (begin), and learners"
                " see observations alone; hpcgym evaluate without --protocol has it act"
            )
    whole = workload if isinstance(workload, Workload) else load_workload(workload, cluster=cluster)
    if whole.initial is not None:
        raise HpcgymError(
            f"a stream begins with an empty machine, and {whole.name} with the jobs that run at"
            f" {whole.initial.begin} s: take the whole trace"
        )
    episodes = Episodes(whole, "whole", part=part, train_share=train_share)
    stream = episodes.workload_of(episodes.listing[0])
    machine = machine_of(whole, cluster, None)
    lineup, _ = with_references(chosen, rules, None, _ALWAYS)
    plain = without_idle_shares(scheduler_of("spf", rules))
    results: dict[str, Result] = {}
    decisions: dict[str, int] = {}
    with (progress or silent)("one pass", budget + len(lineup) + 1) as step:
        for name, one in lineup.items():
            step(name)
            if acts(one):
                results[name], decisions[name] = learn_through(
                    name, one, stream, rules, interval, machine
                )
            else:
                results[name] = simulate(stream, one, cluster=machine)
        weights = best_static([stream], WEIGHTED_FEATURES, plain, budget, seed, step, machine)
        step(FIXED)
        results[FIXED] = simulate(stream, plain.but(policy=weights), cluster=machine)
    return Prequential(stream, results, decisions, weights, resamples, seed)


def find_learner(given: Any) -> Any:
    """Return the learner that a name, "module:Class" or a class stands for; else what it is itself.

    Raises
    ------
    HpcgymError : an unknown name, a module or class that is not there, or one that does not act.
    """
    if isinstance(given, str) and given in LEARNERS:
        module, kind = LEARNERS[given]
        return getattr(import_agent(module), kind)()
    named = _NAMED.fullmatch(given) if isinstance(given, str) else None
    if named and not is_variant(given):
        given = _imported(given, *named.groups())
    if not (isinstance(given, type) and acts(given)):
        return find_policy(given)
    try:
        return given()
    except TypeError as error:
        raise HpcgymError(
            f"{given.__name__} cannot be made without arguments ({error}): give an object"
        ) from error


def _imported(text: str, module: str, name: str) -> Any:
    """Return what has this name in a module, of this folder or installed."""
    try:
        with _from_here():
            found = importlib.import_module(module)
    except Exception as error:  # a user's module may do anything
        raise HpcgymError(f"{text}: {type(error).__name__}: {error}") from error
    if not hasattr(found, name):
        public = [one for one in vars(found) if not one.startswith("_")]
        raise HpcgymError(f"{text}: {unknown('name', name, public)}")
    return getattr(found, name)


@contextmanager
def _from_here() -> Iterator[None]:
    """Let modules of the present folder be found, as by ``python -m``."""
    before = list(sys.path)
    sys.path.insert(0, os.getcwd())
    try:
        yield
    finally:
        sys.path[:] = before
