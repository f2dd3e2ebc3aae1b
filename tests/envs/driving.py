"""What the tests of the environments share: jobs, machines, episodes, and how they compare."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from drawing import HealthCheck, settings
from drawing import strategies as st
from gymnasium.vector import AutoresetMode, VectorEnv
from node_strategies import machines, workloads_for
from numpy.typing import NDArray
from plain_envs import maker
from predictors import CompiledRegression
from slow_environments import PAID, cost
from strategies import WEIGHTS, holds, workloads

from hpcgym import ScheduleError, envs, simulate, validate_schedule
from hpcgym.machine import Cluster, Level, NodeGroup, NodePower, find_cluster
from hpcgym.machine.speedups import generate_speedups
from hpcgym.scheduler.estimates import Regression
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.policies import FairShare
from hpcgym.workload import Workload, load_workload


def label(value: Any) -> str:
    """Return the name of a case: the same in each process, so without addresses of objects."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))[:60]


NAMES = ("JobSelection", "QueueOrdering", "MixedPolicy")
FOLLOWING = ("Backfill", "Inspector")  # a rule orders the queue
LIMITED = ("PowerCap", "EnergyBudget")
EVERY = (*NAMES, *FOLLOWING, *LIMITED, "CoSchedule", "Submit")
SINGLE: dict[str, Any] = {name: maker(name + "Env" * (name in LIMITED)) for name in EVERY}
CLASSES: dict[str, Any] = {name: getattr(envs, name + "Env" * (name in LIMITED)) for name in EVERY}
VECTOR: dict[str, Any] = {name: maker(f"{name}Vector") for name in EVERY}
MODES = list(AutoresetMode)

# --- Jobs and machines ----------------------------------------------------------------------------


def jobs_of(rows: list[tuple[int, int, int]], processors: int, **more: Any) -> Workload:
    """Jobs of (submission, processors, run time), which request what they run for."""
    submit, width, run = zip(*rows, strict=True)
    columns = {"submit_time": submit, "requested_processors": width}
    columns |= {"run_time": run, "requested_time": run, **more}
    return Workload.from_columns(columns, processors=processors, name="few")


def four_jobs(**columns: list[int]) -> Workload:
    """Four jobs of 10 s on 2 of 8 processors each, three of one user, all submitted at once."""
    return jobs_of([(0, 2, 10)] * 4, 8, **{"user_id": [1, 1, 1, 2], **columns})


#: On 4 processors at 100 s: 0 and 1 run, to 200 s and 110 s; 2, of two, and 3, of one, wait.
TINY = Workload.from_columns(
    {
        "submit_time": [0, 10, 50, 90, 120],
        "wait_time": [0, 40, 60, 20, 0],
        "run_time": [200, 60, 30, 40, 10],
        "requested_time": [300, 100, 30, 50, 10],
        "requested_processors": [2, 2, 2, 1, 4],
    },
    processors=4,
    name="tiny",
)
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


#: Jobs with GPUs and MICs wait in it, most of them on too few free nodes of their kind.
EURORA = load_workload("eurora:jobs=300,seed=1,load=3")
#: Nodes for jobs of single cores, of which there are as many as in a pool.
FOUR = Cluster(groups=(NodeGroup("thin", 12, {"core": 4}), NodeGroup("fat", 2, {"core": 8})))
_JOBS = load_workload("lublin:jobs=300,processors=48,seed=1,load=2")
SMALL = _JOBS.with_columns(requested_processors=np.minimum(_JOBS.requested_processors, 24))
#: Nodes of two kinds that are busy as a whole, some that are core by core, and racks above.
MIXED = Cluster(
    groups=(
        NodeGroup("fast", 3, {"core": 8}, NodePower(95.0, (150.0, 190.738), frequency_ghz=(1, 2))),
        NodeGroup("slow", 4, {"core": 4}, NodePower(40.5, 61.25)),
        NodeGroup("old", 2, {"core": 4}),
    ),
    levels=(Level("rack", 4, 12.5),),
)
#: Two levels, switching takes time, and powers are whole watts.
POWER = NodePower(100.0, (150.0, 200.0), 10.0, (1.0, 2.0), 1.5, 7, 60)
ASLEEP = Cluster(groups=(NodeGroup("node", 16, {"core": 2}, POWER),), shutdown_after_s=120)
#: Jobs wait in it at times, and processors are idle at others.
CALM = BUSY.with_columns(submit_time=BUSY.submit_time * 4)
SLEEPY = Cluster(
    64, shutdown_after_s=600, off_power_w=9, shutdown_time_s=60, boot_time_s=300,
    shutdown_power_w=200, boot_power_w=300,
)  # fmt: skip
AWAKE = Cluster(64, off_power_w=9, shutdown_time_s=60, boot_time_s=300)  # but for actions


