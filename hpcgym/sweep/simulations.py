"""The tasks of an experiment: one simulation each, of a slice under a scheduler."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from hpcgym.cluster import Cluster, find_cluster
from hpcgym.errors import HpcgymError, WorkloadWarning
from hpcgym.schedule.groups import metrics_by
from hpcgym.schedule.metrics import told_metrics
from hpcgym.scheduler.limit_texts import read_limits
from hpcgym.scheduler.own_code import module_file, names_code, own_rule
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.speedups import Heatmap, find_speedups
from hpcgym.workload import Workload, assign_codes, load_workload, shuffled
from hpcgym.workload.archive import fetch, find, find_own, is_trace
from hpcgym.workload.io.files import Errors, sha256_of
from hpcgym.workload.load import GENERATORS, load_with_raw
from hpcgym.workload.summary import warn_of_doubts

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
        :func:`hpcgym.schedule.groups.metrics_by` returns.

    Raises
    ------
    HpcgymError : a file is not what it was when the sweep began, or cannot be read here.
    """
    source, cluster = task["source"], task.get("cluster")
    speedups = load_speedups(task["speedups"], folder, digests) if "speedups" in task else None
    codes = None
    if "codes" in task and speedups is not None:
        codes = (task["codes"], speedups.codes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WorkloadWarning)  # said when the sweep began
        parts = load_slices(
            source, task["clean"], task["processors"], task["errors"], task["slices"],
            folder, digests.get(source, ""), cluster, digests.get(cluster or "", ""), codes,
            task.get("tz"),
        )  # fmt: skip
    workload = parts[task["slice"]]
    if "shuffle" in task:
        workload = shuffled(workload, task["shuffle"])
    rules = dict(task["rules"])
    if rules.get("pair_estimate", "known") not in PAIR_ESTIMATES:
        rules["pair_estimate"] = load_speedups(rules["pair_estimate"], folder, digests)
    rules |= {
        rule: _own_rule(rules[rule], Path(folder), digests)
        for rule in OWN_RULES
        if names_code(rules.get(rule))
    }
    machine = None
    if cluster is not None:
        machine = load_machine(cluster, folder, digests.get(cluster, ""))
    limits = None
    if "limits" in task:
        assert machine is not None
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
    source: str,
    clean: str,
    processors: int | None,
    errors: str,
    slices: str,
    folder: str,
    digest: str,
    cluster: str | None = None,
    cluster_digest: str = "",
    codes: tuple[int, tuple[str, ...]] | None = None,
    tz: str | None = None,
) -> dict[str, Workload]:
    """Return the slices of a workload by name: "whole", or "week 1" and so on.

    With ``codes``, a seed and names, jobs run one of these, drawn before slices are cut. The last
    few are kept: each worker reads a trace once for many tasks.

    Raises
    ------
    HpcgymError : the workload or its machine cannot be read, or the SHA-256 of a file is not
        ``digest`` or ``cluster_digest``.

    Warns
    -----
    WorkloadWarning : of what makes results doubtful, see :func:`hpcgym.workload.summary.doubts`.
    """
    path = input_file(source, Path(folder))
    if path is not None:
        _check_digest(source, path, digest)
    given: str | Path = source
    if path is not None and source.partition(":")[0] in GENERATORS:
        given = _with_speedups(source, path)
    elif path is not None and not is_trace(source):  # a trace is called by its name
        given = path
    machine = None if cluster is None else load_machine(cluster, folder, cluster_digest)
    workload, raw = load_with_raw(
        given, clean, processors=processors, cluster=machine, errors=cast(Errors, errors), tz=tz
    )
    if source.partition(":")[0] not in GENERATORS:
        warn_of_doubts(workload, raw)
    if codes is not None:
        workload = assign_codes(workload, codes[1], seed=codes[0])
    if slices == "whole":
        return {"whole": workload}
    parts = workload.weeks() if slices == "weeks" else workload.months()
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
    path = speedups_file(text, folder)
    if path is not None:
        digests[text] = sha256_of(path)
    return load_speedups(text, str(folder), digests)


@lru_cache(maxsize=16)
def _load_speedups(text: str, folder: str, digest: str) -> Heatmap:
    path = speedups_file(text, Path(folder))
    if path is not None:
        _check_digest(text, path, digest)
    return replace(find_speedups(text if path is None else path), source=text)


@lru_cache(maxsize=16)
def load_machine(text: str, folder: str, digest: str) -> Cluster:
    """Return the machine that an experiment names."""
    path = machine_file(text, Path(folder))
    if path is not None:
        _check_digest(text, path, digest)
    return find_cluster(text if path is None else path)


def _own_rule(text: str, folder: Path, digests: Mapping[str, str]) -> Any:
    """Return the function of the user's, or a new object of the class, of the file that it was."""
    file = module_file(text, folder)
    if file is not None:
        name = file.relative_to(folder).as_posix()
        _check_digest(name, file, digests.get(name, ""))
    return own_rule(text, folder)


def _check_digest(name: str, path: Path, digest: str) -> None:
    """Raise an HpcgymError unless a file is the one that the sweep began with."""
    if sha256_of(path) != digest:
        raise HpcgymError(f"{name}: its file is not the one that the sweep began with")


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
        speedups = _speedups_in(source)
        return None if speedups is None else speedups_file(speedups, folder)
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


def _speedups_in(source: str) -> str | None:
    """Return the speedups that the text of a generator names, if it does."""
    pairs = (pair.partition("=") for pair in source.partition(":")[2].split(","))
    return next((value.strip() for key, _, value in pairs if key.strip() == "speedups"), None)


def _with_speedups(source: str, path: Path) -> str:
    """Return the text of a generator with a file in place of the speedups that it names."""
    name, _, arguments = source.partition(":")
    pairs = [
        f"speedups={path}" if pair.partition("=")[0].strip() == "speedups" else pair
        for pair in arguments.split(",")
    ]
    return f"{name}:{','.join(pairs)}"
