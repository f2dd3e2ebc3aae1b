"""RLScheduler's networks and table: its rules as published, and the study of its networks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pandas as pd
import pytest
from checkpoints import network_of, random_network, write_checkpoint
from click.testing import CliRunner
from drawing import given
from mistakes import mistakes_of
from strategies import workloads

from hpcgym import HpcgymError, Workload, load_workload, simulate
from hpcgym.agents.rlscheduler import PublishedNetwork, Sight
from hpcgym.baselines import find_baseline
from hpcgym.benchmarks.rlscheduler import run, runs
from hpcgym.benchmarks.rlscheduler.run import PUBLISHED
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.cli import app
from hpcgym.errors import WorkloadWarning
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.workload.fingerprint import fingerprint

FILES = {
    "Lublin-1": "lublin_256.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "Lublin-2": "lublin_256_new2.swf.gz",
}


def slowdown(jobs: Workload, start: Any) -> float:
    response = start - jobs.submit_time + jobs.run_time
    return float(np.maximum(response / np.maximum(jobs.run_time, 10), 1).mean())


def published(log: str, backfill: bool, policy: str) -> float:
    rows = PUBLISHED[PUBLISHED["log"] == log].set_index("backfilling")
    return float(rows.loc["yes" if backfill else "no", policy])


# --- Their rules ----------------------------------------------------------------------------------


@pytest.mark.parametrize("log", FILES)
def test_their_rules_meet_what_is_published(log: str, trace: Callable[[str], Path]) -> None:
    """All digits of what does not learn: ten sequences, five policies, two ways to backfill."""
    jobs = runs.load_log(str(trace(FILES[log])))
    sequences = next(iter(runs.parts_of(len(jobs)).values()))
    parts = [jobs.take(slice(first, first + number)) for first, number in sequences]
    assert len(parts) == 10
    for backfill in (False, True):
        for policy in ("fcfs", "wfp3", "unicef", "sjf", "f1"):
            means = [
                slowdown(part, runs.play(part, runs.least_score(part, policy), backfill))
                for part in parts
            ]
            assert round(float(np.mean(means)), 2) == published(log, backfill, policy), policy


def test_job_selection_is_their_setting(trace: Callable[[str], Path]) -> None:
    """Without backfilling, of policies that are the same formula there and here."""
    jobs = runs.load_log(str(trace(FILES["Lublin-1"])))
    env: Any = gymnasium.make(
        "hpcgym/JobSelection-v2", workload=jobs, jobs=1024, window=1024, backfill="none",
        reservation="kept", episodes="windows", start="empty", arrivals="stop", horizon=None,
    )  # fmt: skip
    for policy in ("fcfs", "sjf", "f1"):
        means, baseline = [], find_baseline(policy)
        for row in runs.first_rows(len(jobs)):
            observation, info = env.reset(seed=0, options={"start": row, "jobs": 1024})
            baseline.begin(env)
            over = False
            while not over:
                observation, _, over, _, info = env.step(baseline.act(observation, info))
            means.append(info["episode_mean_bsld"])
        assert round(float(np.mean(means)), 2) == published("Lublin-1", False, policy)


@given(workloads())
def test_their_rules_are_a_queue_that_is_first_come(jobs: Workload) -> None:
    """Strict first come, first served, without backfilling: the slow simulator's schedule."""
    run_time = np.maximum(np.minimum(jobs.run_time, jobs.requested_time), 1)
    requested = np.maximum(jobs.requested_time, run_time)
    jobs = jobs.with_columns(run_time=run_time, requested_time=requested)
    start_times = runs.play(jobs, runs.least_score(jobs, "fcfs"), False)
    slow = simulate_pool(jobs_of(jobs), jobs.processors, policy="fcfs")
    assert start_times.tolist() == [job.start for job in slow]


TOO_WIDE = Workload.from_columns(
    {"submit_time": [0], "run_time": [9], "requested_time": [9], "requested_processors": [5]},
    processors=4,
)


def test_by_hand() -> None:
    """A machine of 4. The second job waits for the first; its reservation is told once, for 100 s.

    The third ends after that by its request, and waits; the fourth ends before, and starts.
    """
    jobs = Workload.from_columns(
        {
            "submit_time": [0, 1, 2, 3],
            "run_time": [60, 10, 20, 20],
            "requested_time": [100, 10, 98, 96],
            "requested_processors": [2, 4, 1, 2],
        },
        processors=4,
    )
    first_come = runs.least_score(jobs, "fcfs")
    assert runs.play(jobs, first_come, False).tolist() == [0, 60, 70, 70]
    assert runs.play(jobs, first_come, True).tolist() == [0, 60, 70, 3]
    # who comes in the second of an end comes before it: the third is backfilled, the second waits
    jobs = jobs.take(slice(0, 3)).with_columns(
        submit_time=[0, 1, 60], requested_time=[100, 10, 30], requested_processors=[2, 4, 2]
    )
    assert runs.play(jobs, runs.least_score(jobs, "fcfs"), True).tolist() == [0, 80, 60]


