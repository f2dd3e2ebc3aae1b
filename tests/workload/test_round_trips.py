"""Whatever jobs have is there again when they are written and read, in every format that has it."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of

from hpcgym import load_workload
from hpcgym.errors import WorkloadWarning
from hpcgym.names import JOB_COLUMNS, NAME_COLUMNS, SWF_COLUMNS
from hpcgym.workload import (
    Workload,
    clean,
    needs_of,
    read_swf,
    read_table,
    write_swf,
    write_table,
)
from hpcgym.workload.columns import kind_of
from hpcgym.workload.fingerprint import fingerprint, given_digest
from hpcgym.workload.io.swf_header import HEADER_KEYS, names_of

TABLES = ("csv", "csv.gz", "json", "json.gz", "parquet")

#: Names that a reader may take for numbers, blanks or lists.
NAMES = ("NA", "null", "007", "a, b", 'say "x"', "None", "nan", "1e5", "é", "-1", "#x", "True")


def numbers_of(column: str) -> st.SearchStrategy:
    """Draw what a column may hold, often what it may just hold."""
    kind = kind_of(column)
    if kind.dtype is np.float64:
        return st.floats(max(kind.lowest, -1e9), min(kind.highest, 1e9))
    return st.one_of(
        st.integers(int(kind.lowest), int(kind.highest)), st.integers(max(int(kind.lowest), 1), 200)
    )


@st.composite
def workloads(draw: st.DrawFn, columns: tuple[str, ...] = JOB_COLUMNS) -> Workload:
    """Jobs in which each column is known of all, some or none, with names, units and others."""
    n = draw(st.integers(1, 6))
    columns_drawn: dict[str, Any] = {}
    for column in columns:
        if column == "requested_processors":
            continue  # told by the units
        values = numbers_of(column) | st.just(-1) if column != "submit_time" else numbers_of(column)
        if column in ("submit_time", "job_number") or draw(st.booleans()):
            columns_drawn[column] = draw(st.lists(values, min_size=n, max_size=n))
    columns_drawn["job_number"] = list(range(1, n + 1))
    if "preceding_job" in columns_drawn:  # of several in a text none has more than 18 digits
        columns_drawn["preceding_job"] = draw(st.lists(st.integers(-1, 9), min_size=n, max_size=n))
    names = draw(st.permutations(NAMES))
    header = {
        HEADER_KEYS[column]: [
            f"{number} {name}" for number, name in zip(sorted(of), names, strict=False)
        ]
        for column in NAME_COLUMNS.values()
        if (of := {number for number in columns_drawn.get(column, ()) if number >= 0})
    }
    amounts = st.integers(1, 60)
    units, core, gpu = (draw(st.lists(amounts, min_size=n, max_size=n)) for _ in range(3))
    return Workload.from_columns(
        columns_drawn,
        processors=draw(st.integers(1, 10**6)),
        name="jobs",
        killed=np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n))),
        header=header,
        units=units,
        per_unit={"core": core, "gpu": gpu} if draw(st.booleans()) else {"mem": core},
        more_preceding=[
            (job, other)
            for job, first in enumerate(columns_drawn.get("preceding_job", ()), 1)
            for other in draw(st.lists(st.integers(1, 9), max_size=2))
            if first > 0
        ],
    )


def check_same(again: Workload, workload: Workload, columns: tuple[str, ...] = JOB_COLUMNS) -> None:
    for column in columns:
        assert np.array_equal(again.columns[column], workload.columns[column]), column
        assert again.columns[column].dtype == kind_of(column).dtype
        assert not again.columns[column].flags.writeable
    for column in NAME_COLUMNS.values():
        assert names_of(again, column) == names_of(workload, column)


def check_all(again: Workload, workload: Workload) -> None:
    check_same(again, workload)
    assert again.killed.tolist() == workload.killed.tolist()
    assert again.units is not None
    assert workload.units is not None
    assert again.units.tolist() == workload.units.tolist()
    assert list(again.per_unit) == list(workload.per_unit)
    for name, amounts in workload.per_unit.items():
        assert again.per_unit[name].tolist() == amounts.tolist()
    assert given_digest(replace(again, first_submit_s=0)) == given_digest(
        replace(workload, first_submit_s=0)
    )


@settings(max_examples=60)
@given(workload=workloads(), ending=st.sampled_from(TABLES))
def test_tables_hold_all(
    tmp_path_factory: pytest.TempPathFactory, workload: Workload, ending: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("table") / f"jobs.{ending}"
    write_table(workload, path)
    size = workload.processors
    again = read_table(path, processors=None if "json" in ending else size)
    assert (again.name, again.processors, again.cleaning) == (path.name, size, {})
    check_all(again, workload)


@given(workload=workloads())
def test_nothing_is_lost_on_the_way(workload: Workload) -> None:
    for again in (
        pickle.loads(pickle.dumps(workload)),
        workload.with_columns(),
        workload.take(slice(None)),
        workload.take(np.ones(len(workload), np.bool_)),
        clean(workload, "none"),
        load_workload(workload, "none"),
    ):
        check_all(again, workload)
        assert fingerprint([again]) == fingerprint([workload])
        assert again.header == workload.header
        assert (again.name, again.first_submit_s) == ("jobs", workload.first_submit_s)


@settings(max_examples=60)
@given(workload=workloads(SWF_COLUMNS), ending=st.sampled_from(["swf", "swf.gz"]))
def test_swf_holds_its_columns_and_names(
    tmp_path_factory: pytest.TempPathFactory, workload: Workload, ending: str
) -> None:
    path = tmp_path_factory.mktemp("log") / f"jobs.{ending}"
    notes = {"Note": ["one\n\ntwo", "three (4), é"], "": ["free", "text"], "Local": ["of the site"]}
    workload = replace(workload, header={**workload.header, **notes})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_swf(workload, path)
    again = read_swf(path)
    check_same(again, workload, SWF_COLUMNS)
    size = {"Version": ["2.2"], "MaxProcs": [str(workload.processors)]}
    assert again.header == {**workload.header, **size}
    assert (again.name, again.processors, again.cleaning) == ("jobs", workload.processors, {})


def test_numbers_of_names_stay_and_unused_names_do_not(tmp_path: Path) -> None:
    large = 2**60 + 1
    columns = {"submit_time": range(4), "executable": [large, 7, -1, 5]}
    header = {"Code": [f"{large} big", "7 small", "9 unused"]}
    for ending in ("csv", "json"):
        write_table(
            Workload.from_columns(columns, processors=4, header=header), tmp_path / f"a.{ending}"
        )
        again = read_table(tmp_path / f"a.{ending}", processors=4)
        assert again.executable.tolist() == [large, 7, -1, 5]
        assert again.header["Code"] == ["7 small", f"{large} big"]


# --- What SWF has no place for --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("others", "lost"),
    [
        (
            {"per_unit": {"core": [1, 1, 1, 1], "gpu": [0, 2, 0, 1], "mic": [0, 1, 0, 0]}},
            "2 of 4 jobs have: gpu (2), mic (1)",
        ),
        (
            {"units": [1, 2, 3, 1], "per_unit": {"core": [1, 4, 1, 2], "gpu": [1, 0, 0, 0]}},
            "3 of 4 jobs have: units of several cores (2), gpu (1)",
        ),
        ({"per_unit": {"core": [1] * 4, "mem": [0, 5, 0, 5]}}, "2 of 4 jobs have: mem (2)"),
        (
            {"columns": {"slowdown": [2, -1, -1, 1], "power_w": [1, 1, -1, -1]}},
            "3 of 4 jobs have: power_w (2), slowdown (2)",
        ),
        (
            {"more_preceding": [(3, 1)], "columns": {"job_number": [1, 2, 3, 4]}},
            "1 of 4 jobs have: preceding jobs beside the first (1)",
        ),
        # names of queues, memory, units of one core: what is read asks for the same
        (
            {
                "columns": {"queue": [1, 2, 1, 2], "requested_memory": [1000, 2000, -1, 500]},
                "header": {"Queue": ["1 short", "2 long"]},
                "units": [1, 2, 3, 4],
                "per_unit": {"core": [1] * 4, "mem": [1, 2, 0, 1], "gpu": [0] * 4},
            },
            "",
        ),
    ],
)
def test_what_is_lost_is_counted_in_one_line(
    tmp_path: Path, others: dict[str, Any], lost: str
) -> None:
    columns = {"submit_time": [0, 1, 2, 3], "run_time": [5] * 4, **others.pop("columns", {})}
    workload = Workload.from_columns(columns, processors=16, name="log", **others)
    path = tmp_path / "log.swf"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WorkloadWarning)
        write_swf(workload, path)
    said = [str(warning.message) for warning in caught]
    keeps = "; a workload in CSV, JSON or Parquet keeps it (write_table)"
    assert said == ([f"{path}: SWF has no place for what {lost}{keeps}"] if lost else [])
    again = read_swf(path)
    if not lost:
        resources = ("core", "mem", "gpu")
        assert np.array_equal(needs_of(again, resources), needs_of(workload, resources))
        assert again.header["Queue"] == workload.header["Queue"]


def refused(write: Any, name: str, workload: Workload, folder: Path) -> None:
    """Write what is refused: no file is there then."""
    try:
        write(workload, folder / name)
    finally:
        assert not (folder / name).exists()


ONE = Workload.from_columns({"submit_time": [0]}, processors=1)


def extract() -> Workload:
    log = load_workload("lublin:jobs=60,processors=16,seed=1,load=2")
    return log.with_columns(wait_time=np.zeros(60)).extract(int(log.submit_time[30]))


test_mistakes = mistakes_of(globals())
