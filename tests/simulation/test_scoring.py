"""Policies that are functions: the schedules of policies by name, and clear errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs
from strategies import SEVERAL, holds, workloads

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.dispatchers import PassView
from hpcgym.scheduler.rules import Scheduler
from hpcgym.sweep.batch import BatchSimulator

JOBS = hpcgym.load_workload("lublin:jobs=300,processors=64,seed=3,load=1.5")


def least_area(view: PassView) -> Any:
    return -(view.requested * view.processors).astype(float)


def longest_factor(view: PassView) -> Any:
    """The largest expansion factor, as the policy lexp."""
    return 1 + view.wait / view.requested


SLURM = ("slurm:bf_interval=200+bf_job_part_count_reserve=1", "slurm:bf_interval=77")
PLANS = ("depth:2", "depth:3", "depth:20", *SLURM)
RULES = {
    "backfill": st.sampled_from(["none", "easy", "until-shadow", "conservative", *PLANS]),
    "backfill_order": st.sampled_from(["fcfs", "sjbf", "spf", "lexp"]),
    "estimate": st.sampled_from(["requested", "clairvoyant", "ave2", "typical-ratio"]),
    "correction": st.sampled_from(["requested", "incremental"]),
    "threshold": st.sampled_from([None, None, 0, 100]),
    "hold": holds(),
}
#: A function -> the policy that it is; one that changes as jobs wait, so that promises are alike.
ALIKE = st.sampled_from([(least_area, "saf"), (longest_factor, "lexp")])


def assert_same(one: hpcgym.Result, other: hpcgym.Result) -> None:
    assert one.start.tolist() == other.start.tolist()
    assert one.backfilled.tolist() == other.backfilled.tolist()


def test_the_page_has_the_expression_of_its_function() -> None:
    page = (Path(__file__).parents[2] / "docs" / "semantics.md").read_text()
    before, _, after = page.partition("def patient(view):")
    code = before.rpartition("```python")[2] + "def patient(view):" + after.partition("```")[0]
    there: dict[str, Any] = {}
    exec(compile(code, "semantics.md", "exec"), there)
    assert_same(there["same"], there["result"])
    fcfs = hpcgym.simulate(there["workload"], backfill_order="spf")
    assert fcfs.start.tolist() != there["same"].start.tolist()


@settings(max_examples=150)
@given(
    workloads(),
    st.fixed_dictionaries({**RULES, "passes": st.sampled_from(["per-timestamp", "per-event"])}),
    ALIKE,
)
def test_a_function_is_the_policy_by_name(
    workload: hpcgym.Workload, rules: dict[str, Any], alike: Any
) -> None:
    function, name = alike
    if rules["backfill"] in (*SEVERAL, *PLANS):
        rules["hold"] = None
    if rules["backfill"] in PLANS:
        rules["passes"] = "per-timestamp"
    result = hpcgym.simulate(workload, policy=function, **rules)
    assert_same(result, hpcgym.simulate(workload, policy=name, **rules))
    hpcgym.validate_schedule(result)


def test_slurm_asks_between_events_too() -> None:
    """By hand: from 35 s on job 2 comes first; at 40 s, when nothing happens, it starts."""
    jobs = few_jobs(3, [0, 0, 0], [100, 50, 200], [2, 3, 1])
    asked = []

    def late(view: PassView) -> Any:
        asked.append(view.time)
        return (view.job == 2) & (view.time >= 35)

    result = hpcgym.simulate(jobs, policy=late, backfill="slurm:bf_interval=10")
    assert result.start.tolist() == [0, 240, 40]
    assert asked[:5] == [0, 10, 20, 30, 40]
    hpcgym.validate_schedule(result)


def test_it_is_asked_where_a_job_fits_and_told_when_it_begins() -> None:
    class Notes:
        begun = 0
        times: list[int]

        def begin(self) -> None:
            self.begun, self.times = self.begun + 1, []

        def __call__(self, view: PassView) -> Any:
            assert view.fits().any()
            assert view.total.tolist() == [64]
            assert view.free[0, 0] <= 64
            self.times.append(view.time)
            return np.zeros(len(view.job))

    notes = Notes()
    first = hpcgym.simulate(JOBS, policy=notes, backfill_order="fcfs")
    assert_same(first, hpcgym.simulate(JOBS, policy=notes, backfill_order="fcfs"))
    assert notes.begun == 2
    assert notes.times == sorted(set(notes.times))
    assert_same(first, hpcgym.simulate(JOBS, "easy"))


def test_an_extract_begins_with_its_state() -> None:
    log = hpcgym.simulate(JOBS, "easy").as_workload()
    part = log.extract(int(JOBS.submit_time[150]))
    rules = {"backfill_order": "spf"}
    one = hpcgym.simulate(part, policy=least_area, **rules)
    assert_same(one, hpcgym.simulate(part, policy="saf", **rules))


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda view: [1.0], r"a number for each of the \d+ queued jobs, the highest first, not"),
        (lambda view: "high", "not 'high'"),
        (lambda view: None, "not None"),
        (lambda view: np.full(len(view.job), np.nan), "numbers of which some are nan"),
        (lambda view: np.zeros((len(view.job), 2)), r"not an array of shape \(\d+, 2\), float64$"),
        (lambda view: view.wait + 1j, "complex128"),
        (lambda view: ["3"] * len(view.job), "<U1"),
        (lambda view: [10**400] * len(view.job), "object"),
        (lambda view: "x" * 10_000, "not 'xxx"),
    ],
)
def test_a_wrong_answer_is_one_line(answer: Any, told: str) -> None:
    with pytest.raises(HpcgymError, match=told) as caught:
        hpcgym.simulate(JOBS, policy=answer)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("policy <lambda> at ")


def test_what_it_does_not_go_with() -> None:
    with pytest.raises(HpcgymError, match="and a batch do not go together"):
        BatchSimulator([JOBS], ["area"], Scheduler(policy=least_area))
    with pytest.raises(HpcgymError, match="policy may be a function"):
        hpcgym.simulate(JOBS, backfill_order=least_area)
    with pytest.raises(HpcgymError, match=r"must not be the class PassView; give PassView\(\)"):
        hpcgym.simulate(JOBS, policy=PassView)


def test_it_has_a_name_in_tables() -> None:
    result = hpcgym.simulate(JOBS, policy=least_area)
    assert result.scheduler.describe()["policy"] == "least_area"
