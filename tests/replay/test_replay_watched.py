"""Replays that are watched: the Slurm of a replay as a live one, at many moments."""

from __future__ import annotations

import numpy as np
from slurm_here import needs_slurm

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.benchmarks.forecast.beside_slurm import Stretch, exact, moments, requests
from hpcgym.forecasting.state import SlurmStates
from hpcgym.replay import replay_on_slurm
from hpcgym.replay.private import PrivateSlurm
from hpcgym.replay.run import MOMENTS
from hpcgym.schedule.result import Result
from hpcgym.slurm.looks import SlurmLook, look
from hpcgym.twin import Twin
from hpcgym.workload.model import Workload

RULES = "easy:backfill=slurm:bf_window=10080"


def jobs_of_some_cores() -> Workload:
    """Some jobs for four nodes of four cores, a unit of one core or two each."""
    jobs = hpcgym.load_workload("lublin:jobs=40,processors=8,load=8,seed=5")
    width = jobs.requested_processors
    core = 1 + (np.arange(len(jobs)) % 2)
    columns = {**jobs.columns, "requested_processors": width * core}
    return Workload.from_columns(columns, processors=16, units=width, per_unit={"core": core})


def watched(
    jobs: Workload, cluster: str, kinds: list[str], looks: list[tuple[str, SlurmLook]]
) -> tuple[Result, int, SlurmStates]:
    """A replay with a twin beside it; kinds of moments and looks are appended."""
    zero, made = [], []

    def watch(slurm: PrivateSlurm, kind: str) -> None:
        if not made:
            zero.append(slurm.zero_s)
            made.append(Twin(SlurmStates(slurm.looking()), find_scheduler(RULES), futures=4))
        kinds.append(kind)
        looks.append((kind, look(slurm.looking(), parts=True, ended=False)))
        if made[0].poll().plan is not None:
            plans.append(made[0].last.plan)

    plans: list[tuple[int, int]] = []
    replayed = replay_on_slurm(jobs, RULES, cluster=cluster, watch=watch).replayed
    same, planned = np.array(plans).sum(axis=0).tolist()
    assert planned > 20
    assert same >= 0.99 * planned, (same, planned)
    return replayed, zero[0], made[0].states


@needs_slurm
def test_a_twin_beside_a_replay_changes_nothing_and_knows_all() -> None:
    """Starts with it are those without, but for a second now and then: Slurm's threads race.

    With true run times and arrivals jobs start from the state of a look when Slurm started them:
    in that second, or on a busy machine a second before for each end that Slurm saw late. The plan
    is Slurm's.
    """
    jobs, kinds, looks = jobs_of_some_cores(), [], []
    result, zero, states = watched(jobs, "4x4x1", kinds, looks)
    alone = replay_on_slurm(jobs, RULES, cluster="4x4x1").replayed
    apart = np.abs(result.start - alone.start)
    assert apart.max() <= 2, apart
    assert {*kinds} == {*MOMENTS}
    assert kinds.count("submitted") == len(jobs)
    stretch = Stretch(looks, states.machine, result.start + zero, result.run_time, {})
    asked = requests(stretch)
    off = np.concatenate([exact(stretch, k, rows, asked) for k, rows in moments(stretch)])
    assert len(off) > 20
    assert (off <= 1).all(), off
    assert (off >= -10).all(), off
