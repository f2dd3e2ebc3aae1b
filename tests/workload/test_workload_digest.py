"""The digest of a workload: it tells apart what simulations read, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st

from hpcgym import load_workload
from hpcgym.naming import JOB_COLUMNS
from hpcgym.workload import write_swf, write_table
from hpcgym.workload.fingerprint import workload_digest
from hpcgym.workload.model import Workload

READ = {
    *("job_number", "submit_time", "run_time", "requested_time", "requested_processors"),
    *("user_id", "group_id", "executable", "queue", "partition", "requested_memory"),
    *("power_w", "slowdown", "array", "nice"),
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
        Workload.from_columns(COLUMNS, processors=4, units=[1, 2, 3], per_unit={"core": [1, 1, 1]}),
    ]
    assert len({digest, *map(workload_digest, others)}) == len(others) + 1
    named = replace(workload, name="other", header={"Note": ["x"]}, cleaning={"dropped: y": 3})
    assert workload_digest(named) == digest


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


@pytest.mark.parametrize("name", ["copy.swf", "copy.swf.gz", "copy.csv", "copy.parquet"])
def test_a_copy_in_another_format_is_the_same_workload(tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install pyarrow")
    workload = load_workload("lublin:jobs=200,processors=32,seed=3")
    write = write_swf if ".swf" in name else write_table
    write(workload, tmp_path / name)
    copy = load_workload(tmp_path / name, processors=32)
    assert workload_digest(copy) == workload_digest(workload)
