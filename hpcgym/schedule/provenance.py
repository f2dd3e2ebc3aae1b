"""Provenance of schedules in files: their workload, their rules, and digests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcgym.files.recorded import origin
from hpcgym.files.writing import plain
from hpcgym.schedule.metrics import told_metrics
from hpcgym.schedule.schedule import Schedule
from hpcgym.version import __version__
from hpcgym.workload.fingerprint import bytes_of_numbers, given_digest, workload_digest
from hpcgym.workload.io.swf_header import schedule_header
from hpcgym.workload.model import Workload


def provenance_of(results: Mapping[str, Schedule]) -> dict[str, Any]:
    """Return where schedules are from, as JSON has it; it is worked out when it is asked for.

    Parameters
    ----------
    results : name -> schedule.

    Returns
    -------
    What :func:`hpcgym.files.recorded.origin` returns, and

    - "workloads", a list: "name", "jobs", "processors", "sha256"
      (:func:`hpcgym.workload.fingerprint.workload_digest`), "cleaning", reason -> jobs;
    - "schedules", a list in the order of the results: "name", "workload", its "sha256",
      "machine", "rules" by the names that schedulers have them by, "limits", "metrics",
      where jobs share nodes "speedups", their digest, where jobs followed others "given", that of
      the jobs before (:func:`hpcgym.workload.fingerprint.given_digest`), and "sha256", see
      :func:`schedule_digest`.
    """
    jobs = {id(result.workload): result.workload for result in results.values()}
    of_jobs = {key: _workload(workload) for key, workload in jobs.items()}
    schedules = [
        {"name": name, "workload": of_jobs[id(result.workload)]["sha256"], **_schedule(result)}
        for name, result in results.items()
    ]
    # once each: the same jobs may have been read for several machines
    workloads = {facts["sha256"]: facts for facts in of_jobs.values()}
    return {**origin(), "workloads": list(workloads.values()), "schedules": schedules}


def provenance_of_workloads(workloads: Iterable[Workload]) -> dict[str, Any]:
    """Return the provenance of results without schedules: the same without "schedules"."""
    return {**origin(), "workloads": [_workload(workload) for workload in workloads]}


def _workload(workload: Workload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "jobs": len(workload),
        "processors": workload.processors,
        "sha256": workload_digest(workload),
        "cleaning": dict(workload.cleaning),
    }


def _schedule(result: Schedule) -> dict[str, Any]:
    cluster, coschedule = result.cluster, result.coschedule
    rules = result.scheduler.describe()
    return {
        "machine": {
            "name": cluster.name,
            "processors": cluster.processors,
            "nodes": cluster.nodes if cluster.groups else None,
        },
        "rules": {rule: value for rule, value in rules.items() if value is not None},
        "limits": [str(limit) for limit in result.limits or ()],
        **({} if coschedule is None else {"speedups": coschedule.speedups.digest}),
        **({} if result.given is None else {"given": given_digest(result.given)}),
        "metrics": plain(told_metrics(result)),
        "sha256": schedule_digest(result),
    }


def notes_of(result: Schedule) -> list[str]:
    """Return for people what a schedule was made of and how: lines for the header of SWF."""
    rules = result.scheduler.describe()
    settings = ", ".join(f"{rule}={value}" for rule, value in rules.items() if value is not None)
    cluster = result.cluster
    size = f"{cluster.processors} processors"
    if cluster.groups:
        size = f"{cluster.nodes} nodes with {cluster.processors} cores"
    lines = [
        _made_by(result),
        f"jobs: {result.workload.name}",
        *(f"cleaning: {number} {why}" for why, number in result.workload.cleaning.items()),
        f"machine: {f'{cluster.name}, ' if cluster.name else ''}{size}",
        f"scheduler: {settings}",
    ]
    if result.outside:
        lines.append("the order of the queue came from outside, not from the policy")
    if result.coschedule is not None:
        lines.append(f"speedups: {result.coschedule.speedups.source}")
    if result.lost is not None and result.scheduler.preemption is not None:
        lines.append(f"preemption: {len(result.lost.job)} runs that other jobs ended are not told")
    elif result.pieces is not None:
        lines.append(
            f"preemption: jobs were suspended {len(result.pieces.job)} times, which is told as a"
            " part of their waiting times"
        )
    elif result.lost is not None:
        lines.append(
            f"failures of nodes: {len(result.lost.failures)}; {len(result.lost.job)} runs that they"
            " ended are not told"
        )
    return lines + [f"limit: {limit}" for limit in result.limits or ()]


def _made_by(result: Schedule) -> str:
    """Return which program made a schedule, and which columns of the log it changed."""
    if result.replayed_on:
        return (
            f"a schedule that {result.replayed_on} made on a virtual clock, run by hpcgym"
            f" {__version__}, not a log: waiting times, run times and allocated processors are its"
        )
    return (
        f"a schedule that hpcgym {__version__} simulated, not a log: waiting times, run times"
        " and allocated processors are simulated"
    )


def workload_of(result: Schedule) -> Workload:
    """Return the workload with the simulated waiting and run times in place of the logged.

    :meth:`hpcgym.schedule.result.Result.as_workload` says more.
    """
    wait, run_time = result.wait, result.run_time
    if result.coschedule is not None:
        start, end = (np.rint(times).astype(np.int64) for times in (result.start, result.end))
        wait, run_time = start - result.workload.submit_time, np.maximum(end - start, 1)
    cluster, header = result.cluster, result.workload.header
    nodes = cluster.nodes if cluster.groups else None
    header = schedule_header(header, notes_of(result), len(result.start), cluster.processors, nodes)
    return replace(
        result.workload, initial=None, header=header, processors=cluster.processors
    ).with_columns(
        wait_time=wait,
        run_time=run_time,
        allocated_processors=result.workload.requested_processors,
    )


def schedule_digest(result: Schedule) -> str:
    """Return the SHA-256, in hexadecimal digits, of what a schedule decided.

    These are the starts and run times of the jobs; with nodes, which jobs have which; levels of
    frequency; shapes of jobs that share nodes; runs that were lost, or suspended. Numbers are
    hashed as 64 bits, the lowest byte first.
    """
    parts: dict[str, NDArray[Any]] = {"start": result.start, "run_time": result.run_time}
    if result.coschedule is not None:
        shared = result.coschedule
        parts |= {"start": shared.start_ticks, "end": shared.end_ticks, "shape": shared.shape}
    if result.allocation is not None:
        parts |= result.allocation._asdict()
    if result.frequency is not None:
        parts["frequency"] = result.frequency
    if result.interrupted is not None:
        fields = {name: x for name, x in result.interrupted._asdict().items() if name != "failures"}
        what = "lost" if result.suspended is None else "piece"
        parts |= {f"{what} {name}": x for name, x in fields.items()}
    if result.suspended is not None:
        parts["suspended"] = result.suspended
    digest = hashlib.sha256(b"hpcgym schedule 1 ")
    for name, values in parts.items():
        digest.update(f"{name} {len(values)} ".encode() + bytes_of_numbers(values))
    return digest.hexdigest()
