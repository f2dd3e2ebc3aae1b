"""The scripts in benchmarks/ run, and say what they should; how fast they are is not tested."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mistakes import mistakes_of

from hpcgym.errors import HpcgymError

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments, **environment):
    """Run a script as a user does."""
    return subprocess.run(
        [sys.executable, BENCHMARKS / script, *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def output(script, *arguments, **environment):
    done = run(script, *arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sections(*arguments):
    """Return the rows of sections by name."""
    return json.loads(output("speed.py", *arguments, "--format", "json"))["sections"]


def test_speed_times_every_scheduler():
    rows = sections("schedulers", "--workload", "lublin:jobs=900,load=1", "--repeat", "2")
    by_scheduler = {row["scheduler"]: row for row in rows["schedulers"]}
    names = {"easy", "easy, per-event", "easy++", "lexp", "fcfs", "conservative", "slurm"}
    assert names <= by_scheduler.keys()
    for row in by_scheduler.values():
        assert row["ns a job"] == pytest.approx(1e9 * row["s"] / 900)
    bsld = {name: row["mean BSLD"] for name, row in by_scheduler.items()}
    assert bsld["easy"] < bsld["fcfs"]  # each row is the scheduler that it says
    assert bsld["easy"] != bsld["easy, per-event"]


def test_the_first_call_imports_what_the_second_has():
    """The README says how long that takes."""
    first, second = sections("calls", "--workload", "lublin:jobs=200", "--repeat", "1")["calls"]
    assert (first["call"], second["call"]) == ("first", "second")
    assert first["modules imported"] > 0 == second["modules imported"]
    assert first["ms"] > 0


@pytest.mark.parametrize(("section", "sizes"), [("jobs", "100,1000"), ("load", "0.5,1.5")])
def test_growth_has_every_size_and_its_memory(section, sizes):
    rows = sections(section, "--sizes", sizes, "--jobs", "1000")[section]
    easy = [row for row in rows if row["scheduler"] == "easy"]
    assert [row[section] for row in easy] == [float(size) for size in sizes.split(",")]
    assert all(row["s"] > 0 and row["peak MB"] > 10 and row["note"] == "" for row in rows)
    assert easy[1]["longest queue"] > easy[0]["longest queue"]


def test_a_run_past_the_limit_is_stopped_and_said():
    rows = sections("load", "--sizes", "0.5,0.6", "--limit", "0.01")["load"]
    assert len(rows) == len({row["scheduler"] for row in rows}) > 1  # larger ones are left out
    assert {row["load"] for row in rows} == {0.5}
    assert {row["note"] for row in rows} == {"stopped after 0.01 s"}


def test_speed_prints_tables_with_the_machine():
    arguments = ("schedulers", "--workload", "lublin:jobs=200", "--repeat", "1")
    text = output("speed.py", *arguments)
    assert "numpy" in text
    assert "lublin-256 seed 0: 200 jobs, 256 processors" in text
    assert "| easy-sjbf |" in text


def fails(*arguments):
    """Raise the last line of what a script says that fails."""
    done = run(*arguments)
    if done.returncode != 0:
        raise HpcgymError(done.stderr.splitlines()[-1])


def test_batches_count_what_they_simulate():
    weeks = ("--workload", "lublin:jobs=12000,processors=128,seed=0,load=0.7", "--weeks", "2")
    sections_of_batches = sections(
        "threads", "executors", *weeks, "--vectors", "20", "--repeat", "1"
    )
    assert {row["by"] for row in sections_of_batches["threads"]} >= {
        "1 threads",
        "loop over simulate",
    }
    for row in [*sections_of_batches["threads"], *sections_of_batches["executors"]]:
        share = 0.1 if row["by"].startswith("loop") else 1
        assert row["slices a second"] == pytest.approx(20 * 2 * share / row["s"], abs=1)


def test_learning_by_the_engine_and_by_river_makes_the_same_schedule():
    pytest.importorskip("river")
    workload = ("--workload", "lublin:jobs=300,processors=32,seed=0", "--repeat", "1")
    rows = sections("estimates", *workload)["estimates"]
    bsld = {row["estimate"]: row["mean BSLD"] for row in rows}
    assert bsld["e-loss"] == bsld["e-loss, RuntimeRegression"] != bsld["requested"]


def test_environments_of_each_id_are_timed():
    workload = ("--workload", "lublin:jobs=600,processors=64", "--repeat", "1", "--steps", "20")
    rows = sections("single", *workload)["single"]
    assert len(rows) >= 6
    assert all(row["dict, steps a second"] > 0 and row["kB"] > 1 for row in rows)


def test_dumps_of_sacct_are_read_by_new_processes():
    (row,) = sections("dumps", "--sizes", "200", "--repeat", "1")["dumps"]
    assert row["lines"] == 600
    assert 150 < row["jobs"] < 200  # a twentieth never started
    assert row["s"] > 0
    assert row["peak MB"] > 10


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("speed.py", "python benchmarks/"),
        ("long_run.py", "--windows"),
        ("forgeries.py", "--number"),
    ],
)
def test_help_teaches(script, word):
    assert word in output(script, "--help")


test_mistakes = mistakes_of(globals())
