"""What squeue tells, line by line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hpcgym.drive import giving_back
from hpcgym.drive.driving import (
    LOWEST,
    NO_LIMIT_S,
    Queue,
    jobs_told,
    processors_of,
    queue_of,
    read_jobs,
)
from hpcgym.errors import HpcgymError
from hpcgym.workload.io.swf_header import names_of

TOLD = """\
12|4|1-02:00:30|1767225720|4294901755|0|bob|physics|normal|batch
3|2|30:00|1767225700|4294901758|-50|alice|(null)|(null)|batch
5|1|UNLIMITED|1767225720|17|100|[bold]eve|physics|long|gpu
6|1|10:00|1767225600|0|0|alice|physics|normal|gpu
"""


def read_queue(text: str) -> Queue:
    return queue_of(read_jobs(text))


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
    told = "".join(f"{line}|PD|N/A|N/A\n" for line in TOLD.splitlines())
    told += "9|8|20:00|1767225500|1|0|bob|physics|normal|gpu|R|1767225560|1767226760\n"
    told += "2|3|10:00|1767225000|1|0|bob|physics|normal|gpu|CD|1767225010|1767225100\n"
    told += "4|3|10:00|1767225000|1|0|eve|physics|normal|gpu|TO|1767225020|1767225620\n"
    told += "7|3|10:00|1767225000|1|0|eve|physics|normal|gpu|CA|N/A|1767225620\n"  # it never ran
    queue, alone = read_queue(told), read_queue(TOLD)
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
    same = [read_jobs(told)[job]._replace(priority=0) for job in ("2", "4")]
    assert [*jobs_told(past).values()] == same
    assert [*jobs_told(log).values()] == same[:1]
    # what has ended says nothing of the size of the machine
    assert queue_of(read_jobs(told.replace("2|3|", "2|999|"))).jobs.processors == 8


def test_nodes_that_are_down_have_no_processors() -> None:
    nodes = ("State=IDLE", "State=MIXED+DRAIN", "State=DOWN*", "State=FAIL")
    lines = [f"NodeName=n{k} CPUAlloc=0 CPUTot={2**k} X=y {one}" for k, one in enumerate(nodes)]
    assert processors_of("\n".join(lines)) == 3
    assert processors_of("") == 0


@pytest.mark.parametrize(
    "line",
    [
        "12|4|10:00",
        "12|4|soon|1767225720|5|0|a|b|c|d",
        "12|x|10:00|1767225720|5|0|a|b|c|d",
        "12|4|10:00|1767225720|5|a|b|c|d",
        "7" * 20,
    ],
)
def test_what_is_not_understood(line: str) -> None:
    with pytest.raises(HpcgymError, match="squeue told a job that is not understood"):
        read_jobs(line)


def test_jobs_are_given_back_whatever_else_squeue_says(tmp_path: Path) -> None:
    """Those that still wait by a priority that was set; with their nice."""
    squeue, scontrol, set_to = tmp_path / "squeue", tmp_path / "scontrol", LOWEST + 5
    squeue.write_text(f"#!/bin/sh\nprintf 'odd\\n7 {set_to}\\n8 17\\n9 {set_to} x\\n'\n")
    scontrol.write_text(f"#!/bin/sh\ncat > {tmp_path}/said\n")
    for one in (squeue, scontrol):
        one.chmod(0o755)
    command = [sys.executable, "-I", "-S", giving_back.__file__, squeue, scontrol, str(LOWEST)]
    subprocess.run(command, input="7 -3\n8 0\n9 0\n", text=True, check=True)
    assert (tmp_path / "said").read_text() == "release 7\nupdate jobid=7 nice=-3\n"
