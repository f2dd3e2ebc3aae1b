"""Machines of files, held against what slurmctld itself makes of the same files."""

from __future__ import annotations

import random
import re
import subprocess
import time
import warnings
from getpass import getuser
from pathlib import Path

import pytest
from slurm_here import needs_slurm

from hpcgym.errors import HpcgymWarning
from hpcgym.machine.partitions import hosts
from hpcgym.machine.slurm import SlurmConf, read_slurm_conf
from hpcgym.names import CORE, MEMORY
from hpcgym.replay.native import find_programs, kept_ports

HEAD = """\
ClusterName=c
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
AuthType=auth/none
CredType=cred/none
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/pid
SlurmctldLogFile={folder}/log
ProctrackType=proctrack/linuxproc
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
include parts-%c.conf
NodeName=DEFAULT RealMemory=1000 \\
  Feature=usual   # of all below
NodeName=a[1-2,4]-[0-1] NodeAddr=127.0.0.[1-6] CPUs=2
NODENAME=b1 CPUs=2 Feature=x Features=y NodeAddr=127.0.0.1 Reason="it's \\# odd"
NodeName=b2 CPUs=2 State=FUTURE NodeAddr=127.0.0.1
NodeName=b3 CPUs=2 State=DRAINED NodeAddr=127.0.0.1
NodeName=b4 CPUs=2 State=DOWN NodeAddr=127.0.0.1
DownNodes=a1-0,a1-1 State=FAIL Reason="d\xe9j\xe0"
DownNodes=b4 State=IDLE
"""
PARTS = """\
NodeSet=named Nodes=a4-[0-1] Feature=y
NodeSet=x Feature=x
PartitionName=DEFAULT MaxTime=60 Nodes=ALL
PartitionName=all Default=YES
PartitionName=DEFAULT MaxTime=2-0 PriorityTier=3
PartitionName=blank Nodes="" State=DRAIN
PartitionName=future Nodes=b2 Default=yes Priority=7
PartitionName=named Nodes=named MaxNodes=3 MinNodes=2
PartitionName=sets Nodes="x,,b1 a2-1" AllowAccounts=ABC MaxTime=90:30
"""


def drawn_nodes(rng: random.Random, number: int) -> list[str]:
    """Lines of nodes whose numbers often do not go together, but that slurmctld takes."""
    keys: dict[str, tuple[object, ...]] = {
        "CPUs": (5, 8, 12, 16, 24, 32), "Boards": (0, 1, 2), "Sockets": (0, 1, 2, 4),
        "SocketsPerBoard": (1, 2), "CoresPerSocket": (0, 1, 2, 4, 6), "ThreadsPerCore": (1, 2, 4),
        "CoreSpecCount": (0, 1, 2, 3), "MemSpecLimit": (0, 100, 999, 1000, 2000),
        "RealMemory": (1, 500, 4000), "CpuSpecList": ("0", "0,1", "3-5", "1,7,99"),
    }  # fmt: skip
    lines = []
    for n in range(number):
        numbers = {key: rng.choice(values) for key, values in keys.items() if rng.random() < 0.45}
        text = " ".join(f"{key}={value}" for key, value in numbers.items())
        lines.append(f"NodeName=r{n} NodeAddr=127.0.0.1 {text}")
    return lines


def shown_by_slurm(path: Path, kind: str) -> dict[str, dict[str, str]]:
    """What a slurmctld of the file tells of each node or partition: name -> key -> value."""
    programs = find_programs()
    environment = {"SLURM_CONF": str(path), "PATH": "/usr/bin:/bin"}
    with (path.parent / "said").open("w") as said:
        command = [programs.slurmctld, "-D", "-c", "-f", str(path)]
        daemon = subprocess.Popen(command, stdout=said, stderr=said, env=environment)
    try:
        for _ in range(300):
            ask = [programs.scontrol, "show", "-o", kind]
            shown = subprocess.run(ask, capture_output=True, env=environment)
            shown_text = shown.stdout.decode("latin-1")
            if shown.returncode == 0 and f"{kind.capitalize()}Name=" in shown_text:
                break
            assert daemon.poll() is None, (path.parent / "log").read_text("latin-1")[-2000:]
            time.sleep(0.1)
        else:
            pytest.fail((path.parent / "log").read_text("latin-1")[-2000:])
    finally:
        daemon.terminate()
        daemon.wait(30)
    rows = [dict(re.findall(r"(\w+)=(\S*)", line)) for line in shown_text.splitlines()]
    return {row[f"{kind.capitalize()}Name"]: row for row in rows if row}


def written(folder: Path, port: int, lines: list[str]) -> Path:
    (folder / "state").mkdir(exist_ok=True)
    (folder / "parts-c.conf").write_text(PARTS)
    path = folder / "slurm.conf"
    text = HEAD.format(port=port, folder=folder, user=getuser()) + "\n".join([*lines, ""])
    path.write_bytes(text.encode("latin-1"))
    return path


def read(path: Path) -> SlurmConf:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HpcgymWarning)
        return read_slurm_conf(path)


@needs_slurm
@pytest.mark.slow
def test_nodes_are_those_of_slurmctld(tmp_path: Path) -> None:
    with kept_ports(1) as port:
        path = written(tmp_path, port, drawn_nodes(random.Random(5), 300))
        shown = shown_by_slurm(path, "node")
    conf = read(path)
    rows = dict(zip(conf.node_names, conf.cluster.capacity, strict=True))
    resources = conf.cluster.resources
    usable = {
        name: (int(row["CPUEfctv"]), int(row["RealMemory"]) - int(row.get("MemSpecLimit", 0)))
        for name, row in shown.items()
        if not {"DRAIN", "DOWN", "FAIL"} & {*row["State"].strip("*").split("+")}
        and int(row["CPUEfctv"]) > 0
    }
    assert len(usable) > 200
    assert usable == {
        name: (row[resources.index(CORE)], row[resources.index(MEMORY)])
        for name, row in rows.items()
    }


@needs_slurm
@pytest.mark.slow
def test_partitions_are_those_of_slurmctld(tmp_path: Path) -> None:
    with kept_ports(1) as port:
        path = written(tmp_path, port, [])
        shown = shown_by_slurm(path, "partition")
    conf = read(path)
    assert [partition.name for partition in conf.cluster.partitions] == [*shown]
    for partition in conf.cluster.partitions:
        row = shown[partition.name]
        nodes = [] if row["Nodes"] == "(null)" else hosts(row["Nodes"], "")
        here = {conf.node_names[node] for node in partition.nodes}
        assert here == {*nodes} & {*conf.node_names}, partition.name
        assert (row["Default"] == "YES") == partition.default
        assert row["State"].casefold() == partition.state
        tier, factor = int(row["PriorityTier"]), int(row["PriorityJobFactor"])
        assert (tier, factor) == (partition.priority_tier, partition.priority_factor)
        assert row["MinNodes"] == str(partition.min_nodes)
        assert row["MaxNodes"] == (
            "UNLIMITED" if partition.max_nodes is None else str(partition.max_nodes)
        )
        accounts = row["AllowAccounts"]
        assert partition.allow_accounts == (() if accounts == "ALL" else tuple(accounts.split(",")))
        days, clock = row["MaxTime"].split("-") if "-" in row["MaxTime"] else ("0", row["MaxTime"])
        h, m, s = map(int, clock.split(":"))
        assert partition.max_time_s == ((24 * int(days) + h) * 60 + m) * 60 + s
