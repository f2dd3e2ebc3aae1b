"""Gives jobs back to Slurm's own priorities once whoever set theirs is gone, however it ended.

It is run by its path, with nothing but Python's own modules. It reads the jobs whose priorities are
set, one a line, and when its input ends it releases them, in order of submission.
"""

from __future__ import annotations

import signal
import subprocess
import sys


def main() -> None:
    """Wait for the end of the standard input, then give back the jobs that it named."""
    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    jobs = {int(line) for line in sys.stdin.read().split()}
    if jobs:
        commands = "".join(f"release {job}\n" for job in sorted(jobs))
        # what has started or ended meanwhile needs nothing
        subprocess.run([sys.argv[1]], input=commands, capture_output=True, text=True)


if __name__ == "__main__":
    main()
