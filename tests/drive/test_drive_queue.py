"""What squeue tells, line by line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import hpcgym
from hpcgym.baselines import find_scheduler
from hpcgym.cli import app
from hpcgym.drive import giving_back, look
from hpcgym.drive.driving import LOWEST
from hpcgym.errors import HpcgymWarning
from hpcgym.slurm.queue import SlurmQueue, jobs_told, processors_of, queue_of, read_jobs
from hpcgym.units import NO_LIMIT_S
from hpcgym.workload.io.swf_header import names_of

TOLD = """\
12|4|1-02:00:30|1767225720|4294901755|0|bob|physics|normal|batch
3|2|30:00|1767225700|4294901758|-50|alice|(null)|(null)|batch
5|1|UNLIMITED|1767225720|17|100|[bold]eve|physics|long|gpu
6|1|10:00|1767225600|0|0|alice|physics|normal|gpu
"""


def read_queue(text: str) -> SlurmQueue:
    jobs, misread = read_jobs(text)
    assert misread == []
    return queue_of(jobs)


def test_jobs_in_order_of_submission() -> None:
    queue = read_queue(TOLD)
    assert queue.ids == ["3", "5", "12"]  # 6 is held
    assert queue.priority.tolist() == [4294901758, 17, 4294901755]
    jobs = queue.jobs
    assert jobs.submit_time.tolist() == [1767225700, 1767225720, 1767225720]
    assert jobs.requested_processors.tolist() == [2, 1, 4]
    assert jobs.requested_time.tolist() == [1800, NO_LIMIT_S, 93_630]
    assert jobs.nice.tolist() == [-50, 100, 0]
    users = names_of(jobs, "user_id")
    assert [users[number] for number in jobs.user_id.tolist()] == ["alice", "[bold]eve", "bob"]
    partitions = names_of(jobs, "partition")
    assert [partitions[number] for number in jobs.partition.tolist()] == ["batch", "gpu", "batch"]


def test_an_empty_queue() -> None:
    assert read_queue("").ids == []


def test_jobs_that_run_or_have_ended_where_they_are_asked_for() -> None:
    text = "".join(f"{line}|PD|N/A|N/A\n" for line in TOLD.splitlines())
    text += "9|8|20:00|1767225500|1|0|bob|physics|normal|gpu|R|1767225560|1767226760\n"
    text += "2|3|10:00|1767225000|1|0|bob|physics|normal|gpu|CD|1767225010|1767225100\n"
    text += "4|3|10:00|1767225000|1|0|eve|physics|normal|gpu|TO|1767225020|1767225620\n"
    text += "7|3|10:00|1767225000|1|0|eve|physics|normal|gpu|CA|N/A|1767225620\n"  # it never ran
    queue, alone = read_queue(text), read_queue(TOLD)
    assert (queue.ids, queue.priority.tolist()) == (alone.ids, alone.priority.tolist())
    assert queue.jobs.submit_time.tolist() == alone.jobs.submit_time.tolist()
    assert queue.jobs.first_submit_s == 1767225500
    running, past = queue.running, queue.past
    assert (running.submit_time + running.wait_time).tolist() == [1767225560]
    assert (running.requested_processors.tolist(), running.requested_time.tolist()) == ([8], [1200])
    assert running.user_id.tolist() == queue.jobs.user_id.tolist()[2:]  # bob
    assert past.job_number.tolist() == [2, 4]
    assert (past.wait_time.tolist(), past.run_time.tolist()) == ([10, 20], [90, 600])
    assert past.user_id.tolist()[0] == running.user_id[0]
    assert len(alone.running) == len(alone.past) == 0
    # the same as a log, which has also jobs that never ran
    log = past.with_columns(run_time=np.array([90, 0]))
    same = [read_jobs(text)[0][job]._replace(priority=0) for job in ("2", "4")]
    assert [*jobs_told(past).values()] == same
    assert [*jobs_told(log).values()] == same[:1]
    # what has ended says nothing of the size of the machine
    assert read_queue(text.replace("2|3|", "2|999|")).jobs.processors == 8


def test_nodes_that_are_down_have_no_processors() -> None:
    nodes = ("State=IDLE", "State=MIXED+DRAIN", "State=DOWN*", "State=FAIL")
    lines = [f"NodeName=n{k} CPUAlloc=0 CPUTot={2**k} X=y {state}" for k, state in enumerate(nodes)]
    assert processors_of("\n".join(lines)) == 3
    assert processors_of("") == 0


@pytest.mark.parametrize(
    "line",
    [
        "12|4|10:00",
        "12|4|soon|1767225720|5|0|a|b|c|d",
        "12|x|10:00|1767225720|5|0|a|b|c|d",
        "12|4|10:00|1767225720|5|a|b|c|d",
        "12|1_0|10:00|1767225720|5|0|a|b|c|d",
        "12|4|10:00|1767225720|5|1234567890123|a|b|c|d",
        "7" * 20,
    ],
)
def test_a_line_that_is_not_understood_costs_its_job_alone(line: str) -> None:
    first, rest = TOLD.split("\n", 1)
    jobs, misread = read_jobs(f"{first}\n{line}\n{rest}")
    assert misread == [line]
    assert jobs == read_jobs(TOLD)[0]


@pytest.fixture
def fake_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands of Slurm: squeue prints what stands in a file, the last of them."""
    printed = tmp_path / "told"
    printed.write_text(TOLD)
    for name, script in (("squeue", f"cat {printed}"), ("scontrol", f"cat >> {tmp_path}/said")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return printed


def test_such_a_job_is_told_of_once_and_the_others_are_driven(
    fake_slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_slurm.write_text(f"13|4|soon|1767225720|5|0|a|b|c|d\n{TOLD}")
    looks = iter([None, KeyboardInterrupt])

    def sleep(seconds: float) -> None:
        if (error := next(looks)) is not None:
            raise error

    monkeypatch.setattr(time, "sleep", sleep)
    log = tmp_path / "drive.jsonl"
    command = ["drive", "--policy", "laf", "--every", "1s", "--log", str(log)]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 130
    assert shown.stderr.count("squeue is not understood of 1 job, left alone: '13|4|soon|") == 1
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(row["waiting"], row["misread"]) for row in rows] == [(3, 1)] * 2
    assert "5" in rows[0]["set"]  # it comes first
    assert "13" not in (tmp_path / "said").read_text()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("", "holds no job that ran and ended"),
        ("1|bob|PENDING|2026-01-01T00:00:00|Unknown|Unknown|60|4", "no job that ran and ended"),
        ("1|bob|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:05|2026-01-01T00:00:10|60|4", ""),
    ],
)
def test_a_past_without_ended_jobs_teaches_nothing(
    fake_slurm: Path, tmp_path: Path, row: str, why: str
) -> None:
    past = tmp_path / "past.txt"
    past.write_text(f"JobIDRaw|User|State|Submit|Start|End|TimelimitRaw|NCPUS\n{row}\n")
    command = ["drive", "--policy", "aged", "--dry-run", "--past", str(past)]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "3 jobs wait" in shown.stdout
    assert ("nothing is learned from it" in shown.stderr) == bool(why)
    assert why in shown.stderr
    assert ("1 jobs, to learn how long" in shown.stderr) == (not why)
    command[command.index("aged")] = "saf"
    messages = CliRunner().invoke(app, command).stderr
    assert "the policy looks at no job that has ended" in messages
    assert "to learn" not in messages


