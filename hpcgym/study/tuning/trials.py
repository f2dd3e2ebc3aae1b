"""Trying rules on jobs: in workers of any executor, with a file from which a search goes on."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.search import Checkpoint
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups import Heatmap
from hpcgym.schedule.measures import MEASURES, measures, weekly_sums
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.study.executors import slots
from hpcgym.study.tuning.space import Arm, Numbers, Space
from hpcgym.units import HOUR_S, WEEK_S, seconds_of
from hpcgym.workload.model import Workload

# --- Bounds that a tuned scheduler must keep ------------------------------------------------------

_TIMES_EASY = re.compile(r"\s*[*x]?\s*easy$")


@dataclass(frozen=True)
class Bound:
    """An upper bound on a measure.

    Attributes
    ----------
    measure : a name of :data:`hpcgym.schedule.measures.MEASURES`.
    most : the bound, in the unit of the measure, or as a multiple of the measure under EASY.
    of_easy : whether it is such a multiple.
    """

    measure: str
    most: float
    of_easy: bool

    @classmethod
    def parse(cls, text: str) -> Bound:
        """Return the bound of a text.

        Examples are ``max_wait <= 7d``, a time, in hours if it has no unit; ``p99_wait <= 1.5
        easy``; and ``mean_bsld <= 30``.

        Raises
        ------
        HpcgymError : the text is no bound, or names no measure.
        """
        name, _, most = (part.strip() for part in text.partition("<="))
        measure = name if name in MEASURES else f"{name}_h"
        if most and measure not in MEASURES:
            short = [measured.removesuffix("_h") for measured in MEASURES]
            check_choice(f"measure in bound {text!r}", name, short)
        number, of_easy = _TIMES_EASY.subn("", most)
        try:
            limit = float(number)
        except ValueError:
            seconds = None if of_easy or not measure.endswith("_h") else seconds_of(number)
            limit = math.nan if seconds is None else seconds / HOUR_S
        if not 0 <= limit < math.inf:
            raise HpcgymError(
                f"bound {text!r} should be like 'max_wait <= 7d', 'mean_bsld <= 30' or"
                " 'p99_wait <= 1.5 easy'"
            )
        return cls(measure, limit, bool(of_easy))

    def __str__(self) -> str:
        return f"{self.measure} <= {self.most:g}{' easy' if self.of_easy else ''}"

    def limit(self, easy: Mapping[str, float]) -> float:
        """Return the most that the measure may be, where EASY has these measures."""
        return self.most * easy[self.measure] if self.of_easy else self.most


#: The default bounds: no job starves for the gain of others.
USUAL_BOUNDS = ("p99_wait <= 1.5 easy", "max_wait <= 1.5 easy")


# --- The same log with submissions moved a little -------------------------------------------------

JITTER_S = 600  # submissions are up to so much later, each by itself


def varied(workload: Workload, start_week: int, seed: int) -> Workload:
    """Return a log from a week on, counted from its first job, with jittered submissions.

    Seed 0 jitters nothing.
    """
    later = workload.submit_time >= workload.submit_time[0] + start_week * WEEK_S
    return jittered(workload.take(later) if start_week else workload, seed)[0]


def jittered(workload: Workload, seed: int) -> tuple[Workload, NDArray[np.int64]]:
    """Return a log with jittered submissions, and the row of each job in the log, (n_jobs,).

    Seed 0 jitters nothing.
    """
    if seed == 0:
        return workload, np.arange(len(workload))
    moved = np.random.default_rng(seed).integers(0, JITTER_S + 1, len(workload))
    submit = workload.submit_time + moved
    order = np.argsort(submit, kind="stable")
    return workload.take(order).with_columns(submit_time=submit[order]), order


def weeks_of(workload: Workload) -> int:
    """Return how many weeks a log has, whatever the jitter of its submissions."""
    return int((workload.since_first_submit[-1] + JITTER_S) // WEEK_S) + 1


# --- How the space of rules is searched -----------------------------------------------------------

#: How many arms go on after each round.
WIDTHS = (24, 6, 2)
#: The most parts of simple rules; see :meth:`hpcgym.study.tuning.space.Space.parts_of`.
SIMPLE = 3

#: Number of jitters of submissions on which rules are tried: in generations, after rounds, at the
#: end.
OFTEN = {"generation": 2, "round": 8, "end": 16}

FIRST_LOOK = "first look"  # the stage in which all arms are tried

_SIGMA = 0.25  # of CMA-ES at the beginning, where weights go from -1 to 1 and levers from 0 to 1
_AT_ONCE = 256  # rules that are asked for together: what an interruption loses at most


class Candidates(NamedTuple):
    """Rules that the search wants to be tried.

    Attributes
    ----------
    rules : of schedulers.
    seeds : of jitters of submissions; rules are tried on each of them; 0 is the log as it is.
    stage : the stage of the search, in words.
    """

    rules: list[dict[str, Any]]
    seeds: tuple[int, ...]
    stage: str


class SearchResults(NamedTuple):
    """The results of a search.

    Attributes
    ----------
    finalists : the first and the last rules of each arm that went on after the first look.
    seeds : of jitters on which nothing was tried.
    rows : a row for each batch of rules: the stage, the number of rules tried by then, and the
        least loss of the batch.
    """

    finalists: list[dict[str, Any]]
    seeds: tuple[int, ...]
    rows: list[dict[str, Any]]


#: Returns the losses of all rules that are asked for, (n_rules,): the less, the better.
Answer = Callable[[Candidates], NDArray[np.float64]]


@dataclass(eq=False)
class _ArmSearch:
    """The search for the numbers of one arm: where it is best so far, and how good that is."""

    arm: Arm
    start: Numbers
    best: Numbers
    loss: float
    optimiser: Any  # None where there are no numbers to search
    tried: int = 0
    rounds: int = 0


def searching(
    space: Space, units: Numbers, answer: Answer, *, budget: int, seed: int
) -> SearchResults:
    """Search: look at all arms once, then let fewer and fewer go on.

    The first look is at simple numbers with each arm. Then a third of the budget goes to 24 arms, a
    third to the best 6 of them, a third to the best 2; each is searched by CMA-ES from the best of
    its simple numbers. Of the 24, half are the best arms of few parts: they are what may serve
    other weeks as well. A schedule of a crowded machine is chaos: moving a submission by a minute
    changes which of two like rules is better. So each generation is tried on other jitters of the
    submissions, and after each round the middle of a run, not its luckiest member, is compared with
    where it was best before, on jitters of their own.

    Parameters
    ----------
    units : of the weights, see :meth:`hpcgym.study.tuning.space.Space.units`.
    answer : returns the losses of rules.
    budget : about how many rules are tried in generations.
    seed : of random numbers.
    """
    search = _Search(space, units, seed, answer)
    everyone = runs = search.chosen(search.first_look())
    for number, width in enumerate(WIDTHS, 1):
        runs = sorted(runs, key=lambda run: run.loss)[:width]
        search.race(runs, budget // len(WIDTHS), f"round {number}")
        search.look_again(runs, f"round {number}")
    last = sorted(everyone, key=lambda run: (-run.rounds, run.loss))
    ends = [(run.arm, run.best) for run in last] + [(run.arm, run.start) for run in last]
    finalists = [space.rules(arm, numbers, units) for arm, numbers in ends]
    differing = [rules for k, rules in enumerate(finalists) if rules not in finalists[:k]]
    fresh = tuple(range(search.jitters, search.jitters + OFTEN["end"]))
    return SearchResults(differing, fresh, search.rows)


class _Search:
    """The stages of a search, and their common state: the rules and jitters tried so far."""

    def __init__(self, space: Space, units: Numbers, seed: int, answer: Answer) -> None:
        self.space, self.units, self.answer = space, units, answer
        self.rng = np.random.default_rng(seed)
        self.tried, self.jitters = 0, 0
        self.rows: list[dict[str, Any]] = []

    def ask(self, pairs: Sequence[tuple[Arm, Numbers]], often: str, stage: str) -> list[float]:
        """Return the losses of some, on jitters that nothing was tried on before."""
        first = self.jitters
        self.jitters += OFTEN[often]
        rules = [self.space.rules(arm, numbers, self.units) for arm, numbers in pairs]
        losses: list[float] = []
        for k in range(0, len(rules), _AT_ONCE):
            asked = Candidates(rules[k : k + _AT_ONCE], tuple(range(first, self.jitters)), stage)
            losses_here = self.answer(asked).tolist()
            losses += losses_here
            self.tried += len(losses_here)
            self.rows.append({"stage": stage, "tried": self.tried, "loss": min(losses_here)})
        return losses

    def first_look(self) -> list[_ArmSearch]:
        """Try simple orders with each arm; return a run for each, at the best of them."""
        import cmaes  # here, because it imports scipy where there is one

        pairs = [(arm, start) for arm in self.space.arms() for start in self.space.starts(arm)]
        losses = self.ask(pairs, "generation", FIRST_LOOK)
        best: dict[Arm, tuple[float, Numbers]] = {}
        for (arm, start), loss in zip(pairs, losses, strict=True):
            if arm not in best or loss < best[arm][0]:
                best[arm] = loss, start
        seeds = self.rng.integers(2**31, size=len(best)).tolist()
        runs = []
        for (arm, (loss, start)), seed in zip(best.items(), seeds, strict=True):
            optimiser = None
            if len(start):
                optimiser = cmaes.CMA(start.copy(), _SIGMA, self.space.bounds(arm), seed=seed)
            runs.append(_ArmSearch(arm, start, start, loss, optimiser))
        return runs

    def chosen(self, runs: Sequence[_ArmSearch]) -> list[_ArmSearch]:
        """Return the arms that go on: the best simple ones and the best others."""
        ranked = sorted(runs, key=lambda run: run.loss)
        parts = {run: self.space.rules(run.arm, run.start, self.units) for run in ranked}
        simple = [run for run in ranked if self.space.parts_of(parts[run]) <= SIMPLE]
        simple = simple[: WIDTHS[0] // 2]
        others = [run for run in ranked if run not in simple]
        return simple + others[: WIDTHS[0] - len(simple)]

    def race(self, runs: Sequence[_ArmSearch], budget: int, stage: str) -> None:
        """Let runs go on side by side, until each has been tried so often in this round."""
        searched = [run for run in runs if run.optimiser is not None]
        most = {run: run.tried + budget // len(searched) for run in searched}
        while live := [
            run for run in searched if run.tried < most[run] and not run.optimiser.should_stop()
        ]:
            asked = [
                [run.optimiser.ask() for _ in range(run.optimiser.population_size)] for run in live
            ]
            pairs = [
                (run.arm, numbers)
                for run, some in zip(live, asked, strict=True)
                for numbers in some
            ]
            losses = iter(self.ask(pairs, "generation", stage))
            for run, some in zip(live, asked, strict=True):
                run.optimiser.tell([(numbers, next(losses)) for numbers in some])
                run.tried += len(some)

    def look_again(self, runs: Sequence[_ArmSearch], stage: str) -> None:
        """Compare the middle of each run with where it was best before."""
        searched = [run for run in runs if run.optimiser is not None]
        middles = [run.optimiser.mean.copy() for run in searched]
        pairs = [(run.arm, run.best) for run in runs]
        pairs += [(run.arm, middle) for run, middle in zip(searched, middles, strict=True)]
        losses = self.ask(pairs, "round", stage)
        for run, before in zip(runs, losses, strict=False):
            run.loss, run.rounds = before, run.rounds + 1
        for run, middle, now in zip(searched, middles, losses[len(runs) :], strict=True):
            if now < run.loss:
                run.best, run.loss = middle, now


# --- Trying rules on jobs -------------------------------------------------------------------------

#: What the search makes small -> the column of weekly sums that it is made of.
OBJECTIVES = {"weekly_bsld": "bsld", "mean_bsld": "bsld", "mean_wait_h": "wait"}

#: What breaking a bound by a factor e costs: as much as an objective e^10 times as large.
_PENALTY = 10.0
#: Of each bound this much is used up by the search: later weeks are other weeks.
MARGIN = 0.8
_LEAST = 1e-3  # of what a logarithm is taken of: waits may be 0

_A_TASK = 24  # simulations that are sent to a worker at once, a second or less of most logs


class TrialResult(NamedTuple):
    """What some rules lead to, each on some jitters of the submissions.

    Attributes
    ----------
    values : (n_rules, n_seeds, n_measures) :data:`hpcgym.schedule.measures.MEASURES`.
    weeks : (n_rules, n_seeds, n_weeks, 3) of the jobs of each week: how many they are, the sum of
        their bounded slowdowns, the sum of their waits [h].
    """

    values: NDArray[np.float64]
    weeks: NDArray[np.float64]

    @property
    def means(self) -> dict[str, NDArray[np.float64]]:
        """The means of each measure over jitters, (n_rules,).

        That of ``weekly_bsld`` is a geometric one, as it is over weeks.
        """
        means = dict(zip(MEASURES, self.values.mean(axis=1).T, strict=True))
        weekly = self.values[:, :, list(MEASURES).index("weekly_bsld")]
        return means | {"weekly_bsld": np.exp(np.log(weekly).mean(axis=1))}


def try_rules(
    workload: Workload,
    cluster: Cluster,
    rules: Sequence[dict[str, Any]],
    seeds: Sequence[int],
    since: float = 0,
    speedups: Heatmap | None = None,
) -> TrialResult:
    """Simulate the workload under each of some rules, on each jitter of its submissions.

    Parameters
    ----------
    rules : of schedulers.
    seeds : see :func:`hpcgym.study.tuning.trials.jittered`.
    since : [s] of the log's clock; only jobs submitted from then on, before any jitter, are looked
        at, of a schedule that has all.
    speedups : of codes beside each other, where jobs share nodes.
    """
    values, weeks = [], []
    n_weeks = weeks_of(workload)
    for seed in seeds:
        jobs, which = jittered(workload, seed)
        results = [
            simulate(jobs, Scheduler(**rules_of_one), cluster=cluster, speedups=speedups)
            for rules_of_one in rules
        ]
        looked_at = workload.submit_time[which] >= since
        values.append([list(measures(result, looked_at).values()) for result in results])
        weeks.append([weekly_sums(result, looked_at, n_weeks) for result in results])
    return TrialResult(np.array(values).swapaxes(0, 1), np.array(weeks).swapaxes(0, 1))


@dataclass
class Trials:
    """Jobs and a machine on which rules are tried.

    Attributes
    ----------
    workload : the jobs.
    cluster : the machine.
    executor : where simulations run.
    speedups : of codes beside each other, where jobs share nodes; None where they have their own.
    """

    workload: Workload
    cluster: Cluster
    executor: Executor
    speedups: Heatmap | None = None

    def of(
        self, rules: Sequence[dict[str, Any]], seeds: Sequence[int], since: float = 0
    ) -> TrialResult:
        """Do as :func:`try_rules`, some rules at a time on each worker."""
        n = max(1, min(_A_TASK // len(seeds), -(-len(rules) // slots(self.executor))))
        alike = self.workload, self.cluster
        tasks = [
            self.executor.submit(try_rules, *alike, rules[k : k + n], seeds, since, self.speedups)
            for k in range(0, len(rules), n)
        ]
        parts = [task.result() for task in tasks]
        return TrialResult(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def each(
        self, rules: Sequence[dict[str, Any]], seeds: Sequence[int], since: float = 0
    ) -> list[TrialResult]:
        """Do the same; return the outcome of each of the rules by itself."""
        values, weeks = self.of(rules, seeds, since)
        return [TrialResult(values[k : k + 1], weeks[k : k + 1]) for k in range(len(rules))]


@dataclass
class Losses:
    """The loss of rules, which a search minimises.

    Attributes
    ----------
    trials : of the early part of a log.
    objective : a name of :data:`OBJECTIVES`, whose mean over the jitters should be small.
    limits : bounds, each with its number.
    checkpoint : the results so far.
    progress : called with the number of rules tried in all, the stage, and the least loss of those
        tried last.
    """

    trials: Trials
    objective: str
    limits: list[tuple[Bound, float]]
    checkpoint: Checkpoint
    progress: Callable[[int, str, float], None]
    tried: int = 0

    def answer(self, asked: Candidates) -> NDArray[np.float64]:
        """Return the loss of each of the rules that are asked for."""
        losses = self.checkpoint.take(len(asked.rules))
        if losses is None:
            losses = self.of(self.trials.of(asked.rules, asked.seeds))[:, None]
            self.checkpoint.add(losses)
        self.tried += len(losses)
        self.progress(self.tried, asked.stage, float(losses.min()))
        return np.asarray(losses[:, 0])

    def of(self, tried: TrialResult) -> NDArray[np.float64]:
        """Return log(objective), and more where a bound is not kept; (n_rules,).

        A bound counts as broken from :data:`MARGIN` of it on, by the mean over the jitters.
        """
        means = tried.means
        loss: NDArray[np.float64] = np.log(np.maximum(means[self.objective], _LEAST))
        for bound, limit in self.limits:
            share = means[bound.measure] / max(MARGIN * limit, _LEAST)
            loss += _PENALTY * np.log(np.maximum(share, 1.0))
        return loss


def by_week(weeks: NDArray[np.float64], objective: str) -> NDArray[np.float64]:
    """Return what each week adds to an objective, relative to it; (n_rules, n_weeks).

    Of "weekly_bsld" it is the logarithm of the week's mean; of means over jobs it is the week's sum
    times the number of weeks, over the least sum of any of the rules. Weeks without jobs are left
    out.

    Parameters
    ----------
    weeks : of :class:`TrialResult`.
    """
    some = (weeks[..., 0] > 0).all(axis=(0, 1))
    number, bsld, wait = np.moveaxis(weeks[:, :, some], -1, 0)
    if objective == "weekly_bsld":
        logs: NDArray[np.float64] = np.log(bsld / number).mean(axis=1)
        return logs
    sums = (wait if OBJECTIVES[objective] == "wait" else bsld).mean(axis=1)
    shares: NDArray[np.float64] = sums * sums.shape[1] / max(sums.sum(axis=1).min(), _LEAST)
    return shares
