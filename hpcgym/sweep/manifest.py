"""The manifest of a sweep: all that its results follow from, its tasks, and its file.

The file has a checksum: what is not as it was written is no manifest.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.files import json_file
from hpcgym.schedule.metrics import needs_watts, watts_given
from hpcgym.scheduler.backfilling import Hold
from hpcgym.scheduler.own_code import module_file
from hpcgym.scheduler.policies.fair_share import FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.speedups import Heatmap
from hpcgym.sweep.experiment import Experiment
from hpcgym.sweep.simulations import (
    input_file,
    load_machine,
    load_slices,
    machine_file,
    note,
    read_speedups_of,
    speedups_file,
)
from hpcgym.sweep.source import SEED, Source
from hpcgym.version import __version__
from hpcgym.workload import Workload, codes_of
from hpcgym.workload.io.files import sha256_of

# --- The manifest of a sweep ----------------------------------------------------------------------

Manifest = dict[str, Any]


def make_manifest(experiment: Experiment) -> Manifest:
    """Return the manifest of an experiment; reads the workloads whose slices must be known.

    Raises
    ------
    HpcgymError : a workload that cannot be read, or has none of the slices asked for.
    """
    inputs = _files_of_rules(experiment)
    folder = experiment.folder
    heatmaps = [read_speedups_of(text, folder, inputs) for text in experiment.speedups]
    workloads = []
    for place, source in enumerate(experiment.workloads):
        seeds = experiment.seeds if SEED in source.workload else (None,)
        try:
            workloads += _spelt_out(source, seeds, folder, inputs, heatmaps, experiment)
        except HpcgymError as error:
            raise HpcgymError(f"{experiment.path}: workloads[{place}]: {error}") from None
    manifest: Manifest = {
        "versions": versions(),
        "experiment_sha256": experiment.sha256,
        "inputs_sha256": inputs,
        "seeds": list(experiment.seeds),
        **_crossed(heatmaps, experiment),
        "workloads": workloads,
        "schedulers": {
            name: _rules(one) | dict(experiment.own.get(name, {}))
            for name, one in experiment.schedulers.items()
        },
        "metrics": list(experiment.metrics),
    }
    return {**manifest, "tasks": len(Tasks(manifest))}


def _files_of_rules(experiment: Experiment) -> dict[str, str]:
    """Return the SHA-256 of the files that rules are read from.

    These are speedups that schedulers take for the true ones, and modules beside the experiment.
    """
    found: dict[str, str] = {}
    for text in {text for rules in experiment.own.values() for text in rules.values()}:
        if (module := module_file(text, experiment.folder)) is not None:
            note(module.relative_to(experiment.folder).as_posix(), module, found)
    for scheduler in experiment.schedulers.values():
        if isinstance(scheduler.pair_estimate, Heatmap):
            text = scheduler.pair_estimate.source
            note(text, speedups_file(text, experiment.folder), found)
    return found


def _crossed(heatmaps: Iterable[Heatmap], experiment: Experiment) -> Manifest:
    """Return what a manifest has of what not all experiments have: nothing where it is not."""
    told: Manifest = {
        "speedups": [heatmap.describe() for heatmap in heatmaps],
        "limits": [one.describe() for one in experiment.limits],
        "shuffles": list(experiment.shuffles),
        "by": list(experiment.by),
    }
    return {key: value for key, value in told.items() if value}


def versions() -> dict[str, str]:
    """Return the versions of what results are computed with."""
    python = platform.python_version()
    return {"hpcgym": __version__, "python": python, "numpy": version("numpy")}


class Tasks(Collection[dict[str, Any]]):
    """All tasks of a manifest, made when they are asked for: the rows of the table, in its order.

    A task has the keys of an entry of ``workloads`` in the manifest, with one ``slice``, and
    ``scheduler``, ``rules`` and ``metrics``; where there are speedups or shuffles, the name of one
    in ``speedups``, the seed of one in ``shuffle``; where there are limits, the name of a set in
    ``limits``, its texts in ``cap`` and ``budget``; and ``by`` where metrics of groups are kept.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._manifest = manifest

    def __len__(self) -> int:
        slices = sum(len(one["slice_names"]) for one in self._manifest["workloads"])
        each = len(self._manifest["schedulers"])
        for key in ("speedups", "limits", "shuffles"):
            each *= len(self._manifest.get(key, [None]))
        return slices * each

    def __contains__(self, task: object) -> bool:
        return any(task == one for one in self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through workloads, slices, schedulers: tasks of one workload follow each other."""
        manifest = self._manifest
        schedulers = manifest["schedulers"].items()
        # without speedups, limits or shuffles there is one way: nothing is said of them
        speedups = [{"speedups": one["source"]} for one in manifest.get("speedups", [])] or [{}]
        limits = [_as_task(one) for one in manifest.get("limits", [])] or [{}]
        shuffles = [{"shuffle": seed} for seed in manifest.get("shuffles", [])] or [{}]
        groups = {"by": manifest["by"]} if "by" in manifest else {}
        for workload in manifest["workloads"]:
            common = {key: value for key, value in workload.items() if key != "slice_names"}
            ways = product(speedups, limits, workload["slice_names"], shuffles, schedulers)
            for pairs, kept, part, shuffle, (name, rules) in ways:
                yield {
                    **common,
                    **pairs,
                    **kept,
                    "slice": part,
                    **shuffle,
                    "scheduler": name,
                    "rules": rules,
                    "metrics": manifest["metrics"],
                    **groups,
                }


def _as_task(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a task has of a set of limits."""
    return {"limits": limits["name"], "cap": limits["cap"], "budget": limits["budget"]}


def _spelt_out(
    source: Source,
    seeds: Iterable[int | None],
    folder: Path,
    inputs: dict[str, str],
    heatmaps: Iterable[Heatmap],
    experiment: Experiment,
) -> list[dict[str, Any]]:
    """Return a workload with each seed and the names of its slices; note the files it comes from.

    If slices are whole, only the first is read: a generator may have many seeds.
    """
    if source.cluster is not None:
        note(source.cluster, machine_file(source.cluster, folder), inputs)
    found = []
    parts: list[str] = []
    for seed in seeds:
        name = source.workload if seed is None else source.workload.replace(SEED, str(seed))
        path = input_file(name, folder)
        if name not in inputs:
            note(name, path, inputs)
        if not parts or source.slices != "whole":
            parts = _names_of_slices(source, name, folder, inputs, heatmaps, experiment)
        entry = {
            "workload": source.name,
            "source": name,
            "clean": source.clean,
            "processors": source.processors,
            "errors": source.errors,
            "slices": source.slices,
            "seed": seed,
            "slice_names": parts,
        }
        given = {"cluster": source.cluster, "codes": source.codes, "tz": source.tz}
        found.append(entry | {key: value for key, value in given.items() if value is not None})
    return found


def _names_of_slices(
    source: Source,
    name: str,
    folder: Path,
    inputs: Mapping[str, str],
    heatmaps: Iterable[Heatmap],
    experiment: Experiment,
) -> list[str]:
    """Return the names of the slices of a workload, which is read for that; check its codes."""
    of_machine = inputs.get(source.cluster or "", "")
    found = load_slices(
        replace(source, workload=name), str(folder), inputs.get(name, ""), of_machine
    )
    machine = None
    if source.cluster is not None:
        machine = load_machine(source.cluster, str(folder), of_machine)
    energies = [metric for metric in experiment.metrics if needs_watts(metric)]
    if energies and not any(watts_given(machine, part) for part in found.values()):
        raise HpcgymError(
            f"metrics: {energies[0]} needs watts, and nobody gave any for {source.name}: name a"
            " cluster with powers, such as taurus, or a TOML file with idle_power_w and"
            " busy_power_w"
        )
    if "user" in experiment.by and all(part.user_id.max(initial=-1) < 0 for part in found.values()):
        raise HpcgymError(f"by: {source.name}: the log does not tell the user of any job")
    if source.codes is None:
        for heatmap in heatmaps:
            for part in found.values():
                _check_codes(part, heatmap)
    if source.slices == "whole":
        return list(found)
    last = source.last if source.last is not None else float("inf")
    which = [one for one in found if source.first <= int(one.split()[1]) <= last]
    if not which:
        first, *_, final = [one.split()[1] for one in [*found, *found]]
        raise HpcgymError(f"{name} has {source.slices} {first} to {final}, none from first to last")
    return which


def _check_codes(workload: Workload, heatmap: Heatmap) -> None:
    """Raise unless all jobs run codes that have speedups."""
    try:
        codes_of(workload, heatmap.codes)
    except WorkloadError as error:
        raise HpcgymError(
            f"{error}; codes = SEED gives all jobs codes of {heatmap.source} at random"
        ) from None


def _rules(scheduler: Scheduler) -> dict[str, Any]:
    """Return the rules of a scheduler, such that ``Scheduler(**rules)`` is the same again."""
    rules = scheduler.given()
    for name in ("fair_share", "hold"):
        if isinstance(rules[name], FairShare | Hold):
            rules[name] = rules[name].table()
    if isinstance(scheduler.pair_estimate, Heatmap):
        rules["pair_estimate"] = scheduler.pair_estimate.source
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in rules.items()
    }