def test_a_dry_run_writes_no_log(fake_slurm: Path, tmp_path: Path) -> None:
    command = ["drive", "--policy", "saf", "--dry-run", "--log", str(tmp_path / "drive.jsonl")]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 1
    assert "--log is of what is set, and --dry-run sets nothing" in shown.stderr


def test_a_dry_run_without_slurm_says_where_it_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the commands, and with commands that find no Slurm."""
    where = "takes a machine on which squeue lists the jobs of your Slurm"
    monkeypatch.setenv("PATH", str(tmp_path))
    shown = CliRunner().invoke(app, ["drive", "--policy", "saf", "--dry-run"]).stderr
    lacks = f"squeue is not installed: to drive Slurm, and to show what that would do, {where}"
    assert lacks in shown
    for name in ("squeue", "scontrol"):
        (tmp_path / name).write_text("#!/bin/sh\necho Unknown host >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    shown = CliRunner().invoke(app, ["drive", "--policy", "saf", "--dry-run"]).stderr
    assert f"squeue failed: Unknown host; to drive Slurm {where}" in shown


def test_orders_of_backfilling_alone_are_not_followed_without_a_word(fake_slurm: Path) -> None:
    for rules in (hpcgym.Scheduler(backfill_order="saf"), hpcgym.Scheduler(backfill_order="sjbf")):
        with pytest.warns(HpcgymWarning, match="backfill_order='s.*' is not followed"):
            asked = look(rules)
        assert [asked.queue.ids[row] for row in asked.order] == ["3", "5", "12"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("fcfs", "easy", "saf", "wfp3"):
            look(find_scheduler(name))


def test_jobs_are_given_back_whatever_else_squeue_says(tmp_path: Path) -> None:
    """Those that still wait by a priority that was set; with their nice."""
    squeue, scontrol, set_to = tmp_path / "squeue", tmp_path / "scontrol", LOWEST + 5
    squeue.write_text(f"#!/bin/sh\nprintf 'odd\\n7 {set_to}\\n8 17\\n9 {set_to} x\\n'\n")
    scontrol.write_text(f"#!/bin/sh\ncat > {tmp_path}/said\n")
    for script in (squeue, scontrol):
        script.chmod(0o755)
    command = [sys.executable, "-I", "-S", giving_back.__file__, squeue, scontrol, str(LOWEST)]
    subprocess.run(command, input="7 -3\n8 0\n9 0\n", text=True, check=True)
    assert (tmp_path / "said").read_text() == "release 7\nupdate jobid=7 nice=-3\n"
