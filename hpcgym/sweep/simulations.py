"""The simulations of a sweep: workloads, machines and rules as its tasks name them, and metrics."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from hpcgym.cluster import Cluster, find_cluster
from hpcgym.errors import HpcgymError, WorkloadWarning
from hpcgym.schedule.measures import metrics_by
from hpcgym.schedule.metrics import told_metrics
from hpcgym.scheduler.limits import read_limits
from hpcgym.scheduler.own_code import module_file, names_code, own_rule
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.speedups import Heatmap, find_speedups
from hpcgym.sweep.source import KINDS, Source
from hpcgym.workload import Workload, assign_codes, load_workload, shuffled
from hpcgym.workload.archive import fetch, find, find_own, is_trace
from hpcgym.workload.io.files import Errors, sha256_of
from hpcgym.workload.load import GENERATORS, load_with_raw
from hpcgym.workload.summary import warn_of_doubts

# --- The tasks of an experiment -------------------------------------------------------------------

#: Rules that may be code of the user's: a text ``module:name``.
OWN_RULES = ("policy", "dispatcher")
#: What the rule ``pair_estimate`` can be that is no speedups.
PAIR_ESTIMATES = ("known", "learned")


def simulate_task(task: dict[str, Any], folder: str, digests: Mapping[str, str]) -> dict[str, Any]:
    """Simulate one slice of a workload under one scheduler.

    Parameters
    ----------
    task : an entry of :class:`hpcgym.sweep.manifest.Tasks`.
    folder : what names of files are relative to.
    digests : SHA-256 of each file that is read, by their names in tasks.

    Returns
    -------
    metrics : those that the task names, or all, but for energies where nobody gave watts. Under
        limits of another kind ``cap_exceeded_s`` and ``budget_exceeded_j`` are nan. Where the task
        says ``by``, also ``by``: "class" or "user" -> what
        :func:`hpcgym.schedule.measures.metrics_by` returns.

    Raises
    ------
    HpcgymError : a file is not what it was when the sweep began, or cannot be read here.
    """
    cluster = task.get("cluster")
    speedups = load_speedups(task["speedups"], folder, digests) if "speedups" in task else None
    source = Source(**{name: task[name] for name in KINDS if name in task})
    source = replace(source, workload=task["source"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkloadWarning)  # said when the sweep began
        codes = speedups.codes if speedups is not None else ()
        parts = load_slices(
            source, folder, digests.get(source.workload, ""), digests.get(cluster or "", ""), codes
        )
    workload = parts[task["slice"]]
    if "shuffle" in task:
        workload = shuffled(workload, task["shuffle"])
    rules = dict(task["rules"])
    if rules.get("pair_estimate", "known") not in PAIR_ESTIMATES:
        rules["pair_estimate"] = load_speedups(rules["pair_estimate"], folder, digests)
    for rule in OWN_RULES:
        if names_code(rules.get(rule)):
            rules[rule] = _own_rule(rules[rule], Path(folder), digests)
    machine = limits = None
    if cluster is not None:
        machine = load_machine(cluster, folder, digests.get(cluster, ""))
        if "limits" in task:
            limits = read_limits(machine, task["cap"], task["budget"])
    result = simulate(
        workload, Scheduler(**rules), cluster=machine, speedups=speedups, limits=limits
    )
    # not all limits and schedulers of a sweep have the metrics that some of them have
    known = dict.fromkeys(task["metrics"], math.nan) | result.metrics
    found = {name: known[name] for name in task["metrics"] or told_metrics(result)}
    groups = {by: metrics_by(result, by, task["metrics"]) for by in task.get("by", ())}
    return found | ({"by": groups} if groups else {})


@lru_cache(maxsize=4)
def load_slices(
    source: Source, folder: str, digest: str, cluster_digest: str = "", codes: tuple[str, ...] = ()
) -> dict[str, Workload]:
    """Return the slices of a workload by name: "whole", or "week 1" and so on.

    With the names ``codes``, if the source has a seed of them, jobs run one of these, drawn before
    slices are cut. The last few are kept: each worker reads a trace once for many tasks.

    Raises
    ------
    HpcgymError : the workload or its machine cannot be read, or the SHA-256 of a file is not
        ``digest`` or ``cluster_digest``.

    Warns
    -----
    WorkloadWarning : of what makes results doubtful, see :func:`hpcgym.workload.summary.doubts`.
    """
    name = source.workload
    path = input_file(name, Path(folder))
    given: str | Path = _same(name, path, digest)
    generated = name.partition(":")[0] in GENERATORS
    if generated and path is not None:
        given = _SPEEDUPS.sub(lambda _: f"speedups={path}", name)
    elif is_trace(name):  # a trace is called by its name
        given = name
    machine = None
    if source.cluster is not None:
        machine = load_machine(source.cluster, folder, cluster_digest)
    errors = cast(Errors, source.errors)
    workload, raw = load_with_raw(
        given, source.clean, processors=source.processors, cluster=machine, errors=errors,
        tz=source.tz,
    )  # fmt: skip
    if not generated:
        warn_of_doubts(workload, raw)
    if source.codes is not None and codes:
        workload = assign_codes(workload, codes, seed=source.codes)
    if source.slices == "whole":
        return {"whole": workload}
    parts = workload.weeks() if source.slices == "weeks" else workload.months()
    return {part.name.removeprefix(f"{workload.name} "): part for part in parts}


def load_speedups(text: str, folder: str, digests: Mapping[str, str]) -> Heatmap:
    """Return the speedups that an experiment names, whose source is called as there."""
    return _load_speedups(text, folder, digests.get(text, ""))


def read_speedups_of(text: str, folder: Path, digests: dict[str, str]) -> Heatmap:
    """Return the speedups that an experiment names as they are now; note the SHA-256 of a file.

    Raises
    ------
    HpcgymError : there is no such file, or it cannot be read.
    """
    note(text, speedups_file(text, folder), digests)
    return load_speedups(text, str(folder), digests)


def note(name: str, path: Path | None, digests: dict[str, str]) -> None:
    """Keep the SHA-256 of a file that an experiment calls so; None: that is no file."""
    if path is not None:
        digests[name] = sha256_of(path)


@lru_cache(maxsize=16)
def _load_speedups(text: str, folder: str, digest: str) -> Heatmap:
    given = _same(text, speedups_file(text, Path(folder)), digest)
    return replace(find_speedups(given), source=text)


@lru_cache(maxsize=16)
def load_machine(text: str, folder: str, digest: str) -> Cluster:
    """Return the machine that an experiment names."""
    return find_cluster(_same(text, machine_file(text, Path(folder)), digest))


def _own_rule(text: str, folder: Path, digests: Mapping[str, str]) -> Any:
    """Return the function of the user's, or a new object of the class, of the file that it was."""
    file = module_file(text, folder)
    if file is not None:
        name = file.relative_to(folder).as_posix()
        _same(name, file, digests.get(name, ""))
    return own_rule(text, folder)


