"""States of a Slurm that runs, of programs that answer as one did."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from fake_slurm import NOW, SINFO, SQUEUE, ZERO, calls, fake_slurm

import hpcgym
from hpcgym._engine import FOREVER
from hpcgym.errors import HpcgymError, HpcgymWarning, WorkloadWarning
from hpcgym.forecasting.state import SlurmStates
from hpcgym.slurm.looks import parts_of
from hpcgym.slurm.programs import SlurmPrograms
from hpcgym.workload.io.swf_header import names_of
from hpcgym.workload.model import Workload

RULES = "easy:backfill=slurm:bf_window=10080"


def test_a_state_of_slurm_has_what_it_tells(tmp_path: Path) -> None:
    """Worked out by hand from what the programs print."""
    state = hpcgym.snapshot(slurm=fake_slurm(tmp_path))
    assert state.time == NOW
    jobs = state.jobs
    assert jobs.job_number.tolist() == [1, 2, 3, 5]  # held ones and tasks to come are left out
    assert state.start.tolist() == [ZERO, -1, -1, ZERO]
    assert jobs.requested_processors.tolist() == [20, 8, 24, 4]
    assert set(jobs.requested_time.tolist()) == {3600}
    assert set(jobs.run_time.tolist()) == {-1}
    # tasks of two cores; eight tasks on one node; four tasks a node
    assert jobs.units is not None
    assert jobs.units.tolist() == [10, 1, 12, 2]
    assert jobs.columns["units_per_node"].tolist() == [-1, 1, 4, -1]
    names = names_of(jobs, "user_id")
    assert [names[user] for user in jobs.user_id.tolist()] == ["bob", "bob", "eve", "eve"]
    assert state.past.job_number.tolist() == [6]
    assert (state.past.wait_time.tolist(), state.past.run_time.tolist()) == ([100], [600])
    ongoing = jobs.initial.ongoing  # type: ignore[union-attr]
    assert ongoing is not None
    cells = ongoing.cells
    assert cells is not None
    assert cells.first.tolist() == [0, 3, 3, 3, 4]
    assert (cells.node.tolist(), cells.units.tolist()) == ([0, 1, 2, 2], [4, 4, 2, 2])
    assert ongoing.looks == (NOW + 20, NOW + 20, 1, 0, FOREVER)
    assert state.cluster.nodes == 4
    assert [part.nodes for part in state.cluster.partitions] == [(0, 1), (2, 3), (0, 1, 2, 3)]
    assert state.look is not None
    assert {seen.label: seen.planned - ZERO for seen in state.look.jobs if seen.planned > 0} == {
        "2": 3600,
        "3": 3600,
    }


def test_a_pass_comes_in_step_with_the_last_one(tmp_path: Path) -> None:
    """With run times of an hour, all nodes are free in the second after; it is seen at a pass."""
    state = hpcgym.snapshot(slurm=fake_slurm(tmp_path))
    forecast = hpcgym.forecast(state, RULES, futures=40)
    starts = np.concatenate([forecast.of(job).starts for job in (2, 3)])
    assert np.isfinite(starts).all()
    late = (starts - (NOW + 20)) % 30
    ends = starts[late > 0]  # at others a job ended in that second
    assert len(ends) < len(starts)
    blind = hpcgym.forecast(state, "easy", futures=4)
    assert np.isfinite(blind.starts).all()


def test_the_past_is_that_of_a_log_and_of_what_slurm_remembers(tmp_path: Path) -> None:
    past = Workload.from_columns(
        {"submit_time": [0, 5], "wait_time": [0, 1], "run_time": [50, 60], "user_id": [1, 2],
         "requested_time": [60, 60], "requested_processors": [1, 1], "job_number": [1, 2]},
        processors=4, header={"UnixStartTime": [str(ZERO - 5000)], "User": ["1 eve", "2 zoe"]},
    )  # fmt: skip
    states = SlurmStates(SlurmPrograms(fake_slurm(tmp_path)), past=past)
    state = states.now()
    assert state.past.submit_time.tolist() == [ZERO - 5000, ZERO - 4995, ZERO - 900]
    assert np.isfinite(hpcgym.forecast(state, RULES, futures=2).starts).all()
    of = {name: number for number, name in names_of(state.jobs, "user_id").items()}
    assert state.past.user_id.tolist() == [of["eve"], of["zoe"], of["bob"]]
    # jobs that have ended are remembered once Slurm has forgotten them
    fake_slurm(
        tmp_path, squeue="".join(line for line in SQUEUE.splitlines(True) if "|CD|" not in line)
    )
    assert states.now().past.job_number.tolist() == state.past.job_number.tolist()


def test_of_a_long_past_the_last_ends_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first of five was submitted first and ended last; Slurm remembers a sixth."""
    monkeypatch.setattr("hpcgym.slurm.queue.MOST_ENDED", 3)
    past = Workload.from_columns(
        {"submit_time": [0, 1, 2, 3, 4], "wait_time": [0] * 5, "run_time": [90, 10, 10, 50, 10],
         "requested_time": [99] * 5, "requested_processors": [1] * 5, "job_number": range(11, 16)},
        processors=4, header={"UnixStartTime": [str(ZERO - 5000)]},
    )  # fmt: skip
    states = SlurmStates(SlurmPrograms(fake_slurm(tmp_path)), past=past)
    with pytest.warns(WorkloadWarning, match="^3 jobs of the past are left out, which ended first"):
        state = states.now()
    assert state.past.job_number.tolist() == [11, 14, 6]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # said once
        assert states.now().past.job_number.tolist() == [11, 14, 6]


