"""Which settings may explain that a log's past differs from what a site's rules simulate.

Each setting is tried alone, then more of them on top of the best one. They are chosen on the jobs
that were submitted in the first half of the time; what they explain is told of both halves. What is
tried is consistent with the log: limits are the most that it shows at once, so that its own
schedule keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym._engine import Work
from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster, with_counts
from hpcgym.names import MEMORY
from hpcgym.processors import processors_here
from hpcgym.progress import Progress, silent
from hpcgym.schedule.result import recorded
from hpcgym.scheduler.restrictions import COLUMNS, Quota
from hpcgym.simulation.run import simulate
from hpcgym.workload.amounts import asks_of_running, most_at_once
from hpcgym.workload.constraints import machine_for
from hpcgym.workload.io.swf_header import partitions_of
from hpcgym.workload.needs import needs_of, units_held

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.scheduler.rules import Scheduler
    from hpcgym.workload.model import Workload

#: [s] Waits are compared by log(wait + this): below it differences are of no interest.
_SHORT_S = 60.0
#: A further setting must explain this share of the first difference, or the search ends.
_LEAST = 0.02
#: Share of the jobs that a smaller machine may leave out.
_MOST_LEFT_OUT = 0.05
#: Shares of the nodes of each group that may have been out of service.
_AWAY = (0.05, 0.1, 0.2, 0.3, 0.4)
_BACKFILL = (
    *("none", "easy", "conservative", "slurm"),
    *(f"slurm:bf_max_job_test={depth}" for depth in (10, 50, 100, 1000)),
    *("slurm:bf_interval=300", "slurm:bf_interval=1800"),
)
_ORDERS: dict[str, dict[str, Any]] = {
    "fcfs": {"policy": "fcfs"},
    "shortest first": {"policy": "spf"},
    "smallest first": {"policy": "sqf"},
    "largest first": {"policy": "lqf"},
    **{
        f"fair share, half-life {days} days": {
            "policy": "fairshare",
            "fair_share": f"half_life_s={days * 86_400}",
        }
        for days in (1, 7, 14)
    },
}

#: Amounts that are scarce nowhere, or less so than generic resources: the later they are tried.
_PLENTY = {"processors": 1, "nodes": 2, "jobs": 3, MEMORY: 4, "billing": 5}

Ints = NDArray[np.int64]


class Candidate(NamedTuple):
    """A scheduler on a machine, and how it differs from the site's own.

    ``changes``: what each is of, such as "machine" -> in words.
    """

    scheduler: Scheduler
    cluster: Cluster
    changes: dict[str, str]


class TriedCandidate(NamedTuple):
    """What came of a candidate, as :func:`calibrate` tells it."""

    candidate: Candidate
    mean_wait_s: float = math.nan
    difference: float = math.nan
    explained: float = math.nan
    explained_later: float = math.nan
    problem: str = ""

    def row(self, chosen: bool) -> dict[str, Any]:
        """Return it as a row of the table."""
        changes = self.candidate.changes
        columns = self._asdict()
        del columns["candidate"]
        return {
            "step": len(changes),
            "settings": "; ".join(changes.values()),
            "chosen": chosen,
        } | columns


class Change(NamedTuple):
    """One change of a candidate: its kind, in words, the rules that it changes, its machine."""

    kind: str
    words: str
    rules: dict[str, Any]
    cluster: Cluster | None = None

    def of(self, candidate: Candidate) -> Candidate:
        """Return the setting with this change, too."""
        changes = {**candidate.changes, self.kind: self.words}
        scheduler = candidate.scheduler.but(**self.rules) if self.rules else candidate.scheduler
        return Candidate(scheduler, self.cluster or candidate.cluster, changes)


def calibrate(
    workload: Workload,
    scheduler: str | Scheduler,
    cluster: Cluster,
    *,
    most: int = 3,
    progress: Progress = silent,
) -> pd.DataFrame:
    """Return which settings bring a simulation nearer to the past that a log recorded.

    How far two schedules are apart is the mean over jobs of abs(log((w + 60 s) / (v + 60 s))),
    where w and v are a job's waits. On a machine that does not hold all jobs, it is of the others.

    Parameters
    ----------
    workload : jobs whose waiting times the log tells, ready to be simulated.
    scheduler, cluster : the site's own, as far as they are known.
    most : how many settings are combined at most.

    Returns
    -------
    table : a row for each candidate, as they were tried; the first has no settings of its own.
        Columns: ``step``, 0 for the site's own, then how many settings; ``settings``; ``chosen``,
        whether later steps build on it; ``mean_wait_s``; ``difference``; ``explained``, by how much
        of the site's own difference it is smaller, of jobs of the first half of the time, on which
        is chosen, and ``explained_later``, of the other; ``problem``, why it could not be tried.

    Raises
    ------
    WorkloadError : the log does not tell the waiting time of each job.
    HpcgymError : the site's own setting cannot be simulated.
    """
    import pandas as pd

    past = recorded(workload).wait
    early = np.arange(len(workload)) < workload.row_at(0.5)
    own = Candidate(scheduler_of(scheduler, {}), cluster, {})
    wait = simulate(workload, own.scheduler, cluster=cluster).wait
    at_first = _apart(wait, past)

    work = Work()  # an interrupt reaches this thread alone

    def answer(candidate: Candidate) -> TriedCandidate:
        try:
            with work:
                fits, waits = _waits(workload, candidate)
        except HpcgymError as error:
            return TriedCandidate(candidate, problem=str(error))
        now, before = _apart(waits, past[fits]), at_first[fits]
        sums = [(now[half].sum(), before[half].sum()) for half in (early[fits], ~early[fits])]
        shares = [1 - after / first if first > 0 else 0.0 for after, first in sums]
        return TriedCandidate(
            candidate, float(waits.mean()), float(now.mean()), shares[0], shares[1]
        )

    rows = [TriedCandidate(own, float(wait.mean()), float(at_first.mean()), 0.0, 0.0)]
    changes, chosen = changes_for(workload, own), [0]
    for step in range(1, most + 1):
        best, first = rows[chosen[-1]], len(rows)
        kinds = best.candidate.changes
        asked = [change.of(best.candidate) for change in changes if change.kind not in kinds]
        with progress("trying", len(asked)) as tell, ThreadPoolExecutor(processors_here()) as pool:
            try:
                for tried in pool.map(answer, asked):
                    what = "; ".join(tried.candidate.changes.values())
                    tell(f"step {step} of {most} at most: {what}")
                    rows.append(tried)
            except BaseException:
                work.end()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        simulated = [place for place in range(first, len(rows)) if not rows[place].problem]
        place = max(simulated, key=lambda place: rows[place].explained, default=chosen[-1])
        if rows[place].explained < best.explained + _LEAST:
            break
        chosen.append(place)
    return pd.DataFrame([tried.row(place in chosen) for place, tried in enumerate(rows)])


def _waits(workload: Workload, candidate: Candidate) -> tuple[NDArray[np.bool_], Ints]:
    """Return which jobs the machine of a setting holds, (n_jobs,), and their waits [s].

    Raises
    ------
    HpcgymError : it does not hold :data:`_MOST_LEFT_OUT` of them, or what the simulation raises.
    """
    machine = machine_for(workload, candidate.cluster)
    if "machine" not in candidate.changes:
        fits = np.ones(len(workload), np.bool_)
    elif machine.groups:
        needs = needs_of(workload, machine.resources)
        fits = units_held(needs, machine.capacity) >= needs[:, 0]
    else:
        fits = workload.requested_processors <= machine.processors
    if (~fits).mean() > _MOST_LEFT_OUT:
        raise HpcgymError(f"{np.count_nonzero(~fits):,} jobs do not fit on this machine")
    jobs = workload if fits.all() else workload.take(fits)
    return fits, simulate(jobs, candidate.scheduler, cluster=machine).wait


def _apart(wait: Ints, other: Ints) -> NDArray[np.float64]:
    """Return how far the waits of each job are apart."""
    apart: NDArray[np.float64] = np.abs(np.log((wait + _SHORT_S) / (other + _SHORT_S)))
    return apart


# --- What is tried --------------------------------------------------------------------------------


def changes_for(workload: Workload, own: Candidate) -> list[Change]:
    """Return the changes that a site's own setting may need."""
    now = own.scheduler
    backfills = [Change("backfill", f"backfill {rule}", {"backfill": rule}) for rule in _BACKFILL]
    orders = [Change("order", words, dict(rules)) for words, rules in _ORDERS.items()]
    limits = [
        Change("limit", words, {"quota": (*now.quota, *quotas)})
        for words, quotas in limits_of(workload)
        if not all(_is_given(workload, quota, now.quota) for quota in quotas)
    ]
    return [
        *_of_machine(own.cluster),
        *limits,
        *(change for change in backfills if change.rules["backfill"] != now.backfill),
        *(change for change in orders if change.rules["policy"] != now.policy),
    ]


