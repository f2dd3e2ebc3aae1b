"""The evaluation of a task on a log: schedules by agents or schedulers, and what they gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.chance import KINDS, RandomActions, random_order
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.envs.core.base import arguments_of, usual_of
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.slices import Episode
from hpcgym.errors import HpcgymError, check_choice
from hpcgym.files.tables import Head
from hpcgym.schedule.gains import Felt, Gain, felt, gain_of_replays
from hpcgym.schedule.metrics import HAVE, METRICS, Facts, weighted_wait
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation, NodeStates
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.whole_nodes import check_for_limits
from hpcgym.study.evaluation.environments import run_episode
from hpcgym.study.evaluation.platform import Platform, platform_of
from hpcgym.study.evaluation.user_policies import check_spaces
from hpcgym.study.suite.tasks import (
    Task,
    TaskLog,
    environment,
    jobs_of,
    late,
    learned_from,
    reference_of,
)
from hpcgym.units import HOUR_S
from hpcgym.validation.promises import promises_to_heads

#: Of a log the arrays of its schedules, "PLACE/ARRAY" -> array; a place is that of a slice, or of a
#: replay of the whole log.
Kept = Mapping[str, NDArray[Any]]

#: Arguments of environments that say what observations and actions mean.
_MEANING = (
    "window", "features", "observation", "policy_features", "scale", "controls", "action",
    "neighbours",
)  # fmt: skip

_CELLS = ("first", "node", "units")
_STATES = ("node", "state", "begin", "end")
_TICKS = ("start_ticks", "end_ticks", "shape")

#: The share of promises to heads that were broken: a metric, where the schedule tells them.
PROMISES = "promises_broken"

_LONGEST_S = 2**31 - 1  # waits are kept as 32 bits
_MOST_STATES = 1 << 22  # of the nodes in a slice: a bound of memory

_Array = TypeVar("_Array")


class Evaluation:
    """The evaluation of policies and schedulers on a log of a task.

    Parameters
    ----------
    task, log : what is evaluated on.
    part : "test" or "train", see :func:`hpcgym.study.suite.tasks.environment`; submissions are of
        "test".

    Raises
    ------
    HpcgymError : as of :func:`hpcgym.study.suite.tasks.jobs_of`.
    """

    def __init__(self, task: Task, log: TaskLog, part: str = "test") -> None:
        self.task, self.log = task, log
        self._part = check_choice("part", part, ("test", "train"))
        self.jobs = jobs_of(log)

    @cached_property
    def envs(self) -> list[Any]:
        """The environment of each replay, in which agents act."""
        task = self.task
        return [environment(task, self.log, self._part, factor) for factor in task.replays]

    @property
    def env(self) -> Any:
        """That of the first replay: all have the same rules."""
        return self.envs[0]

    @cached_property
    def _platform(self) -> Platform:
        return platform_of(self.env.unwrapped)

    @property
    def episodes(self) -> list[tuple[Any, Episode]]:
        """The slices, in order of time, or the replays; each with its environment."""
        return [(env, each) for env in self.envs for each in _episodes_of(env).listing]

    # -- schedules of policies ---------------------------------------------------------------------

    def check(self, name: str, policy: Any) -> None:
        """Raise an HpcgymError if this policy, or scheduler, cannot act here at all."""
        task = self.task
        if isinstance(policy, Scheduler):
            if task.kind == "backfill" and policy.policy != "fcfs":
                raise HpcgymError(
                    f"{name} orders the queue, which in {task.name} is first come, first served"
                )
            if self._platform.limits is not None:
                check_for_limits(policy)
            return
        made_for = getattr(policy, "env_id", None)
        if made_for is not None and _plain(made_for) != _plain(task.env_id):
            raise HpcgymError(f"{name} acts in {made_for}, and {task.name} is {task.env_id}")
        check_spaces(name, policy, self.env.unwrapped)
        theirs = getattr(policy, "env_options", None)
        arguments = arguments_of(type(self.env.unwrapped))
        usual = {option: argument.default for option, argument in arguments.items()} | usual_of(
            task.env_id
        )
        for option in _MEANING:  # what a saved agent sees or says must mean the same here
            if (
                not isinstance(theirs, Mapping)
                or option not in usual
                or option in getattr(policy, "adapts", ())
            ):
                continue
            there = theirs.get(option, usual[option])
            here = task.options.get(option, usual[option])
            if _listed(there) != _listed(here):
                raise HpcgymError(f"{name} is for {option}={there!r}, and {task.name} has {here!r}")

    def run(self, policy: Any) -> list[Result]:
        """Return the schedules of all slices: of a scheduler by simulation, else of what acts.

        Raises
        ------
        HpcgymError : the policy cannot act here, or its schedule has no end.
        Exception : whatever a policy of the user's raises.
        """
        limits = self._platform.limits
        if isinstance(policy, Scheduler) and limits is not None:
            policy = policy.but(power=limits.power)
        results = []
        for env, episode in self.episodes:
            enter = partial(_enter, env, episode)
            ran = run_episode(policy, episode, _episodes_of(env), self._platform, enter)
            results.append(ran.result())
        return results

    def chance(self, seed: int) -> Any:
        """Return random actions; without any, a random order."""
        if getattr(self.env.unwrapped, "action_kind", "") in KINDS:
            return RandomActions(seed)
        if self.task.kind == "pairs":
            raise HpcgymError(f"{self.task.name} knows no random actions")
        return random_order(Scheduler(), len(_episodes_of(self.env).workload), seed)

    # -- schedules that are kept -------------------------------------------------------------------

    def kept(self, results: Sequence[Result]) -> Kept:
        """Return what is kept of schedules."""
        arrays: dict[str, NDArray[Any]] = {}
        for place, result in enumerate(results):
            for name, array in self._arrays(result).items():
                arrays[f"{place}/{name}"] = array
        return arrays

    def _arrays(self, result: Result) -> dict[str, NDArray[Any]]:
        """Return what is kept of a schedule: waits, or what else tells when jobs ran, and where."""
        if result.coschedule is not None:
            kept = {name: np.asarray(getattr(result.coschedule, name)) for name in _TICKS}
        else:
            wait = np.asarray(result.start) - result.workload.submit_time
            if wait.max() > _LONGEST_S:
                raise HpcgymError(f"{self.log.name}: a job waits longer than 2^31 s")
            kept = {"wait": wait.astype(np.int32)}
        if result.allocation is not None and self.task.window:
            kept |= {f"cells_{name}": getattr(result.allocation, name) for name in _CELLS}
        if result.node_states is not None:
            kept |= {f"states_{name}": getattr(result.node_states, name) for name in _STATES}
        return kept

    def results(self, kept: Kept) -> list[Result]:
        """Return the schedules from what was kept of them.

        Everything but that is of the task: jobs, machine, limits, run times.

        Raises
        ------
        HpcgymError : arrays of other names, types or lengths than such schedules have.
        """
        self.check_kept(kept)
        results = []
        for place, (env, episode) in enumerate(self.episodes):
            with self._of(place):
                results.append(self._result(_of_place(kept, place), env, episode))
        return results

    def check_kept(self, kept: Mapping[str, Head | NDArray[Any]]) -> None:
        """Raise an error for arrays that no schedules of the task have; only heads are looked at.

        Raises
        ------
        HpcgymError : arrays of other names, types or lengths.
        """
        for place, lengths in enumerate(self._lengths):
            with self._of(place):
                _check_lengths(_of_place(kept, place), lengths)
        number = len(self._lengths)
        if not {name.partition("/")[0] for name in kept} <= {*map(str, range(number))}:
            raise HpcgymError(f"it has other schedules than of the task's {number}")

    @contextmanager
    def _of(self, place: int) -> Iterator[None]:
        """Say of errors of which slice or replay they are."""
        try:
            yield
        except HpcgymError as error:
            _, episode = self.episodes[place]
            name = f"replay {place}" if len(self.task.replays) > 1 else episode.name
            raise HpcgymError(f"{name}: {error}") from None

    @cached_property
    def _lengths(self) -> list[dict[str, range]]:
        """Of each slice the arrays that are kept of it, and how many numbers each may have."""
        lengths = []
        for env, episode in self.episodes:
            blank = self._blank(env, episode)
            jobs = len(blank.workload)
            cells = int(blank.workload.requested_processors.sum())  # a processor each at least
            allowed = {
                "cells_first": range(jobs + 1, jobs + 2),
                **dict.fromkeys(("cells_node", "cells_units"), range(cells + 1)),
                **{f"states_{name}": range(_MOST_STATES + 1) for name in _STATES},
            }
            each = range(jobs, jobs + 1)
            lengths.append({name: allowed.get(name, each) for name in self._arrays(blank)})
        return lengths

    def _result(self, kept: Kept, env: Any, episode: Episode) -> Result:
        blank = self._blank(env, episode)
        n = len(blank.workload)
        made: dict[str, Any] = {}
        if "cells_first" in kept:
            cells = [kept[f"cells_{name}"] for name in _CELLS]
            if not _counts(cells):
                raise HpcgymError("its nodes are not told job by job")
            made["allocation"] = Allocation(*cells)
        if "states_node" in kept:
            made["node_states"] = NodeStates(*(kept[f"states_{name}"] for name in _STATES))
        if blank.coschedule is None:
            wait = kept["wait"].astype(np.int64)
            if np.abs(wait).max(initial=0) > _LONGEST_S:
                raise HpcgymError("a job waits longer than 2^31 s")
            return replace(blank, start=blank.workload.submit_time + wait, **made)
        made["coschedule"] = blank.coschedule._replace(
            start_ticks=kept["start_ticks"], end_ticks=kept["end_ticks"], shape=kept["shape"],
            promised_ticks=np.full(n, -1),
        )  # fmt: skip
        ticks = blank.coschedule.ticks
        made["start"] = kept["start_ticks"] / ticks
        made["run_time"] = (kept["end_ticks"] - kept["start_ticks"]) / ticks
        return replace(blank, reserved_start=np.full(n, -1.0), **made)

    def _blank(self, env: Any, episode: Episode) -> Result:
        """Return the schedule of a slice before anything was decided.

        Schedulers play with rules of their own, which may hold jobs back.
        """
        _enter(env, episode)
        blank: Result = env.unwrapped.result()
        n = len(blank.workload)
        return replace(
            blank, reserved_start=np.full(n, -1), backfilled=np.zeros(n, np.bool_), outside=True,
            outside_orders=False, ended=None,
        )  # fmt: skip

    # -- what they gain ----------------------------------------------------------------------------

    def felt(self, results: Sequence[Result]) -> list[Felt]:
        """Return what the jobs that count felt: of a log its second half, of slices all.

        Returns
        -------
        felt : of each replay. Jobs are of the weeks in which they were submitted in the log as it
            is. Of slices one: each stands for a week; the waits are of all slices together.

        Raises
        ------
        HpcgymError : jobs that delay the head of the queue, where the task forbids it.
        """
        if not self.task.window:
            return [self._felt(place, result) for place, result in enumerate(results)]
        wait, run, processors = (
            np.concatenate(each)
            for each in zip(
                *((r.wait / HOUR_S, r.run_time, r.workload.requested_processors) for r in results),
                strict=True,
            )
        )
        return [
            Felt(
                np.array([len(r.workload) for r in results]),
                np.array([r.bsld.mean() for r in results]),
                float(wait.max()),
                weighted_wait(processors, run, wait),
            )
        ]

    def _felt(self, place: int, result: Result) -> Felt:
        """Return what the jobs that count felt in a replay of a log."""
        log = learned_from(self.task, self.log) if self._part == "train" else self.jobs
        jobs = np.ones(len(log), np.bool_) if self._part == "train" else late(self.task, log)
        whole = felt(result, jobs, log.since_first_submit)
        if self.task.kind != "backfill":
            return whole._replace(promises_broken=_metric_of(result, PROMISES, jobs))
        promises = promises_to_heads(result)  # as the queue is in order of submission
        late_by = np.flatnonzero(promises.delays)
        if self.task.keeps_promises and late_by.size:
            number = int(log.job_number[late_by[0]])
            raise HpcgymError(
                f"replay {place}: {late_by.size:,} jobs, the first of them job {number}, delay the"
                f" head of the queue by the times that jobs request, which {self.task.name} forbids"
            )
        return whole._replace(promises_broken=promises.broken(result.start, jobs))

    @cached_property
    def easy(self) -> list[Felt]:
        """What jobs feel under EASY, in each replay."""
        return self.felt(self.run(find_scheduler(self.task.easy)))

    def gain(self, ours: Sequence[Felt]) -> Gain:
        """Return what schedules gain on EASY's, in each replay, week by week or slice by slice."""
        return gain_of_replays(self.easy, ours)

    @cached_property
    def rival(self) -> list[Felt]:
        """What jobs feel under the scheduler that is to be beaten, in each replay."""
        return self.felt(self.run(reference_of(self.task, self.log)))

    @cached_property
    def reference(self) -> Gain:
        """What that scheduler gains."""
        return self.gain(self.rival)


