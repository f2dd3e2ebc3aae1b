"""Limits on amounts of whole jobs: licences."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from few_jobs import few_jobs

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, HpcgymWarning, RuleWarning
from hpcgym.explanation.explain import explain
from hpcgym.scheduler.restrictions import Quota
from hpcgym.study.calibration import limits_of
from hpcgym.workload.amounts import amount_of_tres, asked_of, licences_in
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.io.tables import read_table, write_table
from hpcgym.workload.model import Workload
from hpcgym.workload.plain import as_plain, from_plain

HEAD = "JobID|User|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes|"
DAY = "2024-03-01T10:00:0"


def dump(folder: Path, fields: str, *rows: tuple[int, str]) -> Path:
    """Write a dump of jobs of one core and 100 s, submitted second by second.

    ``rows``: when each started in the log [s], and its further ``fields``.
    """
    lines = [HEAD + fields]
    for number, (start, more) in enumerate(rows, 1):
        begun = f"2024-03-01T10:{start // 60:02}:{start % 60:02}"
        job = f"{number}|ann|COMPLETED|{DAY}{number - 1}|{begun}|100|2|1|1|"
        lines.append(job + more)
    path = folder / "jobs.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


#: Of the first three the second waits for the first's licence; the fourth needs another.
ROWS = [
    (0, "cpu=1,node=1,license/matlab=2|"),
    (100, "cpu=1,node=1,license/matlab=1|"),
    (2, "cpu=1,node=1|"),
    (3, "cpu=1,node=1,license/abaqus@server=1|"),
]


def licensed(folder: Path) -> Workload:
    return hpcgym.load_workload(str(dump(folder, "AllocTRES|ReqTRES", *ROWS)), processors=8)


def test_licences_are_read_from_what_slurm_tracks(tmp_path: Path) -> None:
    jobs = licensed(tmp_path)
    names = ["licence.matlab", "licence.abaqus@server", "licence.ansys"]
    assert asked_of(jobs, names).T.tolist() == [[2, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert jobs.cleaning == {}


@pytest.mark.parametrize(
    ("allocated", "requested", "line", "matlab", "ansys", "unused"),
    [
        ("", "", "sbatch --licenses=matlab:2,ansys run.sh", 2, 1, 0),
        ("", "", "sbatch -L matlab;ansys:3;matlab run.sh", 2, 3, 0),
        ("", "", "sbatch run.sh -L matlab", 0, 0, 0),
        ("", "", "sbatch -L matlab|ansys:2 run.sh", 0, 0, 1),  # which one is not told
        # one of several that are tracked: that which the job was given
        ("cpu=1,license/ansys=2", "cpu=1,license/ansys=2,license/matlab=1",
         "sbatch -L matlab|ansys:2 run.sh", 0, 2, 1),
        ("", "cpu=1,license/matlab=4", "", 4, 0, 0),
        # one is tracked, and the command tells the other
        ("cpu=1,license/matlab=3", "", "sbatch -L matlab:9,ansys:2 run.sh", 3, 2, 0),
    ],
)  # fmt: skip
def test_licences_of_a_job(
    tmp_path: Path, allocated: str, requested: str, line: str, matlab: int, ansys: int, unused: int
) -> None:
    rows = [(0, f"{allocated}|{requested}|{line}"), (1, "cpu=1||sbatch -L ansys a.sh")]
    path = dump(tmp_path, "AllocTRES|ReqTRES|SubmitLine", *rows)
    jobs = hpcgym.load_workload(str(path), processors=8)
    read = asked_of(jobs, ["licence.matlab", "licence.ansys"]).tolist()
    assert read[0] == [matlab, ansys]
    reason = "not used: licences of which any one serves, or with names that none has here"
    assert jobs.cleaning.get(reason, 0) == unused


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(
    "quota", ["all:licence.matlab=2", "everybody:licence.matlab=2+licence.abaqus@server=1"]
)
def test_a_job_waits_for_licences(tmp_path: Path, quota: str, engine: str | None) -> None:
    """By hand: job 2 waits for the end of job 1, and is passed over by jobs 3 and 4."""
    jobs = licensed(tmp_path)
    result = hpcgym.simulate(jobs, "easy", quota=quota, engine=engine)
    assert result.start.tolist() == [0, 100, 2, 3]
    hpcgym.validate_schedule(result)
    text = str(explain(result, 2))
    assert "it would have exceeded a quota" in text
    assert "licence.matlab=2" in text
    with pytest.raises(HpcgymError, match=r"at 1 s 3 licence\.matlab are in use"):
        hpcgym.validate_schedule(replace(result, start=np.array([0, 1, 2, 3])))


def test_licences_of_a_slurm_conf(tmp_path: Path) -> None:
    """As by hand above; with bf_licenses too, which is told."""
    conf = tmp_path / "slurm.conf"
    text = "NodeName=n[1-2] CPUs=4\nPartitionName=p Nodes=ALL\nSchedulerType=sched/builtin\n"
    conf.write_text(text + "Licenses=matlab:2,abaqus@server\n")
    scheduler = find_scheduler(str(conf))
    assert [*map(str, scheduler.quota)] == ["all:licence.abaqus@server=1+licence.matlab=2"]
    jobs = licensed(tmp_path)
    result = hpcgym.simulate(jobs, scheduler, cluster=str(conf))
    assert result.start.tolist() == [0, 100, 2, 3]
    with conf.open("a") as file:
        file.write("SchedulerParameters=bf_licenses\n")
    with pytest.warns(HpcgymWarning, match="not followed: SchedulerParameters bf_licenses"):
        assert find_scheduler(str(conf)).quota == scheduler.quota
    conf.write_text(text + "Licenses=matlab:2,abaqus:x\n")
    with pytest.warns(HpcgymWarning, match="invalid values.*Licenses=matlab:2,abaqus:x: no"):
        assert find_scheduler(str(conf)).quota == ()
    conf.write_text(text + "Licenses=matlab:1\n")
    with pytest.raises(HpcgymError, match=r"job 1 asks for 2 licence\.matlab, more than the quota"):
        hpcgym.simulate(jobs, find_scheduler(str(conf)), cluster=str(conf))


def test_licences_stay_with_their_jobs(tmp_path: Path) -> None:
    """When jobs are saved, cut, and hashed."""
    jobs = licensed(tmp_path)
    name = "licence.matlab"
    copies = [_again(jobs, tmp_path / f"jobs{ending}") for ending in (".csv", ".json")]
    for again in (*copies, pickle.loads(pickle.dumps(jobs)), from_plain(as_plain(jobs))):
        assert again.columns[name].tolist() == [2, 1, 0, 0]
    assert jobs.take(np.array([1, 3])).columns[name].tolist() == [1, 0]
    assert jobs.extract(1).columns[name].tolist()[-3:] == [1, 0, 0]
    assert fingerprint([jobs]) != fingerprint([jobs.with_columns(**{name: [1] * 4})])


def _again(jobs: Workload, path: Path) -> Workload:
    write_table(jobs, path)
    return read_table(path, processors=8)


def test_calibrate_looks_for_licences(tmp_path: Path) -> None:
    two_users = licensed(tmp_path).with_columns(user_id=[1, 1, 2, 2])
    words = [words for words, _ in limits_of(two_users)]
    assert "at most 2 licence.matlab of each user run at once" in words


def test_no_job_needs_a_licence(tmp_path: Path) -> None:
    jobs = few_jobs(4, [0], [1], [1])
    with pytest.warns(RuleWarning, match="no job falls under these quotas: all:licence.x=1"):
        hpcgym.simulate(jobs, quota="all:licence.x=1")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("all:license.matlab=1", "did you mean 'licence.matlab'?"),
        ("all:licence=1", "did you mean 'licence.matlab'?"),
        ("all:Licence.a=1", "did you mean 'licence.a'?"),
    ],
)
def test_names_of_licences(text: str, problem: str) -> None:
    with pytest.raises(HpcgymError, match=problem.replace("?", r"\?")):
        Quota.parse(text)


def test_amounts_of_slurm() -> None:
    assert licences_in("matlab:2,abaqus@server=3;x") == {
        "licence.matlab": 2, "licence.abaqus@server": 3, "licence.x": 1,
    }  # fmt: skip
    assert [amount_of_tres(name) for name in ("license/a b", "bb/x", "gres/gpu:a100")] == [
        "", "", "gpu-a100",
    ]  # fmt: skip
