"""What holds of every schedule of the slow simulator of shared nodes, in exact arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from drawing import given, settings
from shared_strategies import STATIC_ORDERS, Case, cases, with_files

from hpcgym.reference.jobs import Job as PoolJob
from hpcgym.reference.pool import simulate_pool
from hpcgym.reference.shared import COMPACT, PART, FileSystem, Job

RANDOM = settings(max_examples=60)


def beside(job: Job, others: list[Job]) -> list[Job]:
    own = {node for node, _ in job.nodes}
    return [o for o in others if o is not job and own & {node for node, _ in o.nodes}]


def rate_at(job: Job, jobs: list[Job], time: int, case: Case) -> Fraction:
    """The rate of a job from a tick on, by who has a part of its nodes then, and who runs."""
    there = [other for other in beside(job, jobs) if other.start <= time < other.end]
    rates = [Fraction(case.true.pairs[job.code][other.code]) for other in there]
    rate = min(rates, default=Fraction(case.true.alone[job.code]))
    rate = Fraction(1) if job.shape == COMPACT else rate
    return congested(job, rate, jobs, time, case.files)


def congested(
    job: Job, rate: Fraction, jobs: list[Job], time: int, files: FileSystem | None
) -> Fraction:
    """What becomes of a job's rate by all that is read and written from a tick on."""
    if files is None:
        return rate
    there = [other for other in jobs if other.start <= time < other.end]
    asked = sum(other.processors * files.demand[other.code] for other in there)
    times_as_long = max(Fraction(asked, files.bandwidth), Fraction(1))
    return 1 / (1 / rate + Fraction(files.share[job.code]) * (times_as_long - 1))


@RANDOM
@given(cases() | with_files(cases()))
def test_work_is_conserved(case: Case) -> None:
    jobs = case.simulate()
    for job in jobs:
        times = {time for other in jobs for time in (other.start, other.end)}
        cuts = sorted(time for time in times if job.start <= time <= job.end)
        rates = [rate_at(job, jobs, time, case) for time in cuts[:-1]]
        done = sum(
            rate * (after - time) for rate, (time, after) in zip(rates, pairwise(cuts), strict=True)
        )
        work = min(job.run, job.requested) * case.ticks
        error = 2 * Fraction(len(cuts)) * work / 10**15  # of double precision
        assert -error <= done - work <= rates[-1] + error


@RANDOM
@given(with_files(cases()))
def test_no_more_is_had_than_the_bandwidth(case: Case) -> None:
    """The bytes of a second's work are had at the job's rate.

    Unless a job takes less time than it alone reads and writes: speedups that cannot be.
    """
    jobs, files = case.simulate(), case.files
    assert files is not None
    for time in {job.start for job in jobs}:
        there = [job for job in jobs if job.start <= time < job.end]
        had, possible = Fraction(0), True
        for job in there:
            share = Fraction(files.share[job.code])
            had += job.processors * files.demand[job.code] * share * rate_at(job, jobs, time, case)
            without = rate_at(job, jobs, time, replace(case, files=None))
            possible = possible and share * without <= 1
        assert had <= files.bandwidth or not possible


@RANDOM
@given(cases())
def test_nodes_are_not_over_used(case: Case) -> None:
    jobs = case.simulate()
    for job in jobs:
        there = [job, *(other for other in jobs if other.start <= job.start < other.end)]
        for node, parts in job.nodes:
            others = {other.number for other in there if node in dict(other.nodes)} - {job.number}
            assert parts == (1 if job.shape == PART else case.rules.parts)
            assert len(others) + parts <= case.rules.parts
        cores = case.machine.sockets * case.machine.cores
        if job.shape != COMPACT:
            cores = case.machine.part(case.rules.parts if job.shape == PART else 2)
        assert len(job.nodes) == math.ceil(job.processors / cores)


@RANDOM
@given(cases(backfill="easy", order="fcfs", knows=True))
def test_promises_are_kept(case: Case) -> None:
    """But for a tick of rounding each time that something happens."""
    jobs = case.simulate()
    happens = {time for job in jobs for time in (job.submit * case.ticks, job.end)}
    for job in jobs:
        if job.promised != -1:
            slack = sum(job.submit * case.ticks <= time <= job.start for time in happens)
            assert job.start <= job.promised + slack


@RANDOM
@given(cases() | with_files(cases()))
def test_jobs_wait_for_events_only(case: Case) -> None:
    jobs = case.simulate()
    happens = {time for job in jobs for time in (job.submit * case.ticks, job.end)}
    for job in jobs:
        assert job.submit * case.ticks <= job.start < job.end
        assert job.start in happens


@RANDOM
@given(cases(allocation=COMPACT, order="fcfs"))
def test_compact_is_easy_with_nodes_for_processors(case: Case) -> None:
    """Schedules of jobs alone on their nodes are those of the reference's pool, without nodes."""
    agree_with_a_pool(case)


@RANDOM
@given(cases(allocation=COMPACT))
def test_compact_orders_are_those_of_a_pool(case: Case) -> None:
    if case.rules.order not in {"sqf", "lqf", "saf"}:  # they look at processors, not nodes
        agree_with_a_pool(case)


def agree_with_a_pool(case: Case) -> None:
    if case.rules.backfill == "fill" or case.rules.order not in STATIC_ORDERS:
        return
    shared = case.simulate()
    rules = case.rules
    jobs = [PoolJob(job.submit, job.needed, job.run, job.requested) for job in shared]
    pool = simulate_pool(
        jobs,
        case.machine.nodes,
        policy=rules.order,
        backfill=rules.backfill,
        backfill_order=rules.order if rules.backfill_order == "policy" else rules.backfill_order,
        estimate=rules.estimate,
    )
    assert [job.start for job in shared] == [job.start * case.ticks for job in pool]
    assert [job.backfilled for job in shared] == [job.backfilled for job in pool]
    promised = [-1 if job.promised == -1 else job.promised // case.ticks for job in shared]
    assert promised == [job.reserved_start for job in pool]
