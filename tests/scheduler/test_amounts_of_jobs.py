"""Amounts of whole jobs, licences, nodes, what is billed: limits on them, and what is charged."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from few_jobs import few_jobs

import hpcgym
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.errors import HpcgymError, HpcgymWarning, RuleWarning, WorkloadWarning
from hpcgym.explanation.explain import explain
from hpcgym.machine import find_cluster
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.restrictions import Quota
from hpcgym.study.calibration import limits_of
from hpcgym.workload.amounts import amount_of_tres, asked_of, billed, licences_in, weights_of
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.io.tables import read_table, write_table
from hpcgym.workload.model import Workload
from hpcgym.workload.partitions import charged
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
    with pytest.warns(
        HpcgymWarning, match="not followed: .* bf_licenses; .*no licence is reserved"
    ):
        assert find_scheduler(str(conf)).quota == scheduler.quota
    conf.write_text(text + "Licenses=matlab:2,abaqus:x\n")
    with pytest.warns(HpcgymWarning, match="invalid values.*Licenses=matlab:2,abaqus:x: no"):
        assert find_scheduler(str(conf)).quota == ()
    conf.write_text(text + "Licenses=matlab:0\n")
    with pytest.raises(HpcgymError, match=r"job 1 asks for 2 licence\.matlab, more than the quota"):
        hpcgym.simulate(jobs, find_scheduler(str(conf)), cluster=str(conf))
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


def test_generic_resources_are_no_other_amounts(tmp_path: Path) -> None:
    """One that is called as a column of jobs is not it; names are the same in any case."""
    tres = "cpu=1,node=1,gres/billing=7,gres/licence.x=3,GRES/GPU=2,License/ansys=1"
    jobs = hpcgym.load_workload(str(dump(tmp_path, "AllocTRES", (0, tres))), processors=8)
    assert jobs.columns["billing"].tolist() == [-1]
    assert asked_of(jobs, ["licence.x", "gpu", "licence.ansys"]).tolist() == [[0, 2, 1]]
    assert {text.split(",")[0] for text in jobs.cleaning} == {
        "not used: gres/billing", "not used: gres/licence.x",
    }  # fmt: skip
    assert [amount_of_tres(name) for name in ("gres/billing", "Mem", "GRES/GPU:a")] == [
        "", "mem", "gpu-a",
    ]  # fmt: skip


def test_a_name_of_a_job_with_blanks(tmp_path: Path) -> None:
    """Which sacct does not quote: its second word is not the script."""
    row = "my job|sbatch -J my job --nice=5 -L ansys run.sh --nice=9"
    jobs = hpcgym.load_workload(str(dump(tmp_path, "JobName|SubmitLine", (0, row))), processors=8)
    assert (jobs.columns["nice"].tolist(), asked_of(jobs, ["licence.ansys"]).tolist()) == (
        [5], [[1]],
    )  # fmt: skip


def test_rules_of_what_no_job_has(tmp_path: Path) -> None:
    jobs = few_jobs(4, [0], [1], [1], units=[1], per_unit={"core": [1], "gpu": [1]})
    with pytest.warns(RuleWarning, match="spare no job: user/spares=nobody:jobs=3"):
        hpcgym.simulate(jobs, quota="user/spares=nobody:jobs=3")
    with pytest.warns(RuleWarning, match=r"what is charged: GPU \(did you mean gpu\?\)"):
        hpcgym.simulate(jobs, "fairshare", fair_share="charged=GPU")
    conf = tmp_path / "slurm.conf"
    conf.write_text("NodeName=n CPUs=8\nPartitionName=p Nodes=ALL Default=YES ")
    with conf.open("a") as file:
        file.write("TRESBillingWeights=node=3\n")
    with pytest.warns(WorkloadWarning, match="'p': its TRESBillingWeights bill nothing: .*nodes"):
        hpcgym.load_workload(few_jobs(4, [0], [1], [2]), cluster=str(conf))


def test_amounts_of_slurm() -> None:
    assert licences_in("matlab:2,abaqus@server=3;x") == {
        "licence.matlab": 2, "licence.abaqus@server": 3, "licence.x": 1,
    }  # fmt: skip
    assert [amount_of_tres(name) for name in ("license/a b", "bb/x", "gres/gpu:a100")] == [
        "", "", "gpu-a100",
    ]  # fmt: skip


# --- Nodes ----------------------------------------------------------------------------------------


def test_nodes_of_jobs_are_bounded(tmp_path: Path) -> None:
    """By hand: jobs of 2, 2 and 1 of 3 nodes: the second waits for the end of the first, at 100 s.

    The third, on one node, starts beside the first.
    """
    rows = ["1|ann|COMPLETED|{0}0|{0}0|100|2|4|2", "2|ann|COMPLETED|{0}1|{0}1|100|2|4|2"]
    rows.append("3|ann|COMPLETED|{0}2|{0}2|100|2|2|1")
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([HEAD.rstrip("|"), *(row.format(DAY) for row in rows)]) + "\n")
    conf, qos = tmp_path / "slurm.conf", tmp_path / "qos.txt"
    conf.write_text("NodeName=n[1-9] CPUs=4\nPartitionName=p Nodes=ALL Default=YES QOS=q\n")
    qos.write_text("Name|GrpTRES|MaxTRESPU\nq|node=9|node=3\n")
    jobs = hpcgym.load_workload(str(path), cluster=str(conf))
    assert jobs.allocated_nodes.tolist() == [2, 2, 1]
    scheduler = find_scheduler(f"{conf}:qos={qos}")
    assert [*map(str, scheduler.quota)] == [
        "queue=q|partition=p/user:nodes=3", "queue=q|partition=p:nodes=9",
    ]  # fmt: skip
    for engine in (None, "reference"):
        easy = hpcgym.simulate(jobs, quota="user:nodes=3", cluster=str(conf), engine=engine)
        assert easy.start.tolist() == [0, 100, 2]
        hpcgym.validate_schedule(easy)
    assert hpcgym.simulate(jobs, scheduler, cluster=str(conf)).start.tolist()[:2] != [0, 1]


def test_nodes_that_nothing_tells() -> None:
    jobs = few_jobs(8, [0, 0], [10] * 2, [1, 2])
    message = r"quota user:nodes=3: .*nothing tells how many nodes the job of row 1 has.*NNodes"
    with pytest.raises(HpcgymError, match=message):
        hpcgym.simulate(jobs, quota="user:nodes=3")
    assert not any("nodes" in words for words, _ in limits_of(jobs.with_columns(user_id=[1, 2])))


def test_whole_nodes_tell_it(tmp_path: Path) -> None:
    """By hand: on nodes of 4 cores, of which jobs have whole ones, 5 cores are on 2 of them."""
    conf = tmp_path / "slurm.conf"
    text = "SelectType=select/linear\nNodeName=n[1-4] CPUs=4\n"
    conf.write_text(f"{text}PartitionName=p Nodes=ALL Default=YES\n")
    jobs = hpcgym.load_workload(few_jobs(16, [0, 0], [10] * 2, [5, 1]), cluster=str(conf))
    assert asked_of(jobs, ["nodes"]).T.tolist() == [[2, 1]]


# --- What is billed -------------------------------------------------------------------------------

CONF = """SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
PriorityFlags=NO_FAIR_TREE{flags}
PriorityWeightFairshare=100000
GresTypes=gpu
NodeName=g1 CPUs=16 Gres=gpu:4
PartitionName=gpu Nodes=g1 Default=YES TRESBillingWeights="CPU=1.0,GRES/gpu=16.0"
"""
SHARERS = [("ann", 0, 3600, 8, 4), ("bob", 1, 4000, 8, 0), ("cat", 4002, 3600, 16, 0)]
SHARERS += [("ann", 4200, 3600, 16, 0), ("bob", 4201, 3600, 16, 0)]


@pytest.mark.parametrize(
    ("told", "flags", "billing", "starts"),
    [
        # ann has used 72 x 3,600, or 8 + 64 by the weights; bob 8 x 4,000: his job comes first
        ("billing=72,", "", 72, [11_202, 7602]),
        ("", "", 72, [11_202, 7602]),
        ("", ",MAX_TRES", 64, [11_202, 7602]),
        # by processors, as before: ann 8 x 3,600
        ("billing=8,", "", 8, [7602, 11_202]),
    ],
)
def test_fair_share_charges_what_is_billed(
    tmp_path: Path, told: str, flags: str, billing: int, starts: list[int]
) -> None:
    conf, lines = tmp_path / "slurm.conf", [HEAD + "Partition|AllocTRES"]
    conf.write_text(CONF.format(flags=flags))
    for number, (user, submit, run, cores, gpus) in enumerate(SHARERS, 1):
        time = f"2024-03-01T{10 + submit // 3600}:{submit // 60 % 60:02}:{submit % 60:02}"
        tres = f"{told if gpus else told and f'billing={cores},'}cpu={cores}"
        tres += f",gres/gpu={gpus}" if gpus else ""
        lines.append(f"{number}|{user}|COMPLETED|{time}|{time}|{run}|90|{cores}|1|gpu|{tres}")
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join(lines) + "\n")
    jobs = hpcgym.load_workload(str(path), cluster=str(conf))
    assert jobs.billing.tolist() == [billing, 8, 16, 16, 16]
    scheduler = find_scheduler(str(conf))
    assert scheduler.fair_share.charged == "billing"
    result = hpcgym.simulate(jobs, scheduler, cluster=str(conf))
    assert result.start.tolist() == [0, 1, 4002, *starts]


@pytest.mark.parametrize(
    ("told", "starts"),
    [
        # ann is charged 1.75 and bob 1.5, who comes first therefore
        (None, [10_800, 7200]),
        ([1, 1, 4, 4, 4], [10_800, 7200]),
        # the log tells other amounts, which count as they are: who came first is first
        ([2, 2, 4, 4, 4], [7200, 10_800]),
    ],
)
def test_fractions_are_charged_and_not_limited(
    tmp_path: Path, told: list[int] | None, starts: list[int]
) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF.format(flags="").replace("CPU=1.0,GRES/gpu=16.0", "CPU=0.25"))
    rows = [(0, 1, 7), (0, 2, 6), (100, 3, 16), (200, 1, 16), (201, 2, 16)]
    submit, user, cores = zip(*rows, strict=True)
    table = {"submit_time": submit, "user_id": user, "core": cores}
    table |= {"run_time": [3600] * 5, "requested_time": [3600] * 5}
    table |= {} if told is None else {"billing": told}
    jobs = hpcgym.load_workload(pd.DataFrame(table), cluster=str(conf))
    assert jobs.billing.tolist() == (told or [1, 1, 4, 4, 4])
    of_first = charged(jobs, "billing", find_cluster(str(conf)).partitions)[0]
    assert of_first == (2 if told and told[0] == 2 else 1.75)
    result = hpcgym.simulate(jobs, str(conf), cluster=str(conf))
    assert result.start.tolist()[3:] == starts


def test_bounds_on_what_is_billed() -> None:
    """By hand: 5 and 3 are more than 7; where nothing tells it, processors count."""
    jobs = few_jobs(8, [0, 0], [10] * 2, [1, 4], user_id=[1, 1])
    billed = jobs.with_columns(billing=[5, 3])
    assert hpcgym.simulate(billed, quota="user:billing=7").start.tolist() == [0, 10]
    with pytest.warns(
        RuleWarning,
        match="what is billed, .* load the jobs with cluster=: 2",
    ):
        assert hpcgym.simulate(jobs, quota="user:billing=7").start.tolist() == [0, 0]


def test_weights_of_amounts() -> None:
    """By hand, as in the page "slurm.conf": 8 GB at 0.25 a GB are 2, and at 0.25 a MB 2,048."""
    given = {"units": [1], "per_unit": {"mem": [8192], "gpu": [0]}}
    jobs = few_jobs(8, [0], [10], [1], **given, **{"licence.a": [2]})
    weights = "CPU=1.0,Mem=0.25G,GRES/gpu=2.0,license/a=1.5"
    assert billed(jobs, weights, False).tolist() == [6]
    assert billed(jobs, weights, True).tolist() == [5]
    assert billed(jobs, "mem=.25", False).tolist() == [2048]
    for wrong in ("cpu", "energy=1", "cpu=x", "cpu=1,,", "cpu=1.2.3", "cpu=" + "9" * 400):
        with pytest.raises(HpcgymError, match="is no weight of an amount of jobs"):
            weights_of(wrong)
    with pytest.raises(HpcgymError, match="bills more than 2,147,483,648 a second"):
        billed(jobs, "mem=1000000", False)


def test_what_is_charged_is_checked() -> None:
    assert str(FairShare(charged="gpu")).endswith("charged=gpu")
    assert FairShare.parse(FairShare(charged="gpu").table()) == FairShare(charged="gpu")
    with pytest.raises(HpcgymError, match="charged: 'processor' is no amount"):
        FairShare.parse("charged=processor")
    with pytest.raises(HpcgymError, match="charged: jobs have 'submitted' before they run"):
        FairShare(charged="submitted")
    jobs = few_jobs(4, [0], [1], [1], user_id=[1])
    with pytest.warns(RuleWarning, match="no job asks for what is charged: gpu"):
        hpcgym.simulate(jobs, "fairshare", fair_share="charged=gpu")


# --- The only type of GPUs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "quota"),
    [
        # all GPUs are of the type, whether a job asked for it or for any
        ("Gres=gpu:A100:4", "queue=q/user:gpu=2"),
        ("Gres=gpu:A100:4\nNodeName=m CPUs=4", "queue=q/user:gpu=2"),
        # a job may have others
        ("Gres=gpu:A100:4\nNodeName=m CPUs=4 Gres=gpu:v100:4", "queue=q/user:gpu=3+gpu-a100=2"),
        ("Gres=gpu:4", "queue=q/user:gpu=3+gpu-a100=2"),
    ],
)
def test_a_bound_on_the_only_type_binds_all(tmp_path: Path, nodes: str, quota: str) -> None:
    conf, qos = tmp_path / "slurm.conf", tmp_path / "qos.txt"
    conf.write_text(f"GresTypes=gpu\nNodeName=n CPUs=4 {nodes}\nPartitionName=p Nodes=ALL\n")
    qos.write_text("Name|MaxTRESPU\nq|gres/gpu:a100=2,gres/gpu=3\n")
    assert [*map(str, find_scheduler(f"{conf}:qos={qos}").quota)] == [quota]
    qos.write_text("Name|MaxTRESPU\nq|gres/gpu:a100=0\n")
    sole = "a100" not in quota
    if nodes == "Gres=gpu:4":
        with pytest.warns(HpcgymWarning, match=r"no node has .* types.*: gpu-a100 in queue=q"):
            find_scheduler(f"{conf}:qos={qos}")
    zero = f"queue=q/user:gpu{'' if sole else '-a100'}=0"
    assert [*map(str, find_scheduler(f"{conf}:qos={qos}").quota)] == [zero]
