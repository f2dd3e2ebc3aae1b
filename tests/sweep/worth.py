"""What a schedule of the slow simulator is worth, written out."""

from __future__ import annotations

from collections.abc import Sequence

from oracle import Job


def worth(jobs: Sequence[Job], processors: int) -> dict[str, float]:
    """Return the metrics of a batch by name."""
    waits = [job.start - job.submit for job in jobs]
    runs = [job.end - job.start for job in jobs]
    slowdowns = [max((w + p) / max(p, 10), 1.0) for w, p in zip(waits, runs, strict=True)]
    responses = [w + p for w, p in zip(waits, runs, strict=True)]
    makespan = max(job.end for job in jobs) - jobs[0].submit
    work = sum(job.processors * p for job, p in zip(jobs, runs, strict=True))
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
        "makespan_s": makespan,
        "utilization": work / (processors * makespan),
    }
