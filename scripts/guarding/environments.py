"""Cases of environments: trajectories of a random policy that is always the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from guarding import library, machines, values, workloads
from guarding.matrix import Factors, Group, Row, cases_of, pairwise, product
from guarding.simulations import LIMITED_FACTORS, apart
from guarding.tracks import Track, acted
from guarding.worlds import JOBS, arguments_of, interval_of, jobs_on

STEPS = 60  # at most, of an episode or of many
SEED = 7
BASELINES = ("saf", "wfp3", "f1", "0.1,-0.2,0,0,0,0.7", "easy", "easy-sjbf", "prb", "sdprb")


def groups() -> Iterator[Group]:
    """Yield all of them."""
    for name, factors in _QUEUES.items():
        excluded = _unfit
        yield _of(name, {**_SINGLE, **factors}, excluded, _one)
        yield _of(f"{name}-vector", {**_VECTOR, **factors}, excluded, _many)
    for name in ("PowerCap", "EnergyBudget"):
        yield _of(name, {**_SINGLE, **_STEERED[name]}, _unfit, _one)
        yield _of(f"{name}-vector", {**_VECTOR, **_STEERED[name]}, _unfit, _many)
    yield _of("CoSchedule", {**_SINGLE, **_PAIRED}, _unfit, _one)
    yield _of("CoSchedule-vector", {**_VECTOR, **_PAIRED}, _unfit, _many)
    driven = {
        "env": ("JobSelection", "QueueOrdering", "MixedPolicy"),
        "baseline": BASELINES,
        "machine": ("pool", "units"),
    }
    yield cases_of("driven", driven, product(driven), _driven)
    for argument, given in _ALONE.items():
        factors = {"env": ("", *library.ENVIRONMENTS), argument: ("", *given)}
        rows = ({"env": env, argument: value} for env in library.ENVIRONMENTS for value in given)
        yield cases_of("env-rule", factors, rows, _alone)


def _of(
    group: str, factors: Factors, excluded: Callable[[Row], bool], run: Callable[[str, Row], Any]
) -> Group:
    """Return the cases of an environment."""
    name = group.removesuffix("-vector")
    return cases_of(group, factors, pairwise(factors, excluded), lambda row: run(name, row))


# --- Factors --------------------------------------------------------------------------------------

_SINGLE = {
    "snapshot": ("none", "back", "hidden"),
    "observation": ("dict", "flat"),
    "episodes": ("windows", "whole", "train", "test", "slice", "rows"),
    "reward": ("bsld", "wait", "energy", "mix", "list", "function"),
    "window": ("128", "4", "12"),
}
_VECTOR = {
    "snapshot": ("none", "back", "hidden"),
    "observation": ("dict", "flat"),
    "episodes": ("windows", "whole", "train"),
    "reward": ("bsld", "wait", "energy", "mix"),
    "window": ("128", "4", "12"),
    "number": ("3", "1", "33"),
    "autoreset_mode": ("NextStep", "SameStep", "Disabled"),
    "max_episode_steps": ("-", "5"),
    "copy": ("yes", "no"),
}
_OF_QUEUES = {
    "workload": ("ties", "users", "overruns", "queue"),
    "machine": ("pool", "off", "off-slow", "few-cores", "cores", "resources", "powered"),
    "backfill": ("easy", "none"),
    "backfill_order": ("fcfs", "sjbf", "laf", "wfp3"),
    "estimate": (
        "requested", "clairvoyant", "given", "ave2", "user-ratio", "typical-ratio", "e-loss",
        "few-features",
    ),
    "policy_estimate": ("requested", "clairvoyant", "user-ratio", "typical-ratio"),
    "correction": ("requested", "incremental", "recursive-doubling", "predicted-again"),
    "passes": ("per-timestamp", "per-event"),
    "allocation": ("first-fit", "best-fit", "worst-fit", "random"),
    "features": ("usual", "policy-time", "own"),
}  # fmt: skip
_QUEUES: dict[str, dict[str, tuple[str, ...]]] = {
    "JobSelection": {
        **_OF_QUEUES, "reservation": ("revised", "kept"), "shutdown_action": ("no", "yes"),
    },
    "QueueOrdering": _OF_QUEUES,
    "MixedPolicy": {
        **_OF_QUEUES,
        "interval": ("pass", "hour", "day", "6h", "5", "episode"),
        "policy_features": ("usual", "some", "formulas"),
    },
}  # fmt: skip
_LIMITS = {
    "jobs": tuple(workloads.LIMITED),
    "machine": ("usual", *machines.LIMITED),
    "shutdown": LIMITED_FACTORS["shutdown"],
    "allocation": LIMITED_FACTORS["allocation"],
    "limits": ("usual", "caps", "budgets", "cap-and-budget", "budget-off", "function"),
    "controls": ("all", "frequency", "nodes", "power", "nodes-power"),
    "policy_features": ("none", "some", "formulas"),
    "interval": ("hour", "1h", "3", "episode", "day"),
    "power": LIMITED_FACTORS["power"],
    "backfill": ("easy", "none"),
    "backfill_order": ("fcfs", "sjbf", "laf"),
    "estimate": ("requested", "clairvoyant", "given", "ave2"),
    "policy_estimate": ("requested", "clairvoyant"),
    "correction": ("requested", "incremental", "recursive-doubling"),
    "features": ("usual", "policy-time", "own"),
}
_STEERED = {
    "PowerCap": {**_LIMITS, "share": ("0.6", "0.35"), "hours": ("8-20", "0-24", "1-2")},
    "EnergyBudget": {**_LIMITS, "share": ("0.6", "0.8"), "period": ("600", "60"),
                     "off": ("no", "yes")},
}  # fmt: skip
_PAIRED = {
    "coded": tuple(workloads.CODED),
    "machine": tuple(machines.SHARED),
    "speedups": tuple(machines.HEATMAPS),
    "action": ("pair", "scores"),
    "allocation": ("half-socket", "compact", "spread", "part:2", "part:3"),
    "partners": ("best", "fill", "first"),
    "estimate": ("requested", "double-requested", "clairvoyant"),
    "neighbours": ("16", "3"),
    "term": ("-", "throughput"),
}


def _unfit(row: Row) -> bool:
    """Tell whether values of a row do not go together."""
    machine = row.get("machine", "pool")
    nodes = machine in ("few-cores", "cores", "resources", "powered")
    off = machine in ("off", "off-slow")
    queues = machine in _OF_QUEUES["machine"]
    learned = {row.get("estimate"), row.get("policy_estimate")} & set(values.LEARNED)
    learned |= {row.get("policy_estimate")} & set(values.AVERAGES)
    return (
        apart(row)
        or (off and row.get("passes") == "per-event")
        or (nodes and (row.get("passes") == "per-event" or bool(learned)))
        or (nodes and row.get("correction") == "predicted-again")
        or (queues and not nodes and row.get("allocation", "first-fit") != "first-fit")
        or (queues and not off and row.get("shutdown_action") == "yes" and "machine" in row)
        or (row.get("snapshot") == "hidden" and (nodes or not queues))
    )


# --- Trajectories ---------------------------------------------------------------------------------


def _one(name: str, row: Row) -> dict[str, Any]:
    """Return what is hashed of a single environment."""
    env = library.environment(name, **arguments_of(name, row))
    slices = {"slice": {"slice": "window 0000"}, "rows": {"start": 5, "jobs": JOBS - 4}}
    rng, track = np.random.default_rng(SEED), Track()
    observation, info = env.reset(seed=SEED, options=slices.get(row["episodes"]))
    track.note("observation", observation)
    track.note("info", info)
    facts: dict[str, Any] = {}
    before = 0 if row["snapshot"] == "none" else 6 if "reservation" in row else 1
    ended, info = _walked(env, info, rng, track, before)
    if not ended and before:
        saved = env.snapshot(hide=row["snapshot"] == "hidden")
        _walk(env, info, rng, track, 10)
        observation, info = env.restore(saved)
        track.note("restored", observation)
        track.note("restored info", info)
    ended = ended or _walk(env, info, rng, track, STEPS)
    facts |= {"ended": ended, "time": env.time, "free": env.free}
    facts |= {"queued": env.queued(), "running": env.running()}
    result = env.result()
    whole = library.facts_of(result) if ended else {"start": result.start}
    return {**track.facts(), **facts, **{f"result {key}": value for key, value in whole.items()}}


def _walk(env: Any, info: Any, rng: np.random.Generator, track: Track, steps: int) -> bool:
    return _walked(env, info, rng, track, steps)[0]


def _walked(
    env: Any, info: Any, rng: np.random.Generator, track: Track, steps: int
) -> tuple[bool, Any]:
    """Do random actions; return whether the episode has ended, and the last info."""
    ended = False
    for _ in range(steps):
        if ended:
            break
        action = acted(env.action_space, info.get("action_mask"), rng)
        observation, reward, ended, truncated, info = env.step(action)
        track.note("observation", observation)
        track.note("reward", reward)
        track.note("truncated", truncated)
        final = info.pop("metrics", None)
        track.note("info", info)
        if final is not None:
            track.note("metrics", library.metrics_of(final))
    return ended, info


def _many(name: str, row: Row) -> dict[str, Any]:
    """Return what is hashed of a vector environment."""
    number = int(row["number"])
    given = arguments_of(name, row) | {"copy": row["copy"] == "yes"}
    if row["max_episode_steps"] != "-":
        given["max_episode_steps"] = int(row["max_episode_steps"])
    given["autoreset_mode"] = row["autoreset_mode"]
    envs = library.vector_environment(name, number, **given)
    rng, track = np.random.default_rng(SEED), Track()
    observation, info = envs.reset(seed=SEED)
    track.note("observation", observation)
    saved = None
    for step in range(STEPS // 2):
        if step == 8 and row["snapshot"] != "none":
            saved = envs.snapshot(hide=row["snapshot"] == "hidden")
        if step == 16 and saved is not None:
            observation, info = envs.restore(saved)
            track.note("restored", observation)
            track.note("restored info", info)
        masks = _masks(observation, envs)
        space = envs.single_action_space
        actions = np.array([acted(space, masks[e], rng) for e in range(number)])
        observation, reward, terminated, truncated, info = envs.step(actions)
        for key, value in (("observation", observation), ("reward", reward), ("info", info)):
            track.note(key, value)
        track.note("terminated", terminated)
        track.note("truncated", truncated)
        done = terminated | truncated
        if row["autoreset_mode"] == "Disabled" and done.any():
            observation, info = envs.reset(options={"reset_mask": done})
            track.note("observation", observation)
    return track.facts()


def _masks(observation: Any, envs: Any) -> list[Any]:
    """Return what can be done in each environment, None where all can."""
    single = envs.single_action_space
    known = isinstance(observation, Mapping) and hasattr(single, "n")
    mask = observation["mask"] if known else None
    if mask is None or mask.shape[1] > single.n:
        return [None] * envs.num_envs
    return list(mask)


#: Values that some environments refuse, alone.
_ALONE: dict[str, tuple[str, ...]] = {
    "backfill": ("conservative", "fill"),
    "backfill_order": ("fairshare", "filler"),
    "estimate": ("data-driven", "longest", "e-loss", "typical-ratio", "ave1"),
    "policy_estimate": ("longest", "user-ratio", "ave2"),
    "correction": ("kill", "next-second", "predicted-again"),
    "passes": ("per-event",),
    "allocation": ("best-fit", "contiguous", "half-socket", "part:3"),
    "power": ("dvfs", "powercap"),
    "interval": ("pass", "2"),
    "partners": ("fill",),
    "quota": ("user:jobs=1", "user:processors=6"),
    "maintenance": ("whole", "part"),
    "threshold": ("20",),
    "hold": ("0.2",),
    "machine": ("off", "units", "powered", "limited", "off-nodes", "shared"),
}


def _alone(row: Row) -> dict[str, Any]:
    """Return what is hashed of an environment with one argument that is not the usual one."""
    machine = row.get("machine", "shared" if row["env"] == "CoSchedule" else "pool")
    jobs = workloads.plain("ties")
    given: dict[str, Any] = {"jobs": 16}
    if machine in machines.POOLS:
        given["processors" if machine == "pool" else "cluster"] = (
            8 if machine == "pool" else machines.POOLS[machine](8)
        )
    elif machine in ("units", "powered"):
        jobs, given["cluster"] = jobs_on("resources" if machine == "units" else machine, "ties")
    elif machine == "shared":
        given["cluster"] = machines.SHARED["6x1x4"]
        jobs = workloads.coded("seconds", 24)
        if row["env"] == "CoSchedule":
            given["speedups"] = machines.HEATMAPS["generated"]
    else:
        cluster = machines.LIMITED["taurus"]
        given["cluster"] = machines.switching(cluster, "40" if machine == "off-nodes" else "never")
        jobs = workloads.limited("seconds", cluster.processors)
    names = ("backfill", "backfill_order", "estimate", "policy_estimate", "correction", "passes",
             "allocation", "power", "partners", "quota", "maintenance", "threshold",
             "hold")  # fmt: skip
    given |= {"workload": jobs, **values.rules_of(row, names, jobs)}
    if row.get("correction") == "predicted-again":
        given["estimate"] = "ave2"
    if "interval" in row:
        given["interval"] = interval_of(row["interval"])
    env = library.environment(row["env"], **given)
    rng, track = np.random.default_rng(SEED), Track()
    _, info = env.reset(seed=SEED)
    track.note("ended", _walk(env, info, rng, track, 30))
    return {**track.facts(), "start": env.result().start}


def _driven(row: Row) -> dict[str, Any]:
    """Return what is hashed of an environment in which a baseline acts."""
    jobs, cluster = jobs_on("pool" if row["machine"] == "pool" else "resources", "users")
    baseline = library.find_baseline(row["baseline"])
    given = {"workload": jobs, "cluster": cluster, "jobs": 40, **baseline.rules}
    if row["env"] == "MixedPolicy":
        features = ("processors", "requested", "wait", "ratio", "expansion", "area", "f1")
        given |= {"interval": "pass", "policy_features": features}
    env = library.environment(row["env"], **given)
    track, ended = Track(), False
    observation, info = env.reset(seed=SEED)
    baseline.begin(env)
    while not ended:
        view = env.pass_view()
        for name in ("time", "free", "job", "duration", "running_end", "running_node"):
            track.note(f"view.{name}", getattr(view, name))
        observation, reward, ended, _, info = env.step(baseline.act(observation, info))
        track.note("reward", reward)
    return {**track.facts(), **library.facts_of(env.result())}
