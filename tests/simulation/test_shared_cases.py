"""Small logs of sites, simulated on their machine and by their rules; see ../shared/cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from click.testing import CliRunner

import hpcgym
from hpcgym.cli import app
from hpcgym.workload import Workload

CASES = Path(__file__).parents[3] / "shared" / "cases"

pytestmark = [
    pytest.mark.skipif(not CASES.is_dir(), reason=f"{CASES} is not there"),
    pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning"),
]

#: case, log, machine and rules -> the start of each job [s from the first submission].
STARTS: dict[tuple[str, str, str, str], list[int]] = {
    ("allocgres-old-slurm", "jobs.txt", "slurm.conf", "{}/slurm.conf"): [0, 1, 3601, 3],
    ("cons-tres-default-memory", "jobs.txt", "slurm.conf", "{}/slurm.conf"): [0, 3600],
    ("constraints-features", "jobs.txt", "slurm.conf", "{}/slurm.conf"): [0, 3600],
    ("fairshare-billing", "jobs.txt", "slurm.conf", "{}/slurm.conf"): [0, 1, 4002, 11202, 7602],
    ("gpu-type-given", "jobs.txt", "bought.conf", "{}/today.conf"): [0, 1],
    ("gpu-type-given", "jobs-with-reqtres.txt", "bought.conf", "{}/today.conf"): [0, 1],
    ("nnodes-ignored", "jobs.txt", "slurm.conf", "{}/slurm.conf"): [0, 0, 100],
    ("qos-gpu-limit", "jobs.txt", "slurm.conf", "{0}/slurm.conf:qos={0}/qos.txt"): [
        *(0, 1, 2, 3, 3600, 3601)
    ],
    ("unlimited-limit", "jobs.txt", "slurm.conf", "{}/slurm.conf"): [0, 1200, 120],
}


@pytest.mark.parametrize("case", STARTS, ids=lambda case: case[0])
def test_starts_are_those_of_the_site(case: tuple[str, str, str, str]) -> None:
    name, log, machine, rules = case
    folder = CASES / name
    jobs = hpcgym.load_workload(folder / log, cluster=folder / machine)
    result = hpcgym.simulate(jobs, rules.format(folder), cluster=folder / machine)
    assert result.start.tolist() == STARTS[case]


def test_a_machine_of_a_log_has_its_gpus() -> None:
    made = CliRunner().invoke(app, ["machines", "--of", f"{CASES}/machines-of-gpu-log/jobs.txt"])
    assert "gpu = 4" in made.stdout


def test_a_what_if_is_not_held_against_the_past() -> None:
    folder = CASES / "compare-warns-of-the-what-if"
    machines = [f"--cluster={folder}/slurm-{nodes}.conf" for nodes in (4, 6)]
    rules = f"--scheduler={folder}/slurm-4.conf"
    shown = CliRunner().invoke(app, ["compare", f"{folder}/jobs.txt", *machines, rules])
    assert shown.exit_code == 0
    assert "calibrate" not in shown.output


# --- What more nodes and limits of GPUs change ----------------------------------------------------

WHAT_IF = CASES / "whatif-gpu"
RULES_OF_SLURM = "bf_max_job_test=2000,default_queue_depth=2000,bf_window=4320"
#: What makes Slurm EASY: one reservation, exact ends, a pass at each event.
AS_EASY = ",bf_job_part_count_reserve=1,bf_window_linear=1,bf_interval=1"

#: A quota, what the other simulator calls it, and nodes.
Row = tuple[str, dict[str, int], int]
ROWS: list[Row] = [
    ("", {}, 4),
    ("", {}, 6),
    ("user:gpu=4", {"gpus": 4}, 4),
    ("user:gpu=4", {"gpus": 4}, 6),
    ("user:gpu=8", {"gpus": 8}, 4),
    ("user:gpu=12", {"gpus": 12}, 4),
    ("user:jobs=4", {"maxjobs": 4}, 4),
]


def other_simulator(source: str) -> Callable[..., np.ndarray]:
    """Return the starts by the other simulator, of its own jobs, from the first submission on."""
    other = ModuleType("other")
    exec(source, vars(other))  # the file is called as a module of Python itself is
    jobs = other.jobs()

    def starts(**rules: int) -> np.ndarray:
        start = other.sim(jobs, **rules)
        return np.array([start[job["id"]] - jobs[0]["t"] for job in jobs])

    return starts


@pytest.fixture(scope="module")
def source() -> str:
    return (WHAT_IF / "site.py").read_text()


@pytest.fixture(scope="module")
def jobs() -> Workload:
    return hpcgym.load_workload(WHAT_IF / "jobs-nolimit.txt")


def start(jobs: Workload, rules: str, quota: str, nodes: int) -> np.ndarray:
    """Return the simulated starts."""
    limits = {"quota": quota} if quota else {}
    return hpcgym.simulate(jobs, rules, cluster=WHAT_IF / f"slurm-{nodes}.conf", **limits).start


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_other_simulator_is_easy_whose_extra_gpus_are_of_other_nodes(
    jobs: Workload, source: str, row: Row
) -> None:
    """Where jobs may use what the head leaves of its node, all starts are the same.

    The other simulator closes the whole node; that matters in one of the rows.
    """
    quota, rules, nodes = row
    closed = "or now+j['lim']<=res[1])"
    left = "sum(g for _, m, e, g in running if m == n and e <= res[1]) + free[n] - res[2]"
    assert source.count(closed) == source.count("best=(n,t)") == 1
    changed = source.replace(closed, f"{closed[:-1]} or {left} >= j['g'])")
    changed = changed.replace("best=(n,t)", "best=(n,t,j['g'])")
    by_easy = start(jobs, "easy", quota, nodes)
    assert by_easy.tolist() == other_simulator(changed)(nodes=nodes, **rules).tolist()
    same = by_easy == other_simulator(source)(nodes=nodes, **rules)
    assert same.all() or ((quota, nodes) == ("user:gpu=4", 4) and same.mean() > 0.93)


def test_slurm_parts_by_its_reservations_and_groups_of_ends(jobs: Workload, source: str) -> None:
    """Six nodes without limits: 558 s, and 514 s by the other simulator, which has neither."""
    truth = other_simulator(source)(nodes=6)
    alike = start(jobs, f"easy:backfill=slurm:{RULES_OF_SLURM}{AS_EASY}".replace(",", "+"), "", 6)
    assert alike.tolist() == truth.tolist()
    usual = start(jobs, str(WHAT_IF / "slurm-6.conf"), "", 6)
    assert (usual - truth).mean() == pytest.approx(44.0, abs=0.1)
    nearly = f"easy:backfill=slurm:{RULES_OF_SLURM}{AS_EASY.removesuffix(',bf_interval=1')}"
    assert (start(jobs, nearly.replace(",", "+"), "", 6) - truth).mean() < 1.1
