"""Metrics of classes of jobs and of users in sweeps: kept, read, printed, or told to be missing."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from hpcgym import load_workload, simulate
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.evaluation.figures import draw_profiles
from hpcgym.schedule.measures import group_metrics, metrics_by
from hpcgym.sweep import load_experiment, read_table, run_experiment
from hpcgym.workload import write_swf

EXPERIMENT = """
schedulers = ["easy", "saf"]
metrics = ["mean_bsld", "mean_wait_s", "utilization"]
by = ["class", "user"]
[[workloads]]
workload = "small.swf"
slices = "weeks"
"""
JOBS = "lublin:jobs=1500,processors=32,load=0.3,seed=1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that keeps metrics of classes and users."""
    here = tmp_path_factory.mktemp("groups")
    write_swf(load_workload(JOBS), here / "small.swf")
    (here / "groups.toml").write_text(EXPERIMENT)
    run_experiment(here / "groups.toml", here / "sweep", "serial")
    return here / "sweep"


def table(folder: Path, *arguments: str) -> Any:
    return CliRunner().invoke(app, ["sweep", "table", str(folder), *arguments])


def test_metrics_of_groups_are_those_of_their_jobs() -> None:
    result = simulate(load_workload(JOBS), "easy", threshold=3600)
    classes, users = metrics_by(result, "class"), metrics_by(result, "user", ["max_wait_s"])
    assert list(classes) == ["short", "medium", "long"]
    jobs = result.jobs
    for name, low, high in (("short", 0, 600), ("medium", 600, 7200), ("long", 7200, 1e18)):
        part = jobs[(jobs["run_time"] >= low) & (jobs["run_time"] < high)]
        assert classes[name]["jobs"] == len(part)
        assert classes[name]["mean_bsld"] == pytest.approx(result.metrics[f"mean_bsld_{name}"])
        assert classes[name]["p99_wait_s"] == pytest.approx(np.percentile(part["wait_time"], 99))
        assert classes[name]["starved_share"] == pytest.approx((part["wait_time"] > 3600).mean())
    assert "utilization" not in classes["short"]
    assert set(classes["short"]) == {
        name for name, metric in group_metrics().items() if name in result.metrics or not metric.of
    }
    longest = jobs.groupby("user_id")["wait_time"].max()
    assert {name: found["max_wait_s"] for name, found in users.items()} == {
        f"user {number}": value for number, value in longest.items()
    }
    assert sum(found["jobs"] for found in users.values()) == len(jobs)


def test_users_of_one_name_stay_apart() -> None:
    workload = load_workload(JOBS)
    same = replace(workload, header={"User": ["1 alice", "2 alice", "3 bob"]})
    found = metrics_by(simulate(same, "easy"), "user", ["mean_bsld"])
    assert sum(one["jobs"] for one in found.values()) == len(workload)
    assert {"alice (1)", "alice (2)", "bob"} <= {*found}


def test_suspensions_are_of_groups_too() -> None:
    workload = load_workload("lublin:jobs=300,processors=16,load=1.2,seed=3")
    queues = workload.with_columns(queue=1 + (workload.run_time < 600))
    result = simulate(queues, preemption="queue:2>batch,suspend", backfill="none")
    found = metrics_by(result, "user", ["suspensions", "mean_suspended_s"])
    assert sum(one["suspensions"] for one in found.values()) == result.metrics["suspensions"] > 0
    total = sum(one["jobs"] * one["mean_suspended_s"] for one in found.values())
    assert total == pytest.approx(result.suspended.sum())


def test_classes_without_jobs_have_no_value() -> None:
    workload = load_workload(JOBS)
    brief = workload.take(np.flatnonzero(workload.run_time < 600))
    found = metrics_by(simulate(brief, "easy"), "class", ["mean_bsld", "backfilled_share"])
    assert found["long"]["jobs"] == 0
    assert np.isnan([found["long"]["mean_bsld"], found["long"]["backfilled_share"]]).all()


def test_a_table_has_a_row_for_each_class_of_each_simulation(folder: Path) -> None:
    rows = read_table(folder, "class")
    names = ["workload", "slice", "seed", "class", "scheduler", "jobs", "mean_bsld", "mean_wait_s"]
    assert list(rows.columns) == names
    plain = read_table(folder)
    assert len(rows) == 3 * len(plain)
    assert "jobs" not in plain.columns
    week = load_workload(folder.parent / "small.swf").weeks()[0]
    expected = metrics_by(simulate(week, "saf"), "class")["medium"]["mean_wait_s"]
    found = rows[(rows["slice"] == "week 1") & (rows["scheduler"] == "saf")]
    assert found.set_index("class").loc["medium", "mean_wait_s"] == expected


