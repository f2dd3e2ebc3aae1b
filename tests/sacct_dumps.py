"""Dumps of sacct, written by hand from what is meant: jobs, and what else its lines may be.

Nothing here knows of the reader. A dump is a text, the jobs that it tells of, and how many of its
lines are none, by reason.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

EPOCH = datetime(2024, 1, 15, 8, 0, 0, tzinfo=UTC)  # winter: no clock is changed for ten weeks

USERS = ["alice", "bob", "c.d-e", "1007", "émile", "o'neil", "team x"]
ACCOUNTS = ["phys", "chem_2", "bio:lab"]
PARTITIONS = ["batch", "gpu", "long"]
QOS = ["normal", "high"]

ENDED = ["COMPLETED", "FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL",
         "DEADLINE", "CANCELLED by 1234", "RESIZING"]  # fmt: skip
STATUS = {"COMPLETED": 1, "CANCELLED by 1234": 5}
#: Seconds of a time limit in words; blank: none is told.
IN_WORDS = {"UNLIMITED": 365 * 86_400, "Partition_Limit": -1, "": -1}

#: Fields that a dump always has; one of each row below; and any of the rest.
ALWAYS = ["JobID", "JobIDRaw", "Submit", "Start", "State", "User", "Account", "Partition", "QOS"]
RUNS = ["ElapsedRaw", "Elapsed", "End"]
LIMITS = ["Timelimit", "TimelimitRaw"]
SOMETIMES = ["JobName", "ExitCode", "NodeList", "End", "ReqNodes", "TotalCPU", "UID", "Priority",
             "Reason", "Eligible"]  # fmt: skip


@dataclass
class Dump:
    """A text of sacct; its jobs, as dicts; reasons of lines that are none -> how many."""

    text: str = ""
    jobs: list[dict[str, Any]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    fields: list[str] = field(default_factory=list)


def clock(seconds: int, style: str) -> str:
    """A time of so many seconds after the epoch."""
    time = EPOCH + timedelta(seconds=seconds)
    if style == "unix":
        return str(int(time.timestamp()))
    if style == "offset":
        local = time + timedelta(hours=3)
        return local.strftime("%Y-%m-%dT%H:%M:%S") + "+0300"
    return time.strftime("%Y-%m-%dT%H:%M:%S")


def span(seconds: int) -> str:
    """A duration as sacct prints it."""
    days, rest = divmod(seconds, 86_400)
    hours, rest = divmod(rest, 3600)
    text = f"{hours:02}:{rest // 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def tres(job: dict[str, Any], random: Random) -> str:
    """Trackable resources of a job, in any order."""
    memory = random.choice([f"{job['mem']}M", f"{job['mem'] // 1024}G"])
    entries = [f"cpu={job['cores']}", f"mem={memory}", f"node={job['nodes']}"]
    entries.append(f"billing={job['cores']}")
    if job["gpus"]:
        style = random.randrange(3)
        if style != 1:
            entries.append(f"gres/gpu={job['gpus']}")
        if style == 1 and job["gpus"] > 1:
            entries += ["gres/gpu:a100=1", f"gres/gpu:v100={job['gpus'] - 1}"]
        elif style != 0:
            entries.append(f"gres/gpu:a100={job['gpus']}")
    random.shuffle(entries)
    return ",".join(entries)


def dump(seed: int, records: int = 20_000) -> Dump:
    """A dump of about so many records of jobs, and the lines between them."""
    random = Random(seed)
    made = Dump()
    run, limit = random.choice(RUNS), random.choice(LIMITS)
    width = random.choice([["AllocCPUS"], ["NCPUS"], ["AllocTRES"], ["AllocCPUS", "ReqCPUS"]])
    more = ["AllocTRES"] if "AllocTRES" in width or random.random() < 0.7 else []
    more += ["ReqMem", "NNodes"] if not more else []
    chosen = {*ALWAYS, run, limit, *width, *more}
    chosen |= {name for name in SOMETIMES if random.random() < 0.5}
    fields = sorted(chosen)
    random.shuffle(fields)
    made.fields = fields
    trailing = "|" if random.random() < 0.5 else ""
    style = random.choice(["plain", "offset", "unix"])
    rows: list[dict[str, str]] = []
    at, number = 0, 1000
    for _ in range(records):
        at += random.randrange(0, 90)
        number += random.randrange(1, 4)
        rows += record(made, random, number, at, style)
    lines = ["|".join(row[name] for name in fields) + trailing for row in rows]
    again = "|".join(fields) + trailing
    for place in sorted(random.sample(range(len(lines)), 3), reverse=True):
        lines.insert(place, again)  # dumps of several months, one behind the other
    made.dropped["line with the names of fields again"] += 3
    made.lines = len(lines)
    made.text = "\n".join([again, *lines]) + random.choice(["\n", ""])
    return made


def record(made: Dump, random: Random, number: int, at: int, style: str) -> list[dict[str, str]]:
    """The lines of one job, or of what is not one."""
    kind = random.choices(
        ["job", "task", "parts", "requeued", "cancelled", "pending", "running", "array"],
        [70, 10, 2, 3, 6, 3, 2, 2],
    )[0]
    job = some_job(random, number, at)
    if kind == "parts":  # of the same share of a node
        components = [{**job, "id": f"{number}+{k}", "raw": number + k} for k in (0, 1)]
        rows = [row for component in components for row in ended(made, random, component, style)]
        made.jobs.pop()
        made.jobs[-1].update({name: 2 * job[name] for name in ("cores", "gpus", "nodes", "mem")})
        made.dropped["component of a heterogeneous job, which is one job with the first"] += 1
        made.notes[job["limit"]] += 1
        return rows
    if kind == "requeued":
        job["state"] = random.choice(["REQUEUED", "NODE_FAIL", "PREEMPTED"])
        second = {**job, "state": "COMPLETED", "run": random.randrange(1, 5000)}
        second["wait"] = job["wait"] + job["run"] + random.randrange(5, 500)
        rows = ended(made, random, job, style) + ended(made, random, second, style)
        # what is submitted again waits from the end of its first run on
        again = made.jobs[-1]
        gap = second["wait"] - job["wait"] - job["run"]
        again["submit"] += again["wait"] - gap
        again["wait"] = gap
        made.notes["requeued"] += 1
        return rows
    if kind == "task":
        task = random.randrange(0, 500)
        return ended(made, random, {**job, "id": f"{number}_{task}", "raw": number}, style)
    if kind == "job":
        return ended(made, random, job, style)
    never = {"start": random.choice(["Unknown", "None"]), "end": "Unknown", "run": 0}
    if kind == "array":
        made.dropped["tasks of an array that had not started"] += 1
        tasks = random.choice(["[5-9%2]", "[1,3,7]", "[12]"])
        made.notes["throttled"] += "%" in tasks
        return [
            line(random, {**job, **never, "id": f"{number}_{tasks}", "state": "PENDING"}, style)
        ]
    if kind == "pending":
        made.dropped["PENDING when the log was written"] += 1
        return [line(random, {**job, **never, "state": "PENDING"}, style)]
    if kind == "cancelled":
        state = random.choice(["CANCELLED by 1234", "CANCELLED", "FAILED"])
        made.dropped[f"{state.split()[0]} before it started"] += 1
        return [line(random, {**job, **never, "state": state}, style)]
    state = random.choice(["RUNNING", "SUSPENDED", "COMPLETING"])
    made.dropped[f"{state} when the log was written"] += 1
    return [line(random, {**job, "end": "Unknown", "state": state}, style)]


def some_job(random: Random, number: int, at: int) -> dict[str, Any]:
    """A job that has everything."""
    nodes = random.choice([1, 1, 1, 2, 4])
    gpus = nodes * random.choice([0, 0, 0, 1, 4])
    return {
        "id": str(number),
        "raw": number,
        "submit": at,
        "held": random.choice([0, 0, 0, 30]),
        "wait": random.choice([0, 5, 700, 90_000]) + 30,
        "run": random.choice([0, 1, 59, 3600, 200_000, random.randrange(1, 9000)]),
        "limit": random.choice([60, 3600, 86_400, 3 * 86_400, "UNLIMITED", "Partition_Limit"]),
        "nodes": nodes,
        "cores": nodes * random.choice([1, 2, 16, 64]),
        "mem": nodes * 1024 * random.choice([1, 16, 250]),
        "gpus": gpus,
        "state": random.choice(ENDED) if random.random() < 0.3 else "COMPLETED",
        "user": random.choice(USERS),
        "account": random.choice(ACCOUNTS),
        "partition": random.choice(PARTITIONS),
        "qos": random.choice(QOS),
    }


def ended(made: Dump, random: Random, job: dict[str, Any], style: str) -> list[dict[str, str]]:
    """The lines of a job that ended, and its steps; it is one of the dump's jobs."""
    due = dict(job)
    if "Eligible" in made.fields and due["held"]:
        due["submit"] += due["held"]
        due["wait"] -= due["held"]
    made.jobs.append(due)
    rows = [line(random, job, style)]
    for step in random.choice([[], ["batch"], ["batch", "extern", "0"], ["0", "1", "2"]]):
        nobody = {"user": "", "account": "", "partition": "", "qos": "", "limit": ""}
        state = "CANCELLED" if job["state"].startswith("CANCELLED") else "COMPLETED"
        rows.append(
            line(random, {**job, **nobody, "id": f"{job['id']}.{step}", "state": state}, style)
        )
        made.dropped["step of a job"] += 1
    return rows


