"""Section 5.4 of Glesser 2016: an energy budget for three days in the middle of a busy week."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from hpcgym import Cluster, HpcgymError, Result, Workload, simulate
from hpcgym.benchmarks.energy.plans import energy_within
from hpcgym.benchmarks.studies.harness import load_jobs, readings, same_jobs
from hpcgym.machine import NodeGroup, find_cluster
from hpcgym.machine.power_plans import greatest_w
from hpcgym.naming import DAY_S, WEEK_S
from hpcgym.scheduler.limits import EnergyBudget, Limit
from hpcgym.scheduler.on_machines import node_power

#: What the thesis calls the mechanisms -> the rule ``power`` here.
MECHANISMS = {"powercap": "powercap", "reducePC": "reduce-pc", "energyBud": "energy-bud"}
BASELINE = "EASY"
#: Powers of a processor [W]: what the scheduler reckons with, which budgets are shares of, and
#: what is drawn; of the authors' own runs with Batsim. Idle ones are not told apart here.
RECKONED_W, DRAWN_W, RECKONED_IDLE_W = 203.12, 190.738, 100.0
#: Section 5.4.3; 49 % is a machine on which all is idle.
BUDGETS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, RECKONED_IDLE_W / RECKONED_W, 0.3)
BEGIN_S, END_S = 2 * DAY_S, 5 * DAY_S  # of a week


@dataclass(frozen=True)
class Reading:
    """One way to read how the thesis simulates.

    Attributes
    ----------
    meaning : in words.
    sees_off : whether scheduler and meter know that processors which are off draw less than idle
        ones; if not, only what is counted afterwards does.
    off_as_idle : whether the scheduler alone takes those for idle ones.
    idle_s : [s] after which idle processors are switched off, all the week; None: at once, in the
        three days.
    """

    meaning: str
    sees_off: bool = True
    off_as_idle: bool = False
    idle_s: int | None = None


#: Machines with more processors than that are simulated as the text is written, and not otherwise:
#: a week of Curie takes minutes under each.
LARGE = 10_000
TEXT = "as written"
READINGS = readings(Reading, __file__, "budget.toml")


def machine_for(processors: int, sees_off: bool = True) -> Cluster:
    """Return a machine of that many nodes of Taurus, each a processor, as the scheduler sees it."""
    power = replace(node_power(find_cluster("taurus")), busy_w=RECKONED_W)
    if not sees_off:
        power = replace(power, off_w=power.idle_w)
    return Cluster(groups=(NodeGroup("node", processors, {"core": 1}, power),), name="budget")


def logged_utilisation(workload: Workload) -> dict[int, float]:
    """Return week -> share of processor seconds in use by the log, of whole weeks with jobs.

    An unknown wait counts as none. Week 0 begins at second 0 of the log.
    """
    start = workload.submit_time + np.maximum(workload.wait_time, 0)
    end, size = start + workload.run_time, workload.requested_processors
    found = {}
    for week in np.unique(workload.submit_time // WEEK_S).tolist():
        if (week + 1) * WEEK_S > int(workload.submit_time[-1]):
            continue  # it is not whole
        overlap = np.minimum(end, (week + 1) * WEEK_S) - np.maximum(start, week * WEEK_S)
        used = float((np.maximum(overlap, 0) * size).sum())
        found[week] = used / (WEEK_S * workload.processors)
    return found


def weeks_of(workload: Workload, number: int | None, seed: int) -> list[int]:
    """Return weeks of high utilisation: the upper quarter by the log, at least one.

    Parameters
    ----------
    number : draw that many of them at random; None: all.
    seed : of the draw.

    Raises
    ------
    HpcgymError : a trace without a whole week.
    """
    utilisation = logged_utilisation(workload)
    if not utilisation:
        raise HpcgymError(f"{workload.name}: it has no whole week")
    ranked = sorted(utilisation, key=lambda week: -utilisation[week])
    high = ranked[: max(len(ranked) // 4, 1)]
    if number is not None and number < len(high):
        high = np.random.default_rng(seed).choice(high, number, replace=False).tolist()
    return sorted(high)


def week_of(workload: Workload, week: int) -> Workload:
    """Return the jobs submitted in a week, which begins at second 0."""
    jobs = workload.take(workload.submit_time // WEEK_S == week)
    return jobs.with_columns(submit_time=jobs.submit_time - week * WEEK_S)


def run(jobs: Workload, reading: Reading, budget: float, mechanism: str, shutdown: bool) -> Result:
    """Simulate a week under a budget, a share; :data:`BASELINE` has none."""
    cluster = machine_for(jobs.processors, reading.sees_off)
    jobs = jobs.with_columns(power_w=np.full(len(jobs), DRAWN_W))
    limits: list[Limit] = []
    power = "none"
    if mechanism != BASELINE:
        given = {"shutdown": shutdown, "off_as_idle": shutdown and reading.off_as_idle}
        if shutdown and reading.idle_s is not None:
            cluster = replace(cluster, shutdown_after_s=reading.idle_s)
            given["shutdown"] = False
        limits = [EnergyBudget.of(cluster, budget, BEGIN_S, END_S, **given)]
        power = MECHANISMS[mechanism]
    result = simulate(jobs, cluster=cluster, limits=limits, power=power, allocation="contiguous")
    # the books see what is off
    return replace(result, cluster=replace(cluster, groups=machine_for(jobs.processors).groups))


def amounts(result: Result) -> dict[str, float]:
    """Return the measures of section 5.4.4.

    Returns
    -------
    amounts : "AVEbsld", over all jobs; within the week "utilisation", "jobs started" and "energy",
        over that of processors that are all busy, as reckoned; "exceeded_j" of the budget.
    """
    runs = np.maximum(np.minimum(result.end, WEEK_S) - result.start, 0)
    used = float((runs * result.workload.requested_processors).sum())
    cluster = result.cluster
    return {
        "AVEbsld": float(result.metrics["mean_bsld"]),
        "utilisation": used / (cluster.processors * WEEK_S),
        "jobs started": int((result.start < WEEK_S).sum()),
        "energy": energy_within(result, 0, WEEK_S) / (greatest_w(cluster) * WEEK_S),
        "exceeded_j": float(result.metrics.get("budget_exceeded_j", 0.0)),
    }


def measure(task: Mapping[str, Any]) -> dict[str, Any]:
    """Simulate a week under all budgets and mechanisms.

    Parameters
    ----------
    task : "source" of a trace, and "jobs_sha256" of its jobs; "reading", a name of READINGS;
        "week"; "budgets".

    Returns
    -------
    outcome : "jobs", "logged", the week's utilisation by the log, and "rows", of :func:`amounts`
        with "mechanism", "shutdown", "budget" and "same", whether the schedule is that of the
        first row, EASY.

    Raises
    ------
    HpcgymError : the trace cannot be read here, or has other jobs.
    """
    workload, week = same_jobs(load_jobs, task["jobs_sha256"], task["source"]), task["week"]
    jobs = week_of(workload, week)
    reading = READINGS[task["reading"]]
    cells = [(BASELINE, False, 1.0), *product(MECHANISMS, (False, True), task["budgets"])]
    rows: list[dict[str, Any]] = []
    first = None
    for mechanism, shutdown, budget in cells:
        result = run(jobs, reading, budget, mechanism, shutdown)
        first = result.start if first is None else first
        same = bool(np.array_equal(result.start, first))
        row = {"mechanism": mechanism, "shutdown": shutdown, "budget": budget, "same": same}
        rows.append(row | amounts(result))
    return {"jobs": len(jobs), "logged": logged_utilisation(workload)[week], "rows": rows}
