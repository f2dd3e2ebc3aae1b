"""Jobs of a GPU cluster: like those of Venus, one of the clusters of Helios.

Q. Hu, P. Sun, S. Yan, Y. Wen and T. Zhang, "Characterization and prediction of deep learning
workloads in large-scale GPU datacenters", SC 2021, with the authors' artifact
(github.com/S-Lab-System-Group/HeliosArtifact), whose figures are drawings with their numbers. The
authors publish the following of its GPU jobs, April to September 2020; it is the same here:

- :data:`GPUS`: the shares of jobs by number of GPUs (Figure 6a, ``job_cdf_gpunum.pdf``).
- :data:`RUN_TIMES`: how many run no longer than a second, 2, 4, ... 2^21 (Figure 5a,
  ``job_cdf_jobtime.pdf``).
- :data:`CYCLE`: how many are submitted in each hour of the day (Figure 2b,
  ``cluster_diurnal.pdf``).
- 125,303 of them (``helios_cluster_summary.csv``) in 183 days.
- 133 nodes (Table 1), each with 8 GPUs, 48 threads and 376 GB (``enviornment/``).

Assumed, since nothing is published of it:

- Jobs between two numbers of GPUs have the higher one, and those of more than 64 have 128: jobs
  have 6.82 on average then, and 6.74 in the log. Between two neighbouring powers of two, run times
  are log-uniform.
- Run times do not depend on numbers of GPUs. Jobs of up to 8 have 42 % of the GPU time then, as in
  Figure 6b, but those of one have 8 % where it has 5 %, and those of more than 64 have 26 % where
  it has 9 %.
- Jobs have equal parts on as few nodes as hold them, and of cores and memory the share that they
  have of a node's GPUs. The log's 121,405 jobs without GPUs are left out.
- Jobs come by chance, as often as the hour of the day says, every day alike.
- Users repeat similar jobs (:func:`hpcgym.workload.generators.lublin.assign_users`).
- Requested times, since hardly any job of the log was ended by one: over-estimates by a factor
  from 1.5 to 20, log-uniform, rounded up to 15 minutes, of at most the 2^21 s of the longest job.
"""

from __future__ import annotations

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.names import CORE, MEMORY
from hpcgym.units import DAY_S
from hpcgym.workload.columns import MAX_TIME
from hpcgym.workload.generators.campaigns import FACTORS, ROUND_S, log_uniform
from hpcgym.workload.generators.lublin import assign_users, checked_sizes, default_users
from hpcgym.workload.model import Workload

#: Number of GPUs -> share of the jobs [%]; 128: more than 64.
GPUS = {
    1: 51.838, 2: 5.546, 4: 7.419, 8: 25.174, 12: 0.003, 16: 4.164, 24: 0.899, 32: 2.717,
    40: 0.287, 48: 0.254, 56: 0.176, 64: 0.233, 128: 1.291,
}  # fmt: skip
#: Share of the jobs that run for at most 2^k s [%], from k = 0 on.
RUN_TIMES = (
    1.888, 2.776, 4.057, 6.373, 9.637, 14.763, 23.222, 37.642, 55.054, 65.144, 72.858, 78.530,
    83.668, 86.892, 89.646, 92.327, 95.416, 97.459, 98.902, 99.643, 99.939, 100.0,
)  # fmt: skip
#: GPU jobs that are submitted in an hour, by the hour of the day, from midnight on.
CYCLE = (
    25.9, 19.0, 17.3, 11.1, 7.7, 5.9, 5.4, 6.5, 10.8, 22.9, 37.3, 42.5,
    33.6, 37.4, 44.9, 47.7, 50.0, 50.0, 37.0, 37.9, 38.8, 39.3, 33.1, 29.9,
)  # fmt: skip
NODES, NODE_GPUS, NODE_CORES, NODE_MB = 133, 8, 48, 376_000
JOBS_A_DAY = 125_303 / 183  # on all nodes


