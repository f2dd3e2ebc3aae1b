"""What sacct --json prints, in both of its schemas, against sacct -P of the same jobs."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import load_workload
from hpcgym.workload import Workload
from hpcgym.workload.load import format_of

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.WorkloadWarning")

BEGAN = 1_710_000_000
PER_CORE = 1 << 63

#: Jobs: id, array, task, waiting tasks, part of; state, times from BEGAN on, limit [minutes],
#: cores, nodes, memory [MB], whether it is of each core, GPUs.
JOBS: list[dict[str, Any]] = [
    {"id": 10, "limit": 60, "cores": 4, "memory": 4000, "per_core": True},
    {"id": 11, "limit": "infinite", "cores": 8, "nodes": 2, "memory": 16_000, "gpus": 2},
    {"id": 13, "cores": 2, "memory": 500, "per_core": True},
    {"id": 12, "array": 12, "task": 0, "limit": None, "cores": 1, "memory": 0},
    {"id": 15, "array": 12, "task": 3, "state": "TIMEOUT", "limit": 1, "cores": 1, "memory": 500},
    {"id": 16, "array": 12, "waiting": "4-9", "at_once": 2, "state": "PENDING", "start": 0},
    {"id": 18, "part": (17, 1), "cores": 2, "eligible": 5, "limit": 600},
    {"id": 19, "state": "CANCELLED", "start": 0, "end": 30},
    {"id": 20, "state": "RUNNING", "end": 0},
]


def full(job: dict[str, Any]) -> dict[str, Any]:
    usual = {"state": "COMPLETED", "submit": job["id"], "start": 100, "end": 400, "limit": 10}
    return {**usual, "cores": 1, "nodes": 1, "memory": 1000, "gpus": 0, **job}


def at(job: dict[str, Any], name: str) -> int:
    """A time since 1970, 0 without any."""
    offset = job.get(name, job["submit"])
    return BEGAN + offset if offset else 0


def dumped(job: dict[str, Any]) -> str:
    """The line of sacct -P."""
    name = str(job["id"])
    if "task" in job:
        name = f"{job['array']}_{job['task']}"
    elif "waiting" in job:
        name = f"{job['array']}_[{job['waiting']}%{job['at_once']}]"
    elif "part" in job:
        name = f"{job['part'][0]}+{job['part'][1]}"
    limit = {"infinite": "UNLIMITED", None: "Partition_Limit"}.get(job["limit"], job["limit"])
    tres = f"cpu={job['cores']},mem={job['nodes']}G,node={job['nodes']},gres/gpu={job['gpus']}"
    memory = f"{job['memory']}M{'c' if job.get('per_core') else 'n'}"
    times = [at(job, name) or "Unknown" for name in ("submit", "eligible", "start", "end")]
    elapsed = at(job, "end") - at(job, "start") if at(job, "start") and at(job, "end") else 0
    fields = [name, job["id"], "ann", "phys", "batch", "normal", job["state"], *times, elapsed,
              limit, job["cores"], job["nodes"], memory, tres if job["gpus"] else "",
              f"sbatch --nice={job['id']} a.sh"]  # fmt: skip
    return "|".join(map(str, fields))


HEAD = ("JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw"
        "|TimelimitRaw|ReqCPUS|NNodes|ReqMem|AllocTRES|SubmitLine")  # fmt: skip


def in_json(job: dict[str, Any], newer: bool) -> dict[str, Any]:
    """The object of sacct --json."""

    def number(value: Any) -> Any:
        if newer:
            is_number = isinstance(value, int)
            return {
                "set": is_number,
                "infinite": value == "infinite",
                "number": value if is_number else 0,
            }
        return {"infinite": 0xFFFFFFFF}.get(value, value)

    array = {
        "job_id": job.get("array", 0),
        "limits": {"max": {"running": {"tasks": job.get("at_once", 0)}}},
        "task_id": number(job.get("task")),
        "task": job.get("waiting", "" if newer else None),
    }
    memory, per_core = job["memory"], job.get("per_core")
    required = {"CPUs": job["cores"]}
    if newer:
        required["memory_per_cpu"] = number(memory if per_core else None)
        required["memory_per_node"] = number(None if per_core else memory)
    else:
        required["memory"] = memory - (PER_CORE if per_core and job["id"] % 2 else 0)
        required["memory"] += PER_CORE if per_core and not job["id"] % 2 else 0
    held = [("cpu", "", job["cores"]), ("mem", "", 1024 * job["nodes"]), ("energy", "", -2),
            ("node", "", job["nodes"]), ("gres", "gpu", job["gpus"])]  # fmt: skip
    elapsed = at(job, "end") - at(job, "start") if at(job, "start") and at(job, "end") else 0
    return {
        "account": "phys",
        "allocation_nodes": job["nodes"],
        "array": array,
        "association": {"account": "phys", "cluster": "alpha", "partition": None, "user": "ann"},
        "cluster": "alpha",
        "het": {
            "job_id": job.get("part", (0,))[0],
            "job_offset": number(job["part"][1] if "part" in job else None),
        },
        "job_id": job["id"],
        "name": "a|b",
        "partition": "batch",
        "qos": "normal",
        "required": required,
        "state": {"current": [job["state"], "RESV"] if newer else job["state"], "reason": "None"},
        "steps": [{"state": "COMPLETED", "time": {"elapsed": 5}}],
        "submit_line": f"sbatch --nice={job['id']} a.sh",
        "time": {
            "elapsed": elapsed,
            **{name: at(job, name) for name in ("eligible", "start", "end")},
            "submission": at(job, "submit"),
            "limit": number(job["limit"]),
        },
        "tres": {
            "allocated": [
                {"type": kind, "name": name, "id": 1, "count": count}
                for kind, name, count in (held if job["gpus"] else [])
            ],
            "requested": [],
        },
        "user": "ann",
        "billable": {"number": float("inf")},
    }


def same(mine: Workload, other: Workload) -> bool:
    names = {*mine.columns} | {*other.columns}
    return all(np.array_equal(mine.columns[name], other.columns[name]) for name in names)


@pytest.mark.parametrize("newer", [True, False])
def test_both_schemas_are_read_as_the_lines(tmp_path: Path, newer: bool) -> None:
    jobs = [full(job) for job in JOBS]
    lines = tmp_path / "jobs.txt"
    lines.write_text("\n".join([HEAD, *map(dumped, jobs)]) + "\n")
    dump = {"jobs": [in_json(job, newer) for job in jobs], "warnings": [], "errors": []}
    meta = {"plugin": {"data_parser": "data_parser/v0.0.40"}, "slurm": {"version": {}}}
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"meta": meta, **dump} if not newer else {**dump, "meta": meta}))
    assert format_of(path) == "sacct"
    workload, expected = load_workload(path, "none"), load_workload(lines, "none")
    assert same(workload, expected)
    assert workload.cleaning == expected.cleaning
    assert workload.job_number.tolist() == [10, 11, 12, 13, 15, 18]
    assert workload.requested_time.tolist() == [3600, 31_536_000, -1, 600, 60, 36_000]
    assert workload.wait_time.tolist() == [90, 89, 88, 87, 85, 82]
    assert workload.run_time.tolist() == [300] * 6
    assert workload.nice.tolist() == [10, 11, 12, 13, 15, 18]
    assert workload.array.tolist() == [-1, -1, 12, -1, 12, -1]
    assert workload.per_unit["mem"].tolist() == [16_000, 1024, 0, 1000, 500, 1000]
    assert workload.per_unit["gpu"].tolist() == [0, 1, 0, 0, 0, 0]
    packed = tmp_path / "dump"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert same(load_workload(packed, "none"), expected)


JOB = in_json(full(JOBS[0]), True)
COMPLETE = {**JOB, "state": {"current": ["COMPLETE"]}}
QUEUED = {"job_id": 1, "job_state": ["PENDING"], "submit_time": {"number": 1}}


def read(folder: Path, jobs: Any, **options: Any) -> Workload:
    path = folder / "jobs.json"
    path.write_text(json.dumps({"meta": {"plugin": {}}, "jobs": jobs}))
    return load_workload(path, "none", **options)


@pytest.mark.parametrize("wrong", [COMPLETE, QUEUED, 5])
def test_wrong_jobs_are_skipped(tmp_path: Path, wrong: Any) -> None:
    assert len(read(tmp_path, [JOB, wrong], errors="skip")) == 1


test_mistakes = mistakes_of(globals())
