"""The workloads of an experiment, and its sets of limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

SLICES = ("whole", "weeks", "months")
SEED = "{seed}"

#: Columns of the table of a sweep that say what schedulers are compared on.
OF_GROUPS = ("workload", "speedups", "limits")
#: Those that tell apart the simulations that are compared there.
OF_JOBS = ("slice", "seed", "shuffle")


@dataclass(frozen=True)
class Source:
    """One of the ``workloads`` of an experiment.

    Attributes
    ----------
    workload : a file, a trace of the archive or a generator; ``{seed}`` in it is each of the seeds.
    name : what it is called in tables; by default ``workload``.
    clean, processors, errors, tz : as for :func:`hpcgym.load_workload`.
    slices : "whole", "weeks" or "months".
    first, last : numbers of the first and the last week or month, both included.
    cluster : the machine, in place of ``processors``: the name of a ready-made one, a TOML file or
        such as "100x2x24"; None: a pool of processors.
    codes : seed of the codes of the speedups that jobs are given at random; None: they have codes
        of their own, or need none.
    """

    workload: str
    name: str = ""
    clean: str = "default"
    processors: int | None = None
    errors: str = "raise"
    slices: str = "whole"
    first: int = 1
    last: int | None = None
    cluster: str | None = None
    codes: int | None = None
    tz: str | None = None


#: Key of a workload in a file -> ``str`` or ``int``.
KINDS = {name: (*get_args(hint), hint)[0] for name, hint in get_type_hints(Source).items()}


@dataclass(frozen=True)
class LimitSet:
    """Limits that hold in the same simulations; none: jobs have nodes of their own all the same.

    Attributes
    ----------
    name : what it is called in tables.
    cap, budget : texts, as :func:`hpcgym.scheduler.limits.read_limits` takes them.
    """

    name: str
    cap: tuple[str, ...] = ()
    budget: tuple[str, ...] = ()

    def describe(self) -> dict[str, Any]:
        """Return what a manifest has of it."""
        return {"name": self.name, "cap": list(self.cap), "budget": list(self.budget)}
