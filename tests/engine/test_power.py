"""Processors that are switched off: as the reference has them, and by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import usable
from few_jobs import few_jobs
from mistakes import mistakes_of
from pieces import same_in_pieces
from quota_strategies import quotas, with_queues
from restrictions import DRAWN
from same_results import agreed
from strategies import clusters, schedulers, workloads
from submission_strategies import chains, fitted

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster
from hpcgym.reference.power import STATES
from hpcgym.validation.validate import ScheduleError, validate_schedule
from hpcgym.workload.model import Workload

pytestmark = DRAWN
LUBLIN = hpcgym.load_workload("lublin:jobs=400,processors=64,seed=3,load=0.8")


def assert_accounts(result: hpcgym.Result) -> None:
    """Check what holds of the processor seconds and energies of every schedule."""
    cluster, metrics, seconds = result.cluster, result.metrics, dict(result.idle_seconds or {})
    assert {*seconds} == {*STATES}
    busy = int((result.workload.requested_processors * result.run_time).sum())
    span = int(result.end.max() - result.workload.submit_time.min())
    assert busy + sum(seconds.values()) == cluster.processors * span
    shutdown, boot = cluster.shutdown_power_w, cluster.boot_power_w
    switching = seconds["switching_off"] * (cluster.idle_power_w if shutdown is None else shutdown)
    switching += seconds["switching_on"] * (cluster.busy_power_w if boot is None else boot)
    parts = {
        "busy": busy * cluster.busy_power_w,
        "idle": seconds["idle"] * cluster.idle_power_w,
        "off": seconds["off"] * cluster.off_power_w,
        "switching": switching,
    }
    for name, joules in parts.items():
        assert metrics[f"energy_{name}_j"] == pytest.approx(joules, rel=1e-15)
    assert metrics["energy_j"] == pytest.approx(sum(parts.values()), rel=1e-15)
    assert metrics["makespan_s"] == span


@pytest.mark.parametrize("which", ["alone", "quota", "minutes", "follow"])
@settings(max_examples=120)
@given(data=st.data(), workload=workloads())
def test_schedules_are_those_of_the_reference(
    which: str, data: st.DataObject, workload: Workload
) -> None:
    cluster, rules = data.draw(clusters(workload.processors)), data.draw(schedulers(workload))
    rules |= {"passes": "per-timestamp", "hold": None}
    if rules["backfill"] == "conservative":
        rules["backfill"] = "depth:1"
    workload = with_queues(workload, [1, 2])
    if which in ("quota", "minutes"):
        rules["quota"] = data.draw(quotas(workload, by_time=which == "minutes"))[0]
    elif which == "follow":
        workload, rules["dependencies"], _ = data.draw(chains(workload))
        rules = fitted(rules)
    rules, proved = usable(rules) | {"cluster": cluster}, {"capacity", "energy"}
    result = agreed(workload, **rules)
    same_in_pieces(data.draw(st.integers(0, 10**6)), partial(hpcgym.simulate, workload, **rules))
    assert_accounts(result)
    delays = cluster.boot_time_s + cluster.shutdown_time_s > 0
    by_clock = rules["backfill"].startswith("slurm")
    if not (delays and (by_clock or which == "minutes")):
        proved |= {"events"}
    if not (delays and by_clock):
        proved |= {"progress"}
    proofs = {*validate_schedule(result)}
    assert proved <= proofs
    assert not (delays and {"reservations", "order", "backfilled"} & proofs)


@pytest.mark.parametrize("backfill", ["none", "easy", "depth:3", "slurm"])
def test_a_long_trace_agrees(backfill: str) -> None:
    """Many groups of idle processors, and queues; no look of slurm's is in step with the delays."""
    cluster = Cluster(64, shutdown_after_s=300, shutdown_time_s=120, boot_time_s=180)
    assert agreed(LUBLIN, cluster=cluster, backfill=backfill).start.max() > 0


# --- By hand -----------------------------------------------------------------------------------


def workload_of(processors: int, *jobs: tuple[int, int, int]) -> Workload:
    """Jobs as (submission, processors, run time), which they request."""
    submit, size, run = zip(*jobs, strict=True)
    return few_jobs(processors, submit, run, size)


def by_hand() -> hpcgym.Result:
    """Three processors: off after 10 s, 4 s on the way off, 20 s on the way on.

    processor 0  busy 0-100, idle -110, switched off -114, on -134, busy -144
    processor 1  idle 0-10, switched off -14, off -112, switched on -132, idle -134, busy -144
    processor 2  idle 0-10, switched off -14, off -144

    Job 1 comes at 112 s and needs two: processor 0, on top, became idle at 100 s and is on its way
    off since 110 s: off at 114 s, on at 134 s. Processor 1 is on at 132 s and waits 2 s idle.
    """
    powers = {"idle_power_w": 10, "busy_power_w": 100, "off_power_w": 1}
    cluster = Cluster(3, **powers, shutdown_after_s=10, shutdown_time_s=4, boot_time_s=20)
    return agreed(workload_of(3, (0, 1, 100), (112, 2, 10)), cluster=cluster, backfill="none")


