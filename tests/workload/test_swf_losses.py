"""What a file in the Standard Workload Format has no place for is said as it is written."""

import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import WorkloadError, WorkloadWarning
from hpcgym.workload import (
    Workload,
    load_workload,
    needs_of,
    read_swf,
    with_codes,
    write_swf,
    write_table,
)
from hpcgym.workload.io.files import TABLE_ENDINGS

COLUMNS = {"submit_time": [0, 1, 2, 3], "run_time": [5, 5, 5, 5], "requested_time": [9, 9, 9, 9]}


def made(**others):
    columns = COLUMNS | others.pop("columns", {})
    return Workload.from_columns(columns, processors=16, name="log", **others)


@pytest.mark.parametrize(
    ("others", "told"),
    [
        (
            {"per_unit": {"core": [1, 1, 1, 1], "gpu": [0, 2, 0, 1], "mic": [0, 1, 0, 0]}},
            r"2 of 4 jobs have: gpu \(2\), mic \(1\);",
        ),
        (
            {"units": [1, 2, 3, 1], "per_unit": {"core": [1, 4, 1, 2], "gpu": [1, 0, 0, 0]}},
            r"3 of 4 jobs have: units of several cores \(2\), gpu \(1\);",
        ),
        ({"per_unit": {"core": [1] * 4, "mem": [0, 5, 0, 5]}}, r"2 of 4 jobs have: mem \(2\);"),
        ({"columns": {"power_w": [5, -1, -1, -1]}}, r"1 of 4 jobs have: power_w \(1\);"),
        (
            {"columns": {"slowdown": [2, -1, -1, 1], "power_w": [1, 1, -1, -1]}},
            r"3 of 4 jobs have: power_w \(2\), slowdown \(2\);",
        ),
    ],
)
def test_what_is_lost_is_counted_in_one_line(tmp_path, others, told):
    with pytest.warns(WorkloadWarning) as found:
        write_swf(made(**others), tmp_path / "log.swf")
    (said,) = [str(warning.message) for warning in found]
    assert said.startswith(f"{tmp_path / 'log.swf'}: SWF has no place for what ")
    assert said.endswith("; a workload in CSV, JSON or Parquet keeps it (write_table)")
    with pytest.warns(WorkloadWarning, match=told):
        write_swf(made(**others), tmp_path / "log.swf")
    with warnings.catch_warnings():
        warnings.simplefilter("error", WorkloadWarning)
        write_table(made(**others), tmp_path / "log.json")
    again = load_workload(tmp_path / "log.json", "none")
    for name, demand in made(**others).per_unit.items():
        assert np.array_equal(again.per_unit[name], demand)


def test_nothing_is_said_where_nothing_is_lost(tmp_path):
    """Names of queues and codes, memory, units of one core: what is read asks for the same."""
    columns = {"queue": [1, 2, 1, 2], "requested_memory": [1000, 2000, -1, 500]}
    header = {"Queue": ["1 short", "2 long"]}
    demands = {"core": [1] * 4, "mem": [1, 2, 0, 1], "gpu": [0] * 4}
    workload = made(columns=columns, header=header, units=[1, 2, 3, 4], per_unit=demands)
    workload = with_codes(workload, ["a", "b", "a", "c"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_swf(workload, tmp_path / "log.swf")
        again = read_swf(tmp_path / "log.swf")
    resources = ("core", "mem", "gpu")
    assert np.array_equal(needs_of(again, resources), needs_of(workload, resources))
    for key in ("Queue", "Code"):
        assert again.header[key] == workload.header[key]


def test_the_commands_and_the_schedules_say_it_too(tmp_path):
    jobs = load_workload("eurora:jobs=300,seed=1")
    counts = {r: int((jobs.per_unit[r] > 0).sum()) for r in ("gpu", "mic")}
    assert min(counts.values()) > 0
    told = f"gpu ({counts['gpu']}), mic ({counts['mic']}); a workload in CSV, JSON or Parquet"
    file = tmp_path / "jobs.swf"
    for arguments in (
        ["generate", "eurora:jobs=300,seed=1", file],
        ["simulate", "eurora:jobs=300,seed=1", "--cluster", "eurora", "--output", file],
    ):
        file.unlink(missing_ok=True)
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        assert " ".join(result.stderr.split()).count(told) == 1
    with pytest.warns(WorkloadWarning, match="SWF has no place for"):
        hpcgym.simulate(jobs, "easy", cluster="eurora").to_swf(file)


@pytest.mark.parametrize("ending", [*TABLE_ENDINGS, ".CSV"])
def test_the_name_of_a_table_is_none_for_swf(tmp_path, ending):
    path = tmp_path / f"log{ending}"
    with pytest.raises(WorkloadError, match=r"the name is that of a table.*\.swf or \.swf\.gz$"):
        write_swf(made(), path)
    assert not path.exists()
    write_swf(made(), tmp_path / "log.txt")
    assert len(load_workload(tmp_path / "log.txt", "none", processors=1)) == 4
