"""Light-ESP: a fixed mix of 230 jobs of 14 types, which loads a machine of any size.

ESP (Wong et al., SC 2000) is a benchmark of batch systems: each type of job is a fraction of the
machine, a number of jobs and a run time. Light-ESP (Georgiou and Hautreux, 2012) has shorter run
times. Table 6.2 of Glesser 2016 prints it, with sizes for 180 cores in nodes of 12 that are not
shared; on such a machine jobs have these sizes, else their fraction, rounded.

Assumed, since Glesser 2016 does not tell:

- Submit times. Each repetition is a shuffle of its own; all jobs come at even distances, within a
  time that depends on ``load``: with 1, the time that the work of their fractions takes without
  gaps (935 s for each repetition; all of it is to take some 15 minutes).
- Requested times: the run times, which a ``sleep`` knows.
- Users. Each type's jobs are dealt out one by one, so that users have the same jobs (but for the
  two that fill the machine); if they are ``unequal``, user k has k times as many as user 1. The
  order in which jobs are dealt is shuffled.
- Power. User 1 needs the share ``spread`` less than usual, the last user so much more, those
  between in even steps. Usual is 358 W for a processor, a busy node of table 4.2, as on the default
  machine. Without a spread jobs have no power.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.errors import WorkloadError, positive_argument, whole_argument
from hpcgym.names import CORE
from hpcgym.workload.columns import MAX_TIME, MISSING
from hpcgym.workload.model import Workload

USUAL_W = 358.0
MOST = 10_000  # users, repetitions
_NAME = "light-esp"


class JobType(NamedTuple):
    """A line of table 6.2."""

    name: str
    fraction: float  # of the machine
    cores: int  # of 180, in nodes of 12 that are not shared
    jobs: int
    run_time_s: int


TYPES = (
    JobType("A", 0.03125, 12, 75, 22),
    JobType("B", 0.06250, 12, 9, 27),
    JobType("C", 0.50000, 96, 3, 45),
    JobType("D", 0.25000, 48, 3, 51),
    JobType("E", 0.50000, 96, 3, 26),
    JobType("F", 0.06250, 24, 9, 154),
    JobType("G", 0.12500, 36, 6, 111),
    JobType("H", 0.15820, 36, 6, 89),
    JobType("I", 0.03125, 12, 24, 119),
    JobType("J", 0.06250, 24, 24, 60),
    JobType("K", 0.09570, 24, 15, 41),
    JobType("L", 0.12500, 36, 36, 30),
    JobType("M", 0.25000, 48, 15, 15),
    JobType("Z", 1.0, 180, 2, 20),
)
#: [s] what the fractions take on a machine without gaps.
WORK_S = sum(kind.fraction * kind.jobs * kind.run_time_s for kind in TYPES)


def light_esp(
    processors: int = 180,
    repeat: int = 1,
    seed: int = 0,
    load: float = 1.0,
    users: int = 1,
    unequal: int = 0,
    spread: float = 0.0,
    node_cores: int = 1,
) -> Workload:
    """Generate Light-ESP; see the module for what is published of it, and what is assumed.

    The same arguments give the same workload. In another ``seed``, or for other users, the same
    jobs come in another order.

    Parameters
    ----------
    processors : size of the machine.
    repeat : how many times all 230 jobs come.
    seed : of the order, at least 0.
    load : above 0; with 2, jobs come twice as fast as the machine could run them without gaps.
    users : number of users, from 1 to 10,000.
    unequal : 1: user k has k times the jobs of user 1; 0: all have the same.
    spread : from 0 to less than 1: by which share of usual power the first user needs less and the
        last more.
    node_cores : cores of a node, which jobs do not share; they ask for whole nodes.

    Returns
    -------
    Workload
        ``user_id`` from 1, ``executable`` 1 to 14 for A to Z; with ``node_cores`` above 1, units of
        so many cores.

    Raises
    ------
    WorkloadError
        An argument out of range.
    """
    processors = whole_argument(_NAME, "processors", processors, 1, 2**31)
    repeat, users = (
        whole_argument(_NAME, "repeat", repeat, 1, MOST),
        whole_argument(_NAME, "users", users, 1, MOST),
    )
    node_cores = whole_argument(_NAME, "node_cores", node_cores, 1, processors)
    seed = whole_argument(_NAME, "seed", seed, 0, 2**63)
    unequal = whole_argument(_NAME, "unequal", unequal, 0, 1)
    if not 0 <= spread < 1:
        raise WorkloadError(f"{_NAME}: spread must be from 0 to less than 1, not {spread!r}")
    if processors % node_cores:
        raise WorkloadError(f"{_NAME}: processors must be a multiple of node_cores, {node_cores}")
    span = WORK_S * repeat / (positive_argument(_NAME, "load", load) or 1.0)
    if span >= MAX_TIME:
        raise WorkloadError(f"{_NAME}: load must be so large that times stay below 2^53 s")
    orders, dealing = np.random.default_rng(seed).spawn(2)
    kinds = np.repeat(np.arange(len(TYPES)), [kind.jobs for kind in TYPES])
    kind = np.concatenate([orders.permutation(kinds) for _ in range(repeat)])
    size = np.array([_cores(job_type, processors, node_cores) for job_type in TYPES])[kind]
    run_time = np.array([job_type.run_time_s for job_type in TYPES])[kind]
    columns: dict[str, Any] = {
        "job_number": np.arange(1, len(kind) + 1),
        "submit_time": np.floor(np.arange(len(kind)) * (span / len(kind))).astype(np.int64),
        "run_time": run_time,
        "requested_time": run_time,
        "allocated_processors": size,
        "requested_processors": size,
        "user_id": _deal(kind, users, unequal, dealing),
        "executable": kind + 1,
        "status": np.ones(len(kind), np.int64),
    }
    if spread:
        steps = np.linspace(1 - spread, 1 + spread, users) if users > 1 else np.ones(1)
        columns["power_w"] = USUAL_W * steps[columns["user_id"] - 1]
    return Workload.from_columns(
        columns,
        processors=processors,
        name=f"light-esp-{processors} x {repeat} seed {seed}",
        header={
            "Computer": ["Light-ESP, table 6.2 of D. Glesser's thesis"],
            "MaxProcs": [str(processors)],
            "Note": [
                f"repeated {repeat} times, order by seed {seed}, submitted in {span:.0f} s; "
                f"{users} users, spread of power {spread:g} ({MISSING} W: unknown)"
            ],
        },
        units=size // node_cores if node_cores > 1 else None,
        per_unit={CORE: np.full(len(kind), node_cores)} if node_cores > 1 else None,
    )


def _cores(kind: JobType, processors: int, node_cores: int) -> int:
    """Return the cores of a job of this type, of whole nodes."""
    if (processors, node_cores) == (180, 12):
        return kind.cores
    size = max(round(kind.fraction * processors), 1)
    return min(math.ceil(size / node_cores) * node_cores, processors)


def _deal(
    kind: NDArray[np.int64], users: int, unequal: int, random: np.random.Generator
) -> NDArray[np.int64]:
    """Return a user for each job, from 1; each type's jobs are dealt out apart."""
    user_id = np.empty(len(kind), np.int64)
    turn = np.arange(1, users + 1)
    hand = np.repeat(turn, turn) if unequal else turn
    for number in range(len(TYPES)):
        jobs = np.flatnonzero(kind == number)
        rounds = [random.permutation(hand) for _ in range(-(-len(jobs) // len(hand)))]
        user_id[jobs] = np.concatenate(rounds)[: len(jobs)]
    return user_id
