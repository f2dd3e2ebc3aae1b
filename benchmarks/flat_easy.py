"""Plain EASY backfilling in one small function: what hpcgym's engine is measured against.

Two arrays, shifted at every change: the queue in order of submission, the running jobs by predicted
end. FCFS queue, FCFS backfilling, requested times, one pass after all events of a second. The
reservation is kept until a job ends, so that an arrival behind a blocked head costs one comparison;
after an end the whole queue is looked at again.
"""

import numba
import numpy as np

FOREVER = np.iinfo(np.int64).max


@numba.njit(cache=True)
def flat_easy(submit, run, requested, width, processors):
    """Return the start times [s], (n_jobs,), of jobs in order of submission; run <= requested."""
    n = len(submit)
    start = np.full(n, -1, np.int64)
    queue = np.empty(n, np.int64)
    running = np.empty((min(n, processors), 3), np.int64)  # predicted end, end, width
    free, queued, active, arrived = processors, 0, 0, 0
    judged = 0  # jobs of the queue that the present reservation has turned down, its head first
    shadow, extra, next_end = 0, 0, FOREVER
    while arrived < n or active > 0:
        time = min(next_end, submit[arrived]) if arrived < n else next_end
        if next_end == time:
            active, free, next_end = end_jobs(running, active, free, time)
            judged = 0
        while arrived < n and submit[arrived] == time:
            queue[queued] = arrived
            queued += 1
            arrived += 1
        kept = looked_at = judged
        for i in range(looked_at, queued):
            job = queue[i]
            starts = width[job] <= free
            if kept > 0 and starts and time + requested[job] > shadow:
                starts = width[job] <= extra
                extra -= width[job] if starts else 0
            if starts:
                start[job] = time
                free -= width[job]
                add_running(running, active, time + requested[job], time + run[job], width[job])
                active += 1
                next_end = min(next_end, time + run[job])
                continue
            if kept == 0:
                shadow, extra = reserve(running, active, free, width[job])
            queue[kept] = job
            kept += 1
        queued = judged = kept
    return start


@numba.njit(cache=True)
def end_jobs(running, active, free, time):
    """Remove the jobs that end now: how many still run, processors free, the next end."""
    kept, next_end = 0, FOREVER
    for i in range(active):
        if running[i, 1] == time:
            free += running[i, 2]
            continue
        running[kept] = running[i]
        next_end = min(next_end, running[i, 1])
        kept += 1
    return kept, free, next_end


@numba.njit(cache=True)
def add_running(running, active, predicted_end, end, width):
    """Insert a running job in order of predicted ends."""
    i = active
    while i > 0 and running[i - 1, 0] > predicted_end:
        running[i] = running[i - 1]
        i -= 1
    running[i] = predicted_end, end, width


@numba.njit(cache=True)
def reserve(running, active, free, width):
    """Return the shadow time [s] of a blocked head, and the processors that it leaves free then."""
    i = 0
    while free < width:
        free += running[i, 2]
        i += 1
    shadow = running[i - 1, 0]
    while i < active and running[i, 0] == shadow:
        free += running[i, 2]
        i += 1
    return shadow, free - width
