"""Cases of environments: trajectories of a random policy that is always the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import gymnasium
import numpy as np

from guarding import inputs
from guarding.facts import attempt, facts_of
from guarding.inputs import rules_of
from guarding.simulations import Row, plain_on
from hpcgym.baselines import find_baseline
from hpcgym.envs.ids import id_of
from hpcgym.scheduler.limits import PowerCap

STEPS = 60  # at most, of an episode or of many
SEED = 7
JOBS = 24  # of an episode

_PLAIN: dict[str, Any] = {
    "part": "all", "start": "empty", "arrivals": "stop", "horizon": None, "reward": "bsld",
    "paid": "start", "backfill_order": "fcfs", "window": 128,
}  # fmt: skip
#: What environments are given unless a case says otherwise.
USUAL: dict[str, dict[str, Any]] = {
    "JobSelection": {**_PLAIN, "skip_forced": False},
    "QueueOrdering": {**_PLAIN, "skip_forced": False},
    "MixedPolicy": {**_PLAIN, "backfill_order": "spf", "scale": "none", "skip_forced": False},
    "Backfill": _PLAIN,
    "Inspector": {name: value for name, value in _PLAIN.items() if name != "backfill_order"},
}


def serial(jobs: Any) -> Any:
    """Return a feature of visible jobs: whether they have one processor."""
    return jobs.processors == 1


def night(jobs: Any) -> Any:
    """Return a feature of visible jobs: the time of the day at which they came."""
    return np.clip((jobs.submit % 86_400) / 43_200 - 1, -1, 1)


def own_reward(view: Any) -> float:
    """Return a reward: minus all that a step tells, weighed oddly."""
    started = float((view.wait_s * view.processors).sum() + 0.5 * view.run_time_s.sum())
    whole = view.elapsed_s + 3 * view.queued - 7 * view.free + view.energy_j / 1000 + view.bsld
    least: float = started + whole + float(view.requested_time_s.sum()) / 3
    return -least / float(view.jobs)


def late_cap(workload: Any) -> list[Any]:
    """Return limits of an episode: a low cap after its tenth job."""
    start = int(workload.submit_time[9])
    return [PowerCap(900, start, start + 3600)]


_REWARDS: dict[str, Any] = {
    "mix": {"bsld": 0.7, "energy": 0.3, "wait": 0.25},
    "list": ["bsld", "energy"],
    "function": own_reward,
}
_FEATURES: dict[str, Any] = {
    "policy-time": ("wait", "requested", "policy_time", "processors", "fits", "leaves"),
    "own": {"wait": None, "serial": serial, "predicted": None, "night": night},
}
_WEIGHED: dict[str, Any] = {
    "some": ("area", "wait", "processors"),
    "formulas": ("f1", "unicef", "expansion", "f3"),
    "none": (),
}
_CONTROLS = {"nodes-power": ("nodes", "power")}


def arguments_of(name: str, row: Row) -> dict[str, Any]:
    """Return the arguments of an environment, but for how it is stepped."""
    given: dict[str, Any] = {"jobs": JOBS, "observation": row["observation"]}
    given["window"] = int(row["window"])
    given["reward"] = _REWARDS.get(row["reward"], row["reward"])
    if row["episodes"] in ("whole", "train", "test"):
        part = "all" if row["episodes"] == "whole" else row["episodes"]
        given |= {"episodes": "whole", "part": part, "train_share": 0.4}
    kind = _paired if name == "CoSchedule" else _limited if "jobs" in row else _queued
    return {**given, **optional(row), **kind(row)}


def optional(row: Row) -> dict[str, Any]:
    """Return the arguments that rows of several kinds may name."""
    given: dict[str, Any] = {}
    for name, known in (("features", _FEATURES), ("policy_features", _WEIGHED)):
        if row.get(name, "usual") != "usual":
            given[name] = known[row[name]]
    if "interval" in row:  # a name, or a number of submissions
        given["interval"] = int(row["interval"]) if row["interval"].isdigit() else row["interval"]
    for name in ("put_offs", "delay"):
        if name in row:
            given[name] = int(row[name])
    if "promise" in row:
        given["promise"] = row["promise"]
    if "reservation" in row:
        given["reservation"] = row["reservation"]
        given["shutdown_action"] = row["shutdown_action"] == "yes"
    return given


def _queued(row: Row) -> dict[str, Any]:
    """Return the arguments of environments in which the queue is served."""
    jobs, cluster = jobs_on(row["machine"], row["workload"])
    return {"workload": jobs, "cluster": cluster, **rules_of(row, jobs)}


def jobs_on(machine: str, workload: str) -> tuple[Any, Any]:
    """Return jobs and the machine for them."""
    if machine in inputs.POOLS:
        return plain_on({"machine": machine, "workload": workload})
    kind = "resources" if machine == "resources" else "cores"
    nodes = {"resources": "mixed", "cores": "equal"}.get(machine, machine)
    ties = "-ties" if workload == "ties" else ""
    return inputs.plain(f"{kind}{ties}"), inputs.NODES[nodes]


def _limited(row: Row) -> dict[str, Any]:
    """Return the arguments of environments whose machine is steered."""
    usual = row["machine"] == "usual"
    machine = inputs.LIMITED["taurus" if usual else row["machine"]]
    cluster = inputs.switching(machine, row["shutdown"])
    jobs = inputs.limited(row["jobs"], 16 if usual else cluster.processors)
    given = {"workload": jobs, **rules_of(row, jobs), "share": float(row["share"])}
    if not usual:
        given["cluster"] = cluster
    if row["limits"] != "usual":
        limits = inputs.LIMITS.get(row["limits"])
        given["limits"] = limits(machine, 0, 6000) if limits else late_cap
    if row["controls"] != "all":
        given["controls"] = _CONTROLS.get(row["controls"], (row["controls"],))
    if "hours" in row:
        return {**given, "hours": tuple(map(int, row["hours"].split("-")))}
    return {**given, "period": int(row["period"]), "shutdown": row["off"] == "yes"}


def _paired(row: Row) -> dict[str, Any]:
    """Return the arguments of the environment in which jobs share nodes."""
    cluster = inputs.SHARED[row["machine"]]
    jobs = inputs.coded(row["coded"], cluster.processors)
    given = {"workload": jobs, "cluster": cluster, **rules_of(row, jobs), "action": row["action"]}
    given |= {"speedups": inputs.HEATMAPS[row["speedups"]], "neighbours": int(row["neighbours"])}
    return given if row["term"] == "-" else {**given, "reward": row["term"]}


# --- What an agent sees ---------------------------------------------------------------------------


class Track:
    """What an agent has seen, step by step."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Any]] = {}

    def note(self, name: str, value: Any) -> None:
        """Note a value, or the parts of one, under a name."""
        if isinstance(value, Mapping):
            for key, part in value.items():
                self.note(f"{name}.{key}", part)
        else:
            array = isinstance(value, np.ndarray)
            self.seen.setdefault(name, []).append(value.copy() if array else value)

    def facts(self) -> dict[str, Any]:
        """Return an array for each name, where all of its values are alike."""
        return {name: _stacked(listed) for name, listed in self.seen.items()}


