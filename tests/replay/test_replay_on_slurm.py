"""Replays on the Slurm that is installed."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from slurm_here import needs_slurm

import hpcgym
from hpcgym.cli import app
from hpcgym.errors import WorkloadError
from hpcgym.machine import Partition
from hpcgym.replay import Replay, facts_of, replay_on_slurm
from hpcgym.replay.configuration import SlurmNode, scheduling_of
from hpcgym.replay.private import private_slurm
from hpcgym.workload.model import Workload

JOBS = "lublin:jobs=40,processors=8,load=4,seed=4"  # of which 11 are backfilled


def replayed(backfill: str, cluster: str | None = None) -> Replay:
    rules = hpcgym.Scheduler(backfill=backfill)
    return replay_on_slurm(hpcgym.load_workload(JOBS), rules, cluster=cluster)


@needs_slurm
@pytest.mark.parametrize("backfill", ["none", "until-shadow"])
def test_slurm_does_on_one_node_what_the_rule_says(backfill: str) -> None:
    """Each time, but for a second now and then: its threads race."""
    once = replayed(backfill)
    facts = facts_of(once)
    assert facts["close_starts"] == 1, facts
    assert abs(facts["mean_bsld_ratio"] - 1) < 0.01
    assert once.replayed.replayed_on.startswith("Slurm ")
    assert once.replayed.backfilled.any() == (backfill != "none")
    if once.replayed.backfilled.any():
        again = replayed(backfill).replayed
        assert abs(once.replayed.start - again.start).max() <= 2


@needs_slurm
def test_slurm_looks_at_few_jobs_of_a_user() -> None:
    """All jobs are of one: of several users Slurm would know nothing."""
    jobs, rules = hpcgym.load_workload(JOBS), hpcgym.Scheduler(backfill="slurm:bf_max_job_user=1")
    with pytest.raises(WorkloadError, match="one user, and bf_max_job_user=1 is of each user"):
        replay_on_slurm(jobs, rules)
    mine = jobs.with_columns(user_id=[1] * len(jobs))
    replayed_mine = replay_on_slurm(mine, rules)
    assert facts_of(replayed_mine)["close_starts"] == 1
    others = hpcgym.simulate(mine, backfill="slurm")
    assert (others.start != replayed_mine.simulated.start).any()


@needs_slurm
def test_nodes_of_slurm_are_told() -> None:
    on_nodes = replayed("none", "8x1x1")
    assert facts_of(on_nodes)["close_starts"] == 1
    assert on_nodes.replayed.allocation is not None
    assert "nodes" in hpcgym.validate_schedule(on_nodes.replayed)


@needs_slurm
def test_slurm_takes_nodes_by_number_as_first_fit_does() -> None:
    """By itself it takes the smallest run of free neighbours: here for half of the jobs another."""
    jobs = hpcgym.load_workload("lublin:jobs=30,processors=16,load=0.8,seed=5")
    replayed_jobs = replay_on_slurm(jobs, hpcgym.Scheduler(backfill="slurm"), cluster="16x1x1")
    assert facts_of(replayed_jobs)["close_starts"] == 1
    had, wanted = (result.allocation for result in replayed_jobs)
    assert had is not None
    assert wanted is not None
    spans = zip(had.first[:-1].tolist(), had.first[1:].tolist(), strict=True)
    same = [{*had.node[a:b].tolist()} == {*wanted.node[a:b].tolist()} for a, b in spans]
    assert sum(same) >= 27  # one that ended in the second before may still hold its nodes


@needs_slurm
@pytest.mark.parametrize(("signal", "times"), [("SIGKILL", 10), ("SIGINT", 3), ("SIGTERM", 3)])
def test_whatever_ends_a_replay_nothing_is_left(signal: str, times: int, tmp_path: Path) -> None:
    """No process, no port that listens, no folder, which the shared memory is in."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("kills.py")), str(times), signal],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.stdout.split("\n") == ["nothing"] * times + [""], done.stderr
    assert not list(tmp_path.iterdir())


@needs_slurm
@pytest.mark.parametrize("mode", ["cancel", "requeue"])
def test_who_is_stopped_has_grace_time_as_in_slurm(mode: str) -> None:
    """Job 0 leaves from 10 s on, job 1 ends by itself by then, and job 2 starts when both have."""
    partitions = (Partition("low", (0,), priority_tier=1), Partition("high", (0,), priority_tier=9))
    settings = scheduling_of(hpcgym.Scheduler(backfill="slurm")) | {
        "PreemptType": "preempt/partition_prio",
        "PreemptMode": mode.upper(),
        "PartitionName": "DEFAULT GraceTime=80",
    }
    settings["SchedulerParameters"] += ",preempt_youngest_first"
    jobs = Workload.from_columns(
        {
            "submit_time": [0, 0, 10],
            "run_time": [1000, 60, 50],
            "requested_time": [1200, 1200, 600],
            "requested_processors": [2, 2, 3],
            "queue": [1, 1, 2],
        },
        processors=4,
    )
    rules = {"backfill": "slurm", "preemption": f"queue:2>1,{mode},grace=80"}
    simulated = hpcgym.simulate(jobs, **rules)
    assert simulated.start.tolist()[1:] == [0, 90]
    stopped = simulated.end[0] if mode == "cancel" else simulated.lost.end[0]
    assert stopped == 90
    with private_slurm((SlurmNode(4),), settings, 30, partitions) as slurm:
        slurm.begin(0)
        for row, name in enumerate(["low", "low", "high"]):
            slurm.advance(int(jobs.submit_time[row]))
            asks = ["-n", str(jobs.requested_processors[row]), "-p", name]
            slurm.submit(str(row), asks, int(jobs.requested_time[row]), int(jobs.run_time[row]))
        slurm.advance(300)
        first, other, last = sorted(slurm.records(), key=lambda record: record.name)
    assert (other.state, other.end, last.state) == ("COMPLETED", 60, "COMPLETED")
    assert (first.state, first.start) == ("PREEMPTED", 0)
    assert 0 <= first.end - stopped <= 30  # Slurm looks every 30 s at who has to have gone
    assert 0 <= last.start - first.end <= 30  # so often it backfills


@needs_slurm
def test_the_command_tells_what_differs(tmp_path: Path) -> None:
    jobs, schedule = tmp_path / "jobs.csv", tmp_path / "schedule.swf"
    arguments = ["replay", "lublin:jobs=12,processors=8,load=4,seed=4", "--on", "slurm"]
    files = ["--jobs", str(jobs), "--output", str(schedule)]
    result = CliRunner().invoke(app, [*arguments, *files, "--format", "json"])
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["differences"]["jobs"] == 12
    slurm, simulated = facts["results"]
    assert slurm["mean_bsld"] == pytest.approx(simulated["mean_bsld"], rel=0.01)
    names = [schedule["name"] for schedule in facts["provenance"]["schedules"]]
    assert names == [slurm["scheduler"]["name"], "simulated"]
    with jobs.open() as file:
        starts = [int(row["start_time"]) for row in csv.DictReader(file)]
    read = hpcgym.load_workload(str(schedule))
    assert (read.submit_time + read.wait_time).tolist() == starts
