"""A workload like that of ForHLR II at KIT, for where the archive's log, KIT-FH2, is not at hand.

Published (Galleguillos et al. 2020, section 4):

- 114,355 jobs from June 2016 to January 2018, 187 a day.
- 66.26 % of them run for less than an hour.
- 1,152 nodes of 20 cores and 64 GB, 21 of 48 cores, 4 GPUs and 1 TB: 98 % of the nodes have cores
  and memory only. The log tells no names of jobs.

Assumed, since the document says nothing of it: how the other run times divide (24 % up to twelve
hours, the rest up to three days), run times within the classes, requested times, how many users
there are, what jobs ask for (whole thin nodes, and a few jobs the fat ones), and how campaigns
repeat and arrivals cluster (:mod:`hpcgym.workload.generators.campaigns`). The document gives no
load either; the numbers of nodes are chosen so that at the published number of jobs a day it is
about 0.6. A campaign of large jobs moves that of a single month a good deal, so ``load`` sets it
where it matters. With the log itself, ``load_workload("KIT-FH2")``, none of this is needed.
"""

from __future__ import annotations

from hpcgym.workload.generators.campaigns import DurationClass, Kind, Model, generate
from hpcgym.workload.model import Workload

_JOBS, _DAYS = 114_355, 610  # June 2016 to January 2018, whole months

_HOUR_S = 3600
_THIN = (
    (1, 1, 1, 2, 2, 4, 8, 16, 32, 64, 128),  # short
    (2, 4, 4, 8, 16, 16, 32, 64),  # medium
    (2, 8, 16, 32, 64),  # long
)
_FAT = ((1, 1, 2), (1, 1, 2), (1,))

MODEL = Model(
    name="kit",
    processors=1152 * 20 + 21 * 48,
    nodes=1152 + 21,
    jobs_per_day=_JOBS / _DAYS,
    classes=(
        DurationClass(0.6626, 1, _HOUR_S - 1, repeats=100, queues=(0,)),
        DurationClass(0.2400, _HOUR_S, 12 * _HOUR_S, repeats=30, queues=(0,)),
        DurationClass(0.0974, 12 * _HOUR_S + 1, 72 * _HOUR_S, repeats=10, queues=(0,)),
    ),
    kinds=(
        Kind(0.95, (20,), (800, 1600, 3200), 64_000, _THIN),
        Kind(0.03, (12, 24, 48), (8_000, 16_000), 1_000_000, _FAT),
        Kind(0.02, (12, 24, 48), (8_000, 16_000), 1_000_000, _FAT, {"gpu": (1, 2, 4)}),
    ),
    queues=(("normal", 72 * _HOUR_S),),
    users=150,
    default_requests=0.2,
    named=False,
    note="KIT-like: fitted to what is published of ForHLR II, the rest assumed",
)


def kit(
    jobs: int | None = None,
    days: float | None = None,
    seed: int = 0,
    load: float | None = None,
) -> Workload:
    """Generate a workload like that of ForHLR II; see the module for what is published of it.

    The same arguments give the same workload.

    Parameters
    ----------
    jobs : number of jobs; by default, as many as come in ``days``.
    days : time of the submissions; by default 30, or as long as ``jobs`` take to come.
    seed : of the random numbers, at least 0.
    load : offered load, sum(cores * run time) / (cores of the machine * time of the submissions).
        The time is stretched or squeezed to reach it. None keeps the published 187 jobs a day.

    Returns
    -------
    Workload
        With units and, for each, ``core``, ``mem`` [MB] and ``gpu``; ``user_id`` from 1.

    Raises
    ------
    WorkloadError
        An argument out of range, or all of jobs, days and load.
    """
    return generate(MODEL, jobs, days, seed, load)