def test_nodes_that_are_closed_and_empty_are_not_there(tmp_path: Path) -> None:
    sinfo = SINFO.replace("n4|idle|0/8/0/8", "n4|down*|0/0/8/8").replace("n3|mix", "n3|drng")
    state = hpcgym.snapshot(slurm=fake_slurm(tmp_path, sinfo=sinfo))
    assert state.cluster.nodes == 3  # on the third one jobs still run
    assert [part.nodes for part in state.cluster.partitions] == [(0, 1), (2,), (0, 1, 2)]
    assert state.jobs.job_number.tolist() == [1, 2, 3, 5]


def test_nodes_close_and_come_back_between_looks(tmp_path: Path) -> None:
    """The configuration is read once, sinfo at each look."""
    down = SINFO.replace("n4|idle|0/8/0/8", "n4|down*|0/0/8/8")
    states = SlurmStates(SlurmPrograms(fake_slurm(tmp_path, sinfo=down)))
    assert states.now().cluster.nodes == 3
    fake_slurm(tmp_path)
    assert states.now().cluster.nodes == states.machine.cluster.nodes == 4
    fake_slurm(tmp_path, sinfo=SINFO.replace("n4|idle", "n4|drain"))
    state = states.now()
    assert [part.nodes for part in state.cluster.partitions] == [(0, 1), (2,), (0, 1, 2)]
    assert calls(tmp_path).count("scontrol show config") == 1
    assert np.isfinite(hpcgym.forecast(state, RULES, futures=2).starts).all()


def test_a_job_that_the_machine_cannot_hold_costs_itself_alone(tmp_path: Path) -> None:
    row = f"8|8|99|1:00:00|{ZERO}|9|0|bob|(null)|(null)|all|PD|N/A|N/A||Resources\n"
    elsewhere = f"9|9|1|1:00:00|{ZERO}|9|0|bob|(null)|(null)|other|PD|N/A|N/A||Resources\n"
    state = hpcgym.snapshot(slurm=fake_slurm(tmp_path, squeue=SQUEUE + row + elsewhere))
    assert state.jobs.job_number.tolist() == [1, 2, 3, 5]
    assert [*state.jobs.cleaning.values()] == [2]
    assert np.isfinite(hpcgym.forecast(state, RULES, futures=2).starts).all()


