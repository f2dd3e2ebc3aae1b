"""Slurm's programs that only look at it: squeue, sinfo, sdiag and ``scontrol show``."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcgym.errors import HpcgymError
from hpcgym.units import duration

INSTALL = "apt-get install slurm-client"
#: Set for Slurm's commands: times in seconds since 1970.
VARIABLES = {"SLURM_TIME_FORMAT": "%s", "LC_ALL": "C"}
#: So long a program may take to answer [s].
PATIENCE_S = 20

#: Runs a command of Slurm, with a text for its standard input, and returns its exit status, what it
#: prints and what it says is wrong.
Run = Callable[[Sequence[str], str], tuple[int, str, str]]


def run_command(
    command: Sequence[str], given: str, limit_s: float | None = None
) -> tuple[int, str, str]:
    """Run a command of Slurm; see :data:`Run`.

    Raises
    ------
    HpcgymError : it cannot be run, or does not end within ``limit_s``.
    """
    name = os.path.basename(command[0])
    try:
        done = subprocess.run(
            command,
            input=given,
            env={**os.environ, **VARIABLES},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
    except subprocess.TimeoutExpired:
        raise HpcgymError(
            f"{name} does not answer within {duration(limit_s or 0)}: Slurm is down, or very busy"
        ) from None
    except OSError as error:
        raise HpcgymError(f"{name} cannot be run: {error.strerror}") from None
    return done.returncode, done.stdout, done.stderr


@dataclass(frozen=True)
class SlurmPrograms:
    """Programs of a Slurm that are asked, and change nothing.

    Attributes
    ----------
    folder : where they are; None: on the PATH.
    run : runs a command; None: as a process of this machine, with a limit of time.
    limit_s : so long a program may take to answer [s].
    user : the field of squeue that says whose a job is.
    """

    folder: str | os.PathLike[str] | None = None
    run: Run | None = None
    limit_s: float = PATIENCE_S
    user: str = "%u"

    def said(self, name: str, *words: str) -> str:
        """Return what a program prints.

        Raises
        ------
        HpcgymError : it is not installed, fails, or does not answer in time.
        """
        where = None if self.folder is None else str(Path(self.folder).resolve())
        path = shutil.which(name, path=where)
        if path is None:
            raise HpcgymError(
                f"{name} is not installed: to look at Slurm takes a machine on which squeue lists"
                f" the jobs of your Slurm ({INSTALL})"
            )
        command = [path, *words]
        ran = run_command(command, "", self.limit_s) if self.run is None else self.run(command, "")
        status, out, wrong = ran
        if status:
            text = wrong.strip().partition("\n")[0] or "it says nothing"
            raise HpcgymError(f"{name} failed: {text}")
        return out
