"""Orders of the queue: the higher the score of a job, the earlier it comes (rules 4 and 5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from hpcgym.reference.jobs import Job

Score = Callable[[Job, int], float]


def weighted(weights: Sequence[float]) -> Score:
    """Rule 5."""
    w_q, w_p, w_wait, w_ratio, w_exp, w_area = (float(w) for w in weights)

    def score(job: Job, now: int) -> float:
        q, p = job.processors, job.requested
        at_submission = w_q * q + w_p * p + w_ratio * (p / q) + w_exp + w_area * (p * q)
        if w_wait * p + w_exp == 0:
            return at_submission
        d = 1 / w_wait if w_exp == 0 else p / (w_wait * p + w_exp)
        return at_submission + (now - job.submit) / d

    return score


def wfp3(job: Job, now: int) -> float:
    """Return (wait / p~)^3 q (Tang et al. 2009)."""
    x = (now - job.submit) / job.requested
    return x * x * x * job.processors


def unicef(job: Job, now: int) -> float:
    """Return wait / (log2(q) p~) (Tang et al. 2009)."""
    wait = now - job.submit
    if job.processors == 1:  # log2(1) = 0: first of all, once it has waited
        return math.inf if wait > 0 else 0.0
    return wait / (math.log2(job.processors) * job.requested)


def _log10_submit(job: Job) -> float:
    return math.log10(max(job.submit - job.first_submit, 1))


def f1(job: Job, now: int) -> float:
    """Return the score F1 of Carastan-Santos and de Camargo 2017."""
    return -(math.log10(job.requested) * job.processors + 870 * _log10_submit(job))


def f2(job: Job, now: int) -> float:
    """Return the score F2 of Carastan-Santos and de Camargo 2017."""
    return -(math.sqrt(job.requested) * job.processors + 25600 * _log10_submit(job))


def f3(job: Job, now: int) -> float:
    """Return the score F3 of Carastan-Santos and de Camargo 2017."""
    return -(job.requested * job.processors + 6860000 * _log10_submit(job))


def f4(job: Job, now: int) -> float:
    """Return the score F4 of Carastan-Santos and de Camargo 2017."""
    return -(job.requested * math.sqrt(job.processors) + 530000 * _log10_submit(job))


POLICIES: dict[str, Score] = {
    "fcfs": lambda job, now: now - job.submit,
    "lcfs": lambda job, now: -(now - job.submit),
    "spf": lambda job, now: -job.requested,
    "sjf": lambda job, now: -job.requested,
    "lpf": lambda job, now: job.requested,
    "sqf": lambda job, now: -job.processors,
    "lqf": lambda job, now: job.processors,
    "saf": lambda job, now: -(job.requested * job.processors),
    "laf": lambda job, now: job.requested * job.processors,
    "srf": lambda job, now: -(job.requested / job.processors),
    "lrf": lambda job, now: job.requested / job.processors,
    "sexp": lambda job, now: -1 - (now - job.submit) / job.requested,
    "lexp": lambda job, now: 1 + (now - job.submit) / job.requested,
    "wfp3": wfp3,
    "unicef": unicef,
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
}


def score_of(policy: str | Sequence[float] | Score) -> Score:
    """Return the score that a name, six weights or a function stands for."""
    if isinstance(policy, str):
        return POLICIES[policy]
    return policy if callable(policy) else weighted(policy)


def is_submission_order(order: Any) -> bool:
    """Whether an order is that of submission: "fcfs", or a positive weight of waiting alone."""
    if isinstance(order, str) or callable(order):
        return bool(order == "fcfs")
    return bool(order[2] > 0) and not any(w for i, w in enumerate(order) if i != 2)


def changes_with_time(policy: Any) -> bool:
    """Whether waiting alone can change a policy's order."""
    if hasattr(policy, "begin"):
        return True
    if isinstance(policy, str) or callable(policy):
        return policy in ("lexp", "sexp", "wfp3", "unicef")
    others = any(w for i, w in enumerate(policy) if i != 2)
    return policy[4] != 0 or (policy[2] != 0 and others)


def looks_at_times(policy: Any) -> bool:
    """Whether a policy depends on the requested time, or on what stands for it."""
    if isinstance(policy, str) or callable(policy):
        return policy not in ("fcfs", "lcfs", "sqf", "lqf")
    return any(w for i, w in enumerate(policy) if i not in (0, 2))
