"""Tuning a scheduler on the early part of a log, and judging it on the later one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.search import Checkpoint, identity
from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import HpcgymError, check_choice, check_whole, is_number
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups import Heatmap, find_speedups
from hpcgym.progress import silence
from hpcgym.scheduler.files import write_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.evaluation.policies import read_policies
from hpcgym.study.executors import open_executor
from hpcgym.study.intervals import FEWEST, against, bootstrap
from hpcgym.study.tuning.space import Rules, SharedSpace, Space
from hpcgym.study.tuning.trials import (
    OBJECTIVES,
    OFTEN,
    USUAL_BOUNDS,
    Bound,
    Losses,
    SearchResults,
    TrialResult,
    Trials,
    by_week,
    searching,
)
from hpcgym.workload.load import jobs_and_machine
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd


# --- Which of the finalists of a search is taken --------------------------------------------------


def simplest(losses: NDArray[np.float64], by_week: NDArray[np.float64], parts: list[int]) -> int:
    """Return the place of the rule that is taken.

    Parameters
    ----------
    losses : (n_rules,) of all weeks together, with what breaking a bound costs.
    by_week : (n_rules, n_weeks) what each week adds to the objective, as a share of it or in
        logarithms: their means over the weeks are the objective. Fewer than five weeks tell
        nothing apart, and the best is taken.
    parts : of how many parts the rules are.
    """
    best = int(losses.argmin())
    apart = by_week - by_week[best]
    n = by_week.shape[1]
    error = apart.std(axis=1, ddof=1) / np.sqrt(n) if n >= FEWEST else np.zeros(len(losses))
    near = np.flatnonzero(losses - losses[best] <= error)
    return int(sorted(near.tolist(), key=lambda place: (parts[place], losses[place]))[0])


# --- A tuned scheduler beside others, on weeks not searched on ------------------------------------

_RESAMPLES = 4000


def less(
    weeks: NDArray[np.float64], reference: NDArray[np.float64], objective: str
) -> tuple[float, float, float]:
    """Return how much less an objective is than that of a reference, in per cent, with an interval.

    It is that of paired resamples of weeks, 95 %: below 0 at both ends, the difference is more than
    the choice of the weeks explains. Weeks count as independent, which those are not quite that
    follow one another on a machine that does not empty.

    Parameters
    ----------
    weeks, reference : (n_seeds, n_weeks, 3) of :class:`hpcgym.study.tuning.trials.TrialResult`.
    objective : a name of :data:`hpcgym.study.tuning.trials.OBJECTIVES`.

    Returns
    -------
    change, low, high : [%]; the ends are nan of fewer than five weeks with jobs.
    """
    mine, theirs = by_week(np.stack([weeks, reference]), objective)
    logs = objective == "weekly_bsld"
    counts = np.ones(len(mine)) if logs else theirs
    apart = mine - theirs
    low, high = bootstrap(apart[:, None], _RESAMPLES, counts=counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.array([apart.sum() / counts.sum(), low[0], high[0]])
    change_percent, below, above = (100 * (np.expm1(change) if logs else change)).tolist()
    return change_percent, below, above


def board_of(
    tried: Mapping[str, TrialResult],
    early: Mapping[str, TrialResult],
    objective: str,
    limits: Sequence[tuple[Bound, float]],
) -> pd.DataFrame:
    """Return a row for each scheduler, on later weeks; the first is the tuned one.

    Parameters
    ----------
    tried, early : name -> what came of one scheduler on the later and on the early part.
    limits : bounds, and what each means on the later part.

    Returns
    -------
    Columns: each of MEASURES, the mean over jitters; ``tuned_percent``, ``low``, ``high``: how much
    more than this scheduler the tuned one has of the objective; ``kept``, whether all bounds are;
    ``early`` of the objective.
    """
    import pandas as pd

    rows = {}
    tuned = next(iter(tried.values())).weeks[0]
    for name, result in tried.items():
        row: dict[str, Any] = {measure: float(of[0]) for measure, of in result.means.items()}
        row["tuned_percent"], row["low"], row["high"] = less(tuned, result.weeks[0], objective)
        row["kept"] = all(row[bound.measure] <= limit for bound, limit in limits)
        row["early"] = float(early[name].means[objective][0])
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("scheduler")


def ablated(
    rules: Rules, parts: Mapping[str, Rules], losses: Losses, seeds: Sequence[int]
) -> list[tuple[str, Rules]]:
    """Return the way from rules to EASY: each step gives up what costs least.

    Parameters
    ----------
    parts : part of the rules -> the rules of EASY that stand in its place.

    Returns
    -------
    Pairs of what was given up and the rules that are left; the first gave up nothing, the last are
    those of EASY.
    """
    way: list[tuple[str, Rules]] = [("nothing", rules)]
    while True:
        last = way[-1][1]
        options = {
            part: {rule: value for rule, value in (last | easy).items() if value is not None}
            for part, easy in parts.items()
        }
        left = [part for part, rules_left in options.items() if rules_left != last]
        if not left:
            return way
        tried = losses.trials.of([options[part] for part in left], seeds)
        part = left[int(losses.of(tried).argmin())]
        way.append((part, options[part]))


# --- What tuning has found ------------------------------------------------------------------------


@dataclass(frozen=True)
class Tuned:
    """A tuned scheduler, its comparison with others, and the search.

    Attributes
    ----------
    scheduler : for :func:`hpcgym.simulate`.
    objective : the measure that was minimised.
    log : the name of the workload.
    bounds : the bounds that had to be kept, each with its number on the later part.
    board : a row for each scheduler, on the later part; see
        :func:`hpcgym.study.tuning.tune.board_of`.
    steps : the way to EASY: the part that is given up, the objective on the early part then, and on
        the later one.
    rows : the course of the search.
    tried : how many rules were tried.
    """

    scheduler: Scheduler
    objective: str
    log: str
    bounds: list[tuple[Bound, float]]
    board: pd.DataFrame
    steps: list[tuple[str, float, float]]
    rows: list[dict[str, Any]]
    tried: int

    @property
    def verdict(self) -> str:
        """How it compares on weeks that the search has not seen, and whether bounds are kept."""
        ends = self.board[["tuned_percent", "low", "high"]].astype(float)
        compared = [against(str(name), *row) for name, *row in ends.iloc[1:].itertuples()]
        row = self.board.loc[TUNED]
        broken = [
            f"{bound} is broken ({row[bound.measure]:.3g} > {limit:.3g})"
            for bound, limit in self.bounds
            if row[bound.measure] > limit
        ]
        kept = "all bounds kept" if self.bounds else "no bounds"
        said = ", ".join(broken) or kept
        return f"{self.objective} on later weeks: {'; '.join(compared)}; {said}"

    @property
    def ablation(self) -> pd.DataFrame:
        """The way from the tuned scheduler to EASY, a row a step: the least loss is given up first.

        Columns: ``given_up``, and the objective on the ``early`` and the ``later`` part then.
        """
        import pandas as pd

        return pd.DataFrame(self.steps, columns=["given_up", "early", "later"])

    @property
    def trace(self) -> pd.DataFrame:
        """How the search went: ``stage``, rules ``tried`` so far, the least ``loss`` of the last.

        A loss is the logarithm of the objective, and more where a bound was not kept.
        """
        import pandas as pd

        return pd.DataFrame(self.rows)

    def save(self, folder: str | Path) -> list[Path]:
        """Write the scheduler and tables into a folder; return the files.

        ``scheduler.toml`` is a scheduler wherever one is named.

        Raises
        ------
        HpcgymError : a file that cannot be written.
        """
        from hpcgym.report.tables import write_csvs

        folder = Path(folder)
        note = f"tuned on the early part of {self.log}; {self.verdict}"
        files = [folder / "scheduler.toml"]
        write_scheduler(files[0], self.scheduler, note)
        board = self.board.reset_index()
        tables = {"board": board, "ablation": self.ablation, "search": self.trace}
        return files + write_csvs(tables, folder, index=False)


# --- Tuning a scheduler on the early part of a log ------------------------------------------------

Progress = Callable[[int, str, float], None]

TUNED = "tuned"  # its name beside others

_JITTERS = tuple(range(OFTEN["round"]))  # of comparisons
_FEWEST_JOBS = 100  # of each part


@dataclass(frozen=True)
class Plan:
    """The space, the objective, the bounds and the length of a search.

    Attributes
    ----------
    space : the rules that are searched; :class:`hpcgym.study.SharedSpace` where jobs share nodes.
    objective : the measure to minimise: "weekly_bsld", the geometric mean over the weeks of their
        mean bounded slowdowns, in which each week counts as much as any other; "mean_bsld"; or
        "mean_wait_h", or "mean_wait".
    bounds : texts as :meth:`hpcgym.study.tuning.trials.Bound.parse` takes them; all must be kept.
    split : the share of the log's time on which rules are searched; the rest is only used at the
        end.
    budget : about how many rules are tried in generations, after the first look at all arms.
    seed : of random numbers.

    Raises
    ------
    HpcgymError : a value that is not one of these.
    """

    space: Space | SharedSpace = field(default_factory=Space)
    objective: str = "weekly_bsld"
    bounds: Sequence[str] = USUAL_BOUNDS
    split: float = 0.5
    budget: int = 3000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective == "mean_wait":  # as bounds call it
            object.__setattr__(self, "objective", "mean_wait_h")
        check_choice("objective", self.objective, OBJECTIVES)
        if isinstance(self.bounds, str):
            raise HpcgymError(f"bounds must be a list of texts, not {self.bounds!r}")
        self.parsed()
        if not is_number(self.split) or not 0 < self.split < 1:
            raise HpcgymError(f"split must be a number between 0 and 1, not {self.split!r}")
        check_whole("budget", self.budget, 1)
        check_whole("seed", self.seed, 0)

    def parsed(self) -> list[Bound]:
        """Return the bounds."""
        return [Bound.parse(text) for text in self.bounds]


def tune(
    workload: str | Workload,
    plan: Plan | None = None,
    *,
    against: Sequence[str | Scheduler] = (),
    cluster: Cluster | str | int | None = None,
    processors: int | None = None,
    speedups: Heatmap | str | None = None,
    executor: str | Executor = "processes",
    workers: int | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
) -> Tuned:
    """Search for the scheduler that serves the early part of a log best; judge it on the later one.

    The search sees jobs that were submitted before ``plan.split`` of the log's time, and none
    later; :func:`hpcgym.study.tuning.trials.searching` describes it. Of the candidates at its end,
    the simplest is taken that the early weeks do not distinguish from the best. It is simulated on
    the whole log, and its jobs of the later part are compared with those of EASY, SAF and the named
    schedulers; where jobs share nodes, of EASY, all co-schedulers and the named ones.

    Parameters
    ----------
    workload : a log, or what :func:`hpcgym.load_workload` takes.
    plan : the search; by default ``Plan()``.
    against : the site's present rules, for one: names of schedulers, variants, files, or
        :class:`hpcgym.Scheduler`.
    cluster, processors : the machine; by default that of the log.
    speedups : of codes beside each other, for jobs that share the nodes of ``cluster``: a heatmap,
        or what :func:`hpcgym.machine.speedups.find_speedups` takes.
    executor, workers : where simulations run, see :func:`hpcgym.study.open_executor`. The result is
        the same.
    checkpoint : file for the results so far, written every few seconds and when the search is
        interrupted; the same search goes on from there. It is deleted at the end.
    progress : told how many rules have been tried, the stage, and the least loss of the last ones.

    Raises
    ------
    HpcgymError : an unknown name, too few jobs, a space that is not for these jobs, or a
        checkpoint of another search.

    Examples
    --------
    >>> import hpcgym
    >>> from hpcgym.study import Plan, Space, tune
    >>> log = hpcgym.load_workload("lublin:jobs=3000,processors=64,seed=0,load=1.1")
    >>> small = Space(orders=["saf", "spf"], estimates=["requested"], levers=["threshold"])
    >>> tuned = tune(log, Plan(small, bounds=["max_wait <= 14d"], budget=60), executor="serial")
    >>> tuned.scheduler.backfill in ("easy", "until-shadow")
    True
    """
    pairs = None if speedups is None else find_speedups(speedups)
    if plan is None:
        plan = Plan() if pairs is None else Plan(SharedSpace())
    if plan.space.shared and pairs is None:
        raise HpcgymError("space: that of jobs that share nodes needs speedups, and a cluster")
    if pairs is not None and not plan.space.shared:
        raise HpcgymError("space: where jobs share nodes it is a SharedSpace")
    log, machine = jobs_and_machine(workload, cluster, processors)
    early, since = _early(log, plan.split)
    others = _named(plan, against)
    settings = {"plan": {**vars(plan), "space": vars(plan.space)}, "machine": repr(machine)}
    if pairs is not None:
        settings["speedups"] = pairs.digest
    with (
        Checkpoint(checkpoint, identity(settings, [[log]])) as known,
        open_executor(executor, workers) as workforce,
    ):
        trials, late = (Trials(jobs, machine, workforce, pairs) for jobs in (early, log))
        # first, so that schedulers that cannot be simulated here do not fail after a long search
        rules_of_others = [scheduler.given() for scheduler in others.values()]
        early_others = trials.each(rules_of_others, _JITTERS)
        limits = _limits(plan, trials.of([{}], range(OFTEN["end"])))
        losses = Losses(trials, plan.objective, limits, known, progress or silence)
        units = plan.space.units([early])
        search = searching(plan.space, units, losses.answer, budget=plan.budget, seed=plan.seed)
        losses.progress(losses.tried, "choosing", np.nan)
        rules = _chosen(plan, search, losses)
        losses.progress(losses.tried, "later weeks", np.nan)
        way = ablated(rules, plan.space.parts, losses, search.seeds[: OFTEN["round"]])
        steps = [left for _, left in way]  # the first is the tuned scheduler itself
        early_steps = trials.each(steps, _JITTERS)
        later = late.each([*steps, *rules_of_others], _JITTERS, since)
    names = [TUNED, *others]
    tried = dict(zip(names, [later[0], *later[len(way) :]], strict=True))
    before = dict(zip(names, [early_steps[0], *early_others], strict=True))
    bounds = _limits(plan, tried["easy"])
    return Tuned(
        scheduler=Scheduler(**rules),
        objective=plan.objective,
        log=log.name,
        bounds=bounds,
        board=board_of(tried, before, plan.objective, bounds),
        steps=[
            (what, float(a.means[plan.objective][0]), float(b.means[plan.objective][0]))
            for (what, _), a, b in zip(way, early_steps, later[: len(way)], strict=True)
        ],
        rows=search.rows,
        tried=losses.tried,
    )


def _early(log: Workload, split: float) -> tuple[Workload, float]:
    """Return the jobs that are searched on, and the time [s] from which on others are judged."""
    if log.initial is not None:
        raise HpcgymError(f"{log.name} is an extract; tuning takes a log from its beginning")
    submit = log.submit_time
    since = float(submit[0] + split * (submit[-1] - submit[0])) if len(log) else 0.0
    before = submit < since
    if min(before.sum(), (~before).sum()) < _FEWEST_JOBS:
        raise HpcgymError(
            f"{log.name} has {before.sum():,} jobs to search on and {(~before).sum():,} to judge"
            f" by; each must be at least {_FEWEST_JOBS}"
        )
    return log.take(before, name=f"{log.name} early"), since


def _named(plan: Plan, against: Sequence[str | Scheduler]) -> dict[str, Scheduler]:
    """Return whom the tuned scheduler is compared with, by name."""
    others = [scheduler for scheduler in against if scheduler not in plan.space.references]
    named = read_policies(
        [*plan.space.references, *others], lambda scheduler: scheduler_of(scheduler, {})
    )
    schedulers: dict[str, Scheduler] = named.policies
    if TUNED in schedulers:
        raise HpcgymError(f"against: {TUNED!r} is what the tuned scheduler is called")
    return schedulers


def _limits(plan: Plan, easy: TrialResult) -> list[tuple[Bound, float]]:
    """Return the bounds, and what each means where EASY has these measures."""
    means = {measure: float(of[0]) for measure, of in easy.means.items()}
    return [(bound, bound.limit(means)) for bound in plan.parsed()]


def _chosen(plan: Plan, search: SearchResults, losses: Losses) -> dict[str, Any]:
    """Return the rules that are taken of those with which the search ended."""
    tried = losses.trials.of(search.finalists, search.seeds)
    parts = [plan.space.parts_of(rules) for rules in search.finalists]
    each = by_week(tried.weeks, plan.objective)
    return search.finalists[simplest(losses.of(tried), each, parts)]
