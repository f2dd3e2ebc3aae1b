"""What a schedule of the slow simulator is worth, written out."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgym.reference.jobs import Job

OF_JOBS = ("mean_bsld", "max_bsld", "rms_bsld", "mean_slowdown", "mean_wait_s", "max_wait_s")
OF_JOBS += ("mean_response_s", "max_response_s")


def worth(jobs: Sequence[Job], processors: int, begin: int = 0, lost: int = 0) -> dict[str, float]:
    """Return the metrics of a batch by name.

    ``begin`` is when an extract begins. Jobs that ended before do not count. Jobs that ran then
    count for the machine only, from then on. ``lost``: processor seconds of runs that others ended.
    """
    jobs = [job for job in jobs if job.end > begin]
    first = max(min(job.submit for job in jobs), begin)
    work = lost + sum(
        job.processors * (job.end - job.paused - max(job.start, first)) for job in jobs
    )
    makespan = max(job.end for job in jobs) - first
    machine = {"makespan_s": makespan, "utilization": work / (processors * makespan)}
    jobs = [job for job in jobs if job.start >= first]
    if not jobs:
        return dict.fromkeys(OF_JOBS, float("nan")) | machine
    waits = [job.start + job.paused - job.submit for job in jobs]
    runs = [job.end - job.start - job.paused for job in jobs]
    slowdowns = [max((w + p) / max(p, 10), 1.0) for w, p in zip(waits, runs, strict=True)]
    responses = [w + p for w, p in zip(waits, runs, strict=True)]
    n = len(jobs)
    return {
        "mean_bsld": sum(slowdowns) / n,
        "max_bsld": max(slowdowns),
        "rms_bsld": (sum(value * value for value in slowdowns) / n) ** 0.5,
        "mean_slowdown": sum(r / p for r, p in zip(responses, runs, strict=True)) / n,
        "mean_wait_s": sum(waits) / n,
        "max_wait_s": max(waits),
        "mean_response_s": sum(responses) / n,
        "max_response_s": max(responses),
    } | machine
