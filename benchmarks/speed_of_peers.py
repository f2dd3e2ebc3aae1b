"""How long hpcgym and other simulators take for the same jobs under EASY, each as whole processes.

Options of ``speed.py peers`` name checkouts of repositories: github.com/SPEAR-UIC/CQSim,
cgalleguillosm/accasim, aleasimulator/alea (needs a JDK) and DIR-LAB/deep-batch-scheduler. A program
without one is skipped.
All read one SWF file, of nodes with one core, and write what they write. Times are seconds of the
processor, the least of --repeat runs; a further job is what one takes beyond the first hundred (of
hpcgym, to read all, simulate and write them in this process: less than its start varies).
AccaSim and RLScheduler were written for older Pythons and libraries: ACCASIM and RLSCHEDULER say
what stands in for these. All files of the checkouts stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import Figures

import hpcgym

ACCASIM = """
import collections, collections.abc, sys
collections.Mapping = collections.abc.Mapping  # as before Python 3.10
sys.path.insert(0, sys.argv[1])
from accasim.base.allocator_class import FirstFit
from accasim.base.scheduler_class import EASYBackfilling
from accasim.base.simulator_class import Simulator
easy, quiet = EASYBackfilling(FirstFit()), {"statistics_output": False, "show_statistics": False}
Simulator(sys.argv[2], "machine.json", easy, RESULTS_FOLDER_NAME="out", **quiet).start_simulation()
"""
RLSCHEDULER = """
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock
sys.modules.update({name: MagicMock() for name in ("tensorflow", "scipy", "scipy.signal", "gym")})
sys.modules.update({f"gym.{name}": MagicMock() for name in ("spaces", "utils", "utils.seeding")})
sys.modules["gym"].Env = object
sys.path.insert(0, sys.argv[1])
from HPCSimPickJobs import HPCEnv
env = HPCEnv(backfil=True)
env.np_random = SimpleNamespace(randint=lambda *_: 0)  # the sequence begins with the first job
env.my_init(sys.argv[2])
env.reset_for_test(int(sys.argv[3]), 0)
assert len(env.schedule_curr_sequence_reset(env.fcfs_score)) == int(sys.argv[3])
"""


def ours(_: Path, folder: Path, processors: int, jobs: int) -> list[str]:
    """Return what simulates by hpcgym, and writes the schedule."""
    words = [sys.executable, "-m", "hpcgym", "simulate", "log.swf", "--scheduler", "easy"]
    return [*words, "--clean", "none", "--output", "out.swf", "--force"]


def cqsim(checkout: Path, folder: Path, processors: int, jobs: int) -> list[str]:
    """Return what CQSim does, in a copy, as it writes there: the longest wait first, no window."""
    shutil.copytree(checkout, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    shutil.copy(folder / "log.swf", folder / "data" / "InputFiles")
    given = {"backfill": 1, "alg": "w", "alg_sign": 1, "win": 0, "win_para": "1,0,0"}
    settle(folder / "src" / "Config" / "config_sys.set", given | {"read_num": -1, "debug_lvl": 0})
    run = "import os, sys, runpy; os.chdir('src'); sys.path.insert(0, '.'); sys.argv[0] = 'cqsim'"
    run += "; runpy.run_path('cqsim.py', run_name='__main__')"
    return [sys.executable, "-c", run, "-j", "log.swf", "-n", "log.swf"]


def accasim(checkout: Path, folder: Path, processors: int, jobs: int) -> list[str]:
    """Return what AccaSim does: its EASY, by first fit."""
    system = {"system_name": "log", "start_time": 0, "equivalence": {"processor": {"core": 1}}}
    system |= {"groups": {"node": {"core": 1, "mem": 1000}}, "resources": {"node": processors}}
    (folder / "machine.json").write_text(json.dumps(system))
    return [sys.executable, "-c", ACCASIM, str(checkout), "log.swf"]


def rlscheduler(checkout: Path, folder: Path, processors: int, jobs: int) -> list[str]:
    """Return what the environment of RLScheduler does: first come, first served, backfilled."""
    return [sys.executable, "-c", RLSCHEDULER, str(checkout), "log.swf", str(jobs)]


def alea(checkout: Path, folder: Path, processors: int, jobs: int) -> list[str]:
    """Return what Alea does, in a copy that is compiled before: algorithm 2, its EASY."""
    shutil.copytree(checkout / "Alea", folder, dirs_exist_ok=True)
    libraries, sources = "lib/simjava.jar:lib/gridsim.jar", map(str, folder.rglob("src/**/*.java"))
    compiler = ["javac", "-nowarn", "-d", "made", "-encoding", "UTF-8", "-cp", libraries]
    subprocess.run([*compiler, *sources], cwd=folder, check=True, capture_output=True)
    (folder / "log.swf.machines").write_text(f"0\tlog\t{processors}\t1\t1\t104857600\n")
    given = {"data_sets": "log.swf", "data_set_dir": "./", "total_gridlet": jobs, "algorithms": 2}
    given |= {"first_arrival": 0, "skip": 1, "use_RAM": "false"}
    settle(folder / "configuration.properties", given)
    return ["java", "-cp", f"made:{libraries}", "xklusac.environment.ExperimentSetup"]


def settle(file: Path, given: dict[str, object]) -> None:
    """Set the values of keys in a file of settings."""
    text = file.read_text()
    for key, value in given.items():
        text = re.sub(rf"(?m)^{key}=.*$", f"{key}={value}", text)
    file.write_text(text)


def write(jobs: hpcgym.Workload, file: Path) -> None:
    """Write jobs as SWF, with what all programs need."""
    submits = jobs.submit_time - jobs.submit_time[0]
    columns = (submits, jobs.run_time, jobs.requested_processors, jobs.requested_time)
    lines = [f"; Max{what}: {jobs.processors}" for what in ("Nodes", "Procs")]
    for number, (submit, run, wide, asked) in enumerate(zip(*columns, strict=True), 1):
        lines.append(f"{number} {submit} -1 {run} {wide} -1 1 {wide} {asked} 1 1 1 1 1 1 -1 -1 -1")
    file.write_text("\n".join(lines) + "\n")


def seconds(words: list[str], folder: Path) -> float:
    """Return the seconds of the processor that a command takes; exit where it fails."""
    with (folder / "said.txt").open("wb") as said:
        run = subprocess.Popen(words, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(run.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)}:\n{(folder / 'said.txt').read_text()[-2000:]}")
    return used.ru_utime + used.ru_stime


def alone(folder: Path) -> float:
    """Return the seconds in which hpcgym reads, simulates and writes, without its start."""
    begin = time.process_time()
    jobs = hpcgym.load_workload(folder / "log.swf", "none")
    hpcgym.simulate(jobs, "easy").to_swf(folder / "out.swf")
    return time.process_time() - begin


def peers(given: argparse.Namespace) -> Figures:
    """Time other simulators, of --cqsim FOLDER and the like, and hpcgym on the same jobs."""
    log, rows = hpcgym.load_workload(given.workload or "KTH-SP2"), []
    number = min(given.jobs, len(log))
    for name, command in {"hpcgym": ours, **PEERS}.items():
        checkout, least = getattr(given, name, Path()), []
        for n_jobs in (100, number) if checkout is not None else ():
            with tempfile.TemporaryDirectory() as folder:
                write(log.take(slice(0, n_jobs)), Path(folder) / "log.swf")
                words = command(checkout.resolve(), Path(folder), log.processors, n_jobs)
                least.append(min(seconds(words, Path(folder)) for _ in range(given.repeat)))
                if command is ours:
                    least[0] = least[-1] - min(alone(Path(folder)) for _ in range(given.repeat))
        if least:
            further = 1e6 * (least[1] - least[0]) / (number - 100)
            rows.append({"program": name, "s": least[1], "us a further job": further})
    for row in rows:
        row["process, times"] = row["s"] / rows[0]["s"]
        row["further job, times"] = row["us a further job"] / rows[0]["us a further job"]
    return Figures(f"{log.name}: {number:,} jobs", rows)


PEERS = {peer.__name__: peer for peer in (cqsim, accasim, alea, rlscheduler)}
