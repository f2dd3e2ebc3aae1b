"""One pass of a learner through a stream of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.agents.learner import Ended
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.usage import counts_usage
from hpcgym.workload import Workload
from hpcgym.workload.slicing import WEEK_S


def learn_through(
    name: str,
    learner: Any,
    stream: Workload,
    rules: Mapping[str, Any],
    interval: Any,
    cluster: Cluster | None = None,
    step: Callable[[str], None] = lambda text: None,
) -> tuple[Result, int]:
    """Let a learner go through a stream of jobs once; return the schedule, and how often it chose.

    Parameters
    ----------
    name : of the learner, for errors.
    learner : a :class:`hpcgym.agents.learner.Learner`. It goes on with what it has learned before,
        if it has.
    stream : the jobs; the machine is empty at first.
    rules : of the environment, all but the order of the queue.
    interval : for how long weights hold, as :class:`hpcgym.envs.MixedPolicy` has it.
    cluster : the machine; None: as many processors as the workload's had.
    step : called at each of :func:`weeks_in` weeks, with what is being done.

    Raises
    ------
    HpcgymError : an argument that cannot be, or what the learner does wrong; it names the learner.
    """
    env = _environment(learner, stream, rules, interval, cluster)
    told = np.zeros(len(stream), bool)
    decisions, begun, over = 0, 0, False
    try:
        observation, info = env.reset(seed=0)
        while not over:
            while begun <= min(_week(stream, info["time"]), weeks_in(stream) - 1):
                step(f"{name}, week {begun}")
                begun += 1
            try:
                decisions += 1
                action = learner.act(observation, _known(info))
                observation, _, over, _, info = env.step(action)
                _tell(learner, observation, env.unwrapped.result(), info["time"], over, told)
            except Exception as error:  # whatever a user's learner does
                what = (
                    error if isinstance(error, HpcgymError) else f"{type(error).__name__}: {error}"
                )
                raise HpcgymError(f"{name} failed at its decision {decisions}: {what}") from error
        result: Result = env.unwrapped.result()
    finally:
        env.close()
    return result, decisions


def features_of(learner: Any) -> tuple[str, ...]:
    """Return what the actions of a learner weigh."""
    return tuple(getattr(learner, "features", WEIGHTED_FEATURES))


def weeks_in(stream: Workload) -> int:
    """Return in how many weeks the jobs of a stream are submitted, from the first of them on."""
    return _week(stream, int(stream.submit_time[-1])) + 1


def _week(stream: Workload, time: int) -> int:
    """Return the number of a week, from the first submission on."""
    return max(time - int(stream.submit_time[0]), 0) // WEEK_S


def _environment(
    learner: Any,
    stream: Workload,
    rules: Mapping[str, Any],
    interval: Any,
    cluster: Cluster | None,
) -> Any:
    """Return the environment in which a learner acts."""
    import gymnasium

    from hpcgym.envs import any_version

    features = features_of(learner)
    order = {rule: rules[rule] for rule in ("backfill", "backfill_order") if rule in rules}
    theirs = dict(rules)
    if not counts_usage(Scheduler(**order), features):
        theirs.pop("fair_share", None)  # it is for others: this environment would refuse it
    with any_version():
        return gymnasium.make(
            "hpcgym/MixedPolicy-v0", disable_env_checker=True, workload=stream, cluster=cluster,
            policy_features=list(features), interval=interval, episodes="whole", **theirs,
        )  # fmt: skip


def _known(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a site knows of what the environment says."""
    return {name: info[name] for name in ("time", "window")}


def _tell(
    learner: Any, observation: Any, result: Result, time: int, over: bool, told: NDArray[np.bool_]
) -> None:
    """Tell a learner of the jobs that have ended since it was told last, and note them."""
    observe = getattr(learner, "observe", None)
    if observe is None:
        return
    has_ended = (result.start >= 0) & (over | (result.start + result.run_time <= time))
    rows = np.flatnonzero(has_ended & ~told)
    told[rows] = True
    jobs, bsld = result.workload, result.bsld[rows]
    ended = Ended(
        rows,
        jobs.submit_time[rows],
        result.wait[rows],
        result.run_time[rows],
        jobs.requested_time[rows],
        jobs.requested_processors[rows],
        jobs.user_id[rows],
        bsld,
    )
    observe(observation, -float(bsld.sum()), ended)
