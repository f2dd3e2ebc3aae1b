"""Metrics of groups of the jobs of a schedule: by class, size, or what logs name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import check_choice
from hpcgym.names import NAMED, beside_memory
from hpcgym.schedule.metrics import (
    HAVE,
    LENGTH_CLASSES,
    SIZE_CLASSES,
    SMALL,
    Facts,
    Metric,
    in_class,
    known_metrics,
)
from hpcgym.schedule.schedule import Schedule
from hpcgym.units import duration
from hpcgym.workload.amounts import units_and_demands
from hpcgym.workload.io.swf_header import called, names_of
from hpcgym.workload.model import Workload

#: What jobs may be grouped by: "class", of :data:`hpcgym.schedule.metrics.LENGTH_CLASSES`, "size",
#: of :data:`hpcgym.schedule.metrics.SIZE_CLASSES`, "resource", what they ask for beside processors
#: and memory, or what logs name.
GROUPED_BY = ("class", "size", "resource", *NAMED)
#: The group of jobs that ask for processors and memory alone.
_PROCESSORS = "processors"


def group_metrics() -> dict[str, Metric]:
    """Return the metrics of groups of jobs, by name: those that depend on jobs alone."""
    return {name: metric for name, metric in known_metrics().items() if metric.of_jobs}


def metrics_by(
    result: Schedule, by: str, metrics: Collection[str] = ()
) -> dict[str, dict[str, float | int]]:
    """Return metrics of groups of the jobs that a schedule started.

    Parameters
    ----------
    result : the schedule.
    by : one of :data:`GROUPED_BY`.
    metrics : names; those that depend on jobs alone are returned. Without any: all of them.

    Returns
    -------
    group -> ``jobs``, their number, and the metrics, by the formulas of
    :func:`hpcgym.schedule.metrics.compute_metrics`. All classes and sizes are there, of those
    without jobs all metrics but ``jobs`` are nan; resources such as "gpu", of several "gpu + nic",
    "processors" of jobs that ask for no more, as far as they have jobs; of users, queues and the
    like those with jobs, by number, which stands behind a name that several have; jobs without one
    are "unknown queue".

    Raises
    ------
    HpcgymError : another ``by``.
    """
    check_choice("by", by, GROUPED_BY)
    whole = Facts(result)
    chosen = {
        name: metric.formula
        for name, metric in group_metrics().items()
        if metric.formula is not None
        and (name == "jobs" or not metrics or name in metrics)
        and HAVE[metric.of](whole)
    }
    by_group = {}
    for group, jobs in groups_of(result, by).items():
        facts = Facts(result, jobs)
        by_group[group] = {
            name: formula(facts) if facts.n or name == "jobs" else np.nan
            for name, formula in chosen.items()
        }
    return by_group


def classes_in_words(by: str) -> str:
    """Return the classes of jobs by run time, or by "size", in words.

    >>> classes_in_words("class")
    'classes of jobs by run time: short, below 10 min; medium, below 2 h; long, from 2 h on'
    """
    if by == "size":
        return f"small: up to 1/{SMALL} of the machine; large: more"
    *below, last = LENGTH_CLASSES
    bounds = [f"{name}, below {duration(LENGTH_CLASSES[name][1])}" for name in below]
    bounds.append(f"{last}, from {duration(LENGTH_CLASSES[last][0])} on")
    return f"classes of jobs by run time: {'; '.join(bounds)}"


def groups_of(result: Schedule, by: str) -> dict[str, NDArray[np.bool_]]:
    """Return the name of each group of :data:`GROUPED_BY`, and which jobs are of it, (n_jobs,)."""
    counted, workload = result.counted, result.workload
    if by == "class":
        return {name: counted & in_class(result.run_time, name) for name in LENGTH_CLASSES}
    if by == "size":
        large = workload.requested_processors * SMALL > result.cluster.processors
        return dict(zip(SIZE_CLASSES, (counted & ~large, counted & large), strict=True))
    if by == "resource":
        sets, of_job = asked_resources(workload)
        groups = {name: counted & (of_job == number) for number, name in sets.items()}
        return {name: jobs for name, jobs in groups.items() if jobs.any()}
    names, of_job = names_of(workload, NAMED[by]), workload.columns[NAMED[by]]
    numbers = np.unique(of_job[counted]).tolist()
    texts = [called(names, by, number) for number in numbers]
    times = Counter(texts)  # two may have one name
    return {
        text if times[text] == 1 else f"{text} ({number})": counted & (of_job == number)
        for text, number in zip(texts, numbers, strict=True)
    }


def asked_resources(workload: Workload) -> tuple[dict[int, str], NDArray[np.int64]]:
    """Return the sets of resources beside processors and memory by name, and each job's, (n_jobs,).

    >>> from hpcgym import load_workload
    >>> asked_resources(load_workload("lublin:jobs=3,processors=8"))
    ({0: 'processors'}, array([0, 0, 0]))
    """
    asked = units_and_demands(workload)[1]
    resources = [name for name in beside_memory(asked) if asked[name].any()]
    of_job = np.zeros(len(workload), np.int64)
    for place, resource in enumerate(resources):
        of_job |= (asked[resource] > 0).astype(np.int64) << place
    names = {
        number: " + ".join(name for place, name in enumerate(resources) if number >> place & 1)
        for number in np.unique(of_job).tolist()
    }
    return {number: name or _PROCESSORS for number, name in names.items()}, of_job
