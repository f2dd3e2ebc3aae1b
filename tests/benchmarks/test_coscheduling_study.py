"""The study of co-scheduling, on small sets of jobs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.benchmarks.coscheduling import items, run, runs, speed
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.benchmarks.studies.tables import pearson
from hpcgym.machine import find_cluster
from hpcgym.machine.speedups import (
    Heatmap,
    generate_speedups,
    read_speedups,
    write_speedups,
)
from hpcgym.simulation.run import simulate
from hpcgym.workload import Code, generate_code_jobs
from hpcgym.workload.codes import code_names

SMALL = runs.Sizes(heatmaps=1, shuffles=1, jobs=20)


def measured_like() -> Heatmap:
    """Return speedups of codes of all process counts, and of one that fills most of the machine."""
    sizes = [*runs.COUNTS, *runs.COUNTS, 2048]
    made = generate_speedups(len(sizes), 1.1, 0.1, seed=1)
    names = tuple(f"{name}.{size}" for name, size in zip(made.codes, sizes, strict=True))
    times = np.linspace(10, 30, len(sizes))
    return Heatmap(names, made.speedup, compact_s=times, processes=np.array(sizes))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "measured.json"
    write_speedups(measured_like(), path)
    return path


def first_of(reading: str = runs.MAIN) -> dict[str, Any]:
    return next(task for task in runs.of_pairs(SMALL) if task["reading"] == reading)


# --- Tasks ----------------------------------------------------------------------------------------


def test_the_heatmap_is_as_printed() -> None:
    speedups = read_speedups(runs.MARCONI)
    assert f"{speedups.filled.mean():.2f}" == "1.12"  # "leading to an average speedup of 1.12"
    assert (len(speedups), speedups.alone.max()) == (8, 1.47)


def test_parts_of_the_heatmap_have_the_means_that_are_printed() -> None:
    tasks = runs.of_pairs(runs.Sizes())
    assert {task["reading"] for task in tasks} == set(runs.READINGS) - {"200 nodes"}
    of_main = [task for task in tasks if task["reading"] == runs.MAIN]
    for task in of_main:
        speedups = runs.speedups_of(task, None)
        assert speedups.filled.mean() == pytest.approx(task["mean"], abs=0.0051)
        assert len(task["codes"]) == len(speedups) >= 3
        assert (speedups.alone == speedups.filled.max(axis=1)).all()
    means = [task["mean"] for task in of_main]
    assert [means.count(mean) for mean in items.IMPROVEMENTS] == [5, 12, 12, 3]


def test_readings_differ_from_the_first_in_one_thing() -> None:
    """In the schedulers, in run times, or in the machine of the mixes."""
    main = vars(runs.READINGS[runs.MAIN])
    for name, reading in runs.READINGS.items():
        changed = {key for key, value in vars(reading).items() if value != main[key]} - {"meaning"}
        if name == runs.MAIN:
            assert not changed
        else:
            assert changed in ({"run_s"}, {"easy", "rules", "filler"}, {"aris"})


def test_jobs_are_of_each_code_equally_often() -> None:
    task = first_of() | {"jobs": 12}
    speedups = runs.speedups_of(task, None)
    jobs = runs.jobs_of(task, speedups, 4800, 3)
    assert np.bincount(jobs.executable)[1:].tolist() == [12 // len(speedups)] * len(speedups)
    assert set(jobs.requested_processors.tolist()) == {256}
    assert (jobs.submit_time == 0).all()
    low, high = runs.RUN_S
    assert ((jobs.run_time >= low) & (jobs.run_time <= high)).all()
    other = runs.jobs_of(task, speedups, 4800, 4)
    assert sorted(other.run_time.tolist()) == sorted(jobs.run_time.tolist())
    assert other.run_time.tolist() != jobs.run_time.tolist()


def test_measured_codes_have_their_processes_and_ten_times_their_run_times(file: Path) -> None:
    speedups = measured_like()
    tasks = runs.of_mixes(speedups, SMALL)
    assert [task["mix"] for task in tasks[::4]] == [*items.MIXES]
    assert {find_cluster(task["aris"]).nodes for task in tasks} == {200, 426}
    for task in tasks:
        jobs = runs.jobs_of(task, runs.speedups_of(task, str(file)), 4000, 0)
        counts = {*jobs.requested_processors.tolist()}
        mix = runs.COUNTS if task["mix"] == "all" else map(int, task["mix"].split("/"))
        assert counts == {*mix}
        names = code_names(jobs)
        for number, run_s in zip(jobs.executable.tolist(), jobs.run_time.tolist(), strict=True):
            place = speedups.place(names[number])
            assert run_s == math.ceil(10 * speedups.compact_s[place])


# --- Amounts --------------------------------------------------------------------------------------


def test_utilisation_until_the_queue_is_empty() -> None:
    codes = [Code("a", 4, 100), Code("b", 2, 50)]
    jobs = generate_code_jobs(codes, 3, processors=4, mix="list", arrivals="at-once")
    heatmap = Heatmap(("a", "b"), [[1.0, 1.0], [1.0, 1.0]])
    result = simulate(jobs, "easy", cluster="1x2x2", speedups=heatmap)
    # two jobs of four cores for 100 s, then one of two for 50 s, which starts last
    assert result.start.tolist() == [0.0, 100.0, 200.0]
    assert runs.amounts(result)["utilisation"] == 1.0
    result = simulate(jobs, "easy", cluster="2x2x2", speedups=heatmap)
    assert result.start.tolist() == [0.0, 0.0, 100.0]
    assert runs.amounts(result)["utilisation"] == 1.0
    result = simulate(jobs, "easy", cluster="3x2x2", speedups=heatmap)
    assert runs.amounts(result)["utilisation"] is None


def test_a_run_has_all_its_schedulers(file: Path) -> None:
    task = runs.of_mixes(measured_like(), SMALL)[0]
    outcome = runs.measure(task, str(file))
    assert [row["scheduler"] for row in outcome["rows"]] == task["schedulers"]
    assert {runs.REFERENCE, *items.COSCHEDULED} <= {*task["schedulers"]}
    assert runs.measure(task, str(file)) == outcome


def test_capacity_alone_where_all_speedups_are_1() -> None:
    """18 jobs at a time in place of 16; all run as long."""
    codes = [Code(name, 256, 1000) for name in "ab"]
    jobs = generate_code_jobs(codes, 16 * 18, processors=4800)
    heatmap, spans = Heatmap(("a", "b"), np.ones((2, 2))), {}
    for name in (runs.REFERENCE, runs.SIMPLE):
        scheduler = runs.scheduler_of(name, vars(runs.READINGS[runs.MAIN]), 4800)
        result = simulate(jobs, scheduler, cluster="marconi", speedups=heatmap)
        spans[name] = {"makespan_s": result.metrics["makespan_s"], "shuffle": 0, "scheduler": name}
    table = run.frame([({"reading": runs.MAIN}, {"mean_pair": 1.0, "rows": [*spans.values()]})])
    assert table["improvement"].tolist() == pytest.approx([0, 12.5])


def test_pairs_that_start_in_another_order_are_overtaken() -> None:
    """One core of four is left beside the first; the third fits there, the second waits."""
    codes = [Code("a", 3, 100), Code("b", 2, 50), Code("c", 1, 60)]
    jobs = generate_code_jobs(codes, 3, processors=4, mix="list", arrivals="at-once")
    heatmap = Heatmap(("a", "b", "c"), np.ones((3, 3)))
    result = simulate(jobs, "easy", cluster="4x1x1", speedups=heatmap)
    assert result.start.tolist() == [0.0, 100.0, 0.0]
    assert runs.amounts(result)["overtaken"] == pytest.approx(1 / 3)
    result = simulate(jobs, "fcfs", cluster="4x1x1", speedups=heatmap)
    assert runs.amounts(result)["overtaken"] == 0


# --- Tables ---------------------------------------------------------------------------------------


def outcome_of(easy_s: float, others_s: float, mean: float = 1.1) -> dict[str, Any]:
    """Return an outcome of one shuffle."""
    rows = [
        {"shuffle": 0, "scheduler": name, "utilisation": 0.75, "overtaken": 0.5}
        | {"makespan_s": easy_s if name == runs.REFERENCE else others_s}
        for name in (runs.REFERENCE, *items.COSCHEDULED)
    ]
    return {"mean_pair": mean, "rows": rows}


def test_published_values_are_a_column_to_be_compared_with() -> None:
    outcomes = [
        ({"reading": runs.MAIN, "mean": mean, "seed": 0}, outcome_of(125 + 4 * k, 100, mean))
        for k, mean in enumerate(items.IMPROVEMENTS)
    ]
    (row,) = run.improvements(run.frame(outcomes)).to_dict("records")
    assert [row[f"{mean} %"] for mean in ("1.07", "1.1", "1.12", "1.155")] == pytest.approx(
        [25, 29, 33, 37]
    )
    assert row["apart (points)"] == "+0.6, +3.7, +7.1, +6.4"
    assert (row["series"], row["above 0"]) == (1, 1)


def test_correlations_by_hand() -> None:
    up, down = np.array([1.0, 2.0, 4.0]), np.array([-1.0, -2.0, -4.0])
    assert pearson(up, down) == pytest.approx(-1)
    assert pearson(up, np.array([1.0, 3.0, 2.0])) == pytest.approx(0.3273268)
    assert math.isnan(pearson(up, np.ones(3)))


def test_mean_speedup_and_improvement_go_together_in_each_shuffle() -> None:
    """In one shuffle they rise in a line, in the other one they fall."""
    outcomes = []
    for mean, falls in zip(items.IMPROVEMENTS, (115.5, 112.0, 110.0, 107.0), strict=True):
        made = outcome_of(100 * mean, 100, mean)
        other = outcome_of(falls, 100, mean)["rows"]
        made["rows"] += [row | {"shuffle": 1} for row in other]
        outcomes.append(({"reading": runs.MAIN, "mean": mean, "seed": 0}, made))
    (row,) = run.improvements(run.frame(outcomes)).to_dict("records")
    assert (row["series"], row["above 0"]) == (2, 1)
    assert row["least correlation"] < -0.99


def test_mixes_are_means_over_shuffles() -> None:
    labels = {"mix": "256", "reading": runs.MAIN}
    outcomes = [(labels, outcome_of(120, 100)), (labels, outcome_of(90, 100))]
    for shuffle, (_, outcome) in enumerate(outcomes):
        for row in outcome["rows"]:
            row["shuffle"] = shuffle
    (row,) = run.mixes(run.frame(outcomes)).to_dict("records")
    assert row["filler-co %"] == pytest.approx(5)
    assert row["published filler-co %"] == 12.56
    assert (row["easy: overtaken"], row["easy (share)"]) == (0.5, 0.75)


# --- Speed ----------------------------------------------------------------------------------------


def test_days_an_hour() -> None:
    task = {"jobs": 100, "cores": 256, "scheduler": "easy", "repeats": 2, "machine": "m"}
    outcome = speed.measure(task)
    speedups = generate_speedups(speed.CODES)
    cluster = speed.machine_of(256)
    assert (cluster.nodes, cluster.processors) == (8, 256)
    makespans = [
        simulate(speed.set_of(100, speedups, k), cluster=cluster, speedups=speedups).metrics[
            "makespan_s"
        ]
        for k in range(2)
    ]
    assert outcome["days"] == pytest.approx(sum(makespans) / 86_400)
    row = run.speeds([(task, {"days": 6.0, "cpu_s": 36.0})]).iloc[0]
    assert row["ours days/h"] == pytest.approx(600)
    assert row["published days/h"] == 900.98
    assert row["simulated days"] == 3


# --- The whole study ------------------------------------------------------------------------------


def test_the_whole_study(tmp_path: Path, file: Path) -> None:
    folder = tmp_path / "study"
    steps: list[str] = []
    path, made = run.reproduce(
        file, Folder(folder, "serial", None, lambda what, *_: steps.append(what)), quick=True
    )
    assert {"sets of jobs", "timings"} <= set(steps)
    assert "quick cut" in path.read_text()
    assert "left out" not in path.read_text()
    for name in made:
        assert len(pd.read_csv(folder / f"table-{name}.csv")) == len(made[name])
    assert len(made["mixes"]) == 16


def test_measured_speedups_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path))
    there = tmp_path / "coscheduling" / run.MEASURED_FILE
    assert run.find_measured() is None
    there.parent.mkdir()
    there.write_text("{}")
    assert run.find_measured() == there


test_mistakes = mistakes_of(globals(), fixtures=("file",))