def _is_given(workload: Workload, quota: Quota, given: Sequence[Quota]) -> bool:
    """Return whether the site's own limits bound the same amount of the same jobs."""
    of_quota = {name for name, _ in quota.bounds}
    counted = quota.counted(workload) >= 0
    for own in given:
        if {*quota.each} <= {*own.each} and of_quota <= {name for name, _ in own.bounds}:
            counted &= (own.counted(workload) < 0) | own.spared(workload)
    return not counted.any()


def _shared_out(nodes: int, cluster: Cluster) -> list[int]:
    """Return how many of so many nodes each group has, in proportion to its own: these add up."""
    exact = [group.nodes * nodes / max(cluster.nodes, 1) for group in cluster.groups]
    counts = [int(share) for share in exact]
    most_left = sorted(range(len(exact)), key=lambda k: counts[k] - exact[k])
    for k in most_left[: nodes - sum(counts)]:
        counts[k] += 1
    return counts


def _of_machine(cluster: Cluster) -> Iterator[Change]:
    """Return smaller machines, and the same without partitions."""
    for share in _AWAY:
        words = f"{100 * share:.0f} % of the {'nodes' if cluster.groups else 'processors'}"
        counts = _shared_out(round(cluster.nodes * (1 - share)), cluster)
        if not cluster.groups:
            smaller = replace(cluster, processors=round(cluster.processors * (1 - share)) or 1)
        elif sum(counts) in (0, cluster.nodes):
            continue
        else:
            smaller = with_counts(cluster, counts)
        yield Change("machine", f"{words} out of service", {}, smaller)
    if cluster.partitions:
        yield Change("machine", "any nodes for each job", {}, replace(cluster, partitions=()))


