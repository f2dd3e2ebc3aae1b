"""What a scheduler learns of pairs of jobs while they run, for co-scheduled simulations."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.engine import state
from hpcgym.engine.machines.corun import state as engine
from hpcgym.engine.machines.corun.state import CorunNodes
from hpcgym.errors import HpcgymError
from hpcgym.simulation.native_corun import belief_in
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

    def tell(self, arrays: state.Prepared, machine: CorunNodes) -> None:
        """Let the simulator's scheduler take what is believed now for the speedups."""
        codes = list(self._codes)
        if self.learns:
            places = [self.pairs.codes.index(code) for code in codes]
            matrix = self.pairs.matrix()[np.ix_(places, places)]
            alone = matrix.max(axis=1)  # as of heatmaps that do not tell
        else:
            known = self.pairs.take(codes)
            matrix, alone = known.filled, known.alone
        waiting = np.flatnonzero(arrays.progress["start"][: arrays.sim.next] < 0)
        of_codes = np.bincount(machine.tasks["code"][waiting], minlength=len(codes))
        engine.believe(machine, matrix, alone, self._above, of_codes)
        arrays.sim.changed = 1  # who was refused may not be now

    def learn(self, arrays: state.Prepared, machine: CorunNodes) -> None:
        """Learn from the jobs that have ended since the last time."""
        if not self.learns or arrays.sim.ended == self._ended:
            return
        spells = machine.spells[self._told : machine.scalars[0].n_spells]
        self._note(*(spells[name].tolist() for name in ("job", "beside", "begin", "end")))
        self._told = int(machine.scalars[0].n_spells)
        # the jobs that ended at this pass; their last spells are noted then
        released = int(machine.scalars[0].released)
        ended = arrays.ended[self._ended : released].tolist()
        starts = arrays.progress["start"][ended].tolist()
        self._ended = released
        if self._learn_from_all(ended, starts, int(arrays.sim.time), arrays, machine):
            self.tell(arrays, machine)

    def learn_natively(
        self, arrays: state.Prepared, machine: CorunNodes, native: Simulation
    ) -> None:
        """Do the same after a pass of the native engine."""
        ended = native.ended(self._ended).tolist()
        if not ended:
            return
        spells = native.spells(self._told)
        self._told += len(spells["job"])
        self._ended += len(ended)
        self._note(*(spells[name].tolist() for name in ("job", "beside", "begin", "end")))
        starts = [native.start(job) for job in ended]
        if self._learn_from_all(ended, starts, native.time, arrays, machine):
            self.tell(arrays, machine)  # it knows by itself who waits
            native.believe(belief_in(machine))

    def _note(self, *spells: list[int]) -> None:
        """Note who has run how long beside whom: jobs, codes, begins and ends of spells."""
        for job, beside, begin, end in zip(*spells, strict=True):
            of_job = self._beside.setdefault(job, {})
            of_job[beside] = of_job.get(beside, 0) + end - begin

    def _learn_from_all(
        self,
        ended: list[int],
        starts: list[int],
        now: int,
        arrays: state.Prepared,
        machine: CorunNodes,
    ) -> bool:
        """Learn from jobs that have ended now; return whether one told anything."""
        learned = False
        for job, start in zip(ended, starts, strict=True):
            learned |= self._learn_from(job, now - start, arrays, machine)
        return learned

    def _learn_from(self, job: int, took: int, arrays: state.Prepared, machine: CorunNodes) -> bool:
        """Learn from the end of a job; return whether it told anything."""
        spells = self._beside.pop(job, {})
        total = sum(spells.values())
        if not total:
            return False
        beside = max(spells, key=lambda code: (spells[code], -code))
        if beside < 0 or spells[beside] < ENOUGH * total:
            return False
        rate = float(arrays.jobs["run"][job]) / float(took)
        code = int(machine.tasks["code"][job])
        self.pairs.learn(self._codes[code], self._codes[beside], rate)
        return True
