"""States of a simulation that is told as a Slurm would tell it: all goes on as it did."""

from __future__ import annotations

import numpy as np
import pytest

import hpcgym
from hpcgym.benchmarks.forecast.beside_slurm import Stretch, exact, moments, requests
from hpcgym.machine import find_cluster
from hpcgym.schedule.result import Result
from hpcgym.slurm.looks import JobParts, SeenJob, SlurmLook
from hpcgym.slurm.present import SlurmMachine
from hpcgym.slurm.queue import QueuedJob
from hpcgym.workload.model import Workload

RULES, EVERY_S = "easy:backfill=slurm:bf_window=10080", 30
ZERO = 1_767_225_780


def jobs_of_some_cores(seed: int) -> Workload:
    """Jobs for four nodes of four cores, a unit of one core or two each."""
    jobs = hpcgym.load_workload(f"lublin:jobs=60,processors=8,load=4,seed={seed}")
    width, core = jobs.requested_processors, 1 + (np.arange(len(jobs)) % 2)
    columns = {**jobs.columns, "requested_processors": width * core, "user_id": [1] * len(jobs)}
    columns["requested_time"] = -(-jobs.requested_time // 60) * 60
    return Workload.from_columns(columns, processors=16, units=width, per_unit={"core": core})


def told(result: Result, time: int, named: bool) -> SlurmLook:
    """What Slurm would tell at a time, in which all that happens in that second has happened."""
    jobs, allocation, seen, parts = result.workload, result.allocation, [], {}
    assert allocation is not None
    assert jobs.units is not None
    known = hpcgym.snapshot(result, time + 1).jobs.initial
    assert known is not None
    assert known.ongoing is not None
    assert known.ongoing.looks is not None
    for row in range(len(jobs)):
        submit, began, ended = (
            int(jobs.submit_time[row]),
            int(result.start[row]),
            int(result.end[row]),
        )
        if submit > time or ended <= time:
            continue
        runs, core = began <= time, int(jobs.requested_processors[row] // jobs.units[row])
        cells = slice(*allocation.first[row : row + 2].tolist())
        had = zip(allocation.node[cells].tolist(), allocation.units[cells].tolist(), strict=True)
        nodes = {f"n{node}": units * core for node, units in had} if runs else {}
        job = QueuedJob(
            row + 1, int(jobs.requested_processors[row]), ZERO + submit,
            int(jobs.requested_time[row]), 1, 0, ("u", "a", "q", "p"), ZERO + began if runs else -1,
        )  # fmt: skip
        seen.append(SeenJob(str(row + 1), job, -1, ",".join(nodes), ""))
        parts[row + 1] = JobParts(int(jobs.units[row]), -1, nodes if named else {})
    return SlurmLook(ZERO + time, seen, ZERO + known.ongoing.looks[1] - EVERY_S, parts, [])


@pytest.mark.parametrize("seed", range(3))
def test_from_any_submission_jobs_start_as_they_did(seed: int) -> None:
    jobs = jobs_of_some_cores(seed)
    cluster = find_cluster("4x4x1")
    result = hpcgym.simulate(jobs, RULES, cluster=cluster)
    looks = [("submitted", told(result, int(time), True)) for time in np.unique(jobs.submit_time)]
    machine = SlurmMachine(cluster, ("n0", "n1", "n2", "n3"), EVERY_S, None)
    stretch = Stretch(looks, machine, ZERO + result.start, result.run_time, {})
    asked, chosen = requests(stretch), moments(stretch)
    off = np.concatenate([exact(stretch, k, rows, asked) for k, rows in chosen])
    assert len(off) > 5
    assert not off.any(), off
    # a pass at another time is another schedule
    blind = [(kind, look._replace(passed=look.passed - 13)) for kind, look in looks]
    wrong = stretch._replace(looks=blind)
    others = np.concatenate([exact(wrong, k, rows, asked) for k, rows in chosen])
    assert others.any()
