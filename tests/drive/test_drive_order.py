"""The order of a queue: that of the slow simulator, and of formulas worked out in Python."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from drawing import given, settings
from drawing import strategies as st
from expression_strategies import STATE, names_in, networks, slow_order, trees
from mistakes import mistakes_of
from strategies import POLICY, workloads

import hpcgym
from hpcgym.drive.driving import order_rules
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import PoolSimulation
from hpcgym.scheduler.policies.features import RUNS_LOOKED_AT
from hpcgym.scheduler.policies.networks import Network
from hpcgym.simulation.driver import order_of
from hpcgym.workload.model import Workload

EPOCH = 1_700_000_000
LATER = st.sampled_from([0, 1, 7, 100, 5000])


@settings(max_examples=200)
@given(workloads(20), POLICY, st.sampled_from([None, 0, 5, 2000]), LATER)
def test_as_the_slow_simulator_has_it(
    jobs: Workload, policy: Any, threshold: int | None, later: int
) -> None:
    if not isinstance(policy, str) and not any(policy):
        policy = "fcfs"
    jobs = _of_today(jobs)
    now = int(jobs.submit_time.max()) + later
    rules = order_rules(hpcgym.Scheduler(policy=policy, threshold=threshold))
    usual = {"estimate": "requested", "correction": "requested", "policy_estimate": "requested"}
    usual |= {"backfill": "none", "backfill_order": "fcfs", "passes": "per-timestamp"}
    given: Any = {**usual, "policy": policy, "threshold": threshold}
    slow = PoolSimulation(jobs_of(jobs), jobs.processors, **given)
    slow.queue = list(slow.jobs)
    for job in slow.queue:
        job.policy_time = job.requested
    expected = [job.number for job in slow.primary_order(now)]
    assert order_of(jobs, rules, now).tolist() == expected


def _of_today(jobs: Workload) -> Workload:
    """The same jobs by a clock that began in 1970."""
    later = jobs.with_columns(submit_time=jobs.submit_time + EPOCH)
    return replace(later, first_submit_s=int(later.submit_time[0]))


FORMULAS = {
    "wait ** 2 / requested": lambda q, p, w: w**2 / p,
    "area if wait < 86400 else 0": lambda q, p, w: q * p if w < 86400 else 0,
    "20 * wait - requested * processors": lambda q, p, w: 20 * w - p * q,
    "log(1 + wait) - processors": lambda q, p, w: math.log(1 + w) - q,
}


@settings(max_examples=60)
@given(workloads(15), st.sampled_from(sorted(FORMULAS)), LATER)
def test_expressions(jobs: Workload, text: str, later: int) -> None:
    jobs = _of_today(jobs)
    now = int(jobs.submit_time.max()) + later
    order = order_of(jobs, order_rules(hpcgym.Scheduler(policy=text)), now)
    columns = (jobs.requested_processors, jobs.requested_time, now - jobs.submit_time)
    scores = [FORMULAS[text](*map(int, row)) for row in zip(*columns, strict=True)]
    # equal but for rounding is equal; then who came first
    ordered = [scores[row] for row in order.tolist()]
    assert sorted(order.tolist()) == list(range(len(jobs)))
    assert all(a > b or math.isclose(a, b, rel_tol=1e-12) for a, b in pairwise(ordered))


KNOWN = [name for name in STATE if name not in RUNS_LOOKED_AT]
OF_STATE = st.one_of(
    st.sampled_from(KNOWN).map(lambda name: f"(wait + area) * ({name} * 7 % 3 - 1)"),
    trees(6, [*KNOWN, "wait", "processors", "0.25", "3"]).map(lambda text: f"{text} + 0 * fits"),
    networks().filter(lambda order: not re.search("_run|hour|f4", names_in(order))),
)


@settings(max_examples=200)
@given(workloads(20), OF_STATE, LATER, st.integers(0, 2**16))
def test_orders_by_the_state_know_who_runs(
    jobs: Workload, drawn: Network | str, later: int, seed: int
) -> None:
    """As the slow simulator has it, whose queue and running jobs are the same."""
    rng = np.random.default_rng(seed)
    jobs = replace(_of_today(jobs), header={"UnixStartTime": ["0"]})
    now = int(jobs.submit_time.max()) + 1 + later
    runs = rng.integers(0, 2, len(jobs)) > 0
    start = rng.integers(jobs.submit_time, now + 2)  # some are beyond their limits by now
    jobs = jobs.with_columns(wait_time=np.where(runs, start - jobs.submit_time, -1))
    size = int(jobs.requested_processors[runs].sum()) + jobs.processors
    slow = PoolSimulation(jobs_of(jobs), size, policy=slow_order(drawn, jobs))
    slow.queue = [job for job in slow.jobs if not runs[job.number]]
    slow.running = [job for job in slow.jobs if runs[job.number]]
    for job in slow.jobs:
        job.policy_time = job.requested
        job.start = min(int(start[job.number]), now - 1)
        job.prediction = max(job.requested, now + 1 - job.start)
    slow.find_state(now)
    expected = [job.number for job in slow.primary_order(now)]
    rules = order_rules(hpcgym.Scheduler(policy=drawn))
    order = order_of(jobs.take(~runs), rules, now, jobs.take(runs), size)
    assert np.flatnonzero(~runs)[order].tolist() == expected


@settings(max_examples=100)
@given(workloads(30), LATER, st.integers(0, 2**16))
def test_orders_by_what_is_learned_know_who_has_ended(
    jobs: Workload, later: int, seed: int
) -> None:
    """Run times as a formula has them, worked out here from the jobs that have ended."""
    rng = np.random.default_rng(seed)
    n = len(jobs)
    ended = rng.integers(0, 2, n) > 0
    wait, run = rng.integers(0, 5000, n), np.minimum(jobs.run_time, jobs.requested_time)
    jobs = jobs.with_columns(wait_time=np.where(ended, wait, -1), run_time=run)
    past, waiting = jobs.take(ended & (run > 0)), jobs.take(~ended)
    now = int((jobs.submit_time + wait + run).max()) + 1 + later
    start = past.submit_time + past.wait_time
    end = start + past.run_time
    of_all, decayed, lasts = [0.0, 0.0], {}, {}
    for k in np.lexsort((start, end)).tolist():
        user, width = int(past.user_id[k]), int(past.requested_processors[k])
        ratio = math.log(past.run_time[k] / past.requested_time[k])
        of_all = [of_all[0] + 1, of_all[1] + ratio]
        for key in (user, (user, width)):
            count, total = decayed.get(key, (0.0, 0.0))
            decayed[key] = 0.95 * count + 1, 0.95 * total + ratio
        lasts.setdefault(user, []).append(float(past.run_time[k]))
    typical, last = [], []
    for user, width, requested in zip(
        waiting.user_id.tolist(),
        waiting.requested_processors.tolist(),
        waiting.requested_time.tolist(),
        strict=True,
    ):
        count, total = decayed.get(user, (0.0, 0.0))
        of_user = (total + of_all[1] / max(of_all[0], 1)) / (count + 1)
        count, total = decayed.get((user, width), (0.0, 0.0))
        ratio = math.exp((of_user + (total + of_user) / (count + 1)) / 2)
        typical.append(min(max(int(requested * ratio), 1), requested))
        last.append(lasts.get(user, [requested])[-1])
    rules = hpcgym.Scheduler("sjf", policy_estimate="typical-ratio")
    for rule, expected in ((rules, typical), (hpcgym.Scheduler("-last_run"), last)):
        order = order_of(waiting, order_rules(rule), now, past=past)
        assert order.tolist() == np.argsort(expected, kind="stable").tolist()


def test_an_empty_queue() -> None:
    none = Workload.from_columns({"submit_time": []}, processors=4)
    assert order_of(none, order_rules(hpcgym.Scheduler("saf")), 5).tolist() == []


test_mistakes = mistakes_of(globals())
