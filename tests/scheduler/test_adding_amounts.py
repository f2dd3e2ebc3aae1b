"""What one more amount, one more limit of Slurm, and one more reader cost: rows of tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from few_jobs import few_jobs

import hpcgym
from hpcgym import Scheduler, own_code
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.explanation.explain import explain
from hpcgym.scheduler.slurm_assoc import limits_as_quotas, read_associations
from hpcgym.scheduler.slurm_tables import LIMITS, LimitColumn
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study.calibration import limits_of
from hpcgym.workload.amounts import AMOUNTS, Amount
from hpcgym.workload.model import Workload

NODES = "NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL Default=YES\n"


def _of_groups(workload: Workload) -> np.ndarray:
    return 10 * workload.group_id


def jobs() -> Workload:
    """By hand: of jobs with 20, 20, 10 and 0 of an amount 30 are allowed: 1 waits, and 3 never."""
    rows = {"submit": [0, 1, 2, 3], "run": [100] * 4, "wide": [1] * 4}
    numbers = {"job_number": [1, 2, 3, 4], "group_id": [2, 2, 1, 0], "user_id": [7, 7, 7, 8]}
    return few_jobs(8, **rows, **numbers)


STARTS = [0, 100, 2, 3]


def test_an_amount_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A quota, limits of Slurm, reference, proof, cause, calibration and fair share know it."""
    monkeypatch.setitem(AMOUNTS, "heat", Amount(_of_groups, "W are given off", tres="heat"))
    for engine in (None, "reference"):
        result = hpcgym.simulate(jobs(), "easy", quota="user:heat=30", engine=engine)
        assert result.start.tolist() == STARTS
    assert "quotas" in hpcgym.validate_schedule(result)
    with pytest.raises(HpcgymError, match="user:heat=30: at 1 s 40 W are given off"):
        hpcgym.validate_schedule(replace(result, start=np.array([0, 1, 2, 3])))
    assert "user:heat=30" in str(explain(result, 2))
    words = [words for words, _ in limits_of(jobs())]
    assert "at most 50 heat of each user run at once" in words
    assert hpcgym.simulate(jobs(), "fairshare", fair_share="charged=heat").start.tolist() == [
        0, 1, 2, 3,
    ]  # fmt: skip
    qos = tmp_path / "qos.txt"
    qos.write_text("Name|MaxTRESPU\nq|heat=30\n")
    of_slurm = replace(jobs().with_columns(queue=[1] * 4), header={"Queue": ["1 q"]})
    result = hpcgym.simulate(of_slurm, quota=str(qos))
    assert (str(result.scheduler.quota[0]), result.start.tolist()) == (
        "queue=q/user:heat=30", STARTS,
    )  # fmt: skip
    batch = BatchSimulator([jobs()], ["wait"], Scheduler(quota="user:heat=30"))
    assert batch.run(np.ones((1, 1)), "mean_wait_s").item() == 99 / 4


def test_a_trackable_resource_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What dumps tell of it is read into its column; by hand: job 2 would be one too many."""
    row = Amount(
        lambda jobs: jobs.columns["licence.io"], "are in use", tres="bb/x", column="licence.io"
    )
    head = "JobID|State|Submit|Start|ElapsedRaw|AllocCPUS|AllocTRES\n"
    times = "COMPLETED|2024-03-01T10:00:00|2024-03-01T10:00:00|100|1|"
    path = tmp_path / "jobs.txt"
    path.write_text(f"{head}1|{times}cpu=1,bb/x=2\n2|{times}cpu=1,bb/x=3\n")
    monkeypatch.setitem(AMOUNTS, "io", row)
    read = hpcgym.load_workload(str(path), processors=4)
    assert hpcgym.simulate(read, quota="all:io=4").start.tolist() == [0, 100]


def test_a_limit_of_slurm_is_a_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of QOS and of associations; without the row a warning names it."""
    conf, qos, assoc = (tmp_path / name for name in ("slurm.conf", "qos.txt", "assoc.txt"))
    conf.write_text(NODES)
    qos.write_text("Name|MaxCoresPU|GrpLicences\nq|3|matlab\n".replace("matlab", "5"))
    name = f"{conf}:qos={qos}"
    with pytest.warns(HpcgymWarning, match="q: MaxCoresPU, q: GrpLicences"):
        assert find_scheduler(name).quota == ()
    monkeypatch.setitem(LIMITS, "MaxCoresPU", LimitColumn(("user",), "processors"))
    monkeypatch.setitem(LIMITS, "GrpLicences", LimitColumn((), "licence.matlab"))
    assert [*map(str, find_scheduler(name).quota)] == [
        "queue=q/user:processors=3", "queue=q:licence.matlab=5",
    ]  # fmt: skip
    assoc.write_text("Cluster|Account|User|GrpLicences|MaxCoresPU\nc|root|||\nc|a||2|4\nc|a|u||\n")
    quotas, left = limits_as_quotas(read_associations(assoc))
    assert sorted(map(str, quotas)) == [
        "group=a/group/user:processors=4", "group=a/group:licence.matlab=2",
    ]  # fmt: skip
    assert left == []


READER = """
import numpy as np
from hpcgym import Workload

class Mine:
    def recognizes(self, path, head):
        return head.startswith(b"mine")
    def read(self, path, how):
        rows = [line.split() for line in path.read_text().splitlines()[1:]]
        names = ("submit_time", "run_time", "requested_processors", "licence.matlab")
        columns = dict(zip(names, np.array(rows, int).T))
        return Workload.from_columns(columns, processors=8, name="mine")
"""


def test_a_reader_is_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An entry point of another package; what it reads is bounded as all else."""
    (tmp_path / "reader_of_mine.py").write_text(READER)
    information = tmp_path / "mine-0.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 0.1\n")
    (information / "entry_points.txt").write_text("[hpcgym.readers]\nmine = reader_of_mine:Mine\n")
    (tmp_path / "jobs.mine").write_text("mine\n0 100 1 2\n1 100 1 2\n2 100 1 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(own_code, "_USED", {})  # or later tests would say that they used it
    own_code.others.cache_clear()
    try:
        jobs = hpcgym.load_workload(str(tmp_path / "jobs.mine"))
        result = hpcgym.simulate(jobs, quota="all:licence.matlab=3")
    finally:
        own_code.others.cache_clear()
    assert result.start.tolist() == [0, 100, 2]