def _stacked(listed: list[Any]) -> Any:
    """Return one array of many, if they have one shape and kind."""
    kinds = {(np.shape(value), np.asarray(value).dtype) for value in listed}
    (first, *more) = kinds
    return np.array(listed) if not more and first[1].kind in "biuf" else listed


def acted(space: Any, mask: Any, rng: np.random.Generator) -> Any:
    """Return a random action; one in nine choices is made as if there were no mask."""
    if hasattr(space, "n"):
        if mask is None or rng.integers(9) == 0:
            return int(rng.integers(space.n))
        allowed = np.flatnonzero(mask)
        return int(allowed[rng.integers(len(allowed))])
    shape = space.shape
    # whole quarters: ties, and the ends of the range
    return (rng.integers(-4, 5, size=shape) / 4).astype(np.float32)


# --- Trajectories ---------------------------------------------------------------------------------


def _single(name: str, **arguments: Any) -> Any:
    """Return a single environment, without Gymnasium's wrappers."""
    return gymnasium.make(id_of(name), **{**USUAL.get(name, {}), **arguments}).unwrapped


def _one(name: str, row: Row) -> dict[str, Any]:
    """Return what is hashed of a single environment."""
    env = _single(name, **arguments_of(name, row))
    slices = {"slice": {"slice": "window 0000"}, "rows": {"start": 5, "jobs": JOBS - 4}}
    rng, track = np.random.default_rng(SEED), Track()
    observation, info = env.reset(seed=SEED, options=slices.get(row["episodes"]))
    track.note("observation", observation)
    track.note("info", info)
    before = 0 if row["snapshot"] == "none" else 6 if "reservation" in row else 1
    ended, info = _walk(env, info, rng, track, before)
    if not ended and before:
        saved = env.snapshot(hide=row["snapshot"] == "hidden")
        _walk(env, info, rng, track, 10)
        observation, info = env.restore(saved)
        track.note("restored", observation)
        track.note("restored info", info)
    ended = ended or _walk(env, info, rng, track, STEPS)[0]
    facts = {"ended": ended, "time": env.time, "free": env.free}
    facts |= {"queued": env.queued(), "running": env.running()}
    result = env.result()
    whole = facts_of(result) if ended else {"start": result.start}
    facts["metrics"] = attempt(env.metrics)
    return {**track.facts(), **facts, **{f"result {key}": value for key, value in whole.items()}}


