"""What a machine tells those who answer what its simulation asks for."""

from __future__ import annotations

from typing import Any, NamedTuple

from hpcgym.compilation import jit_part


class Told(NamedTuple):
    """What a machine tells, as compiled functions.

    Attributes
    ----------
    usage_of : returns when a job ended on the machine, and the energy that it used by that at its
        usual power.
    stopped : returns how many runs others have ended on the machine, and the list of them; None:
        there are none.
    coming : returns how many jobs may come in the pass that follows though the log does not say so,
        and the list of them; None: the log says when each comes.
    """

    usage_of: Any
    stopped: Any = None
    coming: Any = None


@jit_part
def usage_by_clock(jobs, progress, machine, job):
    """Return when a job has ended that ran at its usual power, as long as it was to run."""
    return progress[job].start + jobs[job].run, 1.0


@jit_part
def nobody(*told):
    """Return that there are none, of runs or jobs."""
    return 0, ()


BY_CLOCK = Told(usage_by_clock)
