"""Gives jobs back to Slurm's own priorities once whoever set theirs is gone, however it ended.

It is run by its path, with nothing but Python's own modules. It reads the jobs whose priorities are
set, one a line, each with its nice, which Slurm forgets when a priority is set. When its input ends
it releases those of them that still wait with such a priority, in order of submission, and gives
them their nice: who was held meanwhile has another priority, and stays held.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys


def main() -> None:
    """Wait for the end of the standard input, then give back the jobs that it named."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    squeue, scontrol, lowest = sys.argv[1:]
    nice = {int(job): int(value) for job, value in map(str.split, sys.stdin.read().splitlines())}
    if not nice:
        return
    asked = [squeue, "-h", "-t", "PD", "-o", "%A %Q"]
    lines = subprocess.run(asked, capture_output=True, text=True).stdout.splitlines()
    numbers = (line.split() for line in lines if re.fullmatch(r"\d+ +\d+", line.strip()))
    waiting = {int(job): int(priority) for job, priority in numbers}
    ours = sorted(job for job in nice if waiting.get(job, 0) > int(lowest))
    commands = [f"release {job}\n" for job in ours]
    commands += [f"update jobid={job} nice={nice[job]}\n" for job in ours if nice[job]]
    subprocess.run([scontrol], input="".join(commands), capture_output=True, text=True)


if __name__ == "__main__":
    main()