def _episodes_of(env: Any) -> Episodes:
    episodes: Episodes = env.unwrapped.episodes
    return episodes


def _enter(env: Any, episode: Episode) -> tuple[Any, Any, Any]:
    """Return an environment, reset to a slice, its observation and info."""
    return env, *env.reset(seed=0, options={"slice": episode.name})


def _metric_of(result: Result, name: str, jobs: NDArray[np.bool_]) -> float:
    """Return a metric of some jobs of a schedule; nan of one that the schedule has not."""
    facts = Facts(result, jobs)
    formulas = [m.formula for m in METRICS if m.name == name and HAVE[m.of](facts)]
    return float(formulas[0](facts)) if formulas and formulas[0] else float("nan")


def _listed(value: Any) -> Any:
    """Return a value with lists in place of tuples, as files have them."""
    return list(value) if isinstance(value, tuple | list) else value


def _plain(env_id: str) -> str:
    """Return the id of an environment without its version."""
    return env_id.rpartition("-v")[0]


def _of_place(kept: Mapping[str, _Array], place: int) -> dict[str, _Array]:
    """Return the arrays, or their heads, of one slice."""
    begin = f"{place}/"
    return {key.removeprefix(begin): a for key, a in kept.items() if key.startswith(begin)}


def _check_lengths(kept: Mapping[str, Head | NDArray[Any]], lengths: Mapping[str, range]) -> None:
    """Raise an HpcgymError for arrays of other names, types or lengths than a slice has."""
    if set(kept) != set(lengths):
        raise HpcgymError(f"its arrays are {sorted(kept)}, not {sorted(lengths)}")
    for name, array in kept.items():
        if not np.issubdtype(array.dtype, np.integer) or len(array.shape) != 1:
            raise HpcgymError(f"{name} is no list of whole numbers")
        (number,), allowed = array.shape, lengths[name]
        if number not in allowed:
            at_most = "at most " * (len(allowed) > 1)
            raise HpcgymError(f"{name} has {number:,} numbers, not {at_most}{allowed[-1]:,}")


def _counts(cells: list[NDArray[Any]]) -> bool:
    """Tell whether the cells of jobs follow one another to the last."""
    first, node, units = cells
    follow = first[0] == 0 and (np.diff(first) >= 0).all() and first[-1] == len(node)
    return bool(follow and len(node) == len(units))
