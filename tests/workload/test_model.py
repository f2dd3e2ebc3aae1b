"""Workloads: columns, slices, digests and intervals under stress."""

from __future__ import annotations

import hashlib
import pickle
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from mistakes import mistakes_of, why_not

from hpcgym.errors import WorkloadError
from hpcgym.names import JOB_COLUMNS
from hpcgym.units import MONTH_S, WEEK_S
from hpcgym.workload import (
    Workload,
    clean,
    interesting_extracts,
    slices,
    weeks,
)
from hpcgym.workload.fingerprint import workload_digest
from hpcgym.workload.model import REORDERED


def make(**columns):
    others = {
        name: columns.pop(name) for name in ("units", "per_unit", "killed") if name in columns
    }
    return Workload.from_columns({"submit_time": [0, 5, 5], **columns}, processors=4, **others)


DEMANDS = {"gpu": [1, 0, 2], "core": [2, 4, 1], "mem": [10, 20, 30]}


def test_jobs_come_in_order_of_submission():
    workload = make(
        submit_time=[7, 3, 3],
        job_number=[1, 2, 3],
        killed=np.array([True, False, False]),
        units=[3, 2, 1],
        per_unit=DEMANDS,
    )
    assert workload.job_number.tolist() == [2, 3, 1]
    assert workload.killed.tolist() == [False, False, True]
    assert workload.units.tolist() == [2, 1, 3]
    assert workload.per_unit["mem"].tolist() == [20, 30, 10]
    assert workload.requested_processors.tolist() == [8, 1, 6]
    assert workload.cleaning == {REORDERED: 2}
    again = workload.with_columns(submit_time=[0, 1, 2])
    assert again.job_number.tolist() == [2, 3, 1]
    assert again.cleaning == {REORDERED: 2}


def test_nobody_can_change_a_workload():
    mine = np.array([10, 20, 30])
    workload = make(run_time=mine)
    mine[0] = 99
    assert workload.run_time.tolist() == [10, 20, 30]
    for values in (*workload.columns.values(), workload.killed, workload.take([0]).run_time):
        assert not values.flags.writeable
    window = mine[::-1][::-1]
    window.flags.writeable = False
    other = make(run_time=window)
    mine[0] = 77
    assert other.run_time[0] == 99
    assert np.shares_memory(make(run_time=workload.run_time).run_time, workload.run_time)


@pytest.mark.parametrize("rows", [slice(1, 3), np.array([False, True, True]), [1, 2]])
def test_take_and_counts(rows):
    workload = make(run_time=[1, 2, 3], units=[3, 2, 1], per_unit=DEMANDS)
    workload = workload.counted({"a": 1, "b": 0})
    part = workload.take(rows, cleaning={"a": 2, "c": 1}, name="part")
    assert part.run_time.tolist() == [2, 3]
    assert part.units.tolist() == [2, 1]
    assert part.per_unit["gpu"].tolist() == [0, 2]
    assert part.wait_time.tolist() == [-1, -1]
    assert part.wait_time.strides == (0,)
    assert part.cleaning == {"a": 3, "c": 1}
    assert part.name == "part"
    assert workload.cleaning == {"a": 1}
    assert len(workload.take(slice(0, 0))) == 0


def test_a_pickle_stays_small():
    number = 100_000
    original = Workload.from_columns({"submit_time": np.arange(number)}, processors=4)
    assert len(pickle.dumps(original)) < 10 * number


def test_cores_come_first_and_tell_the_processors():
    workload = make(units=[3, 2, 1], per_unit=DEMANDS, requested_processors=[6, -1, 1])
    assert list(workload.per_unit) == ["core", "gpu", "mem"]
    assert workload.requested_processors.tolist() == [6, 8, 1]
    assert workload.to_pandas().columns[18:].tolist() == ["units", "core", "gpu", "mem"]
    shared = make(per_unit={"gpu": [1, 1, 1]}, units=[2, 1, 3], requested_processors=[8, 8, -1])
    assert shared.per_unit["core"].tolist() == [4, 8, 1]
    assert make(per_unit=DEMANDS).units.tolist() == [1, 1, 1]
    assert make(units=[1, 2, 3]).per_unit["core"].tolist() == [1, 1, 1]
    assert (make().units, dict(make().per_unit)) == (None, {})


