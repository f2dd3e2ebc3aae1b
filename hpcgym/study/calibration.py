"""Which settings may explain that a log's past differs from what a site's rules simulate.

Each setting is tried alone, then more of them on top of the best one. They are chosen on the jobs
that were submitted in the first half of the time; what they explain is told of both halves. What is
tried is consistent with the log: limits are the most that it shows at once, so that its own
schedule keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym.baselines.schedulers import scheduler_of
from hpcgym.errors import HpcgymError
from hpcgym.machine.pool import Cluster, with_counts
from hpcgym.processors import processors_here
from hpcgym.progress import Progress, silent
from hpcgym.schedule.result import recorded
from hpcgym.scheduler.restrictions import COLUMNS, Quota
from hpcgym.simulation.run import simulate
from hpcgym.workload.needs import called_in, needs_of, units_held

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

Ints = NDArray[np.int64]


class Setting(NamedTuple):
    """A scheduler on a machine, and how it differs from the site's own.

    ``changes``: what each is of, such as "machine" -> in words.
    """

    scheduler: Scheduler
    cluster: Cluster
    changes: dict[str, str]


class Tried(NamedTuple):
    """What came of a setting; see :func:`calibrate`."""

    setting: Setting
    problem: str = ""
    mean_wait_s: float = math.nan
    difference: float = math.nan
    explained: float = -math.inf
    explained_later: float = -math.inf
    chosen: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """It as a row of the table."""
        known = not self.problem
        return {
            "step": len(self.setting.changes),
            "settings": "; ".join(self.setting.changes.values()),
            "chosen": self.chosen,
            "mean_wait_s": self.mean_wait_s,
            "difference": self.difference,
            "explained": self.explained if known else math.nan,
            "explained_later": self.explained_later if known else math.nan,
            "problem": self.problem,
        }


class Change(NamedTuple):
    """One change of a setting: what it is of, in words, the rules that it changes, its machine."""

    kind: str
    words: str
    rules: dict[str, Any]
    cluster: Cluster | None = None

    def of(self, setting: Setting) -> Setting:
        """Return the setting with this change, too."""
        changes = {**setting.changes, self.kind: self.words}
        scheduler = setting.scheduler.but(**self.rules) if self.rules else setting.scheduler
        return Setting(scheduler, self.cluster or setting.cluster, changes)


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
    table : a row for each setting, in the order in which they were tried; the first has none.
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

    past, middle = recorded(workload).wait, workload.row_at(0.5)
    own = Setting(scheduler_of(scheduler, {}), cluster, {})
    wait = simulate(workload, own.scheduler, cluster=cluster).wait
    at_first = _apart(wait, past)

    def answer(setting: Setting) -> Tried:
        try:
            fits, found = _waits(workload, setting)
        except HpcgymError as error:
            return Tried(setting, str(error))
        now, before = _apart(found, past[fits]), at_first[fits]
        early = np.arange(len(workload))[fits] < middle
        sums = [(now[half].sum(), before[half].sum()) for half in (early, ~early)]
        early_share, late_share = (1 - after / first if first > 0 else 0.0 for after, first in sums)
        means = float(found.mean()), float(now.mean())
        return Tried(setting, "", *means, early_share, late_share)

    rows = [Tried(own, "", float(wait.mean()), float(at_first.mean()), 0.0, 0.0, True)]
    changes = changes_for(workload, own)
    best = rows[0]
    for _ in range(most):
        kinds = best.setting.changes
        asked = [one.of(best.setting) for one in changes if one.kind not in kinds]
        with progress("trying", len(asked)) as tell, ThreadPoolExecutor(processors_here()) as pool:
            for one in pool.map(answer, asked):
                tell("; ".join(one.setting.changes.values()))
                rows.append(one)
        tried = rows[len(rows) - len(asked) :]
        place = int(np.argmax([one.explained for one in tried])) if tried else 0
        if not tried or tried[place].explained < best.explained + _LEAST:
            break
        best = tried[place]._replace(chosen=True)
        rows[len(rows) - len(tried) + place] = best
    return pd.DataFrame([one.row for one in rows])


def _waits(workload: Workload, setting: Setting) -> tuple[NDArray[np.bool_], Ints]:
    """Return which jobs the machine of a setting holds, (n_jobs,), and their waits [s].

    Raises
    ------
    HpcgymError : it does not hold :data:`_MOST_LEFT_OUT` of them, or what the simulation raises.
    """
    fits, machine = np.ones(len(workload), np.bool_), setting.cluster
    if "machine" in setting.changes and machine.groups:
        needs = needs_of(workload, machine.resources)
        fits = units_held(needs, machine.capacity) >= needs[:, 0]
    elif "machine" in setting.changes:
        fits = workload.requested_processors <= machine.processors
    if (~fits).mean() > _MOST_LEFT_OUT:
        raise HpcgymError(f"{np.count_nonzero(~fits):,} jobs do not fit on this machine")
    jobs = workload if fits.all() else workload.take(fits)
    return fits, simulate(jobs, setting.scheduler, cluster=machine).wait


def _apart(wait: Ints, other: Ints) -> NDArray[np.float64]:
    """Return how far the waits of each job are apart."""
    apart: NDArray[np.float64] = np.abs(np.log((wait + _SHORT_S) / (other + _SHORT_S)))
    return apart


# --- What is tried --------------------------------------------------------------------------------


def changes_for(workload: Workload, own: Setting) -> list[Change]:
    """Return the changes that a site's own setting may need."""
    now = own.scheduler
    backfills = [Change("backfill", f"backfill {one}", {"backfill": one}) for one in _BACKFILL]
    orders = [Change("order", words, dict(rules)) for words, rules in _ORDERS.items()]
    limits = [
        Change("limit", words, {"quota": (*now.quota, *quotas)})
        for words, quotas in limits_of(workload)
    ]
    return [
        *_of_machine(own.cluster),
        *limits,
        *(one for one in backfills if one.rules["backfill"] != now.backfill),
        *(one for one in orders if one.rules["policy"] != now.policy),
    ]


