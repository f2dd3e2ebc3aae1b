"""The Lublin-Feitelson workload: as many jobs as wanted, from a seed and without a data file.

Submission times, sizes and run times are those of the published model (``lublin_model``). The model
has neither requested times nor users: these come from ``estimates`` and ``users``, which change no
job.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.workload.generators.arguments import positive, whole
from hpcgym.workload.generators.estimates import MAX_REQUEST_S, requested_times
from hpcgym.workload.generators.lublin_model import (
    CLASSES,
    JobClass,
    arrivals,
    day_points,
    run_times,
    sizes,
    submit_times,
)
from hpcgym.workload.generators.users import assign_users, default_users
from hpcgym.workload.model import MAX_TIME, Workload


def lublin(
    jobs: int = 10_000,
    processors: int = 256,
    seed: int = 0,
    load: float | None = None,
    classes: int = 2,
    users: int | None = None,
) -> Workload:
    """Generate a workload by the model of Lublin and Feitelson.

    The same arguments give the same workload, whatever the machine (numpy's PCG64 streams; the
    last bit of the platform's ``exp`` may move a time by a second once in billions of jobs).
    Without ``load``, a shorter workload of the same seed is the beginning of a longer one as far
    as submission times, sizes and run times go.

    Parameters
    ----------
    jobs : number of jobs, at least 1.
    processors : size of the machine, at least 1. The exponents of job sizes keep the distance to
        log2(processors) that they were fitted with at 128 processors.
    seed : of the random numbers, at least 0.
    load : offered load, sum(size * run time) / (processors * last submission time), the
        program's own definition. It is reached, up to the rounding of times to seconds, by
        scaling the gaps between arrivals *before* they are spread over the day, so that the daily
        cycle stays one day long. None keeps the model's gaps, whatever load they give.
    classes : 2 for separate interactive and batch jobs, 1 for the parameters that the authors
        fitted to all jobs together.
    users : number of users (default: grows with the jobs, 159 for 10,000).

    Returns
    -------
    Workload
        Columns ``submit_time``, ``run_time`` (at least 1 s), ``requested_time`` (at least the
        run time, :func:`hpcgym.workload.generators.estimates.requested_times`),
        ``requested_processors`` = ``allocated_processors``, ``user_id`` (from 1,
        :func:`hpcgym.workload.generators.users.assign_users`), ``queue`` (0 interactive, 1 batch;
        unknown with one class), ``status`` 1, ``job_number``.

    Raises
    ------
    WorkloadError
        An argument out of range; the message names it.
    """
    jobs = whole("lublin", "jobs", jobs, 1, 10**9)
    processors = whole("lublin", "processors", processors, 1, 2**31)
    seed = whole("lublin", "seed", seed, 0, 2**64)
    load = positive("lublin", "load", load)
    classes = whole("lublin", "classes", classes, 1, 2)
    users = default_users(jobs) if users is None else whole("lublin", "users", users, 1, 10**7)
    kinds = CLASSES[classes]
    request_seed, user_seed, *class_seeds = np.random.SeedSequence(seed).spawn(2 + len(kinds))

    columns = _model_columns(jobs, processors, load, kinds, class_seeds)
    columns["user_id"] = assign_users(
        columns["requested_processors"],
        columns["run_time"],
        users,
        np.random.default_rng(user_seed),
    )
    columns["requested_time"] = requested_times(
        columns["run_time"], columns["user_id"], seed=np.random.default_rng(request_seed)
    )
    columns["allocated_processors"] = columns["requested_processors"]
    columns["job_number"] = np.arange(1, jobs + 1)
    columns["status"] = np.broadcast_to(np.int64(1), jobs)
    for values in columns.values():
        values.flags.writeable = False  # read-only columns are not copied
    return Workload.from_columns(
        columns,
        processors=processors,
        name=f"lublin-{processors} seed {seed}" + ("" if load is None else f" load {load:g}"),
        header=_header(jobs, processors, seed, load, classes, users),
    )


def _model_columns(
    jobs: int,
    processors: int,
    load: float | None,
    kinds: tuple[JobClass, ...],
    class_seeds: list[np.random.SeedSequence],
) -> dict[str, Any]:
    """Return submission times, sizes, run times and queues of ``jobs`` jobs."""
    seeds = [s.spawn(3) for s in class_seeds]  # arrivals, sizes, run times
    points, order = arrivals(jobs, kinds, [s[0] for s in seeds])
    interactive_jobs = len(points[0])
    # Draws belong to the k-th job of a class: neither the load nor the other class changes them.
    class_sizes = [
        sizes(len(p), processors, kind, np.random.default_rng(s[1]))
        for p, kind, s in zip(points, kinds, seeds, strict=True)
    ]
    run_time = np.concatenate(
        [run_times(q, kind, s[2]) for q, kind, s in zip(class_sizes, kinds, seeds, strict=True)]
    )
    size = np.concatenate(class_sizes)
    del class_sizes
    factor = 1.0
    if load is not None:
        span = float(np.sum(size * run_time, dtype=np.float64)) / (processors * load)
        if span > MAX_TIME:
            raise WorkloadError(f"lublin: load {load} spreads the jobs over more than 2^53 s")
        factor = min(
            day_points(span, k) / p[-1] for k, p in zip(kinds, points, strict=True) if len(p)
        )
    times = [submit_times(p, k, factor) for k, p in zip(kinds, points, strict=True)]
    del points
    submit_time = np.concatenate(times)
    del times
    if factor != 1.0:
        order = np.argsort(submit_time, kind="stable")
    columns: dict[str, Any] = {
        "submit_time": submit_time[order],
        "run_time": run_time[order],
        "requested_processors": size[order],
    }
    if len(kinds) > 1:
        columns["queue"] = (order >= interactive_jobs).astype(np.int64)
    return columns


def _header(
    jobs: int, processors: int, seed: int, load: float | None, classes: int, users: int
) -> dict[str, list[str]]:
    """Return the SWF header: the machine and how the jobs were made."""
    header = {
        "Version": ["2.2"],
        "UnixStartTime": ["0"],
        "TimeZoneString": ["UTC"],
        "MaxNodes": [str(processors)],
        "MaxProcs": [str(processors)],
        "MaxRuntime": [str(MAX_REQUEST_S)],
        "Note": [
            "Lublin-Feitelson model (JPDC 63(11), 2003), requested times by the model of Tsafrir, "
            "Etsion and Feitelson (JSSPP 2005)",
            f"lublin(jobs={jobs}, processors={processors}, seed={seed}, load={load}, "
            f"classes={classes}, users={users})",
        ],
    }
    if classes == 2:
        header["MaxQueues"] = ["2"]
        header["Queue"] = ["0 interactive", "1 batch"]
    return header
