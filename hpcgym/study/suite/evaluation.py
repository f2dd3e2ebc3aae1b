"""The evaluation of a task: schedules of its slices, by agents or schedulers, and their metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import KINDS, RandomActions, random_order
from hpcgym.envs.core.base import arguments_of
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.slices import Episode, counted
from hpcgym.errors import HpcgymError
from hpcgym.schedule.measures import metrics_within, over_at
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, NodeStates
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.evaluation.environments import run_episode
from hpcgym.study.evaluation.platform import platform_of
from hpcgym.study.evaluation.user_policies import check_spaces
from hpcgym.study.suite.tasks import Task, environment, jobs_of, part_of

# --- The evaluation of a task ---------------------------------------------------------------------

#: Of a slice, the arrays of its schedule by name.
Kept = Mapping[str, NDArray[Any]]

#: Metrics that submissions tell of each slice; scores are of the first.
METRICS = ("mean_bsld", "p99_wait_s", "max_wait_s", "unserved_jobs", "utilization")

#: What else is computed of schedules: the longest wait of all that have come by the end of a slice,
#: also before it; of who still waits then, so far. ``max_wait_s`` is of jobs of the slice alone.
LONGEST = "longest_wait_s"

#: Arguments of environments that say what observations and actions mean.
_MEANING = (
    "window", "features", "observation", "policy_features", "scale", "controls", "action",
    "neighbours",
)  # fmt: skip

_CELLS = ("first", "node", "units")
_STATES = ("node", "state", "begin", "end")
_TICKS = ("start_ticks", "end_ticks", "shape")


#: All rules of the best static scheduler but its weights.
STATIC = Scheduler(policy="spf", backfill_order="spf")


class Evaluation:
    """The evaluation of policies and schedulers on a part of a task.

    Parameters
    ----------
    task : what is evaluated on.
    part : one of :data:`hpcgym.study.suite.tasks.PARTS`; submissions are of the test part.

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.study.suite.tasks.jobs_of`.
    """

    def __init__(self, task: Task, part: str = "test") -> None:
        self.task, self._part = task, part
        self.env = environment(task, part)
        self._episodes: Episodes = self.env.unwrapped.episodes
        self._platform = platform_of(self.env.unwrapped)

    def __enter__(self) -> Evaluation:
        return self

    def __exit__(self, *about: object) -> None:
        self.env.close()

    @property
    def slices(self) -> list[Episode]:
        """The slices, in order of time."""
        return self._episodes.listing

    # -- schedules of policies ---------------------------------------------------------------------

    def check(self, name: str, policy: Any) -> None:
        """Raise an HpcgymError if this policy, or scheduler, cannot act here at all."""
        if isinstance(policy, Scheduler):
            return
        made_for = getattr(policy, "env_id", None)
        if made_for is not None and _plain(made_for) != _plain(self.task.env_id):
            raise HpcgymError(
                f"{name} acts in {made_for}, and {self.task.name} is {self.task.env_id}"
            )
        check_spaces(name, policy, self.env.unwrapped)
        theirs = getattr(policy, "env_options", None)
        usual = arguments_of(type(self.env.unwrapped))
        for option in _MEANING:  # what a saved agent sees or says must mean the same here
            if (
                not isinstance(theirs, Mapping)
                or option not in usual
                or option in getattr(policy, "adapts", ())
            ):
                continue
            default = usual[option].default
            there, here = theirs.get(option, default), self.task.options.get(option, default)
            if _listed(there) != _listed(here):
                raise HpcgymError(
                    f"{name} is for {option}={there!r}, and {self.task.name} has {here!r}"
                )

    def run(self, policy: Any, episode: Episode) -> Kept:
        """Return the schedule of a slice: of a scheduler by simulation, else of what acts.

        Raises
        ------
        HpcgymError : the policy cannot act here, or its schedule has no end.
        Exception : whatever a policy of the user's raises.
        """
        limits, env = self._platform.limits, self.env
        if isinstance(policy, Scheduler) and limits is not None:
            policy = policy.but(power=limits.power)

        def enter() -> tuple[Any, Any, Any]:
            return env, *env.reset(seed=0, options={"slice": episode.name})

        slices = self._told if isinstance(policy, Scheduler) else self._episodes
        ran = run_episode(policy, episode, slices, self._platform, enter)
        return self._kept(ran.result(), episode)

    def chance(self, seed: int) -> Any:
        """Return random actions; where there are none, a random order."""
        if getattr(self.env.unwrapped, "action_kind", "") in KINDS:
            return RandomActions(seed)
        if self.task.kind == "pairs":
            raise HpcgymError(f"{self.task.name} knows no random actions")
        return random_order(Scheduler(), len(self._episodes.workload), seed)

    @cached_property
    def _told(self) -> Episodes:
        """The same slices with the jobs that had ended before, from which schedulers learn."""
        given = self._episodes
        if given.alone:
            return given
        whole, _ = part_of(jobs_of(self.task), self.task, self._part)
        return Episodes(
            whole, given.kind, given.jobs, given.part, given.train_share, **given.around,
            keeps_past=True,
        )  # fmt: skip

    # -- schedules ---------------------------------------------------------------------------------

    def _kept(self, result: Result, episode: Episode) -> dict[str, NDArray[Any]]:
        """Return what is kept of a schedule."""
        if result.coschedule is not None:
            kept = {name: np.asarray(getattr(result.coschedule, name)) for name in _TICKS}
        else:
            kept = {"start": self._within(np.asarray(result.start), episode)}
        if result.allocation is not None and not self.surrounded:
            kept |= {f"cells_{name}": getattr(result.allocation, name) for name in _CELLS}
        if result.node_states is not None:
            kept |= {f"states_{name}": getattr(result.node_states, name) for name in _STATES}
        return kept

    @property
    def surrounded(self) -> bool:
        """Whether slices have something around them, so that jobs may wait at their end."""
        return not self._episodes.alone

    def _within(self, start: NDArray[np.int64], episode: Episode) -> NDArray[np.int64]:
        """Return start times up to the end of an episode; -1 of what starts later."""
        if not self.surrounded:
            return start
        return np.where(start <= over_at(start, *counted(episode)), start, -1)

    def result(self, kept: Kept, episode: Episode) -> Result:
        """Return the schedule of a slice from what was kept of it.

        Everything but that is of the task: jobs, machine, limits, run times.

        Raises
        ------
        HpcgymError : arrays of other names, types or lengths than such a schedule has.
        """
        blank = self._blank(episode)
        names = set(self._kept(blank, episode))
        if set(kept) != names:
            raise HpcgymError(f"its arrays are {sorted(kept)}, not {sorted(names)}")
        n = len(blank.workload)
        for name, array in kept.items():
            if not np.issubdtype(array.dtype, np.integer) or array.ndim != 1:
                raise HpcgymError(f"{name} is no list of whole numbers")
        for name in ("start", *_TICKS):
            if name in kept and len(kept[name]) != n:
                raise HpcgymError(f"{name} has {len(kept[name])} jobs, not {n}")
        if self.surrounded:
            return replace(blank, start=self._within(kept["start"].astype(np.int64), episode))
        cells = [kept[f"cells_{name}"] for name in _CELLS]
        if len(cells[0]) != n + 1 or len(cells[1]) != len(cells[2]) or not _counts(cells):
            raise HpcgymError("its nodes are not told job by job")
        made: dict[str, Any] = {"allocation": Allocation(*cells)}
        if "states_node" in kept:
            made["node_states"] = NodeStates(*(kept[f"states_{name}"] for name in _STATES))
        if blank.coschedule is None:
            return replace(blank, start=kept["start"].astype(np.int64), **made)
        made["coschedule"] = blank.coschedule._replace(
            start_ticks=kept["start_ticks"], end_ticks=kept["end_ticks"], shape=kept["shape"],
            promised_ticks=np.full(n, -1),
        )  # fmt: skip
        ticks = blank.coschedule.ticks
        made["start"] = kept["start_ticks"] / ticks
        made["run_time"] = (kept["end_ticks"] - kept["start_ticks"]) / ticks
        return replace(blank, reserved_start=np.full(n, -1.0), **made)

    def _blank(self, episode: Episode) -> Result:
        """Return the schedule of a slice before anything was decided."""
        self.env.reset(seed=0, options={"slice": episode.name})
        blank: Result = self.env.unwrapped.result()
        n = len(blank.workload)
        return replace(
            blank, reserved_start=np.full(n, -1), backfilled=np.zeros(n, np.bool_), outside=True
        )

    def reached(self, kept: Kept, episode: Episode) -> dict[str, float]:
        """Return the metrics of what was kept of a slice."""
        return self.metrics(self.result(kept, episode), episode)

    def metrics(self, result: Result, episode: Episode) -> dict[str, float]:
        """Return :data:`METRICS` and :data:`LONGEST` of a schedule of :meth:`result`."""
        if not self.surrounded:
            found = {**result.metrics, "unserved_jobs": 0}
            found[LONGEST] = found["max_wait_s"]
        else:
            found = metrics_within(result, *counted(episode))
        return {name: float(found[name]) for name in (*METRICS, LONGEST)}


def _listed(value: Any) -> Any:
    """Return a value with lists in place of tuples, as files have them."""
    return list(value) if isinstance(value, tuple | list) else value


def _plain(env_id: str) -> str:
    """Return the id of an environment without its version."""
    return env_id.rpartition("-v")[0]


def _counts(cells: list[NDArray[Any]]) -> bool:
    """Tell whether the cells of jobs follow one another to the last."""
    first = cells[0]
    return bool(first[0] == 0 and (np.diff(first) >= 0).all() and first[-1] == len(cells[1]))
