"""How fast dumps of sacct are read, and in how much memory: processor time of a new process."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from timing import Figures

#: What a process prints that reads a dump: jobs, seconds of the processor, peak of the memory.
READING = """
import sys, time
from timing import memory
import hpcgym
begin = time.process_time()
jobs = hpcgym.load_workload(sys.argv[1], "none", processors=100_000, tz="Europe/Berlin")
print(len(jobs), time.process_time() - begin, memory("VmHWM"))
"""
FIELDS = (
    *("JobID", "JobIDRaw", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible"),
    *("Start", "End", "ElapsedRaw", "TimelimitRaw", "ReqCPUS", "AllocCPUS", "NNodes", "ReqMem"),
    *("AllocTRES", "ReqTRES"),
)
STEPS = ("batch", "extern")  # of each job


def dumps(given: argparse.Namespace) -> Figures:
    """Time the reading of dumps of sacct by their size, and show the memory (three lines a job)."""
    rows = []
    for jobs in map(int, given.sizes or (3_000, 30_000, 300_000)):
        with TemporaryDirectory() as folder:
            path = Path(folder, "jobs.txt")
            with path.open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in sacct(jobs))
            runs = [reading(path) for _ in range(given.repeat)]
            (known,) = {read for read, _, _ in runs}
            seconds, peak = min(s for _, s, _ in runs), max(peak for *_, peak in runs)
            rows.append(
                {
                    "jobs": int(known),
                    "lines": jobs * (1 + len(STEPS)),
                    "MB of the file": path.stat().st_size / 1e6,
                    "s": seconds,
                    "us a line": 1e6 * seconds / (jobs * (1 + len(STEPS))),
                    "peak MB": peak / 1e6,
                }
            )
    return Figures("Dumps of sacct, each read by a new process, processor time", rows)


def reading(path: Path) -> list[float]:
    """Return what a process measures that reads a file."""
    command, home = [sys.executable, "-c", READING, str(path)], Path(__file__).parent
    text = subprocess.run(command, cwd=home, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in text.split()]


def sacct(jobs: int) -> Iterator[str]:
    """Go through the lines of a dump as sites print them: a tenth are tasks, a twentieth waits."""
    random = np.random.default_rng(0)
    submit = 1_700_000_000 + np.cumsum(random.exponential(60, jobs)).astype(np.int64)
    start = submit + random.exponential(3_600, jobs).astype(np.int64)
    ran = np.minimum(random.lognormal(7, 2, jobs), 86_400).astype(np.int64)
    dates = [
        np.datetime_as_string(times.astype("datetime64[s]")).tolist()
        for times in (submit, start, start + ran)
    ]
    users = (random.zipf(1.5, jobs) % 500).tolist()
    cores = (2 ** random.integers(0, 8, jobs)).tolist()
    kinds = random.choice(("job", "task", "cancelled"), jobs, p=(0.85, 0.1, 0.05)).tolist()
    limits = random.choice((60, 720, 1_440), jobs).tolist()
    yield "|".join(FIELDS)
    rows = zip(*dates, users, cores, kinds, limits, ran.tolist(), strict=True)
    for number, (submitted, started, ended, user, size, kind, limit, seconds) in enumerate(rows, 1):
        never = kind == "cancelled"
        job_id = f"{number - number % 50}_{number % 50}" if kind == "task" else str(number)
        times = f"{submitted}|{submitted}|{'None' if never else started}|{ended}"
        nodes = -(-size // 64)
        asked = f"cpu={size},mem={4 * size}G,node={nodes},billing={size}"
        held = "|".join(
            (f"{0 if never else seconds}", "{limit}", f"{size}|{0 if never else size}|{nodes}",
             "{memory}", "" if never else asked)
        )  # fmt: skip
        state = f"CANCELLED by {user}" if never else "COMPLETED" if number % 7 else "TIMEOUT"
        who = f"user{user}|account{user % 40}|{'long' if limit > 60 else 'short'}|normal"
        memory = f"{4 * size}G"
        yield "|".join(
            (job_id, str(number), who, state, times, held.format(limit=limit, memory=memory), asked)
        )
        for step in STEPS:
            beside = f"|account{user % 40}||"
            ids = f"{job_id}.{step}|{number}.{step}"
            yield "|".join(
                (ids, beside, state.split()[0], times, held.format(limit="", memory=""), "")
            )
