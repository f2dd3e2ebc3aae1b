"""Units and resources of jobs: in workloads, and in tables of all kinds."""

import gzip
import json
import pickle

import numpy as np
import pandas as pd
import pytest

from hpcgym.cluster import Cluster
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.workload import (
    Workload,
    clean,
    from_pandas,
    load_workload,
    read_table,
    write_table,
)
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.needs import expected_waits

DEMANDS = {"gpu": [1, 0, 2], "core": [2, 4, 1], "mem": [10, 20, 30]}


def make(units=(3, 2, 1), per_unit=DEMANDS, **columns):
    columns = {"submit_time": [0, 1, 2], "run_time": [5, 6, 7], **columns}
    return Workload.from_columns(columns, processors=8, units=units, per_unit=per_unit)


def same(one, other):
    assert one.units.tolist() == other.units.tolist()
    assert list(one.per_unit) == list(other.per_unit)
    for name, demand in one.per_unit.items():
        assert demand.tolist() == other.per_unit[name].tolist()
        assert demand.dtype == np.int64
        assert not other.per_unit[name].flags.writeable
    assert one.requested_processors.tolist() == other.requested_processors.tolist()


# --- workloads -------------------------------------------------------------------------------


def test_cores_come_first_and_tell_the_processors():
    workload = make()
    assert list(workload.per_unit) == ["core", "gpu", "mem"]
    assert workload.requested_processors.tolist() == [6, 8, 1]
    same(make(requested_processors=[6, -1, 1]), workload)
    problem = (
        "workload: the job of row 1 requests 9 processors, which is not its units \\* core = 2"
    )
    with pytest.raises(WorkloadError, match=problem):
        make(requested_processors=[6, 9, 1])


def test_what_is_left_out():
    assert make(per_unit=None, units=None).units is None
    assert dict(make(per_unit=None, units=None).per_unit) == {}
    same(make(per_unit={"core": [1, 1, 1]}, units=[1, 2, 3]), make(per_unit=None, units=[1, 2, 3]))
    shared = make(per_unit={"gpu": [1, 1, 1]}, units=[2, 1, 3], requested_processors=[8, 8, -1])
    assert shared.per_unit["core"].tolist() == [4, 8, 1]
    assert make(units=None).units.tolist() == [1, 1, 1]


def test_units_go_where_the_jobs_go():
    workload = make()
    for rows in (slice(1, 3), np.array([False, True, True]), [1, 2]):
        part = workload.take(rows)
        assert part.units.tolist() == [2, 1]
        assert part.per_unit["gpu"].tolist() == [0, 2]
    late = make(submit_time=[2, 0, 1])
    assert late.units.tolist() == [2, 1, 3]
    assert late.per_unit["mem"].tolist() == [20, 30, 10]
    assert late.requested_processors.tolist() == [8, 1, 6]
    same(workload.with_columns(run_time=[1, 1, 1]), workload)
    same(pickle.loads(pickle.dumps(workload)), workload)
    assert clean(make(run_time=[5, -1, 7])).units.tolist() == [3, 1]
    frame = workload.to_pandas()
    assert frame.columns[18:].tolist() == ["units", "core", "gpu", "mem"]


@pytest.mark.parametrize(
    ("units", "per_unit", "problem"),
    [
        ([1, 0, 1], {}, "column 'units', row 1, is 0, but must be a whole number from 1 to"),
        ([1, 1], {}, r"column 'units' has shape \(2,\)"),
        ([1, 1, 1.5], {}, "column 'units' must hold whole numbers"),
        ([1, 1, 1], {"core": [0, 1, 1]}, "column 'core', row 0, is 0, but must be .* from 1"),
        ([1, 1, 1], {"gpu": [0, -1, 1]}, "column 'gpu', row 1, is -1, but must be .* from 0 to"),
        ([1, 1, 2**40], {}, "column 'units', row 2"),
        ([1, 1, 1], {"run_time": [1, 1, 1]}, "'run_time' cannot be the name of a resource"),
    ],
)
def test_amounts_that_are_none(units, per_unit, problem):
    with pytest.raises(WorkloadError, match=problem):
        make(units=units, per_unit=per_unit)


