"""The arguments of environments, by the names of their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from guarding import library, machines, values, workloads
from guarding.matrix import Row

JOBS = 24  # of an episode


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
    return [library.PowerCap(900, start, start + 3600)]


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
    if name == "CoSchedule":
        return {**given, **_paired(row)}
    return {**given, **(_limited(row) if "jobs" in row else _queued(row))}


def _queued(row: Row) -> dict[str, Any]:
    """Return the arguments of environments in which the queue is served."""
    jobs, cluster = jobs_on(row["machine"], row["workload"])
    rules = ("backfill", "backfill_order", "estimate", "policy_estimate", "correction", "passes",
             "allocation")  # fmt: skip
    given = {"workload": jobs, "cluster": cluster, **values.rules_of(row, rules, jobs)}
    if row["features"] != "usual":
        given["features"] = _FEATURES[row["features"]]
    if "reservation" in row:
        given["reservation"] = row["reservation"]
        given["shutdown_action"] = row["shutdown_action"] == "yes"
    if "interval" in row:
        given["interval"] = interval_of(row["interval"])
    if row.get("policy_features", "usual") != "usual":
        given["policy_features"] = _WEIGHED[row["policy_features"]]
    return given


def jobs_on(machine: str, workload: str) -> tuple[Any, Any]:
    """Return jobs and the machine for them."""
    if machine in machines.POOLS:
        jobs = workloads.plain(workload)
        return jobs, machines.POOLS[machine](jobs.processors)
    ties = "-ties" if workload == "ties" else ""
    if machine == "resources":
        return workloads.plain(f"resources{ties}"), machines.NODES["mixed"]
    nodes = machines.NODES["powered" if machine == "powered" else "equal"]
    return workloads.plain(f"cores{ties}"), nodes


def _limited(row: Row) -> dict[str, Any]:
    """Return the arguments of environments whose machine is steered."""
    usual = row["machine"] == "usual"
    machine = machines.LIMITED["taurus" if usual else row["machine"]]
    cluster = machines.switching(machine, row["shutdown"])
    jobs = workloads.limited(row["jobs"], 16 if usual else cluster.processors)
    rules = ("backfill", "backfill_order", "estimate", "policy_estimate", "correction",
             "allocation", "power")  # fmt: skip
    given = {"workload": jobs, **values.rules_of(row, rules, jobs), "jobs": JOBS}
    if not usual:
        given["cluster"] = cluster
    if row["limits"] == "function":
        given["limits"] = late_cap
    elif row["limits"] != "usual":
        given["limits"] = machines.LIMITS[row["limits"]](machine, 0, 6000)
    if row["controls"] != "all":
        given["controls"] = _CONTROLS.get(row["controls"], (row["controls"],))
    if row["features"] != "usual":
        given["features"] = _FEATURES[row["features"]]
    given["policy_features"] = _WEIGHED[row["policy_features"]]
    given["interval"] = interval_of(row["interval"])
    given["share"] = float(row["share"])
    if "hours" in row:
        given["hours"] = tuple(map(int, row["hours"].split("-")))
    else:
        given |= {"period": int(row["period"]), "shutdown": row["off"] == "yes"}
    return given


def _paired(row: Row) -> dict[str, Any]:
    """Return the arguments of the environment in which jobs share nodes."""
    cluster = machines.SHARED[row["machine"]]
    rules = ("action", "allocation", "partners", "estimate")
    given: dict[str, Any] = {name: row[name] for name in rules}
    given |= {
        "workload": workloads.coded(row["coded"], cluster.processors),
        "cluster": cluster,
        "speedups": machines.HEATMAPS[row["speedups"]],
        "neighbours": int(row["neighbours"]),
    }
    return given if row["term"] == "-" else {**given, "reward": row["term"]}


def interval_of(name: str) -> Any:
    """Return an interval: a name, or a number of submissions."""
    return int(name) if name.isdigit() else name