def _of_machine(cluster: Cluster) -> Iterator[Change]:
    """Return smaller machines, and the same without partitions."""
    for share in _AWAY:
        words = f"{100 * share:.0f} % of the nodes out of service"
        if not cluster.groups:
            words = words.replace("nodes", "processors")
            yield Change(
                "machine", words, {}, Cluster(round(cluster.processors * (1 - share)) or 1)
            )
            continue
        counts = [round(group.nodes * (1 - share)) for group in cluster.groups]
        if sum(counts) not in (0, cluster.nodes):
            yield Change("machine", words, {}, with_counts(cluster, counts))
    if cluster.partitions:
        yield Change("machine", "any nodes for each job", {}, replace(cluster, partitions=()))


def limits_of(workload: Workload) -> Iterator[tuple[str, tuple[Quota, ...]]]:
    """Return limits as tight as the log's own past keeps them, each with what it is in words."""
    import pandas as pd

    one, seen = np.ones(len(workload), np.int64), list[Ints]()
    for column, name in (("user", "user"), ("group", "account"), ("queue", "QOS")):
        keys = workload.columns[COLUMNS[column]]
        keys = pd.factorize(keys)[0]
        if keys.max() == 0 or any(np.array_equal(keys, other) for other in seen):
            continue
        seen.append(keys)
        for bound, amount in (("processors", workload.requested_processors), ("jobs", one)):
            most = int(most_at_once(workload, keys, amount).max())
            words = f"at most {most:,} {bound} of each {name} run at once"
            yield words, (Quota.parse(f"{column}:{bound}={most}"),)
    names = called_in(workload, "partition")
    there = sorted({*names.tolist()} - {""})
    if len(there) > 1:
        _, keys = np.unique(names, return_inverse=True)
        most_of = most_at_once(workload, keys.reshape(-1), workload.requested_processors)
        each = dict(zip(np.unique(names).tolist(), most_of.tolist(), strict=True))
        quotas = (Quota((), (("partition", one),), processors=each[one]) for one in there)
        yield "no partition has more busy than the log shows at once", tuple(quotas)


def most_at_once(workload: Workload, keys: Ints, amount: Ints) -> Ints:
    """Return the most that ran at once in the past, of each key in order, (n_keys,) int64."""
    start = workload.submit_time + workload.wait_time
    time = np.concatenate([start + workload.run_time, start])  # of one time, ends first
    change = np.concatenate([-amount, amount])
    key = np.concatenate([keys, keys])
    order = np.lexsort((change > 0, time, key))
    total = np.cumsum(change[order])  # each key ends with nothing
    _, first = np.unique(key[order], return_index=True)
    most: Ints = np.maximum.reduceat(total, first)
    return most
