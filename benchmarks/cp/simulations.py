"""The runs on the machines: their tasks, what each measures, and what came out."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcgym.benchmarks.cp import configurations
from hpcgym.benchmarks.studies.harness import Folder, check_same_jobs, hash_of
from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster
from hpcgym.machine.files import find_cluster
from hpcgym.naming import DAY_S
from hpcgym.schedule.result import Result
from hpcgym.scheduler.dispatchers.asking import DispatchError
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.validation.validate import validate_schedule
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload
from hpcgym.workload.needs import fitting

if TYPE_CHECKING:
    import pandas as pd


# --- The simulations of the study, one dispatcher on one machine each -----------------------------


class Timed:
    """Calls a dispatcher, and notes how long that takes.

    Attributes
    ----------
    dispatcher, name : what is called, and how it is called in errors.
    log : of the dispatchers that were called before it.
    seconds : CPU seconds of each call.
    queued : number of jobs in the queue at each call.
    """

    def __init__(self, dispatcher: Any) -> None:
        self.log: list[dict[str, Any]] = []
        self.dispatcher = dispatcher
        self.name = str(getattr(dispatcher, "name", "dispatcher"))
        self.seconds: list[float] = []
        self.queued: list[int] = []

    def go_on_with(self, dispatcher: Any) -> None:
        """Call another one from now on; times and log go on."""
        self.log, self.dispatcher = self.whole_log(), dispatcher

    def whole_log(self) -> list[dict[str, Any]]:
        """Return the log of all that were called; empty if they have none."""
        return [*self.log, *getattr(self.dispatcher, "log", [])]

    def __call__(self, view: Any) -> Iterable[Any]:
        """Return what the dispatcher returns."""
        began = time.process_time()
        chosen = list(self.dispatcher(view))
        self.seconds.append(time.process_time() - began)
        self.queued.append(len(view.job))
        return chosen


def load_jobs(machine: str, days: float, seed: int) -> tuple[Workload, Cluster]:
    """Return what is submitted to a machine of the study within some days, and the machine.

    A log has no seed.

    Raises
    ------
    HpcgymError : a workload that cannot be read.
    """
    of = configurations.MACHINES[machine]
    cluster = find_cluster(of.cluster or of.name)
    workload = load_workload(of.source(days, seed))
    day = (workload.submit_time - workload.submit_time[0]) / DAY_S
    within = (day >= of.from_day) & (day < of.from_day + days)
    if not within.any():
        raise HpcgymError(f"days: no job is submitted to {machine} within {days:g} days")
    if not within.all():
        workload = workload.take(within, name=f"{workload.name}, days from {of.from_day}")
    return fitting(workload, cluster.resources, cluster.capacity), cluster


def simulate_one(task: dict[str, Any]) -> dict[str, Any]:
    """Simulate one run, on the workload of each seed.

    Parameters
    ----------
    task : "machine", a name of :data:`configurations.MACHINES`; "days" of its workload;
        "seeds" of these; "jobs_sha256", of its workloads; "dispatcher", "duration" and
        "allocation", see :class:`configurations.Run`.

    Returns
    -------
    outcome : ``shapes`` and ``queues`` of the schedules, see
        :mod:`hpcgym.benchmarks.cp.configurations`; ``by_seed``, the mean
        ``slowdown`` and ``wait`` [s] of each; ``total_s`` [s] of the simulations; for
        dispatchers ``calls``, their number, ``dispatch_ms``, a box of the CPU time of each [ms],
        ``by_queue``, see :func:`by_queue`, and ``solved``, see :func:`solved`; of PCP'19 as
        published ``alone``, a :func:`hpcgym.benchmarks.cp.configurations.summary` of each
            workload. If that has not
        started all jobs of one, it has come to no schedule, and ``stopped`` is all there is beside
        ``alone``: the number of those workloads.

    Raises
    ------
    HpcgymError : the workload cannot be read here, or has other jobs; or a schedule that is wrong.
    """
    workloads, cluster = loaded(
        task["machine"], task["days"], tuple(task["seeds"]), task["jobs_sha256"]
    )
    run = configurations.Run(task["dispatcher"], task["duration"], task["allocation"])
    timed = (
        None if run.dispatcher == "easy" else Timed(configurations.dispatcher_of(run.dispatcher))
    )
    results: list[Result] = []
    alone: list[dict[str, Any]] = []
    seconds = 0.0
    for place, workload in enumerate(workloads):
        if timed is not None and place:
            timed.go_on_with(configurations.dispatcher_of(run.dispatcher))
        began = time.perf_counter()
        result = _simulated(workload, configurations.rules_of(run, timed), cluster, timed)
        seconds += time.perf_counter() - began
        if result is not None:
            validate_schedule(result)
            results.append(result)
        if timed is not None and isinstance(timed.dispatcher, configurations.AsPublished):
            alone.append(configurations.summary(timed.dispatcher.asked, workload.submit_time))
    if len(results) < len(workloads):
        return {"stopped": len(workloads) - len(results), "alone": alone}
    outcome = {
        "shapes": configurations.shapes_of(results),
        "queues": configurations.queues_of(results),
        "by_seed": {
            "slowdown": [float(configurations.slowdown_of(result).mean()) for result in results],
            "wait": [float(result.wait.mean()) for result in results],
        },
        "total_s": seconds,
    }
    if alone:
        outcome["alone"] = alone
    if timed is None:
        return outcome
    log = timed.whole_log()
    return {
        **outcome,
        "calls": len(timed.seconds),
        "dispatch_ms": configurations.box(1000 * np.array(timed.seconds)),
        "by_queue": by_queue(timed),
        "solved": solved(log) if log else {},
    }


def _simulated(
    workload: Workload, rules: Scheduler, cluster: Cluster, timed: Timed | None
) -> Result | None:
    """Return a schedule; None where PCP'19 as published has stopped: it leaves a queue for ever."""
    try:
        return simulate(workload, rules, cluster=cluster)
    except DispatchError:
        if timed is not None and getattr(timed.dispatcher, "stopped", False):
            return None
        raise


