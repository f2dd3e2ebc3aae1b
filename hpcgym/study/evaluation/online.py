"""Learning while it runs: learners and references on one pass through a stream of jobs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from hpcgym.agents.weight_bandit import Ended
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError, check_choice, check_whole
from hpcgym.machine import Cluster
from hpcgym.progress import Progress, silent
from hpcgym.schedule.measures import measures, weekly_sums
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import RulesOfEnvironments
from hpcgym.study.evaluation.environments import Agents, Environments
from hpcgym.study.evaluation.policies import find_policy, read_policies
from hpcgym.study.evaluation.references import best_static, rows_of, static_rules
from hpcgym.study.evaluation.user_policies import acts
from hpcgym.study.intervals import Floats, against, block_length, bootstrap, short_of_weeks
from hpcgym.units import WEEK_S
from hpcgym.workload import Workload, load_workload
from hpcgym.workload.load import machine_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


# --- One pass of a learner through a stream of jobs -----------------------------------------------


class _Learning:
    """A learner as a policy that acts, which is told of jobs once they have ended.

    Parameters
    ----------
    learner : a :class:`hpcgym.agents.weight_bandit.Learner`. It goes on from its present state.

    Attributes
    ----------
    decisions : how often it chose.
    """

    env_id = "hpcgym/MixedPolicy-v2"

    def __init__(self, learner: Any) -> None:
        self._learner = learner
        features = getattr(learner, "features", WEIGHTED_FEATURES)
        # other scales come from the first half of a log, of which some jobs are yet to come here
        self.env_options = {"policy_features": list(features), "scale": "none"}
        self.decisions = 0

    def begin(self, env: Any) -> None:
        """Begin the stream."""
        self._env, self._told = env, np.zeros(len(env.episode_workload), bool)

    def act(self, observation: Any, info: Mapping[str, Any]) -> Any:
        """Return the learner's weights, chosen from what a site knows."""
        if self.decisions:
            self._tell(observation, info["time_s"])
        self.decisions += 1
        return self._learner.act(observation, {name: info[name] for name in ("time_s", "window")})

    def end(self, observation: Any, info: Mapping[str, Any]) -> None:
        """Tell of the jobs that are left."""
        self._tell(observation, info["time_s"], over=True)

    def _tell(self, observation: Any, time: int, over: bool = False) -> None:
        """Tell the learner of the jobs that have ended since it was told last."""
        observe = getattr(self._learner, "observe", None)
        if observe is None:
            return
        result = self._env.result()
        has_ended = (result.start >= 0) & (over | (result.start + result.run_time <= time))
        rows = np.flatnonzero(has_ended & ~self._told)
        self._told[rows] = True
        jobs, bsld = result.workload, result.bsld[rows]
        ended = Ended(
            rows,
            jobs.submit_time[rows],
            result.wait[rows],
            result.run_time[rows],
            jobs.requested_time[rows],
            jobs.requested_processors[rows],
            jobs.user_id[rows],
            bsld,
        )
        observe(observation, -float(bsld.sum()), ended)


# --- What learners and references have come to on one stream of jobs ------------------------------

#: The row of the best weights that do not change, chosen knowing all jobs.
FIXED = "best fixed, in hindsight"

