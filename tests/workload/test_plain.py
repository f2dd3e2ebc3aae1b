"""Workloads as plain values: nothing is lost, and what is no workload is said."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from drawing import given
from mistakes import mistakes_of
from strategies import workloads

from hpcgym import load_workload
from hpcgym.workload import Workload
from hpcgym.workload.plain import as_plain, from_plain

FEW: dict[str, Any] = {"columns": {"submit_time": [0, 5]}, "processors": 4}


def assert_alike(jobs: Workload, other: Workload) -> None:
    mine, theirs = jobs._beside(), other._beside()
    assert mine.keys() == theirs.keys()
    for name, value in mine.items():
        if name == "per_unit":
            assert {k: v.tolist() for k, v in value.items()} == {
                k: v.tolist() for k, v in theirs[name].items()
            }
        else:
            assert np.array_equal(value, theirs[name]), name
    for name, column in jobs.columns.items():
        assert column.dtype == other.columns[name].dtype
        assert column.tolist() == other.columns[name].tolist()


@given(workloads())
def test_it_comes_back_from_json(jobs: Workload) -> None:
    assert_alike(from_plain(json.loads(json.dumps(as_plain(jobs)))), jobs)


@pytest.mark.parametrize(
    "source", ["eurora:jobs=200,seed=1", "light-esp", "lublin:jobs=50,processors=8,seed=2"]
)
def test_so_do_units_and_names(source: str) -> None:
    jobs = load_workload(source)
    jobs = jobs.with_columns(power_w=np.linspace(0.1, 200, len(jobs)))
    assert_alike(from_plain(json.loads(json.dumps(as_plain(jobs)))), jobs)


def extract() -> Workload:
    jobs = load_workload("lublin:jobs=50,processors=8,seed=2")
    return jobs.with_columns(wait_time=np.zeros(50, np.int64)).extract(int(jobs.submit_time[20]))


test_mistakes = mistakes_of(globals())
