"""Jobs as the reference simulators have them, and settings of Slurm's backfilling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

# --- Jobs of the reference ------------------------------------------------------------------------

Amounts = list[int]  # of each resource
Nodes = list[Amounts]
Placed = list[tuple[int, int]]  # (node, units on it), in the order of allocation


NEVER = 2**62  # [s] later than anything
#: What may be said of a quota: it is weighed by time, rule 31; it is of licences of the cluster.
BY_TIME, OF_CLUSTER = "by time", "of the cluster"
#: Of a budget, rule 33: of what has been used, alone or with what running jobs still may use. The
#: half-life stands behind it.
USED, IN_ALL = "used", "in all"


class Spared(tuple[Any, ...]):
    """The key of a job that counts under a quota with equal keys, and is not bound by it."""

    __slots__ = ()


#: How many units of a job one node may have where the job does not say.
ANY = 1 << 60


@dataclass(eq=False)  # a job is like no other
class Job:
    """What is known of a job before, and what has become of it after a simulation."""

    submit: int
    processors: int
    run: int
    requested: int
    user: int = 0
    number: int = -1
    predicted: int = -1  # the estimate of its running time, at submission
    prediction: int = -1  # the same after corrections
    corrections: int = 0
    start: int = -1
    end: int = -1
    backfilled: bool = False
    reserved_start: int = -1  # the first promise
    reservation: int = -1  # the present promise (conservative)
    beside: int = 0  # processors that it keeps free beside the job's own
    policy_time: int = -1  # what policies look at in place of the requested time
    candidate_time: int = -1  # by what it is judged where backfilling is relaxed
    recorded_wait: int = -1  # of the trace
    came: int = 0  # how many had been submitted then, with it
    place: int = 0  # in the order of the starts
    since: int = -1  # when it started, or last went on
    paused: int = 0  # how long it has been suspended
    stopped: int = -1  # when it was last suspended
    leaves: int | None = None  # when it has gone at the latest, as others stop it
    knows: int = 0  # how many terminated jobs of its user that is made of
    first_submit: int = 0  # when the first job of the whole log was submitted
    seen: dict[str, float] = field(default_factory=dict)  # what predictors were told of it
    units: int = 1  # on machines of nodes
    demand: tuple[int, ...] = (1,)  # of each unit, of each resource
    most: int = ANY  # units that one node may have
    nodes: tuple[tuple[int, int], ...] = ()  # what it has or has reserved: nodes, units on them
    allowed: frozenset[int] | None = None  # the nodes that it may have; None: all
    partition: frozenset[int] | None = None  # those of its partition; None: all
    limit: int | None = None  # the run time at which it is killed, where that is the prediction

    @property
    def actual(self) -> int:
        """How long it runs (rule 2)."""
        length = min(self.run, self.requested)
        return length if self.limit is None else min(length, self.limit)

    @property
    def killed(self) -> bool:
        """Whether it is cut short."""
        return self.run > self.actual

    @property
    def predicted_end(self) -> int:
        """When it is expected to end."""
        end = self.start + self.paused + self.prediction
        return end if self.leaves is None else min(end, self.leaves)

    def ran(self, now: int) -> int:
        """How long it has run, all pieces together."""
        return (now if self.stopped == -1 else self.stopped) - self.start - self.paused


def jobs_of(workload: Any) -> list[Job]:
    """Return the jobs of a :class:`hpcgym.Workload` as those of a pool, in its order."""
    return [
        Job(
            int(workload.submit_time[row]),
            int(workload.requested_processors[row]),
            int(workload.run_time[row]),
            int(workload.requested_time[row]),
            int(workload.user_id[row]),
            recorded_wait=int(workload.wait_time[row]),
            first_submit=workload.first_submit_s,
        )
        for row in range(len(workload))
    ]


def node_jobs_of(
    workload: Any,
    resources: Sequence[str],
    allowed: Sequence[frozenset[int] | None] = (),
    partitions: Sequence[frozenset[int] | None] = (),
) -> list[Job]:
    """Return the jobs of a :class:`hpcgym.Workload` with their units; ``resources`` of the machine.

    ``allowed``: the nodes that each may have, None: all; ``partitions``: those of its partition,
    as many unless they are told.
    """
    jobs = []
    for row in range(len(workload)):
        units, demand = int(workload.requested_processors[row]), [1, *[0] * (len(resources) - 1)]
        if workload.units is not None:
            units = int(workload.units[row])
            demand = [
                int(workload.per_unit[name][row]) if name in workload.per_unit else 0
                for name in resources
            ]
        elif "mem" in resources and workload.requested_memory[row] > 0:
            kilobytes = int(workload.requested_memory[row])
            demand[resources.index("mem")] = -(-kilobytes // 1000)  # begun megabytes
        most = int(workload.units_per_node[row])
        job = Job(
            int(workload.submit_time[row]),
            units * demand[0],
            int(workload.run_time[row]),
            int(workload.requested_time[row]),
            int(workload.user_id[row]),
            recorded_wait=int(workload.wait_time[row]),
            first_submit=workload.first_submit_s,
            units=units,
            demand=tuple(demand),
            most=most if most > 0 else ANY,
            allowed=allowed[row] if allowed else None,
            partition=(partitions or allowed)[row] if partitions or allowed else None,
        )
        jobs.append(job)
    return jobs


def fresh(job: Job) -> Job:
    """Return a job as it was before any simulation."""
    return Job(
        job.submit,
        job.processors,
        job.run,
        job.requested,
        job.user,
        recorded_wait=job.recorded_wait,
        first_submit=job.first_submit,
        units=job.units,
        demand=tuple(job.demand),
        most=job.most,
        allowed=job.allowed,
        partition=job.partition,
    )


# --- The settings of Slurm's backfilling, read from the rule --------------------------------------


def settings_of_slurm(backfill: str) -> dict[str, int] | None:
    """Return the settings of rule 23; None of another rule."""
    name, _, text = backfill.partition(":")
    if name != "slurm":
        return None
    usual = {"bf_interval": 30, "bf_max_job_test": 500, "bf_window": 1440}
    usual |= {"bf_resolution": 60, "bf_window_linear": 0}
    usual |= {"default_queue_depth": 100, "sched_interval": 60, "calc_period": 300}
    given = dict(part.split("=") for part in text.split("+") if part)
    usual |= {"bf_job_part_count_reserve": 0, "bf_max_job_user": 0}
    return {**usual, **{k: int(v) for k, v in given.items()}}
