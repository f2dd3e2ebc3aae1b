"""The command line: simulate, compare, traces and generate."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import JOBS, as_csv, as_json, run, succeed

from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.schedulers import described
from hpcgym.cli.simulate import DEFAULT
from hpcgym.naming import duration
from hpcgym.simulation.run import simulate
from hpcgym.version import __version__
from hpcgym.workload import (
    interesting_extracts,
    load_workload,
    read_swf,
    write_swf,
)
from hpcgym.workload.archive import TRACES


@pytest.fixture(scope="module")
def trace_file(tmp_path_factory):
    """A file of two weeks, with jobs that cleaning drops and repairs."""
    workload = load_workload("lublin:jobs=3000,processors=32,load=0.5")
    run_time = workload.run_time.copy()
    run_time[3] = 0
    run_time[5] = workload.requested_time[5] + 7
    path = tmp_path_factory.mktemp("traces") / "small.swf.gz"
    write_swf(workload.with_columns(run_time=run_time), path)
    return path


# --- simulate ------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_help_that_cannot_be_written_ends_in_a_line() -> None:
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "hpcgym", "--help"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "hpcgym: No space left on device\n")


def test_json_has_all_metrics_in_full_and_where_they_come_from(trace_file):
    value = as_json("simulate", trace_file, "--clean", "glesser", "--passes", "per-event")
    result = simulate(load_workload(trace_file, "glesser"), "easy", passes="per-event")
    for name, metric in result.metrics.items():
        if name.startswith("energy_"):
            assert name not in value  # nobody gave watts
        else:
            assert value[name] == (metric if metric == metric else None), name
    assert value["jobs"] == 2999
    assert value["workload"] == "small"
    assert value["processors"] == 32
    assert value["clean"] == "glesser"
    assert value["cleaning"] == {
        "dropped: no run time": 1,
        "repaired: run_time cut at requested_time": 1,
    }
    assert value["scheduler"] == {"name": "easy", **described(result.scheduler)}
    assert value["hpcgym"] == __version__


def test_what_is_no_number_is_null():
    value = as_json("simulate", "lublin:jobs=1")
    classes = [value[f"mean_bsld_{length}"] for length in ("short", "medium", "long")]
    assert sorted(classes, key=str) == [1.0, None, None]
    (row,) = as_csv("simulate", "lublin:jobs=1")
    assert sorted(row[f"mean_bsld_{one}"] for one in ("short", "medium", "long")) == ["", "", "1.0"]


def test_the_table_is_for_people(trace_file):
    text = succeed("simulate", trace_file).stdout
    mean = load_workload(trace_file)
    mean = simulate(mean, "easy").metrics["mean_bsld"]
    assert f"{mean:.4g}"[:4] in text
    assert "small · 2,999 jobs · 32 processors · easy · per-timestamp passes" in text
    assert "1 dropped: no run time" in text
    assert "1 repaired: run_time cut at requested_time" in text


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_scheduler_can_be_named(name):
    assert as_json("simulate", JOBS, "--scheduler", name)["scheduler"]["name"] == name


def test_a_week_and_a_month(trace_file):
    weeks = load_workload(trace_file).weeks()
    value = as_json("simulate", trace_file, "--week", "1")
    assert value["workload"] == "small week 1"
    assert value["jobs"] == len(weeks[0])
    result = run("simulate", trace_file, "--week", "40")
    assert result.exit_code == 1
    assert "small has no jobs in week 40, only from week 1 to" in result.stderr
    result = run("simulate", trace_file, "--week", "0")
    begin = load_workload(trace_file).first_submit_s
    assert "small has week 1 to" in result.stderr
    assert f"--from {begin} --to {begin + 7 * 86_400} takes week 0" in result.stderr
    assert run("simulate", trace_file, "--week", "1", "--month", "1").exit_code == 2


def test_bad_lines_are_skipped_on_demand(tmp_path):
    path = tmp_path / "bad.swf"
    write_swf(load_workload("lublin:jobs=9"), path)
    path.write_text(path.read_text() + "10 some text\n")
    assert run("simulate", path).exit_code == 1
    assert as_json("simulate", path, "--errors", "skip")["jobs"] == 9


@pytest.mark.parametrize("name", ["a.swf", "a.swf.gz"])
def test_the_schedule_as_swf(tmp_path, name):
    path = tmp_path / name
    result = succeed("simulate", JOBS, "--output", path, "--format", "json")
    assert result.stderr == f"wrote {path}\n"
    written = read_swf(path)
    expected = simulate(load_workload(JOBS), "easy")
    np.testing.assert_array_equal(written.wait_time, expected.wait)
    np.testing.assert_array_equal(written.run_time, expected.run_time)
    assert json.loads(result.stdout)["mean_wait_s"] == pytest.approx(written.wait_time.mean())


# --- times ---------------------------------------------------------------------------------------


def test_long_times_are_in_words_too() -> None:
    facts = as_json("simulate", JOBS)
    lines = succeed("simulate", JOBS).stdout.splitlines()
    (line,) = (line for line in lines if line.startswith("makespan"))
    assert facts["makespan_s"] > 3600
    assert line.split() == [
        "makespan", f"{facts['makespan_s']:,}", "s", "=", *duration(facts["makespan_s"]).split()
    ]  # fmt: skip


# --- compare -------------------------------------------------------------------------------------


def test_compare_by_default():
    assert set(DEFAULT) <= set(SCHEDULERS)
    value = as_json("compare", JOBS, "--passes", "per-event")
    assert [entry["scheduler"]["name"] for entry in value["results"]] == list(DEFAULT)
    assert {entry["scheduler"]["passes"] for entry in value["results"]} == {"per-event"}


@pytest.mark.slow
def test_compare_draws(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    files = [tmp_path / "a.png", tmp_path / "a.html"]
    arguments = ("compare", JOBS, "--picture", files[0], "--html", files[1], "--scheduler")
    succeed("compare", JOBS, "--scheduler", "fcfs,easy,saf")  # who compiles for long says how far
    result = succeed(*arguments, "fcfs,easy,saf")
    assert result.stderr == "".join(f"wrote {file}\n" for file in files)
    assert all(file.stat().st_size > 10_000 for file in files)
    missing = "Gantt charts are left out: there are 4 schedulers, and at most 3 are drawn."
    result = succeed(*arguments, "fcfs,easy,saf,easy++", "--force")
    assert result.stderr == "".join(f"wrote {file}\n{file}: {missing}\n" for file in files)
    assert missing in files[1].read_text()


# --- traces and generate -------------------------------------------------------------------------


def test_traces_list(tmp_path):
    (tmp_path / "KTH-SP2.swf.gz").write_bytes(b"")
    env = {"HPCGYM_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    text = succeed("traces", "list", env=env).stdout
    for trace in TRACES.values():
        assert trace.name in text
        assert trace.system in text
    assert "CEA-Curie: Glesser's thesis (2016) simulates 80,640 processors" in text
    assert "SDSC-BLUE: Glesser's thesis (2016) has edition 4.1" in text
    rows = json.loads(succeed("traces", "list", "--format", "json", env=env).stdout)
    assert [row["name"] for row in rows] == list(TRACES)
    assert rows[0]["path"] == str(tmp_path / "KTH-SP2.swf.gz")
    assert rows[1]["path"] is None
    text = succeed("traces", "list", "--format", "csv", env=env).stdout
    assert len(text.splitlines()) == 1 + len(TRACES)


def test_traces_extracts_are_what_other_commands_take(tmp_path):
    workload = load_workload("lublin:jobs=2000,processors=64,load=0.95,seed=1")
    log = str(tmp_path / "log.swf")
    write_swf(simulate(workload, "easy").as_workload(), log)
    options = ("--hours", "10", "-n", "2")
    found = as_json("traces", "extracts", log, *options)
    expected = interesting_extracts(load_workload(log), 2, 36_000)
    assert [row["from"] for row in found["extracts"]] == expected["begin_s"].tolist()
    assert "rank" in succeed("traces", "extracts", log).stdout
    assert succeed("traces", "extracts", log, "--format", "csv").stdout.startswith("from,to,")
    first = found["extracts"][0]
    times = ("--from", str(first["from"]), "--to", str(first["to"]))
    succeed("simulate", log, *times, "--scheduler", "easy")


def test_traces_of_ones_own_are_listed_shown_and_simulated(tmp_path):
    env = {"HPCGYM_DATA": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    (tmp_path / "my-log.swf").write_text(
        "; MaxProcs: 4\n1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1\n"
    )
    path = str(tmp_path / "my-log.swf")
    assert "my-log" in succeed("traces", "list", env=env).stdout
    rows = json.loads(succeed("traces", "list", "--format", "json", env=env).stdout)
    assert [row["name"] for row in rows] == [*TRACES, "my-log"]
    assert rows[-1] | {"path": path, "jobs": None} == rows[-1]
    assert path in succeed("traces", "show", "my-log", env=env).stdout
    result = succeed("simulate", "my-log", "--format", "json", env=env)
    assert json.loads(result.stdout)["workload"] == "my-log"
    result = run("simulate", "my-lob", env=env)
    assert result.exit_code == 1
    assert "did you mean my-log?" in result.stderr


def test_traces_fetch_what_is_here_already(tmp_path):
    for name in ("KTH-SP2", "CTC-SP2"):
        (tmp_path / f"{name}.swf.gz").write_bytes(b"")
    env = {"HPCGYM_DATA": str(tmp_path)}
    result = succeed("traces", "fetch", "KTH-SP2", "ctc-sp2", env=env)
    assert result.stdout.splitlines() == [
        str(tmp_path / f"{name}.swf.gz") for name in ("KTH-SP2", "CTC-SP2")
    ]
    assert run("traces", "fetch", "KTH-SP2", "nothing", env=env).stdout == ""
