"""Warnings of logs: a line each, once, on the error stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import succeed, table_file

COMMANDS = [
    ("simulate", "LOG"),
    ("compare", "LOG", "--scheduler", "easy,saf", "--processors", "8", "--processors", "9"),
    ("evaluate", "spf", "--workload", "LOG", "--jobs", "12", "--number", "2", "--budget", "0"),
]


BOTH = [
    "hpcgym: log: 4 % of the jobs were dropped: no run time",
    "hpcgym: log: 100 % of the requested times are the run times: schedulers know the future, and"
    " predictions are worth nothing",
]


def log(path: Path, *, exact: int, without: int, jobs: int = 100) -> str:
    """Write jobs, of which some request their run times, and others have no run time."""
    lines = ["; MaxProcs: 8"]
    for number in range(jobs):
        run = 0 if number < without else 60
        requested = 60 if number < exact + without else 120
        lines.append(
            f"{number + 1} {50 * number} 0 {run} 2 -1 -1 2 {requested} -1 1 1 1 1 1 1 -1 -1"
        )
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def said(command: tuple[str, ...], file: str) -> list[str]:
    """What a command says beside its result, which is still one."""
    words = [file if word == "LOG" else word for word in command]
    done = succeed(*words, "--format", "json")
    json.loads(done.stdout)
    return [line for line in done.stderr.splitlines() if line.startswith("hpcgym: log: ")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda words: words[0])
def test_each_doubt_is_a_line(command: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "log.swf"
    assert said(command, log(file, exact=90, without=3)) == []
    assert said(command, log(file, exact=96, without=4)) == BOTH
    (line,) = said(command, log(file, exact=0, without=50))
    assert line == "hpcgym: log: 50 % of the jobs were dropped: no run time"


def test_what_traces_show_says_is_the_same_and_not_said_twice(tmp_path: Path) -> None:
    file = log(tmp_path / "log.swf", exact=96, without=4)
    done = succeed("traces", "show", file, "--format", "json")
    warnings = json.loads(done.stdout)["warnings"]
    assert [f"hpcgym: log: {warning}" for warning in warnings[:2]] == said(COMMANDS[0], file)
    assert len(set(warnings)) == len(warnings)
    assert done.stderr == ""


def test_generators_do_what_they_were_told() -> None:
    done = succeed("simulate", "light-esp:processors=60", "--format", "csv")
    assert done.stderr == ""


def test_a_sweep_says_them_once_before_it_runs() -> None:
    log(Path("log.swf"), exact=96, without=4)
    weeks = '[[workloads]]\nworkload = "log.swf"\n'
    Path("two.toml").write_text(f'schedulers = ["easy", "saf"]\n{weeks}')
    done = succeed("sweep", "run", "two.toml", "--executor", "serial")
    assert [line for line in done.stderr.splitlines() if line.startswith("hpcgym: ")] == BOTH


def test_what_schedules_heed_is_not_told_as_ignored() -> None:
    day = "2024-03-01T12:"
    path = table_file(
        "jobs.txt", "JobID|JobIDRaw|State|Submit|Start|End|Timelimit|AllocCPUS|SubmitLine",
        f"7_1|8|COMPLETED|{day}00:00|{day}00:00|{day}10:00|00:10:00|4|sbatch a.sh",
        f"9|9|COMPLETED|{day}01:00|{day}10:00|{day}20:00|00:10:00|4|sbatch -d afterok:7 b.sh",
        f"7_[2-9%1]|7|PENDING|{day}00:00|Unknown|Unknown|00:10:00|0|sbatch a.sh",
    )  # fmt: skip
    words = ("simulate", path, "--processors", "8")
    throttle = "not used: how many tasks of an array may run at once"
    plain = succeed(*words)
    assert "1 job follows others" in plain.stderr
    assert throttle in plain.stdout
    heeded = succeed(*words, "--dependencies", "after", "--quota", path)
    assert "follow" not in heeded.stderr
    assert throttle not in heeded.stdout
    # a row of a comparison that does not heed them
    both = (
        "compare",
        *words[1:],
        "--scheduler",
        "easy",
        "--dependencies",
        "none",
        "--dependencies",
        "after",
    )
    assert "1 job follows others" in succeed(*both).stderr


DROPS = """ClusterName=t
NodeName=n[1-2] CPUs=4
NodeName=d1 CPUs=4 State=DOWN
PartitionName=main Nodes=n[1-2] Default=YES
PartitionName=old Nodes=d1
PartitionName=closed Nodes=n[1-2] State=DOWN
Gres=1
Nodes=2
SelectTypeParameters=CR_Nothing
SchedulerType=sched/mine
PriorityWeightAge=much
"""


@pytest.mark.parametrize("gone", [2, 4])
def test_jobs_that_the_machine_drops_are_told(tmp_path: Path, gone: int) -> None:
    """More than 3 % of 100 jobs, altogether, however much else is wrong."""
    (tmp_path / "slurm.conf").write_text(DROPS)
    rows = ["JobID|User|Partition|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes"]
    for number in range(1, 101):
        partition = ("old", "closed", "main")[min(number % 2 if number <= gone else 2, 2)]
        time = f"2024-03-01T00:{number % 60:02}:00"
        rows.append(f"{number}|u|{partition}|{time}|{time}|60|60|1|1")
    (tmp_path / "jobs.txt").write_text("\n".join(rows))
    machine = str(tmp_path / "slurm.conf")
    done = succeed(
        "simulate", str(tmp_path / "jobs.txt"), "--cluster", machine, "--scheduler", machine,
        "--errors", "skip",
    )  # fmt: skip
    line = "hpcgym: jobs.txt: 4 % of the jobs were dropped: "
    lines = [text for text in done.stderr.splitlines() if " were dropped: " in text]
    assert [text.startswith(line) for text in lines] == [True] * (gone == 4), done.stderr


def test_jobs_that_quotas_drop_are_told(tmp_path: Path) -> None:
    file = Path(log(tmp_path / "log.swf", exact=0, without=0))
    lines = file.read_text().splitlines()
    wide = [line.replace(" 60 2 -1 -1 2 ", " 60 4 -1 -1 4 ") for line in lines[:11]]  # ten jobs
    file.write_text("\n".join([*wide, *lines[11:]]))
    done = succeed("simulate", str(file), "--quota", "user:processors=3", "--errors", "skip")
    remark = "10 % of the jobs were dropped: asks for more than a quota lets run"
    assert f"hpcgym: log: {remark}" in done.stderr.splitlines()
