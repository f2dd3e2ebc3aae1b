"""What can be proved of power that nodes have of their own, for :mod:`hpcgym.validation.validate`.

Lengths of jobs at their frequencies, states of nodes, and that the books close.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.validation.schedules import Times, cases

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

_MILLION = 10**6
_RELATIVE_ERROR = 1e-12  # of sums of the same energy
_OF_JOBS = "busy"  # what the states of nodes with jobs begin with


def lengths_at_frequencies(result: Result, length: Times) -> Times:
    """Return how long jobs take at their frequencies: whole seconds, rounded up.

    Parameters
    ----------
    length : (n_jobs,) [s] at the highest frequency.
    """
    if result.frequency is None or result.allocation is None:
        return length
    first, node, _ = result.allocation
    job = np.repeat(np.arange(len(length)), np.diff(first))
    own = result.workload.slowdown
    millionths = np.full(len(length), _MILLION)
    group_of = result.cluster.group_of[node]
    for number, group in enumerate(result.cluster.groups):
        if group.power is None:
            continue
        cells = np.flatnonzero(group_of == number)
        level = np.minimum(result.frequency[job[cells]], group.power.levels - 1)
        factor = group.power.slowdowns_of(own[job[cells]])[np.arange(len(cells)), level]
        np.maximum.at(millionths, job[cells], np.rint(factor * _MILLION).astype(np.int64))
    # as Python's integers: the products may pass 2**63
    pairs = zip(length.tolist(), millionths.tolist(), strict=True)
    return np.array([-(-time * factor // _MILLION) for time, factor in pairs], np.int64)


def check_states(result: Result) -> list[str]:
    """Find jobs on nodes that are not on, and switching that takes another time than it should."""
    states = result.node_states
    if states is None or result.allocation is None:
        return []
    found = _switching_times(result)
    first, node, _ = result.allocation
    job = np.repeat(np.arange(len(result.start)), np.diff(first))
    node = node.astype(np.int64)
    moments = np.unique(np.concatenate((states.end, result.start, result.end)))
    n_times = moments.size
    # the first interval of the node that ends after the job has started
    ends = states.node * n_times + np.searchsorted(moments, states.end)
    starts = node * n_times + np.searchsorted(moments, result.start[job])
    place = np.searchsorted(ends, starts, "right")
    at = np.minimum(place, len(states) - 1)
    there = (place < len(states)) & (states.node[at] == node) if len(states) else place < 0
    wrong = np.zeros(len(job), np.bool_)
    wrong[there] = states.begin[at[there]] < result.end[job[there]]
    names = np.array(result.cluster.node_names, object)
    return found + cases(wrong, "job {1} runs on node {2} while it is not on", job, names[node])


def _switching_times(result: Result) -> list[str]:
    """Compare how long nodes are switched off and on with how long it takes."""
    states, cluster, found = result.node_states, result.cluster, []
    assert states is not None
    names = np.array(cluster.node_names, object)
    last = int(result.end.max(initial=0))
    for code, name in ((1, "shutdown_time_s"), (2, "boot_time_s")):
        times = [getattr(cluster if g.power is None else g.power, name) for g in cluster.groups]
        takes = np.array(times)[cluster.group_of[states.node]]
        length = states.end - states.begin
        # what the end of the schedule cuts off is as it may be
        wrong = (states.state == code) & (length != takes) & (states.end < last)
        text = (
            f"node {{1}} is switched {'off' if code == 1 else 'on'} for {{2}} s instead of {{3}} s"
        )
        found += cases(wrong, text, names[states.node], length, takes)
    return found


def check_books(result: Result) -> list[str]:
    """Compare the energy by state, node and job, and the integral of power over time.

    They must agree to 1 part in 10^12. The charge of a job must be what its nodes draw at its
    level, and on nodes that it shares from the part of its cores to the highest level of all.
    """
    books, found = result.books, _not_alike(result)
    charged = books.by_job()
    least, most = _bounds(result)
    wrong = (charged < least * (1 - _RELATIVE_ERROR)) | (charged > most * (1 + _RELATIVE_ERROR))
    text = "job {} is charged {} J, which is not from {} J to {} J"
    return found + cases(wrong, text, charged, least, most)


def _not_alike(result: Result) -> list[str]:
    """Compare sums of the same energy, and those that are metrics."""
    with np.errstate(divide="ignore", invalid="ignore"):
        books, metrics = result.books, result.metrics  # a run lost as an extract begins is of 0 s
    states = books.by_state
    whole = math.fsum(states.values())
    steps = np.diff(books.time).astype(np.float64)
    busy = math.fsum(joules for name, joules in states.items() if name.startswith(_OF_JOBS))
    pairs = [
        ("all nodes", math.fsum(books.by_node.ravel().tolist()), whole),
        ("all jobs", math.fsum(books.by_job().tolist()), busy),
        ("energy_j", metrics["energy_j"], whole),
        ("energy_busy_j", metrics["energy_busy_j"], busy),
        ("energy_idle_j", metrics["energy_idle_j"], states["idle"]),
        ("energy_off_j", metrics["energy_off_j"], states["off"]),
        (
            "energy_switching_j",
            metrics["energy_switching_j"],
            states["switching_off"] + states["switching_on"],
        ),
    ]
    if result.idle_seconds is None:
        for state, watts in books.watts().items():
            integral = math.fsum((watts * steps).tolist())
            pairs.append((f"the integral of power, {state}", integral, states[state]))
    return [
        f"{name}: {value} J instead of {expected} J"
        for name, value, expected in pairs
        if not abs(value - expected) <= _RELATIVE_ERROR * whole
    ]


def _bounds(result: Result) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the least and the most that each job may be charged, (n_jobs,) [J]."""
    n, cluster = len(result.start), result.cluster
    job, node, cores = _cells(result)
    group = cluster.group_of[node]
    low, high = np.zeros(len(job)), np.zeros(len(job))
    measured = _measured(result)
    for number, one in enumerate(cluster.groups or (None,)):
        here = np.flatnonzero(group == number)
        power = None if one is None else one.power
        has = cluster.processors if one is None else one.resources["core"]
        watts = np.array([has * cluster.busy_power_w] if power is None else power.busy_levels_w)
        top = len(watts) - 1
        level = np.full(len(here), top)
        if result.frequency is not None:
            level = np.minimum(result.frequency[job[here]], top)
        part = cores[here] / has
        low[here] = watts[level] * part
        shared = (part < 1) & (power is not None)
        high[here] = np.where(shared, watts[top], low[here])
        own = measured[job[here]]
        scale = np.divide(watts[level], watts[top], np.ones(len(here)), where=watts[top] > 0)
        # measured powers count in steps
        steps = np.rint(own * scale * 2.0**20) / 2.0**20
        low[here] = np.where(own < 0, low[here], cores[here] * steps)
        high[here] = np.where(own < 0, high[here], cores[here] * steps)
    # between the times themselves, which are rounded where jobs share nodes
    run = np.where(result.start < 0, 0, result.end - result.start)
    least, most = (np.bincount(job, watts * run[job], n) for watts in (low, high))
    return np.asarray(least, np.float64), np.asarray(most, np.float64)


def _measured(result: Result) -> NDArray[np.float64]:
    """Return the measured powers of jobs, (n_jobs,) [W], -1 where unknown."""
    return np.asarray(result.workload.power_w, np.float64)


def _cells(result: Result) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return job, node and cores of what jobs have had of nodes."""
    workload, n = result.workload, len(result.start)
    if result.allocation is None:
        return np.arange(n), np.zeros(n, np.int64), workload.requested_processors
    first, node, units = result.allocation
    job = np.repeat(np.arange(n), np.diff(first))
    if workload.units is None:
        return job, node, units
    return job, node, units * workload.per_unit["core"][job]