@pytest.mark.parametrize("backfill", [False, True])
def test_a_network_that_is_a_rule_plays_as_it(tmp_path: Path, backfill: bool) -> None:
    jobs = load_workload("lublin:jobs=1200,processors=64,seed=2,load=5")
    jobs = jobs.with_columns(requested_time=jobs.run_time)
    write_checkpoint(tmp_path, network_of(requested=1.0))
    select, most = runs.by_network(PublishedNetwork(tmp_path), Sight(jobs), None), 0

    def watched(queue: list[int], time: int, free: int) -> int:
        nonlocal most
        most = max(most, len(queue))
        return select(queue, time, free)

    start_times = runs.play(jobs, watched, backfill)
    assert np.array_equal(start_times, runs.play(jobs, runs.least_score(jobs, "sjf"), backfill))
    assert most > 128  # more than it sees


def test_a_network_sees_what_fits(tmp_path: Path) -> None:
    arrays = network_of(fits=1.0)
    arrays["pi/dense_3/kernel"][0, 0] = 1
    write_checkpoint(tmp_path, arrays)
    jobs = Workload.from_columns(
        {
            "submit_time": [0, 1, 2, 3],
            "run_time": [60, 10, 10, 10],
            "requested_time": [60, 10, 10, 10],
            "requested_processors": [3, 4, 3, 1],
        },
        processors=4,
    )
    select = runs.by_network(PublishedNetwork(tmp_path), Sight(jobs), None)
    seen = [select([1, 2, 3], 5, free) for free in (4, 3, 2, 0)]
    assert seen == [1, 2, 3, 1]


# --- The study ------------------------------------------------------------------------------------

SOURCE = "lublin:jobs=2300,processors=64,seed=1,load=4"


LINES = """; MaxProcs: 8
1 0 -1 -1 -1 -1 -1 2 600 -1 5 1 1 1 1 1 -1 -1
2 5 0 0 3 -1 -1 2 600 -1 1 1 1 1 1 1 -1 -1
3 6 9 80 4 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
4 7 9 90 2 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1
"""


def test_logs_are_read_as_they_do(tmp_path: Path) -> None:
    """What never ran is a job of 10 s, unless it is left out; what ran for 0 s is no job."""
    file = tmp_path / "few.swf"
    file.write_text(LINES)
    for load, first in ((runs.load_log, 0), (runs.load_ran, 1)):
        jobs = load(str(file))
        assert jobs.submit_time.tolist() == [0, 6, 7][first:]
        assert jobs.run_time.tolist() == [10, 80, 90][first:]
        assert jobs.requested_time.tolist() == [600, 80, 60][first:]
        assert jobs.requested_processors.tolist() == [2, 4, 4][first:]


def test_parts_of_logs() -> None:
    parts = runs.parts_of(34_500)
    thousand = ["0 to 10 thousand", "10 to 20 thousand", "20 to 30 thousand"]
    assert [*parts] == [*thousand, "whole log"]
    first = runs.first_rows(10_000)
    assert first[:3] == [1981, 2756, 4299]
    assert parts["20 to 30 thousand"] == [(20_000 + row, 1024) for row in first]
    assert parts["whole log"] == [(0, 34_500)]
    assert [*runs.parts_of(200_000)][-2] == "40 to 50 thousand"


