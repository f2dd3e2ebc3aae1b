"""Policies that drive the Slurm that is installed, a private one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from slurm_here import needs_slurm

import hpcgym
from hpcgym.cli import app
from hpcgym.drive import driven, look
from hpcgym.drive.driving import LOWEST
from hpcgym.replay import facts_of, replay_on_slurm
from hpcgym.replay.configuration import SlurmNode, scheduling_of
from hpcgym.replay.private import PrivateSlurm, private_slurm
from hpcgym.slurm.programs import INSTALL

#: Of jobs that wait: processors and minutes; in order of submission, and so from job 2 on.
WAITING = ((4, 60), (2, 10), (1, 30), (3, 5), (1, 10))
SAF = ["6", "5", "3", "4", "2"]  # by areas 10, 15, 20, 30, 240
FCFS = ["2", "3", "4", "5", "6"]


def asks(processors: int) -> list[str]:
    return ["-n", str(processors), "--comment=0"]


@pytest.fixture
def slurm(monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateSlurm]:
    """A Slurm with a running job and five that wait, which commands of this process talk to."""
    with private_slurm(
        (SlurmNode(4),), scheduling_of(hpcgym.Scheduler(backfill="none")), 60
    ) as private:
        private.begin(0)
        private.advance(0)
        private.submit("first", asks(4), 36_000, 30_000)
        for processors, minutes in WAITING:
            private.submit("later", asks(processors), 60 * minutes, 60)
        private.advance(5)
        folder = next(
            Path(variable)
            for variable in private.run("/usr/bin/env").split()
            if "SLURM_CONF" in variable
        )
        monkeypatch.setenv("SLURM_CONF", str(folder).partition("=")[2])
        yield private


def priorities(slurm: PrivateSlurm) -> dict[str, int]:
    """The jobs that wait with their priorities, in the order in which Slurm has them."""
    lines = slurm.run("squeue", "-h", "-t", "PD", "-o", "%A %Q", "-S", "-p").splitlines()
    return {job: int(priority) for job, priority in map(str.split, lines)}


@needs_slurm
def test_the_order_is_set_and_given_back(slurm: PrivateSlurm) -> None:
    before = priorities(slurm)
    assert list(before) == FCFS
    dry = look(hpcgym.Scheduler("saf"))
    assert [dry.queue.ids[row] for row in dry.order] == SAF
    assert set(dry.changed) == set(SAF)
    assert priorities(slurm) == before
    with driven(hpcgym.Scheduler("saf")) as driver:
        driver.ask(int(time.time()))
        assert list(priorities(slurm)) == SAF
        assert driver.ask(int(time.time())).changed == {}
        slurm.submit("new", asks(1), 900, 60)  # an area of 15, behind 5, which came before
        assert driver.ask(int(time.time())).changed.keys() == {"7"}
        assert list(priorities(slurm)) == ["6", "5", "7", "3", "4", "2"]
        slurm.run("scontrol", "hold", "3")
    after = priorities(slurm)
    assert after.pop("3") == 0  # it was held meanwhile, and stays so
    assert list(after) == [job for job in (*FCFS, "7") if job != "3"]
    assert all(priority <= LOWEST for priority in after.values())


@needs_slurm
def test_a_policy_knows_what_runs(slurm: PrivateSlurm) -> None:
    """Four processors are taken for ten hours, by whoever waits; five jobs wait."""
    seen = "free == 0 and free_1h == 0 and queued == 5 and user_running == 1 and not fits"
    for policy, order in ((f"({seen}) * -area", SAF), (f"(not ({seen})) * -area", FCFS)):
        dry = slurm.driver(hpcgym.Scheduler(policy=policy)).ask(slurm.now_s, sets=False)
        assert [dry.queue.ids[row] for row in dry.order] == order


@needs_slurm
def test_jobs_keep_their_nice(slurm: PrivateSlurm) -> None:
    """Slurm forgets it when a priority is set; the policy goes by it, and it is given back."""
    for number, nice in (("3", 40), ("5", -60)):
        slurm.run("scontrol", "update", f"jobid={number}", f"nice={nice}")
    before = priorities(slurm)
    with driven(hpcgym.Scheduler("-nice")) as driver:
        for _ in range(2):  # at the second look Slurm knows no nice any more
            asked = driver.ask(int(time.time()))
            assert asked.queue.jobs.nice.tolist() == [0, 40, 0, -60, 0]
            assert list(priorities(slurm)) == ["5", "2", "4", "6", "3"]
    given = slurm.run("squeue", "-h", "-t", "PD", "-o", "%y", "-S", "i").split()
    assert given == ["0", "40", "0", "-60", "0"]
    assert list(priorities(slurm)) == list(before)


@needs_slurm
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whatever_ends_it_jobs_are_given_back(
    slurm: PrivateSlurm, by: signal.Signals, tmp_path: Path
) -> None:
    log = tmp_path / "drive.jsonl"
    command = [sys.executable, "-m", "hpcgym", "drive", "--policy", "saf", "--every", "1s"]
    process = subprocess.Popen([*command, "--log", str(log)], stderr=subprocess.PIPE)
    for _ in range(1200):
        if log.exists() and log.read_text():
            break
        time.sleep(0.1)
    assert list(priorities(slurm)) == SAF
    first = json.loads(log.read_text().splitlines()[0])
    assert (first["waiting"], list(first["set"])) == (5, SAF)
    process.send_signal(by)
    process.communicate(timeout=60)
    for _ in range(600):
        if not _guards() and list(priorities(slurm)) == FCFS:
            break
        time.sleep(0.1)
    assert list(priorities(slurm)) == FCFS
    assert all(priority <= LOWEST for priority in priorities(slurm).values())
    assert _guards() == []


def _guards() -> list[str]:
    """The processes that give jobs of this Slurm back."""
    numbers = []
    for process in Path("/proc").iterdir():
        try:
            command, told_it = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            continue
        if b"giving_back.py" in command and os.environ["SLURM_CONF"].encode() in told_it:
            numbers.append(process.name)
    return numbers


@needs_slurm
def test_a_dry_run_prints_the_order(slurm: PrivateSlurm) -> None:
    before = priorities(slurm)
    shown = CliRunner().invoke(app, ["drive", "--policy", "saf", "--dry-run", "--format", "json"])
    assert shown.exit_code == 0, shown.output
    rows = json.loads(shown.stdout)["queue"]
    assert [str(row["job_number"]) for row in rows] == SAF
    assert [row["place"] for row in rows] == [1, 2, 3, 4, 5]
    assert all(row["new"] > LOWEST for row in rows)
    table = CliRunner().invoke(app, ["drive", "--policy", "-area", "--dry-run"])
    assert "5 jobs wait; of 5 the priority would be set" in table.output
    assert priorities(slurm) == before


@needs_slurm
@pytest.mark.parametrize(
    ("backfill", "policy"),
    [
        ("until-shadow", "saf"),
        pytest.param("none", {"processors": -1.0, "wait": 0.01}, marks=pytest.mark.slow),
        pytest.param("until-shadow", "wfp3", marks=pytest.mark.slow),
    ],
)
def test_on_the_virtual_clock_slurm_does_what_the_simulator_does(
    backfill: str, policy: object
) -> None:
    rules = hpcgym.Scheduler(policy=policy, backfill=backfill, backfill_order=policy)  # type: ignore[arg-type]
    jobs = hpcgym.load_workload("lublin:jobs=40,processors=8,load=4,seed=4")
    facts = facts_of(replay_on_slurm(jobs, rules))
    assert facts["close_starts"] >= 0.99, facts
    assert abs(facts["mean_bsld_ratio"] - 1) < 0.01


def test_without_slurm_a_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    shown = CliRunner().invoke(app, ["drive", "--policy", "saf", "--dry-run"])
    assert shown.exit_code == 1
    assert shown.stderr.count("\n") == 1
    assert INSTALL in shown.stderr
