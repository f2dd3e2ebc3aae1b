"""What Slurm tells of its jobs becomes a schedule, which is compared with the simulated one."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, find_cluster
from hpcgym.replay import Replay, facts_of, replay_on_slurm, table_of
from hpcgym.replay.private import Record, read_records
from hpcgym.replay.run import CLOSE_S, result_of
from hpcgym.schedule.result import Result

LINE = (
    "JobId=3 UserId=root(0) GroupId=root(0) Name=job-2 JobState=COMPLETED Partition=replay"
    " TimeLimit=10 StartTime=2026-01-01T00:03:41 EndTime=2026-01-01T00:04:11 NodeList=n[1-2]"
    " NodeCnt=1 ProcCnt=60 WorkDir=/ ReservationName= Tres=cpu=60 Account= QOS="
    " WcKey= Cluster=unknown"
    " SubmitTime=2026-01-01T00:02:20 EligibleTime=2026-01-01T00:02:20 DerivedExitCode=0:0"
    " ExitCode=0:0 "
)
ZERO = 1_767_225_600 + 120


def records_of(result: Result, nodes: str = "n1") -> list[Record]:
    """What Slurm would tell of a schedule."""
    rows = zip(result.workload.submit_time, result.start, result.end, strict=True)
    return [
        Record(f"job-{row}", "COMPLETED", int(submit), int(start), int(end), nodes)
        for row, (submit, start, end) in enumerate(rows)
    ]


@pytest.fixture
def simulated() -> Result:
    jobs = hpcgym.load_workload("lublin:jobs=120,processors=16,load=4,seed=3")
    return hpcgym.simulate(jobs, "fcfs")


def made(result: Result, records: list[Record]) -> Result:
    return result_of(result.workload, result.cluster, result.scheduler, records, "Slurm 1.2.3")


def test_lines_of_slurm_are_read_or_said_to_be_wrong() -> None:
    wanted = Record("job-2", "COMPLETED", submit=20, start=101, end=131, nodes="n[1-2]")
    assert read_records(f"{LINE}\n{LINE}", ZERO) == [wanted, wanted]
    assert read_records("", ZERO) == []


def test_records_become_the_schedule_that_they_tell(simulated: Result) -> None:
    records = records_of(simulated)
    random.Random(0).shuffle(records)
    replayed = made(simulated, records)
    assert replayed.start.tolist() == simulated.start.tolist()
    assert replayed.backfilled.tolist() == simulated.backfilled.tolist()
    assert replayed.metrics["mean_bsld"] == simulated.metrics["mean_bsld"]
    proved = hpcgym.validate_schedule(replayed)
    assert {"lengths", "submission", "capacity", "energy"} <= set(proved)
    assert not {"events", "progress", "order"} & set(proved)
    assert "Slurm 1.2.3 made" in replayed.as_workload().header["Note"][0]


def test_a_schedule_that_uses_too_much_is_found(simulated: Result) -> None:
    at_once = replace(simulated, start=simulated.workload.submit_time)
    with pytest.raises(hpcgym.ScheduleError, match="over-used"):
        hpcgym.validate_schedule(made(simulated, records_of(at_once)))


def test_backfilled_are_those_that_start_before_an_earlier_job(simulated: Result) -> None:
    result = hpcgym.simulate(simulated.workload, "easy")
    assert result.backfilled.any()
    start = result.start.tolist()
    wanted = [
        any(start[row] < later_start for later_start in start[:row]) for row in range(len(start))
    ]
    assert made(result, records_of(result)).backfilled.tolist() == wanted


def test_nodes_are_those_that_slurm_names() -> None:
    jobs = hpcgym.load_workload("lublin:jobs=1,processors=32,seed=3")
    size = int(jobs.requested_processors[0])
    cluster = find_cluster("32x1x1")
    result = hpcgym.simulate(jobs, "fcfs", cluster=cluster)
    records = records_of(result, f"n[2-{size + 1}]")
    replayed = result_of(jobs, cluster, result.scheduler, records, "Slurm")
    assert replayed.allocation is not None
    assert replayed.allocation.node.tolist() == list(range(1, size + 1))
    assert "nodes" in hpcgym.validate_schedule(replayed)


def otherwise(result: Result, **change: Any) -> list[Record]:
    """What Slurm would tell of a schedule in which the eighth job went otherwise."""
    records = records_of(result)
    records[7] = records[7]._replace(**change)
    return records


def test_a_job_that_woke_a_second_late_is_counted(simulated: Result) -> None:
    records = records_of(simulated)
    last = int(simulated.end.argmax())
    records[last] = records[last]._replace(end=records[last].end + 1)
    replayed = made(simulated, records)
    hpcgym.validate_schedule(replayed)
    assert (replayed.end - simulated.end).sum() == replayed.end[last] - simulated.end[last] == 1
    (counted,) = replayed.workload.cleaning.items() - simulated.workload.cleaning.items()
    assert counted == ("repaired: run time a second or two more or less, as Slurm had it", 1)


def test_schedules_part_where_the_same_jobs_ran_before(simulated: Result) -> None:
    """Found slowly: which jobs have started, and ended, in both schedules up to a time."""
    facts = facts_of(Replay(simulated, simulated))
    assert facts["same_starts"] == facts["close_starts"] == facts["mean_bsld_ratio"] == 1
    assert facts["parted"] == facts["largest_difference_s"] == 0
    assert set(table_of(Replay(simulated, simulated))["why"]) == {""}
    other = hpcgym.simulate(simulated.workload, "easy")
    table = table_of(Replay(other, simulated))
    apart = np.abs(other.start - simulated.start) > CLOSE_S
    assert apart.sum() > 9
    assert table["start_time"].tolist() == other.start.tolist()
    assert table["simulated_start_time"].tolist() == simulated.start.tolist()
    for job, why in enumerate(table["why"]):
        if not apart[job]:
            assert why == ""
            continue
        at = min(other.start[job], simulated.start[job])
        under_way = [
            row
            for row in np.flatnonzero(apart)
            if min(other.start[row], simulated.start[row]) < at
            and max(other.end[row], simulated.end[row]) > at
        ]
        if under_way:
            assert why == "follows"
        elif why != "follows":  # of jobs that part at the same second the first is named
            assert why == f"{'replayed' if other.start[job] == at else 'simulated'} first"
    assert table["why"].str.endswith("first").any()
    assert facts_of(Replay(other, simulated))["parted"] == table["why"].str.endswith("first").sum()


def test_machines_that_cannot_be_had_are_refused(simulated: Result) -> None:
    with pytest.raises(HpcgymError):
        replay_on_slurm(simulated.workload, cluster=Cluster(1))


test_mistakes = mistakes_of(globals(), fixtures=("simulated",))
