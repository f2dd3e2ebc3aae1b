"""Replays that are killed, a line for each of what is left; run as ``kills.py TIMES SIGNAL``."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from hpcgym.replay.cleanup import processes_of
from hpcgym.replay.configuration import SlurmNode, scheduling_of
from hpcgym.replay.private import private_slurm
from hpcgym.scheduler.rules import Scheduler

WAIT_S = 60  # until nothing is left


def replay(pipe: int) -> None:
    """Replay jobs without end, and tell when Slurm runs."""
    with private_slurm(
        (SlurmNode(4), SlurmNode(4)), scheduling_of(Scheduler(backfill="none")), 60
    ) as slurm:
        slurm.begin(0)
        for number in range(100_000):
            slurm.advance(number * 10)
            slurm.submit(f"job-{number}", ["-n", "1"], 600, 30)
            os.write(pipe, b".")


def folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("hpcgym-replay-*"))


def listens(port: int) -> bool:
    with closing(socket.socket()) as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def killed(by: signal.Signals, jobs: int) -> str:
    """Kill a replay after so many jobs; say what is left."""
    before = folders()
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            replay(write)
        except KeyboardInterrupt:
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write)
    for _ in range(jobs):
        if not os.read(read, 1):
            return "it ended by itself"
    (folder,) = folders() - before
    port = next(
        int(line.partition("=")[2])
        for line in (folder / "slurm.conf").read_text().splitlines()
        if line.startswith("SlurmctldPort=")
    )
    if jobs and not listens(port):
        return "slurmctld does not listen"
    time.sleep(random.random() / 10)
    os.kill(pid, by)
    os.waitpid(pid, 0)
    os.close(read)
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        left = [*processes_of(folder), *(folders() - before), *([port] if listens(port) else [])]
        if not left:
            return "nothing"
        time.sleep(0.02)
    return f"{left}"


if __name__ == "__main__":
    # shells start what runs in the background with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed(0)
    for time_ in range(int(sys.argv[1])):
        print(killed(signal.Signals[sys.argv[2]], 1 + time_ % 3), flush=True)
