"""Light-ESP: the jobs of table 6.2, in any order, for any machine and any users."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcgym import Cluster, load_workload, simulate
from hpcgym.cluster import NodeGroup
from hpcgym.errors import WorkloadError
from hpcgym.workload import read_table, write_table
from hpcgym.workload.generators.light_esp import TYPES, WORK_S, light_esp


def test_the_theoretic_run_time_of_the_table() -> None:
    assert sum(kind.jobs for kind in TYPES) == 230
    assert round(WORK_S) == 935


def test_the_whole_machine_is_used_by_fractions() -> None:
    """On a machine on which all fractions but two are whole numbers of processors."""
    log = light_esp(processors=80_640)
    work = (log.requested_processors * log.run_time).sum() / 80_640
    assert work == pytest.approx(935.21, abs=0.01)
    by_type = {kind.name: log.requested_processors[log.executable == k + 1]
               for k, kind in enumerate(TYPES)}  # fmt: skip
    assert set(by_type["A"].tolist()) == {2520}
    assert set(by_type["Z"].tolist()) == {80_640}
    assert [len(sizes) for sizes in by_type.values()] == [kind.jobs for kind in TYPES]


def test_180_cores_in_nodes_of_12_are_as_printed() -> None:
    log = light_esp(processors=180, node_cores=12)
    sizes = {kind.cores for kind in TYPES}
    assert set(log.requested_processors.tolist()) == sizes
    assert log.units is not None
    assert (log.units * 12 == log.requested_processors).all()
    cluster = Cluster(groups=(NodeGroup("node", 15, {"core": 12}),))
    result = simulate(log, cluster=cluster)
    assert result.allocation is not None
    assert (result.allocation.units == 1).all()  # a node holds one unit, alone


def test_the_seed_shuffles_and_nothing_else() -> None:
    one, same, other = light_esp(seed=1), light_esp(seed=1), light_esp(seed=2)
    assert np.array_equal(one.executable, same.executable)
    assert not np.array_equal(one.executable, other.executable)
    assert np.array_equal(np.sort(one.executable), np.sort(other.executable))
    assert np.array_equal(one.submit_time, other.submit_time)


def test_jobs_come_in_the_time_that_the_load_says() -> None:
    log = light_esp(repeat=4, load=2.0)
    assert len(log) == 920
    gaps = np.diff(log.submit_time)
    assert set(gaps.tolist()) == {2, 3}
    assert log.submit_time[-1] + gaps.mean() == pytest.approx(4 * WORK_S / 2, rel=0.01)


def test_users_have_the_same_jobs() -> None:
    log = light_esp(repeat=4, users=3, spread=0.3)
    for kind in range(1, 14):
        jobs = np.bincount(log.user_id[log.executable == kind], minlength=4)[1:]
        assert len(set(jobs.tolist())) == 1
    watts = {user: log.power_w[log.user_id == user] for user in (1, 2, 3)}
    for user, factor in ((1, 0.7), (2, 1.0), (3, 1.3)):
        assert watts[user] == pytest.approx(factor * 358)


def test_users_have_unequal_jobs() -> None:
    log = light_esp(repeat=4, users=3, unequal=1)
    jobs = np.bincount(log.user_id)[1:]
    assert jobs / jobs[0] == pytest.approx([1, 2, 3], rel=0.06)
    assert (log.power_w == -1).all()


def test_by_name_and_through_a_file(tmp_path: Path) -> None:
    log = load_workload("light-esp:processors=96,users=2,spread=0.5,seed=4")
    write_table(log, tmp_path / "log.csv")
    again = read_table(tmp_path / "log.csv", processors=96)
    assert np.array_equal(again.power_w, log.power_w)
    assert np.array_equal(again.requested_processors, log.requested_processors)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("light-esp:users=0", "light-esp: users must be from 1 to 10000, not 0"),
        ("light-esp:repeat=1.5", "light-esp: repeat must be from 1 to 10000, not 1.5"),
        ("light-esp:load=0", "light-esp: load must be above 0, not 0"),
        ("light-esp:load=1e-300", "light-esp: load must be so large"),
        ("light-esp:spread=1", "light-esp: spread must be from 0 to less than 1, not 1"),
        ("light-esp:unequal=2", "light-esp: unequal must be 0 or 1, not 2"),
        ("light-esp:node_cores=7", "light-esp: processors must be a multiple of node_cores, 7"),
        ("light-esp:node_cores=181", "light-esp: node_cores must be from 1 to 180, not 181"),
        ("light-esp:seed=-1", "light-esp: seed must be from 0 to"),
        ("light-esp:jobs=3", "generator 'light-esp' has no argument 'jobs'"),
    ],
)
def test_bad_arguments(text: str, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        load_workload(text)
    assert message in str(error.value)
