"""A Slurm with one node on loopback, in real time; nothing is left of it."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hpcgym.replay.cleanup import CLOCK, CLOCK_FILE, swept_folder
from hpcgym.replay.configuration import PrivateNodes, SlurmNode, slurm_conf
from hpcgym.replay.native import find_programs, kept_ports

WAIT_S = 120


@contextmanager
def real_slurm(cpus: int, settings: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Run it, and yield the environment in which Slurm's commands talk to it.

    All processes with that environment, jobs too, are ended with it.
    """
    programs = find_programs()
    user = pwd.getpwuid(os.geteuid()).pw_name
    with swept_folder() as folder, kept_ports(2) as port:
        conf = folder / "slurm.conf"
        conf.write_text(
            slurm_conf(folder, PrivateNodes((SlurmNode(cpus),), port), user, dict(settings))
        )
        (folder / "state").mkdir()
        # no clock: by this variable alone are the processes known
        own = {**os.environ, "SLURM_CONF": str(conf), CLOCK: str(folder / CLOCK_FILE)}
        stepd = ["-d", programs.stepd] if programs.stepd else []
        for name, *command in (
            ("slurmctld", programs.slurmctld, "-D", "-c"),
            ("slurmd", programs.slurmd, "-D", "-N", "n1", *stepd),
        ):
            with (folder / f"{name}.out").open("wb") as out:
                subprocess.Popen(command, env=own, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        end = time.monotonic() + WAIT_S
        while "idle" not in said(own, programs.sinfo, "-h", "-o", "%T"):
            assert time.monotonic() < end, (folder / "slurmctld.log").read_text()
            time.sleep(0.1)
        yield own


def said(environment: Mapping[str, str], *command: str) -> str:
    """What a command prints; empty where it fails."""
    return subprocess.run(command, env=environment, capture_output=True, text=True).stdout