def line(random: Random, job: dict[str, Any], style: str) -> dict[str, str]:
    """All fields of a line."""
    start = job["submit"] + job["wait"]
    limit = job["limit"]
    ran = "start" not in job
    return {
        "JobID": job["id"],
        "JobIDRaw": job["id"].replace(job["id"].split(".")[0], str(job["raw"]), 1),
        "JobName": random.choice(["a b", "run.sh", "x=1;y", "größe"]),
        "User": job["user"],
        "UID": "1000",
        "Account": job["account"],
        "Partition": job["partition"],
        "QOS": job["qos"],
        "State": job["state"],
        "Submit": clock(job["submit"], style),
        "Eligible": clock(job["submit"] + job["held"], style),
        "Start": clock(start, style) if ran else job["start"],
        "End": job.get("end") or clock(start + job["run"], style),
        "Elapsed": span(job["run"]),
        "ElapsedRaw": str(job["run"]),
        "Timelimit": span(limit) if isinstance(limit, int) else limit,
        "TimelimitRaw": str(limit // 60) if isinstance(limit, int) else limit,
        "AllocCPUS": str(job["cores"]) if ran else "0",
        "NCPUS": str(job["cores"]),
        "ReqCPUS": str(job["cores"]),
        "NNodes": str(job["nodes"]),
        "ReqNodes": str(job["nodes"]),
        "ReqMem": random.choice(
            [
                f"{job['mem']}M",
                f"{job['mem'] // 1024 // job['nodes']}Gn",
                *([f"{job['mem'] // job['cores']}Mc"] if not job["mem"] % job["cores"] else []),
            ]
        ),
        "AllocTRES": tres(job, random) if ran else "",
        "ExitCode": "0:0",
        "NodeList": "n[1-3],n7",
        "TotalCPU": "10:05.123",
        "Priority": "1234",
        "Reason": random.choice(["None", "Priority", "Resources"]),
    }
