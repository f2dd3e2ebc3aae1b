"""The runs on some machines: their tasks, and the table of what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.cp.configurations import MACHINES, QUICK_SHARE, Machine, Run
from hpcgym.benchmarks.cp.simulations import hash_of, load_jobs, simulate_one
from hpcgym.benchmarks.studies.progress import Progress
from hpcgym.benchmarks.studies.spread import run_all
from hpcgym.benchmarks.studies.store import code
from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.sweep import read_results
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

#: Whose code an outcome follows from, beside that of simulations: modules, and a whole package.
_MODULES = (
    "hpcgym.baselines.dispatchers",
    "hpcgym.benchmarks.cp.as_published",
    "hpcgym.benchmarks.cp.configurations",
    "hpcgym.benchmarks.cp.shapes",
    "hpcgym.benchmarks.cp.simulations",
)
_PACKAGE = "hpcgym.baselines.cp"


def code_of(*others: str) -> str:
    """Return what names the code that an outcome follows from: a hash, and the solver's version.

    ``others`` are more modules, beside those of every outcome.
    """
    names = sorted(module.name for module in iter_modules(import_module(_PACKAGE).__path__))
    digest = code(*_MODULES, *(f"{_PACKAGE}.{name}" for name in names), *others)
    return f"{digest}, OR-Tools {_solver()}"


def _solver() -> str:
    """Return the version of OR-Tools, whose next one may find other schedules."""
    try:
        return version("ortools")
    except PackageNotFoundError:
        return "none"


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

    machine: Machine
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
    def runs(self) -> list[Run]:
        """What runs on it."""
        return [run for run in self.machine.runs(self.full) if self.wants(run.dispatcher)]

    @property
    def left_out(self) -> list[Run]:
        """What runs on it with ``--full`` alone."""
        wanted = [run for run in self.machine.runs() if self.wants(run.dispatcher)]
        return [run for run in wanted if run not in self.runs]

    def wants(self, dispatcher: str) -> bool:
        """Tell whether a dispatcher was asked for."""
        return not self.dispatchers or dispatcher in self.dispatchers

    @property
    def jobs_sha256(self) -> str:
        """The hash that tasks have."""
        return hash_of(self.workloads, self.cluster)

    def task(self) -> dict[str, Any]:
        """Return what all tasks on this machine begin with."""
        return {
            "machine": self.machine.name,
            "days": self.days,
            "seeds": list(self.seeds),
            "jobs_sha256": self.jobs_sha256,
            "code": code_of(),
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
    pictures : heading -> file, relative to the folder of the report.
    """

    load: Load
    outcomes: dict[Run, dict[str, Any]]
    stopped: dict[Run, dict[str, Any]] = field(default_factory=dict)
    instances: dict[Run, dict[str, Any]] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)

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
        machine = MACHINES[name]
        if dispatchers and not set(dispatchers) & set(machine.dispatchers):
            raise HpcgymError(f"{', '.join(dispatchers)}: not in the study of {name}")
        usual = machine.usual_days * (QUICK_SHARE if quick else 1)
        of = days or (machine.full_days if full else usual)
        jobs = [load_jobs(name, of, seed) for seed in machine.seeds_of(full)]
        workloads = [workload for workload, _ in jobs]
        found.append(Load(machine, jobs[0][1], workloads, of, full, tuple(dispatchers)))
    return found


def run_campaign(
    loads: Sequence[Load],
    folder: Path,
    executor: str | Executor,
    workers: int | None,
    progress: Progress,
) -> list[Findings]:
    """Simulate all runs on some machines that have not been yet.

    Parameters
    ----------
    loads : the machines with their jobs.
    folder : where outcomes are kept, one line each.
    executor, workers : see :func:`hpcgym.sweep.run_tasks`.
    """
    tasks = {
        load.machine.name: [{**load.task(), **asdict(run)} for run in load.runs] for load in loads
    }
    run_all(
        simulate_one,
        [task for of in tasks.values() for task in of],
        folder,
        executor,
        workers,
        of="simulations",
        what="simulations",
        progress=progress,
        chunk=1,
    )
    found = []
    for load in loads:
        records = read_results(folder, tasks[load.machine.name])
        came = {_run_of(record["task"]): record["result"] for record in records}
        stopped = {run: outcome for run, outcome in came.items() if outcome.get("stopped")}
        outcomes = {run: outcome for run, outcome in came.items() if run not in stopped}
        found.append(Findings(load, outcomes, stopped))
    return found


def _run_of(task: Mapping[str, Any]) -> Run:
    return Run(task["dispatcher"], task["duration"], task["allocation"])


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
