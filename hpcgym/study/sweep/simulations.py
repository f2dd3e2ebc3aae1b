"""The simulations of a sweep: workloads, machines, speedups and rules as its tasks name them."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from hpcgym.errors import HpcgymError, WorkloadWarning, check_choice
from hpcgym.files import is_there
from hpcgym.machine import Cluster, find_cluster
from hpcgym.machine.speedups import Heatmap, find_speedups
from hpcgym.names import MOST_OF_LIST, name_problem
from hpcgym.own_code import module_file, names_code, own_rule
from hpcgym.schedule.groups import metrics_by
from hpcgym.schedule.metrics import told_metrics
from hpcgym.scheduler.limits import read_limits
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import Workload, assign_codes, shuffled
from hpcgym.workload.archive import fetch, find, find_own, is_trace
from hpcgym.workload.cleaning import filter_names
from hpcgym.workload.io.files import Errors, ReadOptions, check_errors, sha256_of
from hpcgym.workload.load import is_generator, load_with_raw
from hpcgym.workload.summary import warn_of_doubts

# --- The workloads of an experiment ---------------------------------------------------------------

SLICES = ("whole", "weeks", "months")
SEED = "{seed}"


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

    Raises
    ------
    HpcgymError : a value that cannot be.
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.workload)
        if problem := name_problem(self.name, MOST_OF_LIST):
            raise HpcgymError(f"name must be {problem}")
        filter_names(self.clean)
        check_errors(self.errors)
        check_choice("slices", self.slices, SLICES)
        if self.processors is not None and self.cluster is not None:
            raise HpcgymError("either cluster or processors, not both")
        for key, least in (("processors", 1), ("codes", 0)):
            value = getattr(self, key)
            if value is not None and value < least:
                raise HpcgymError(f"{key} must be at least {least}, not {value}")
        if self.slices == "whole" and (self.first, self.last) != (1, None):
            raise HpcgymError("first and last need slices = 'weeks' or 'months'")
        if self.last is not None and self.last < self.first:
            raise HpcgymError(f"last is {self.last}, before first, {self.first}")


# --- The files that an experiment names -----------------------------------------------------------

#: In the text of a generator, the speedups that it takes.
_SPEEDUPS = re.compile(r"(?<=[:,])\s*speedups\s*=([^,]*)")


def file_of(name: str, folder: Path, of_jobs: bool = False) -> Path | None:
    """Return the file that an experiment calls so: one beside it, or one that a generator takes.

    Of workloads, ``of_jobs``, also that of a trace. None of what is no file.

    Raises
    ------
    HpcgymError : a trace cannot be fetched, or a file of that name is elsewhere.
    """
    path = folder / os.path.expanduser(name)
    if is_there(path):
        return path
    if is_there(os.path.expanduser(name)):  # the reader would take the file that is here
        raise HpcgymError(f"{name}: there is no such file in the experiment's folder")
    if is_generator(name):
        named = _SPEEDUPS.search(name)
        return None if named is None else file_of(named[1].strip(), folder)
    if of_jobs and is_trace(name):
        return find(name) or fetch(name)
    return find_own(name) if of_jobs else None


class Inputs:
    """What tasks name, read from the files that are called so.

    Parameters
    ----------
    folder : what names of files are relative to.
    digests : name -> SHA-256 of the file that was called so when the sweep began; None: it begins
        now, and those of all that is read are noted.
    """

    def __init__(self, folder: str | Path, digests: Mapping[str, str] | None = None) -> None:
        self.folder, self._begins = Path(folder), digests is None
        self.digests = dict(digests or {})

    def digest(self, name: str | None, of_jobs: bool = False) -> str:
        """Return the SHA-256 that a file has to have; "" of what is no file."""
        if self._begins and name is not None and name not in self.digests:
            path = file_of(name, self.folder, of_jobs)
            if path is not None:
                self.digests[name] = sha256_of(path)
        return self.digests.get(name or "", "")

    def machine(self, name: str) -> Cluster:
        """Return the machine that an experiment names."""
        return _machine(name, str(self.folder), self.digest(name))

    def speedups(self, name: str) -> Heatmap:
        """Return the speedups that an experiment names, whose source is called as there."""
        return _speedups(name, str(self.folder), self.digest(name))

    def slices(self, source: Source, codes: tuple[str, ...] = ()) -> dict[str, Workload]:
        """Return the slices of a workload by name: "whole", or "week 1" and so on.

        With the names ``codes``, if the source has a seed of them, jobs run one of these, drawn
        before slices are cut. The last few are kept: each worker reads a trace once for many tasks.

        Raises
        ------
        HpcgymError : the workload or its machine cannot be read, or a file is not what it was.

        Warns
        -----
        WorkloadWarning : of what makes results doubtful, see
            :func:`hpcgym.workload.summary.doubts`.
        """
        of_jobs, of_machine = self.digest(source.workload, True), self.digest(source.cluster)
        return _slices(source, str(self.folder), of_jobs, of_machine, codes)

    def rule(self, text: str) -> Any:
        """Return the function of the user's, or a new object of the class, ``module:name``."""
        file = module_file(text, self.folder)
        if file is not None:
            name = file.relative_to(self.folder).as_posix()
            _given(name, str(self.folder), self.digest(name))
        return own_rule(text, self.folder)


