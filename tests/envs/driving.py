"""What the tests of the environments share: playing episodes, and comparing what was seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from drawing import HealthCheck, assume, settings
from drawing import strategies as st
from strategies import holds

from hpcgym.cluster import Cluster, Level, NodeGroup, find_cluster
from hpcgym.envs.job_selection import JobSelection, JobSelectionVector
from hpcgym.envs.mixed_policy import MixedPolicy, MixedPolicyVector
from hpcgym.envs.power_limits import (
    EnergyBudgetEnv,
    EnergyBudgetVector,
    PowerCapEnv,
    PowerCapVector,
)
from hpcgym.envs.queue_ordering import QueueOrdering, QueueOrderingVector
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.workload import Workload, load_workload


def label(value: Any) -> str:
    """Return the name of a case: the same in each process, so without addresses of objects."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))[:60]


NAMES = ("JobSelection", "QueueOrdering", "MixedPolicy")
LIMITED = ("PowerCap", "EnergyBudget")
SINGLE: dict[str, Any] = {
    "JobSelection": JobSelection,
    "QueueOrdering": QueueOrdering,
    "MixedPolicy": MixedPolicy,
    "PowerCap": PowerCapEnv,
    "EnergyBudget": EnergyBudgetEnv,
}
VECTOR: dict[str, Any] = {
    "PowerCap": PowerCapVector,
    "EnergyBudget": EnergyBudgetVector,
    "JobSelection": JobSelectionVector,
    "QueueOrdering": QueueOrderingVector,
    "MixedPolicy": MixedPolicyVector,
}

#: Jobs wait in it, and over-run their predictions where these are averages of two.
BUSY = load_workload("lublin:jobs=300,processors=64,seed=1,load=2")


def long_jobs() -> Workload:
    """Jobs of some hours, one in ten minutes: so many on 64 processors that others wait."""
    rng = np.random.default_rng(0)
    run = rng.integers(60, 14_400, 300)
    columns = {
        "submit_time": 40_000 + np.cumsum(rng.integers(0, 1200, 300)),
        "run_time": run,
        "requested_time": run + rng.integers(0, 7200, 300),
        "requested_processors": np.minimum(2 ** rng.integers(0, 6, 300), rng.integers(1, 60, 300)),
    }
    return Workload.from_columns(columns, processors=64, name="long jobs")


LOADED = long_jobs()
#: A machine of Curie's nodes in chassis and racks.
CHASSIS = Cluster(
    groups=(NodeGroup("thin", 64, {"core": 1}, find_cluster("curie").groups[0].power),),
    levels=(Level("chassis", 9, 124.0), Level("rack", 3, 180.0)),
)


def limits_that_grow(workload: Workload) -> list[Any]:
    """One to four caps, by when an episode begins, that kill; in some a budget as well."""
    first = int(workload.submit_time[0])
    number = 1 + first // 2000 % 4
    starts = [first + 3000 + 9000 * k for k in range(number)]
    caps = [PowerCap.of(CHASSIS, 0.45, s, end=s + 4000, announced=s, kills=True) for s in starts]
    budget = EnergyBudget.of(CHASSIS, 0.6, first, first + 30_000)
    return [*caps, budget] if number % 2 else list(caps)


SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

#: The rules that environments have, as ``simulate`` takes them.
RULES = st.fixed_dictionaries(
    {
        "backfill": st.sampled_from(["easy", "easy", "until-shadow", "none"]),
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling", "kill"]),
        "passes": st.sampled_from(["per-timestamp", "per-timestamp", "per-event"]),
        "hold": holds(),
    }
)

#: Waiting [s] after which a job comes first, where an agent gives scores or weights.
THRESHOLDS = st.sampled_from([None, 0, 5, 100, 2000])


class Step(NamedTuple):
    observation: Any
    reward: Any
    terminated: Any
    truncated: Any
    info: dict[str, Any]


Act = Callable[[int, Any, dict[str, Any]], Any]  # (number of the decision, observation, info)


def play(env: Any, act: Act, most: int = 10**9, **reset: Any) -> list[Step]:
    """Return what an episode showed, the reset first, up to so many steps."""
    observation, info = env.reset(**reset)
    return [Step(observation, 0.0, False, False, info), *go_on(env, act, observation, info, most)]


