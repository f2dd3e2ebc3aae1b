"""Reservations for the first K jobs that wait, by hand and against what lies on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import DEPTHS, POLICY, workloads

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload


def jobs(*rows: tuple[int, int, int]) -> Workload:
    """Return jobs by submission, processors and run time, which they request, on 4 processors."""
    submit, processors, run = zip(*rows, strict=True)
    return few_jobs(4, submit, run, processors, name="by hand")


#: three in a row on three of the processors, one that wants all at 30 s, one for 40 s on one
FIVE = jobs((0, 3, 10), (1, 3, 10), (2, 3, 10), (3, 4, 5), (4, 1, 40))


@pytest.mark.parametrize(
    ("backfill", "starts"),
    [
        ("none", [0, 10, 20, 30, 35]),
        ("easy", [0, 10, 20, 44, 4]),
        ("depth:2", [0, 10, 20, 44, 4]),  # beside both that have reservations one is left
        ("depth:3", [0, 10, 20, 30, 35]),
        ("conservative", [0, 10, 20, 30, 35]),
    ],
)
def test_by_hand(backfill: str, starts: list[int]) -> None:
    assert hpcgym.simulate(FIVE, backfill=backfill).start.tolist() == starts


def test_the_second_that_waits_is_not_delayed() -> None:
    """From 3 on one processor is extra beside the head; for 20 s it would delay the third job."""
    workload = jobs((0, 3, 10), (1, 3, 10), (2, 4, 5), (3, 1, 20))
    easy = hpcgym.simulate(workload, backfill="easy")
    assert easy.start.tolist() == [0, 10, 23, 3]  # extra beside the head, and the third waits on
    for backfill in ("depth:2", "depth:9", "conservative"):
        assert hpcgym.simulate(workload, backfill=backfill).start.tolist() == [0, 10, 20, 25]


@settings(max_examples=100)
@given(workloads(), POLICY, POLICY)
def test_a_depth_of_one_is_easy_in_the_slow_simulator_too(
    workload: Workload, policy: Any, order: Any
) -> None:
    rules = {"policy": policy, "backfill_order": order}
    one, easy = (
        simulate_pool(jobs_of(workload), workload.processors, backfill=backfill, **rules)
        for backfill in ("depth:1", "easy")
    )
    assert [job.start for job in one] == [job.start for job in easy]
    assert [job.reserved_start for job in one] == [job.reserved_start for job in easy]


@settings(max_examples=50)
@given(workloads(), st.sampled_from([2, 3, 8]))
def test_what_is_promised_is_kept(workload: Workload, depth: int) -> None:
    result = hpcgym.simulate(workload, backfill=depth)
    hpcgym.validate_schedule(result)
    promised = result.reserved_start >= 0
    assert (result.start[promised] <= result.reserved_start[promised]).all()


def test_slurm_by_hand() -> None:
    """What could start beside the first at 40 does so at the next multiple of 30, or never."""
    workload = jobs((0, 2, 300), (10, 4, 100), (40, 1, 50), (70, 1, 240), (95, 1, 10))
    # the fourth would end at 330 and delay the second; the fifth comes in time for the pass at 120
    assert hpcgym.simulate(workload, backfill="slurm").start.tolist() == [0, 300, 60, 400, 120]
    slow = hpcgym.simulate(workload, backfill="slurm:bf_interval=600")
    assert slow.start.tolist() == [0, 300, 400, 400, 400]
    first = hpcgym.simulate(workload, backfill="slurm:bf_max_job_test=1")
    assert first.start.tolist() == [0, 300, 400, 400, 400]
    # without a reservation for the second the fourth starts as well
    near = hpcgym.simulate(workload, backfill="slurm:bf_window=1")
    assert near.start.tolist() == [0, 330, 60, 90, 120]


@pytest.mark.slow
@settings(max_examples=50)
@given(workloads(), st.data())
def test_a_simulation_with_passes_by_the_clock_goes_on_from_the_middle(
    workload: Workload, data: st.DataObject
) -> None:
    workload = workload.with_columns(job_number=np.arange(len(workload)))
    rules: dict[str, Any] = {
        "policy": data.draw(st.sampled_from(["fcfs", "wfp3", "saf", "wait ** 2 / requested"])),
        "backfill": data.draw(st.sampled_from([name for name in DEPTHS if "slurm" in name])),
        "correction": data.draw(st.sampled_from(["requested", "incremental"])),
        "estimate": data.draw(st.sampled_from(["requested", "clairvoyant"])),
    }
    result = hpcgym.simulate(workload, **rules)
    hpcgym.validate_schedule(result)
    begin = int(data.draw(st.sampled_from([*workload.submit_time, *result.end]))) + data.draw(
        st.sampled_from([0, 1, 29, 30, 31])
    )
    if (result.end < begin).all() or begin <= workload.submit_time.min():
        return
    part = hpcgym.continued(result, begin)
    later = hpcgym.simulate(part, **rules)
    assert later.start.tolist() == result.start[part.job_number].tolist()


@settings(max_examples=200)
@given(
    workloads(),
    st.sampled_from([name for name in DEPTHS if "slurm" in name]),
    st.sampled_from([0.1, 1.0, 20.0]),
)
def test_orders_are_worked_out_anew_at_passes_by_the_clock(
    workload: Workload, backfill: str, scale: float
) -> None:
    """An order that changes as jobs wait, as priorities of Slurm do up to PriorityMaxAge."""
    text = f"1000 * min(wait / 400, 1) + {scale} * wait / requested ** 0.5 + 30 * processors"
    result = hpcgym.simulate(workload, policy=text, backfill=backfill)
    hpcgym.validate_schedule(result)

    def score(job: Any, now: int) -> float:
        wait = float(now - job.submit)
        aged = 1000 * min(wait / 400, 1) + scale * wait / job.requested**0.5
        return float(aged + 30 * job.processors)

    slow = simulate_pool(jobs_of(workload), workload.processors, policy=score, backfill=backfill)
    assert result.start.tolist() == [job.start for job in slow]


def test_at_an_event_all_start_that_are_first_and_fit() -> None:
    """Also where a pass that back-fills falls on the same second, and looks at one job alone."""
    workload = jobs((0, 4, 30), (1, 1, 100), (2, 1, 100), (3, 1, 100))
    result = hpcgym.simulate(workload, backfill="slurm:bf_max_job_test=1")
    assert result.start.tolist() == [0, 30, 30, 30]
    hpcgym.validate_schedule(result)


def test_settings_of_slurm() -> None:
    assert Scheduler(backfill="slurm:bf_interval=30").backfill == "slurm"
    assert Scheduler(backfill=SlurmBackfill(60)).backfill == "slurm:bf_interval=60"  # type: ignore[arg-type]
    assert Scheduler(backfill="slurm:bf_max_job_test=7").depth == 7
    for text, words in (
        ("slurm:bf_intervall=1", "did you mean 'bf_interval'"),
        ("slurm:bf_interval=1+bf_interval=2", "there twice"),
        ("slurm:bf_interval=0", "whole number from 1"),
        ("slurm:bf_interval=", "whole number from 1"),
        ("slurm:bf_window=1.5", "whole number from 1"),
    ):
        with pytest.raises(HpcgymError, match=words):
            Scheduler(backfill=text)


def test_numbers_and_names() -> None:
    named = {0: "none", 1: "easy", 2: "depth:2", "3": "depth:3", "depth:1": "easy"}
    for given_, name in named.items():
        assert Scheduler(backfill=given_).backfill == name  # type: ignore[arg-type]
    assert Scheduler(backfill="depth:5").depth == 5
    assert Scheduler(backfill="conservative").depth is None


@pytest.mark.parametrize(
    ("backfill", "words"),
    [
        ("depth:K", "whole number"),
        ("depth:", "whole number"),
        (-1, "whole number from 0"),
        ("depth:2.5", "whole number"),
        (True, "unknown backfill"),
        ("deep", "unknown backfill"),
        (10**10, "whole number from 0"),
    ],
)
def test_what_is_no_depth(backfill: Any, words: str) -> None:
    with pytest.raises(HpcgymError, match=words):
        Scheduler(backfill=backfill)