def _given(name: str, folder: str, digest: str, of_jobs: bool = False) -> str | Path:
    """Return the file that is called so, which must be what it was; other names as they are."""
    path = file_of(name, Path(folder), of_jobs)
    if path is not None and sha256_of(path) != digest:
        raise HpcgymError(f"{name}: its file is not the one that the sweep began with")
    return name if path is None else path


@lru_cache(maxsize=16)
def _machine(name: str, folder: str, digest: str) -> Cluster:
    return find_cluster(_given(name, folder, digest))


@lru_cache(maxsize=16)
def _speedups(name: str, folder: str, digest: str) -> Heatmap:
    return replace(find_speedups(_given(name, folder, digest)), source=name)


@lru_cache(maxsize=4)
def _slices(
    source: Source, folder: str, digest: str, of_machine: str, codes: tuple[str, ...]
) -> dict[str, Workload]:
    name = source.workload
    given = _given(name, folder, digest, of_jobs=True)
    generated = is_generator(name)
    if generated and isinstance(given, Path):
        path = given
        given = _SPEEDUPS.sub(lambda _: f"speedups={path}", name)
    elif is_trace(name):  # a trace is called by its name
        given = name
    machine = None if source.cluster is None else _machine(source.cluster, folder, of_machine)
    how = ReadOptions(source.processors, cast(Errors, source.errors), tz=source.tz)
    workload, raw = load_with_raw(given, source.clean, how, machine)
    if not generated:
        warn_of_doubts(workload, raw)
    if source.codes is not None and codes:
        workload = assign_codes(workload, codes, seed=source.codes)
    if source.slices == "whole":
        return {"whole": workload}
    parts = workload.weeks() if source.slices == "weeks" else workload.months()
    return {part.name.removeprefix(f"{workload.name} "): part for part in parts}


# --- The tasks of an experiment -------------------------------------------------------------------

#: Rules that may be code of the user's: a text ``module:name``.
OWN_RULES = ("policy", "dispatcher")
#: What the rule ``pair_estimate`` can be that is no speedups.
PAIR_ESTIMATES = ("known", "learned")
#: What a task has of a workload, beside what its source is.
_OF_SOURCE = ("clean", "processors", "errors", "slices", "cluster", "codes", "tz")


def simulate_task(task: dict[str, Any], folder: str, digests: Mapping[str, str]) -> dict[str, Any]:
    """Simulate one slice of a workload under one scheduler.

    Parameters
    ----------
    task : an entry of :class:`hpcgym.study.sweep.run.Tasks`.
    folder, digests : of :class:`Inputs`.

    Returns
    -------
    metrics : those that the task names, or all, without energies if no watts were given. Under
        limits of another kind ``cap_exceeded_s`` and ``budget_exceeded_j`` are nan. If the task has
        ``by``, also ``by``: "class" or "user" -> the table of
        :func:`hpcgym.schedule.groups.metrics_by`.

    Raises
    ------
    HpcgymError : a file is not what it was when the sweep began, or cannot be read here.
    """
    inputs = Inputs(folder, digests)
    speedups = inputs.speedups(task["speedups"]) if "speedups" in task else None
    of_source = {key: task[key] for key in _OF_SOURCE if key in task}
    source = Source(task["source"], task["workload"], **of_source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkloadWarning)  # said when the sweep began
        parts = inputs.slices(source, () if speedups is None else tuple(speedups.codes))
    workload = parts[task["slice"]]
    if "shuffle" in task:
        workload = shuffled(workload, task["shuffle"])
    rules = dict(task["rules"])
    if rules.get("pair_estimate", "known") not in PAIR_ESTIMATES:
        rules["pair_estimate"] = inputs.speedups(rules["pair_estimate"])
    for rule in OWN_RULES:
        if names_code(rules.get(rule)):
            rules[rule] = inputs.rule(rules[rule])
    machine = None if source.cluster is None else inputs.machine(source.cluster)
    limits = None
    if machine is not None and "limits" in task:
        limits = read_limits(machine, task["cap"], task["budget"])
    result = simulate(
        workload, Scheduler(**rules), cluster=machine, speedups=speedups, limits=limits
    )
    # not all limits and schedulers of a sweep have the metrics that some of them have
    known = dict.fromkeys(task["metrics"], math.nan) | result.metrics
    metrics = {name: known[name] for name in task["metrics"] or told_metrics(result)}
    groups = {by: metrics_by(result, by, task["metrics"]) for by in task.get("by", ())}
    return metrics | ({"by": groups} if groups else {})
