"""Users that submit jobs without learning: what they ask for in the environment Submit.

Each has the interface of an agent: ``begin(env)`` after a reset, then ``act(observation, info)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.errors import HpcgymError, check_choice

if TYPE_CHECKING:
    from hpcgym.forecasting import MachineState

#: Name -> what such a user asks for.
SUBMITTERS = {
    "as-logged": "what the log says, or the shape next to it",
    "smallest": "the fewest processors, with the longest request",
    "forecast": "the shape with the least mean turnaround in futures of the queue",
}


#: How many equally likely run times of a job are looked at.
_RUNS = 32


class Submitter:
    """A user by name, for the environment Submit.

    Parameters
    ----------
    name : of :data:`SUBMITTERS`.
    futures, seed : of each forecast.

    Raises
    ------
    HpcgymError : no such name.
    """

    def __init__(self, name: str, futures: int = 8, seed: int = 0) -> None:
        self.name = check_choice("submitter", name, SUBMITTERS)
        self._futures, self._seed = futures, seed
        self._env: Any = None

    def __repr__(self) -> str:
        return f"Submitter({self.name!r})"

    def begin(self, env: Any) -> None:
        """Look at an environment, after each reset.

        Raises
        ------
        HpcgymError : its actions are no shapes of jobs.
        """
        env = getattr(env, "unwrapped", env)
        if env.action_kind != "submit":
            raise HpcgymError(f"submitter {self.name!r} acts in hpcgym/Submit-v0 alone")
        self._env = env

    def act(self, observation: Any, info: Mapping[str, Any]) -> int:
        """Return the shape of the job in question.

        Parameters
        ----------
        observation, info : not used: it asks the environment.
        """
        if self._env is None:
            raise HpcgymError(f"submitter {self.name!r}: call begin(env) after the reset, then act")
        shapes, row = self._env.shapes, self._env.next_job
        if self.name == "smallest":
            return int(shapes.place(min(shapes.widths), max(shapes.requests)))
        if self.name == "as-logged" or row < 0:
            return int(shapes.place(1.0, 1.0))
        return self._by_forecast(row)

    def _by_forecast(self, row: int) -> int:
        """Return the shape with the least mean turnaround, by what is known now."""
        from hpcgym.forecasting.forecasts import Forecast
        from hpcgym.forecasting.run_times import RunTimes

        env = self._env
        shapes, state = env.shapes, state_of(env)
        job = env.episode_workload.take(slice(row, row + 1))
        learned = RunTimes(state.past)
        forecast = Forecast(
            state, env.options.scheduler, state.past, self._futures, self._seed, 1, learned
        )
        user, requested, processors = (
            int(job.columns[name][0])
            for name in ("user_id", "requested_time", "requested_processors")
        )
        level = (np.arange(_RUNS) + 0.5) / _RUNS
        run = learned.of(user, requested, processors, state.time).quantile(level)
        perhaps = job.take(np.zeros(_RUNS, np.int64)).with_columns(run_time=run)
        turnarounds = []
        for shape in range(shapes.number):
            asked = shapes.asked(perhaps, shape)
            starts = forecast.new_starts(
                job.with_columns(**{name: column[:1] for name, column in asked.items()})
            )
            wait, work = (starts - state.time).mean(), asked["run_time"]
            again = work > asked["requested_time"]  # then it is submitted once more
            mean = np.minimum(work, asked["requested_time"]).mean() + (work * again).mean()
            turnarounds.append(mean + wait * (1 + again.mean()))
        return int(np.argmin(turnarounds))


def state_of(env: Any) -> MachineState:
    """Return what is known as the job in question is submitted, as :func:`hpcgym.snapshot`."""
    from hpcgym.forecasting.state import state_of_log
    from hpcgym.workload.extracts import joined

    result = env.result()
    time = int(result.workload.submit_time[env.next_job])
    submitted = env.simulations.simulation(0).moment()["submitted"].item()
    came = result.workload.take(slice(0, submitted))
    start = result.start[: len(came)]
    ended = (start >= 0) & (start + result.run_time[: len(came)] < time)
    known = came.with_columns(
        wait_time=np.where(start >= 0, start - came.submit_time, -1),
        run_time=np.where(ended, result.run_time[: len(came)], -1),
    )
    known, before = replace(known, initial=None), result.workload.initial
    if before is not None:
        known = joined(before.past, known)
    return state_of_log(known, time, env.options.cluster)
