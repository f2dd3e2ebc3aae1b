"""Environments on the native engine.

What steps write of episodes lies in the arrays of :class:`hpcgym.envs.core.arrays.Batch`. What
happens between two decisions a simulation of the engine knows, as :func:`hpcgym.simulate` has one.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym._engine import Simulation, Stepper
from hpcgym.envs.core import arrays
from hpcgym.envs.core.native_limits import next_limits
from hpcgym.envs.core.native_model import model_of
from hpcgym.envs.core.told import NativeNow
from hpcgym.simulation.native_nodes import lost_in
from hpcgym.simulation.preempting import StoppedRuns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hpcgym.engine.machines.corun.rows import CorunRows
    from hpcgym.envs.core.simulations import Simulations

#: What steps write for Python, of a Batch.
_ROWS = (
    *("episode_state", "window", "new", "terms", "totals", "norms", "owed", "scales"),
    *("next_scales", "unpaid", "gone", "gone_bsld", "busy_until"),
)


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


class NativeSteps:
    """What steps environments on the native engine, and knows what they are in between.

    What steps write of episodes is in the batch of ``simulations``; all else the engine knows.
    """

    def __init__(self, simulations: Simulations) -> None:
        self._simulations, self._batch = simulations, simulations.batch
        self._rows = rows_of(self._batch, simulations.machines.parts.corun)
        self._stepper = stepper_of(simulations.table, self._rows, simulations)
        self._actions = simulations.chosen, simulations.numbers
        self._out: arrays.Outputs | None = None
        for e in range(len(self._batch.window)):
            self.set_next(e)

    def set_next(self, e: int) -> None:
        """Tell of the limits and the accounts of users of the next episode of simulation ``e``."""
        limited, usage = self._simulations.machines.parts.limited, self._simulations.usage
        if limited is not None:
            self._stepper.limit(e, next_limits(limited, e))
        if usage is not None and e in usage.coming:
            self._stepper.begin_with(e, usage.coming[e])

    def go_on(self, task: int, first: int, stop: int, workers: int, out: arrays.Outputs) -> None:
        """Step some simulations, begin their next episodes, or only show where they are.

        ``task``: STEP, BEGIN or SHOW; ``first``, ``stop``: which; ``workers``: on how many threads.
        """
        if out is not self._out:
            told: tuple[Any, ...] = out
            self._stepper.look_at(*self._actions, *told)
            self._out = out
        self._stepper.go_on(task, first, stop, workers)

    def _accounts(self, e: int) -> dict[str, NDArray[Any]] | None:
        """Return those with which the present episode of simulation ``e`` has begun."""
        simulations = self._simulations
        if simulations.usage is None:
            return None
        jobs = simulations.episodes.workload_of(simulations.present(e))
        return simulations.usage.beginning(jobs)

    def suspended(self, e: int) -> NDArray[np.int64]:
        """Return the rows of the jobs of simulation ``e`` that others have suspended."""
        return self.simulation(e).moment().get("given_up", np.zeros(0, np.int64))

    def stopped(self, e: int) -> StoppedRuns:
        """Return the log of runs that others have ended in simulation ``e``."""
        kept: Any = self._simulations.machines.kept
        lost, cells = lost_in(self.simulation(e).schedule())
        return StoppedRuns(int(kept.stops.begin["mode"][0]), lost, cells)

    def simulation(self, e: int) -> Simulation:
        """Return simulation ``e``, which goes on with its environment up to the next episode."""
        return self._stepper.simulation(e)

    def now(self, e: int) -> NativeNow:
        """Return what has happened in simulation ``e``."""
        return NativeNow(self.simulation(e), self._simulations.hides(e))

    def kept(self, e: int) -> Kept:
        """Return a copy of simulation ``e``."""
        return Kept(self.simulation(e).copy(), self._simulations.hides(e))

    def changes_jobs(self, e: int) -> bool:
        """Return whether the jobs of simulation ``e`` may be others than those of the table."""
        simulations = self._simulations
        scheduler, is_limited = simulations.options.scheduler, simulations.machines.parts.limited
        changes = scheduler.moves_submissions or scheduler.preemption is not None
        return changes or is_limited is not None or simulations.hides(e)

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


def rows_of(batch: arrays.Batch, corun: CorunRows | None) -> dict[str, NDArray[Any]]:
    """Return the arrays into which the engine writes of episodes."""
    rows = {name: getattr(batch, name) for name in _ROWS}
    for name in ("counted_j", "begun_j"):
        rows[name] = getattr(batch, name).reshape(-1, 1)
    if corun is not None:
        rows |= {"neighbours": corun.neighbours, "books": corun.books}
    rows["episode_state"] = batch.episode_state.view(np.int64).reshape(len(batch.window), -1)
    return rows


def stepper_of(
    table: arrays.Table, rows: dict[str, NDArray[Any]], simulations: Simulations
) -> Stepper:
    """Return what steps environments."""
    told = {name: getattr(table, name) for name in ("codes", "columns", "ordered_by", "watts")}
    told |= {"settings": table.settings.view(np.int64), "shapes": table.shapes}
    told |= {"reward_weights": table.reward_weights}
    told |= {"node_watts": table.node_watts, "still_w": table.still_w}
    parts = simulations.machines.parts
    if parts.corun is not None:
        told["mean_speedup"] = parts.corun.mean
    return Stepper(model_of(simulations), told, rows, simulations.begins)
