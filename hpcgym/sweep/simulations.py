"""The tasks of an experiment: one simulation each, of a slice under a scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from hpcgym.errors import HpcgymError
from hpcgym.scheduler import Scheduler
from hpcgym.simulation import simulate
from hpcgym.workload import Workload, load_workload
from hpcgym.workload.archive import fetch, find, is_trace
from hpcgym.workload.files import Errors, sha256_of
from hpcgym.workload.load import GENERATORS


def simulate_task(
    task: dict[str, Any], folder: str, digests: Mapping[str, str]
) -> dict[str, float | int]:
    """Simulate one slice of a workload under one scheduler.

    Parameters
    ----------
    task : an entry of :class:`hpcgym.sweep.manifest.Tasks`.
    folder : what names of files are relative to.
    digests : SHA-256 of each file that workloads are read from, by their names in tasks.

    Returns
    -------
    metrics : those that the task names, or all.

    Raises
    ------
    HpcgymError : a file is not what it was when the sweep began, or cannot be read here.
    """
    source = task["source"]
    parts = load_slices(
        source, task["clean"], task["processors"], task["errors"], task["slices"],
        folder, digests.get(source, ""),
    )  # fmt: skip
    metrics = simulate(parts[task["slice"]], Scheduler(**task["rules"])).metrics
    return {name: metrics[name] for name in task["metrics"] or metrics}


@lru_cache(maxsize=4)
def load_slices(
    source: str,
    clean: str,
    processors: int | None,
    errors: str,
    slices: str,
    folder: str,
    digest: str,
) -> dict[str, Workload]:
    """Return the slices of a workload by name: "whole", or "week 1" and so on.

    The last few are kept: each worker reads a trace once for many tasks.

    Raises
    ------
    HpcgymError : the workload cannot be read, or the SHA-256 of its file is not ``digest``.
    """
    path = input_file(source, Path(folder))
    if path is not None and sha256_of(path) != digest:
        raise HpcgymError(f"{source}: its file is not the one that the sweep began with")
    # a trace is called by its name, a file by its own
    given = source if path is None or is_trace(source) else path
    workload = load_workload(given, clean, processors=processors, errors=cast(Errors, errors))
    if slices == "whole":
        return {"whole": workload}
    parts = workload.weeks() if slices == "weeks" else workload.months()
    return {part.name.removeprefix(f"{workload.name} "): part for part in parts}


def input_file(source: str, folder: Path) -> Path | None:
    """Return the file that a workload is read from, None for a generator.

    Raises
    ------
    HpcgymError : there is no such file, trace or generator, or a trace cannot be fetched.
    """
    path = folder / Path(source).expanduser()
    if path.is_file():
        return path
    if source.partition(":")[0] in GENERATORS:
        return None
    if is_trace(source):
        return find(source) or fetch(source)
    load_workload(source)  # says what else it could be
    raise HpcgymError(f"{path}: there is no such file")
