"""The manifest of a sweep: everything that its results follow from, and nothing else.

It has versions, checksums, seeds and all parameters spelt out, but no host, path, time or number of
workers: the same experiment has the same manifest, to the last byte, on every machine with the same
versions. The tasks of a sweep are made of it alone.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hpcgym.errors import HpcgymError
from hpcgym.policy.fairshare import FairShare
from hpcgym.scheduler import Scheduler
from hpcgym.sweep.experiment import SEED, Experiment, Source
from hpcgym.sweep.records import canonical, identity
from hpcgym.sweep.simulations import input_file, load_slices
from hpcgym.version import __version__
from hpcgym.workload.files import sha256_of

Manifest = dict[str, Any]


def make_manifest(experiment: Experiment) -> Manifest:
    """Return the manifest of an experiment; reads the workloads whose slices must be known.

    Raises
    ------
    HpcgymError : a workload that cannot be read, or has none of the slices asked for.
    """
    inputs: dict[str, str] = {}
    workloads = []
    for place, source in enumerate(experiment.workloads):
        seeds = experiment.seeds if SEED in source.workload else (None,)
        try:
            workloads += _spelt_out(source, seeds, experiment.folder, inputs)
        except HpcgymError as error:
            raise HpcgymError(f"{experiment.path}: workloads[{place}]: {error}") from None
    manifest: Manifest = {
        "versions": versions(),
        "experiment_sha256": experiment.sha256,
        "inputs_sha256": inputs,
        "seeds": list(experiment.seeds),
        "workloads": workloads,
        "schedulers": {name: _rules(one) for name, one in experiment.schedulers.items()},
        "metrics": list(experiment.metrics),
    }
    digest = hashlib.sha256()
    for task in Tasks(manifest):
        digest.update(identity(canonical(task)).encode())
    return {**manifest, "tasks": len(Tasks(manifest)), "tasks_sha256": digest.hexdigest()}


def versions() -> dict[str, str]:
    """Return the versions of what results are computed with."""
    libraries = {name: version(name) for name in ("numpy", "numba")}
    return {"hpcgym": __version__, "python": platform.python_version(), **libraries}


def as_text(manifest: Manifest) -> str:
    """Return a manifest as it is written."""
    return json.dumps(manifest, indent=2) + "\n"


class Tasks(Collection[dict[str, Any]]):
    """All tasks of a manifest, made when they are asked for: the rows of the table, in its order.

    A task has the keys of an entry of ``workloads`` in the manifest, with one ``slice``, and
    ``scheduler``, ``rules`` and ``metrics``.
    """

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._manifest = manifest

    def __len__(self) -> int:
        slices = sum(len(one["slice_names"]) for one in self._manifest["workloads"])
        return slices * len(self._manifest["schedulers"])

    def __contains__(self, task: object) -> bool:
        return any(task == one for one in self)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Go through workloads, slices, schedulers: tasks of one workload follow each other."""
        schedulers = self._manifest["schedulers"].items()
        for workload in self._manifest["workloads"]:
            common = {key: value for key, value in workload.items() if key != "slice_names"}
            for part in workload["slice_names"]:
                for name, rules in schedulers:
                    yield {
                        **common,
                        "slice": part,
                        "scheduler": name,
                        "rules": rules,
                        "metrics": self._manifest["metrics"],
                    }


def _spelt_out(
    source: Source, seeds: Iterable[int | None], folder: Path, inputs: dict[str, str]
) -> list[dict[str, Any]]:
    """Return a workload with each seed and the names of its slices; note the files it comes from.

    If slices are whole, only the first is read: a generator may have many seeds.
    """
    found = []
    parts: list[str] = []
    for seed in seeds:
        name = source.workload if seed is None else source.workload.replace(SEED, str(seed))
        path = input_file(name, folder)
        if path is not None and name not in inputs:
            inputs[name] = sha256_of(path)
        if not parts or source.slices != "whole":
            parts = _names_of_slices(source, name, folder, inputs.get(name, ""))
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
        found.append(entry)
    return found


def _names_of_slices(source: Source, name: str, folder: Path, digest: str) -> list[str]:
    """Return the names of the slices of a workload, which is read for that."""
    found = load_slices(
        name, source.clean, source.processors, source.errors, source.slices, str(folder), digest
    )
    if source.slices == "whole":
        return list(found)
    last = source.last if source.last is not None else float("inf")
    which = [one for one in found if source.first <= int(one.split()[1]) <= last]
    if not which:
        first, *_, final = [one.split()[1] for one in [*found, *found]]
        raise HpcgymError(f"{name} has {source.slices} {first} to {final}, none from first to last")
    return which


def _rules(scheduler: Scheduler) -> dict[str, Any]:
    """Return the rules of a scheduler, such that ``Scheduler(**rules)`` is the same again."""
    rules = {field.name: getattr(scheduler, field.name) for field in fields(scheduler)}
    if isinstance(scheduler.fair_share, FairShare):
        rules["fair_share"] = scheduler.fair_share.table()
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
            path = input_file(name, folder)
        except HpcgymError as error:
            found.append(str(error))
            continue
        if path is None or sha256_of(path) != digest:
            found.append(f"the file of {name} has changed: its SHA-256 differs")
    return found


def other_versions(manifest: Manifest) -> list[str]:
    """Say which versions differ that do not forbid to go on."""
    now = versions()
    return [
        f"{name} was {then} and is {now[name]}"
        for name, then in manifest["versions"].items()
        if name in now and now[name] != then and name != "hpcgym"
    ]
