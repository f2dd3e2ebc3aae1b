"""What the tests of the environments share: playing episodes, and comparing what was seen."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from drawing import HealthCheck, settings
from drawing import strategies as st
from gymnasium.vector import AutoresetMode, VectorEnv
from predictors import CompiledRegression
from slow_environments import PoolOrdering, PoolSelection, PoolWeights
from strategies import WEIGHTS, holds

from hpcgym import validate_schedule
from hpcgym.cluster import Cluster, Level, NodeGroup, find_cluster
from hpcgym.envs.co_schedule import CoSchedule, CoScheduleVector
from hpcgym.envs.job_selection import JobSelection, JobSelectionVector
from hpcgym.envs.mixed_policy import MixedPolicy, MixedPolicyVector
from hpcgym.envs.power_limits import (
    EnergyBudgetEnv,
    EnergyBudgetVector,
    PowerCapEnv,
    PowerCapVector,
)
from hpcgym.envs.queue_ordering import QueueOrdering, QueueOrderingVector
from hpcgym.scheduler.estimates import Regression
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
    "CoSchedule": CoSchedule,
}
VECTOR: dict[str, Any] = {
    "PowerCap": PowerCapVector,
    "EnergyBudget": EnergyBudgetVector,
    "JobSelection": JobSelectionVector,
    "QueueOrdering": QueueOrderingVector,
    "MixedPolicy": MixedPolicyVector,
    "CoSchedule": CoScheduleVector,
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

# the second is eager, and so often wrong within a few jobs
REGRESSIONS = ("e-loss", "regression:over=absolute,under=squared,weight=small,eta=1,l2=0")
_LEARNED = ("typical-ratio", *REGRESSIONS, *REGRESSIONS)
_ESTIMATES = st.sampled_from(["requested", "clairvoyant", "ave3", "user-ratio", *_LEARNED])


@st.composite
def rules(draw: st.DrawFn) -> dict[str, Any]:
    """Rules of environments that predict, as ``simulate`` takes them."""
    estimate = draw(_ESTIMATES)
    corrections = ["requested", "incremental", "recursive-doubling"]
    if estimate not in ("requested", "clairvoyant"):
        corrections.append("predicted-again")
    return {
        "backfill": draw(st.sampled_from(["easy", "easy", "none"])),
        "backfill_order": draw(st.sampled_from(["fcfs", "sjbf", "saf", "lexp", "wfp3", "sqf"])),
        "estimate": estimate,
        "policy_estimate": draw(_ESTIMATES),
        "correction": draw(st.sampled_from(corrections)),
        "passes": draw(st.sampled_from(["per-timestamp", "per-event"])),
    }


def for_slow(given_rules: dict[str, Any]) -> dict[str, Any]:
    """Return the rules as slow environments take them."""
    return {
        name: CompiledRegression(Regression.parse(value))
        if isinstance(value, str) and value in REGRESSIONS
        else value
        for name, value in given_rules.items()
    }


SEEDS = st.integers(0, 2**16)
INTERVALS = st.sampled_from(["pass", "1h", "2h", "episode", 1, 2, 3, 7])
#: What an agent says: where reservations are kept or revised, the next job; scores; weights.
KINDS = st.sampled_from(["kept", "revised", "scores", "weights"])
SIX_WEIGHTS = st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=5)
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


def rows_of(info: dict[str, Any]) -> list[int]:
    """Return the jobs of the window."""
    return [row for row in info["window"].tolist() if row >= 0]


def padded(values: Any, window: int) -> Any:
    """Return numbers for visible jobs as an action."""
    return np.pad(np.asarray(values, np.float32), (0, window - len(values)))


def by_chance(seed: int, kind: str, window: int = 5) -> tuple[Any, Any]:
    """Return random choices by time and waiting rows: as slow agents ask for them, and as actions.

    Of kind "scores" they are scores of the rows, else a place in a window. So they depend on what
    is seen alone, and one question too many would not change them all.
    """

    def numbers(now: int, rows: list[int]) -> Any:
        # few values, so that scores tie
        scores = np.random.default_rng((seed, now, *rows)).integers(-2, 3, len(rows)) / 2
        return scores if kind == "scores" else int(np.argmax(scores))

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        chosen = numbers(info["time"], rows_of(info))
        return padded(chosen, window) if kind == "scores" else chosen

    return numbers, act


def assert_as_slowly(
    kind: str,
    jobs: Workload,
    arguments: dict[str, Any],
    slow_rules: dict[str, Any],
    *,
    seed: int,
    weights: list[Any],
    interval: Any,
    threshold: int | None = None,
    window: int = 5,
) -> None:
    """Play any choices of a kind in an environment and in a slow one, and compare what they did."""
    slow: Any
    if kind == "weights":
        given, normalised = in_turn(weights)
        env = SINGLE["MixedPolicy"](**arguments, interval=interval, threshold=threshold)
        play(env, lambda number, _, __: given(number))
        slow = PoolWeights.of(jobs, normalised, interval, threshold=threshold, **slow_rules)
    else:
        numbers, act = by_chance(seed, kind, window)
        if kind == "scores":
            env = SINGLE["QueueOrdering"](**arguments, window=window, threshold=threshold)
            slow = PoolOrdering.of(jobs, numbers, window, threshold=threshold, **slow_rules)
        else:
            env = SINGLE["JobSelection"](**arguments, window=window, reservation=kind)
            slow = PoolSelection.of(jobs, numbers, kind == "kept", window, **slow_rules)
        assert len(play(env, act)) - 1 == len(slow.seen)
    assert env.result().start.tolist() == [job.start for job in slow.jobs]
    assert env.result().predicted_run_time.tolist() == [job.predicted for job in slow.jobs]
    validate_schedule(env.result())


def in_turn(given_weights: list[Any]) -> tuple[Any, Any]:
    """Return what gives weights by the number of a decision: as they are, and normalised."""

    def weights(number: int) -> Any:
        return np.array(given_weights[number % len(given_weights)])

    def normalised(number: int) -> Any:
        size = np.abs(weights(number)).sum()
        return (weights(number) / size if size else weights(number)).tolist()

    return weights, normalised


MODES = list(AutoresetMode)


def drive(env: VectorEnv, seed: Any, steps: int, first: int = 0) -> list[Any]:
    """Return all that so many steps of random actions show; where no seed is given, go on."""
    seen: list[Any] = []
    if seed is not None:
        seen.append(env.reset(seed=seed))
    mode = env.metadata["autoreset_mode"]
    for k in range(first, first + steps):
        env.action_space.seed(k)
        seen.append(env.step(env.action_space.sample()))
        done = seen[-1][2] | seen[-1][3]
        if mode == AutoresetMode.DISABLED and done.any():
            seen.append(env.reset(options={"reset_mask": done.copy()}))
    return seen


def assert_alike(native: list[Any], loop: list[Any]) -> int:
    """Compare two trajectories, infos key by key; return how many episodes ended in them.

    Infos of all steps are read after the last: later steps must not change them.
    """
    ended = 0
    assert len(native) == len(loop)
    for one, other in zip(native, loop, strict=True):
        assert_same(one, other)
        if len(one) == 5:
            ended += int((one[2] | one[3]).sum())
    return ended
