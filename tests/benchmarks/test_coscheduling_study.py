"""The study of co-scheduling, on small sets of jobs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpcgym.benchmarks.coscheduling import items, run, runs, speed
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.benchmarks.studies.tables import pearson
from hpcgym.errors import HpcgymError
from hpcgym.machine.speedups import Heatmap, generate_speedups, write_speedups
from hpcgym.simulation.run import simulate
from hpcgym.workload import Code, generate_code_jobs

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


def first_of(part: str, reading: str = runs.MAIN) -> dict[str, Any]:
    tasks = runs.of_pairs(SMALL, quick=False)
    return next(task for task in tasks if (task["part"], task["reading"]) == (part, reading))


# --- Tasks ----------------------------------------------------------------------------------------


def test_tasks_name_heatmaps_and_seeds() -> None:
    tasks = runs.of_pairs(SMALL, quick=False)
    assert {task["reading"] for task in tasks} == set(runs.READINGS)
    for task in tasks:
        assert task["jobs"] == 20
        assert task["shuffles"] == [0, 1, 2, 3, 4]
        speedups = runs.speedups_of(task, None)
        if task["chosen"] is None:
            assert speedups.filled.mean() == pytest.approx(task["mean"], rel=1e-12)
        else:
            assert len(speedups) == task["chosen"]
            assert speedups.filled.mean() == pytest.approx(task["mean"], abs=0.01)
            assert (speedups.alone == speedups.filled.max(axis=1)).all()
        assert f"seed={task['seed']}" in task["speedups"]
    means = {task["mean"] for task in tasks if task["reading"] == "16 codes"}
    assert means == set(items.IMPROVEMENTS)


def test_other_readings_differ_in_one_point() -> None:
    main = vars(runs.READINGS[runs.MAIN])
    for name, reading in runs.READINGS.items():
        changed = {key for key, value in vars(reading).items() if value != main[key]} - {"meaning"}
        # a heatmap of its own spread, and nodes in use first
        at_most = 2 if name in ("chosen codes", "long jobs gain") else 1
        assert len(changed) == (0 if name == runs.MAIN else at_most)


def test_jobs_are_of_each_code_equally_often() -> None:
    task = first_of("pairs") | {"jobs": 16}
    speedups = runs.speedups_of(task, None)
    jobs = runs.jobs_of(task, speedups, 4800, 3)
    assert np.bincount(jobs.executable)[1:].tolist() == [2] * 8
    assert set(jobs.requested_processors.tolist()) == {256}
    assert (jobs.submit_time == 0).all()
    low, high = runs.RUN_S
    assert ((jobs.run_time >= low) & (jobs.run_time <= high)).all()
    other = runs.jobs_of(task, speedups, 4800, 4)
    assert sorted(other.run_time.tolist()) == sorted(jobs.run_time.tolist())
    assert other.run_time.tolist() != jobs.run_time.tolist()
    arriving = runs.jobs_of(task | {"arrivals": "poisson"}, speedups, 4800, 3)
    assert arriving.run_time.tolist() == jobs.run_time.tolist()
    assert arriving.submit_time.max() > 0


def test_the_code_that_gains_most_may_run_longest() -> None:
    task = first_of("pairs", "long jobs gain")
    assert task["rules"] == {"partners": "fill"}
    speedups = runs.speedups_of(task, None)
    plain = [code.compact_s for code in runs.codes_of(task | {"rising": False}, speedups)]
    codes = runs.codes_of(task, speedups)
    gains = {name: row.mean() for name, row in zip(speedups.codes, speedups.filled, strict=True)}
    ranked = sorted(codes, key=lambda code: gains[code.name])
    assert [code.compact_s for code in ranked] == sorted(plain)
    assert plain != sorted(plain)


def test_measured_codes_have_their_processes_and_ten_times_their_run_times() -> None:
    speedups = measured_like()
    tasks = runs.of_mixes(speedups, SMALL)
    assert [task["mix"] for task in tasks[::3]] == [
        "64", "64+128", "64+128+512", "64+128+512+1024"
    ]  # fmt: skip
    for task in tasks:
        codes = runs.codes_of(task, speedups.take(task["codes"]))
        assert "+".join(map(str, sorted({code.processes for code in codes}))) == task["mix"]
        for code in codes:
            assert code.compact_s == 10 * speedups.compact_s[speedups.place(code.name)]
    with pytest.raises(HpcgymError, match="no code of 64 processes"):
        runs.of_mixes(speedups.take([speedups.codes[1]]), SMALL)


def test_all_pairs_alike_and_a_rate_alone() -> None:
    task = first_of("pairs")
    alike = runs.speedups_of(task | {"alike": True}, None)
    assert alike.filled == pytest.approx(np.full((8, 8), task["mean"]))
    assert alike.alone == pytest.approx(np.full(8, task["mean"]))
    alone = runs.speedups_of(task | {"alone": 1.0}, None)
    assert alone.alone.tolist() == [1.0] * 8
    assert (alone.filled == runs.speedups_of(task, None).filled).all()


def test_other_speedups_than_at_the_beginning_are_refused(file: Path) -> None:
    task = runs.of_mixes(measured_like(), SMALL)[0]
    runs.speedups_of(task, str(file))
    with pytest.raises(HpcgymError, match="has other speedups"):
        runs.speedups_of(task | {"digest": "0"}, str(file))
    with pytest.raises(HpcgymError, match="no file"):
        runs.speedups_of(task, None)


# --- Amounts --------------------------------------------------------------------------------------


def test_utilisation_until_the_queue_is_empty() -> None:
    codes = [Code("a", 4, 100), Code("b", 2, 50)]
    jobs = generate_code_jobs(codes, 3, processors=4, mix="list", arrivals="at-once")
    heatmap = Heatmap(("a", "b"), [[1.0, 1.0], [1.0, 1.0]])
    result = simulate(jobs, "easy", cluster="1x2x2", speedups=heatmap)
    # two jobs of four cores for 100 s, then one of two for 50 s, which starts last
    assert result.start.tolist() == [0.0, 100.0, 200.0]
    assert runs.utilisation(result) == 1.0
    result = simulate(jobs, "easy", cluster="2x2x2", speedups=heatmap)
    assert result.start.tolist() == [0.0, 0.0, 100.0]
    assert runs.utilisation(result) == 1.0
    result = simulate(jobs, "easy", cluster="3x2x2", speedups=heatmap)
    assert runs.utilisation(result) is None


def test_of_two_jobs_by_hand() -> None:
    """A node for each alone: beside each other one is 1.25 as fast, the other 0.8."""
    speedup = [[1.0, 1.25], [0.8, 1.0]]
    heatmap = Heatmap(("a", "b"), speedup, alone=[1.0, 1.0])
    codes = [Code("a", 2, 100), Code("b", 2, 100)]
    jobs = generate_code_jobs(codes, 2, processors=2, mix="list")
    result = simulate(jobs, "easy-co", cluster="2x1x4", speedups=heatmap, partners="fill")
    found = runs.amounts(result)
    # a ends at 80; b has done 64 then, and the rest alone
    assert found["makespan_s"] == pytest.approx(116)
    assert found["job_speedup"] == pytest.approx((100 / 80 + 100 / 116) / 2)
    assert found["overtaken"] == 0


def test_a_run_has_all_schedulers(file: Path) -> None:
    task = runs.of_mixes(measured_like(), SMALL)[0]
    outcome = runs.measure(task, str(file))
    assert [row["scheduler"] for row in outcome["rows"]] == list(runs.SCHEDULERS)
    assert runs.measure(task, str(file)) == outcome
    easy = outcome["rows"][0]
    assert easy["job_speedup"] == 1.0


def test_capacity_alone_where_all_speedups_are_1() -> None:
    """18 jobs at a time in place of 16; all run as long."""
    task = first_of("pairs", "equal run times") | {
        "jobs": 16 * 18, "speedups": "generated:codes=2,mean=1,spread=0",
        "digest": generate_speedups(2, 1.0, 0.0).digest, "shuffles": [0],
    }  # fmt: skip
    found = run.frame([(task, runs.measure(task, None))]).set_index("scheduler")
    assert found.loc["easy-co", "improvement"] == pytest.approx(12.5)
    assert found.loc["easy-co", "saved"] == pytest.approx(100 / 9)


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


def outcome_of(easy_s: float, others_s: float, job_speedup: float = 1.1) -> dict[str, Any]:
    """Return an outcome of one shuffle."""
    rows = [
        {
            "shuffle": 0,
            "scheduler": name,
            "makespan_s": easy_s if name == runs.REFERENCE else others_s,
            "job_speedup": job_speedup,
            "utilisation": 0.75,
            "overtaken": 0.5,
        }
        for name in runs.SCHEDULERS
    ]
    return {"mean_pair": 1.1, "rows": rows}


def test_published_values_are_a_column_to_be_compared_with() -> None:
    means = [*items.IMPROVEMENTS, 1.25]
    outcomes = [
        ({"reading": runs.MAIN, "mean": mean, "seed": 0}, outcome_of(125 + 4 * k, 100, mean - 0.02))
        for k, mean in enumerate(means)
    ]
    found = run.frame(outcomes)
    table = run.improvements(found)
    assert table["mean pair speedup"].tolist() == ["1.07", "1.10", "1.12", "1.15"]
    assert table["published %"].tolist() == [24.42, 25.29, 25.87, 30.63]
    assert table["ours %"].tolist() == pytest.approx([25, 29, 33, 37])
    assert table["apart (points)"].tolist() == ["+0.6", "+3.7", "+7.1", "+6.4"]
    assert table["within 3 points"].tolist() == ["yes", "no", "no", "no"]
    assert table["makespan saved %"][0] == pytest.approx(20)
    by_reading = run.by_reading(found).set_index("reading")
    assert by_reading.loc[runs.MAIN, "within 3 points"] == "1 of 4"
    # jobs have a speedup of 1.07 where pairs have 1.09, two thirds of the way from 1.07 to 1.10
    over_jobs = by_reading.loc[run.OF_RUNS]
    assert over_jobs["1.07 %"] == pytest.approx(25 + 4 * 2 / 3)
    assert over_jobs["1.15 %"] == pytest.approx(37 + 4 * 0.02 / 0.1)


def test_beyond_what_was_simulated_there_is_no_value() -> None:
    outcomes = [
        ({"reading": runs.MAIN, "mean": mean, "seed": 0}, outcome_of(125, 100, 1.08))
        for mean in items.IMPROVEMENTS
    ]
    found = run.at_runs(run.frame(outcomes))
    assert math.isnan(found[1.15])


def test_correlations_by_hand() -> None:
    up, down = np.array([1.0, 2.0, 4.0]), np.array([-1.0, -2.0, -4.0])
    assert pearson(up, down) == pytest.approx(-1)
    assert pearson(up, np.array([1.0, 3.0, 2.0])) == pytest.approx(0.3273268)
    assert math.isnan(pearson(up, np.ones(3)))


def test_mean_speedup_and_improvement_go_together_in_each_series() -> None:
    """Of two heatmaps one rises in a line, the other falls; a mean of more is not published."""
    spans = {0: {1.07: 107, 1.10: 110, 1.12: 112, 1.15: 115, 1.25: 50},
             1: {1.07: 115, 1.10: 112, 1.12: 110, 1.15: 107, 1.25: 200}}  # fmt: skip
    outcomes = [
        ({"reading": runs.MAIN, "mean": mean, "seed": seed}, outcome_of(span, 100))
        for seed, of in spans.items()
        for mean, span in of.items()
    ]
    (row,) = run.correlation(run.frame(outcomes)).to_dict("records")
    assert (row["reading"], row["heatmaps"], row["above 0"]) == (runs.MAIN, 2, 1)
    assert row["least"] < -0.99
    assert row["published"] == pytest.approx(
        np.corrcoef(*zip(*items.IMPROVEMENTS.items(), strict=True))[0, 1]
    )


def test_mixes_are_means_over_shuffles() -> None:
    labels = {"mix": "64", "kind": runs.MEASURED, "seed": 0}
    outcomes = [(labels, outcome_of(120, 100)), (labels, outcome_of(90, 100))]
    for shuffle, (_, outcome) in enumerate(outcomes):
        for row in outcome["rows"]:
            row["shuffle"] = shuffle
    found = run.frame(outcomes)
    (row,) = run.mixes(found).to_dict("records")
    assert row["filler-co %"] == pytest.approx(5)
    assert row["easy: overtaken"] == 0.5
    (row,) = run.mix_utilisation(found).to_dict("records")
    assert (row["processes"], row["speedups"], row["easy (share)"]) == ("64", runs.MEASURED, 0.75)


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
    assert row["published days/h"] == 2038.66
    assert row["times as fast"] == pytest.approx(600 / 2038.66)
    assert row["jobs a second"] == 5
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
    assert len(made["mixes"]) == 12


def test_measured_speedups_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path))
    there = tmp_path / "coscheduling" / run.MEASURED_FILE
    assert run.find_measured() is None
    there.parent.mkdir()
    there.write_text("{}")
    assert run.find_measured() == there
