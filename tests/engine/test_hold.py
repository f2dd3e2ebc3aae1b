"""Long jobs that are held back, and backfilling without extra processors, worked out by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import schedulers, workloads

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.rules import Scheduler
from hpcgym.validation.validate import ScheduleError
from hpcgym.workload.model import Workload

TENTH = {"share": 0.5, "from_s": 10, "factor": 100, "erode_s": 100}


def jobs(*rows: tuple[int, int, int, int], processors: int = 10) -> Workload:
    """Jobs of (submission, processors, run time, requested time)."""
    submit, width, run, requested = np.array(rows).T
    return few_jobs(processors, submit, run, width, requested, user_id=np.ones(len(rows)))


def starts(workload: Workload, **rules: Any) -> list[int]:
    result = hpcgym.simulate(workload, **rules)
    hpcgym.validate_schedule(result)
    return [int(start) for start in result.start]


# --- By hand --------------------------------------------------------------------------------------


def test_a_long_job_waits_until_enough_stays_free() -> None:
    """z = ln(100 / 10) / ln(100) = 1/2: it holds back 0.5 x 10 / 2 = 2.5, rounded 2, beside its 4.

    At 0 s 5 processors are taken, and 5 are free, not 6; at 20 s all are.
    """
    workload = jobs((0, 5, 20, 20), (0, 4, 100, 100))
    assert starts(workload, backfill="none", policy="spf") == [0, 0]
    assert starts(workload, backfill="none", policy="spf", hold=TENTH) == [0, 20]


def test_what_is_held_back_goes_with_waiting() -> None:
    """At most 5 processors, after 100 s 2.5: 2. A pass at 100 s finds 6 free for it and 4.

    It is the pass of a submission: waiting alone makes none.
    """
    workload = jobs((0, 4, 500, 500), (0, 4, 1000, 1000), (100, 1, 5, 5))
    hold = {**TENTH, "by": "requested"}
    assert starts(workload, backfill="none", hold=hold) == [0, 100, 100]
    assert starts(workload, backfill="none", hold={**hold, "erode_s": math.inf})[1] == 500


def test_no_job_needs_more_than_the_machine() -> None:
    workload = jobs((0, 9, 1000, 1000), (0, 10, 1000, 1000))
    assert starts(workload, hold={**TENTH, "share": 1}) == [0, 1000]


def test_the_head_is_promised_what_it_needs() -> None:
    """The second of 2 needs 2 + 5 of 10, and 4 are free; at 30 s 7, at 40 s all.

    Then 0 are extra at 30 s: a job of 1 that ends later waits, one that ends then starts.
    """
    workload = jobs(
        (0, 3, 30, 30), (0, 3, 40, 40), (0, 2, 1000, 1000), (0, 1, 31, 31), (0, 1, 9, 9)
    )
    hold = {**TENTH, "erode_s": math.inf}
    result = hpcgym.simulate(workload, hold={**hold, "from_s": 50, "factor": 20})
    assert result.reserved_start.tolist()[2] == 30
    assert result.start.tolist() == [0, 0, 30, 30, 0]
    hpcgym.validate_schedule(result)


def test_until_shadow_spares_nothing() -> None:
    """The head of 8 waits for 20 s; 2 are extra, which EASY gives to a long job."""
    workload = jobs((0, 6, 20, 20), (0, 8, 10, 10), (0, 2, 100, 100), (0, 2, 19, 19))
    assert starts(workload, backfill="easy") == [0, 20, 0, 0]
    assert starts(workload, backfill="until-shadow") == [0, 20, 20, 0]


def test_until_shadow_is_before_the_head_starts() -> None:
    """As in Slurm, which looks at what is free in the second in which a job would end, too."""
    workload = jobs((0, 6, 20, 20), (0, 8, 10, 10), (0, 2, 20, 20))
    assert starts(workload, backfill="easy") == [0, 20, 0]
    assert starts(workload, backfill="until-shadow") == [0, 20, 20]


# --- Against the slow simulator -------------------------------------------------------------------


@settings(max_examples=100)
@given(st.data())
def test_no_share_is_no_rule(data: st.DataObject) -> None:
    workload = data.draw(workloads())
    rules = {**data.draw(schedulers(workload)), "hold": None, "policy": "saf"}
    rules["backfill_order"] = "spf"
    plain = hpcgym.simulate(workload, **rules)
    held = hpcgym.simulate(workload, **{**rules, "hold": {"share": 0, "from_s": 1}})
    assert np.array_equal(plain.start, held.start)
    assert held.scheduler.hold is None


# --- Proofs ---------------------------------------------------------------------------------------


def test_a_job_that_waits_without_need_is_found() -> None:
    workload = jobs((0, 5, 20, 20), (0, 4, 100, 100))
    held = hpcgym.simulate(workload, "fcfs", hold=TENTH)
    assert "order" in hpcgym.validate_schedule(held)
    lighter = replace(held, scheduler=held.scheduler.but(hold={**TENTH, "share": 0.1}))
    with pytest.raises(ScheduleError, match="first in the queue, would fit"):
        hpcgym.validate_schedule(lighter)


# --- What is said of it ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_hold", "message"),
    [
        ("a tenth", "hold: share must be a number, not 'a tenth'"),
        (2, "hold: share must be a number from 0 to 1, not 2"),
        (-0.1, "share"),
        (math.nan, "share"),
        ("from_s=60", "hold: share is missing"),
        ("0.1,share=0.2", "share is there twice"),
        ("0.1,form_s=60", "form_s"),
        ("0.1,erode_s=1.5", "whole seconds from 1 on, or inf"),
        ("0.1,erode_s=0", "whole seconds from 1 on, or inf"),
        ("0.1,factor=1", "factor must be above 1"),
        ("0.1,by=size", "size"),
        ({"share": 0.1, "from": 60}, "from"),
        ([0.1], "share"),
        (True, "share"),
    ],
)
def test_a_wrong_rule_is_one_line(given_hold: Any, message: str) -> None:
    with pytest.raises(HpcgymError, match=message) as caught:
        Scheduler(hold=given_hold)
    assert "\n" not in str(caught.value)


@given(
    st.builds(
        Hold,
        st.floats(1e-9, 1),
        st.floats(1, 2.0**53),
        st.floats(1 + 1e-15, 1e12),
        st.one_of(st.integers(1, 2**53), st.just(math.inf)),
        st.sampled_from(["requested", "policy_estimate", "both"]),
    )
)
def test_its_text_and_its_table_can_be_read_back(hold: Hold) -> None:
    assert Hold.parse(str(hold)) == hold
    assert Hold.parse(json.loads(json.dumps(hold.table()))) == hold


def test_what_texts_stand_for() -> None:
    both = Hold(0.14, 3272, 64, math.inf, "both")
    assert Scheduler(hold="0.14,from_s=3272,erode_s=inf,by=both").hold == both
    assert Scheduler(hold=0).hold is None
    assert Scheduler(hold="0.1,").hold == Hold(0.1)


def test_on_nodes_cores_are_held_back() -> None:
    """Two nodes of 5 cores: by nodes the second job fits, but 4 + 2 of 5 free cores do not."""
    cluster = hpcgym.Cluster(groups=(hpcgym.cluster.NodeGroup("all", 2, {"core": 5, "mem": 5}),))
    workload = jobs((0, 5, 20, 20), (0, 4, 100, 100))
    units = Workload.from_columns(
        dict(workload.columns),
        processors=10,
        units=[1, 1],
        per_unit={"core": [5, 4], "mem": [1, 1]},
    )
    for allocation in ("first-fit", "worst-fit"):
        rules: dict[str, Any] = {"allocation": allocation, "policy": "spf", "hold": TENTH}
        result = hpcgym.simulate(units, cluster=cluster, **rules)
        assert result.start.tolist() == [0, 20]
        hpcgym.validate_schedule(result)
