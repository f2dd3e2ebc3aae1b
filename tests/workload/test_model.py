import pickle

import numpy as np
import pytest

from hpcgym.errors import WorkloadError
from hpcgym.workload import SWF_COLUMNS, Workload
from hpcgym.workload.model import REORDERED


def make(**columns):
    return Workload.from_columns({"submit_time": [0, 5, 5], **columns}, processors=4)


def test_jobs_come_in_order_of_submission():
    killed = np.array([True, False, False])
    workload = Workload.from_columns(
        {"submit_time": [7, 3, 3], "job_number": [1, 2, 3]}, processors=4, killed=killed
    )
    assert workload.job_number.tolist() == [2, 3, 1]
    assert workload.killed.tolist() == [False, False, True]
    assert workload.cleaning == {REORDERED: 2}
    again = workload.with_columns(submit_time=[0, 1, 2])
    assert again.job_number.tolist() == [2, 3, 1]
    assert again.cleaning == {REORDERED: 2}


def test_equal_submit_times_keep_their_order():
    submit = np.random.default_rng(0).integers(0, 5, 10_000)
    workload = Workload.from_columns(
        {"submit_time": submit, "job_number": np.arange(10_000)}, processors=4
    )
    number = workload.job_number
    assert (np.diff(workload.submit_time) >= 0).all()
    assert (np.diff(number)[np.diff(workload.submit_time) == 0] > 0).all()
    assert np.array_equal(submit[number], workload.submit_time)


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
    kept = make(run_time=workload.run_time)
    assert np.shares_memory(kept.run_time, workload.run_time)


def test_take_and_counts():
    workload = make(run_time=[1, 2, 3]).counted({"a": 1, "b": 0})
    for rows in (slice(1, 3), np.array([False, True, True]), [1, 2]):
        part = workload.take(rows, cleaning={"a": 2, "c": 1}, name="part")
        assert part.run_time.tolist() == [2, 3]
        assert part.wait_time.tolist() == [-1, -1]
        assert part.wait_time.strides == (0,)
        assert part.cleaning == {"a": 3, "c": 1}
        assert part.name == "part"
    assert workload.cleaning == {"a": 1}
    assert len(workload.take(slice(0, 0))) == 0


def test_pickle_keeps_everything_and_stays_small():
    number = 100_000
    original = Workload.from_columns(
        {"submit_time": np.arange(number)},
        processors=4,
        name="many",
        killed=np.arange(number) == 7,
        header={"Note": ["text"]},
        cleaning={"reason": 3},
    )
    packed = pickle.dumps(original)
    assert len(packed) < 10 * number
    again = pickle.loads(packed)
    assert all(np.array_equal(again.columns[c], original.columns[c]) for c in SWF_COLUMNS)
    assert again.killed.tolist() == original.killed.tolist()
    assert (again.name, again.processors) == ("many", 4)
    assert again.header == original.header
    assert again.cleaning == original.cleaning
    assert not again.submit_time.flags.writeable


def test_pandas_has_the_swf_columns():
    frame = make(average_cpu_time=[1.5, 2, 3]).to_pandas()
    assert tuple(frame.columns) == SWF_COLUMNS
    assert frame["average_cpu_time"].tolist() == [1.5, 2, 3]


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"colour": [1, 2, 3]}, "unknown column 'colour'"),
        ({"run_time": [1, 2]}, r"column 'run_time' has shape \(2,\)"),
        ({"run_time": [1, 2.5, 3]}, "column 'run_time' must hold whole numbers"),
        ({"run_time": [1, np.nan, 3]}, "column 'run_time' must hold whole numbers"),
        ({"user_id": np.array([1, 2, 2**63], dtype=np.uint64)}, "must hold whole numbers within"),
        ({"run_time": ["a", "b", "c"]}, "column 'run_time' holds <U1, not numbers"),
        ({"run_time": [1, 2, 2**53 + 1]}, r"column 'run_time' holds times beyond 2\^53 s"),
        ({"run_time": [1, 2, -(2**63)]}, r"column 'run_time' holds times beyond 2\^53 s"),
        ({"average_cpu_time": [1, 2, np.inf]}, "'average_cpu_time' must hold finite numbers"),
    ],
)
def test_columns_that_make_no_workload(columns, problem):
    with pytest.raises(WorkloadError, match=problem):
        make(**columns)


def test_arguments_that_make_no_workload():
    with pytest.raises(WorkloadError, match="needs the column 'submit_time'"):
        Workload.from_columns({"run_time": [1]}, processors=1)
    for processors in (0, -3, 2.5, "many", None, float("inf")):
        with pytest.raises(WorkloadError, match="processors must be a whole number"):
            Workload.from_columns({"submit_time": [1]}, processors=processors)
    with pytest.raises(WorkloadError, match="'killed' has shape"):
        Workload.from_columns({"submit_time": [1]}, processors=1, killed=np.array([True, False]))
    with pytest.raises(AttributeError, match="no attribute 'runtime'"):
        make().runtime  # noqa: B018


def test_the_first_submission_is_that_of_the_log():
    log = Workload.from_columns(
        {"submit_time": [900, 100, 400], "run_time": [1, 2, 3]}, processors=4
    )
    assert log.first_submit_s == 100
    assert log.since_first_submit.tolist() == [0, 300, 800]
    parts = [log.take([1, 2]), log.take(slice(1, 3)), pickle.loads(pickle.dumps(log.take([2])))]
    parts += [
        log.take([1]).with_columns(run_time=[7]),
        log.take(slice(0, 0)),
        log.counted({"a": 1}),
    ]
    for part in parts:
        assert part.first_submit_s == 100
        assert pickle.loads(pickle.dumps(part)).first_submit_s == 100


def test_the_first_submission_moves_with_the_jobs():
    log = make().take([1, 2])  # submitted at 5, 5 s after the first
    later = log.with_columns(submit_time=log.submit_time + 1_700_000_000)
    assert later.first_submit_s == 1_700_000_000
    assert later.since_first_submit.tolist() == log.since_first_submit.tolist() == [5, 5]
    assert log.with_columns(submit_time=log.submit_time + 0).first_submit_s == 0


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
