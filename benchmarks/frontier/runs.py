"""The rules that are compared, and what is simulated with them: whole logs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcgym import Result, Scheduler, Workload, simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.benchmarks.studies.harness import load_jobs, same_jobs
from hpcgym.schedule.gains import felt
from hpcgym.schedule.measures import measures
from hpcgym.scheduler.backfilling import Hold
from hpcgym.study.tuning.trials import varied
from hpcgym.units import HOUR_S

# --- The rules that are compared ------------------------------------------------------------------

#: Name -> orders of the queue and of backfilling, and the run times that they look at.
ORDERS: dict[str, Scheduler] = {
    **{name: SCHEDULERS[name] for name in ("easy", "easy-sjbf", "easy++")},
    "easy, typical": Scheduler(backfill_order="spf", policy_estimate="typical-ratio"),
    **{name: SCHEDULERS[name] for name in ("saf", "saf-typical")},
}
#: Orders that are shown beside the others, combined with nothing, and not chosen. The numbers of
#: those that age were found by a search over the early halves of six logs; the last says what
#: predictions could reach.
BESIDE: dict[str, Scheduler] = {
    **{name: SCHEDULERS[name] for name in ("f1", "wfp3", "aged", "aged-safe", "evolved")},
    "saf, clairvoyant": Scheduler(
        "saf", backfill_order="spf", estimate="clairvoyant", policy_estimate="clairvoyant"
    ),
}
#: Hours after which a job goes to the head of the queue; None: never.
THRESHOLDS_H = (None, 20, 40, 80, 160)
#: Parts of the machine that long jobs hold back.
SHARES = (0.0, 0.05, 0.1, 0.14, 0.2)
BACKFILL = ("easy", "until-shadow")

REFERENCE = "easy"


class Rule(NamedTuple):
    """One of them."""

    order: str
    threshold_h: int | None = None
    share: float = 0.0
    backfill: str = "easy"

    @property
    def name(self) -> str:
        """What tables call it."""
        parts = [self.order]
        if self.threshold_h is not None:
            parts.append(f"threshold {self.threshold_h} h")
        if self.share:
            parts.append(f"hold {self.share:g}")
        if self.backfill != "easy":
            parts.append("until shadow")
        return ", ".join(parts)

    @property
    def scheduler(self) -> Scheduler:
        """What :func:`hpcgym.simulate` takes."""
        order = {**ORDERS, **BESIDE}[self.order]
        by = "requested" if order.policy_estimate == "requested" else "both"
        return order.but(
            threshold=None if self.threshold_h is None else self.threshold_h * HOUR_S,
            hold=Hold(self.share, by=by) if self.share else order.hold,
            backfill=self.backfill,
        )


def _combined(
    orders: Iterable[str], thresholds_h: Iterable[int | None], shares: Iterable[float]
) -> list[Rule]:
    """Return the combinations; the oldest first needs no threshold."""
    rules = [Rule(*each) for each in product(orders, thresholds_h, shares, BACKFILL)]
    return [
        rule for rule in rules if rule.threshold_h is None or ORDERS[rule.order].policy != "fcfs"
    ]


#: All combinations; a few of them, to see how the study looks.
ALL = _combined(ORDERS, THRESHOLDS_H, SHARES)
QUICK = _combined(("easy", "saf"), (None, 80), (0.0, 0.1))
#: Those that have names, in the table that says what is known already.
NAMED = [
    *map(Rule, ("easy", "easy-sjbf", "easy++", "f1", "wfp3", "saf")),
    *(Rule("saf", 80), Rule("saf-typical"), Rule("saf-typical", 80), Rule("saf-typical", 40)),
    *(Rule("aged"), Rule("aged-safe"), Rule("evolved", 80), Rule("saf, clairvoyant")),
]


# --- The simulations ------------------------------------------------------------------------------

#: Part of a log -> whether a submission belongs to it, by the share of the log's time before it.
PARTS = {"whole": (0.0, 1.0), "early": (0.0, 0.5), "late": (0.5, 1.0)}
#: Bounds of the classes of jobs, the upper ones included: run times [h], parts of the machine.
RUN_TIMES_H = {"below 1 h": (0, 1), "1 to 6 h": (1, 6), "above 6 h": (6, np.inf)}
WIDTHS = {"up to 1/16": (0, 1 / 16), "up to 1/4": (1 / 16, 1 / 4), "above 1/4": (1 / 4, 1)}


def load_log(source: str, recipe: str, first_jobs: int | None = None) -> Workload:
    """Return a log, cleaned by a recipe; only its first jobs, if that many are named."""
    workload = load_jobs(source, clean=recipe)
    if first_jobs is not None:
        workload = workload.take(slice(0, first_jobs))
    return workload.take(slice(None), name=f"{workload.name} {recipe}")


def simulate_rule(task: dict[str, Any]) -> dict[str, Any]:
    """Simulate one rule on all variants of a log.

    Parameters
    ----------
    task : "source" of a log, "recipe", "first_jobs" (None: all) and "jobs_sha256", their hash;
        "rule", the fields of a :class:`Rule`; "variants", pairs of the first week and the seed of
        jitter.

    Returns
    -------
    "rows" : for each variant and part of :data:`PARTS` what :func:`measures_by_class` returns, with
        "start_week", "seed" and "part".
    "late" : what the jobs of the late part felt under the first variant, the fields of
        :class:`hpcgym.schedule.gains.Felt` as lists and numbers.

    Raises
    ------
    HpcgymError : the log cannot be read here, or has other jobs.
    """
    of = task["source"], task["recipe"], task["first_jobs"]
    workload = same_jobs(load_log, task["jobs_sha256"], *of)
    scheduler = Rule(*task["rule"]).scheduler
    first, last = int(workload.submit_time[0]), int(workload.submit_time[-1])
    rows = []
    late: list[Any] = []
    for start_week, seed in task["variants"]:
        result = simulate(varied(workload, start_week, seed), scheduler)
        when = (result.workload.submit_time - first) / (last - first)
        for part, (low, high) in PARTS.items():
            jobs = (when >= low) & ((when < high) | (high == 1.0))
            row = {"start_week": start_week, "seed": seed, "part": part}
            rows.append({**row, **measures_by_class(result, jobs)})
            if part == "late" and not late:
                number, bsld, *waits = felt(result, jobs)
                late = [number.tolist(), bsld.tolist(), *waits]
    return {"rows": rows, "late": late}


def measures_by_class(result: Result, jobs: NDArray[np.bool_]) -> dict[str, float]:
    """Return what a site would feel of some jobs of a schedule.

    Parameters
    ----------
    jobs : (n_jobs,) which ones.

    Returns
    -------
    What :func:`hpcgym.schedule.measures.measures` tells; the utilisation of the whole schedule; and
    the mean wait for each class of run times and of widths, nan without such jobs.
    """
    felt = measures(result, jobs) | {"utilization": float(result.metrics["utilization"])}
    share = result.workload.requested_processors / result.cluster.processors
    for values, classes in ((result.run_time / HOUR_S, RUN_TIMES_H), (share, WIDTHS)):
        for name, (low, high) in classes.items():
            waits = result.wait[jobs & (values > low) & (values <= high)] / HOUR_S
            felt[f"mean_wait_h, {name}"] = float(waits.mean()) if len(waits) else np.nan
    return felt
