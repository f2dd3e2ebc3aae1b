"""Section 4.6 of Glesser 2016: a cap for an hour within an interval, kept in four ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hpcgym.benchmarks.energy.powercap_workload import HOUR_S, Interval, choose, load
from hpcgym.benchmarks.energy.within import energy_within
from hpcgym.benchmarks.studies.spread import check_same_jobs
from hpcgym.cluster.files import find_cluster
from hpcgym.cluster.pool import Cluster
from hpcgym.cluster.power_plans import greatest_w
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import PowerCap
from hpcgym.simulation.run import simulate
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: What the thesis calls the policies -> the rule ``power`` here; without any, nodes are left idle.
POLICIES = {"SHUT": "shut", "DVFS": "dvfs", "MIX": "mix", "none": "none"}
CAPS = (0.8, 0.6, 0.4)
QUICK_CAPS = (0.6,)
LENGTH_S = HOUR_S

#: What a cap is a share of -> in words. Machines with nodes alone have the first only.
MACHINE, NODES, BONUS = "the machine", "nodes", "nodes with bonus"
CAPPED = {
    MACHINE: "a share of the power of the machine, with chassis and racks",
    NODES: "of the sum of its nodes (section 4.3.1); chassis and racks count nowhere",
    BONUS: "of the sum of its nodes, to which what grouped shutdown saves of chassis and racks is"
    " added (sections 4.2.2 and 4.6.3)",
}


def ways_to_cap(cluster: Cluster) -> list[str]:
    """Return what caps may be shares of on a machine: the first of CAPPED, or all."""
    return list(CAPPED) if cluster.levels else [MACHINE]


def nodes_of(cluster: Cluster) -> Cluster:
    """Return a machine without what stands above its nodes."""
    return replace(cluster, levels=())


def machine_and_cap(cluster: Cluster, cap: float, of: str) -> tuple[Cluster, float]:
    """Return the machine that is simulated under a cap, a share, and the cap [W].

    With the bonus the cap has all that stands above nodes in addition: only what is off of that
    leaves more than the share of the nodes' power for nodes.
    """
    if of == NODES:
        cluster = nodes_of(cluster)
    watts = cap * greatest_w(nodes_of(cluster) if of == BONUS else cluster)
    if of == BONUS:
        watts += greatest_w(cluster) - greatest_w(nodes_of(cluster))
    return cluster, watts


def capped(
    workload: Workload,
    cluster: Cluster,
    interval: Interval,
    cap: float,
    policy: str,
    of: str = MACHINE,
) -> Result:
    """Return the schedule under a cap, a share, for the hour in the middle of an interval.

    What it is a share of is a name of CAPPED. It is told at the beginning of the interval, so that
    what was before is the same under all. A cap of 1 limits nothing. Jobs that are
    submitted after the interval are left out.
    """
    jobs = workload.take(workload.submit_time < interval.end)
    machine, watts = machine_and_cap(cluster, cap, of)
    if cap >= 1:
        return simulate(jobs, cluster=machine, limits=[])
    start = (interval.begin + interval.end - LENGTH_S) // 2
    limit = PowerCap(watts, start, end=start + LENGTH_S, announced=interval.begin)
    return simulate(jobs, cluster=machine, limits=[limit], power=POLICIES[policy])


def amounts(result: Result, interval: Interval) -> dict[str, float]:
    """Return what happens within an interval.

    Returns
    -------
    amounts : "energy_j"; "launched", jobs that start; "work", core seconds in which jobs run, the
        thesis's accumulated cpu time; "computed", these at the highest frequency that would have
        done the same; "exceeded_s", how long the power is above the cap.
    """
    begin, end = interval.begin, interval.end
    runs = np.minimum(result.end, end) - np.maximum(result.start, begin)
    work = result.workload.requested_processors * np.maximum(runs, 0)
    computed = work * (result.full_speed_run_time / result.run_time)
    launched = (result.start >= begin) & (result.start < end)
    return {
        "energy_j": energy_within(result, begin, end),
        "launched": int(launched.sum()),
        "work": float(work.sum()),
        "computed": float(computed.sum()),
        "exceeded_s": int(result.metrics.get("cap_exceeded_s", 0)),
    }


def measure(task: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """Simulate an interval of a workload under all caps and policies.

    Parameters
    ----------
    task : "workload", its name, "requests", "capped", a name of CAPPED, "interval", "caps",
        "cluster", "jobs" of a substitute, and "jobs_sha256" of them; and "code", a hash of the
        sources.
    sources : name of a workload -> what it is loaded from.

    Returns
    -------
    outcome : "interval", as :class:`Interval`; "possible_j" and "possible_work", of a machine that
        is busy throughout; "rows", of :func:`amounts` with "cap" and "policy", no cap first.

    Raises
    ------
    HpcgymError : the workload cannot be read here, has other jobs, or is too short.
    """
    cluster = find_cluster(task["cluster"])
    name = task["workload"]
    workload = load(sources[name], task["requests"], cluster, task["jobs"])
    check_same_jobs(name, fingerprint([workload]), task["jobs_sha256"])
    interval = choose(workload, cluster, task["interval"])
    cells = [(1.0, "none"), *((cap, policy) for cap in task["caps"] for policy in POLICIES)]
    rows = []
    for cap, policy in cells:
        result = capped(workload, cluster, interval, cap, policy, task["capped"])
        rows.append({"cap": cap, "policy": policy} | amounts(result, interval))
    seconds = interval.end - interval.begin
    machine, _ = machine_and_cap(cluster, 1.0, task["capped"])
    return {
        "interval": vars(interval),
        "possible_j": greatest_w(machine) * seconds,
        "possible_work": cluster.processors * seconds,
        "rows": rows,
    }