def _same(name: str, path: Path | None, digest: str) -> str | Path:
    """Return a file, which must be the one that the sweep began with; the name of what is none."""
    if path is None:
        return name
    if sha256_of(path) != digest:
        raise HpcgymError(f"{name}: its file is not the one that the sweep began with")
    return path


# --- The files that an experiment names -----------------------------------------------------------

#: In the text of a generator, the speedups that it takes.
_SPEEDUPS = re.compile(r"(?<=[:,])\s*speedups\s*=([^,]*)")


def input_file(source: str, folder: Path) -> Path | None:
    """Return the file that a workload is read from, or its generator; None of other generators.

    Raises
    ------
    HpcgymError : there is no such file, trace or generator, or a trace cannot be fetched.
    """
    path = folder / os.path.expanduser(source)
    if os.path.isfile(path):  # pathlib raises for names that no file can have
        return path
    if source.partition(":")[0] in GENERATORS:
        named = _SPEEDUPS.search(source)
        return None if named is None else speedups_file(named[1].strip(), folder)
    if is_trace(source):
        return find(source) or fetch(source)
    own = find_own(source)
    if own is not None:
        return own
    load_workload(source)  # says what else it could be
    raise HpcgymError(f"{path}: there is no such file")


def speedups_file(text: str, folder: Path) -> Path | None:
    """Return the file that speedups are read from, None of generated ones.

    Raises
    ------
    HpcgymError : there is no such file.
    """
    if text.partition(":")[0] == "generated":
        return None
    return _existing(text, folder, "there is no such file; speedups are a file or generated:...")


def machine_file(text: str, folder: Path) -> Path | None:
    """Return the file that a machine is read from, None of ready-made ones and equal nodes.

    Raises
    ------
    HpcgymError : there is no such file.
    """
    path = Path(text)
    if path.suffix == ".toml" or len(path.parts) > 1 or os.path.isfile(folder / path):
        return _existing(text, folder, "there is no such file")
    return None


def _existing(text: str, folder: Path, otherwise: str) -> Path:
    """Return the path of a file that is there."""
    path = folder / os.path.expanduser(text)
    if not os.path.isfile(path):
        raise HpcgymError(f"{text}: {otherwise}")
    return path
