"""How many processors and threads this process may use."""

from __future__ import annotations

import os


def processors_here() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_here() -> int:
    """Return how many threads this process may use: its processors, at most OMP_NUM_THREADS."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    most = processors_here()
    return min(int(allowed), most) if allowed.isdecimal() and int(allowed) > 0 else most
