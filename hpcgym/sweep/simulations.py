"""Experiments under limits of power and energy: sets of limits, and what goes with them."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from hpcgym.cluster import Cluster, find_cluster
from hpcgym.errors import HpcgymError, WorkloadWarning
from hpcgym.schedule.measures import metrics_by
from hpcgym.schedule.metrics import told_metrics
from hpcgym.scheduler.limits import PowerCap, check_limits, read_limits
from hpcgym.scheduler.own_code import module_file, names_code, own_rule
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.corun import PairLearning, check_machine, check_shared, check_together
from hpcgym.simulation.limited import (
    check_for_limits,
    check_off_as_idle,
    check_power_rule,
    may_switch,
    node_power,
    nodes_off,
)
from hpcgym.simulation.run import simulate
from hpcgym.speedups import Heatmap, find_speedups
from hpcgym.workload import Workload, assign_codes, load_workload, shuffled
from hpcgym.workload.archive import fetch, find, find_own, is_trace
from hpcgym.workload.io.files import Errors, sha256_of
from hpcgym.workload.load import GENERATORS, load_with_raw
from hpcgym.workload.summary import warn_of_doubts

if TYPE_CHECKING:
    from hpcgym.sweep.source import Source


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


# --- Experiments in which jobs share nodes --------------------------------------------------------


def check_sharing(
    workloads: Sequence[Source],
    schedulers: Mapping[str, Scheduler],
    speedups: Sequence[str],
    folder: Path,
) -> None:
    """Raise an HpcgymError unless machines, schedulers and speedups go together.

    Parameters
    ----------
    workloads, schedulers, speedups : of the experiment.
    folder : what names of files are relative to.
    """
    heatmaps = [
        at(f"speedups[{place}]", read_speedups_of, text, folder, {})
        for place, text in enumerate(speedups)
    ]
    machines = [
        _machine_of(f"workloads[{place}]", source, bool(speedups), folder)
        for place, source in enumerate(workloads)
    ]
    for place, (name, scheduler) in enumerate(schedulers.items()):
        where = f"schedulers[{place}]"
        if speedups:
            at(where, check_shared, scheduler)
            for heatmap in heatmaps:
                at(where, PairLearning.of, scheduler, heatmap)  # knows all codes
            for number, machine in enumerate(machines):
                at(f"{where} on workloads[{number}].cluster", check_together, scheduler, machine)
        elif scheduler.coschedules:
            raise HpcgymError(
                f"{where}: jobs share nodes under {name!r}; speedups = FILE or 'generated:...' says"
                " how fast they run then"
            )


def _machine_of(where: str, source: Source, shared: bool, folder: Path) -> Cluster | None:
    """Return the machine of a workload, None of a pool; its nodes can be shared, if they are."""
    machine = None
    if source.cluster is not None:
        machine = at(f"{where}.cluster", machine_of, source.cluster, folder)
    if shared and machine is None:
        raise HpcgymError(
            f"{where}.cluster is missing: speedups are of jobs on nodes; such as '100x2x24', nodes"
            " x sockets x cores"
        )
    if shared:
        at(f"{where}.cluster", check_machine, machine)
    elif source.codes is not None:
        raise HpcgymError(f"{where}.codes needs speedups, which have the codes")
    return machine


def believed(text: str, folder: Path) -> Heatmap | str:
    """Return what the rule ``pair_estimate`` of an experiment stands for."""
    return text if text in PAIR_ESTIMATES else read_speedups_of(text, folder, {})


def machine_of(text: str, folder: Path) -> Cluster:
    """Return the machine that an experiment names."""
    path = machine_file(text, folder)
    return find_cluster(text if path is None else path)


def at(where: str, check: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a check, and name the key if it objects."""
    try:
        return check(*args, **kwargs)
    except HpcgymError as error:
        raise HpcgymError(f"{where}: {error}") from None


# --- Experiments under limits of power and energy -------------------------------------------------


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
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


def check_limited(
    workloads: Sequence[Source],
    schedulers: Mapping[str, Scheduler],
    sets: Sequence[LimitSet],
    folder: Path,
) -> None:
    """Raise an HpcgymError unless machines, schedulers and limits go together.

    Parameters
    ----------
    workloads, schedulers, sets : of the experiment.
    folder : what names of files are relative to.
    """
    for place, scheduler in enumerate(schedulers.values()):
        if sets:
            at(f"schedulers[{place}]", check_for_limits, scheduler)
        else:
            at(f"schedulers[{place}]", check_power_rule, scheduler, None)
    needed = any(one.cap or one.budget for one in sets)
    for number, source in enumerate(workloads if sets else ()):
        where = f"workloads[{number}].cluster"
        if source.cluster is None:
            raise HpcgymError(
                f"{where} is missing: limits are of machines whose nodes have a power, such as"
                " 'taurus'"
            )
        machine = at(where, machine_of, source.cluster, folder)
        power = at(where, node_power, machine, needed)
        for place, one in enumerate(sets):
            found = read_limits(machine, one.cap, one.budget, f"limits[{place}].")
            at(f"limits[{place}]", check_limits, found)
            caps = [limit for limit in found if isinstance(limit, PowerCap)]
            for rank, scheduler in enumerate(schedulers.values()):
                pair = f"schedulers[{rank}] under limits[{place}] on workloads[{number}]"
                at(pair, check_off_as_idle, found, may_switch(scheduler, machine, found))
                for cap in caps:
                    at(pair, nodes_off, machine, power, cap, scheduler.power)