def helios(
    jobs: int = 10_000, nodes: int = NODES, seed: int = 0, load: float | None = None
) -> Workload:
    """Generate jobs of a GPU cluster like Venus of Helios; see the module for what is published.

    The same arguments give the same workload.

    Parameters
    ----------
    jobs : number of jobs, at least 1.
    nodes : of the machine, with 8 GPUs each; by default those of the machine ``helios``. Jobs of
        more GPUs than it has get all of them.
    seed : of the random numbers, at least 0.
    load : offered load, sum(GPUs * run time) / (GPUs of the machine * time of the submissions). The
        time is stretched or squeezed to reach it, and the daily cycle stays a day long. None keeps
        the published 685 jobs a day on 133 nodes, and as many for each node on others.

    Returns
    -------
    Workload
        With units, each on a node, and for each ``core``, ``mem`` [MB] and ``gpu``; ``user_id``
        from 1.

    Raises
    ------
    WorkloadError
        An argument out of range; the message names it.
    """
    jobs, nodes, seed, load = checked_sizes("helios", jobs, ("nodes", nodes, 10**6), seed, load)
    sizes, runs, times, users, requests = np.random.default_rng(seed).spawn(5)

    shares = np.array([*GPUS.values()])
    gpus = np.minimum(sizes.choice([*GPUS], jobs, p=shares / shares.sum()), nodes * NODE_GPUS)
    exponents = np.arange(-1, len(RUN_TIMES))  # those of up to a second run for one
    run_time = np.exp2(np.interp(runs.random(jobs) * 100, (0, *RUN_TIMES), exponents))
    run_time = np.maximum(np.rint(run_time), 1).astype(np.int64)
    span = jobs / (JOBS_A_DAY * nodes / NODES) * DAY_S
    if load is not None:
        work = float(np.sum(gpus * run_time, dtype=np.float64))
        span = work / (nodes * NODE_GPUS * load)
    if span > MAX_TIME / 2:
        raise WorkloadError("helios: the jobs spread over more than 2^52 s")
    come = np.concatenate([[0.0], np.cumsum(CYCLE)]) / sum(CYCLE)  # of a day's jobs, by the hour
    hours = np.linspace(0, DAY_S, len(come))
    days, rest = divmod(span, DAY_S)
    in_all = days + np.interp(rest, hours, come)
    number, part = np.divmod(np.sort(times.random(jobs)) * in_all, 1)
    submit_time = (number * DAY_S + np.interp(part, come, hours)).astype(np.int64)

    units = -(-gpus // NODE_GPUS)
    of_unit = -(-gpus // units)
    core, memory = (amount // NODE_GPUS * of_unit for amount in (NODE_CORES, NODE_MB))
    asked = run_time * log_uniform(requests, *FACTORS, jobs)
    asked = np.minimum(np.ceil(asked / ROUND_S) * ROUND_S, 2 ** (len(RUN_TIMES) - 1))
    user_id = assign_users(gpus, run_time, default_users(jobs), users)
    processors = nodes * NODE_CORES
    return Workload.from_columns(
        {
            "job_number": np.arange(1, jobs + 1),
            "submit_time": submit_time,
            "run_time": run_time,
            "requested_time": asked.astype(np.int64),
            "requested_processors": units * core,
            "allocated_processors": units * core,
            "requested_memory": memory * 1000 // core,  # kB a processor
            "user_id": user_id,
            "status": np.ones(jobs, np.int64),
        },
        processors=processors,
        name=f"helios seed {seed}",
        header={
            "Version": ["2.2"],
            "UnixStartTime": ["0"],
            "TimeZoneString": ["UTC"],
            "MaxNodes": [str(nodes)],
            "MaxProcs": [str(processors)],
            "Note": [
                "like Venus of Helios (Hu et al., SC 2021): GPUs, run times and hours of submission"
                " as published, the rest assumed",
                f"helios(jobs={jobs}, nodes={nodes}, seed={seed}, load={load})",
            ],
        },
        units=units,
        per_unit={CORE: core, MEMORY: memory, "gpu": of_unit},
    )
