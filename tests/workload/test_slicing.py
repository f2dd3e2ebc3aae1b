import numpy as np
import pytest

from hpcgym.errors import WorkloadError
from hpcgym.workload import Workload, clean, months, read_swf, slices, weeks
from hpcgym.workload.extracts import DAY_S, MONTH_S, WEEK_S


def make(submit, run, wait=None, **options):
    columns = {"submit_time": submit, "run_time": run, "job_number": range(len(submit))}
    if wait is not None:
        columns["wait_time"] = wait
    return Workload.from_columns(columns, processors=8, name="log", **options)


def test_jobs_that_cross_a_boundary_are_dropped_and_counted():
    #            period 0       period 1              period 2
    submit = [0, 99, 100, 150, 199, 199, 200, 250]
    wait = [0, 0, 0, 0, 0, 1, 0, 49]
    run = [9, 1, 99, 60, 1, 5, 9, 9]
    parts = slices(make(submit, run, wait, cleaning={"earlier": 1}), 100)
    assert [part.name for part in parts] == ["log period 1", "log period 2"]
    assert [part.job_number.tolist() for part in parts] == [[2, 5], [6]]
    assert [part.cleaning for part in parts] == [
        {"dropped: crosses the end of a period": 2},
        {"dropped: crosses the end of a period": 1},
    ]
    assert parts[0].submit_time.tolist() == [100, 199]
    assert parts[0].processors == 8


def test_a_job_belongs_to_the_period_it_was_submitted_in():
    parts = slices(make([150], [9], wait=[70]), 100, origin_s=0)
    assert [part.name for part in parts] == ["log period 1"]


def test_unknown_wait_counts_as_none():
    parts = slices(make([150, 160], [40, 50]), 100, origin_s=0)
    assert parts[0].job_number.tolist() == [0]


def test_the_first_period_can_be_kept():
    parts = slices(make([-50, 0, 150], [9, 9, 9]), 100, first=0)
    assert [part.name for part in parts] == ["log period 0", "log period 1"]


def test_empty_periods_are_left_out_however_many():
    parts = slices(make([0, 150, 10**15], [9, 9, 9]), 100)
    assert [part.name for part in parts] == ["log period 1", "log period 10000000000000"]


def test_nothing_to_slice():
    with pytest.raises(
        WorkloadError, match="log: no job begins and ends within the same week, from week 1 on"
    ):
        weeks(make([5, 10], [9, 9]))
    with pytest.raises(WorkloadError, match="period_s must be a whole number of at least 1"):
        slices(make([5], [9]), 0)
    with pytest.raises(WorkloadError, match=r"origin_s must be a whole number .*, not 0\.5"):
        slices(make([5], [9]), 100, origin_s=0.5)
    for wrong in (float("nan"), float("inf"), "x", [1], 2**60):
        with pytest.raises(WorkloadError, match=r"origin_s must be a whole number of seconds"):
            slices(make([5], [9]), 100, origin_s=wrong)
        with pytest.raises(WorkloadError, match=r"period_s must be a whole number of seconds"):
            slices(make([5], [9]), wrong)
    with pytest.raises(WorkloadError, match=r"week 0 begins at 5 s"):
        weeks(make([5, 10], [9, 9]))


@pytest.mark.parametrize("shift", [1, WEEK_S // 2, 1_700_000_000])
def test_periods_count_from_the_first_submission_wherever_the_clock_begins(shift):
    submit, wait = np.array([0, 99, 100, 150, 199, 250, 300]), [0, 0, 0, 49, 0, 0, 0]
    run = [9, 1, 9, 1, 5, 9, 9]
    for moved in (
        make(submit + shift, run, wait),
        make(submit, run, wait).with_columns(submit_time=submit + shift),
    ):
        parts = slices(moved, 100)
        assert [part.name for part in parts] == [f"log period {k}" for k in (1, 2, 3)]
        assert [part.job_number.tolist() for part in parts] == [[2], [5], [6]]
        assert parts[0].submit_time.tolist() == [100 + shift]
        assert [part.name for part in slices(moved, 100, origin_s=shift - 100)] == [
            f"log period {k}" for k in (1, 2, 3, 4)
        ]


def test_periods_count_from_the_beginning_of_the_log_though_its_first_job_is_dropped():
    log = make([1000, 1130, 1210], [0, 9, 9], wait=[0, 0, 0])
    cleaned = clean(log, "drop-no-run-time")
    assert cleaned.submit_time.tolist() == [1130, 1210]
    assert [part.name for part in slices(cleaned, 100)] == ["log period 1", "log period 2"]
    # a part of a log is cut where the whole is
    (again,) = slices(slices(cleaned, 100)[0], 50)
    assert again.name == "log period 1 period 2"


def test_weeks_and_months_from_another_time():
    log = make([WEEK_S, MONTH_S, MONTH_S + WEEK_S], [0, 0, 0])
    assert [p.name for p in log.weeks()] == ["log week 3", "log week 4"]
    assert [p.name for p in log.weeks(0)] == ["log week 1", "log week 4", "log week 5"]
    assert [p.name for p in log.months()] == ["log month 1"]
    assert [len(p) for p in log.months(origin_s=0)] == [2]


def test_weeks_and_months_have_7_and_30_days():
    workload = make([0, WEEK_S, MONTH_S - 1, MONTH_S], [0, 0, 0, 0])
    assert [p.name for p in weeks(workload)] == ["log week 1", "log week 4"]
    assert [p.name for p in months(workload)] == ["log month 1"]
    assert (WEEK_S, MONTH_S) == (7 * DAY_S, 30 * DAY_S)
    assert [p.name for p in workload.weeks()] == ["log week 1", "log week 4"]
    assert [p.name for p in workload.months()] == ["log month 1"]


def test_every_job_is_in_its_slice_or_counted():
    rng = np.random.default_rng(1)
    submit = np.sort(rng.integers(0, 5_000, 800))
    submit[0] = 0
    workload = make(submit, rng.integers(1, 200, 800), rng.integers(-1, 300, 800))
    parts = slices(workload, 500)
    for part in parts:
        number = int(part.name.split()[-1])
        assert (part.submit_time // 500 == number).all()
        dropped = sum(part.cleaning.values())
        assert len(part) + dropped == np.count_nonzero(submit // 500 == number)
    assert len(parts) == 9


def test_slices_share_memory():
    parts = slices(make(range(0, 1000, 10), [0] * 100), 100)
    assert parts[0].submit_time.base is parts[1].submit_time.base


def test_weeks_of_a_real_trace(trace):
    workload = clean(read_swf(trace("SDSC-SP2-1998-4.2-cln.swf.gz")), "legrand")
    parts = weeks(workload, origin_s=0)
    numbers = [int(part.name.split()[-1]) for part in parts]
    assert numbers == list(range(1, 106))
    whole = sum(len(part) + sum(part.cleaning.values()) for part in parts)
    assert whole == np.count_nonzero(workload.submit_time >= WEEK_S)
    start = workload.submit_time + workload.wait_time
    inside = start // WEEK_S == (start + workload.run_time) // WEEK_S
    second = (workload.submit_time // WEEK_S == 2) & inside
    assert parts[1].job_number.tolist() == workload.job_number[second].tolist()
    assert len(months(workload)) == 24
    # the log begins in the last hours of week 0 of its clock
    usual = weeks(workload)
    assert [int(part.name.split()[-1]) for part in usual] == list(range(1, 105))
    assert workload.first_submit_s == 566_129
    first = usual[0].submit_time
    assert first.min() - 566_129 >= WEEK_S
    assert first.max() - 566_129 < 2 * WEEK_S
