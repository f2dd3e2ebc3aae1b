"""Ends what a replay has left behind; also a program, which waits until whoever started it is gone.

It is run by its path, with nothing but Python's own modules: it must start at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

CLOCK = "HPCGYM_CLOCK"  # the variable by which the processes of a replay are known
CLOCK_FILE = "clock"
_TRIES = 500


def processes_of(folder: Path) -> Iterator[int]:
    """Yield the ids of the processes of the replay in a folder, those of the user."""
    mark = os.fsencode(f"{CLOCK}={folder / CLOCK_FILE}")
    for name in os.listdir("/proc"):
        with suppress(OSError):  # it has ended, or is somebody else's
            if name.isdigit() and mark in Path("/proc", name, "environ").read_bytes().split(b"\0"):
                yield int(name)


def sweep(folder: Path) -> None:
    """Kill the processes of the replay in a folder, each by its id, and remove the folder."""
    for _ in range(_TRIES):
        pids = list(processes_of(folder))
        if not pids:
            break
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)  # they may have begun others meanwhile
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def swept_folder() -> Iterator[Path]:
    """Yield a new folder for temporary files; when the block ends, however it does, it is swept.

    A process of its own waits for the end of this one, and sweeps if it was killed.
    """
    folder = Path(tempfile.mkdtemp(prefix="hpcgym-replay-"))
    command = [sys.executable, "-I", "-S", __file__, str(folder)]
    guard = None
    try:
        guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
        yield folder
    finally:
        sweep(folder)
        if guard is not None:
            guard.communicate()  # closes its input, at whose end it sweeps, and ends


def main() -> None:
    """Wait for the end of the standard input, then sweep the folder that is named."""
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    sys.stdin.buffer.read()
    sweep(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