def busy_users(jobs: int = 300) -> Workload:
    """Jobs of many users, of groups, that wait in it."""
    users = np.random.default_rng(0).zipf(1.5, jobs) % 17
    return BUSY.take(slice(0, jobs)).with_columns(user_id=users, group_id=users % 3)


USERS = busy_users()
#: Jobs of users, of which many may start before others.
CROWD = LOADED.with_columns(
    submit_time=LOADED.submit_time // 8, user_id=USERS.user_id, group_id=USERS.group_id
)
NEEDY = Workload.from_columns(
    {name: column for name, column in USERS.columns.items() if name != "job_number"},
    processors=64,
    units=np.minimum(USERS.requested_processors, 32),
    per_unit={"core": np.ones(300, np.int64), "mem": 1 + np.arange(300) % 4},
)
NODES_WITH_MEM = Cluster(groups=(NodeGroup("a", 16, {"core": 4, "mem": 8}),))
_NAMES: dict[Any, str] = {0: "a", 1: "b", 2: "b", "a": "top"}
#: Shares of users, of groups, of accounts, and of a tree of accounts.
FAIR = [
    FairShare(3600, shares={3: 5.0, 99: 2.0}),
    FairShare(86_400, accounts="group"),
    FairShare(600, 0.5, {"a": 3.0}, _NAMES),
    FairShare(3600, shares={"b": 2.0}, accounts=_NAMES, formula="fair-tree"),
]


def chained(jobs: int = 300) -> Workload:
    """Jobs of which half follow others."""
    trace = load_workload(f"lublin:jobs={jobs},processors=64,seed=5,load=1.3")
    n, rng = len(trace), np.random.default_rng(0)
    before = np.arange(n) - rng.integers(1, 6, n)
    follows = (before >= 0) & (rng.random(n) < 0.5)
    return trace.with_columns(
        job_number=np.arange(n) + 1,
        preceding_job=np.where(follows, before + 1, -1),
        think_time=rng.integers(-1, 500, n),
        wait_time=rng.integers(0, 900, n),
    )


def stopping(jobs: int = 300) -> Workload:
    """Jobs of three queues on 16 processors."""
    trace = load_workload(f"lublin:jobs={jobs},processors=16,seed=1,load=1.2")
    return trace.with_columns(queue=np.random.default_rng(0).integers(2, 5, len(trace)))


BEGIN, AT = int(BUSY.submit_time[80]), int(EURORA.submit_time[80])
CLOSED = f"{BEGIN}/{BEGIN + 40_000}; {BEGIN + 80_000}/{BEGIN + 99_000}:processors=30"
KEPT: dict[str, Any] = {"quota": "user:jobs=2; group:processors=64", "maintenance": CLOSED}
OF_NODES: dict[str, Any] = {"cluster": "8x2x4", "maintenance": CLOSED.partition(";")[0]}
NODES_OF_CORES = f"{BEGIN}/{BEGIN + 40_000}:nodes=0-5; {BEGIN + 80_000}/{BEGIN + 99_000}"
ON_NODES = {
    "cluster": "eurora", "quota": "user:jobs=3",
    "maintenance": f"{AT}/{AT + 40_000}:nodes=0-20; {AT + 60_000}/{AT + 79_000}",
}  # fmt: skip


