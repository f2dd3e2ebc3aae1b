"""Intervals of a trace under stress: counted second by second, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

import hpcgym
from hpcgym.errors import WorkloadError
from hpcgym.workload import Workload, interesting_extracts


def trace(rows: list[tuple[int, int, int, int]], processors: int = 4) -> Workload:
    """Jobs given by submit time, waiting time, run time and processors."""
    submit, wait, run, size = (list(column) for column in zip(*sorted(rows), strict=True))
    columns = {"submit_time": submit, "wait_time": wait, "run_time": run, "requested_time": run}
    columns["requested_processors"] = size
    return Workload.from_columns(columns, processors=processors, name="trace")


JOB = st.tuples(
    st.integers(0, 60), st.integers(-1, 20), st.sampled_from([-1, 1, 2, 5, 30]), st.integers(1, 4)
)


@given(st.lists(JOB, min_size=1, max_size=25), st.integers(1, 30))
def test_each_second_is_counted(rows: list[tuple[int, int, int, int]], length: int) -> None:
    jobs = trace(rows)
    known = [row for row in rows if row[1] >= 0 and row[2] >= 1]
    span = max(row[0] for row in rows) - min(row[0] for row in rows) + 1
    if not known or span < length:
        with pytest.raises(WorkloadError, match=r"does not tell when jobs ran|which is less than"):
            interesting_extracts(jobs, 100, length)
        return
    found = interesting_extracts(jobs, 100, length)
    for row in found.itertuples():
        seconds = range(row.begin_s, row.end_s)
        assert len(seconds) == length
        used = sum(n for at in seconds for s, w, r, n in known if s + w <= at < s + w + r)
        queued = sum(n for at in seconds for s, w, _, n in known if s <= at < s + w)
        assert row.utilization == pytest.approx(used / (4 * length), abs=1e-9)
        assert row.waiting == pytest.approx(queued / (4 * length), abs=1e-9)
        assert row.jobs == sum(s in seconds for s, _, _, _ in rows)
    taken = [at for row in found.itertuples() for at in range(row.begin_s, row.end_s)]
    assert len(taken) == len(set(taken))
    assert found["rank"].is_monotonic_decreasing


def test_all_three_must_be_high() -> None:
    """Four intervals: full but calm, many waiting on an idle machine, many jobs, and all of it."""
    full = [(0, 0, 10, 4)]
    waiting = [(10, 9, 1, 4), (11, 8, 1, 4)]
    many = [(20 + k, 0, 1, 1) for k in range(10)]
    stress = [(30, 0, 10, 3), *((31 + k, 9 - k, 1, 4) for k in range(9))]
    found = interesting_extracts(trace([*full, *waiting, *many, *stress]), 1, 10)
    assert found[["begin_s", "end_s"]].to_numpy().tolist() == [[30, 40]]


def test_what_is_found_can_be_extracted() -> None:
    done = hpcgym.simulate(
        hpcgym.load_workload("lublin:jobs=3000,processors=64,load=0.95,seed=1"), "easy"
    )
    jobs = done.as_workload()
    found = interesting_extracts(jobs, 3, 36_000)
    assert len(found) == 3
    assert (found["rank"] > 0.5).all()
    for row in found.itertuples():
        part = jobs.extract(row.begin_s, row.end_s)
        submitted = part.submit_time >= row.begin_s
        assert int(submitted.sum()) == row.jobs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "number must be a whole number of at least 1, not 0"),
        ((1, 0), "length_s must be a whole number of at least 1, not 0"),
        ((1, 1000), "has submissions in 1 s, which is less than an interval of 1000 s"),
    ],
)
def test_what_is_refused(arguments: tuple[int, ...], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        interesting_extracts(trace([(0, 0, 5, 1)]), *arguments)
    with pytest.raises(
        WorkloadError, match=r"does not tell when jobs ran; a simulation does: hpcgym\.simulate"
    ):
        interesting_extracts(trace([(0, -1, 5, 1)]))


def test_times_are_those_of_the_trace_wherever_its_clock_begins() -> None:
    rows = [(5 * k, k % 3, 4, 2) for k in range(20)]
    early, late = trace(rows), trace([(s + 1000, w, r, n) for s, w, r, n in rows])
    one, other = interesting_extracts(early, 2, 20), interesting_extracts(late, 2, 20)
    assert np.array_equal(one["begin_s"] + 1000, other["begin_s"])
    assert one.drop(columns=["begin_s", "end_s"]).equals(other.drop(columns=["begin_s", "end_s"]))
