"""The campaign on some traces: its tasks, and the table of what came out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcgym.benchmarks.prediction.configurations import (
    E_LOSS_TRIPLE,
    ETA,
    L2,
    Configuration,
    Loss,
    scheduler_of,
)
from hpcgym.benchmarks.prediction.published import MEASURES, Published
from hpcgym.benchmarks.prediction.simulations import load_trace, simulate_one
from hpcgym.benchmarks.studies.progress import Progress
from hpcgym.benchmarks.studies.spread import run_all
from hpcgym.benchmarks.studies.store import code
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.simulation.run import simulate
from hpcgym.sweep import read_results
from hpcgym.workload.fingerprint import fingerprint
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

QUICK_JOBS = 1500  # of a trace, in a quick cut

#: Whose code an outcome follows from, beside that of simulations.
MODULES = (
    "hpcgym.benchmarks.prediction.configurations",
    "hpcgym.benchmarks.prediction.simulations",
)


@dataclass
class Findings:
    """What came out on one trace.

    Attributes
    ----------
    source, workload : what the trace was loaded from; its jobs.
    published : its published results; None without.
    table : a row for each configuration, by its text: see :func:`table_of`.
    configurations : those of the rows.
    accuracy : predictor -> its predictions at submission and the run times, (2, n_jobs) [s].
    pictures : name -> file, relative to the folder of the report.
    """

    source: str
    workload: Workload
    published: Published | None
    table: pd.DataFrame
    configurations: dict[str, Configuration]
    accuracy: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, Path] = field(default_factory=dict)

    @property
    def trace(self) -> str:
        """The name of the trace."""
        return self.workload.name

    @property
    def of_thesis(self) -> pd.DataFrame:
        """The rows of the table whose configurations are the thesis's."""
        names = [
            name
            for name, one in self.configurations.items()
            if not isinstance(one.estimate, Loss) or one.estimate.of_thesis
        ]
        return self.table.loc[names]

    @property
    def learned(self) -> pd.DataFrame:
        """Those of them that learn."""
        table = self.of_thesis
        return table[table["estimate"] == "regression"]

    def ours(self, configuration: Configuration) -> float:
        """Return the mean bounded slowdown of a configuration."""
        return float(self.table["mean_bsld"][str(configuration)])

    def theirs(self, configuration: Configuration) -> float:
        """Return the published one, nan if there is none."""
        return float(self.table["published"][str(configuration)])


def load_traces(sources: Sequence[str], quick: bool) -> dict[str, tuple[str, Workload]]:
    """Return name -> source and jobs of each trace.

    Raises
    ------
    HpcgymError : a trace that cannot be read or has no requested times, or two of the same name.
    """
    found: dict[str, tuple[str, Workload]] = {}
    for source in sources:
        try:
            workload = load_trace(source, QUICK_JOBS if quick else None)
        except WorkloadError as error:
            raise _explained(source, error) from None
        if workload.name in found:
            raise HpcgymError(f"two workloads are called {workload.name}: {source} is one of them")
        found[workload.name] = source, workload
    return found


def _explained(source: str, error: WorkloadError) -> HpcgymError:
    """Return the error, or what can be done if the trace lacks requested times."""
    try:
        jobs = load_workload(source, clean="none")
    except WorkloadError:
        return error
    if (jobs.requested_time > 0).any():
        return error
    return HpcgymError(
        f"{source} has no requested times, which predictions are compared with: name another trace,"
        " or the generator, lublin:jobs=10000, which has them"
    )


def run_campaign(
    traces: Mapping[str, tuple[str, Workload]],
    configurations: Sequence[Configuration],
    folder: Path,
    executor: str | Executor,
    workers: int | None,
    *,
    quick: bool,
    progress: Progress,
) -> dict[str, pd.DataFrame]:
    """Simulate every configuration on every trace that has not been yet.

    Parameters
    ----------
    traces : name -> source and jobs.
    folder : where outcomes are kept, one line each.
    executor, workers : see :func:`hpcgym.sweep.run_tasks`.

    Returns
    -------
    Name of a trace -> a row for each configuration, by its text, with what it is and what
    :func:`simulations.simulate_one` returns.
    """
    hashed = code(*MODULES)
    tasks = {
        name: [
            {
                "trace": name,
                "first_jobs": QUICK_JOBS if quick else None,
                "jobs_sha256": fingerprint([workload]),
                "rules": one.words(),
                "eta": ETA,
                "l2": L2,
                "code": hashed,
            }
            for one in configurations
        ]
        for name, (_, workload) in traces.items()
    }
    _compile()
    run_all(
        partial(simulate_one, sources={name: source for name, (source, _) in traces.items()}),
        [task for one in tasks.values() for task in one],
        folder,
        executor,
        workers,
        of="simulations",
        what="simulations",
        progress=progress,
    )
    return {name: table_of(read_results(folder, tasks[name]), configurations) for name in traces}


def _compile() -> None:
    """Compile what learns in this process, so that workers find it in the cache."""
    simulate(load_workload("lublin:jobs=20,processors=8"), scheduler_of(E_LOSS_TRIPLE))


def table_of(
    records: Sequence[Mapping[str, Any]], configurations: Sequence[Configuration]
) -> pd.DataFrame:
    """Return a row for each configuration, by its text: what it is, and its outcome."""
    import pandas as pd

    rows = [{**record["task"]["rules"], **record["result"]} for record in records]
    index = pd.Index([str(one) for one in configurations], name="configuration")
    return pd.DataFrame(rows, index=index)


def findings_of(
    source: str,
    workload: Workload,
    configurations: Sequence[Configuration],
    table: pd.DataFrame,
    published: Published | None,
) -> Findings:
    """Return what came out on a trace, the published values beside ours."""
    found = table.copy()
    for measure in MEASURES:
        name = "published" if measure == "mean_bsld" else f"published {measure}"
        found[name] = float("nan") if published is None else published.table[measure]
    by_text = {str(one): one for one in configurations}
    return Findings(source, workload, published, found, by_text)