def from_the_middle(cluster: Cluster | None = None) -> Workload:
    """The part of a busy log that begins when two fifths of its jobs have come."""
    log = simulate(SMALL, "easy", cluster=cluster).as_workload()
    return log.extract(int(np.quantile(log.submit_time, 0.4))).take(slice(0, 80), name="part")


#: Jobs whose codes are known, and nodes that they share.
SIXTEEN = "codes:jobs=120,processes=24,processors=192,arrivals=poisson,interval=400,seed=3"
SHARED_NODES = "8x2x12"


def with_files(gb_s: float = 0.5) -> dict[str, Any]:
    """A machine whose file system is too slow for all of its jobs, and what codes ask of it."""
    share = np.tile([0.5, 0.25, 0.0, 0.75], 4)
    speedups = generate_speedups(16, 1.1, 0.2, 0)
    return {
        "cluster": replace(find_cluster(SHARED_NODES), io_bandwidth_gb_s=gb_s),
        "speedups": replace(speedups, io_share=share, io_demand_mb_s=np.where(share, 20, 0)),
    }


# --- Where environments are tried -----------------------------------------------------------------

#: Machines and rules; each property of environments is tried with each of them there.
LEARNED: dict[str, Any] = {
    "estimate": "e-loss",
    "policy_estimate": "regression:over=absolute,under=squared,eta=1,l2=0",
    "correction": "predicted-again",
    "backfill_order": "lexp",
    "features": ["wait", "predicted", "policy_time"],
}
#: The part of a busy log that begins in its middle.
_MIDDLE = from_the_middle().take(slice(0, 30), name="part")
CLOSED_THEN = f"{_MIDDLE.initial.begin + 600}/{_MIDDLE.initial.begin + 90_000}"
PLACES: dict[str, dict[str, Any]] = {
    "pool": {},
    "per event": {"passes": "per-event", "backfill_order": "sjbf", "observation": "flat"},
    "learned": LEARNED,
    "surrounded": {"start": "warm", "arrivals": "continue", "horizon": "6h", "paid": "waiting",
                   "window": "split:5"},
    "around": {"start": "warm", "warmup": 300, "arrivals": "continue", "horizon": 900,
               "paid": "waiting"},
    "to a horizon": {"horizon": 900, "paid": "end"},
    "users": {"workload": USERS, "backfill_order": "fairshare", "fair_share": FAIR[0]},
    "groups": {"workload": USERS, "backfill_order": "fs+efs", "fair_share": FAIR[1]},
    "accounts on nodes": {"workload": NEEDY, "cluster": NODES_WITH_MEM,
                          "backfill_order": "fs+efs", "fair_share": FAIR[2]},
    "a tree on nodes": {"workload": NEEDY, "cluster": NODES_WITH_MEM,
                        "backfill_order": "energy-fairshare", "fair_share": FAIR[3]},
    "starved first": {"threshold": 900},
    "relaxed": {"relax": 900},
    "switched off": {"workload": CALM, "cluster": SLEEPY},
    "switched off by action": {"workload": CALM, "cluster": AWAKE, "shutdown_action": True},
    "single cores": {"cluster": FOUR, "allocation": "worst-fit"},
    "nodes": {"workload": EURORA, "cluster": "eurora", "allocation": "best-fit"},
    "random nodes": {"workload": EURORA, "cluster": "eurora", "allocation": "random:5"},
    "learned on nodes": {"workload": EURORA, "cluster": "eurora", **LEARNED},
    "powers": {"workload": SMALL, "cluster": MIXED},
    "own nodes": {"cluster": ASLEEP, "paid": "waiting"},
    "in a row": {"cluster": ASLEEP, "allocation": "contiguous", "estimate": "ave2", "paid": "end"},
    "quotas": KEPT,
    "cores by name": KEPT | OF_NODES | {"maintenance": NODES_OF_CORES},
    "closed nodes": {"workload": EURORA, **ON_NODES},
    "after others": {"workload": chained(), "dependencies": "closed-loop", "quota": "user:jobs=9",
                     "paid": "end"},
    "submitted": {"workload": chained(), "cluster": "8x2x4", "quota": "all:submitted=30",
                  "paid": "waiting"},
    "requeued": {"workload": stopping(), "preemption": "queue:2>3>4"},
    "cancelled": {"workload": stopping(), "preemption": "queue:2>3>4,cancel"},
    "leaving": {"workload": stopping(), "preemption": "queue:2>3>4,grace=300"},
    "leaving for good": {"workload": stopping(), "preemption": "queue:2>3>4,cancel,grace=3=300"},
    "suspended": {"workload": stopping(), "cluster": "4x2x2",
                  "preemption": "queue:2>3>4,suspend"},
    "slurm": {"backfill": "slurm:bf_interval=600"},
    "extract": {"workload": _MIDDLE,
                "episodes": "whole", "estimate": "ave2"},
    "extract under quotas": {"workload": _MIDDLE, "episodes": "whole",
                             "quota": "user:jobs=2", "maintenance": CLOSED_THEN},
    "slurm after others": {"workload": chained(), "backfill": "slurm", "quota": "user:jobs=2",
                           "dependencies": "closed-loop"},
    "slurm and stops": {"workload": stopping(), "cluster": "4x2x2", "backfill": "slurm",
                        "preemption": "queue:2>3>4"},
    "slurm on nodes": {"workload": EURORA, "cluster": "eurora", "backfill": "slurm"},
    "extract of users": {"workload": _MIDDLE.with_columns(user_id=np.arange(30) % 3),
                         "episodes": "whole", "backfill_order": "fairshare", "fair_share": FAIR[0]},
    "extract on nodes": {
        "workload": from_the_middle(MIXED).take(slice(0, 30), name="part"),
        "episodes": "whole", "cluster": MIXED, "allocation": "best-fit"},
}  # fmt: skip
#: Places where no agent names each job.
_OF_QUEUES = (
    *("requeued", "cancelled", "leaving", "leaving for good", "suspended"),
    *("slurm", "slurm after others", "slurm and stops", "slurm on nodes"),
)
#: Places where a rule may order the queue.
_POOLS = (
    *("pool", "per event", "learned", "around", "to a horizon", "users", "groups"),
    *("starved first", "relaxed", "switched off", "extract", "extract of users"),
)
#: Those whose episodes have other jobs than those that count.
AROUND = ("surrounded", "around", "to a horizon")
MOVED = ("after others", "submitted", "slurm after others", "limits after others")
#: Those where a snapshot may hide the future.
HIDE = (
    "pool", "per event", "learned", "users", "groups", "switched off", "switched off by action",
    "surrounded", "around", "to a horizon", "slurm", "extract", "extract of users", "single cores",
    "starved first", "relaxed",
)  # fmt: skip
EXTRACTS = ("extract", "extract under quotas", "extract of users", "extract on nodes")
STOPS = ("requeued", "cancelled", "leaving", "leaving for good", "suspended", "slurm and stops")
STEERED: dict[str, dict[str, Any]] = {
    "limits": {"limits": limits_that_grow, "controls": ("power", "nodes"), "paid": "end"},
    "limits and weights": {"limits": limits_that_grow, "interval": 3, "power": "energy-bud",
                           "policy_features": ("area", "wait"), "observation": "flat"},
    "usual limits": {"cluster": None, "interval": "2h", "paid": "waiting"},
    "limits and users": {"limits": limits_that_grow, "policy_features": ("wait", "fairshare"),
                         "fair_share": FAIR[0], "threshold": 9000, "quota": "user:jobs=4"},
    "limits after others": {"workload": chained(), "quota": "user:submitted=3", "jobs": 200,
                            "paid": "end", "dependencies": "after", "limits": limits_that_grow},
}  # fmt: skip
SHARED: dict[str, dict[str, Any]] = {
    "pairs": {"cluster": SHARED_NODES},
    "pairs and files": {**with_files(), "observation": "flat"},
    "pairs by scores": {"cluster": SHARED_NODES, "action": "scores"},
    "compact pairs": {"cluster": SHARED_NODES, "allocation": "compact"},
}
CASES = [
    *[
        (name, place)
        for place in PLACES
        for name in NAMES
        if not (name == "JobSelection" and place in _OF_QUEUES)
        and place != "around"
        and (name == "JobSelection" or place != "switched off by action")
    ],
    *[(name, place) for place in _POOLS for name in FOLLOWING],
    *[(name, place) for place in STEERED for name in LIMITED],
    *[("CoSchedule", place) for place in SHARED],
]