def differences(manifest: Manifest, folder: Path, experiment: bytes) -> list[str]:
    """Say what differs from when the sweep began, so that it cannot be gone on with.

    Parameters
    ----------
    manifest : of the sweep.
    folder : what names of files are relative to.
    experiment : the file of the experiment, as it is now.
    """
    found = []
    then = manifest["versions"]["hpcgym"]
    if then != __version__:
        found.append(f"it began with hpcgym {then}, and this is {__version__}")
    if hashlib.sha256(experiment).hexdigest() != manifest["experiment_sha256"]:
        found.append("the experiment has changed")
    for name, digest in manifest["inputs_sha256"].items():
        try:
            path = file_of(name, manifest, folder)
        except HpcgymError as error:
            found.append(str(error))
            continue
        if path is None or sha256_of(path) != digest:
            found.append(f"the file of {name} has changed: its SHA-256 differs")
    return found


def file_of(name: str, manifest: Manifest, folder: Path) -> Path | None:
    """Return the file that is called so in a manifest, which may be a workload's, or another.

    ``folder`` is what names of files are relative to. None: what is called so is no file.
    """
    workloads = manifest["workloads"]
    if any(one["source"] == name for one in workloads):
        return input_file(name, folder)
    if any(one.get("cluster") == name for one in workloads):
        return machine_file(name, folder)
    return speedups_file(name, folder)


