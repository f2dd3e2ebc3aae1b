"""What searches share that try schedulers on replays of whole logs.

Each generation meets the logs anew, a little more or less crowded than they were, and worlds of
generators that no other has met: one replay is chaotic, and says little. A scheduler is worth what
it gains on EASY there, see :mod:`hpcgym.schedule.gains`, less what it exceeds of the gate. What a
search returns is a mean of generations, not the best sample, which is largely chance.

The last quarter of what an agent may learn from is set apart: by it a mean is chosen, if it is
better there than what the search began with, and the search ends when that gets no better. Last,
the best of these means are held against the gate on all of it, also at higher loads: an order may
keep the gate on a quiet first half and starve jobs in a crowded second one. The first that keeps it
is returned. If none does, vectors between the best and where the search began are tried, too. If
none of these does either, the search returns what exceeds the gate least.

A searcher is a class with a ``vector``, what scheduler a vector is, and how it is searched:
:class:`hpcgym.agents.rule_es.RuleEs` and :class:`hpcgym.agents.net_es.NetEs` are two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from hpcgym.agents.evolution import Evolution, Numbers
from hpcgym.agents.practice import HELD, Logger, Make, Rows, Spending
from hpcgym.agents.settings import SearchSettings
from hpcgym.errors import HpcgymError
from hpcgym.processors import threads_here
from hpcgym.schedule.gains import FEWEST_JOBS, Felt, felt, gain, used
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.units import WEEK_S
from hpcgym.workload import Workload, load_workload
from hpcgym.workload.stretching import stretched

#: The share of the gate that may be used at no price: the rest is for unseen logs.
MARGIN = 0.9
#: The cost of exceeding that share by a factor of e, in units of the gain.
_PRICE = 2.0

#: Factors of the gaps between submissions in the replays by which means are chosen, and in which
#: the gate must be kept. The rule with which ``rule-es`` begins, made to let jobs wait for all of
#: what the machine is behind and not for half of it, keeps the gate on the first half of CEA-Curie
#: as it is (1.64 times EASY's longest wait), and breaks it with gaps of 0.8 (2.47).
JUDGED = (0.98, 1.0, 1.02, 0.9, 0.8)

#: How far one unit of a search moves the logarithm of a number of the rules beside an order.
RULES_REACH = 0.5
_MOST_HELD = 0.1

_EVERY = 4  # generations between two choices
_PATIENCE = 5  # choices without a better mean after which a search ends
#: The best means, of which one may keep the gate, and then shares of the way to the best of them
#: from the beginning.
_MEANS = 3
_SHARES = (0.75, 0.5, 0.25, 0.0)

#: Worlds beside the logs, in turn: machines of three sizes, jobs of users with campaigns, and a
#: log's jobs of few widths.
WORLDS = (
    "lublin:processors=128,load=0.8",
    "kit:load=0.85",
    "lublin:processors=1024,load=0.8",
    "eurora:load=0.85",
    "lublin:processors=256,load=0.75",
)
_JOBS_OF_WORLD = 6000


# --- What a scheduler is worth --------------------------------------------------------------------


class Met(NamedTuple):
    """Jobs on which schedulers are tried, and their slowdowns and waits by EASY."""

    jobs: Workload
    easy: Felt


def meet(jobs: Workload) -> Met:
    """Return jobs with their schedule by EASY.

    Raises
    ------
    HpcgymError : they have no week with jobs enough.
    """
    easy = _felt(jobs, Scheduler())
    if not len(gain(easy, easy).weeks):
        raise HpcgymError(f"{jobs.name} has no week with jobs enough to learn from")
    return Met(jobs, easy)


def value(met: Met, rule: Scheduler) -> float:
    """Return the gain of a scheduler over EASY, less a penalty for exceeding the gate."""
    ours = _felt(met.jobs, rule)
    over = np.log(np.maximum(np.array(used(met.easy, ours)) / MARGIN, 1.0)).sum()
    return float(gain(met.easy, ours).weeks.mean() - _PRICE * over)


def _used(met: Met, rule: Scheduler) -> tuple[float, float]:
    return used(met.easy, _felt(met.jobs, rule))


def _felt(jobs: Workload, rule: Scheduler) -> Felt:
    return felt(simulate(jobs, rule), np.ones(len(jobs), np.bool_))


def values(cases: Sequence[Met], rules: Sequence[Scheduler]) -> list[float]:
    """Return the mean value of each scheduler over some cases.

    All simulations are done side by side by as many threads as this process may use: the engine
    lets others work. The result does not depend on their number.
    """
    pairs = [(met, rule) for rule in rules for met in cases]
    each = _side_by_side(lambda pair: value(*pair), pairs)
    means: list[float] = np.reshape(each, (len(rules), len(cases))).mean(axis=1).tolist()
    return means


def _side_by_side(function: Callable[[Any], Any], given: Iterable[Any]) -> list[Any]:
    threads = threads_here()
    if threads == 1:
        return [function(each) for each in given]
    pool = ThreadPoolExecutor(threads)
    try:
        return list(pool.map(function, given))
    finally:
        pool.shutdown(cancel_futures=True)  # where one has failed, or somebody has interrupted


def held(hold: Hold, by: float) -> Hold:
    """Return a hold whose share a search has moved so far, with three digits, 0.1 at most."""
    share = min(hold.share * math.exp(RULES_REACH * by), _MOST_HELD)
    return replace(hold, share=float(f"{share:.3g}"))


# --- The search -----------------------------------------------------------------------------------


class ReplaySearch:
    """A searcher: what vectors stand for is said by the class that has this as its base.

    Attributes
    ----------
    plan : its settings.
    vector : (n,) float64, what has been found; before ``train`` where the search begins.
    """

    plan: SearchSettings
    vector: Numbers

    def begin(self, make: Make, seed: int) -> None:
        """Set the vector with which a search for an environment begins.

        Raises
        ------
        HpcgymError : an environment in which no such scheduler acts.
        """
        raise NotImplementedError

    def scheduler_of(self, vector: Numbers) -> Scheduler:
        """Return the scheduler that a vector stands for."""
        raise NotImplementedError

    def evolution(self, seed: int) -> Evolution:
        """Return the search, which begins at ``vector``."""
        raise NotImplementedError

    @property
    def scheduler(self) -> Scheduler:
        """What was found, as it is simulated."""
        return self.scheduler_of(self.vector)

    def train(
        self, make: Make, seed: int, steps: int, log: Logger | None = None, past: Rows = ()
    ) -> Any:
        """Search; the same arguments find the same.

        Parameters
        ----------
        make : has the ``logs`` to learn from, see :class:`hpcgym.agents.practice.Make`. The jobs of
            the last quarter of their time are for choosing.
        seed : of the search, of how crowded logs are, and of generated worlds.
        steps : jobs that may be simulated: a generation that would exceed them is not begun. If
            they are too few for the first one, it is of the last jobs of each log.
        log : is told how the search goes.
        past : what ``log`` was told by a training with the same arguments that was interrupted: it
            goes on behind that, and ``log`` is not told it again.

        Raises
        ------
        HpcgymError : an environment in which no such scheduler acts, or a log without a week of 20
            jobs.
        """
        self.begin(make, seed)
        begun, plan, rng = self.vector.copy(), self.plan, np.random.default_rng(seed)
        spent, practice = Spending(steps), _Cases(make.logs, plan, steps)
        spent.done += practice.jobs_around
        search, means = self.evolution(seed), [begun]
        chosen, worse = [(practice.judged(self.scheduler), begun)], 0
        is_last = not spent.pays(practice.jobs + practice.jobs_to_judge)
        while not is_last and worse < _PATIENCE:
            cases, vectors = practice.drawn(rng), search.ask()
            row = past[len(means) - 1] if len(means) <= len(past) else None
            if row is None:
                met = _side_by_side(lambda jobs: meet(jobs()), cases)
                gains = values(met, [*map(self.scheduler_of, vectors)])
            else:
                gains = [float(row[f"gain/{k}"]) for k in range(len(vectors))]
            search.tell(gains)
            means.append(search.mean)
            self.vector = np.mean(means[len(means) // 2 :], axis=0)
            spent.done += practice.jobs
            measures = {"train/gain": float(np.mean(gains)), "train/best": max(gains)}
            measures |= {f"gain/{k}": each for k, each in enumerate(gains)}
            is_last = len(means) > plan.generations
            is_last |= not spent.pays(practice.jobs + 2 * practice.jobs_to_judge)
            if is_last or (len(means) - 1) % _EVERY == 0:
                judged = practice.judged(self.scheduler) if row is None else row["train/judged"]
                measures["train/judged"] = float(judged)
                spent.done += practice.jobs_to_judge
                worse = 0 if measures["train/judged"] > chosen[0][0] else worse + 1
                chosen.append((measures["train/judged"], self.vector))
                chosen.sort(key=lambda each: -each[0])  # of equals the first stays in front
            if log is not None and row is None:
                log(spent.done, measures)
        self.vector = self._kept([vector for _, vector in chosen], begun, practice)
        return self

    def _kept(self, means: Sequence[Numbers], begun: Numbers, practice: _Cases) -> Numbers:
        """Return the first that keeps the gate, or what exceeds it least.

        Tried are means, the best first, but none behind the beginning, and then what lies between
        the best and the beginning.
        """
        better = [*takewhile(lambda mean: mean is not begun, means)][:_MEANS]
        between = [begun + share * (means[0] - begun) for share in _SHARES]
        cases, uses = practice.to_be_held_to(), list[float]()
        tried = [*better, *between] if better else [begun]
        for vector in tried:
            used_of = partial(_used, rule=self.scheduler_of(vector))
            uses.append(float(np.max(_side_by_side(used_of, cases))))
            if uses[-1] <= 1.0:
                return vector
        return tried[int(np.argmin(uses))]


class _Cases:
    """The jobs of a search: to learn from, to judge by, and both.

    Attributes
    ----------
    jobs, jobs_to_judge, jobs_around : how many are simulated in a generation, in a choice, and
        before and after all generations.
    """

    def __init__(self, logs: Mapping[str, Workload], plan: SearchSettings, steps: int) -> None:
        self._plan, self._worlds, self._turn = plan, plan.worlds, 0
        self._cases: list[Met] | None = None
        whole = [jobs.take(slice(-plan.most_jobs, None)) for jobs in logs.values()]
        self._cut(whole)
        while (
            self.jobs + self.jobs_to_judge + self.jobs_around > steps and max(map(len, whole)) > 1
        ):
            if not self._worlds:  # without worlds first, then of less and less of the logs
                whole = [jobs.take(slice(len(jobs) // 10 + 1, None)) for jobs in whole]
            self._worlds = 0
            self._cut(whole)

    def _cut(self, whole: Sequence[Workload]) -> None:
        """Set the jobs that are learned from, and those that are set apart, and count them."""
        self._whole, self._known, self._apart = whole, list[Workload](), list[Workload]()
        for jobs in whole:
            cut = jobs.row_at(1 - HELD)
            parts = jobs.take(slice(0, cut)), jobs.take(slice(cut, None))
            # of what is too short for two, both are all
            known, apart = parts if all(map(_has_weeks, parts)) else (jobs, jobs)
            self._known.append(known)
            self._apart.append(apart)
        of_worlds = _JOBS_OF_WORLD * self._worlds
        # those of each vector, and under EASY
        self.jobs = (1 + self._plan.population) * (sum(map(len, self._known)) + of_worlds)
        self.jobs_to_judge = len(JUDGED) * sum(map(len, self._apart))
        # EASY, and what a search begins with, are simulated again where it goes on
        tries = len(JUDGED) * (1 + _MEANS + len(_SHARES))
        self.jobs_around = 4 * self.jobs_to_judge + tries * sum(map(len, whole))

    def drawn(self, rng: np.random.Generator) -> list[Callable[[], Workload]]:
        """Return what makes the jobs of a generation: where they are known, nobody makes them."""
        plan, made = self._plan, list[Callable[[], Workload]]()
        bounds = np.log([plan.densest, plan.sparsest])
        for jobs in self._known:
            factor = float(np.exp(rng.uniform(*bounds)))
            made.append(partial(stretched, jobs, factor))
        for _ in range(self._worlds):
            text, seed = WORLDS[self._turn % len(WORLDS)], int(rng.integers(2**31))
            self._turn += 1
            made.append(partial(load_workload, f"{text},jobs={_JOBS_OF_WORLD},seed={seed}"))
        return made

    def judged(self, rule: Scheduler) -> float:
        """Return the value of a scheduler on the jobs that are set apart."""
        if self._cases is None:
            self._cases = _stretched_by(JUDGED, self._apart)
        return values(self._cases, [rule])[0]

    def to_be_held_to(self) -> list[Met]:
        """Return the replays in which the gate must be kept."""
        return _stretched_by(JUDGED, self._whole)


def _has_weeks(jobs: Workload) -> bool:
    if not len(jobs):
        return False
    weeks = (jobs.submit_time - jobs.submit_time[0]) // WEEK_S
    return bool((np.bincount(weeks) >= FEWEST_JOBS).any())


def _stretched_by(factors: Sequence[float], logs: Sequence[Workload]) -> list[Met]:
    return _side_by_side(meet, [stretched(jobs, factor) for jobs in logs for factor in factors])
