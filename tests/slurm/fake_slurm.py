"""Programs that answer as a Slurm did, and write down how they were called."""

from __future__ import annotations

import shlex
from pathlib import Path

#: A Slurm 22.05.8 with four nodes of eight cores in two partitions, 100 s after four jobs were
#: submitted together: two run, one of them a task of an array.
ZERO = 1_767_225_780
NOW = ZERO + 100
SQUEUE = f"""\
2|2|8|1:00:00|{ZERO}|4294901758|0|bob|(null)|(null)|a|PD|{ZERO + 3600}|{ZERO + 7200}||Resources
4_2|4|4|1:00:00|{ZERO}|4294901756|0|eve|(null)|(null)|b|PD|N/A|N/A||JobArrayTaskLimit
4_3|4|4|1:00:00|{ZERO}|4294901756|0|eve|(null)|(null)|b|PD|N/A|N/A||JobArrayTaskLimit
4_1|5|4|1:00:00|{ZERO}|4294901756|0|eve|(null)|(null)|b|R|{ZERO}|{ZERO + 3600}|n3|None
3|3|24|1:00:00|{ZERO}|4294901757|0|eve|(null)|(null)|all|PD|{ZERO + 3600}|{ZERO + 7200}||\
ReqNodeNotAvail, UnavailableNodes:n[1-2]
1|1|20|1:00:00|{ZERO}|4294901759|0|bob|(null)|(null)|all|R|{ZERO}|{ZERO + 3600}|n[1-3]|None
6|6|1|1:00:00|{ZERO - 900}|4294901760|0|bob|(null)|(null)|all|CD|{ZERO - 800}|{ZERO - 200}|n1|None
7|7|1|1:00:00|{ZERO}|0|0|bob|(null)|(null)|all|PD|N/A|N/A||JobHeldUser
"""
_REQ, _MORE = "ReqB:S:C:T=0:0:*:*", "Socks/Node=* NtasksPerN:B:S:C="
SCONTROL_JOB = f"""\
JobId=1 JobName=a NumNodes=3 NumCPUs=20 NumTasks=10 CPUs/Task=2 {_REQ} {_MORE}0:0:*:* \
CoreSpec=* JOB_GRES=(null)   Nodes=n[1-2] CPU_IDs=0-7 Mem=0 GRES=   Nodes=n3 CPU_IDs=0-3 Mem=0
JobId=2 JobName=b NumNodes=1-1 NumCPUs=8 NumTasks=8 CPUs/Task=1 {_REQ} {_MORE}0:0:*:* CoreSpec=*
JobId=3 JobName=c NumNodes=3 NumCPUs=24 NumTasks=12 CPUs/Task=2 {_REQ} {_MORE}4:0:*:* CoreSpec=*
JobId=5 ArrayJobId=4 ArrayTaskId=1 JobName=d NumNodes=1 NumCPUs=4 NumTasks=2 CPUs/Task=2 {_REQ} \
{_MORE}0:0:*:* CoreSpec=* JOB_GRES=(null)   Nodes=n3 CPU_IDs=4-5,7,6 Mem=0 GRES= MinCPUsNode=2
JobId=4 ArrayJobId=4 ArrayTaskId=2-3%1 JobName=d NumNodes=1 NumCPUs=4 NumTasks=2 CPUs/Task=2 {_REQ}
"""
SDIAG = f"""\
*******************************************************
sdiag output at Thu Jan 01 00:04:40 2026 ({NOW})
Data since      Thu Jan 01 00:00:01 2026 (1767225601)
*******************************************************
Main schedule statistics (microseconds):
\tLast cycle:   0

Backfilling stats
\tTotal cycles: 4
\tLast cycle when: Thu Jan 01 00:04:30 2026 ({NOW - 10})
\tLast cycle: 0
"""
SINFO = "".join(
    f"n{k}|{state}|{cores}/{8 - cores}/0/8\n"
    for k, state, cores in ((1, "alloc", 8), (2, "alloc", 8), (3, "mix", 8), (4, "idle", 0))
)
CONF = """\
ClusterName=four
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=30,bf_window=10080
PriorityType=priority/basic
NodeName=n[1-4] CPUs=8 State=UNKNOWN
PartitionName=a Nodes=n[1-2]
PartitionName=b Nodes=n[3-4]
PartitionName=all Nodes=ALL Default=YES
"""


def fake_slurm(folder: Path, **said: str) -> Path:
    """A folder with programs of a Slurm.

    Parameters
    ----------
    said : program -> what it prints in place of the above; or, behind ``#!``, what it does.
    """
    folder.mkdir(exist_ok=True)
    (folder / "slurm.conf").write_text(CONF)
    config = "Configuration data as of now\nSchedulerParameters     = bf_interval=30\n"
    config += f"SLURM_CONF              = {folder}/slurm.conf\n"
    usual = {"squeue": SQUEUE, "sdiag": SDIAG, "sinfo": SINFO}
    usual |= {"scontrol show config": config, "scontrol -o -d show job": SCONTROL_JOB}
    usual |= {name.replace("_", " "): text for name, text in said.items()}
    for program in ("squeue", "sdiag", "sinfo", "scontrol"):
        lines = ["#!/bin/sh"]
        lines.append(f'printf "%s\\n" "{program} $*" >> {shlex.quote(str(folder / "calls"))}')
        for k, (command, text) in enumerate(usual.items()):
            name, *words = command.split()
            if name != program:
                continue
            file = folder / f"said-{program}-{k}"
            file.write_text(text)
            answer = text[2:] if text.startswith("#!") else f"cat {shlex.quote(str(file))}"
            test = f'[ "$*" = {shlex.quote(" ".join(words))} ] && ' if words else ""
            lines.append(f"{test}{{ {answer}; exit; }}")
        (folder / program).write_text("\n".join([*lines, "exit 3", ""]))
        (folder / program).chmod(0o755)
    return folder


def calls(folder: Path) -> list[str]:
    """How the programs of a folder were called."""
    file = folder / "calls"
    return file.read_text().splitlines() if file.exists() else []


def many_jobs(n: int) -> str:
    """What squeue says of a machine of ``four`` with a full node and so many waiting jobs."""
    first = SQUEUE.splitlines()[5]
    rows = [
        f"{k}|{k}|{1 + k % 16}|{1 + k % 9}:00:00|{ZERO - 5000 + k}|9|0|user{k % 40}|(null)|(null)"
        f"|all|PD|N/A|N/A||Priority"
        for k in range(10, 10 + n)
    ]
    return "\n".join([first, *rows, ""])