def test_a_fingerprint_tells_them_apart():
    prints = [
        fingerprint([make()]),
        fingerprint([make(per_unit={**DEMANDS, "gpu": [0, 0, 0]})]),
        fingerprint([make(per_unit={**DEMANDS, "mic": [0, 0, 0]})]),
        fingerprint([make(units=None, per_unit=None, requested_processors=[6, 8, 1])]),
    ]
    assert len({*prints}) == len(prints)


# --- tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet", "a.json", "a.json.gz"])
def test_written_and_read_again(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    header = {"Queue": ["1 debug", "7 long"]}
    workload = Workload.from_columns(
        {
            "job_number": [4, 5, 6],
            "submit_time": [0, 1, 2],
            "queue": [1, 7, 1],
            "average_cpu_time": [0.5, -1, -1],
        },
        processors=64,
        units=[3, 2, 1],
        per_unit=DEMANDS,
        header=header,
    )
    path = tmp_path / name
    write_table(workload, path)
    again = read_table(path)
    same(again, workload)
    for column, values in workload.columns.items():
        assert np.array_equal(values, again.columns[column]), column
    if "json" in name:
        assert (again.name, again.processors) == ("a", 64)
        assert again.header == {"MaxProcs": ["64"], **header}
    else:
        assert again.processors == 8  # the largest job's


def test_blanks(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "submit_time,requested_processors,units,core,gpu\n0,8,2,,1\n1,,,,\n2,,3,2,\n3,5,,,2\n"
    )
    workload = read_table(path)
    assert workload.units.tolist() == [2, 1, 3, 1]
    assert workload.per_unit["core"].tolist() == [4, 1, 2, 5]
    assert workload.per_unit["gpu"].tolist() == [1, 0, 0, 2]
    assert workload.requested_processors.tolist() == [8, 1, 6, 5]
    assert workload.processors == 8


@pytest.mark.parametrize(
    ("column", "meant"),
    [
        ("cores", "core"),
        ("Core", "core"),
        ("cpus", "core"),
        ("unit", "units"),
        ("UNITS", "units"),
        ("run_tim", "run_time"),
        ("Run time", "run_time"),
        ("users", "user"),
        ("queues", "queue"),
        ("Memory", "mem"),
    ],
)
def test_a_typo_is_no_resource(column, meant):
    table = pd.DataFrame({"submit_time": [0], "units": [1], "core": [1], column: [1]})
    with pytest.raises(WorkloadError, match=f"unknown column '{column}'; did you mean '{meant}'"):
        from_pandas(table.drop(columns="core" if meant == "core" else []))


def test_the_numbers_of_rows_are_no_resource(tmp_path):
    path = tmp_path / "jobs.csv"
    pd.DataFrame({"submit_time": [0], "units": [1]}).to_csv(path)
    problem = "jobs.csv has an unknown column; 'Unnamed: 0' cannot be the name of a resource"
    with pytest.raises(WorkloadError, match=problem):
        read_table(path)


def test_memory_needs_to_know_whose_it_is():
    table = pd.DataFrame({"submit_time": [0], "requested_processors": [4], "mem": [500]})
    problem = "unknown column 'mem'; it is a resource, .* the table lacks: 'units', .* or 'core'"
    with pytest.raises(WorkloadError, match=problem):
        from_pandas(table)
    assert from_pandas(table.assign(units=2)).per_unit["mem"].tolist() == [500]


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.json"])
def test_memory_with_its_unit(tmp_path, name):
    path = tmp_path / name
    memory = ["16 GB", "2tb", "500", None, "1.5 GB", "7MB"]
    table = pd.DataFrame({"submit_time": range(6), "core": 1, "mem": memory})
    if name.endswith("csv"):
        table.to_csv(path, index=False)
    else:
        path.write_text(table.to_json(orient="records"))
    assert read_table(path).per_unit["mem"].tolist() == [16_000, 2_000_000, 500, 0, 1_500, 7]
    text = path.read_text()
    for other in ("16G", "1.5 MB"):
        path.write_text(text.replace("7MB", other))
        problem = f"mem is '{other}', not a number; it must be whole MB or such as"
        with pytest.raises(WorkloadError, match=problem):
            read_table(path)


def test_memory_of_processors_is_in_kilobytes():
    table = pd.DataFrame({"submit_time": [0], "requested_memory": ["16 GB"]})
    problem = "requested_memory is '16 GB', not a number, of kilobytes a processor"
    with pytest.raises(WorkloadError, match=problem):
        from_pandas(table)


@pytest.mark.parametrize(
    ("column", "value", "least"),
    [("units", 0, 1), ("core", -1, 1), ("gpu", 0.5, 0), ("gpu", -1, 0), ("units", 1e12, 1)],
)
def test_no_amounts_are_an_error_or_counted(column, value, least):
    table = pd.DataFrame({"submit_time": [0, 1], "units": [1, 2], "core": [1, 1], "gpu": [0, 0]})
    table[column] = [1, value]
    problem = f"row 1: column {column} is .*, (but must .* from {least} to|not a who)"
    with pytest.raises(WorkloadError, match=problem):
        from_pandas(table)
    kept = from_pandas(table, errors="skip")
    assert len(kept) == 1
    reason = f"line with {column} out of its limits" if value != 0.5 else "line with a fraction"
    assert [why.startswith(f"dropped: {reason}") for why in kept.cleaning] == [True]


def test_queues_by_name():
    table = pd.DataFrame({"submit_time": [0, 1, 2], "queue": ["long", "debug", "long"]})
    workload = from_pandas(table, processors=4, queues={"debug": 1, "long": 5})
    assert workload.queue.tolist() == [5, 1, 5]
    assert workload.header == {"Queue": ["1 debug", "5 long"]}
    problem = "row 0: unknown queue 'long'; did you mean 'longer'. known are debug, longer"
    with pytest.raises(WorkloadError, match=problem):
        from_pandas(table, processors=4, queues={"debug": 1, "longer": 5})
    assert len(from_pandas(table, processors=4, queues={"debug": 1}, errors="skip")) == 1


def test_queues_by_the_names_of_the_machine(tmp_path):
    machine = Cluster(8, queues={"Long": 9, "debug": 1, "idle": 2})
    table = pd.DataFrame({
        "submit_time": [0, 1, 2, 3], "run_time": 5, "requested_time": 5, "requested_processors": 1,
        "queue": ["long", "debug", None, "Long"],
    })  # fmt: skip
    table.to_csv(tmp_path / "jobs.csv", index=False)
    table.to_json(tmp_path / "jobs.json", orient="records")
    category = table.astype({"queue": "category"})
    for source in (table, category, tmp_path / "jobs.csv", tmp_path / "jobs.json"):
        workload = load_workload(source, cluster=machine)
        assert workload.queue.tolist() == [1, 2, -1, 1]
        assert expected_waits(workload, machine.queues).tolist() == [9, 1, 9, 9]
        own = load_workload(source)
        assert own.queue.tolist() == [1, 2, -1, 3]
        assert own.header["Queue"] == ["1 long", "2 debug", "3 Long"]
        assert expected_waits(own, machine.queues).tolist() == [9, 1, 9, 9]
    with pytest.raises(WorkloadError, match=r"row 1: unknown queue 'debug'; .* Long, short"):
        load_workload(table, cluster=Cluster(8, queues={"Long": 9, "short": 1}))


def test_numbers_of_queues_are_not_the_machines(tmp_path):
    machine = Cluster(8, queues={"long": 9, "debug": 1})
    jobs = {"submit_time": [0, 1], "run_time": 5, "requested_time": 5, "requested_processors": 1}
    numbered = load_workload(pd.DataFrame({**jobs, "queue": [2, 1]}), cluster=machine)
    assert (numbered.queue.tolist(), "Queue" in numbered.header) == ([2, 1], False)
    with pytest.warns(WorkloadWarning, match="in CSV and Parquet, write names"):
        assert expected_waits(numbered, machine.queues).tolist() == [9, 9]
    mixed = load_workload(pd.DataFrame({**jobs, "queue": ["2", "debug"]}), cluster=machine)
    assert mixed.header["Queue"] == ["1 2", "2 debug"]
    own = {"queues": {"long": 7, "debug": 3}, "jobs": [{"submit_time": 0, "queue": "long"}]}
    told = load_workload(as_json(tmp_path, own), "none", cluster=machine)
    assert (told.queue.tolist(), told.header["Queue"]) == ([7], ["7 long", "3 debug"])


# --- JSON ------------------------------------------------------------------------------------


def as_json(tmp_path, content, name="jobs.json"):
    path = tmp_path / name
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


def test_json_with_machine_and_queues(tmp_path):
    jobs = [
        {"submit_time": 0, "run_time": 9, "queue": "debug", "units": 2, "core": 4, "gpu": 1},
        {"submit_time": 1, "run_time": 9, "queue": 2, "core": 3, "mem": 500},
    ]
    content = {"processors": 32, "queues": {"debug": 1, "long": 2}, "jobs": jobs}
    for name in ("jobs.json", "jobs.json.gz"):
        workload = load_workload(as_json(tmp_path, content, name))
        assert (workload.name, workload.processors) == ("jobs", 32)
        assert workload.queue.tolist() == [1, 2]
        assert workload.units.tolist() == [2, 1]
        assert workload.per_unit["gpu"].tolist() == [1, 0]
        assert workload.per_unit["mem"].tolist() == [0, 500]
        assert workload.header == {"MaxProcs": ["32"], "Queue": ["1 debug", "2 long"]}
    assert load_workload(str(tmp_path / "jobs.json"), processors=16).processors == 16


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("[1, 2", "is not JSON: "),
        ("\x00", "is not JSON: "),
        ({"submit_time": 0}, "holds neither a list of jobs nor an object with 'jobs'"),
        ({"jobs": 3}, "holds neither a list of jobs"),
        ({"job": [], "jobs": []}, "unknown entry 'job'; did you mean 'jobs'"),
        ([], r"jobs\.json holds no job"),
        ({"jobs": []}, r"jobs\.json holds no job"),
        ([3], "job 1 is not an object but 3"),
        ([{"submit_time": 0}, {"submit_time": [1]}], "job 2: submit_time is a list, not a number"),
        ([{"submit_time": True}], "job 1: submit_time is true, not a number"),
        ([{"submit_time": 0}, {"submit_time": "x"}], "job 2: column submit_time is 'x', not a num"),
        ([{"submit_time": 0, "units": 0}], "job 1: column units is 0, but must be a whole number"),
        ([{"submit_time": 0, "queue": "de\nbug"}], r"job 1: 'de\\nbug' is no name of a queue"),
        (
            {"queues": {"debug": 1}, "jobs": [{"submit_time": 0}, {"queue": "debg"}]},
            "job 2: unknown queue 'debg'; did you mean 'debug'",
        ),
        ({"queues": {"a": -1}, "jobs": []}, "'queues' must tell .*, at least 0"),
        ({"queues": ["debug"], "jobs": []}, "'queues' must tell the number of each name"),
        ({"queues": {"a": 1, "b": 1}, "jobs": []}, "two of the 'queues' have the same number"),
        (
            {"processors": 0, "jobs": [{"submit_time": 0}]},
            r"jobs\.json: processors must be a whole number",
        ),
    ],
)
def test_json_that_holds_no_workload(tmp_path, content, problem):
    path = as_json(tmp_path, content)
    with pytest.raises(WorkloadError, match=problem) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)
