"""The batch script of docs/tuning.md on the Slurm that is installed, killed and submitted again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from slurm_node import real_slurm, said

from hpcgym.errors import HpcgymError
from hpcgym.replay.native import find_programs
from hpcgym.study import read_results
from hpcgym.study.sweep.run import read_manifest

PAGE = Path(__file__).parents[3] / "docs" / "tuning.md"
#: Where scripts/test installs Intel MPI, whose ranks srun starts with Slurm's own plugin.
INTEL = Path(os.environ.get("HPCGYM_INTEL_MPI", Path(sys.prefix) / "intel-mpi"))
LIBRARY = INTEL / "lib" / "libmpi.so.12"
SIMULATIONS = 24
EXPERIMENT = f"""
schedulers = [{{ name = "slow", policy = "slow_rule:score" }}]
seeds = {[*range(SIMULATIONS)]}
metrics = ["jobs", "mean_bsld"]

[[workloads]]
workload = "lublin:jobs=100,processors=16,load=0.9,seed={{seed}}"
"""
#: While there is a file "slow" each simulation takes some tenths of a second, for one to kill it.
RULE = """
import time
from pathlib import Path

SLOW = Path("slow").exists()

def score(view):
    time.sleep(0.003 * SLOW)
    return -view.requested
"""
WAIT_S = 240


def why_not() -> str:
    """Why the script cannot be run; empty if it can."""
    pytest.importorskip("mpi4py", reason="needs mpi4py: the extra distributed")
    try:
        find_programs()
    except HpcgymError as error:
        return str(error)
    missing = f"needs Intel MPI: pip install --prefix {INTEL} --no-deps impi-rt"
    return "" if LIBRARY.exists() else missing


pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "Slurm and MPI are there")


def written_script() -> str:
    """The script as it is written, with the number of ranks that a user fills in."""
    (script,) = re.findall(r"^#!/bin/bash\n.*?(?=^```)", PAGE.read_text(), re.M | re.S)
    assert "ntasks=65" in script
    return script.replace("ntasks=65", "ntasks=3")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of a user who works in a folder with the experiment and the script."""
    for name, text in {"weeks.toml": EXPERIMENT, "slow_rule.py": RULE}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "weeks.sh").write_text(written_script())
    (tmp_path / "slow").touch()
    monkeypatch.chdir(tmp_path)
    with real_slurm(3, {"MpiDefault": "pmi2"}) as environment:
        yield environment | {
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), environment["PATH"])),
            "MPI4PY_LIBMPI": str(LIBRARY),
            "I_MPI_FABRICS": "shm",
        }


def submitted(slurm: dict[str, str]) -> str:
    """Submit the script; return the number of the job."""
    said_of_it = said(slurm, "sbatch", "--output=out.txt", "weeks.sh")
    return said_of_it.split()[-1]


def results(folder: str = "weeks.sweep") -> list[dict[str, Any]]:
    """The results that are on the disk."""
    return read_results(folder)


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < end, Path("out.txt").read_text()
        time.sleep(0.05)


def ended(slurm: dict[str, str], job: str) -> bool:
    return said(slurm, "squeue", "-h", "-j", job, "-t", "all", "-o", "%T").strip() not in (
        "PENDING", "RUNNING", "COMPLETING",
    )  # fmt: skip


def kill_all(slurm: dict[str, str], job: str) -> None:
    subprocess.run(["scancel", "--signal=KILL", "--full", job], env=slurm, check=True)


def kill_one_worker(slurm: dict[str, str], job: str) -> None:
    marks = {f"SLURM_CONF={slurm['SLURM_CONF']}".encode(), b"SLURM_PROCID=2"}
    workers = []
    for process in Path("/proc").iterdir():
        try:
            variables = {*(process / "environ").read_bytes().split(b"\0")}
        except OSError:  # no process, or somebody else's
            continue
        workers += [int(process.name)] if process.name.isdigit() and marks <= variables else []
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("kill", [kill_all, kill_one_worker])
def test_the_script_goes_on_where_it_was_killed(
    kill: Callable[[dict[str, str], str], None], slurm: dict[str, str]
) -> None:
    first = submitted(slurm)
    wait_until(lambda: len(results()) >= 3)
    kill(slurm, first)
    wait_until(lambda: ended(slurm, first))
    Path("slow").unlink()
    before = results()
    assert 3 <= len(before) < SIMULATIONS
    second = submitted(slurm)
    wait_until(lambda: ended(slurm, second))
    printed = Path("out.txt").read_text()
    now = SIMULATIONS - len(before)
    assert f"{SIMULATIONS} of {SIMULATIONS} simulations are done, {now} of them now" in printed
    assert all(record in results() for record in before)
    # in a process of its own: a module that is imported once is that of the first test
    serial = ["sweep", "run", "weeks.toml", "--output", "serial.sweep", "--executor", "serial"]
    subprocess.run([sys.executable, "-m", "hpcgym", *serial], check=True)
    assert len(results("serial.sweep")) == SIMULATIONS
    assert results() == results("serial.sweep")
    assert read_manifest("weeks.sweep") == read_manifest("serial.sweep")
