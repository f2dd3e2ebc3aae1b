"""What a replay needs: Slurm's programs, free ports, and the virtual clock in C."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from hpcgym.errors import HpcgymError
from hpcgym.files.writing import code_folder

# --- The programs of the Slurm that is installed --------------------------------------------------

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
    paths = {name: find(name) for name in names}
    missing = [name for name, place in paths.items() if place is None]
    if missing:
        raise HpcgymError(f"a replay needs Slurm, and {missing[0]} is not installed: {INSTALL}")
    return Programs(stepd=find("slurmstepd"), **paths)  # type: ignore[arg-type]


def version_of(programs: Programs) -> str:
    """Return which Slurm it is, such as ``Slurm 22.05.8``."""
    version = subprocess.run([programs.slurmctld, "-V"], capture_output=True, text=True).stdout
    return f"Slurm {version.split()[-1]}" if version.split() else "Slurm"


# --- Ports on loopback, kept for a private Slurm from when they are chosen ------------------------

_PORTS = range(12_000, 30_000)  # below those that systems give to clients
_TRIES = 100


@contextmanager
def kept_ports(number: int) -> Iterator[int]:
    """Keep so many ports in a row on loopback, and yield the first, while the block lasts.

    A server that sets ``SO_REUSEADDR``, as Slurm's daemons do, may listen there; who looks for
    ports as this does finds them taken.

    Raises
    ------
    HpcgymError : so many ports in a row are not free, or a process may not open so many.
    """
    for _ in range(_TRIES if number < len(_PORTS) else 0):
        first = random.randrange(_PORTS.start, _PORTS.stop - number)
        with ExitStack() as stack:
            try:
                for port in range(first, first + number):
                    _keep(stack.enter_context(socket.socket()), port)
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    continue
                raise HpcgymError(f"{number} ports on loopback: {error.strerror}") from None
            kept = stack.pop_all()
            break
    else:
        raise HpcgymError(f"there are no {number} free ports in a row on loopback")
    with kept:
        yield first


def _keep(listener: socket.socket, port: int) -> None:
    """Take a free port; from then on those who listen may share it."""
    listener.bind(("127.0.0.1", port))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


# --- The virtual clock in C -----------------------------------------------------------------------

_SOURCES = Path(__file__).parent / "native"
#: The clock asks whether pointers that the C library declares never null are, and defines functions
#: that a compiler knows: it must take neither for granted.
_FLAGS = ("-O1", "-fno-builtin", "-fno-delete-null-pointer-checks", "-fPIC", "-shared")
_LIBRARIES = ("-ldl", "-lpthread")
_SECOND = 10**9
_LIMIT_NS = _SECOND // 10  # of real time in C, so that Ctrl-C is heard
_NEVER = 2**63 - 1
_STALLED, _FULL, _ENDS = 2, 3, 4
_WRONG = {
    _STALLED: "the processes of Slurm do not come to rest, so the clock cannot go on",
    _FULL: "too many processes and threads run at once for the virtual clock",
}


def library(name: str) -> Path:
    """Return the compiled library of a C file, compiled anew where it is not kept.

    Parameters
    ----------
    name : of the file in ``native/``, without its ending.

    Raises
    ------
    HpcgymError : there is no C compiler, or it fails.
    """
    sources = [_SOURCES / f"{name}.c", _SOURCES / "clock.h"]
    digest = hashlib.sha256(" ".join((*_FLAGS, *_LIBRARIES)).encode())
    for source in sources:
        digest.update(source.read_bytes())
    path = code_folder("replay") / f"{name}-{digest.hexdigest()[:16]}.so"
    if not path.exists():
        _compile(sources[0], path)
    return path


def _compile(source: Path, path: Path) -> None:
    """Compile a C file into a library that appears whole or not at all."""
    compiler = shutil.which(os.environ.get("CC") or "cc")
    if compiler is None:
        raise HpcgymError("a replay needs a C compiler: apt-get install gcc libc6-dev")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, path.name)
        command = [compiler, *_FLAGS, str(source), "-o", str(made), *_LIBRARIES]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise HpcgymError(f"{' '.join(command)} failed: {done.stderr.strip()}")
        made.replace(path)


class Conductor:
    """Moves the clock of a replay whenever all its processes are asleep.

    Attributes
    ----------
    file : which the processes share; those with its name in HPCGYM_CLOCK have the clock.

    Raises
    ------
    HpcgymError : the file cannot be made, or there is no C compiler.
    """

    def __init__(self, file: Path, now_s: float) -> None:
        self.file = file
        self._c = ctypes.CDLL(str(library("conductor")))
        self._c.conductor_open.restype = ctypes.c_void_p
        for name in ("now", "begun", "ended"):
            getattr(self._c, f"conductor_{name}").restype = ctypes.c_int64
        opened = self._c.conductor_open(os.fsencode(file), ctypes.c_int64(round(now_s * _SECOND)))
        if opened is None:
            raise HpcgymError(f"{file} cannot be made")
        self._self = ctypes.c_void_p(opened)

    def close(self) -> None:
        """Let go of the clock; nothing else may be called after."""
        self._c.conductor_close(self._self)

    @property
    def now_s(self) -> float:
        """The time [s]."""
        return float(self._c.conductor_now(self._self)) / _SECOND

    @property
    def ended(self) -> int:
        """How many jobs have run."""
        return int(self._c.conductor_ended(self._self))

    @property
    def running(self) -> int:
        """How many jobs run now."""
        return int(self._c.conductor_begun(self._self)) - self.ended

    def advance(self, until_s: float, ended: int | None = None, *, before: bool = False) -> bool:
        """Move the clock to a time [s], or until so many jobs have run.

        With ``before`` it stops before a job ends, which does when the clock goes on. Returns
        whether one is about to end.

        Raises
        ------
        HpcgymError : somebody does not fall asleep.
        """
        target = ctypes.c_int64(round(until_s * _SECOND))
        jobs = ctypes.c_int64(_NEVER if ended is None else ended)
        limit = ctypes.c_int64(_LIMIT_NS)
        while answer := self._c.conductor_advance(self._self, target, jobs, before, limit):
            if answer == _ENDS:
                return True
            _check(answer)
        return False

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run a command as :meth:`tried`, and return what it prints.

        Raises
        ------
        HpcgymError : it fails, with what it says.
        """
        status, out, wrong = self.tried(command, environment)
        if status:
            raise HpcgymError(f"{Path(command[0]).name} failed: {wrong.strip() or out.strip()}")
        return out

    def tried(
        self, command: Sequence[str], environment: Mapping[str, str], given: str = ""
    ) -> tuple[int, str, str]:
        """Run a command under the clock, which stands still unless the command waits.

        ``given`` is its standard input. Returns its exit status, what it prints, and what it says
        is wrong.
        """
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        unsent: str | None = given
        try:
            while True:
                try:
                    out, wrong = process.communicate(unsent, timeout=0.5)
                    break
                except subprocess.TimeoutExpired:
                    unsent = None  # what is left of it is sent all the same
                    _check(self._c.conductor_nudge(self._self, ctypes.c_int64(_LIMIT_NS)))
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
        return process.returncode, out, wrong

    def linger(self, length_s: int) -> None:
        """Heed waits of several seconds for so long after a job came, began or ended [s]."""
        self._c.conductor_linger(self._self, ctypes.c_int64(length_s * _SECOND))

    def submitted(self, jobs: int) -> None:
        """Say that so many jobs have been submitted: what happens then is watched closely."""
        self._c.conductor_happens(self._self, ctypes.c_int64(jobs))


def _check(answer: int) -> None:
    """Raise what an answer of the conductor means, if it means something wrong."""
    if answer in _WRONG:
        raise HpcgymError(_WRONG[answer])