def _walk(env: Any, info: Any, rng: Any, track: Track, steps: int) -> tuple[bool, Any]:
    """Do random actions; return whether the episode has ended, and the last info."""
    ended = False
    while steps and not ended:
        steps -= 1
        action = acted(env.action_space, info.get("action_mask"), rng)
        observation, reward, ended, truncated, info = env.step(action)
        parts = {"observation": observation, "reward": reward, "truncated": truncated, "info": info}
        for key, value in parts.items():
            track.note(key, value)
    return ended, info


def _many(name: str, row: Row) -> dict[str, Any]:
    """Return what is hashed of a vector environment."""
    number = int(row["number"])
    given = arguments_of(name, row) | {"copy": row["copy"] == "yes"}
    if row["max_episode_steps"] != "-":
        given["max_episode_steps"] = int(row["max_episode_steps"])
    given["autoreset_mode"] = row["autoreset_mode"]
    envs: Any = gymnasium.make_vec(id_of(name), num_envs=number, **USUAL.get(name, {}) | given)
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
        parts = {"observation": observation, "reward": reward, "info": info}
        for key, value in {**parts, "terminated": terminated, "truncated": truncated}.items():
            track.note(key, value)
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


def _alone(row: Row) -> dict[str, Any]:
    """Return what is hashed of an environment with one argument that is not the usual one."""
    machine = row.get("machine", "shared" if row["env"] == "CoSchedule" else "pool")
    jobs = inputs.plain("ties")
    given: dict[str, Any] = {"jobs": 16}
    if machine == "pool":
        given["processors"] = 8
    elif machine in inputs.POOLS:
        given["cluster"] = inputs.POOLS[machine](8)
    elif machine in ("units", "powered"):
        jobs, given["cluster"] = jobs_on("resources" if machine == "units" else machine, "ties")
    elif machine == "shared":
        given["cluster"] = inputs.SHARED["6x1x4"]
        jobs = inputs.coded("seconds", 24)
        if row["env"] == "CoSchedule":
            given["speedups"] = inputs.HEATMAPS["generated"]
    else:
        cluster = inputs.LIMITED["taurus"]
        given["cluster"] = inputs.switching(cluster, "40" if machine == "off-nodes" else "never")
        jobs = inputs.limited("seconds", cluster.processors)
    given |= {"workload": jobs, **optional(row), **rules_of(row, jobs)}
    if row.get("correction") == "predicted-again":
        given["estimate"] = "ave2"
    env = _single(row["env"], **given)
    rng, track = np.random.default_rng(SEED), Track()
    _, info = env.reset(seed=SEED)
    track.note("ended", _walk(env, info, rng, track, 30)[0])
    return {**track.facts(), "start": env.result().start}


def _driven(row: Row) -> dict[str, Any]:
    """Return what is hashed of an environment in which a baseline acts."""
    jobs, cluster = jobs_on("pool" if row["machine"] == "pool" else "resources", "users")
    baseline = find_baseline(row["baseline"])
    given = {"workload": jobs, "cluster": cluster, "jobs": 40, **baseline.rules}
    if row["env"] == "MixedPolicy":
        features = ("processors", "requested", "wait", "ratio", "expansion", "area", "f1")
        given |= {"interval": "pass", "policy_features": features}
    env = _single(row["env"], **given)
    track, ended = Track(), False
    observation, info = env.reset(seed=SEED)
    baseline.begin(env)
    while not ended:
        view = env.pass_view()
        for name in ("time", "free", "job", "duration", "running_end", "running_node"):
            track.note(f"view.{name}", getattr(view, name))
        observation, reward, ended, _, info = env.step(baseline.act(observation, info))
        track.note("reward", reward)
    return {**track.facts(), **facts_of(env.result())}


GROUPS: dict[str, Callable[[Row], Any]] = {"driven": _driven, "env-rule": _alone}
_NAMES = (
    "JobSelection", "QueueOrdering", "MixedPolicy", "Backfill", "Inspector", "PowerCap",
    "EnergyBudget", "CoSchedule",
)  # fmt: skip
for _name in _NAMES:
    GROUPS |= {_name: partial(_one, _name), f"{_name}-vector": partial(_many, _name)}
