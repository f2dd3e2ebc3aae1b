"""What a scheduler learns of pairs of jobs while they run, for co-scheduled simulations."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import HpcgymError
from hpcgym.simulation.corun_machine import belief_in
from hpcgym.speedups.heatmap import Heatmap
from hpcgym.speedups.learned import LearnedSpeedups

if TYPE_CHECKING:
    from hpcgym._engine import Simulation
    from hpcgym.scheduler.rules import Scheduler

#: The part of its run that a job must have spent beside one code for its end to tell of the pair.
ENOUGH = 0.9


class PairLearning:
    """Tells the simulator what the scheduler takes for the speedups of pairs.

    Jobs tell when they have ended: the mean rate over their whole run, the compact run time over
    that which it took, is that of the pair if they ran beside jobs of one code for at least nine
    tenths of it. Nothing else is seen of the true speedups.
    """

    def __init__(self, pairs: Any, speedups: Heatmap, pairs_above: float | None):
        self.pairs = pairs
        self._codes = speedups.codes
        self._above = pairs_above
        self._told = 0  # spells that have been looked at
        self._ended = 0
        self._code = self._run = np.zeros(0, np.int64)  # of each job; compact run times [ticks]
        self._beside: dict[int, dict[int, int]] = {}  # job -> code -> ticks

    @classmethod
    def of(cls, scheduler: Scheduler, speedups: Heatmap) -> PairLearning | None:
        """Return what goes with the scheduler's ``pair_estimate``; None if it knows the truth."""
        pairs = scheduler.pair_estimate
        if isinstance(pairs, str):
            if pairs == "known":
                return None
            pairs = LearnedSpeedups(codes=speedups.codes)
        missing = [code for code in speedups.codes if code not in pairs.codes]
        if missing:
            raise HpcgymError(f"pair_estimate knows no code {missing[0]!r}")
        return cls(copy.deepcopy(pairs), speedups, scheduler.pairs_above)

    @property
    def learns(self) -> bool:
        """Whether ends are learned from."""
        return hasattr(self.pairs, "learn")

    def begin(self, code: NDArray[np.int64], run: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Return what is believed of the speedups when a simulation begins, for a model.

        ``code`` (n_jobs,) of its jobs, and ``run`` (n_jobs,) [ticks] how long they run compactly.
        """
        self._code, self._run = code, run
        return self._belief()

    def _belief(self) -> dict[str, NDArray[Any]]:
        """Return what is believed now, as the engine takes it."""
        codes = list(self._codes)
        if self.learns:
            places = [self.pairs.codes.index(code) for code in codes]
            matrix = self.pairs.matrix()[np.ix_(places, places)]
            alone = matrix.max(axis=1)  # as of heatmaps that do not tell
        else:
            known = self.pairs.take(codes)
            matrix, alone = known.filled, known.alone
        return belief_in(matrix, alone, self._above)

    def learn(self, native: Simulation) -> None:
        """Learn from the jobs that have ended since the last time, after a pass."""
        ended = native.ended(self._ended).tolist()
        if not ended:
            return
        spells = native.spells(self._told)
        self._told += len(spells["job"])
        self._ended += len(ended)
        self._note(*(spells[name].tolist() for name in ("job", "beside", "begin", "end")))
        told = [self._learn_from(job, native.time - native.start(job)) for job in ended]
        if any(told):
            native.believe(self._belief())

    def _note(self, *spells: list[int]) -> None:
        """Note who has run how long beside whom: jobs, codes, begins and ends of spells."""
        for job, beside, begin, end in zip(*spells, strict=True):
            of_job = self._beside.setdefault(job, {})
            of_job[beside] = of_job.get(beside, 0) + end - begin

    def _learn_from(self, job: int, took: int) -> bool:
        """Learn from the end of a job; return whether it told anything."""
        spells = self._beside.pop(job, {})
        total = sum(spells.values())
        if not total:
            return False
        beside = max(spells, key=lambda code: (spells[code], -code))
        if beside < 0 or spells[beside] < ENOUGH * total:
            return False
        rate = float(self._run[job]) / float(took)
        self.pairs.learn(self._codes[self._code[job]], self._codes[beside], rate)
        return True
