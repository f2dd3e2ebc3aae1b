"""What can be proved of schedules under limits, for :mod:`hpcgym.validation.validate`.

Power and energy are those of the books; nothing of the simulator is used.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.validation.schedules import Mask, Timeline, Times, cases
from hpcgym.workload.warm_start import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result

_RELATIVE_ERROR = 1e-12  # of sums of powers
_MIX_FROM = 0.74  # of the highest frequency


def caps_of(result: Result) -> list[Any]:
    """Return the caps that were to be kept."""
    return [limit for limit in result.limits or () if hasattr(limit, "watts")]


def budgets_of(result: Result) -> list[Any]:
    """Return the budgets that were to be kept."""
    return [limit for limit in result.limits or () if hasattr(limit, "joules")]


def killed_by_caps(result: Result, length: Times) -> Mask:
    """Return which jobs are shorter than ``length`` [s] and end when a cap kills, (n_jobs,)."""
    kills = [max(cap.start, cap.announced or 0) for cap in caps_of(result) if cap.kills]
    return (result.run_time < length) & (result.run_time > 0) & np.isin(result.end, kills)


def check_nodes_alone(result: Result) -> list[str]:
    """Find jobs that share a node with another one."""
    if result.allocation is None:
        return ["jobs have no nodes"]
    first, node, _ = result.allocation
    job = np.repeat(np.arange(len(result.start)), np.diff(first))
    order = np.lexsort((result.start[job], node))
    job, node = job[order], node[order]
    wrong = (np.diff(node) == 0) & (result.start[job[1:]] < result.end[job[:-1]])
    return cases(wrong, "job {1} runs on a node of job {2}", job[1:], job[:-1])


def check_starts(result: Result, line: Timeline) -> list[str]:
    """Find jobs that start when nothing happens: no event, no limit and no node that is ready.

    Nothing is said where controls are set from outside, at times that are not kept.
    """
    if result.outside:
        return []
    happens = np.isin(result.start, happening(result, line))
    return cases(
        decided(result.workload) & ~happens,
        "job {} starts at {} s, when nothing happens",
        result.start,
    )


def happening(result: Result, line: Timeline) -> Times:
    """Return the times at which something happens under limits [s]."""
    times = [line.time[line.submission | line.termination]]
    if result.workload.initial is not None:
        times.append(np.array([result.workload.initial.begin]))
    for cap in caps_of(result):
        times.append(np.array([cap.start, cap.end or cap.start, cap.announced or 0]))
    for budget in budgets_of(result):
        times.append(np.arange(budget.start, budget.end, budget.period))
        times.append(np.array([budget.end]))
    if result.node_states is not None:
        times += [result.node_states.begin, result.node_states.end]
    after = result.cluster.shutdown_after_s
    if after is not None:  # a node was to be switched off then
        times += [moments + after for moments in [result.workload.submit_time[:1], *times]]
    power = result.cluster.groups[0].power
    if power is not None and result.scheduler.power in ("shut", "mix"):  # nodes begin to switch off
        times += [np.array([cap.start - power.shutdown_time_s]) for cap in caps_of(result)]
    return np.concatenate(times)


def check_levels(result: Result) -> list[str]:
    """Find jobs at levels that the rule does not use; who steers from outside may use all."""
    if result.frequency is None:
        return []
    rule, power = result.scheduler.power, result.cluster.groups[0].power
    assert power is not None
    lowest = power.levels - 1
    if rule == "dvfs" or result.outside:
        lowest = 0
    elif rule == "mix" and power.levels > 1:
        ghz = np.array(power.frequency_ghz)
        lowest = int((ghz < _MIX_FROM * ghz[-1]).sum())
    wrong = (result.frequency < lowest) | (result.frequency >= power.levels)
    text = f"job {{}} runs at level {{}}, which {rule!r} does not use"
    return cases(wrong, text, result.frequency)


def check_caps(result: Result) -> list[str]:
    """Find times at which the power is above a cap although jobs run that were started under it.

    A job is started under a cap if it is given its nodes once that is announced. Jobs that run as
    an extract begins are not. So a cap is never exceeded once it is in force: nothing but starts
    raises the power while one holds.
    """
    found: list[str] = []
    caps = caps_of(result)
    if not caps or not len(result.start):
        return found
    times, power = _power(result)
    asked = _given_nodes(result)
    for cap in caps:
        known = -1 if cap.announced is None else cap.announced
        end = times[-1] if cap.end is None else cap.end
        above = power > cap.watts * (1 + _RELATIVE_ERROR)
        above &= (times[:-1] < end) & (times[1:] > max(cap.start, known))
        under = (asked >= known) & decided(result.workload)
        begin = np.searchsorted(times, result.start[under])
        last = np.searchsorted(times, result.end[under])
        change = np.zeros(len(times), np.int64)
        np.add.at(change, begin, 1)
        np.add.at(change, last, -1)
        runs = np.cumsum(change)[:-1] > 0
        text = f"the power is {{1}} W from {{2}} s on, above the cap of {cap.watts:g} W"
        found += cases(above & runs, text, power, times[:-1])
        found += _raised(result, cap, times, power)
    return found


def _raised(result: Result, cap: Any, times: Times, power: NDArray[np.float64]) -> list[str]:
    """Find times at which the power is above a cap again, after it was below.

    That may be for jobs that waited for their nodes when it was announced, and where a node draws
    more when it begins to switch off, or when it is off at last: neither is a start.
    """
    of_node = result.cluster.groups[0].power
    if of_node is None or of_node.shutdown_w is None:
        return []
    if not of_node.off_w <= of_node.shutdown_w <= of_node.idle_w:
        return []
    end = times[-1] if cap.end is None else cap.end
    begin = max(cap.start, cap.announced or 0)
    if cap.announced is not None:
        before = _given_nodes(result) < cap.announced
        waited = before & (result.start > cap.announced)
        begin = max(begin, int(result.start[waited].max(initial=0)))
    inside = (times[:-1] < end) & (times[:-1] >= begin)
    above = power > cap.watts * (1 + _RELATIVE_ERROR)
    held = np.cumsum(inside & ~above) > 0
    text = f"the power is {{1}} W at {{2}} s, above the cap of {cap.watts:g} W once more"
    return cases(inside & above & held, text, power, times[:-1])


def check_budgets(result: Result) -> list[str]:
    """Find budgets that are exceeded although jobs have run in their periods.

    The machine alone may exceed one, idle, or with the jobs that run as an extract begins; then no
    job starts that runs into its period.
    """
    found: list[str] = []
    budgets = budgets_of(result)
    if not budgets or not len(result.start):
        return found
    times, power = _power(result)
    for budget in budgets:
        seconds = np.minimum(times[1:], budget.end) - np.maximum(times[:-1], budget.start)
        used = math.fsum((power * np.maximum(seconds, 0)).tolist())
        ran = (result.start < budget.end) & (result.end > budget.start)
        ran &= decided(result.workload)
        if used > budget.joules * (1 + _RELATIVE_ERROR) and ran.any():
            found.append(
                f"{used:.12g} J are used from {budget.start} s to {budget.end} s, of a budget of"
                f" {budget.joules:.12g} J"
            )
    return found


def _power(result: Result) -> tuple[Times, NDArray[np.float64]]:
    """Return times and the power of the machine from each to the next [W]."""
    books = result.books
    return books.time, np.sum(list(books.watts().values()), axis=0)


def _given_nodes(result: Result) -> Times:
    """Return when each job was given its nodes, at the earliest, (n_jobs,) [s].

    A job waits for its nodes only if one of them has just been switched when it starts, and at most
    as long as it takes to switch that off and on.
    """
    power, states = result.cluster.groups[0].power, result.node_states
    if power is None or states is None or result.allocation is None:
        return result.start
    first, node, _ = result.allocation
    job = np.repeat(np.arange(len(result.start)), np.diff(first))
    moments, place = np.unique(np.concatenate((states.end, result.start)), return_inverse=True)
    ends, starts = place[: len(states)], place[len(states) :]
    just_on = np.isin(node * moments.size + starts[job], states.node * moments.size + ends)
    waited = np.zeros(len(result.start), np.bool_)
    waited[job[just_on]] = True
    asked: Times = result.start - waited * (power.shutdown_time_s + power.boot_time_s)
    return asked
