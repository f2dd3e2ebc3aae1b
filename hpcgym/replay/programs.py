"""The programs of the Slurm that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import NamedTuple

from hpcgym.errors import HpcgymError

INSTALL = "apt-get install slurmctld slurmd slurm-client"
#: Where systems have them, whatever the user's PATH is.
SYSTEM = "/usr/sbin:/usr/bin:/sbin:/bin"


class Programs(NamedTuple):
    """The programs of Slurm, by their paths; ``stepd`` may be where slurmd looks by itself."""

    slurmctld: str
    slurmd: str
    stepd: str | None
    sbatch: str
    sinfo: str
    squeue: str
    scontrol: str
    sleep: str


def find_programs() -> Programs:
    """Return where Slurm is installed.

    Raises
    ------
    HpcgymError : it is not, or not all of it; the message says how to install it.
    """
    if sys.platform != "linux":
        raise HpcgymError("a replay on Slurm needs Linux")
    path = os.pathsep.join((os.environ.get("PATH", ""), SYSTEM))

    def find(name: str) -> str | None:
        # Debian has the usual build under this name, also beside that for emulation
        return shutil.which(f"{name}-wlm", path=path) or shutil.which(name, path=path)

    names = ("slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "scontrol", "sleep")
    found = {name: find(name) for name in names}
    missing = [name for name, place in found.items() if place is None]
    if missing:
        raise HpcgymError(f"a replay needs Slurm, and {missing[0]} is not installed: {INSTALL}")
    return Programs(stepd=find("slurmstepd"), **found)  # type: ignore[arg-type]


def version_of(programs: Programs) -> str:
    """Return which Slurm it is, such as ``Slurm 22.05.8``."""
    said = subprocess.run([programs.slurmctld, "-V"], capture_output=True, text=True).stdout
    return f"Slurm {said.split()[-1]}" if said.split() else "Slurm"