def limits_of(workload: Workload) -> Iterator[tuple[str, tuple[Quota, ...]]]:
    """Return limits as tight as the log's own past keeps them, each with what it is in words."""
    import pandas as pd

    # of limits that explain as much the first is told: sites bound what is scarce
    asks: dict[str, Ints] = {}
    for amount, asked in sorted(
        asks_of_running(workload).items(), key=lambda row: _PLENTY.get(row[0], 0)
    ):
        if not any(np.array_equal(asked, other) for other in asks.values()):
            asks[amount] = asked
    start = workload.submit_time + workload.wait_time
    times = start, start + workload.run_time
    seen = list[Ints]()
    for column, name in (("user", "user"), ("group", "account"), ("queue", "QOS")):
        keys = pd.factorize(workload.columns[COLUMNS[column]])[0]
        if keys.max() == 0 or any(np.array_equal(keys, other) for other in seen):
            continue
        seen.append(keys)
        for amount, asked in asks.items():
            most = int(most_at_once(*times, asked, keys).max())
            words = f"at most {most:,} {amount} of each {name} run at once"
            yield words, (Quota((column,), bounds={amount: most}),)
    names, keys = np.unique(partitions_of(workload), return_inverse=True)
    most_of = most_at_once(*times, workload.requested_processors, keys.reshape(-1))
    each = {name: most for name, most in zip(names, most_of.tolist(), strict=True) if name}
    if len(each) > 1:
        quotas = (Quota((), (("partition", name),), {"processors": n}) for name, n in each.items())
        yield "no partition has more busy than the log shows at once", tuple(quotas)
