"""A site's own dump on its own machine: no job lies where its shape forbids, by the dump alone."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

import hpcgym
from hpcgym.machine import find_cluster

#: 96 nodes in 3 partitions, of which two overlap; two nodes are down, four cores are the system's.
CONF = """ClusterName=alpha
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=500
PriorityWeightPartition=2000
NodeName=DEFAULT CPUs=32 RealMemory=128000
NodeName=c[01-62]
NodeName=c[63-64] State=DOWN
NodeName=f[01-16] CPUs=64 RealMemory=512000
NodeName=g[01-16] Gres=gpu:4 CoreSpecCount=4
PartitionName=DEFAULT MaxTime=UNLIMITED State=UP
PartitionName=batch Nodes=c[01-64],f[01-08] Default=YES
PartitionName=fat Nodes=f[01-16] PriorityJobFactor=5
PartitionName=gpu Nodes=g[01-16] PriorityJobFactor=9
"""
HEAD = (
    "Cluster|JobID|User|Account|Partition|QOS|State|Submit|Start|ElapsedRaw|Timelimit|AllocCPUS"
    "|NNodes|ReqMem|AllocTRES"
)
PLACES = {"batch": "cf", "": "cf", "fat": "f", "gpu": "g"}
CORES = {"c": 32, "f": 64, "g": 28}


def dump(jobs: int, seed: int) -> list[dict[str, Any]]:
    """Draw jobs of all shapes, in order of submission."""
    random, at, rows = Random(seed), 0, []
    for number in range(1, jobs + 1):
        at += random.choice([0, 0, 0, 5, 30, 90, 200])
        partition = random.choice(["batch", "batch", "batch", "", "fat", "gpu"])
        most = min(CORES[kind] for kind in PLACES[partition])
        nodes = random.choice([1, 1, 1, 1, 2, 3, 4, 8])
        gpus = nodes * random.choice([0, 1, 4]) if partition == "gpu" else 0
        cores = nodes * random.choice([1, 2, 4, 8, 16, most])
        if not gpus and cores > nodes:
            cores -= random.choice([0, 0, random.randrange(nodes)])  # uneven shares
        limit = random.choice([60, 240, 1440, "UNLIMITED"])
        ran = random.choice([30, 600, 3600, 9000])
        rows.append(
            {
                "cluster": "alpha", "number": number, "user": random.choice("abcdefgh"),
                "partition": partition, "submit": at, "ran": ran, "limit": limit, "cores": cores,
                "nodes": nodes, "told": random.random() < 0.97, "gpus": gpus,
                "mb": random.choice([0, 1000, 2000]) * cores,
            }
        )  # fmt: skip
    return rows


def line(job: dict[str, Any]) -> str:
    """A job as sacct prints it; it waited for a minute."""
    limit = job["limit"]
    if not isinstance(limit, str):
        limit = f"{limit // 1440}-{limit // 60 % 24:02}:00:00"
    tres = f"cpu={job['cores']}"
    tres += f",node={job['nodes']}" if job["told"] else ""
    tres += f",mem={job['mb']}M" if job["mb"] else ""
    tres += f",gres/gpu={job['gpus']}" if job["gpus"] else ""
    begin = datetime(2024, 3, 1)
    times = [(begin + timedelta(seconds=job["submit"] + s)).isoformat() for s in (0, 60)]
    who = [job["cluster"], job["number"], job["user"], "x", job["partition"], "normal", "COMPLETED"]
    nodes = job["nodes"] if job["told"] else ""
    return "|".join(map(str, [*who, *times, job["ran"], limit, job["cores"], nodes, "", tres]))


def problems(jobs: list[dict[str, Any]], table: Any) -> list[str]:
    """What is wrong with the places of jobs, by their lines and the file of the machine alone."""
    asked = {job["number"]: job for job in jobs}
    wrong = []
    events = defaultdict(list)
    for row in table.itertuples():
        job = asked[row.job_number]
        cells = [cell.split(":") for cell in row.nodes.split()]
        units = sum(int(count) for _, count in cells)
        names = [name for name, _ in cells]
        if any(name[0] not in PLACES[job["partition"]] for name in names):
            wrong.append(f"{job}: not in its partition: {names}")
        if any(name in ("c63", "c64") for name in names):
            wrong.append(f"{job}: on a node that is down")
        fat = [name for name in names if name[0] == "f"]
        if job["partition"] in ("batch", "") and max(fat, default="") > "f08":
            wrong.append(f"{job}: on a fat node that is not of batch")
        if job["told"] and len(names) != job["nodes"]:
            wrong.append(f"{job}: on {len(names)} nodes")
        for name, count in cells:
            share = int(count) / units
            uses = [job["cores"] * share, job["mb"] * share, job["gpus"] * share]
            if job["told"] and uses[0] > -(-job["cores"] // job["nodes"]):
                wrong.append(f"{job}: {uses[0]} cores on {name}")
            events[name] += [(row.start_time, 1, uses), (row.end_time, 0, uses)]
    for name, changes in events.items():
        has = [CORES[name[0]], 512_000 if name[0] == "f" else 128_000, 4 * (name[0] == "g")]
        used = [0.0, 0.0, 0.0]
        for time, begins, uses in sorted(changes):
            used = [a + (b if begins else -b) for a, b in zip(used, uses, strict=True)]
            if any(a > b + 1e-6 for a, b in zip(used, has, strict=True)):
                wrong.append(f"{name} at {time} s: {used} of {has}")
                break
    return wrong


@pytest.mark.parametrize("number", [2000, 20_000])
@pytest.mark.filterwarnings("ignore")
def test_no_job_lies_where_its_shape_forbids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.chdir(tmp_path)
    jobs = dump(number, 1)
    other = {**jobs[0], "cluster": "beta", "number": jobs[5]["number"]}
    text = "\n".join([HEAD, *map(line, jobs), line(other), ""])
    Path("jobs.txt").write_text(text)
    Path("slurm.conf").write_text(CONF)
    machine = find_cluster("slurm.conf")
    workload = hpcgym.load_workload("jobs.txt", cluster=machine)
    assert len(workload) == number  # the other cluster's job is not among them
    result = hpcgym.simulate(workload, "slurm.conf", cluster=machine)
    hpcgym.validate_schedule(result)
    first, node, units = result.allocation
    names = machine.node_names
    cells = [f"{names[n]}:{u}" for n, u in zip(node.tolist(), units.tolist(), strict=True)]
    nodes = [" ".join(cells[a:b]) for a, b in pairwise(first.tolist())]
    assert problems(jobs, result.jobs.assign(nodes=nodes)) == []