def test_the_first_submission_is_that_of_the_log():
    log = make(submit_time=[900, 100, 400], run_time=[1, 2, 3])
    assert log.first_submit_s == 100
    assert log.since_first_submit.tolist() == [0, 300, 800]
    for part in (
        *(log.take([1, 2]), log.take(slice(1, 3)), log.take(slice(0, 0)), log.counted({"a": 1})),
        log.take([1]).with_columns(run_time=[7]),
    ):
        assert part.first_submit_s == pickle.loads(pickle.dumps(part)).first_submit_s == 100
    late = make().take([1, 2])  # submitted at 5, 5 s after the first
    later = late.with_columns(submit_time=late.submit_time + 1_700_000_000)
    assert later.first_submit_s == 1_700_000_000
    assert later.since_first_submit.tolist() == late.since_first_submit.tolist() == [5, 5]
    assert late.with_columns(submit_time=late.submit_time + 0).first_submit_s == 0


@pytest.mark.parametrize(
    ("submit", "first"), [([-1, -1, 70, 90], 70), ([-1], 0), ([], 0), ([-50, 0, 9], 0)]
)
def test_an_unknown_submission_is_not_the_first(submit, first):
    assert Workload.from_columns({"submit_time": submit}, processors=4).first_submit_s == first


def test_jobs_are_called_by_numbers_of_their_own() -> None:
    workload = Workload.from_columns(
        {"submit_time": [0, 1, 2, 3], "job_number": [7, 8, 7, -1]}, processors=1
    )
    names = [workload.called(row) for row in range(4)]
    assert names == ["job 7 (row 0)", "job 8", "job 7 (row 2)", "the job of row 3"]


# --- Slices ---------------------------------------------------------------------------------------


def make_slices(submit, run, wait=None, **options):
    columns = {"submit_time": submit, "run_time": run, "job_number": range(len(submit))}
    if wait is not None:
        columns["wait_time"] = wait
    return Workload.from_columns(columns, processors=8, name="log", **options)


def test_jobs_that_cross_a_boundary_are_dropped_and_counted():
    #            period 0       period 1              period 2
    submit = [0, 99, 100, 150, 199, 199, 200, 250]
    wait = [0, 0, 0, 0, 0, 1, 0, 49]
    run = [9, 1, 99, 60, 1, 5, 9, 9]
    parts = slices(make_slices(submit, run, wait, cleaning={"earlier": 1}), 100)
    assert [part.name for part in parts] == ["log period 1", "log period 2"]
    assert [part.job_number.tolist() for part in parts] == [[2, 5], [6]]
    assert [part.cleaning for part in parts] == [
        {"dropped: crosses the end of a period": 2},
        {"dropped: crosses the end of a period": 1},
    ]
    assert parts[0].submit_time.tolist() == [100, 199]
    assert parts[0].processors == 8


@pytest.mark.parametrize(
    ("submit", "run", "options", "periods"),
    [
        ([150], [9], {"wait": [70], "origin_s": 0}, {1: 1}),  # the period it was submitted in
        ([150, 160], [40, 50], {"origin_s": 0}, {1: 1}),  # an unknown wait counts as none
        ([-50, 0, 150], [9, 9, 9], {"first": 0}, {0: 1, 1: 1}),
        ([0, 150, 10**15], [9, 9, 9], {}, {1: 1, 10**13: 1}),
        ([1000, 1130, 1210], [9, 9, 9], {}, {1: 1, 2: 1}),
    ],
)
def test_periods_and_their_jobs(submit, run, options, periods):
    log = make_slices(submit, run, options.pop("wait", None))
    parts = slices(log, 100, **options)
    assert {int(part.name.removeprefix("log period ")): len(part) for part in parts} == periods