def mode_of(name: str, place: str, turn: int = 0) -> AutoresetMode:
    """Return a mode of resetting: quick tests see one at each place, as many of each."""
    return MODES[(CASES.index((name, place)) + turn) % len(MODES)]


def given(name: str, place: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of an environment at a place: short episodes, in which it asks often."""
    if name == "CoSchedule":
        return (
            {"workload": SIXTEEN, "jobs": 12, "window": 6, "neighbours": 3} | SHARED[place] | more
        )
    arguments: dict[str, Any] = {"workload": BUSY, "jobs": 12, "window": 6}
    if name in LIMITED:
        return arguments | {"workload": LOADED, "cluster": CHASSIS} | STEERED[place] | more
    if name == "Backfill" and place not in EXTRACTS:
        longer = {"horizon": "2h"} if place in AROUND else {}
        more = {"workload": CROWD, "jobs": 30} | longer | more
    if name == "MixedPolicy":
        arguments["interval"] = "pass" if place in MOVED else 4
    return arguments | PLACES[place] | more


def single(name: str, place: str, **more: Any) -> Any:
    return SINGLE[name](**given(name, place, **more))


def many(name: str, place: str, mode: Any = AutoresetMode.NEXT_STEP, **more: Any) -> Any:
    return VECTOR[name](3, autoreset_mode=mode, **given(name, place, **more))


# --- What is drawn --------------------------------------------------------------------------------

SLOW = settings(
    deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SEEDS = st.integers(0, 2**16)
INTERVALS = st.sampled_from(["pass", "1h", "2h", "episode", 1, 2, 3, 7])
#: What an agent says: where reservations are kept or revised, the next job; scores; weights.
KINDS = st.sampled_from(["kept", "revised", "scores", "weights"])
SIX_WEIGHTS = st.lists(st.tuples(*[WEIGHTS] * 6), min_size=1, max_size=5)
#: Waiting [s] after which a job comes first, where an agent gives scores or weights.
THRESHOLDS = st.sampled_from([None, 0, 5, 100, 2000])
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


@st.composite
def on_nodes(draw: st.DrawFn) -> tuple[Cluster, Workload]:
    """A small machine of nodes, and jobs that fit it."""
    cluster = draw(machines())
    return cluster, draw(workloads_for(cluster))


@st.composite
def on_a_pool(draw: st.DrawFn) -> tuple[Cluster, Workload]:
    """The same of processors that are all alike."""
    jobs = draw(workloads())
    return Cluster(jobs.processors), jobs


# --- Playing episodes -----------------------------------------------------------------------------


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
    if env.unwrapped.action_kind not in ("select", "backfill"):
        return random_acts(env.action_space, seed)

    def act(number: int, observation: Any, info: dict[str, Any]) -> int:
        n = max(int(info["action_mask"].sum()), 1)
        return int(np.random.default_rng((seed, number)).integers(n))

    return act


def whole(workload: Workload, **arguments: Any) -> dict[str, Any]:
    """Return the arguments of an environment whose one episode is all jobs."""
    return {"workload": workload, "episodes": "whole", **arguments}


def assert_same(ours: Any, other: Any, where: str = "", rtol: float = 0.0) -> None:
    """Compare whatever environments return, to the last bit unless a tolerance is given."""
    if isinstance(ours, Mapping):
        assert set(ours) == set(other), f"{where}: {sorted(ours)} and {sorted(other)}"
        for key in ours:
            assert_same(ours[key], other[key], f"{where}[{key!r}]", rtol)
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(other), where
        for k, (a, b) in enumerate(zip(ours, other, strict=True)):
            name = type(ours)._fields[k] if hasattr(ours, "_fields") else k
            assert_same(a, b, f"{where}[{name}]", rtol)
    elif isinstance(ours, np.ndarray) and ours.dtype == object:
        assert_same(list(ours), list(other), where, rtol)
    elif ours is None or isinstance(ours, str):
        assert ours == other, where
    else:
        a, b = np.asarray(ours), np.asarray(other)
        assert a.dtype == b.dtype, f"{where}: {a.dtype} and {b.dtype}"
        if a.shape == b.shape and a.tobytes() == b.tobytes():
            return  # at a hundredth of the time of what follows
        if rtol:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=0, err_msg=where)
        else:
            np.testing.assert_array_equal(a, b, err_msg=where)


def cost_so_far(env: Any) -> NDArray[np.float64]:
    """Return what the jobs that count have cost by now: slowdowns and waits [s], (2,)."""
    jobs, queued = env.simulations.jobs(0), set(env.queued().tolist())
    start = env.simulations.simulation(0).schedule()["start"]
    jobs_so_far = [
        (int(jobs["submit"][row]), int(start[row]), int(jobs["run"][row]))
        for row in env.counted().tolist()
        if start[row] >= 0 or row in queued
    ]
    on_own_nodes = "limited" in env.simulations.world(0).machines.told  # which pays at starts
    return np.array(
        cost(jobs_so_far, env.time, PAID[0 if on_own_nodes else env.options.rewards.paid])
    )


def noting_first(act: Act, look: Callable[[], Any]) -> tuple[Act, list[Any]]:
    """Return actions, and a list that is to have what a look before the first of them says."""
    seen: list[Any] = []

    def acting(number: int, observation: Any, info: dict[str, Any]) -> Any:
        if number == 0:
            seen.append(look())
        return act(number, observation, info)

    return acting, seen


def terms_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the raw terms of rewards that an info tells, by name."""
    names = [name for name in info if name.startswith("reward_")]
    return {name.removeprefix("reward_"): info[name] for name in names}


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
        # nobody waits where all that come first starve
        return scores if kind == "scores" else int(np.argmax(scores)) if rows else 0

    def act(_: int, __: Any, info: dict[str, Any]) -> Any:
        chosen = numbers(info["time_s"], rows_of(info))
        return padded(chosen, window) if kind == "scores" else chosen

    return numbers, act


def in_turn(given_weights: list[Any]) -> tuple[Any, Any]:
    """Return what gives weights by the number of a decision: as they are, and normalised."""

    def weights(number: int) -> Any:
        return np.array(given_weights[number % len(given_weights)])

    def normalised(number: int) -> Any:
        size = np.abs(weights(number)).sum()
        return (weights(number) / size if size else weights(number)).tolist()

    return weights, normalised


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
    for ours, other in zip(native, loop, strict=True):
        assert_same(ours, other)
        if len(ours) == 5:
            ended += int((ours[2] | ours[3]).sum())
    return ended


def prove(name: str, result: Any) -> None:
    """Prove a schedule of an environment; an inspector's jobs may start after a delay."""
    known = re.compile("when no job is submitted or ends|the machine is idle at")
    try:
        validate_schedule(result)
    except ScheduleError as error:
        if name != "Inspector" or not all(map(known.search, error.violations)):
            raise


def units_on_nodes(result: Any) -> list[dict[int, int]]:
    """Return of each job node -> units on it."""
    first, node, units = (part.tolist() for part in result.allocation)
    return [dict(zip(node[a:b], units[a:b], strict=True)) for a, b in pairwise(first)]
