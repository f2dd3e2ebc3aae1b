"""Names of codes: read, written, looked up, given to jobs; the same jobs in another order."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym.errors import WorkloadError
from hpcgym.workload import (
    Code,
    Workload,
    assign_codes,
    code_names,
    codes_of,
    load_workload,
    shuffled,
    with_codes,
)
from hpcgym.workload.fingerprint import fingerprint

JOBS = {
    "job_number": [1, 2, 3, 4],
    "submit_time": [0, 10, 10, 20],
    "run_time": [5, 6, 7, 8],
    "requested_time": [9, 9, 9, 9],
    "requested_processors": [4, 2, 1, 4],
}
NAMES = ["lu.E.2048", "cg.D.64", "lu.E.2048", "628.pot3d s"]


def plain(**columns: object) -> Workload:
    return Workload.from_columns({**JOBS, **columns}, processors=4, name="log")


def coded() -> Workload:
    return with_codes(plain(), NAMES)


# --- Names ----------------------------------------------------------------------------------


def test_codes_are_numbered_in_the_order_in_which_they_come() -> None:
    workload = coded()
    assert workload.executable.tolist() == [1, 2, 1, 3]
    assert workload.header["Code"] == ["1 lu.E.2048", "2 cg.D.64", "3 628.pot3d s"]
    assert code_names(workload) == {1: "lu.E.2048", 2: "cg.D.64", 3: "628.pot3d s"}
    assert code_names(plain()) == {}
    assert np.array_equal(workload.run_time, plain().run_time)


def test_codes_are_found_in_a_list() -> None:
    found = codes_of(coded(), ["628.pot3d s", "other", "cg.D.64", "lu.E.2048"])
    assert (found.tolist(), found.dtype) == ([3, 2, 3, 0], np.int64)
    nobody = coded().take(slice(0, 0))
    assert codes_of(nobody, ["cg.D.64"]).shape == (0,)


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        (plain(), r"job 1 has no code: .* its executable, -1; so it is with 4 of 4"),
        (coded().take([1, 3]), r"log: job 4 runs '628.pot3d s', .* 1 of 2 jobs"),
        (with_codes(plain(), ["cg.D.64"] * 3 + ["lu.E.204"]), "did you mean 'lu.E.2048'"),
        (with_codes(plain(), ["zzz"] * 4), "none of the 2 codes; known are cg.D.64, lu.E.2048"),
    ],
)
def test_jobs_without_a_known_code(workload: Workload, problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        codes_of(workload, ["cg.D.64", "lu.E.2048"])


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a\x00", 3, None])
def test_names_that_are_none(name: object) -> None:
    with pytest.raises(WorkloadError, match="one name for each of the 4 jobs"):
        with_codes(plain(), "abcd")
    with pytest.raises(WorkloadError, match="is no name of a code"):
        with_codes(plain(), ["a", "b", "c", name])  # type: ignore[list-item]
    with pytest.raises(WorkloadError, match="is no name of a code"):
        assign_codes(plain(), [name])  # type: ignore[list-item]


def test_extracts_have_a_past() -> None:
    extract = plain(wait_time=[0, 0, 0, 0]).extract(8)
    for give in (lambda: with_codes(extract, ["a"] * len(extract)), lambda: shuffled(extract)):
        with pytest.raises(WorkloadError, match=r"extract|begins with jobs that run"):
            give()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("a", 0, 1.0), "code 'a': processes must be a whole number from 1 to"),
        (("a", 1.5, 1.0), "code 'a': processes must be a whole number from 1 to"),
        (("a", 1, 0.0), "code 'a': compact_s must be a number above 0 s, not 0.0"),
        (("a", 1, float("nan")), "compact_s must be a number above 0 s"),
        (("", 1, 1.0), "'' is no name of a code"),
    ],
)
def test_codes_that_are_none(arguments: tuple[str, int, float], problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        Code(*arguments)


# --- Files ----------------------------------------------------------------------------------


def test_a_simulation_hangs_on_its_codes() -> None:
    other = with_codes(plain(), ["lu.E.2048", "cg.D.64", "cg.D.64", "628.pot3d s"])
    renamed = with_codes(plain(), [f"{name}x" for name in NAMES])
    prints = {fingerprint([workload]) for workload in (plain(), coded(), other, renamed)}
    assert len(prints) == 4
    assert fingerprint([coded()]) in prints


# --- Codes for any trace --------------------------------------------------------------------


def test_codes_are_drawn_for_a_trace() -> None:
    trace = load_workload("lublin:jobs=3000,processors=64,seed=1")
    first, again = assign_codes(trace, ["a", "b"], seed=3), assign_codes(trace, ["a", "b"], seed=3)
    assert np.array_equal(first.executable, again.executable)
    assert not np.array_equal(first.executable, assign_codes(trace, ["a", "b"]).executable)
    assert first.header["Code"] == ["1 a", "2 b"]
    for column in ("submit_time", "run_time", "requested_time", "requested_processors", "user_id"):
        assert np.array_equal(first.columns[column], trace.columns[column])
    shares = np.bincount(first.executable) / len(first)
    assert shares[1:] == pytest.approx([0.5, 0.5], abs=0.04)  # four deviations


def test_codes_are_drawn_by_weight() -> None:
    trace = load_workload("lublin:jobs=3000,processors=64,seed=1")
    drawn = assign_codes(trace, ["a", "b", "c"], weights=[3, 0, 1])
    assert np.bincount(drawn.executable, minlength=4).tolist()[2] == 0
    assert (drawn.executable == 1).mean() == pytest.approx(0.75, abs=0.04)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"codes": []}, "codes must be names, at least one"),
        ({"codes": "abc"}, "codes must be names, at least one, not 'abc'"),
        ({"codes": ["a"], "weights": [0]}, "weights must be 1 numbers of at least 0"),
        ({"codes": ["a", "b"], "weights": [1]}, r"weights must be 2 numbers .*, not \[1\]"),
        ({"codes": ["a", "b"], "weights": [2, -1]}, "weights must be 2 numbers"),
        ({"codes": ["a", "b"], "weights": [1, float("nan")]}, "weights must be 2 numbers"),
        ({"codes": ["a", "b"], "weights": [1, float("inf")]}, "weights must be 2 numbers"),
        ({"codes": ["a"], "seed": -1}, "assign_codes: seed must be a whole number from 0"),
    ],
)
def test_codes_that_cannot_be_drawn(arguments: dict[str, object], problem: str) -> None:
    with pytest.raises(WorkloadError, match=problem):
        assign_codes(plain(), **arguments)  # type: ignore[arg-type]


# --- Another order --------------------------------------------------------------------------


@given(seed=st.integers(0, 2**64), jobs=st.integers(1, 12))
def test_shuffled_jobs_are_the_same_jobs(seed: int, jobs: int) -> None:
    columns = {
        "job_number": np.arange(jobs),
        "submit_time": 7 * np.arange(jobs),
        "run_time": 10 + np.arange(jobs) % 3,
        "requested_processors": 2 * (1 + np.arange(jobs)),
    }
    workload = Workload.from_columns(
        columns, processors=64, killed=np.arange(jobs) % 2 == 0, per_unit={"gpu": np.arange(jobs)}
    )
    mixed = shuffled(workload, seed)
    assert np.array_equal(mixed.submit_time, workload.submit_time)
    order = mixed.job_number
    assert Counter(order.tolist()) == Counter(range(jobs))
    assert np.array_equal(mixed.run_time, workload.run_time[order])
    assert np.array_equal(mixed.killed, workload.killed[order])
    assert np.array_equal(mixed.per_unit["gpu"], order)
    assert np.array_equal(mixed.requested_processors, 2 * (1 + order))
    assert np.array_equal(order, shuffled(workload, seed).job_number)


def test_codes_go_with_their_jobs() -> None:
    workload = coded()
    mixed = shuffled(workload, 5)
    assert mixed.name == "log shuffle 5"
    names = [code_names(mixed)[number] for number in mixed.executable.tolist()]
    assert names == [NAMES[number - 1] for number in mixed.job_number.tolist()]
    with pytest.raises(WorkloadError, match="shuffled: seed must be a whole number"):
        shuffled(workload, -1)