@pytest.mark.parametrize("shift", [1, WEEK_S // 2, 1_700_000_000])
def test_periods_count_from_the_first_submission_wherever_the_clock_begins(shift):
    submit, wait = np.array([0, 99, 100, 150, 199, 250, 300]), [0, 0, 0, 49, 0, 0, 0]
    run = [9, 1, 9, 1, 5, 9, 9]
    for moved in (
        make_slices(submit + shift, run, wait),
        make_slices(submit, run, wait).with_columns(submit_time=submit + shift),
    ):
        parts = slices(moved, 100)
        assert [part.name for part in parts] == [f"log period {k}" for k in (1, 2, 3)]
        assert [part.job_number.tolist() for part in parts] == [[2], [5], [6]]
        assert parts[0].submit_time.tolist() == [100 + shift]
        assert [part.name for part in slices(moved, 100, origin_s=shift - 100)] == [
            f"log period {k}" for k in (1, 2, 3, 4)
        ]


def test_periods_count_from_the_beginning_of_the_log_though_its_first_job_is_dropped():
    log = make_slices([1000, 1130, 1210], [0, 9, 9], wait=[0, 0, 0])
    cleaned = clean(log, "drop-no-run-time")
    assert cleaned.submit_time.tolist() == [1130, 1210]
    assert [part.name for part in slices(cleaned, 100)] == ["log period 1", "log period 2"]
    # a part of a log is cut where the whole is
    (again,) = slices(slices(cleaned, 100)[0], 50)
    assert again.name == "log period 1 period 2"


def test_weeks_and_months_from_another_time():
    log = make_slices([WEEK_S, MONTH_S, MONTH_S + WEEK_S], [0, 0, 0])
    assert [p.name for p in log.weeks()] == ["log week 3", "log week 4"]
    assert [p.name for p in log.weeks(0)] == ["log week 1", "log week 4", "log week 5"]
    assert [p.name for p in log.months()] == ["log month 1"]
    assert [len(p) for p in log.months(origin_s=0)] == [2]


def test_every_job_is_in_its_slice_or_counted():
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, 5_000, 800))
    submit[0] = 0
    workload = make_slices(submit, rng.integers(1, 200, 800), rng.integers(-1, 300, 800))
    parts = slices(workload, 500)
    for part in parts:
        number = int(part.name.split()[-1])
        assert (part.submit_time // 500 == number).all()
        dropped = sum(part.cleaning.values())
        assert len(part) + dropped == np.count_nonzero(submit // 500 == number)
    assert len(parts) == 9
    assert parts[0].submit_time.base is parts[1].submit_time.base  # they share memory


# --- Digests --------------------------------------------------------------------------------------

READ = {
    *("job_number", "submit_time", "run_time", "requested_time", "requested_processors"),
    *("user_id", "group_id", "executable", "queue", "partition", "requested_memory"),
    *("power_w", "slowdown", "array", "nice", "units_per_node", "allocated_nodes", "billing"),
    *("constraint", "reservation"),
}
RECORDED = sorted(set(JOB_COLUMNS) - READ)

COLUMNS = {
    "job_number": [1, 2, 3],
    "submit_time": [0, 5, 9],
    "run_time": [7, 8, 9],
    "requested_time": [10, 11, 12],
    "requested_processors": [1, 2, 3],
}


def jobs(**changes: Any) -> Workload:
    return Workload.from_columns(COLUMNS | changes, processors=4)


@given(st.sampled_from(sorted(READ)), st.integers(0, 2), st.integers(100, 2**40))
def test_each_value_that_is_read_counts(column: str, job: int, value: int) -> None:
    workload = jobs()
    values = workload.columns[column].copy()
    values[job] = value
    # as it is: a new order of submission would be another change
    changed = replace(workload, columns={**workload.columns, column: values})
    assert workload_digest(changed) != workload_digest(workload)


@given(st.sampled_from(RECORDED), st.lists(st.integers(0, 2**40), min_size=3, max_size=3))
def test_what_was_only_recorded_does_not_count(column: str, values: list[int]) -> None:
    assert workload_digest(jobs(**{column: values})) == workload_digest(jobs())


def test_other_things_that_count_and_that_do_not() -> None:
    workload = jobs()
    digest = workload_digest(workload)
    assert len(bytes.fromhex(digest)) == hashlib.sha256().digest_size
    others = [
        replace(workload, processors=5),
        replace(workload, first_submit_s=-3),
        replace(workload, killed=np.array([True, False, False])),
        workload.take(slice(0, 2)),
        jobs(group_id=[1, 2, 3]),
        jobs(queue=[1, 2, 3]),  # the same numbers in another column
        *(
            Workload.from_columns(COLUMNS, processors=4, units=[1, 2, 3], per_unit=resources)
            for resources in (
                {"core": [1] * 3},
                {"gpu": [0] * 3},
                {"gpu": [1] * 3},
                {"mic": [0] * 3},
            )
        ),
    ]
    assert len({digest, *map(workload_digest, others)}) == len(others) + 1
    named = replace(workload, name="other", header={"Note": ["x"]}, cleaning={"dropped: y": 3})
    assert workload_digest(named) == digest
    asked = [
        replace(jobs(constraint=[1, 1, 1]), header={"Constraint": [f"1 {name}"]}) for name in "ab"
    ]
    assert len({digest, *map(workload_digest, asked)}) == 3  # what features they ask for counts


def test_the_machine_that_works_it_out_makes_no_difference() -> None:
    workload = jobs()
    turned = {
        name: values.astype(values.dtype.newbyteorder(">"))
        for name, values in workload.columns.items()
    }
    assert workload_digest(replace(workload, columns=turned)) == workload_digest(workload)


def test_what_an_extract_begins_with_counts() -> None:
    log = jobs(wait_time=[0, 0, 0])
    part, waited = log.extract(6), jobs(wait_time=[0, 1, 0]).extract(6)
    assert workload_digest(part) != workload_digest(waited)
    assert workload_digest(part) != workload_digest(replace(part, initial=None))


# --- Intervals under stress ----------------------------------------------------------------------


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
        why = why_not(interesting_extracts, jobs, 100, length)
        assert re.search("does not tell when jobs ran|which is less than", why)
        return
    extracts = interesting_extracts(jobs, 100, length)
    for row in extracts.itertuples():
        seconds = range(row.begin_s, row.end_s)
        assert len(seconds) == length
        used = sum(n for at in seconds for s, w, r, n in known if s + w <= at < s + w + r)
        queued = sum(n for at in seconds for s, w, _, n in known if s <= at < s + w)
        assert row.utilization == pytest.approx(used / (4 * length), abs=1e-9)
        assert row.waiting == pytest.approx(queued / (4 * length), abs=1e-9)
        assert row.jobs == sum(s in seconds for s, _, _, _ in rows)
    taken = [at for row in extracts.itertuples() for at in range(row.begin_s, row.end_s)]
    assert len(taken) == len(set(taken))
    assert extracts["rank"].is_monotonic_decreasing


def test_all_three_must_be_high() -> None:
    """Four intervals: full but calm, many waiting on an idle machine, many jobs, and all of it."""
    full = [(0, 0, 10, 4)]
    waiting = [(10, 9, 1, 4), (11, 8, 1, 4)]
    many = [(20 + k, 0, 1, 1) for k in range(10)]
    stress = [(30, 0, 10, 3), *((31 + k, 9 - k, 1, 4) for k in range(9))]
    extracts = interesting_extracts(trace([*full, *waiting, *many, *stress]), 1, 10)
    assert extracts[["begin_s", "end_s"]].to_numpy().tolist() == [[30, 40]]


test_mistakes = mistakes_of(globals(), weeks, errors=(AttributeError, WorkloadError))