def test_by_hand_fcfs() -> None:
    result = by_hand()
    assert result.start.tolist() == [0, 134]
    assert result.idle_seconds == {
        "idle": 2 * 10 + 10 + 2,  # processors 1 and 2 at first, 0 after job 0, 1 before job 1
        "switching_off": 3 * 4,
        "off": (112 - 14) + (144 - 14),  # processor 1 until it is called, processor 2 to the end
        "switching_on": 2 * 20,
    }
    metrics = result.metrics
    assert metrics["energy_switching_j"] == 12 * 10 + 40 * 100  # off as idle, on as busy
    assert metrics["energy_j"] == 12000 + 320 + 228 + 4120
    assert (metrics["mean_wait_s"], metrics["mean_bsld"]) == (11, (1 + 3.2) / 2)


#: A job that follows the second, which comes at 10, finds both on, and ends at 14. One processor is
#: off from 15 on; the other from 19 to 24, when the first comes, and on at 29.
FOLLOWS = few_jobs(
    *(2, [0, 10], [4, 4], [1, 1]),
    **{"preceding_job": [2, -1], "think_time": [10, -1], "job_number": [1, 2]},
)


@pytest.mark.parametrize(
    ("jobs", "switches", "rules", "expected"),
    [
        # Job 0 holds one of two until 100 s. Job 1 needs both and gets the reservation at 100 s.
        # Job 2, submitted at 50 s, would end at 100 s, so that it is backfilled; but the other
        # processor has been off since 5 s, so that it runs from 80 s to 130 s. Job 1 gets its
        # processors then, but that of job 0 has been off since 105 s: it starts at 160 s, 60 s
        # late. Job 3, too long to be backfilled at 60 s, comes last, both processors being on; it
        # is the head from 130 s on, when it is known that job 1 will end at 170 s
        (
            workload_of(2, (0, 1, 100), (40, 2, 10), (50, 1, 50), (60, 1, 51)),
            {"shutdown_after_s": 5, "boot_time_s": 30},
            {},
            {
                "start": [0, 160, 80, 170],
                "reserved_start": [-1, 100, -1, 170],
                "backfilled": [False, False, True, False],
                # at first; after job 0; while job 1 waits for the other; after job 1
                "idle": 5 + 5 + 30 + 5,
                "off": 45 + 25 + 46,
                "switching_on": 30 + 30,
            },
        ),
        # with a third processor: when job 3 comes, job 1 cannot start before 130 s
        (
            workload_of(3, (0, 1, 100), (40, 3, 10), (50, 1, 50), (60, 1, 60)),
            {"shutdown_after_s": 5, "boot_time_s": 30},
            {},
            {"start": [0, 180, 80, 90], "reserved_start": [-1, 100, -1, -1]},
        ),
        # the last idle second still counts as idle
        *(
            (
                workload_of(1, (0, 1, 100), (submit, 1, 5)),
                {"shutdown_after_s": 10, "boot_time_s": 60},
                {},
                {"start": [0, start]},
            )
            for submit, start in ((110, 110), (111, 171))
        ),
        # one processor runs jobs every 10 s: the other is never needed, and stays off
        (
            workload_of(2, *((time, 1, 5) for time in range(0, 1000, 10))),
            {"shutdown_after_s": 8, "boot_time_s": 60},
            {"backfill": "none"},
            {"start": [*range(0, 1000, 10)], "off": 995 - 8},
        ),
        (
            FOLLOWS,
            {"shutdown_after_s": 3, "shutdown_time_s": 2, "boot_time_s": 5},
            {"dependencies": "after"},
            {"start": [10, 29], "idle": 6, "off": 23, "switching_off": 4, "switching_on": 5},
        ),
    ],
)
def test_schedules_by_hand(
    jobs: Workload, switches: dict[str, int], rules: dict[str, Any], expected: dict[str, Any]
) -> None:
    result = agreed(jobs, cluster=Cluster(jobs.processors, **switches), **rules)
    assert result.idle_seconds is not None
    for name, values in expected.items():
        seconds = result.idle_seconds.get(name)
        assert (getattr(result, name).tolist() if seconds is None else seconds) == values, name


def validated(**change: Any) -> None:
    """Validate a schedule in which something is otherwise; what is found is a line."""
    result = by_hand()
    metrics = result.metrics
    wrong = replace(result, idle_seconds={**(result.idle_seconds or {}), **change})
    if "start" in change:
        wrong = replace(result, start=np.array(change["start"]))
    vars(wrong)["metrics"] = metrics
    try:
        validate_schedule(wrong)
    except ScheduleError as error:
        raise HpcgymError("; ".join(error.violations)) from None


def test_no_jobs() -> None:
    result = hpcgym.simulate(few_jobs(4, [], [], []), cluster=Cluster(4, shutdown_after_s=0))
    assert result.metrics["energy_j"] == 0


def test_more_processor_seconds_than_are_counted() -> None:
    workload = workload_of(1, (0, 1, 10), (2**40, 1, 10))
    most = (2**63 - 1) // (2**40 + 10)
    assert_accounts(hpcgym.simulate(workload, cluster=Cluster(most, shutdown_after_s=3)))


test_mistakes = mistakes_of(globals())
