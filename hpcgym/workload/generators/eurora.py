"""An Eurora-like workload: the log itself is not public, so this is fitted to what is published.

Published (Remediani 2017, sections 3.1, 3.1.1 and 5.1; Galleguillos et al. 2020, section 4):

- 372,320 jobs from March 2014 to August 2015, 678 a day.
- 93.15 % of them run for up to an hour, 6.82 % for one to twelve hours, 0.03 % for longer.
- Three queues: ``debug`` for short tests, ``parallel`` for up to 6 hours, ``longpar`` for up to 24.
- 64 nodes of 16 cores and 16 GB, half of them with 2 GPUs, half with 2 MICs; no job asks for both.
- Users repeat jobs with nearly the same run time for a while, and then change to other ones
  (section 3.1.2): :mod:`hpcgym.workload.generators.campaigns`.
- Requested times are severe over-estimates, and the queue's default where the user gives none.
- Of what jobs ask for, a bound alone (Galleguillos 2020, Figure 6): at each of 624,564 states of
  the log PCP'20 has less than a tenth of PCP'19's decision variables. By the formulas of sections 3
  and 2.2, with four resources, a job of k units has 1 + 4 k of the one and 1 + 64 min(k, c) of the
  other, if c units fit on an empty node; with GPUs or MICs, 1 + 32 min(k, c). So a job alone keeps
  to a tenth if k is below about 1.6 c: if its units fill their nodes, with a single one. One with
  GPUs or MICs never does; there must be others in the queue then. Or all nodes count for it too:
  section 2.2 also says that "minimum 1 + |N| variables are needed to model a serial job", and so a
  single unit with GPUs has 5 of the one and 65 of the other.

Assumed, since nothing is published of it: run times within the classes, the limit of ``debug`` (1
hour), which jobs go to which queue, how many users there are, how often campaigns repeat and how
arrivals cluster, and the share of default requests. Assumed too is what jobs ask for, and it does
not keep to that bound: at 98 % of the states of ``hpcgym reproduce cp`` the share is a tenth or
more (benchmarks/cp/README.md), so that here more jobs have several units, or GPUs and MICs, than in
the log. ``units=figure-6`` cuts the units of each job to the most with which it keeps to the bound
when it is alone in the queue, by the sentence of section 2.2 for those with GPUs and MICs: of the
log's states some surely had a single job queued. That is still no more than a bound, and the share
of jobs with GPUs and MICs stays assumed. It was added once results were known; the other is the
default, so that a seed keeps its jobs. The numbers of units are chosen so that at the published
number of jobs a day the load of the cores is about a half (with ``figure-6`` an eighth); a campaign
of large jobs moves that of a single month a good deal, so ``load`` sets it where it matters. (Two
months of the log, 76,265 jobs, had nearly twice the mean: ``jobs=76265,days=61``.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hpcgym.errors import WorkloadError
from hpcgym.workload.generators.campaigns import DurationClass, IntArray, Kind, Model, generate
from hpcgym.workload.model import Workload

_JOBS, _DAYS = 372_320, 549  # March 2014 to August 2015, whole months

_HOUR_S = 3600
_UNITS = (
    (1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 16, 32),  # short
    (1, 1, 2, 2, 4, 4, 8, 8, 16),  # medium
    (1, 2, 4),  # long
)

MODEL = Model(
    name="eurora",
    processors=64 * 16,
    nodes=64,
    jobs_per_day=_JOBS / _DAYS,
    classes=(
        DurationClass(0.9315, 1, _HOUR_S, repeats=200, queues=(0, 0, 0, 0, 1, 1, 1, 1, 1, 2)),
        DurationClass(0.0682, _HOUR_S + 1, 12 * _HOUR_S, repeats=30, queues=(1, 1, 1, 2)),
        DurationClass(0.0003, 12 * _HOUR_S + 1, 24 * _HOUR_S, repeats=3, queues=(2,)),
    ),
    kinds=(
        Kind(0.60, (1, 4, 8, 16, 16), (250, 500, 1000, 2000), 16_000, _UNITS),
        Kind(0.25, (1, 2, 8, 16), (250, 500, 1000), 16_000, _UNITS, {"gpu": (1, 2)}),
        Kind(0.15, (1, 2, 8, 16), (250, 500, 1000), 16_000, _UNITS, {"mic": (1, 2)}),
    ),
    queues=(("debug", _HOUR_S), ("parallel", 6 * _HOUR_S), ("longpar", 24 * _HOUR_S)),
    users=150,
    default_requests=0.6,
    named=True,
    note="Eurora-like: fitted to what is published of the log, the rest assumed",
)


def eurora(
    jobs: int | None = None,
    days: float | None = None,
    seed: int = 0,
    load: float | None = None,
    units: str = "assumed",
) -> Workload:
    """Generate a workload like that of Eurora; see the module for what is published of it.

    The same arguments give the same workload.

    Parameters
    ----------
    jobs : number of jobs; by default, as many as come in ``days``.
    days : time of the submissions; by default 30, or as long as ``jobs`` take to come.
    seed : of the random numbers, at least 0.
    load : offered load, sum(cores * run time) / (cores of the machine * time of the submissions).
        The time is stretched or squeezed to reach it. None keeps the published 678 jobs a day.
    units : how many a job has: ``assumed``, or ``figure-6``, no more than with which it keeps to
        the bound of Galleguillos 2020, Figure 6, when alone in the queue: see :func:`most_units`.

    Returns
    -------
    Workload
        With units and, for each, ``core``, ``mem`` [MB], ``gpu`` and ``mic``; queues 1 to 3, named
        in the header; ``user_id`` from 1; ``executable``, one number for each name of a job.

    Raises
    ------
    WorkloadError
        An argument out of range, or all of jobs, days and load.
    """
    if units not in UNITS:
        raise WorkloadError(f"eurora: units must be {' or '.join(UNITS)}, not {units!r}")
    model = MODEL
    if units == "figure-6":
        model = replace(MODEL, most_units=most_units, note=f"{MODEL.note}; units=figure-6")
    return generate(model, jobs, days, seed, load)


#: What the argument ``units`` may be.
UNITS = ("assumed", "figure-6")

#: Of a node of Eurora; half of them have the GPUs, half the MICs.
_NODE = {"core": 16, "mem": 16_000, "gpu": 2, "mic": 2}


def most_units(per_unit: Mapping[str, IntArray]) -> IntArray:
    """Return the most units with which a job alone in the queue is below a tenth in Figure 6.

    The largest k for which 1 + 4 k < (1 + 64 min(k, c)) / 10, where c units fit on an empty node:
    (64 c - 10) // 40, for c <= k. PCP'20 has the one number of decision variables (Galleguillos
    2020, section 3: |Q| + rn |R|), PCP'19 the other (section 2.2).

    Parameters
    ----------
    per_unit : ``core``, ``mem`` [MB], ``gpu`` and ``mic`` of a unit, (n,) each.

    Returns
    -------
    (n,) numbers of units: 1 where a unit fills its node, at most 25.
    """
    held = [
        np.where(per_unit[name] > 0, amount // np.maximum(per_unit[name], 1), _NODE["core"])
        for name, amount in _NODE.items()
    ]
    most: IntArray = (64 * np.min(held, axis=0) - 10) // 40
    return most
