"""Proofs of books: energy, limits, and dispatchers whose calls take time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.reference.energy import Energies, energies_of
from hpcgym.schedule.schedule import kept
from hpcgym.validation.passes import owner_of
from hpcgym.validation.schedules import Mask, Timeline, Times, cases, over_time
from hpcgym.workload.extracts import decided

if TYPE_CHECKING:
    from hpcgym.schedule.result import Result
    from hpcgym.scheduler.dispatchers.asking import Dispatching


# --- What can be proved of power that nodes have of their own -------------------------------------
#
# Lengths of jobs at their frequencies, states of nodes, and that the books close.

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
    node, job = result.allocation.node, owner_of(result.allocation.first)
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
    violations = _switching_times(result)
    node = result.allocation.node.astype(np.int64)
    job = owner_of(result.allocation.first)
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
    return violations + cases(
        wrong, "job {1} runs on node {2} while it is not on", job, names[node]
    )


def _switching_times(result: Result) -> list[str]:
    """Compare how long nodes are switched off and on with how long it takes."""
    states, cluster, violations = result.node_states, result.cluster, []
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
        violations += cases(wrong, text, names[states.node], length, takes)
    return violations


@kept
def energies(result: Result) -> Energies:
    """Return the energies of a schedule by the reference."""
    return energies_of(result.runs.from_begin)


def check_books(result: Result) -> list[str]:
    """Compare the energy by state, node and job, the power over time, and metrics of energy.

    They must be those of :mod:`hpcgym.reference.energy`, to 1 part in 10^12 of the whole, and what
    a job is charged to as much of that.
    """
    books, right = result.books, energies(result)
    with np.errstate(divide="ignore", invalid="ignore"):
        metrics = result.metrics  # a run lost as an extract begins is of 0 s
    right_states = right.by_state()
    states = {name: float(right_states.get(name, 0)) for name in books.states}
    whole = float(sum(right_states.values()))
    busy = math.fsum(value for name, value in states.items() if name.startswith(_OF_JOBS))
    switching = states["switching_off"] + states["switching_on"]
    charged, expected = books.by_job(), _floats(right.by_job(len(result.start)))
    pairs = [
        *((f"energy, {name}", books.by_state[name], joules) for name, joules in states.items()),
        ("all jobs", math.fsum(charged.tolist()), busy),
        ("energy_j", metrics["energy_j"], whole),
        ("energy_busy_j", metrics["energy_busy_j"], busy),
        ("energy_idle_j", metrics["energy_idle_j"], states["idle"]),
        ("energy_off_j", metrics["energy_off_j"], states["off"]),
        ("energy_switching_j", metrics["energy_switching_j"], switching),
    ]
    if result.idle_seconds is None:
        steps = np.diff(books.time).astype(np.float64)
        integrals = {name: (watts * steps).tolist() for name, watts in books.watts().items()}
        pairs += [
            (f"the integral of power, {name}", math.fsum(parts), states[name])
            for name, parts in integrals.items()
        ]
    violations = [
        f"{name}: {value} J instead of {joules} J"
        for name, value, joules in pairs
        if not abs(value - joules) <= _RELATIVE_ERROR * whole
    ]
    nodes = books.by_node.sum(axis=1)
    of_nodes = _floats(right.by_node(len(nodes)))
    wrong = ~(np.abs(nodes - of_nodes) <= _RELATIVE_ERROR * whole)
    violations += cases(wrong, "node {} draws {} J instead of {} J", nodes, of_nodes)
    wrong = ~(np.abs(charged - expected) <= _RELATIVE_ERROR * expected)
    violations += cases(wrong, "job {} is charged {} J instead of {} J", charged, expected)
    if result.idle_seconds is None:
        times, power = power_over_time(right)
        every = np.union1d(times, books.time)  # what either has as a change
        ours = np.concatenate(([0.0], books.total_w, [0.0]))
        ours = ours[np.searchsorted(books.time, every, "right")]
        of_time = np.append(0.0, power)[np.searchsorted(times, every, "right")]
        wrong = ~(np.abs(ours - of_time) <= _RELATIVE_ERROR * power.max(initial=0))
        violations += cases(
            wrong, "the power is {1} W from {3} s on instead of {2} W", ours, of_time, every
        )
    return violations


def _floats(exact: Iterable[Fraction]) -> NDArray[np.float64]:
    return np.array([float(value) for value in exact], np.float64)


def power_over_time(energies: Energies) -> tuple[Times, NDArray[np.float64]]:
    """Return when the power of the machine changes [s], and what it is from then on [W]."""
    power = energies.watts()
    return np.array(list(power)), _floats(power.values())


# --- What can be proved of schedules under limits -------------------------------------------------
#
# Power and energy are those of the reference; nothing of the simulator is used.

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
    node, job = result.allocation.node, owner_of(result.allocation.first)
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
    """Find jobs at levels that the rule does not use; control from outside may use all levels."""
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
    violations: list[str] = []
    caps = caps_of(result)
    if not caps or not len(result.start):
        return violations
    times, power = _power(result)
    if not times.size:  # of an extract whose jobs are killed as it begins
        return violations
    asked = _given_nodes(result)
    for cap in caps:
        known = -1 if cap.announced is None else cap.announced
        end = times[-1] if cap.end is None else cap.end
        above = power > cap.watts * (1 + _RELATIVE_ERROR)
        above &= (times[:-1] < end) & (times[1:] > max(cap.start, known))
        under = (asked >= known) & decided(result.workload)
        begin, last = (np.searchsorted(times, at[under]) for at in (result.start, result.end))
        runs = over_time(len(times) - 1, begin, last) > 0
        text = f"the power is {{1}} W from {{2}} s on, above the cap of {cap.watts:g} W"
        violations += cases(above & runs, text, power, times[:-1])
        violations += _raised(result, cap, times, power)
    return violations


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
    violations: list[str] = []
    budgets = budgets_of(result)
    if not budgets or not len(result.start):
        return violations
    times, power = _power(result)
    for budget in budgets:
        seconds = np.minimum(times[1:], budget.end) - np.maximum(times[:-1], budget.start)
        used = math.fsum((power * np.maximum(seconds, 0)).tolist())
        ran = (result.start < budget.end) & (result.end > budget.start)
        ran &= decided(result.workload)
        if used > budget.joules * (1 + _RELATIVE_ERROR) and ran.any():
            violations.append(
                f"{used:.12g} J are used from {budget.start} s to {budget.end} s, of a budget of"
                f" {budget.joules:.12g} J"
            )
    return violations


def _power(result: Result) -> tuple[Times, NDArray[np.float64]]:
    """Return times and the power of the machine from each to the next [W]."""
    times, power = power_over_time(energies(result))
    return times, power[:-1]


def _given_nodes(result: Result) -> Times:
    """Return when each job was given its nodes, at the earliest, (n_jobs,) [s].

    A job waits for its nodes only if one of them has just been switched when it starts, and at most
    as long as it takes to switch that off and on.
    """
    power, states = result.cluster.groups[0].power, result.node_states
    if power is None or states is None or result.allocation is None:
        return result.start
    node, job = result.allocation.node, owner_of(result.allocation.first)
    moments, place = np.unique(np.concatenate((states.end, result.start)), return_inverse=True)
    ends, starts = place[: len(states)], place[len(states) :]
    just_on = np.isin(node * moments.size + starts[job], states.node * moments.size + ends)
    waited = np.zeros(len(result.start), np.bool_)
    waited[job[just_on]] = True
    asked: Times = result.start - waited * (power.shutdown_time_s + power.boot_time_s)
    return asked


# --- What is proved of schedules whose dispatcher takes time --------------------------------------


def check_call_numbers(result: Result) -> list[str]:
    """Find jobs that start by a call that there is not, where a dispatcher takes time."""
    dispatching = result.dispatching
    if dispatching is None:
        return []
    n_jobs, n_calls = len(result.workload), len(dispatching.time)
    if dispatching.call.shape != (n_jobs,) or dispatching.seconds.shape != (n_calls,):
        return [f"the calls of {n_jobs} jobs, and the seconds of {n_calls} calls, do not match"]
    placed = (dispatching.call >= 0) & (dispatching.call < n_calls)
    return cases(
        np.where(decided(result.workload), ~placed, dispatching.call != -1),
        f"job {{}} starts by call {{}} of {n_calls}",
        dispatching.call,
    )


def check_calls(result: Result, line: Timeline, delays: tuple[int, int]) -> list[str]:
    """Find calls of a dispatcher at wrong times, and jobs that do not start by their call.

    ``delays`` : of jobs that wait for processors to be switched on, see
    :func:`hpcgym.validation.schedules.delays_s`.
    """
    dispatching = result.dispatching
    assert dispatching is not None
    return [
        *_check_times(dispatching, line.time[line.submission | line.termination]),
        *_check_seconds(result, dispatching),
        *_check_starts(result, dispatching, delays),
    ]


def _check_times(calls: Dispatching, events: Times) -> list[str]:
    """Find calls while another is thought about, and such that nothing has led to."""
    answered = calls.time + calls.seconds
    early = np.append(False, calls.time[1:] < answered[:-1])
    # the first event after the call before, which is thought about while it happens
    after = np.searchsorted(events, calls.time[:-1], "right")
    next_event = np.append(events, np.iinfo(np.int64).max)[after]
    meanwhile = np.append(False, (calls.time[1:] == answered[:-1]) & (next_event <= calls.time[1:]))
    return [
        *cases(early, "call {} is at {} s, before the answer to the one before", calls.time),
        *cases(
            ~(np.isin(calls.time, events) | meanwhile),
            "call {} is at {} s, when no job is submitted or ends, nor did while it was thinking",
            calls.time,
        ),
    ]


def _check_seconds(result: Result, calls: Dispatching) -> list[str]:
    """Compare how long calls take with a number of seconds, if the rule is one."""
    rule, text = result.scheduler.dispatch_time, "call {} takes {} s"
    if isinstance(rule, int | float):
        seconds = math.ceil(rule - 1e-6)
        return cases(calls.seconds != seconds, f"{text} instead of {seconds} s", calls.seconds)
    return cases(calls.seconds < 0, text, calls.seconds)


def _check_starts(result: Result, calls: Dispatching, delays: tuple[int, int]) -> list[str]:
    """Find jobs that were not there when the dispatcher was asked, or start at another time."""
    ours, submit = decided(result.workload), result.workload.submit_time
    answered = calls.decided + calls.late
    waits = result.start - answered
    by_answer = (waits == 0) | ((waits >= delays[0]) & (waits <= delays[1]))
    return [
        *cases(
            ours & (submit > calls.decided),
            "job {} starts by a call at {} s, before its submission at {} s",
            calls.decided,
            submit,
        ),
        *cases(
            ours & ~by_answer,
            "job {} starts at {} s instead of {} s, when the answer is there",
            result.start,
            answered,
        ),
    ]
