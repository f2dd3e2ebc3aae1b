"""Replays: the jobs on a private Slurm, and how its schedule differs from the simulated one."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.drive.driving import Driver, order_rules
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.machine import Cluster, Partition, find_cluster
from hpcgym.machine.partitions import hosts
from hpcgym.machine.slurm import SlurmConf
from hpcgym.machine.slurm.lines import files_of
from hpcgym.names import CORE
from hpcgym.replay.accounts import AccountLimits, limits_of
from hpcgym.replay.configuration import (
    PARTITION,
    asks_of,
    counts_size,
    has_priorities,
    is_driven,
    licences_of,
    needs_accounts,
    nodes_of,
    scheduling_of,
    settings_of,
)
from hpcgym.replay.private import Closed, PrivateSlurm, Record, private_slurm
from hpcgym.schedule.result import Result
from hpcgym.schedule.runs import Allocation
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.restrictions import Quota, are_budgets
from hpcgym.scheduler.rules import Scheduler
from hpcgym.scheduler.slurm_conf import SlurmRules, keeps_budget, rules_of_slurm
from hpcgym.scheduler.slurm_qos import is_over
from hpcgym.simulation.restricted import nodes_in
from hpcgym.simulation.run import simulate
from hpcgym.units import DAY_S, MINUTE_S
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload import Workload
from hpcgym.workload.amounts import amount_called
from hpcgym.workload.columns import MISSING
from hpcgym.workload.io.swf_header import partitions_of
from hpcgym.workload.needs import demands_of

if TYPE_CHECKING:
    import pandas as pd


P = ParamSpec("P")
T = TypeVar("T")

# --- A workload replayed on an unmodified Slurm ---------------------------------------------------

#: So much longer or shorter may a job run than it should [s]: on a busy machine one wakes late.
_OFF_S = 2
_OFF = "repaired: run time a second or two more or less, as Slurm had it"
_ROUNDED = "repaired: requested time rounded up to whole minutes, as Slurm has it"


#: When a replay is watched: after a submission, and so many seconds later, once Slurm has made a
#: plan; and each half hour.
MOMENTS = ("submitted", "later", "regular")
LATER_S, REGULAR_S = 35, 1800
#: Is called with the private Slurm, and which moment it is.
Watch = Callable[[PrivateSlurm, str], object]


class Replay(NamedTuple):
    """A workload on a real Slurm and in the simulator.

    Attributes
    ----------
    replayed : the schedule that Slurm made; ``replayed_on`` says which Slurm.
    simulated : that of the simulator, by the same rules.
    """

    replayed: Result
    simulated: Result


def replay_on_slurm(
    workload: Workload,
    scheduler: Scheduler | str = "fcfs",
    *,
    cluster: Cluster | str | int | os.PathLike[str] | None = None,
    restrictions: Mapping[str, Any] = MappingProxyType({}),
    step: Callable[[str], None] = lambda text: None,
    watch: Watch | None = None,
) -> Replay:
    """Replay a workload on a Slurm that is started for it, and simulate it by the same rules.

    Slurm's daemons run unmodified on loopback, as the user, in a folder for temporary files, under
    a clock that jumps from event to event. Jobs are submitted at their submit times and sleep for
    their run times. When this returns, or fails, nothing is left of them. Of the C compiler's
    output a library of some kilobytes stays in the user's cache folder.

    Parameters
    ----------
    workload : the jobs; requested times are rounded up to whole minutes for both, and counted.
    scheduler : rules that Slurm can be set to: ``backfill`` is "none", "until-shadow" or "slurm".
        Or a slurm.conf, by its path: then Slurm has its partitions, priorities and parameters, and
        with ``:qos=`` and ``assoc=`` and files behind them priorities and limits of QOS, and
        accounts with their shares.
        Under another policy than "fcfs", or a threshold, Slurm is driven: at each submission, and
        just before and after each end, while the clock stands still, the policy sets the priorities
        of the jobs that wait, as :class:`hpcgym.drive.Driver` does.
    cluster : nodes, with partitions perhaps; None, or a pool: one node with all processors. Of a
        slurm.conf it is the same file, or None.
    restrictions : rules "quota" and "maintenance" in place of those of the scheduler. In Slurm they
        are limits of QOS and accounts, and reservations for maintenance.
    step : is told what is done next, once for each job.
    watch : is called while the clock stands still, with the Slurm and one of :data:`MOMENTS`: after
        each submission, some seconds later, and at regular times. It may look at Slurm by
        ``slurm.looking()``, which changes nothing of the schedule.

    Raises
    ------
    HpcgymError : rules or a machine that Slurm cannot have, all of them in one message; Slurm or a
        C compiler is not installed; Slurm does not run; a job ends otherwise than it should.
    WorkloadError : no jobs, jobs that run for no time or whose memory Slurm cannot be asked for, or
        a workload that begins on a machine which is not empty.
    ScheduleError : Slurm's schedule is invalid, such as one that uses too many processors.
    """
    files = files_of(scheduler)
    read = None if files is None else rules_of_slurm(files)
    conf = None if read is None else read.conf
    if read is not None:
        scheduler = read.scheduler
    rules = scheduler if isinstance(scheduler, Scheduler) else find_scheduler(scheduler)
    rules = rules.but(**restrictions)
    machine = _machine(workload, conf, cluster)
    drives = conf is None and is_driven(rules)
    refused: list[HpcgymError] = []
    if conf is not None and machine != conf.cluster:
        text = "a replay by a slurm.conf is on the machine of that file: name the same as --cluster"
        refused.append(HpcgymError(text))
    jobs = _in_minutes(workload) if _checked(refused, _check_jobs, workload) else workload
    if rules.preemption is not None:
        refused.append(HpcgymError("a replay on Slurm has no preemption: leave it out"))
        rules = rules.but(preemption=None)
    settings = _checked(refused, scheduling_of, rules) if conf is None else settings_of(conf)
    nodes = _checked(refused, nodes_of, machine)
    _checked(refused, _check_users, jobs, rules)
    _checked(refused, _check_run_times, jobs)
    licences, quotas = licences_of(jobs, rules.quota)
    limits = _checked(refused, _limits, jobs, rules, quotas, read)
    period_s = _checked(refused, _calc_period, rules, quotas, read) or 1
    asks = _checked(refused, _asks, jobs, machine, conf, limits)
    if asks is not None and conf is not None and counts_size(conf):
        _checked(refused, _check_sizes, jobs, asks)
    if drives and settings is not None:
        _checked(refused, order_rules, rules)  # which says why Slurm cannot be driven by it
    if refused:
        raise _together(refused)
    assert settings is not None
    assert nodes is not None
    assert asks is not None
    simulated = simulate(jobs, rules, cluster=machine)  # which says what does not fit
    asked = rules.reserve.slurm
    every_s = 0 if asked is None else max(asked.bf_interval, 0)
    even_s = math.lcm(MINUTE_S, 1 if asked is None else asked.bf_resolution, period_s)
    partitions = _partitions(machine, conf, limits)
    if some := [window for window in rules.maintenance if window.open_to]:
        raise HpcgymError(
            f"window {some[0]}: a replay on Slurm has windows that are open to nobody"
        )
    closed = [
        Closed(window.seconds(jobs.header), nodes_in(window, machine).tolist())
        for window in rules.maintenance
    ]
    with private_slurm(nodes, settings | licences, every_s, partitions, even_s, limits) as slurm:
        slurm.begin(int(jobs.submit_time[0]), closed)
        _submit(slurm, jobs, asks, step, slurm.driver(rules) if drives else None, watch)
        records = slurm.records()
        version = slurm.version
    replayed = result_of(jobs, machine, rules, records, version)
    validate_schedule(replayed)
    return Replay(replayed, simulated)


def _check_sizes(jobs: Workload, asks: Sequence[Sequence[str]]) -> None:
    """Raise a WorkloadError if a job asks for several nodes, which its size in Slurm counts."""
    for row, (_, units, *others) in enumerate(asks):
        if units != "1" and any(word.startswith(("-N", "--ntasks-per-node")) for word in others):
            raise WorkloadError(
                f"{jobs.called(row)} asks for several nodes, which PriorityWeightJobSize counts in"
                " Slurm, and not in the simulation: leave it out"
            )


def _calc_period(rules: Scheduler, quotas: Sequence[Quota], read: SlurmRules | None) -> int:
    """Return at which multiples of a time it matters that jobs have run [s]; 0: at none.

    Raises
    ------
    HpcgymError : quotas of minutes, which Slurm counts otherwise than the rules: without the
        priorities of a slurm.conf when jobs end.
    """
    of_usage = rules.fair_share.period_s if isinstance(rules.fair_share, FairShare) else 0
    if not any(amount_called(name).of for quota in quotas for name in quota.running):
        return of_usage
    for quota in quotas:
        if are_budgets([quota]) and not (read and keeps_budget(read.conf, quota)):
            raise HpcgymError(
                f"a replay on Slurm has no quota {quota}: it takes a slurm.conf with"
                " AccountingStorageEnforce=safe, budgets of minutes-in-all, and the half-life of"
                " the file; without safe Slurm ends running jobs"
            )
    period_s = None if rules.reserve.slurm is None else rules.reserve.slurm.calc_period
    if period_s is None or (period_s and (read is None or not has_priorities(read.conf))):
        raise HpcgymError(
            "a replay on Slurm has quotas of minutes by a slurm.conf with priority/multifactor, or"
            " with backfill=slurm:calc_period=0, where they count until jobs end"
        )
    return period_s or of_usage


def _limits(
    jobs: Workload, rules: Scheduler, quotas: Sequence[Quota], read: SlurmRules | None
) -> AccountLimits | None:
    """Return the accounts and limits of Slurm; None: it needs none of them.

    Bounds of one job are left out: all jobs are within them.
    """
    quotas = [quota for quota in quotas if not quota.of_a_job]
    if read is None:
        return limits_of(jobs, quotas) if quotas else None
    if not (quotas or read.qos or needs_accounts(read.conf)):
        return None
    fair_share = rules.fair_share if isinstance(rules.fair_share, FairShare) else None
    priority = {qos.name: qos.priority for qos in read.qos}
    if rules.quota != read.scheduler.quota:  # others stand in their place
        return limits_of(jobs, quotas, priority, fair_share=fair_share)
    own = {part: name for name, parts in read.partitions.items() for part in parts}
    over = [qos.name for qos in read.qos if is_over(qos)]
    return limits_of(jobs, quotas, priority, own, over, fair_share)


def _asks(
    jobs: Workload, machine: Cluster, conf: SlurmConf | None, limits: AccountLimits | None
) -> list[list[str]]:
    """Return what ``sbatch`` is told of each job, beside times.

    Its user in the log is its comment, as Slurm knows one user here.
    """
    places, nice, users = _named(jobs, machine), _nice(jobs, conf), jobs.user_id.tolist()
    return [
        [
            *needs,
            *("-p", places[row], f"--nice={nice[row]}", f"--comment={users[row]}"),
            *([] if limits is None else limits.words(row)),
        ]
        for row, needs in enumerate(asks_of(jobs, machine))
    ]


def _machine(
    workload: Workload,
    conf: SlurmConf | None,
    cluster: Cluster | str | int | os.PathLike[str] | None,
) -> Cluster:
    """Return the machine of a replay."""
    if cluster is not None:
        return find_cluster(cluster)
    return Cluster(workload.processors) if conf is None else conf.cluster


def _partitions(
    machine: Cluster, conf: SlurmConf | None, limits: AccountLimits | None
) -> tuple[Partition, ...]:
    """Return the partitions that Slurm has; without a slurm.conf all are of the same rank."""
    if conf is None:
        return tuple(Partition(partition.name, partition.nodes) for partition in machine.partitions)
    own = {} if limits is None else limits.partitions
    return tuple(
        replace(
            partition,
            qos=own.get(partition.name),
            billing="" if limits is None else partition.billing,
        )
        for partition in machine.partitions
    )


def _named(jobs: Workload, machine: Cluster) -> list[str]:
    """Return the partition of each job; that of all nodes where the machine lacks the job's own."""
    known = {partition.name for partition in machine.partitions}
    return [name if name in known else PARTITION for name in partitions_of(jobs).tolist()]


