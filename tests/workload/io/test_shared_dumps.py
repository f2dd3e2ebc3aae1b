"""Small logs of the kinds that sites have, each with the right answer; see ../shared/cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgym import load_workload, simulate
from hpcgym.errors import WorkloadWarning

CASES = Path(__file__).parents[4] / "shared" / "cases"

pytestmark = [
    pytest.mark.skipif(not CASES.is_dir(), reason=f"{CASES} is not there"),
    pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning"),
]


def test_a_delimiter_of_several_characters() -> None:
    workload = load_workload(CASES / "odd-delimiter" / "jobs.txt", "none", processors=8)
    assert workload.requested_processors.tolist() == [4]
    assert workload.run_time.tolist() == [36_000]
    assert workload.requested_time.tolist() == [43_200]
    assert workload.wait_time.tolist() == [0]


def test_memory_of_a_core_is_marked_by_a_bit() -> None:
    folder = CASES / "reqmem-flag-bit"
    workload = load_workload(folder / "jobs.txt", cluster=folder / "slurm.conf")
    assert workload.job_number.tolist() == [200, 201]
    assert (workload.requested_memory * workload.requested_processors).tolist() == [16_000_000, -4]
    assert simulate(workload, "easy", cluster=folder / "slurm.conf").start.tolist() == [0, 0]


def test_a_dump_of_two_clusters() -> None:
    path = CASES / "two-clusters" / "jobs.txt"
    with pytest.warns(
        WorkloadWarning, match=r"has jobs of 2 clusters: alpha \(1\), beta \(1\)\. One"
    ):
        workload = load_workload(path, "none", processors=8)
    assert workload.submit_time.tolist() == [0, 1800]
    assert workload.wait_time.tolist() == [0, 5400]
    assert workload.job_number.tolist() == [100, 201]
    assert not any("run" in reason for reason in workload.cleaning)


def test_a_log_of_pbs_that_tells_times_by_records_alone() -> None:
    workload = load_workload(CASES / "pbs-without-ctime" / "pbs.txt", "none", processors=160)
    assert workload.job_number.tolist() == [10]
    assert workload.requested_processors.tolist() == [160]
    assert workload.wait_time.tolist() == [11]
    assert workload.run_time.tolist() == [1563]
    assert workload.requested_time.tolist() == [3540]


def test_a_dump_of_all_fields() -> None:
    workload = load_workload(CASES / "sacct-all-fields" / "jobs.txt", "none", processors=64)
    assert workload.job_number.tolist() == [701, 702, 703]
    assert workload.requested_processors.tolist() == [2, 4, 8]
    assert workload.run_time.tolist() == [3600, 3600, 1800]
    assert workload.header["Constraint"] == ["1 cpu-a|cpu-b"]  # as SubmitLine has it


def test_processors_of_a_cray_are_those_of_its_compute_nodes() -> None:
    workload = load_workload(CASES / "pbs-cray-xt" / "acct.log", processors=1000)
    assert workload.requested_processors.tolist() == [64, 10]
    assert workload.units.tolist() == [32, 5]


def test_a_run_that_was_lost_is_a_job() -> None:
    workload = load_workload(CASES / "pbs-rerun" / "rerun.log", processors=64)
    assert sorted(workload.wait_time.tolist()) == [300, 600, 44_040]
    hours = float((workload.run_time * workload.requested_processors).sum() / 3600)
    assert hours == pytest.approx(832)


def test_jobs_that_are_alone_on_their_nodes_are_counted() -> None:
    workload = load_workload(CASES / "pbs-place-excl" / "excl.log", processors=32)
    (reason,) = (reason for reason in workload.cleaning if "place=excl" in reason)
    assert workload.cleaning[reason] == 3
