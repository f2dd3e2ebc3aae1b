"""How nice jobs of Slurm are: what users take from the priority of their jobs, as by ``--nice=50``.

It stands in a field ``Nice``, which squeue has and sacct has not, or in ``SubmitLine`` of sacct,
the command by which a job was submitted: https://slurm.schedmd.com/sbatch.html#OPT_nice
"""

from __future__ import annotations

import re

import numpy as np

from hpcgym.naming import MOST_NICE
from hpcgym.workload.io.log_lines import Ints, Log
from hpcgym.workload.model import MISSING

_LIFTED = f"repaired: nice of {MISSING}, which stands for an unknown one, taken for 0"
_NO_NICE = f"repaired: nice that is no number from {-MOST_NICE:,} to {MOST_NICE:,} taken for 0"
_USUAL = 100  # where the option has no value

# the option of sbatch, salloc and srun, as getopt takes it, shortened too: a value is joined by =
_OPTION = re.compile(r"(?<!\S)--ni(?:ce?)?(?:=(?P<value>\S*))?(?!\S)")
_WHOLE = re.compile(r"[+-]?\d{1,18}")  # with which a value begins, as C reads it


def nice_of(log: Log) -> Ints:
    """Return how nice each job is, (n,) int64, 0 where it does not say.

    ``log`` counts the jobs with a nice of -1, and those whose command has none that Slurm knows.
    """
    if "nice" in log.fields:
        told = np.array(log.parsed("Nice", _number, blank=0), np.int64)
    else:
        known = {line: nice_of_line(line) for line in set(log.texts("submitline"))}
        found = [known[line] for line in log.texts("submitline")]
        log.count(_NO_NICE, np.array([one is None for one in found], np.bool_))
        told = np.array([one or 0 for one in found], np.int64)
    log.count(_LIFTED, told == MISSING)
    return np.where(told == MISSING, 0, told)


def nice_of_line(line: str) -> int | None:
    """Return how nice the job of a command such as ``sbatch --nice=50 run.sh`` is.

    None: it has no number within Slurm's limits, which Slurm takes for 0.
    """
    found = [match["value"] for match in _OPTION.finditer(line)]
    if not found:
        return 0
    if found[-1] is None:
        return _USUAL
    whole = _WHOLE.match(found[-1])
    nice = int(whole[0]) if whole else None
    return None if nice is None or abs(nice) > MOST_NICE else nice


def _number(text: str) -> int:
    """Return a nice that squeue tells."""
    if not _WHOLE.fullmatch(text) or abs(int(text)) > MOST_NICE:
        raise ValueError(f"no whole number from {-MOST_NICE:,} to {MOST_NICE:,}")
    return int(text)