def test_what_is_played_is_what_is_said(tmp_path: Path) -> None:
    """A network that is SJF, by their rules and by ours; and one that draws."""
    write_checkpoint(tmp_path, network_of(requested=1.0))
    log = load_workload(SOURCE)
    part = log.take(slice(100, 400))
    task = {"source": SOURCE, "jobs_sha256": fingerprint([log]), "sequences": [(100, 300)]}
    network = {"folder": str(tmp_path), "seed": None, "policy": runs.BEST}
    for setting, backfill in (("theirs", False), ("theirs, backfilling", True)):
        common = {**task, "setting": setting}
        own = {**common, "jobs_sha256": fingerprint([runs.load_log(SOURCE)])}
        played = runs.play_part({**own, "policy": "saf"})
        start = runs.play(part, runs.least_score(part, "saf"), backfill)
        assert played["mean_bsld"] == [slowdown(part, start)]
        assert played["max_wait_h"] == [(start - part.submit_time).max() / 3600]
        assert played["mean_wait_h"] == [(start - part.submit_time).mean() / 3600]
        by_best = runs.play_part({**own, **network})
        drawn = [runs.play_part({**own, **network, "seed": seed}) for seed in (0, 0, 1)]
        assert drawn[0] == drawn[1]
        assert drawn[0] != drawn[2] != by_best
    ours = {**task, "setting": "ours"}
    expected = simulate(part, "saf")
    played = runs.play_part({**ours, "policy": "saf"})
    assert played["mean_bsld"] == [pytest.approx(expected.metrics["mean_bsld"])]
    narrow = tmp_path / "narrow"
    write_checkpoint(narrow, network_of(processors=1.0))
    rest = {"backfill": "easy", "backfill_order": "spf"}
    expected = simulate(part, policy="-processors", **rest)
    played = runs.play_part({**ours, **network, "folder": str(narrow)})
    assert played["mean_bsld"] == [pytest.approx(expected.metrics["mean_bsld"])]


def test_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        run, "LOGS", {"Lublin-1": runs.Log(SOURCE, "one"), "HPC2N": runs.Log("none.swf", "two")}
    )
    write_checkpoint(tmp_path / "models" / "one" / "one_s0", random_network())
    folder = Folder(tmp_path / "study", "serial")
    report, made = run.reproduce(tmp_path / "models", folder, quick=True)
    with pytest.warns(WorkloadWarning, match=r"HPC2N is left out: .*none\.swf"):
        assert [*run._tasks("HPC2N", tmp_path / "models", False)] == []
    said = report.read_text()
    assert "A quick cut: 2 sequences of Lublin-1" in said
    played = made["played"]
    assert {*played["part"]} == {"0 to 10 thousand"}
    assert len(played) == 2 * (2 * len(runs.THEIRS) + len(runs.OURS) + 3 * 2)
    theirs = made["theirs"].set_index("backfilling")
    cell = played[(played["setting"] == "theirs, backfilling") & (played["policy"] == "saf")]
    assert theirs.loc["yes", "SAF"] == cell["mean_bsld"].mean()
    assert theirs.loc["yes", "longest wait, SAF [h]"] == cell["max_wait_h"].max()
    assert theirs.loc["yes", "RLScheduler, published"] == 58.64
    assert theirs.loc["no", "RLScheduler, published"] == 254.67
    later = made["later"].set_index("backfilling").loc["yes"]
    of_network = played[
        (played["setting"] == "theirs, backfilling") & (played["policy"] == "network")
    ]
    ratios = of_network["mean_bsld"].to_numpy() / cell["mean_bsld"].to_numpy()
    assert later["network / SAF"] == pytest.approx(np.exp(np.log(ratios).mean()))
    assert later["95 %"] == "-"
    assert {"EASY", "saf-typical-80h", "network"} <= {*made["ours"].columns}


def test_without_a_log_of_theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "LOGS", {"HPC2N": runs.Log("none.swf", "two")})
    folder = Folder(tmp_path / "study", "serial")
    with (
        pytest.warns(WorkloadWarning),
        pytest.raises(HpcgymError, match=r"none of their logs is on this machine: none\.swf"),
    ):
        run.reproduce(tmp_path, folder)


def test_the_command_needs_their_folder(tmp_path: Path) -> None:
    for models, said in (
        ([], "--models: name the folder trained_models/bsld of DIR-LAB/deep-batch-scheduler"),
        (["--models", str(tmp_path / "none")], "none of their logs is on this machine"),
    ):
        command = ["reproduce", "rlscheduler", "--output", str(tmp_path / "study"), *models]
        finished = CliRunner().invoke(app, command, env={"HPCGYM_DATA": str(tmp_path)})
        assert finished.exit_code == 1
        assert said in finished.stderr


def test_means_over_seeds_and_intervals() -> None:
    seeds = [(0, [1.0, 3.0]), (1, [5.0, 9.0])]
    drawn = [pd.DataFrame({"seed": seed, "mean_bsld": of}) for seed, of in seeds]
    assert run._drawn(pd.concat(drawn)) == "4 (2 to 7)"
    assert run._drawn(drawn[0]) == "2"
    network = pd.DataFrame({"mean_bsld": np.exp(np.linspace(-1, 1, 41))})
    saf = network.assign(mean_bsld=1.0)
    compared = run._against(network, saf)
    assert compared["network / SAF"] == pytest.approx(1)
    low, high = (float(end) for end in compared["95 %"].strip("[]").split(", "))
    assert (low, high) == pytest.approx((0.83, 1.2), abs=0.02)


test_mistakes = mistakes_of(globals())
