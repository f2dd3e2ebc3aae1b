"""Jobs that follow several others: how they stay with what is done with jobs, and in files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawing import given, settings
from drawing import strategies as st
from few_jobs import few_jobs

from hpcgym import load_workload
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.workload import from_pandas
from hpcgym.workload.io.swf import write_swf
from hpcgym.workload.io.tables import write_table
from hpcgym.workload.model import Workload, followed

pytestmark = pytest.mark.filterwarnings("ignore:.*jobs? follows? others")

N = 8


def jobs_of(numbers: list[int], others: list[list[int]]) -> Workload:
    """Return jobs with those numbers, of which each follows others."""
    pairs = [(a, b) for a, some in zip(numbers, others, strict=True) for b in some[1:]]
    return few_jobs(
        4,
        list(range(len(numbers))),
        [5] * len(numbers),
        [1] * len(numbers),
        [9] * len(numbers),
        job_number=numbers,
        preceding_job=[some[0] if some else -1 for some in others],
        more_preceding=pairs,
    )


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[int], list[list[int]]]:
    """Return numbers of jobs, and whom each follows: those that are there, and others."""
    numbers = draw(st.permutations(range(1, N + 1)))
    others = st.lists(st.integers(1, N + 3), max_size=4, unique=True)
    return numbers, draw(st.lists(others, min_size=N, max_size=N))


def told(workload: Workload) -> dict[int, set[int]]:
    """Return whom each job of a workload follows, by number, of those that are there."""
    following = followed(workload)
    found = {number: set[int]() for number in workload.job_number.tolist()}
    for job, other in zip(following.job.tolist(), following.other.tolist(), strict=True):
        found[int(workload.job_number[job])].add(int(workload.job_number[other]))
    return found


def there(numbers: list[int], others: list[list[int]]) -> dict[int, set[int]]:
    return {job: {*some} & {*numbers} for job, some in zip(numbers, others, strict=True)}


@given(graphs(), st.lists(st.booleans(), min_size=N, max_size=N), st.permutations(range(N)))
def test_they_stay(
    graph: tuple[list[int], list[list[int]]], kept: list[bool], order: list[int]
) -> None:
    numbers, others = graph
    workload = jobs_of(numbers, others)
    assert told(workload) == there(numbers, others)
    missing = [not {*some} <= {*numbers} for some in others]
    assert followed(workload).missing.tolist() == missing
    for same in (
        workload.take(np.array(order)),
        workload.with_columns(user_id=[1] * N, submit_time=order),
        pickle.loads(pickle.dumps(workload)),
        workload.take(slice(None)),
    ):
        assert told(same) == there(numbers, others)
    part = workload.take(np.array(kept))
    left = [place for place in range(N) if kept[place]]
    assert told(part) == there([numbers[k] for k in left], [others[k] for k in left])


@settings(max_examples=20)
@given(graphs(), st.sampled_from(["csv", "json", "parquet", "csv.gz"]))
def test_they_stay_in_tables(
    tmp_path_factory: pytest.TempPathFactory, graph: tuple[list[int], list[list[int]]], ending: str
) -> None:
    path = tmp_path_factory.mktemp("table") / f"jobs.{ending}"
    workload = jobs_of(*graph)
    write_table(workload, path)
    again = load_workload(path, "none", processors=4)
    assert told(again) == there(*graph)
    assert again.preceding_job.tolist() == workload.preceding_job.tolist()
    assert told(from_pandas(workload.to_pandas(), processors=4)) == there(*graph)


def test_an_extract_keeps_those_of_its_past(tmp_path: Path) -> None:
    workload = jobs_of([1, 2, 3, 4], [[], [], [1, 2], [3, 2]]).with_columns(wait_time=[0] * 4)
    part = workload.extract(3)
    write_table(part, tmp_path / "part.csv")
    again = load_workload(tmp_path / "part.csv", "none", processors=4)
    assert again.more_preceding is not None
    assert again.more_preceding.tolist() == [[3, 2], [4, 2]]


def test_swf_has_no_place_for_them(tmp_path: Path) -> None:
    workload = jobs_of([1, 2, 3], [[], [1], [1, 2]])
    with pytest.warns(WorkloadWarning, match=r"1 of 3 jobs have: preceding jobs beside the first"):
        write_swf(workload, tmp_path / "jobs.swf")
    again = load_workload(tmp_path / "jobs.swf", "none")
    assert told(again) == {1: set(), 2: {1}, 3: {1}}


def test_runs_of_one_job_all_follow_the_last_run_of_another() -> None:
    workload = jobs_of([1, 2, 2, 1], [[], [1, 3], [1, 3], []])
    following = followed(workload)
    assert following.job.tolist() == [1, 2]
    assert following.other.tolist() == [3, 3]
    assert following.missing.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["-1", "1 x"], "row 2: column preceding_job is '1 x', not a number"),
        (["-1", "1 2.5"], "row 2: column preceding_job is '1 2.5', not a number"),
        (["-1", "1 0"], "row 2: column preceding_job is '1 0', not a number"),
        (["-1", "1 -1"], "row 2: column preceding_job is '1 -1', not a number"),
    ],
)
def test_what_is_no_list(column: list[str], message: str) -> None:
    frame = pd.DataFrame({"submit_time": [0, 1], "preceding_job": column}, index=[1, 2])
    frame["requested_processors"] = 1
    with pytest.raises(WorkloadError, match=message):
        from_pandas(frame, processors=1)
    assert len(from_pandas(frame, processors=1, errors="skip")) == 1


def test_a_job_without_a_number_follows_one_at_most() -> None:
    frame = pd.DataFrame({"submit_time": [0, 1], "preceding_job": ["-1", "3 4"]})
    frame = frame.assign(job_number=[1, -1], requested_processors=1)
    with pytest.raises(WorkloadError, match="a job that follows several others needs a job_number"):
        from_pandas(frame, processors=1)


@pytest.mark.parametrize("pairs", [[[1, 0]], [[1, 2, 3]], [1, 2], [[1.5, 2]]])
def test_what_is_no_pair(pairs: list[object]) -> None:
    with pytest.raises(WorkloadError, match=r"^week: more_preceding "):
        Workload.from_columns({"submit_time": [0]}, processors=1, name="week", more_preceding=pairs)