def _nice(jobs: Workload, conf: SlurmConf | None) -> list[int]:
    """Return what is taken from the priority of each job: only a slurm.conf with weights does."""
    if conf is None or not has_priorities(conf):
        return [0] * len(jobs)
    return [0 if nice == MISSING else int(nice) for nice in jobs.nice]


def _in_minutes(workload: Workload) -> Workload:
    """Return the jobs with requested times of whole minutes."""
    requested = workload.requested_time
    whole = -(-requested // MINUTE_S) * MINUTE_S
    changed = int((whole != requested).sum())
    return workload.with_columns(requested_time=whole).counted({_ROUNDED: changed})


def _checked(
    refused: list[HpcgymError], check: Callable[P, T], *given: P.args, **named: P.kwargs
) -> T | None:
    """Return what a check returns; None where it refuses something, which is noted."""
    try:
        return check(*given, **named)
    except HpcgymError as error:
        refused.append(error)
        return None


def _together(refused: Sequence[HpcgymError]) -> HpcgymError:
    """Return one error of all that a replay refuses."""
    if len(refused) == 1:
        return refused[0]
    problems = [str(error).replace("a replay on Slurm ", "it ", 1) for error in refused]
    each = "; ".join(f"({number}) {text}" for number, text in enumerate(problems, 1))
    return HpcgymError(f"a replay on Slurm refuses {len(refused)} things: {each}")


def _check_jobs(workload: Workload) -> bool:
    """Raise a WorkloadError of jobs that no replay has; else return True."""
    if not len(workload):
        raise WorkloadError("there are no jobs to replay")
    if workload.initial is not None:
        raise WorkloadError(
            "an extract begins with jobs that run, and a replay with an empty machine: take a week"
            " or a month"
        )
    return True


def _check_users(jobs: Workload, rules: Scheduler) -> None:
    """Raise a WorkloadError where a setting is of each user, and there are several."""
    of_user = 0 if rules.reserve.slurm is None else rules.reserve.slurm.bf_max_job_user
    if of_user and len(np.unique(jobs.user_id)) > 1:
        raise WorkloadError(
            f"a replay on Slurm runs all jobs as one user, and bf_max_job_user={of_user} is of each"
            " user: leave it out, or take the jobs of one user"
        )


def _check_run_times(jobs: Workload) -> None:
    """Raise a WorkloadError of a job that runs for no time."""
    short = jobs.run_time < 1
    if short.any():
        job = int(np.flatnonzero(short)[0])
        raise WorkloadError(f"{jobs.called(job)} runs for no time, and Slurm's jobs must run")


def _submit(
    slurm: PrivateSlurm,
    jobs: Workload,
    asks: Sequence[Sequence[str]],
    step: Callable[[str], None],
    driver: Driver | None,
    watch: Watch | None = None,
) -> None:
    """Submit all jobs at their times, and wait until they have ended.

    Parameters
    ----------
    asks : what ``sbatch`` is told of each.
    driver : is asked, while the clock stands still, after each time at which jobs have been
        submitted, and before and after each at which they end; or None.
    watch : as of :func:`replay_on_slurm`.
    """
    ask = None if driver is None else lambda: _ask(driver, slurm.now_s)
    slurm.asked = ask
    run_time = np.minimum(jobs.run_time, jobs.requested_time).tolist()
    rows = zip(jobs.submit_time.tolist(), asks, jobs.requested_time.tolist(), run_time, strict=True)
    later = np.diff(jobs.submit_time, append=jobs.submit_time[-1:] + 1) > 0
    for row, (submit, *asked) in enumerate(rows):
        step(f"submitting {jobs.called(row)}")
        if watch is not None and row:
            _watched_until(slurm, submit, watch)
        slurm.advance(submit)
        slurm.submit(_name(row), *asked)
        if ask is not None and later[row]:
            ask()
        if watch is not None:
            watch(slurm, "submitted")
    step("waiting for the last jobs")
    while watch is not None and slurm.left and slurm.time_s < submit + _WATCHED_S:
        _watched_until(slurm, slurm.time_s + REGULAR_S, watch)
    slurm.finish()


#: So long after the last submission a replay is watched at most [s].
_WATCHED_S = 366 * DAY_S


def _watched_until(slurm: PrivateSlurm, until_s: int, watch: Watch) -> None:
    """Move the clock to a time [s], with looks at the moments before it."""
    first = slurm.time_s
    moments = dict.fromkeys(range(first - first % REGULAR_S + REGULAR_S, until_s + 1, REGULAR_S))
    if first + LATER_S < until_s:
        moments[first + LATER_S] = None
    for moment in sorted(moments):
        slurm.advance(moment)
        watch(slurm, "later" if moment == first + LATER_S else "regular")


def _ask(driver: Driver, now_s: int) -> None:
    """Let a policy order the queue, all of it."""
    if misread := driver.ask(now_s).misread:
        raise HpcgymError(f"squeue told a job that is not understood: {misread[0]!r}")


def _name(row: int) -> str:
    """Return what Slurm calls the job of a row."""
    return f"job-{row}"


def result_of(
    jobs: Workload,
    cluster: Cluster,
    scheduler: Scheduler,
    records: Sequence[Record],
    version: str,
) -> Result:
    """Return the schedule that Slurm's records tell.

    Parameters
    ----------
    jobs, cluster, scheduler : what was replayed, on what, by which rules.
    records : of all jobs, in any order.
    version : of Slurm.

    Raises
    ------
    HpcgymError : a job without a record, or one that did not complete, was submitted at another
        time, or ran for more than a few seconds more or less than it should. Seconds are counted in
        ``cleaning``, and the jobs of the result have the run times that they had.
    """
    of = {record.name: record for record in records}
    wanted_s = np.minimum(jobs.run_time, jobs.requested_time)
    run_time = wanted_s.copy()
    start = np.zeros(len(jobs), np.int64)
    for row in range(len(jobs)):
        record = of.get(_name(row))
        if record is None:
            raise HpcgymError(f"Slurm tells nothing of {jobs.called(row)}")
        seen = (record.state, record.submit)
        wanted = ("COMPLETED", int(jobs.submit_time[row]))
        start[row], run_time[row] = record.start, record.end - record.start
        if seen != wanted or abs(run_time[row] - wanted_s[row]) > _OFF_S:
            raise HpcgymError(
                f"{jobs.called(row)} should be {wanted[0]}, submitted at {wanted[1]} s and run for"
                f" {wanted_s[row]} s; Slurm says {seen[0]}, {seen[1]} s and {run_time[row]} s"
            )
    jobs = _as_they_ran(jobs, run_time, run_time != wanted_s)
    earlier = np.maximum.accumulate(np.concatenate([start[:1], start[:-1]]))
    # under a policy who stood before whom is not told
    backfilled = np.zeros(len(jobs), np.bool_) if is_driven(scheduler) else start < earlier
    return Result(
        jobs,
        cluster,
        scheduler,
        start=start,
        run_time=run_time,
        predicted_run_time=jobs.requested_time,
        reserved_start=np.full(len(jobs), -1),
        backfilled=backfilled,
        allocation=_allocation(jobs, of) if cluster.groups else None,
        replayed_on=version,
    )


def _as_they_ran(jobs: Workload, run_time: NDArray[np.int64], off: NDArray[np.bool_]) -> Workload:
    """Return jobs with the run times that they had where these are ``off``, counted."""
    if not off.any():
        return jobs
    ran = np.where(off, run_time, jobs.run_time)
    requested = np.maximum(jobs.requested_time, np.where(off, run_time, 0))
    return jobs.with_columns(run_time=ran, requested_time=requested).counted({_OFF: int(off.sum())})


def _allocation(jobs: Workload, of: Mapping[str, Record]) -> Allocation:
    """Return which nodes jobs had, and how many units on each: one where Slurm tells no cores.

    Raises
    ------
    HpcgymError : cores on a node that are no whole units.
    """
    core = demands_of(jobs)[1][CORE].tolist()
    first, nodes, units = [0], [], []
    for row in range(len(jobs)):
        record = of[_name(row)]
        had = [int(name[1:]) - 1 for name in hosts(record.nodes, "Slurm's record")]
        processors = record.processors or (core[row],) * len(had)
        if len(processors) != len(had) or any(cores % core[row] for cores in processors):
            raise HpcgymError(
                f"{jobs.called(row)} has units of {core[row]} cores; Slurm says that it had"
                f" {list(processors)} on nodes {record.nodes}"
            )
        nodes += had
        units += [cores // core[row] for cores in processors]
        first.append(len(nodes))
    return Allocation(np.array(first), np.array(nodes, np.int32), np.array(units, np.int32))


# --- How two schedules of the same jobs differ, job by job ----------------------------------------

#: [s] up to which two starts count as the same.
CLOSE_S = 60

#: Why the starts of a job differ, in the column ``why``.
SAME, REPLAYED, SIMULATED, FOLLOWS = "", "replayed first", "simulated first", "follows"


def table_of(replay: Replay) -> pd.DataFrame:
    """Return both schedules job by job.

    Columns: job_number, requested_processors, submit_time, run_time, requested_time, start_time,
    simulated_start_time and difference, the first less the second, all int64 and times in seconds;
    and why, a text. It is empty where the starts are at most :data:`CLOSE_S` apart. Else "replayed
    first" or "simulated first" where up to then the same jobs ran in both schedules: only here
    their rules parted, and the one that is named started the job. "follows": they had parted
    before.
    """
    import pandas as pd

    replayed, simulated = replay
    columns = replayed.workload.columns
    return pd.DataFrame(
        {
            "job_number": columns["job_number"],
            "requested_processors": columns["requested_processors"],
            "submit_time": columns["submit_time"],
            "run_time": replayed.run_time,
            "requested_time": columns["requested_time"],
            "start_time": replayed.start,
            "simulated_start_time": simulated.start,
            "difference": replayed.start - simulated.start,
            "why": why(replayed, simulated),
        }
    )


def why(replayed: Result, simulated: Result) -> list[str]:
    """Return why the starts of each job differ; see :func:`table_of`."""
    difference = replayed.start - simulated.start
    apart = np.flatnonzero(np.abs(difference) > CLOSE_S)
    reasons = [SAME] * len(difference)
    begins = _where_they_part(
        np.minimum(replayed.start, simulated.start)[apart],
        np.maximum(replayed.end, simulated.end)[apart],
    )
    for job, begin in zip(apart.tolist(), begins.tolist(), strict=True):
        first = REPLAYED if difference[job] < 0 else SIMULATED
        reasons[job] = first if begin else FOLLOWS
    return reasons


def _where_they_part(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which of some spans begin while none of the others is under way."""
    order = np.argsort(begin, kind="stable")
    latest = np.maximum.accumulate(end[order])
    parts = np.ones(len(begin), np.bool_)
    parts[order[1:]] = begin[order[1:]] >= latest[:-1]
    return parts


def facts_of(replay: Replay) -> dict[str, Any]:
    """Return what can be said of the differences.

    Returns
    -------
    "jobs"; "same_starts", the share of starts that are the same to the second; "close_starts", that
    of starts at most :data:`CLOSE_S` apart; "median_difference_s" and "largest_difference_s",
    without their signs; "parted", how many times the schedules parted while the same jobs ran in
    both; "mean_bsld" and "simulated_mean_bsld", and "mean_bsld_ratio", the first over the second.
    """
    replayed, simulated = replay
    apart = np.abs(replayed.start - simulated.start)
    mean, other = float(replayed.bsld.mean()), float(simulated.bsld.mean())
    parted = [reason for reason in why(replayed, simulated) if reason in (REPLAYED, SIMULATED)]
    return {
        "jobs": len(apart),
        "same_starts": float((apart == 0).mean()),
        "close_starts": float((apart <= CLOSE_S).mean()),
        "median_difference_s": float(np.median(apart)),
        "largest_difference_s": int(apart.max()),
        "parted": len(parted),
        "mean_bsld": mean,
        "simulated_mean_bsld": other,
        "mean_bsld_ratio": mean / other,
    }
