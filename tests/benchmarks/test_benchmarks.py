"""The scripts in benchmarks/ run, and say what they should; how fast they are is not tested."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def speed():
    """Return the figures of three sections."""
    names = "schedulers,jobs,load"
    text = output("speed.py", "--quick", "--repeat", "2", "--sections", names, "--format", "json")
    return json.loads(text)


def test_speed_times_every_scheduler(speed):
    rows = speed["sections"]["schedulers"]
    names = [row["scheduler"] for row in rows]
    assert {"easy", "easy, per-event", "easy++", "lexp", "conservative"} <= set(names)
    assert all(0 < row["min_ns"] <= row["median_ns"] for row in rows)
    bsld = {row["scheduler"]: row["mean_bsld"] for row in rows}
    assert bsld["easy"] < bsld["fcfs"]  # each row is the scheduler that it says
    assert bsld["easy"] != bsld["easy, per-event"]


@pytest.mark.parametrize("section", ["jobs", "load"])
def test_growth_has_every_size_and_its_memory(speed, section):
    rows = speed["sections"][section]
    sizes = {name: [r[section] for r in rows if r["scheduler"] == name] for name in ("easy",)}
    assert sizes["easy"] == {"jobs": [100, 1000], "load": [0.5, 1.5]}[section]
    assert all(row["min_ns"] > 0 and row["peak_mb"] > 10 and row["note"] == "" for row in rows)
    easy = [row["max_queue_length"] for row in rows if row["scheduler"] == "easy"]
    assert easy[1] > easy[0]


def test_a_run_past_the_limit_is_stopped_and_said():
    arguments = ("--quick", "--sections", "load", "--limit", "0.01", "--format", "json")
    rows = json.loads(output("speed.py", *arguments))["sections"]["load"]
    assert [(row["scheduler"], row["load"]) for row in rows] == [
        ("easy", 0.5),
        ("conservative", 0.5),
    ]
    assert {row["note"] for row in rows} == {"stopped after 0.01 s"}


def test_speed_prints_tables_with_the_machine():
    text = output("speed.py", "lublin:jobs=200", "--sections", "schedulers", "--repeat", "1")
    assert "numpy" in text
    assert "lublin-256 seed 0: 200 jobs, 256 processors" in text
    assert "easy-sjbf" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("speed.py", "no-such-file.swf"), "no-such-file.swf"),
        (("speed.py", "--sections", "colour"), "'colour' is none of schedulers"),
        (("one_run.py", "lublin:jobs=10", "eazy"), "unknown scheduler 'eazy'"),
        (("dispatch_time.py", "--dispatchers", "prbb"), "unknown dispatcher 'prbb'"),
        (("batch_speed.py", "--vectors", "0"), "must be a whole number of at least 1, not '0'"),
        (("batch_speed.py", "lublin:jobs=9"), "no job begins and ends within the same week"),
    ],
)
def test_a_mistake_ends_in_one_clear_line(arguments, message):
    done = run(*arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_batch_speed_counts_what_it_simulates():
    weeks = ("lublin:jobs=12000,processors=128,seed=0,load=0.7", "--weeks", "2")
    arguments = (*weeks, "--vectors", "20", "--repeat", "1")
    found = json.loads(output("batch_speed.py", *arguments, "--format", "json"))["sections"]
    assert {row["how"] for row in found["threads"]} >= {"1 threads", "loop over simulate"}
    for row in [*found["threads"], *found["executors"]]:
        share = 0.1 if row["how"].startswith("loop") else 1
        assert row["per_second"] == pytest.approx(20 * 2 * share / row["seconds"])


def test_the_time_of_dispatches_has_a_row_for_each():
    arguments = ("eurora:jobs=40,load=1", "--dispatchers", "prb", "--seeds", "2", "--seconds", "9")
    head, *rows = output("dispatch_time.py", *arguments).splitlines()
    assert "of it dispatching [s]" in head
    assert [row.split()[1] for row in rows] == ["none", "measured", "9", "0.5"]
    late = [float(row.split()[-2]) for row in rows]
    assert late[0] == 0
    assert late[1] >= 1
    assert late[2] == 9


def test_the_paths_of_prediction_make_the_same_schedule():
    pytest.importorskip("river")
    arguments = ("lublin:jobs=300,processors=32,seed=0", "--repeat", "1", "--format", "json")
    found = json.loads(output("prediction_speed.py", *arguments))["sections"]
    assert [row["same"] for row in found["paths"]] == ["yes"] * 2


@pytest.mark.parametrize(
    "script",
    [
        "batch_speed.py", "prediction_speed.py", "speed.py", "one_run.py", "dispatch_time.py",
        "mixed_policies/beyond.py", "prediction/beyond.py",
    ],
)  # fmt: skip
def test_help_teaches(script):
    assert "usage" in output(script, "--help")