# --- The file of a manifest -----------------------------------------------------------------------

_MOST_BYTES = 256 << 20  # there is a line for each slice
_CHECKSUM = "manifest_sha256"


def as_text(manifest: Manifest) -> str:
    """Return a manifest as it is written: with a checksum."""
    return json.dumps({**manifest, _CHECKSUM: _checksum(manifest)}, indent=2) + "\n"


def read(path: Path) -> Manifest:
    """Return the manifest that a file holds: one from which tasks can be made.

    Raises
    ------
    HpcgymError : it holds none, or not what was written; the message names the file.
    """
    given = json_file(path, _MOST_BYTES)
    if not isinstance(given, dict) or "versions" not in given:
        raise HpcgymError(f"{path} is not the manifest of a sweep")
    manifest = {key: value for key, value in given.items() if key != _CHECKSUM}
    if _CHECKSUM not in given:
        raise HpcgymError(
            f"{path} has no checksum: it is of an older hpcgym, or was edited; run the experiment"
            " anew, into another folder"
        )
    if given[_CHECKSUM] != _checksum(manifest):
        raise HpcgymError(f"{path} is damaged: it is not what was written, its checksum differs")
    return manifest


def _checksum(manifest: Manifest) -> str:
    """Return the SHA-256 of all entries."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
