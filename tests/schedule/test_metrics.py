"""Metrics equal those worked out by hand, and those counted second by second."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import workloads

import hpcgym
import hpcgym.study.sweep.experiment
from hpcgym.report.tables import in_order, text_of
from hpcgym.schedule import metrics
from hpcgym.schedule.metrics import bsld, processors_in_use, queue_length, slowdown
from hpcgym.schedule.result import Result
from hpcgym.workload.model import Workload


@pytest.fixture(scope="module")
def result() -> Result:
    """Four jobs on four processors under EASY.

    A fills the machine to 100 s. Then B starts, C does not fit, and D goes ahead of it. B ends at
    105 s, C starts, and is killed at its requested time.
    """
    requested = [100, 20, 600, 9000]
    workload = few_jobs(4, [0, 10, 10, 20], [100, 5, 1000, 8000], [4, 2, 3, 1], requested)
    result = hpcgym.simulate(workload, "easy", cluster=hpcgym.Cluster(4, 100.0, 250.0))
    assert result.start.tolist() == [0, 100, 105, 100]
    return result


BSLD = [1.0, 95 / 10, 695 / 600, 8080 / 8000]
BUSY = 4 * 100 + 2 * 5 + 3 * 600 + 8000  # processor seconds


def test_all_metrics_by_hand(result: Result) -> None:
    ordered = sorted(BSLD)
    assert result.metrics == pytest.approx(
        {
            "jobs": 4,
            "mean_bsld": sum(BSLD) / 4,
            "max_bsld": 9.5,
            "rms_bsld": math.sqrt(sum(value**2 for value in BSLD) / 4),
            "median_bsld": (ordered[1] + ordered[2]) / 2,
            # percentiles lie on straight lines between the values
            "p95_bsld": ordered[2] + 0.85 * (ordered[3] - ordered[2]),
            "p99_bsld": ordered[2] + 0.97 * (ordered[3] - ordered[2]),
            "mean_bsld_short": (1 + 9.5) / 2,
            "mean_bsld_medium": 695 / 600,
            "mean_bsld_long": 1.01,
            "mean_slowdown": (1 + 95 / 5 + 695 / 600 + 1.01) / 4,
            "mean_wait_s": (0 + 90 + 95 + 80) / 4,
            "max_wait_s": 95,
            "p99_wait_s": 90 + 0.97 * (95 - 90),
            "area_weighted_wait_s": (10 * 90 + 1800 * 95 + 8000 * 80) / BUSY,
            "mean_response_s": (100 + 95 + 695 + 8080) / 4,
            "max_response_s": 8080,
            "utilization": BUSY / (4 * 8100),
            "makespan_s": 8100,
            "mean_queue_length": (90 + 95 + 80) / 8100,
            "max_queue_length": 3,
            "backfilled_share": 0.25,
            "starved_share": math.nan,  # without a threshold nobody says who starves
            "promises_broken": 0.0,
            "max_promise_delay_s": 0,
            "killed_jobs": 1,
            "energy_busy_j": BUSY * 250.0,
            "energy_idle_j": (4 * 8100 - BUSY) * 100.0,
            "energy_off_j": 0.0,
            "energy_switching_j": 0.0,
            "energy_j": BUSY * 250.0 + (4 * 8100 - BUSY) * 100.0,
        },
        rel=1e-14,
        nan_ok=True,
    )


def test_metrics_are_plain_numbers(result: Result) -> None:
    whole = {"jobs", "makespan_s", "max_queue_length", "killed_jobs", "max_wait_s"}
    whole |= {"max_response_s", "max_promise_delay_s"}
    kinds = {name: type(value) for name, value in result.metrics.items()}
    assert kinds == {name: int if name in whole else float for name in kinds}


def test_starved_jobs_waited_longer_than_the_threshold(result: Result) -> None:
    for threshold, share in ((79, 0.75), (80, 0.5), (90, 0.25), (95, 0.0)):
        again = hpcgym.simulate(result.workload, "easy", threshold=threshold)
        assert again.metrics["starved_share"] == share


#: 1 waits for 0, to 100 s, and 3 for all. 2 starts before both if it is thought to run for 50 s.
ROWS = few_jobs(4, [0, 1, 2, 3], [100, 10, 150, 5], [3, 4, 1, 4], [100, 10, 500, 5])
BREAKING = {"relax": "1d", "candidate_estimate": [1, 1, 50, 1]}


def test_promises_that_are_broken_by_hand() -> None:
    easy, relaxed = hpcgym.simulate(ROWS, "easy"), hpcgym.simulate(ROWS, "easy", **BREAKING)
    assert easy.reserved_start.tolist() == [-1, 100, 110, 610]
    assert easy.start.tolist() == [0, 100, 110, 260]
    assert (easy.metrics.promises_broken, easy.metrics.max_promise_delay_s) == (0.0, 0)
    assert relaxed.start.tolist() == [0, 152, 2, 162]  # 1 52 s late; 3 got its own promise then
    assert relaxed.reserved_start.tolist() == [-1, 100, -1, 162]
    assert relaxed.metrics.promises_broken == 0.5
    assert relaxed.metrics.max_promise_delay_s == 52
    for rules in ({"backfill": "none"}, {"dispatcher": "sjf-list"}):  # nothing is promised
        metrics = hpcgym.simulate(ROWS, **rules).metrics
        assert math.isnan(metrics.promises_broken)
        assert math.isnan(metrics.max_promise_delay_s)


@given(workloads())
def test_easy_with_requested_times_keeps_its_promises(log: Workload) -> None:
    result = hpcgym.simulate(log, "easy")
    assert result.metrics.promises_broken == 0 or not (result.reserved_start >= 0).any()


def test_step_functions_by_hand(result: Result) -> None:
    times, lengths = queue_length(result)
    assert times.tolist() == [0, 10, 20, 100, 105]
    assert lengths.tolist() == [0, 2, 3, 1, 0]
    times, busy = processors_in_use(result)
    assert times.tolist() == [0, 100, 105, 705, 8100]
    assert busy.tolist() == [4, 3, 4, 1, 0]


def test_bounded_slowdown() -> None:
    wait, run = np.array([0, 10, 10, 90]), np.array([1, 1, 10, 10])
    assert bsld(wait, run).tolist() == [1.0, 1.1, 2.0, 10.0]
    assert bsld(wait, run, tau=1).tolist() == [1.0, 11.0, 2.0, 10.0]
    assert bsld(wait, run, tau=100).tolist() == [1.0, 1.0, 1.0, 1.0]
    assert slowdown(wait, run).tolist() == [1.0, 11.0, 2.0, 10.0]


@settings(max_examples=100)
@given(workloads(), st.sampled_from(["easy", "fcfs", "saf", "conservative"]))
def test_step_functions_and_energy_by_brute_force(workload: Workload, scheduler: str) -> None:
    cluster = hpcgym.Cluster(workload.processors, idle_power_w=0.1, busy_power_w=1 / 3)
    result = hpcgym.simulate(workload, scheduler, cluster=cluster)
    submit, start, end = workload.submit_time, result.start, result.end
    size = workload.requested_processors
    times, lengths = queue_length(result)
    assert times.tolist() == sorted({*submit.tolist(), *start.tolist()})
    assert lengths.tolist() == [int(((submit <= t) & (t < start)).sum()) for t in times]
    times, busy = processors_in_use(result)
    assert times.tolist() == sorted({*start.tolist(), *end.tolist()})
    assert busy.tolist() == [int(size[(start <= t) & (t < end)].sum()) for t in times]

    metrics = result.metrics
    busy_s = sum(int(n) * int(dt) for n, dt in zip(busy[:-1], np.diff(times), strict=True))
    span = max(end.tolist()) - min(submit.tolist())
    assert metrics["energy_busy_j"] == busy_s * cluster.busy_power_w
    idle_s = cluster.processors * span - busy_s
    assert metrics["energy_idle_j"] == idle_s * cluster.idle_power_w
    assert metrics["energy_j"] == metrics["energy_busy_j"] + metrics["energy_idle_j"]
    assert metrics["utilization"] * cluster.processors * span == pytest.approx(busy_s, rel=1e-15)
    waiting = sum((start - submit).tolist())
    assert metrics["mean_queue_length"] == pytest.approx(waiting / span, rel=1e-15)
    assert metrics["max_queue_length"] == lengths.max()


def test_more_processor_seconds_than_an_int64_holds() -> None:
    """Millennia of a machine of a million processors: exact all the same."""
    n, processors, length = 8, 2**20 + 1, 2**44 + 1
    workload = few_jobs(processors, [0] * n, [length] * n, [processors] * n)
    metrics = hpcgym.simulate(workload, "easy").metrics
    assert n * processors * length > 2**63
    assert metrics["utilization"] == 1.0
    assert metrics["energy_idle_j"] == 0.0
    assert metrics["energy_busy_j"] == n * processors * length * 358.0


def test_no_jobs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = hpcgym.simulate(few_jobs(4, [], [], []), "easy")
        metrics = result.metrics
        steps = [len(part) for part in (*queue_length(result), *processors_in_use(result))]
    assert steps == [0] * 4
    full = hpcgym.simulate(hpcgym.load_workload("lublin:jobs=5,processors=4"), "easy").metrics
    assert list(metrics) == list(full)
    zeros = {"jobs", "killed_jobs", "backfilled_share", "makespan_s", "max_queue_length"}
    zeros |= {f"energy_{what}j" for what in ("", "busy_", "idle_", "off_", "switching_")}
    for name, value in metrics.items():
        assert value == 0 if name in zeros else math.isnan(value), name


def test_classes_without_jobs_have_no_mean() -> None:
    workload = few_jobs(4, [0, 0, 0], [599, 600, 7199], [1, 1, 1])
    metrics = hpcgym.simulate(workload, "easy").metrics
    assert metrics["mean_bsld_short"] == metrics["mean_bsld_medium"] == 1.0
    assert math.isnan(metrics["mean_bsld_long"])


def test_a_metric_is_added_in_one_place(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    share = metrics.Metric(
        "waited_share", "waited", "%", metrics.LESS, 100, lambda f: float((f.wait > 0).mean())
    )
    monkeypatch.setattr(metrics, "METRICS", (*metrics.METRICS, share))
    computed = metrics.compute_metrics(result)
    assert computed["waited_share"] == (result.wait > 0).mean()
    shown = in_order(computed)[-1]
    assert (shown.heading, text_of(shown, 0.5)) == ("waited (%)", text_of(share, 0.5))
    assert "waited_share" in hpcgym.study.sweep.experiment.known_metrics()
