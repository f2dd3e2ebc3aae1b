"""What steps environments, and knows what they are in between.

What steps write of episodes lies in the arrays of :class:`hpcgym.envs.core.arrays.Batch`. What
happens between two decisions a simulation of the engine knows, as :func:`hpcgym.simulate` has one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Simulation, Stepper
from hpcgym.envs.core import arrays
from hpcgym.envs.core.model import model_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hpcgym.envs.core.simulations import Simulations


class Kept:
    """A copy of a simulation; where it is pickled, what it knows as bytes.

    ``hides``: whether it has jobs with run times of its own.
    """

    def __init__(self, simulation: Simulation, hides: bool) -> None:
        self._simulation: Simulation | None = simulation
        self._hides = hides
        self._saved: tuple[bytes, NDArray[np.int64] | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle has of it."""
        saved, own = self._saved, self._simulation
        if own is not None:
            saved = own.saved(), own.run_times() if self._hides else None
        return {"_simulation": None, "_hides": self._hides, "_saved": saved}

    def in_place(self, stepper: Stepper, e: int, accounts: Callable[[], Any]) -> Simulation:
        """Return it, to go on in an environment of its jobs.

        ``accounts`` returns what users had used before, as the engine takes it, or None.
        """
        if self._simulation is None:
            assert self._saved is not None
            saved, run_times = self._saved
            made = stepper.anew(e, accounts())
            if run_times is not None:
                made = made.anew(run_times)
            made.load(saved)
            self._simulation = made
        return self._simulation

    def hidden(self) -> Simulation:
        """Return one that goes on with the future hidden, of one that has not been pickled."""
        assert self._simulation is not None
        return self._simulation.hidden()


class Steps:
    """What steps environments, see above."""

    def __init__(self, simulations: Simulations) -> None:
        self._simulations, batch = simulations, simulations.batch
        self._rows: dict[str, NDArray[Any]] = {
            name: array if array.ndim > 1 else array.reshape(-1, 1)
            for name, array in batch._asdict().items()
        }
        whole = batch.episode_state.view(np.int64).reshape(len(batch.window), -1)
        self._rows["episode_state"] = whole
        table = simulations.table._asdict() | {
            "settings": simulations.table.settings.view(np.int64)
        }
        self._stepper = Stepper(model_of(simulations), table, self._rows, simulations.begins)
        self._actions = simulations.chosen, simulations.numbers
        for e in range(len(batch.window)):
            self.set_next(e)

    def set_next(self, e: int) -> None:
        """Tell of the limits and the accounts of users of the next episode of simulation ``e``."""
        usage, limits = self._simulations.usage, self._simulations.machines.next_limits(e)
        if limits is not None:
            self._stepper.limit(e, limits)
        if usage is not None and e in usage.coming:
            self._stepper.begin_with(e, usage.coming[e])

    def look_at(self, which: int, out: arrays.Outputs) -> None:
        """Let a set of arrays, by its number, be one to tell in."""
        told: tuple[Any, ...] = out
        self._stepper.look_at(which, *self._actions, *told)

    def choose(self, actions: NDArray[np.int64], number: int) -> bool:
        """Set the actions of all if each is an index below ``number``; return whether they are."""
        return self._stepper.choose(actions, number)

    def go_on(self, task: int, first: int, stop: int, workers: int, which: int) -> bool:
        """Step some simulations, begin their next episodes, or only show where they are.

        ``task``: STEP, BEGIN or SHOW; ``first``, ``stop``: which; ``workers``: on how many threads;
        ``which``: the set of arrays to tell in. Return whether an episode has ended.
        """
        return self._stepper.go_on(task, first, stop, workers, which)

    def _accounts(self, e: int) -> dict[str, NDArray[Any]] | None:
        """Return those with which the present episode of simulation ``e`` has begun."""
        simulations = self._simulations
        if simulations.usage is None:
            return None
        jobs = simulations.episodes.workload_of(simulations.present(e))
        return simulations.usage.beginning(jobs)

    def simulation(self, e: int) -> Simulation:
        """Return simulation ``e``, which goes on with its environment up to the next episode."""
        return self._stepper.simulation(e)

    def kept(self, e: int) -> Kept:
        """Return a copy of simulation ``e``."""
        return Kept(self.simulation(e).copy(), self._simulations.hides(e))

    def rows(self, e: int) -> dict[str, NDArray[Any]]:
        """Return copies of what steps have written of the episode of simulation ``e``."""
        return {name: array[e].copy() for name, array in self._rows.items()}

    def put(self, e: int, kept: Kept, rows: dict[str, NDArray[Any]] | None = None) -> None:
        """Let simulation ``e`` go on from a copy, of an episode of these rows, or as they are."""
        for name, row in ({} if rows is None else rows).items():
            self._rows[name][e] = row
        self._stepper.put(e, kept.in_place(self._stepper, e, partial(self._accounts, e)))

    @property
    def nbytes(self) -> int:
        """Memory of the simulations, and of what steps write of episodes [bytes]."""
        return self._stepper.nbytes + sum(array.nbytes for array in self._rows.values())
