"""Workloads of Batsim in JSON, with profiles that are delays.

::

    {"nb_res": 4,
     "jobs": [{"id": "1", "subtime": 0, "walltime": 30, "res": 1, "profile": "p"}, ...],
     "profiles": {"p": {"type": "delay", "delay": 20.25}, ...}}

A profile of another type has no run time before a platform is simulated, and is refused by its
name. The format: https://batsim.readthedocs.io/en/latest/input-workload.html
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpcgym.errors import WorkloadError
from hpcgym.files import bytes_of, json_of
from hpcgym.workload.io.files import FileFormat, ReadOptions, file_name, no_job
from hpcgym.workload.io.tables import from_pandas, told_processors
from hpcgym.workload.model import Workload

_MOST_BYTES = 1 << 30
_DELAYS = ("delay", "DelayProfile")
_NEEDED = ("subtime", "res", "profile")
_TELLING = (b'"nb_res"', b'"profiles"', b'"subtime"')


def is_batsim(path: Path, head: bytes) -> bool:
    """Tell whether a file is a workload of Batsim, by its name and its first bytes."""
    named = path.name.casefold().endswith((".json", ".json.gz"))
    return named and head.lstrip()[:1] == b"{" and any(word in head for word in _TELLING)


def read_batsim(path: Path, how: ReadOptions) -> Workload:
    """Read a workload of Batsim; see this module.

    Decimals of times are rounded to whole seconds and counted, as in tables.

    Raises
    ------
    WorkloadError : an invalid file; a job without submission, resources or profile, or of a
        profile that is no delay, unless such jobs are skipped.
    """
    import pandas as pd

    given = json_of(bytes_of(path, _MOST_BYTES, WorkloadError), str(path), WorkloadError)
    if not isinstance(given, dict) or not isinstance(given.get("jobs"), list):
        raise WorkloadError(f"{path} is no workload of Batsim: an object with 'jobs', a list")
    profiles = given.get("profiles", {})
    if not isinstance(profiles, dict):
        raise WorkloadError(f"{path}: 'profiles' must be an object, of a profile by each name")
    counts: Counter[str] = Counter()
    rows, places = [], []
    for place, job in enumerate(given["jobs"], 1):
        problem, reason = _problem(job, profiles)
        if problem and how.errors == "raise":
            raise WorkloadError(f"{path}, job {place}: {problem}")
        if problem:
            counts[f"dropped: {reason}"] += 1
            continue
        rows.append(_row(job, profiles[job["profile"]]["delay"], place))
        places.append(place)
        counts["not used: dependencies"] += bool(job.get("dependencies"))
    if not rows:
        raise no_job(path, counts)
    frame = pd.DataFrame(rows, index=pd.Index(places, name="job", dtype="int64"))
    nb_res = given.get("nb_res")
    size = told_processors(nb_res, f"{path}: nb_res") if how.processors is None else how.processors
    workload = from_pandas(frame, processors=size, name=str(path), errors=how.errors)
    header = {} if nb_res is None else {"MaxProcs": [str(nb_res)]}
    workload = replace(workload.counted(counts), name=file_name(path))
    return replace(workload, header={**header, **workload.header})


def _problem(job: Any, profiles: dict[str, Any]) -> tuple[str, str]:
    """Return what is wrong with a job, if anything, and the reason by which it is counted."""
    if not isinstance(job, dict):
        return "it is no object", "job that is no object"
    lacking = next((name for name in _NEEDED if name not in job), None)
    if lacking:
        return f"it lacks {lacking!r}", f"job without {lacking}"
    name = job["profile"]
    profile = profiles.get(name) if isinstance(name, str) else None
    if not isinstance(profile, dict):
        return f"there is no profile {name!r}", "job whose profile is not there"
    kind = profile.get("type")
    if kind not in _DELAYS:
        why = "only of a delay is the run time known without a platform"
        return f"its profile {name!r} is of type {kind!r}: {why}", f"profile of type {kind}"
    if isinstance(profile.get("delay"), bool) or not isinstance(profile.get("delay"), int | float):
        return f"its profile {name!r} has no number as 'delay'", "profile without a delay"
    return "", ""


def _row(job: dict[str, Any], delay: float, place: int) -> dict[str, Any]:
    """Return a job as a row of a table."""
    number = str(job.get("id", "")).rpartition("!")[2]  # Batsim calls it workload!id
    walltime = job.get("walltime", -1)
    return {
        "job_number": int(number) if number.isdecimal() and len(number) < 18 else place,
        "submit_time": job["subtime"],
        "run_time": delay,
        "requested_time": walltime if walltime != 0 else -1,
        "requested_processors": job["res"],
    }


FORMAT = FileFormat(is_batsim, read_batsim)
