"""Chapter 5 of Glesser 2016: an energy budget for three days in the middle of a busy week."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym import Cluster, HpcgymError, Result, Workload, simulate
from hpcgym.benchmarks.energy.plans import energy_within
from hpcgym.benchmarks.studies import harness
from hpcgym.files import bytes_of, json_of
from hpcgym.machine import NodeGroup, find_cluster
from hpcgym.scheduler.limits import EnergyBudget
from hpcgym.scheduler.whole_nodes import node_power
from hpcgym.units import DAY_S, WEEK_S

#: What the thesis calls the mechanisms -> the rule ``power`` here.
MECHANISMS = {"powercap": "powercap", "reducePC": "reduce-pc", "energyBud": "energy-bud"}
BASELINE = "EASY"
#: Powers of a processor [W] in the authors' programs: what their scheduler reckons with for busy
#: and for free ones, and what busy ones draw.
RECKONED_W, RECKONED_FREE_W, DRAWN_W = 203.12, 100.0, 190.738
#: Section 5.4.3; at 49 % all processors are free, as they are reckoned.
BUDGETS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, RECKONED_FREE_W / RECKONED_W, 0.3)
BEGIN_S, END_S = 2 * DAY_S, 5 * DAY_S  # of the week
_FLOPS = 100e6  # [1/s] of a processor: the authors' weeks tell jobs' operations
_MOST_BYTES = 1 << 26

# --- A week ---------------------------------------------------------------------------------------


def load_week(source: str) -> Workload:
    """Return the jobs of a week: of a JSON file of the authors, or those that come in 7 days.

    A job of the authors has a number of operations for each processor, at 100e6 in a second. What
    runs or waits when the week begins comes at its beginning, as the authors have it.

    Raises
    ------
    HpcgymError : it cannot be read, or is no such week.
    """
    if Path(source).suffix != ".json":
        log = harness.load_jobs(source)
        return log.take(log.submit_time - log.submit_time[0] < WEEK_S)
    week = json_of(bytes_of(Path(source), _MOST_BYTES, HpcgymError), source, HpcgymError)
    try:
        operations = {name: profile["cpu"] for name, profile in week["profiles"].items()}
        jobs = sorted(week["jobs"], key=lambda job: job["id"])
        columns = {
            "submit_time": [job["subtime"] for job in jobs],
            "run_time": [operations[job["profile"]] / _FLOPS for job in jobs],
            "requested_time": [job["walltime"] for job in jobs],
            "requested_processors": [job["res"] for job in jobs],
        }
        processors = week["nb_res"]
    except (KeyError, TypeError, AttributeError) as error:
        raise HpcgymError(f"{source} is no week of the study of energy budgets: {error}") from None
    order = as_submitted(columns["submit_time"])
    whole = {name: np.ceil(values).astype(np.int64)[order] for name, values in columns.items()}
    return Workload.from_columns(whole, processors=processors, name=Path(source).stem)


def as_submitted(times: Sequence[float]) -> list[int]:
    """Return the order in which the authors' simulator submits jobs, given by their numbers.

    It sorts them by time with ``std::sort`` of C++, which leaves jobs of equal times in an order of
    its own, and a week of MetaCentrum has 12,000 of these. Under EASY that alone changes its
    AVEbsld from 260 to 236, where the authors have 227. This is what GNU's library does: it parts
    what is longer than 16 at the median of three, and sorts what is left by insertion. That it
    sorts a part by a heap which is parted too often is left out: it concerns seven weeks of Curie.
    """
    order, parts = list(range(len(times))), [(0, len(times))]
    while parts:
        first, last = parts.pop()
        while last - first > 16:
            low, mid, high = (times[order[k]] for k in (first + 1, (first + last) // 2, last - 1))
            if low < mid:
                chosen = 1 if mid < high else 2 if low < high else 0
            else:
                chosen = 0 if low < high else 2 if mid < high else 1
            at = (first + 1, (first + last) // 2, last - 1)[chosen]
            order[first], order[at] = order[at], order[first]
            pivot, left, right = times[order[first]], first + 1, last
            while True:
                while times[order[left]] < pivot:
                    left += 1
                right -= 1
                while pivot < times[order[right]]:
                    right -= 1
                if left >= right:
                    break
                order[left], order[right] = order[right], order[left]
                left += 1
            parts.append((left, last))
            last = left
    return sorted(order, key=times.__getitem__)


def machine_for(processors: int) -> Cluster:
    """Return a machine of that many nodes of Taurus, each a processor, as the scheduler reckons."""
    power = replace(node_power(find_cluster("taurus")), busy_w=RECKONED_W)
    return Cluster(groups=(NodeGroup("node", processors, {"core": 1}, power),), name="budget")


def run(jobs: Workload, budget: float, mechanism: str, shutdown: bool) -> Result:
    """Simulate a week under a budget, a share; :data:`BASELINE` has none."""
    cluster = machine_for(jobs.processors)
    jobs = jobs.with_columns(power_w=np.full(len(jobs), DRAWN_W))
    if mechanism == BASELINE:
        return simulate(jobs, cluster=cluster, limits=[], allocation="contiguous")
    how = {"shutdown": shutdown, "free_node_w": RECKONED_FREE_W}
    limit = EnergyBudget.of(cluster, budget, BEGIN_S, END_S, **how)
    rule = MECHANISMS[mechanism]
    return simulate(jobs, cluster=cluster, limits=[limit], power=rule, allocation="contiguous")


def amounts(result: Result, budget: float) -> dict[str, float]:
    """Return the measures of section 5.4.4, as the authors' programs compute them.

    Returns
    -------
    amounts : "AVEbsld", over all jobs; within the week "utilisation", "jobs started", of all, each
        that still runs at its end as the part that was done by then, and "energy", of what may be
        drawn: by busy processors, and of that the budget's share in its three days. In joules
        "week_j" and "period_j", and "exceeded_j" of the budget.
    """
    done = np.clip(WEEK_S - result.start, 0, result.run_time)
    used = float((done * result.workload.requested_processors).sum())
    week = energy_within(result, 0, WEEK_S)
    possible = DRAWN_W * result.cluster.processors * WEEK_S
    return {
        "AVEbsld": float(result.metrics["mean_bsld"]),
        "utilisation": used / (result.cluster.processors * WEEK_S),
        "jobs started": float((done / np.maximum(result.run_time, 1)).mean()),
        "energy": week / (possible * line(budget)),
        "week_j": week,
        "period_j": energy_within(result, BEGIN_S, END_S),
        "exceeded_j": float(result.metrics.get("budget_exceeded_j", 0.0)),
    }


def line(budget: Any) -> Any:
    """Return the black line of figure 5.1 at budgets: 3/7 of the week falls with them."""
    return 3 / 7 * budget + 4 / 7


def measure(task: Mapping[str, Any]) -> dict[str, Any]:
    """Simulate a week under all budgets and mechanisms.

    Parameters
    ----------
    task : "source" of a week, and "jobs_sha256" of its jobs; "budgets".

    Returns
    -------
    outcome : "jobs", "processors" and "rows", of :func:`amounts` with "mechanism", "shutdown",
        "budget" and "same", whether the schedule is that of the first row, EASY.

    Raises
    ------
    HpcgymError : the week cannot be read here, or has other jobs.
    """
    jobs = harness.same_jobs(load_week, task["jobs_sha256"], task["source"])
    cells = [(BASELINE, False, 1.0), *product(MECHANISMS, (False, True), task["budgets"])]
    rows: list[dict[str, Any]] = []
    easy = None
    for mechanism, shutdown, budget in cells:
        result = run(jobs, budget, mechanism, shutdown)
        easy = result.start if easy is None else easy
        same = bool(np.array_equal(result.start, easy))
        row = {"mechanism": mechanism, "shutdown": shutdown, "budget": budget, "same": same}
        rows.append(row | amounts(result, budget))
    return {"jobs": len(jobs), "processors": jobs.processors, "rows": rows}