def go_on(
    env: Any, act: Act, observation: Any, info: dict[str, Any], most: int = 10**9, first: int = 0
) -> list[Step]:
    """Return what the rest of an episode showed."""
    steps: list[Step] = []
    while len(steps) < most and not (steps and (steps[-1].terminated or steps[-1].truncated)):
        steps.append(Step(*env.step(act(first + len(steps), observation, info))))
        observation, info = steps[-1].observation, steps[-1].info
    return steps


def random_acts(space: Any, seed: int) -> Act:
    """Return random actions of a space, which depend on the number of the decision alone."""

    def act(number: int, observation: Any, info: dict[str, Any]) -> Any:
        space.seed(1000 * seed + number)
        return space.sample()

    return act


def visible_acts(env: Any, seed: int) -> Act:
    """Return random actions; of indices only those that stand for a job."""
    if env.unwrapped.action_kind != "selection":
        return random_acts(env.action_space, seed)

    def act(number: int, observation: Any, info: dict[str, Any]) -> int:
        n = int(info["action_mask"].sum())
        return int(np.random.default_rng((seed, number)).integers(n))

    return act


def whole(workload: Workload, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of an environment whose one episode is all jobs."""
    return {"workload": workload, "episodes": "whole", **arguments}


def assert_same(one: Any, other: Any, where: str = "", rtol: float = 0.0) -> None:
    """Compare whatever environments return, to the last bit unless a tolerance is given."""
    if isinstance(one, Mapping):
        assert set(one) == set(other), f"{where}: {sorted(one)} and {sorted(other)}"
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]", rtol)
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other), where
        for k, (a, b) in enumerate(zip(one, other, strict=True)):
            name = type(one)._fields[k] if hasattr(one, "_fields") else k
            assert_same(a, b, f"{where}[{name}]", rtol)
    elif isinstance(one, np.ndarray) and one.dtype == object:
        assert_same(list(one), list(other), where, rtol)
    elif one is None or isinstance(one, str):
        assert one == other, where
    else:
        a, b = np.asarray(one), np.asarray(other)
        assert a.dtype == b.dtype, f"{where}: {a.dtype} and {b.dtype}"
        if rtol:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=0, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def follows_again(env: Any, seed: int, decisions: int) -> tuple[Any, Any]:
    """Go on twice from a snapshot after some decisions, and compare what is seen.

    In between, other actions are tried from it, and on pools the future is hidden once.
    Return the second result and the first.
    """
    acts = visible_acts(env, seed)
    begun = play(env, acts, most=decisions)
    assume(not begun[-1].terminated)
    saved = env.snapshot()
    first = go_on(env, acts, begun[-1].observation, begun[-1].info)
    result = env.result()
    for others in (seed + 1, seed):
        if not env.options.cluster.groups:
            env.restore(env.snapshot(hide=True))
        observation, info = env.restore(saved)
        assert_same(observation, begun[-1].observation)
        again = go_on(env, visible_acts(env, others), observation, info)
    assert_same(again, first)
    return env.result(), result


def by_chance(seed: int, kind: str) -> tuple[Any, Any]:
    """Return random choices by time and waiting rows: as slow agents ask for them, and as actions.

    Of kind "scores" they are scores of the rows, else a place in a window of five.
    """

    def numbers(now: int, rows: list[int]) -> Any:
        scores = np.random.default_rng((seed, now, *rows)).integers(-2, 3, len(rows)) / 2
        return scores if kind == "scores" else int(np.argmax(scores))

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        chosen = numbers(info["time"], [row for row in info["window"].tolist() if row >= 0])
        return np.pad(chosen, (0, 5 - len(chosen))) if kind == "scores" else chosen

    return numbers, act


def in_turn(given_weights: list[Any]) -> tuple[Any, Any]:
    """Return what gives weights by the number of a decision: as they are, and normalised."""

    def weights(number: int) -> Any:
        return np.array(given_weights[number % len(given_weights)])

    def normalised(number: int) -> Any:
        size = np.abs(weights(number)).sum()
        return (weights(number) / size if size else weights(number)).tolist()

    return weights, normalised
