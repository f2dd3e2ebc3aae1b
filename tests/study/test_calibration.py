"""Which settings explain a log's past: those that made it are found, and what is tried is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from mistakes import mistakes_of

import hpcgym
from hpcgym.machine import Cluster, NodeGroup, Partition
from hpcgym.machine.pool import with_counts
from hpcgym.scheduler.rules import Scheduler
from hpcgym.study.calibration import Candidate, calibrate, changes_for, limits_of
from hpcgym.workload.model import Workload

JOBS = hpcgym.load_workload("lublin:jobs=1500,processors=64,load=1.0,users=5,seed=1")
NARROW = JOBS.with_columns(requested_processors=JOBS.requested_processors.clip(max=32))


def test_the_settings_that_made_a_log_are_found() -> None:
    """Of a machine of which a fifth was away, and on which users had a limit."""
    made = hpcgym.simulate(NARROW, "easy", cluster=Cluster(51), quota="user:processors=32")
    table = calibrate(made.as_workload(), "easy", Cluster(64))
    chosen = table[table.chosen]
    assert {*chosen.settings.iloc[-1].split("; ")} == {
        "20 % of the processors out of service",
        "at most 32 processors of each user run at once",
    }
    assert chosen.explained.iloc[-1] == chosen.explained_later.iloc[-1] == 1.0
    assert chosen.mean_wait_s.iloc[-1] == made.wait.mean()


def test_a_limit_of_gpus_is_found_where_processors_would_explain_it_as_well() -> None:
    """Each job has eight cores for each of its GPUs; no user has more than four at once."""
    rng = np.random.default_rng(1)
    n, gpus = 400, rng.choice([1, 1, 2, 4], 400)
    jobs = Workload.from_columns(
        {
            "submit_time": np.sort(rng.integers(0, 400_000, n)),
            "run_time": rng.integers(600, 9000, n),
            "requested_time": np.full(n, 9000),
            "user_id": rng.integers(0, 3, n),
            "job_number": np.arange(1, n + 1),
        },
        processors=128,
        units=gpus,
        per_unit={"core": np.full(n, 8), "gpu": np.ones(n, np.int64)},
    )
    cluster = Cluster(groups=(NodeGroup("node", 4, {"core": 32, "gpu": 4}),))
    made = hpcgym.simulate(jobs, "easy", cluster=cluster, quota="user:gpu=4")
    table = calibrate(made.as_workload(), "easy", cluster, most=1)
    chosen = table[table.chosen].iloc[-1]
    assert chosen.settings == "at most 4 gpu of each user run at once"
    assert chosen.explained == chosen.explained_later == 1.0


def test_what_cannot_be_tried_is_told() -> None:
    jobs = JOBS.with_columns(requested_processors=np.full(len(JOBS), 60))
    log = hpcgym.simulate(jobs, "easy").as_workload()
    table = calibrate(log, "fcfs", Cluster(64), most=1)
    away = table[table.settings.str.contains("out of service")]
    assert away.problem.tolist()[1:] == ["1,500 jobs do not fit on this machine"] * 4
    assert away.explained.isna().tolist() == [False, True, True, True, True]


def test_smaller_machines_are_switched_off_as_the_site_s_own() -> None:
    own = Candidate(Scheduler(), Cluster(64, shutdown_after_s=600), {})
    smaller = [change.cluster for change in changes_for(NARROW, own) if change.kind == "machine"]
    sizes = [(61, 600), (58, 600), (51, 600), (45, 600), (38, 600)]
    assert [
        (machine.processors, machine.shutdown_after_s) for machine in smaller if machine
    ] == sizes


def test_limits_are_of_what_tells_jobs_apart() -> None:
    made = hpcgym.simulate(NARROW, "easy", cluster=Cluster(64)).as_workload()
    assert next(str(*quotas) for _, quotas in limits_of(made)).startswith("user:processors=")
    same = made.with_columns(group_id=made.user_id * 7)
    assert len(list(limits_of(same))) == len(list(limits_of(made))) == 4  # users, QOS
    assert len(list(limits_of(made.with_columns(partition=made.user_id % 2)))) == 5


def test_a_limit_that_the_site_gives_is_not_looked_for() -> None:
    """Of all jobs that it may bind; one of some users, or of another amount, is no such limit."""
    jobs = hpcgym.simulate(NARROW, "easy").as_workload()

    def of_users(quota: str) -> set[str]:
        own = Candidate(Scheduler(quota=quota), Cluster(64), {})
        words = (change.words for change in changes_for(jobs, own))
        return {text.split()[3] for text in words if "of each user" in text}

    assert of_users("user:jobs=99") == {"processors"}
    assert of_users("group/user:processors=9") == {"jobs"}
    assert of_users("user=1/user:processors=9") == {"jobs", "processors"}


def test_machines_with_other_numbers_of_nodes() -> None:
    groups = (NodeGroup("a", 3, {"core": 2}), NodeGroup("b", 2, {"core": 8}))
    parts = (Partition("all", (0, 1, 2, 3, 4)), Partition("last", (2, 4)), Partition("first", (0,)))
    machine = Cluster(groups=groups, partitions=parts)
    fewer = with_counts(machine, [1, 2])
    assert [partition.nodes for partition in fewer.partitions] == [(0, 1, 2), (2,), (0,)]
    more = with_counts(machine, [4, 0])
    assert [partition.nodes for partition in more.partitions] == [(0, 1, 2, 3), (2, 3), (0,)]
    assert more.processors == 8
    assert with_counts(machine, [3, 2]) == machine
    spare = replace(machine, partitions=(Partition("q", (0,)), Partition("p", (1,))))  # node 2
    assert [partition.nodes for partition in with_counts(spare, [5, 3]).partitions] == [
        (0,),
        (1, 3, 4),
    ]


def test_a_share_of_many_small_groups_is_that_share() -> None:
    groups = tuple(NodeGroup(f"g{k}", 2, {"core": 4}) for k in range(10))
    machine = Cluster(groups=groups)
    away = {
        change.words: machine.nodes - (change.cluster or machine).nodes
        for change in changes_for(NARROW, Candidate(Scheduler(), machine, {}))
        if "out of service" in change.words
    }
    assert away["10 % of the nodes out of service"] == 2
    assert away["30 % of the nodes out of service"] == 6
    assert away["40 % of the nodes out of service"] == 8


test_mistakes = mistakes_of(globals())
