"""Table 6.1: a user at a time saves energy or wastes it; readings of how that was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.benchmarks.studies.logs import load_jobs
from hpcgym.benchmarks.studies.spread import check_same_jobs
from hpcgym.cluster.pool import Cluster
from hpcgym.schedule.result import Result
from hpcgym.scheduler.policies.fair_share import WEEK_S, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.model import Workload

#: What the thesis calls the policies -> what they are called here.
POLICIES = {"efs": "energy-fairshare", "fs+efs": "fs+efs"}
BASELINE = "fairshare"

#: What a user needs of the energy of others.
EFFICIENCIES = {"green": 0.7, "gluttonous": 1.3}
#: Of a late reading: FS over FS as logged, where nobody gains or loses. What chance alone does.
CHANCE = ("fs", "nobody differs")

USERS = 20  # those who submit most
QUICK_JOBS, QUICK_USERS = 3_000, 4
USUAL_W = 100.0


@dataclass(frozen=True)
class Reading:
    """One way to read how the thesis simulates.

    Attributes
    ----------
    meaning : in words.
    passes, half_life_s : rules, as in :class:`Scheduler` and :class:`FairShare`.
    order : in which jobs are back-filled; None: that of the queue.
    recipe : how the trace is cleaned.
    late_seed : of up to a minute by which each job comes later; None: as logged.
    """

    meaning: str
    passes: str = "per-event"
    order: str | None = None
    half_life_s: int | None = WEEK_S
    recipe: str = "glesser"
    late_seed: int | None = None

    def scheduler(self, policy: str) -> Scheduler:
        """Return the scheduler of a policy."""
        return Scheduler(
            policy,
            backfill_order=policy if self.order is None else self.order,
            passes=self.passes,
            fair_share=FairShare(np.inf if self.half_life_s is None else self.half_life_s),
        )


TEXT = "as written"
READINGS: dict[str, Reading] = {
    TEXT: Reading("a pass after each event, back-filled in the queue's order, half in a week"),
    "per timestamp": Reading("a pass after all events of a second", passes="per-timestamp"),
    "arrival": Reading("back-filled in order of arrival", order="fcfs"),
    "shortest": Reading("back-filled shortest first", order="sjbf"),
    "dropped": Reading("jobs that ran longer than requested dropped, not cut", recipe="legrand"),
    "day": Reading("half in a day", half_life_s=86_400),
    "month": Reading("half in 30 days", half_life_s=30 * 86_400),
    "never": Reading("nothing forgotten", half_life_s=None),
    **{
        f"late {seed}": Reading("each job up to a minute later, at random", late_seed=seed)
        for seed in range(1, 6)
    },
}


def load_trace(source: str, reading: Reading, jobs: int | None) -> Workload:
    """Return a trace as a reading has it; only the first ``jobs`` of them, None: all."""
    workload = load_jobs(source, clean=reading.recipe)
    if jobs is not None and jobs < len(workload):
        workload = workload.take(slice(0, jobs), name=f"{workload.name}, first {jobs:,} jobs")
    if reading.late_seed is not None:
        random = np.random.default_rng(reading.late_seed)
        later = workload.submit_time + random.integers(0, 61, len(workload))
        workload = workload.with_columns(submit_time=later)
    return workload


def measure(task: dict[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    """Let one user after another save energy or waste it.

    Parameters
    ----------
    task : "trace", "reading", a name of READINGS, "jobs" (None: all), "users", how many, and
        "jobs_sha256" of the jobs as they are cleaned for it; and "code", a hash of the sources.
    sources : name of a trace -> what it is loaded from.

    Returns
    -------
    outcome : "jobs"; "users", their numbers, those who submit most first; "baseline", their mean
        stretch there; "rows", for each policy and efficiency two lists by user: "by_means", the
        mean stretch over that in the baseline, and "by_jobs", the mean over jobs of this ratio. A
        late reading has a row of CHANCE too.

    Raises
    ------
    HpcgymError : the trace cannot be read here, or has other jobs.
    """
    reading = READINGS[task["reading"]]
    workload = _loaded(sources[task["trace"]], task["reading"], task["jobs"])
    check_same_jobs(task["trace"], fingerprint([workload]), task["jobs_sha256"])
    users, number = np.unique(workload.user_id, return_counts=True)
    most = users[np.argsort(-number, kind="stable")][: task["users"]]
    baseline = stretches(simulate(workload, reading.scheduler(BASELINE)))
    rows = []
    for name, policy in POLICIES.items():
        scheduler = reading.scheduler(policy)
        for efficiency, factor in EFFICIENCIES.items():
            ratios = []
            for user in most:
                ours = _of_saver(workload, scheduler, user, factor)
                ratios.append(_ratios(ours, baseline, workload.user_id == user))
            rows.append(_row(name, efficiency, ratios))
    if reading.late_seed is not None:
        logged = _loaded(sources[task["trace"]], TEXT, task["jobs"])
        before = stretches(simulate(logged, reading.scheduler(BASELINE)))
        # jobs that come later may come in another order
        late, then = np.argsort(workload.job_number), np.argsort(logged.job_number)
        user_id, ours = workload.user_id[late], baseline[late]
        rows.append(_row(*CHANCE, [_ratios(ours, before[then], user_id == u) for u in most]))
    means = [float(baseline[workload.user_id == user].mean()) for user in most]
    return {"jobs": len(workload), "users": most.tolist(), "baseline": means, "rows": rows}


@lru_cache(maxsize=2)
def _loaded(source: str, reading: str, jobs: int | None) -> Workload:
    return load_trace(source, READINGS[reading], jobs)


def _of_saver(
    workload: Workload, scheduler: Scheduler, user: int, factor: float
) -> NDArray[np.float64]:
    """Return the stretches where a user needs so much of the energy of others."""
    watts = np.where(workload.user_id == user, factor * USUAL_W, USUAL_W)
    machine = Cluster(workload.processors, busy_power_w=USUAL_W)
    return stretches(simulate(workload.with_columns(power_w=watts), scheduler, cluster=machine))


def _ratios(
    ours: NDArray[np.float64], before: NDArray[np.float64], mine: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return a user's stretch over that before: of the means, and the mean over jobs."""
    return (
        float(ours[mine].mean() / before[mine].mean()),
        float((ours[mine] / before[mine]).mean()),
    )


def _row(policy: str, efficiency: str, ratios: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return a row of an outcome."""
    by_means, by_jobs = np.transpose(ratios).tolist()
    row = {"policy": policy, "efficiency": efficiency}
    return {**row, "by_means": by_means, "by_jobs": by_jobs}


def stretches(result: Result) -> NDArray[np.float64]:
    """Return (wait + run time) / run time of each job."""
    return (result.wait + result.run_time) / result.run_time
