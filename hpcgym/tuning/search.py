"""How the space of rules is searched: successive halving over arms, CMA-ES over their numbers.

A search is a generator: it yields rules, is sent what they lead to, and returns what it has found.
It knows nothing of jobs, and goes the same way again when it is told the same.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.tuning.space import Numbers, Searchable

#: How many arms go on after each round.
WIDTHS = (24, 6, 2)
#: Of how many parts simple rules are at most; see :meth:`hpcgym.tuning.space.Space.parts_of`.
SIMPLE = 3

#: On how many jitters of submissions rules are tried: in generations, after rounds, at the end.
OFTEN = {"generation": 2, "round": 8, "end": 16}

FIRST_LOOK = "first look"  # the stage in which all arms are tried

_SIGMA = 0.25  # of CMA-ES at the beginning, where weights go from -1 to 1 and levers from 0 to 1
_AT_ONCE = 256  # rules that are asked for together: what an interruption loses at most


class Asked(NamedTuple):
    """Rules about which the search wants to know.

    Attributes
    ----------
    rules : of schedulers.
    seeds : of the jitter of submissions, on each of which they are tried; 0 is the log as it is.
    stage : what the search is at, in words.
    """

    rules: list[dict[str, Any]]
    seeds: tuple[int, ...]
    stage: str


class Found(NamedTuple):
    """What a search has found.

    Attributes
    ----------
    finalists : the rules of each arm that went on after the first look: as it began, and as it
        ended.
    seeds : of jitters on which nothing was tried.
    rows : a row for each time that something was asked for: the stage, what has been tried by then,
        and the least loss of those asked for.
    arms : a row for each arm that went on after the first look: in how many rounds it was, how
        often it was tried, and its loss after the last of them.
    """

    finalists: list[dict[str, Any]]
    seeds: tuple[int, ...]
    rows: list[dict[str, Any]]
    arms: list[dict[str, Any]]


#: Is sent the losses of all rules that were asked for, (n_rules,): the less, the better.
Search = Generator[Asked, NDArray[np.float64], Found]


@dataclass(eq=False)
class _Run:
    """The search for the numbers of one arm: where it is best so far, and how good that is."""

    arm: Any  # a named tuple, by which it can be found again
    start: Numbers
    best: Numbers
    loss: float
    optimiser: Any  # None where there are no numbers to search
    tried: int = 0
    rounds: int = 0

    def ask(self) -> list[Numbers]:
        """Return the numbers of the next generation."""
        return [self.optimiser.ask() for _ in range(self.optimiser.population_size)]

    def tell(self, asked: Sequence[Numbers], losses: Sequence[float]) -> None:
        """Take the losses of a generation."""
        self.optimiser.tell(list(zip(asked, losses, strict=True)))
        self.tried += len(asked)


Asking = Generator[Asked, NDArray[np.float64], Any]


class _Searcher:
    """What the stages of a search share."""

    def __init__(self, space: Searchable, units: Numbers, seed: int) -> None:
        self.space, self.units = space, units
        self.rng = np.random.default_rng(seed)
        self.tried, self.jitters = 0, 0
        self.rows: list[dict[str, Any]] = []

    def ask(self, pairs: Sequence[tuple[Any, Numbers]], often: str, stage: str) -> Asking:
        """Ask for the losses of some, on jitters that nothing was tried on before."""
        first = self.jitters
        self.jitters += OFTEN[often]
        rules = [self.space.rules(arm, numbers, self.units) for arm, numbers in pairs]
        losses: list[float] = []
        for k in range(0, len(rules), _AT_ONCE):
            asked = Asked(rules[k : k + _AT_ONCE], tuple(range(first, self.jitters)), stage)
            told = (yield asked).tolist()
            losses += told
            self.tried += len(told)
            self.rows.append({"stage": stage, "tried": self.tried, "loss": min(told)})
        return losses


def searching(space: Searchable, units: Numbers, *, budget: int, seed: int) -> Search:
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
    units : of the weights, see :meth:`hpcgym.tuning.space.Searchable.units`.
    budget : rules that are tried in generations, about.
    seed : of what is random.
    """
    searcher = _Searcher(space, units, seed)
    runs = yield from _first_look(searcher)
    everyone = runs = _go_on(searcher, runs)
    for number, width in enumerate(WIDTHS, 1):
        runs = sorted(runs, key=lambda run: run.loss)[:width]
        yield from _race(searcher, runs, budget // len(WIDTHS), f"round {number}")
        yield from _look_again(searcher, runs, f"round {number}")
    last = sorted(everyone, key=lambda run: (-run.rounds, run.loss))
    rows = [
        {"arm": str(run.arm), "rounds": run.rounds, "tried": run.tried, "loss": run.loss}
        for run in last
    ]
    finalists = [space.rules(run.arm, run.best, units) for run in last]
    finalists += [space.rules(run.arm, run.start, units) for run in last]
    differing = [one for k, one in enumerate(finalists) if one not in finalists[:k]]
    fresh = tuple(range(searcher.jitters, searcher.jitters + OFTEN["end"]))
    return Found(differing, fresh, searcher.rows, rows)


def _first_look(searcher: _Searcher) -> Asking:
    """Try simple orders with each arm; return a run for each, at the best of them."""
    import cmaes  # here, because it imports scipy where there is one

    space = searcher.space
    pairs = [(arm, start) for arm in space.arms() for start in space.starts(arm)]
    losses = yield from searcher.ask(pairs, "generation", FIRST_LOOK)
    best: dict[Any, tuple[float, Numbers]] = {}
    for (arm, start), loss in zip(pairs, losses, strict=True):
        if arm not in best or loss < best[arm][0]:
            best[arm] = loss, start
    seeds = searcher.rng.integers(2**31, size=len(best)).tolist()
    runs = []
    for (arm, (loss, start)), seed in zip(best.items(), seeds, strict=True):
        optimiser = None
        if len(start):
            optimiser = cmaes.CMA(start.copy(), _SIGMA, space.bounds(arm), seed=seed)
        runs.append(_Run(arm, start, start, loss, optimiser))
    return runs


def _go_on(searcher: _Searcher, runs: Sequence[_Run]) -> list[_Run]:
    """Return the arms that go on after the first look: the best simple ones and the best others."""
    space, units = searcher.space, searcher.units
    ranked = sorted(runs, key=lambda run: run.loss)
    rules = {id(run): space.rules(run.arm, run.start, units) for run in ranked}
    simple = [run for run in ranked if space.parts_of(rules[id(run)]) <= SIMPLE][: WIDTHS[0] // 2]
    others = [run for run in ranked if run not in simple]
    return simple + others[: WIDTHS[0] - len(simple)]


def _race(searcher: _Searcher, runs: Sequence[_Run], budget: int, stage: str) -> Asking:
    """Let runs go on side by side, until each has been tried so often in this round."""
    runs = [run for run in runs if run.optimiser is not None]
    most = {id(run): run.tried + budget // len(runs) for run in runs}
    while live := [run for run in runs if run.tried < most[id(run)]]:
        live = [run for run in live if not run.optimiser.should_stop()]
        if not live:
            return
        asked = [run.ask() for run in live]
        pairs = [(run.arm, one) for run, some in zip(live, asked, strict=True) for one in some]
        losses = yield from searcher.ask(pairs, "generation", stage)
        for run, some in zip(live, asked, strict=True):
            run.tell(some, losses[: len(some)])
            losses = losses[len(some) :]


def _look_again(searcher: _Searcher, runs: Sequence[_Run], stage: str) -> Asking:
    """Compare the middle of each run with where it was best before."""
    searched = [run for run in runs if run.optimiser is not None]
    middles = [run.optimiser.mean.copy() for run in searched]
    pairs = [(run.arm, run.best) for run in runs]
    pairs += [(run.arm, middle) for run, middle in zip(searched, middles, strict=True)]
    losses = yield from searcher.ask(pairs, "round", stage)
    for run, before in zip(runs, losses[: len(runs)], strict=True):
        run.loss, run.rounds = before, run.rounds + 1
    for run, middle, now in zip(searched, middles, losses[len(runs) :], strict=True):
        if now < run.loss:
            run.best, run.loss = middle, now
