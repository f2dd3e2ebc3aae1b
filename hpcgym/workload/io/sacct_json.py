"""What ``sacct --json`` prints, as the fields of ``sacct -P``.

Numbers are plain in older schemas (``"limit": 720``), and objects in newer ones
(``{"set": true, "infinite": false, "number": 720}``). States are a text, or a list of them.
Requested memory is one number, marked if it is of each core, or one for cores and one for nodes.
Steps stand inside of jobs. The schemas, called ``dbv0.0.37_job`` and ``v0.0.40_job`` there:
https://slurm.schedmd.com/rest_api.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcgym.errors import WorkloadError
from hpcgym.files import bytes_of, json_of
from hpcgym.workload.io.files import ReadOptions
from hpcgym.workload.io.log_lines import LogRecords
from hpcgym.workload.io.sacct_fields import UNLIMITED

_MOST_BYTES = 1 << 30
_TELLING = (b'"submission"', b'"allocation_nodes"', b'"data_parser"', b'"plugin"')
_UNSET, _INFINITE = (0xFFFFFFFE, (1 << 64) - 2), (0xFFFFFFFF, (1 << 64) - 1)  # of plain numbers


def is_json(head: bytes) -> bool:
    """Tell whether the first bytes of a file are those of such a dump."""
    return head.lstrip(b"\xef\xbb\xbf\r\n\t ")[:1] == b"{" and any(key in head for key in _TELLING)


def records_of(path: Path, how: ReadOptions) -> LogRecords:
    """Return the jobs of a dump by the fields of ``sacct -P``, numbered from 1 in place of lines.

    Raises
    ------
    WorkloadError : a file that cannot be read, is no JSON, or has no list of jobs; a job that is
        none of sacct, unless such jobs are skipped.
    """
    # Slurm writes numbers that JSON has not, such as Infinity
    content = bytes_of(path, _MOST_BYTES, WorkloadError)
    given = json_of(content, str(path), WorkloadError, flat=True, finite=False)
    jobs = given.get("jobs") if isinstance(given, dict) else None
    if not isinstance(jobs, list):
        raise WorkloadError(f"{path} is no dump of sacct --json: an object with 'jobs', a list")
    log = LogRecords(path, how, called="job")
    rows, places = [], []
    for place, job in enumerate(jobs, 1):
        times = job.get("time") if isinstance(job, dict) else None
        if not isinstance(times, dict) or "submission" not in times:
            queued = isinstance(job, dict) and "job_state" in job
            hint = "; squeue --json has others" if queued else ""
            log.refuse(place, f"it has no time.submission, as sacct tells{hint}", "no job of sacct")
            continue
        rows.append(_row(job, times))
        places.append(place)
    names = [*rows[0]] if rows else []
    log.fill(names, [(places, {name: [row[name] for row in rows] for name in names})])
    return log


def _row(job: dict[str, Any], times: dict[str, Any]) -> dict[str, str]:
    """Return the fields of a job that are read, as texts."""
    needed, held = _of(job, "required"), _of(job, "tres")
    return {
        "jobid": _id(job),
        "jobidraw": _number(job, "job_id"),
        "cluster": _text(job, "cluster"),
        "user": _text(job, "user") or _text(_of(job, "association"), "user"),
        "account": _text(job, "account"),
        "partition": _text(job, "partition"),
        "qos": _text(job, "qos"),
        "state": _state(_of(job, "state").get("current")),
        "submit": _time(times, "submission"),
        "eligible": _time(times, "eligible"),
        "start": _time(times, "start"),
        "end": _time(times, "end"),
        "elapsedraw": _number(times, "elapsed"),
        "timelimitraw": _number(times, "limit") or "Partition_Limit",
        "reqcpus": _number(needed, "CPUs"),
        "nnodes": _number(job, "allocation_nodes"),
        "reqmem": _memory(needed),
        "licenses": _text(job, "licenses"),
        "alloctres": _resources(held.get("allocated")),
        "reqtres": _resources(held.get("requested")),
        "submitline": _text(job, "submit_line"),
        "constraints": _text(job, "constraints"),
        "reservation": _text(_of(job, "reservation"), "name"),
    }


def _of(given: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object in another one, empty where it is not there."""
    value = given.get(name)
    return value if isinstance(value, dict) else {}


def _text(given: dict[str, Any], name: str) -> str:
    value = given.get(name)
    return value.strip() if isinstance(value, str) else ""


def _number(given: dict[str, Any], name: str) -> str:
    """Return a number of either schema as a text: UNLIMITED if infinite, nothing if not set."""
    value = given.get(name)
    if isinstance(value, dict):
        if value.get("infinite"):
            return UNLIMITED
        value = value.get("number") if value.get("set") else None
    if value is None or value in _UNSET:
        return ""
    return UNLIMITED if value in _INFINITE else str(value)


def _time(times: dict[str, Any], name: str) -> str:
    """Return seconds since 1970, ``Unknown`` where there is no such time."""
    time = _number(times, name)
    return "Unknown" if time in ("", "0", UNLIMITED) else time


def _id(job: dict[str, Any]) -> str:
    """Return the id as ``sacct -P`` has it: ``7``, ``7_3``, ``7_[4-9%2]`` or ``7+1``."""
    array, parts = _of(job, "array"), _of(job, "het")
    whole, task = _number(array, "job_id"), _number(array, "task_id")
    waiting = _text(array, "task")
    if whole not in ("", "0") and waiting and not task:
        most = _number(_of(_of(_of(array, "limits"), "max"), "running"), "tasks")
        throttle = f"%{most}" if most not in ("", "0") and "%" not in waiting else ""
        return f"{whole}_[{waiting}{throttle}]"
    if whole not in ("", "0") and task:
        return f"{whole}_{task}"
    if (first := _number(parts, "job_id")) not in ("", "0"):
        return f"{first}+{_number(parts, 'job_offset') or 0}"
    return _number(job, "job_id")


def _state(current: Any) -> str:
    """Return the state: the first of a list, before what is said beside it."""
    state = current[0] if isinstance(current, list) and current else current
    return state if isinstance(state, str) else ""


def _memory(needed: dict[str, Any]) -> str:
    """Return the requested memory as ReqMem has it, of each core or node."""
    core, node = _number(needed, "memory_per_cpu"), _number(needed, "memory_per_node")
    if core not in ("", "0"):
        return f"{core}Mc"
    if not node and (node := _number(needed, "memory")).startswith("-"):  # its highest bit is set
        node = str(int(node) + (1 << 64))
    return f"{node}Mn" if node else ""


def _resources(given: Any) -> str:
    """Return a list of resources as AllocTRES has it: ``cpu=4,mem=4000M,gres/gpu=1``."""
    resources = []
    for resource in given if isinstance(given, list) else ():
        if isinstance(resource, dict) and (count := _number(resource, "count")).isdecimal():
            name = "/".join(filter(None, (_text(resource, "type"), _text(resource, "name"))))
            resources.append(f"{name}={count}{'M' if name == 'mem' else ''}")
    return ",".join(resources)