def test_nothing_is_ever_written_to_slurm(tmp_path: Path) -> None:
    folder = fake_slurm(tmp_path)
    hpcgym.forecast(hpcgym.snapshot(slurm=folder), RULES, futures=2).table()
    asked = calls(folder)
    assert {call.split()[0] for call in asked} == {"squeue", "scontrol", "sinfo", "sdiag"}
    assert {call for call in asked if call.startswith("sc")} == {
        "scontrol show config",
        "scontrol -o -d show job",
    }
    assert {call for call in asked if call.startswith("sd")} == {"sdiag "}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"squeue": "#! echo Unable to contact slurmctld >&2; exit 1"}, "squeue failed: Unable"),
        ({"sdiag": "#! exit 1"}, "sdiag failed: it says nothing"),
        ({"squeue": "#! sleep 30"}, "squeue does not answer within 1 s: Slurm is down, or very"),
        ({"squeue": "slurm is being upgraded\n"}, "squeue is not understood: 'slurm is being upg"),
        ({"scontrol_show_config": "SLURM_CONF = /no/where\n"}, "/no/where, cannot be read here"),
        ({"sinfo": SINFO.replace("alloc", "down").replace("mix", "down").replace("idle", "down")
          .replace("8/0/0/8", "0/0/8/8")}, "all nodes of this Slurm are down or drained"),
    ],
)  # fmt: skip
def test_a_slurm_that_is_down_slow_or_odd_is_one_line(
    tmp_path: Path, said: dict[str, str], why: str
) -> None:
    programs = SlurmPrograms(fake_slurm(tmp_path, **said), limit_s=1)
    with pytest.raises(HpcgymError, match=why) as caught:
        hpcgym.snapshot(slurm=programs)
    assert "\n" not in str(caught.value)


def test_without_slurm_a_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(HpcgymError, match="scontrol is not installed: to look at Slurm takes"):
        hpcgym.snapshot(slurm=tmp_path)


def test_lines_that_are_not_understood_cost_their_jobs_alone(tmp_path: Path) -> None:
    folder = fake_slurm(tmp_path, squeue=f"9|9|x|odd\n{SQUEUE}")
    with pytest.warns(HpcgymWarning, match="not understood of 1 job, left out: '9|9|x|odd'"):
        state = hpcgym.snapshot(slurm=folder)
    assert len(state.jobs) == 4


def test_a_plain_time_is_told_where_sdiag_tells_none(tmp_path: Path) -> None:
    state = hpcgym.snapshot(slurm=fake_slurm(tmp_path, sdiag="nothing of a clock\n"))
    assert abs(state.time - time.time()) < 600
    assert state.jobs.initial.ongoing.looks is None  # type: ignore[union-attr]
    assert np.isfinite(hpcgym.forecast(state, RULES, futures=2).starts).all()


def test_parts_of_jobs_that_are_odd_are_processors() -> None:
    """A whole node for a task, and units that do not divide what a job has of a node."""
    line = "JobId={} NumNodes={} NumCPUs={} NumTasks={} CPUs/Task={} NtasksPerN:B:S:C=0:0:*:*{}"
    text = "\n".join([
        line.format(1, 1, 8, 1, 1, "   Nodes=n1 CPU_IDs=0-7 Mem=0 GRES="),
        line.format(2, 2, 8, 2, 4, "   Nodes=n1 CPU_IDs=0-4 Mem=0   Nodes=n2 CPU_IDs=0-2 Mem=0"),
        line.format(3, "2-2", 8, 8, 1, ""),
        "JobId=4 odd",
    ])  # fmt: skip
    parts = parts_of(text)
    assert {job: part[:2] for job, part in parts.items()} == {1: (8, -1), 2: (8, -1), 3: (2, 1)}
    assert parts[2].cells == {"n1": 5, "n2": 3}
