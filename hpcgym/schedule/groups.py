"""Metrics of groups of the jobs of a schedule: of classes by run time, or of users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import check_choice
from hpcgym.naming import NAMED, duration
from hpcgym.schedule.metrics import HAVE, LENGTH_CLASSES, Facts, Metric, in_class, known_metrics
from hpcgym.workload.names import called, names_of

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

#: What jobs may be grouped by: "class", of :data:`hpcgym.schedule.metrics.LENGTH_CLASSES`, or user.
GROUPED_BY = ("class", "user")


def group_metrics() -> dict[str, Metric]:
    """Return the metrics that groups of jobs have, by name: those that are of jobs alone."""
    return {name: metric for name, metric in known_metrics().items() if metric.of_jobs}


def metrics_by(
    result: Result, by: str, metrics: Collection[str] = ()
) -> dict[str, dict[str, float | int]]:
    """Return metrics of groups of the jobs that a schedule started.

    Parameters
    ----------
    result : the schedule.
    by : one of :data:`GROUPED_BY`.
    metrics : names; those that are of jobs alone are told. Without any: all of them.

    Returns
    -------
    group -> ``jobs``, their number, and the metrics, by the formulas of
    :func:`hpcgym.schedule.metrics.compute_metrics`. All classes are there, of those without jobs
    all metrics but ``jobs`` are nan; of users those with jobs, by number, which stands behind a
    name that several have.

    Raises
    ------
    HpcgymError : another ``by``.
    """
    check_choice("by", by, GROUPED_BY)
    whole = Facts(result)
    chosen = [
        metric
        for name, metric in group_metrics().items()
        if (name == "jobs" or not metrics or name in metrics) and HAVE[metric.of](whole)
    ]
    return {name: _of_group(result, jobs, chosen) for name, jobs in _groups(result, by)}


def classes_in_words() -> str:
    """Return what the classes of jobs are.

    >>> classes_in_words()
    'classes of jobs by run time: short, below 10 min; medium, below 2 h; long, from 2 h on'
    """
    *below, last = LENGTH_CLASSES
    bounds = [f"{name}, below {duration(LENGTH_CLASSES[name][1])}" for name in below]
    bounds.append(f"{last}, from {duration(LENGTH_CLASSES[last][0])} on")
    return f"classes of jobs by run time: {'; '.join(bounds)}"


def _groups(result: Result, by: str) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Yield the name of each group, and which jobs are of it, (n_jobs,) bool."""
    decided, workload = result.decided, result.workload
    if by == "class":
        for name in LENGTH_CLASSES:
            yield name, decided & in_class(result.run_time, name)
        return
    column = NAMED[by]
    names, users = names_of(workload, column), workload.user_id
    numbers = np.unique(users[decided]).tolist()
    texts = [called(names, by, number) for number in numbers]
    times = Counter(texts)  # two may have one name
    for text, number in zip(texts, numbers, strict=True):
        yield text if times[text] == 1 else f"{text} ({number})", decided & (users == number)


def _of_group(
    result: Result, jobs: NDArray[np.bool_], metrics: Collection[Metric]
) -> dict[str, float | int]:
    """Return the metrics of a group."""
    facts = Facts(result, jobs)
    return {
        metric.name: metric.formula(facts) if facts.n or metric.name == "jobs" else np.nan
        for metric in metrics
        if metric.formula is not None
    }