@lru_cache(maxsize=4)
def loaded(
    machine: str, days: float, seeds: tuple[int, ...], jobs: str
) -> tuple[list[Workload], Cluster]:
    """Return what :func:`load_jobs` does of each seed; each worker reads it once for many tasks."""
    found = [load_jobs(machine, days, seed) for seed in seeds]
    workloads, cluster = [workload for workload, _ in found], found[0][1]
    check_same_jobs(machine, hash_of(workloads), jobs)
    return workloads, cluster


def by_queue(timed: Timed) -> list[dict[str, float | int]]:
    """Return the time of a dispatch by the number of queued jobs, in powers of two.

    Returns
    -------
    ``queued`` : the least number of its row; ``calls``, their number; ``mean_ms``, ``max_ms``.
    """
    queued, spent = np.array(timed.queued), 1000 * np.array(timed.seconds)
    rows = []
    least = 1
    while queued.size and least <= queued.max():
        of = spent[(queued >= least) & (queued < 2 * least)]
        if of.size:
            rows.append(
                {
                    "queued": least,
                    "calls": of.size,
                    "mean_ms": float(of.mean()),
                    "max_ms": float(of.max()),
                }
            )
        least *= 2
    return rows


def solved(log: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what became of the models that a dispatcher was to solve.

    Returns
    -------
    ``dispatches``, their number; of them ``plan optimal``, where the heuristic's schedule meets the
    trivial bound and no model was made; ``optimal``, ``feasible``, ``infeasible`` and ``unknown``,
    by what the solver found of the others; ``unknown %``, the share of the models in which it found
    nothing; ``better than heuristic``, where the decision is;
    ``mean gap %`` [%] of those not proved optimal; ``considered`` and ``variables``, means of those
    with a model, and ``postponed`` jobs, which the model started and no nodes were found for.
    """
    by_status = Counter("plan optimal" if not one["variables"] else one["status"] for one in log)
    models = [one for one in log if one["variables"]]
    open_gaps = [one["gap"] for one in models if one["status"] in ("feasible", "unknown")]
    better = [one for one in models if one["objective"] < one["heuristic"] * (1 - 1e-9)]
    return {
        "dispatches": len(log),
        **{name: by_status[name] for name in _STATUSES},
        "unknown %": 100 * by_status["unknown"] / len(models) if models else float("nan"),
        "better than heuristic": len(better),
        "mean gap %": 100 * _mean(open_gaps),
        "considered": _mean([one["considered"] for one in models]),
        "variables": _mean([one["variables"] for one in models]),
        "postponed": sum(one["postponed"] for one in log),
    }


_STATUSES = ("plan optimal", "optimal", "feasible", "infeasible", "unknown")


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else float("nan")


# --- The runs on some machines: their tasks, and the table of what came out -----------------------


@dataclass(frozen=True)
class Load:
    """What is submitted to a machine of the study, and what runs there.

    Attributes
    ----------
    machine, cluster : the machine.
    workloads : one for each seed.
    days : of each.
    full : whether all durations are run with.
    dispatchers : those that were asked for; empty: all of the machine's.
    """

    machine: configurations.Machine
    cluster: Cluster
    workloads: list[Workload]
    days: float
    full: bool
    dispatchers: tuple[str, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each workload; a log has one that means nothing."""
        return self.machine.seeds_of(self.full)

    @property
    def sources(self) -> list[str]:
        """What each workload is loaded from: with its load and seed, if it is generated."""
        return [self.machine.source(self.days, seed) for seed in self.seeds]

    @property
    def runs(self) -> list[configurations.Run]:
        """What runs on it."""
        return [run for run in self.machine.runs(self.full) if self.wants(run.dispatcher)]

    @property
    def left_out(self) -> list[configurations.Run]:
        """What runs on it with ``--full`` alone."""
        wanted = [run for run in self.machine.runs() if self.wants(run.dispatcher)]
        return [run for run in wanted if run not in self.runs]

    def wants(self, dispatcher: str) -> bool:
        """Tell whether a dispatcher was asked for."""
        return not self.dispatchers or dispatcher in self.dispatchers

    @property
    def jobs_sha256(self) -> str:
        """The hash that tasks have."""
        return hash_of(self.workloads)

    def task(self) -> dict[str, Any]:
        """Return what all tasks on this machine begin with."""
        return {
            "machine": self.machine.name,
            "days": self.days,
            "seeds": list(self.seeds),
            "jobs_sha256": self.jobs_sha256,
        }


@dataclass
class Findings:
    """What came out on one machine.

    Attributes
    ----------
    load : the machine and its jobs.
    outcomes : run -> what :func:`simulations.simulate_one` returns, if it came to schedules.
    stopped : the same of those that did not.
    instances : driver -> what :func:`instances.compare_one` returns.
    """

    load: Load
    outcomes: dict[configurations.Run, dict[str, Any]]
    stopped: dict[configurations.Run, dict[str, Any]] = field(default_factory=dict)
    instances: dict[configurations.Run, dict[str, Any]] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        """The name of the machine."""
        return self.load.machine.name


def load_machines(
    names: Sequence[str],
    days: float | None,
    full: bool,
    dispatchers: Sequence[str] = (),
    quick: bool = False,
) -> list[Load]:
    """Return what is submitted to some machines.

    Raises
    ------
    HpcgymError : a workload that cannot be read, or a machine on which no dispatcher runs that was
        asked for.
    """
    found = []
    for name in names:
        machine = configurations.MACHINES[name]
        if dispatchers and not set(dispatchers) & set(machine.dispatchers):
            raise HpcgymError(f"{', '.join(dispatchers)}: not in the study of {name}")
        usual = machine.usual_days * (configurations.QUICK_SHARE if quick else 1)
        of = days or (machine.full_days if full else usual)
        jobs = [load_jobs(name, of, seed) for seed in machine.seeds_of(full)]
        workloads = [workload for workload, _ in jobs]
        found.append(Load(machine, jobs[0][1], workloads, of, full, tuple(dispatchers)))
    return found


def run_campaign(
    loads: Sequence[Load],
    folder: Folder,
) -> list[Findings]:
    """Simulate all runs on some machines that have not been yet.

    Parameters
    ----------
    loads : the machines with their jobs.
    folder : where the study is run; outcomes are in its folder ``runs``.
    """
    found = {load.machine.name: Findings(load, {}) for load in loads}
    runs = [(load, run) for load in loads for run in load.runs]
    tasks = [{**load.task(), **asdict(run)} for load, run in runs]
    outcomes = folder.run(simulate_one, tasks, "simulations", "runs", chunk=1)
    for (load, run), outcome in zip(runs, outcomes, strict=True):
        of = found[load.machine.name]
        (of.stopped if outcome.get("stopped") else of.outcomes)[run] = outcome
    return list(found.values())


def table_of(found: Findings) -> pd.DataFrame:
    """Return a row for each run with all numbers of its outcome, for a file."""
    import pandas as pd

    rows = []
    for run, outcome in found.outcomes.items():
        rest = {key: of for key, of in outcome.items() if key not in ("by_queue", "alone")}
        rows.append({**asdict(run), **_flat(rest)})
    return pd.DataFrame(rows)


def _flat(parts: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Return nested dictionaries as one, the keys joined by dots."""
    flat: dict[str, Any] = {}
    for key, value in parts.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{key}.")
        else:
            flat[before + key] = value
    return flat