_SHOWN = ("weekly_bsld", "mean_wait_h", "p99_wait_h", "max_wait_h")


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
    saf : the row of SAF, which may have rules behind its name.
    resamples, seed : of the intervals.
    """

    stream: Workload
    results: dict[str, Result]
    decisions: dict[str, int]
    weights: dict[str, float]
    saf: str
    resamples: int = 2000
    seed: int = 0

    @property
    def table(self) -> pd.DataFrame:
        """A row for each learner and reference, the least mean bounded slowdown first.

        Columns: ``mean_bsld`` over all jobs; ``weekly_bsld``, the geometric mean over the weeks;
        ``mean_wait_h``, ``p99_wait_h``, ``max_wait_h`` [h]; ``regret``, how much the mean bounded
        slowdown is above that of :data:`FIXED` [%]; and how often a learner chose, ``decisions``,
        0 of what is simulated. ``mean_bsld`` and ``regret`` have 95 % intervals, ``_low`` and
        ``_high``: a bootstrap of blocks of :func:`hpcgym.study.intervals.block_length` weeks,
        the same for all rows; nan of fewer than five blocks.
        """
        import pandas as pd

        jobs, sums = self._weeks
        low, high = self._interval(sums, jobs)
        regret = {name: self.difference(name, FIXED) for name in self.results}
        rows = []
        for place, (name, result) in enumerate(self.results.items()):
            measured = measures(result, np.ones(len(self.stream), bool))
            row: dict[str, Any] = {"mean_bsld": measured["mean_bsld"]}
            row |= {"mean_bsld_low": low[place], "mean_bsld_high": high[place]}
            row |= dict(zip(("regret", "regret_low", "regret_high"), regret[name], strict=True))
            row |= {measure: measured[measure] for measure in _SHOWN}
            rows.append({"policy": name, **row, "decisions": self.decisions.get(name, 0)})
        return pd.DataFrame(rows).set_index("policy").sort_values("mean_bsld", kind="stable")

    @property
    def verdicts(self) -> list[str]:
        """How each learner compares with SAF, by mean bounded slowdowns and their interval."""
        why_none = short_of_weeks(len(self._weeks[0]))
        return [
            f"{name}: {against(self.saf, *self.difference(name, self.saf), why_none)}"
            for name in self.decisions
        ]

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
        first = self._first_week
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
            check_choice("policy", name, names)
        sums = self._weeks[1]
        mine, theirs = (sums[:, names.index(name)] for name in (one, other))
        above = 100 * (mine - theirs)[:, None]
        low, high = self._interval(above, theirs)
        return float(above.sum() / theirs.sum()), float(low[0]), float(high[0])

    @cached_property
    def _weeks(self) -> tuple[Floats, Floats]:
        """Jobs of each week (n_weeks,), and sums of slowdowns (n_weeks, n_policies)."""
        every = np.ones(len(self.stream), bool)
        sums = np.stack([weekly_sums(result, every) for result in self.results.values()], axis=2)
        sums = sums[self._first_week :]
        return sums[:, 0, 0], sums[:, 1]

    @property
    def _first_week(self) -> int:
        """Number of the first week with jobs, of those of the log."""
        return int(self.stream.since_first_submit[0] // WEEK_S)

    def _interval(self, values: Floats, counts: Floats) -> tuple[Floats, Floats]:
        """Return the intervals of sums over weeks, divided by the sums of ``counts``."""
        block = block_length(len(counts))
        return bootstrap(values, self.resamples, self.seed, block=block, counts=counts)

    def figure(self) -> Figure:
        """Return a picture of the regret over time.

        Raises
        ------
        HpcgymError : matplotlib is not installed.
        """
        from hpcgym.report.canvas import DARK_GREY, line_style, new_figure, plain

        figure = new_figure(9, 4.5)
        axes = figure.subplots()
        regret = self.regret
        learners = list(self.decisions)
        others = [name for name in regret if name not in learners and name != FIXED]
        for place, name in enumerate([*learners, *others]):
            wide = name in learners
            axes.plot(
                regret.index, regret[name], label=name, linewidth=2 if wide else 1,
                zorder=3 if wide else 2, **line_style(place),
            )  # fmt: skip
        axes.axhline(0, color=DARK_GREY, linewidth=1, label=FIXED)
        # a curve far above all others would squeeze those into one line
        near = [*learners, self.saf]
        low, high = regret.to_numpy().min(), regret[near].to_numpy().max()
        room = 0.15 * max(high - low, 1.0)
        axes.set_ylim(min(low, 0) - room, max(high, 0) + room)
        axes.set_xlabel("week of the log")
        axes.set_ylabel(f"regret so far, % of all of\n{FIXED}")
        plain(axes, "y")
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
        axes.set_title(f"{self.stream.name}: sums of bounded slowdowns", fontsize=10)
        return figure

    def save(self, folder: str | Path) -> list[Path]:
        """Write ``board.csv``, ``weeks.csv``, ``regret.csv`` and ``regret.png``; return them.

        Raises
        ------
        HpcgymError : a file that cannot be written, or no matplotlib.
        """
        from hpcgym.report.canvas import save_figure
        from hpcgym.report.tables import write_csvs

        tables = {"board": self.table, "weeks": self.by_week(), "regret": self.regret}
        files = write_csvs(tables, folder)
        files.append(Path(folder, "regret.png"))
        save_figure(self.figure(), files[-1], ".png")
        return files


# --- Learning while it runs -----------------------------------------------------------------------

_ALWAYS = ("saf-typical",)  # a reference beside those of each leaderboard


def prequential(
    learners: Any,
    workload: Any,
    *,
    interval: Any = "day",
    part: str = "all",
    train_share: float = 0.5,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    budget: int = 200,
    resamples: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
    **rules: Unpack[RulesOfEnvironments],
) -> Prequential:
    """Let learners go through a whole trace once, learning as they go, and compare their results.

    Each learner sets the weights that order the queue, in :class:`hpcgym.envs.MixedPolicy`, for a
    day at a time, and is told of jobs once they have ended: see
    :class:`hpcgym.agents.weight_bandit.Learner`. Nothing is trained before, and all jobs count from
    the first one on (prequential, after Dawid, Statistical theory: the prequential approach, 1984).
    The references of each leaderboard, "saf-typical", and the best fixed weights in hindsight are
    simulated on the same jobs.

    Parameters
    ----------
    learners : one, several, or several with names of one's own in a mapping: a name of
        :data:`hpcgym.study.evaluation.policies.LEARNERS`; "module:Class", a class, which is made
        without arguments but for ``seed`` if it takes one, or an object of
        :class:`hpcgym.agents.weight_bandit.Learner`; a function of (observation, info), which does
        not learn. An object goes on with what it has learned before. What is simulated may be
        named, too, as for :func:`hpcgym.study.evaluate`.
    workload : a workload, or what :func:`hpcgym.load_workload` takes.
    interval : for how long weights hold: "day", "week", "hour", "6h", a number of submissions.
    part : "all" of the trace, "train", the first ``train_share`` of its time, or "test", the rest.
        The machine is empty at first.
    cluster : the machine, as :func:`hpcgym.simulate` takes it.
    budget : number of weight vectors, over the six features of Legrand 2018, among which the best
        fixed ones are sought, each on the whole stream.
    resamples : of the intervals.
    seed : of intervals, of the weight vectors, and of learners that are made here.
    progress : shows how far it is; :func:`hpcgym.progress.counting` does on a terminal.
    rules : as for :func:`hpcgym.study.evaluate`, of learners and references; no
        ``preemption``.

    Raises
    ------
    HpcgymError : an argument that is not one of these, or a learner that fails.
    WorkloadError : a job that the empty machine does not hold.

    Examples
    --------
    >>> from hpcgym.study import prequential
    >>> board = prequential("weight-bandit", "lublin:jobs=2000,processors=64", budget=20)
    >>> sorted(board.table.index)[:3]
    ['best fixed, in hindsight', 'easy', 'easy-sjbf']
    """
    check_whole("budget", budget, 1)
    check_whole("resamples", resamples, 1)
    if rules.get("preemption") is not None:
        raise HpcgymError(
            f"preemption={rules['preemption']!r} and one pass (prequential) do not go together: a"
            " learner is told of each job once, when it has ended, and a run that others stop ends"
            " without its job; evaluate on slices"
        )
    compared = read_policies(learners, partial(find_policy, seed=check_whole("seed", seed, 0)))
    for name, policy in compared.acting.items():
        if hasattr(policy, "begin"):
            raise HpcgymError(
                f"{name} looks into its environment when an episode begins (begin), and learners"
                " see observations alone; hpcgym evaluate has it act"
            )
    whole = workload if isinstance(workload, Workload) else load_workload(workload, cluster=cluster)
    if whole.initial is not None:
        raise HpcgymError(
            f"a stream begins with an empty machine, and {whole.name} with the jobs that run at"
            f" {whole.initial.begin} s: take the whole trace"
        )
    episodes = Episodes(whole, "whole", part=part, train_share=train_share)
    (episode,) = episodes.listing
    stream = whole if part == "all" else episodes.workload_of(episode)
    acting = {name: _Learning(policy) for name, policy in compared.acting.items()}
    agents = Agents(acting, rules, options={"interval": interval})
    envs = Environments(whole, machine_of(whole, cluster, None), episodes, agents, seed)
    results: dict[str, Result] = {}
    try:
        rows, row_of = rows_of(compared, envs, [stream], _ALWAYS)
        with (progress or silent)("one pass", budget + len(rows) + 1) as step:
            for name, policy in rows.items():
                step(name)
                if acts(policy):
                    _learn(envs, name, acting[name], episode)
                else:
                    envs.run(name, policy, episode)
                results[name] = envs.result()
            plain = static_rules(envs)
            weights = best_static(
                [stream], WEIGHTED_FEATURES, plain, budget, seed, step, envs.platform
            )
            step(FIXED)
            envs.run(FIXED, plain.but(policy=weights), episode)
            results[FIXED] = envs.result()
    finally:
        envs.close()
    decisions = {name: learner.decisions for name, learner in acting.items()}
    return Prequential(stream, results, decisions, weights, row_of["saf"], resamples, seed)


def _learn(envs: Environments, name: str, learning: _Learning, episode: Episode) -> None:
    """Let a learner go through the stream; what it does wrong is an HpcgymError that names it."""
    try:
        envs.run(name, learning, episode)
    except Exception as error:  # whatever a user's learner does
        what = error if isinstance(error, HpcgymError) else f"{type(error).__name__}: {error}"
        said = f"{name} failed at its decision {learning.decisions}: {what}"
        raise HpcgymError(said) from error