def test_by_class_and_by_user_are_printed(folder: Path) -> None:
    asked = ["--metric", "mean_wait_s", "--paired", "easy", "--format"]
    printed = csv.DictReader(io.StringIO(table(folder, "--by", "class", *asked, "csv").stdout))
    lines = list(printed)
    classes = [line["class"] for line in lines]
    assert classes == ["short", "short", "medium", "medium", "long", "long"]
    rows = read_table(folder, "class").set_index(["class", "scheduler"])["mean_wait_s"]
    for line in lines:
        mean = rows.loc[line["class"], line["scheduler"]].mean()
        assert float(line["mean_wait_s"]) == pytest.approx(mean)
    users = json.loads(table(folder, "--by", "user", *asked, "json").stdout)
    assert {line["user"] for line in users} == set(read_table(folder, "user")["user"])
    printed = table(folder, "--by", "class", *asked, "markdown")
    assert "medium" in printed.stdout
    told = "classes of jobs by run time: short, below 10 min; medium, below 2 h; long, from 2 h on"
    assert told in printed.stderr
    assert told not in table(folder, "--by", "user", *asked, "markdown").stderr
    assert re.search(r"\| 0\.\d\d? \|$|\| 1 \|$", printed.stdout, re.MULTILINE)  # p


def test_figures_call_weeks_weeks(
    folder: Path, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of classes, too, figures are over whole simulations; with seeds these are instances."""
    pytest.importorskip("matplotlib")
    drawn: list[str] = []

    def draw(values: pd.DataFrame, *_: Any) -> Any:
        axes = draw_profiles(values, *_)
        drawn.append(axes.get_ylabel())
        return axes

    monkeypatch.setattr("hpcgym.evaluation.figures.draw_profiles", draw)
    for number, (sweep, asked) in enumerate(((folder, ["--by", "class"]), (reference, []))):
        done = table(
            sweep, "--metric", "mean_bsld", *asked, "--figures", str(tmp_path / f"{number}")
        )
        assert done.exit_code == 0, done.output
    weeks = len(read_table(folder)) // 2
    assert drawn == [f"% of {weeks} weeks", "% of 4 instances"]


@pytest.mark.slow
def test_figures_tell_what_is_left_out(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    rows = read_table(folder)
    first = (rows["slice"] == rows["slice"].iloc[0]) & (rows["scheduler"] == "saf")
    rows.loc[first, "mean_bsld"] = np.nan
    monkeypatch.setattr("hpcgym.sweep.read_table", lambda _: rows)
    done = table(folder, "--metric", "mean_bsld", "--figures", str(tmp_path / "figures"))
    weeks = len(rows) // 2
    assert f"figures of mean_bsld are of {weeks - 1} of {weeks} slices" in done.stderr


def test_what_is_no_metric_of_groups_is_told(folder: Path) -> None:
    result = table(folder, "--by", "class", "--metric", "utilization")
    assert "unknown --metric 'utilization'; known are jobs, mean_bsld, mean_wait_s" in result.stderr
    assert "unknown --by 'clas'; did you mean 'class'?" in table(folder, "--by", "clas").stderr


def test_a_sweep_without_them_says_what_to_do(reference: Path) -> None:
    result = table(reference, "--by", "user")
    assert result.exit_code == 1
    told = 'keeps no metrics by user: write by = ["user"] into the experiment, and run it again'
    assert told in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('by = ["clas"]', "unknown by 'clas'; did you mean 'class'?"),
        ('by = ["user", "user"]', "by: 'user' is there twice"),
        ('by = "class"\nmetrics = ["utilization"]', "utilization is none of groups of jobs"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(f'{line}\nschedulers = ["easy"]\n[[workloads]]\nworkload = "{JOBS}"\n')
    with pytest.raises(HpcgymError) as error:
        load_experiment(path)
    assert message in str(error.value)


def test_a_log_without_users_cannot_be_by_user(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(
        "submit_time,run_time,requested_processors,requested_time\n0,10,1,20\n5,10,2,20\n"
    )
    path = tmp_path / "users.toml"
    path.write_text(
        'by = "user"\nschedulers = ["easy"]\n[[workloads]]\nworkload = "log.csv"\nprocessors = 4\n'
    )
    with pytest.raises(HpcgymError, match=r"log\.csv: the log does not tell the user of any job"):
        run_experiment(path, tmp_path / "sweep", "serial")
