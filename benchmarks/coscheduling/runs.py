"""What is simulated: sets of jobs under EASY and all co-schedulers, by readings of the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from hpcgym import Heatmap, HpcgymError, Result, Workload, generate_speedups, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.coscheduling.items import IMPROVEMENTS
from hpcgym.benchmarks.studies.harness import readings
from hpcgym.machine import find_cluster
from hpcgym.machine.speedups import find_speedups
from hpcgym.workload import Code, generate_code_jobs

# --- Simulations of the study ---------------------------------------------------------------------

REFERENCE = "easy"
SCHEDULERS = (REFERENCE, *COSCHEDULERS)

#: What stands in a task for the file of measured speedups, wherever that lies.
MEASURED = "measured"
#: Of measured run times, which are tens of seconds and are rounded up to whole ones: as NASx10.
LONGER = 10

_DRAWS = 2_000  # choices of codes, of which that with the nearest mean is taken

Task = dict[str, Any]
#: What is special in no task.
PLAIN: Task = dict.fromkeys(("codes", "chosen", "alone", "processes", "run_s"))
PLAIN |= {"alike": False, "rising": False, "arrivals": "at-once"}


def measure(task: Mapping[str, Any], measured: str | None) -> dict[str, Any]:
    """Simulate shuffles of a set of jobs under EASY and all co-schedulers.

    Parameters
    ----------
    task : "speedups", :data:`MEASURED` or what :func:`find_speedups` takes, and "digest" of them;
        "codes", names of those that jobs run, or None: all; "chosen", how many are chosen for
        "mean", or None; "alike", whether all pairs have the mean speedup; "alone", a rate or None;
        "processes" and "run_s" of codes whose speedups do not tell them, and whether they are
        "rising" with the code's mean speedup; "seed" of what is drawn; "jobs"; "arrivals";
        "cluster"; "rules" of co-schedulers; "shuffles", seeds.
    measured : the file of measured speedups, if a task is of them.

    Returns
    -------
    outcome : "mean_pair", the mean speedup of all pairs; "rows", of :func:`amounts` with "shuffle"
        and "scheduler".

    Raises
    ------
    HpcgymError : speedups that cannot be read here, or are others.
    """
    speedups = speedups_of(task, measured)
    cluster = find_cluster(task["cluster"])
    rows = []
    for shuffle in task["shuffles"]:
        jobs = jobs_of(task, speedups, cluster.processors, shuffle)
        for name in SCHEDULERS:
            rules = {} if name == REFERENCE else task["rules"]
            result = simulate(jobs, name, cluster=cluster, speedups=speedups, **rules)
            rows.append({"shuffle": shuffle, "scheduler": name, **amounts(result)})
    return {"mean_pair": float(speedups.filled.mean()), "rows": rows}


def amounts(result: Result) -> dict[str, float | None]:
    """Return what is compared of a schedule.

    Returns
    -------
    amounts : "makespan_s"; "job_speedup", mean over jobs; "utilisation", of :func:`utilisation`;
        "overtaken", share of pairs of jobs of which that behind in the queue starts first.
    """
    before, behind = np.triu_indices(len(result.start), 1)
    return {
        "makespan_s": float(result.metrics["makespan_s"]),
        "job_speedup": float(result.metrics["mean_job_speedup"]),
        "utilisation": utilisation(result),
        "overtaken": float((result.start[before] > result.start[behind]).mean()),
    }


def utilisation(result: Result) -> float | None:
    """Return the share of cores in use until the last job starts; None if all start at once.

    ELiSE, "Metrics": "the percentage of the system that is in use until the waiting queue is
    empty". Cores are in use if a process runs there.
    """
    begin, until = float(result.workload.submit_time.min()), float(result.start.max())
    if until <= begin:
        return None
    inside = np.minimum(result.end, until) - np.minimum(result.start, until)
    busy = float((result.workload.requested_processors * inside).sum())
    return busy / (result.cluster.processors * (until - begin))


# --- Speedups and jobs ----------------------------------------------------------------------------


def speedups_of(task: Mapping[str, Any], measured: str | None) -> Heatmap:
    """Return the speedups of a task; see :func:`measure`."""
    source = task["speedups"]
    if source == MEASURED:
        if measured is None:
            raise HpcgymError("a task is of measured speedups, and there is no file of them")
        source = measured
    speedups = find_speedups(source)
    if speedups.digest != task["digest"]:
        raise HpcgymError(f"{speedups.source} has other speedups than where the study was begun")
    if task["codes"] is not None:
        speedups = speedups.take(task["codes"])
    if task["chosen"] is not None:
        speedups = chosen(speedups, task["chosen"], task["mean"], task["seed"])
    if task["alike"]:
        mean = float(speedups.filled.mean())
        pairs = np.full(speedups.speedup.shape, mean)
        speedups = replace(speedups, speedup=pairs, alone=np.full(len(speedups), mean))
    if task["alone"] is not None:
        speedups = replace(speedups, alone=np.full(len(speedups), float(task["alone"])))
    return speedups


def chosen(speedups: Heatmap, number: int, mean: float, seed: int) -> Heatmap:
    """Return that many codes, whose mean speedup is the nearest to ``mean`` of 2,000 draws.

    What a code does alone is the greatest of what it does beside those chosen.
    """
    random = np.random.default_rng([seed, 3])
    best, found = np.inf, np.arange(number)
    for _ in range(_DRAWS):
        rows = np.sort(random.choice(len(speedups), number, replace=False))
        away = abs(speedups.filled[np.ix_(rows, rows)].mean() - mean)
        if away < best:
            best, found = away, rows
    taken = speedups.take([speedups.codes[row] for row in found.tolist()])
    return replace(taken, alone=np.full(number, np.nan))


def jobs_of(task: Mapping[str, Any], speedups: Heatmap, processors: int, shuffle: int) -> Workload:
    """Return a shuffle of the jobs of a task: each code equally often."""
    codes = codes_of(task, speedups)
    together = processors / np.mean([code.processes for code in codes])  # jobs at a time
    interval_s = float(np.mean([code.compact_s for code in codes])) / int(together)
    given = {"processors": processors, "seed": shuffle, "arrivals": task["arrivals"]}
    given["interval_s"] = None if task["arrivals"] == "at-once" else interval_s
    return generate_code_jobs(codes, task["jobs"], mix="shuffle", **given)


def codes_of(task: Mapping[str, Any], speedups: Heatmap) -> list[Code]:
    """Return the codes of a task; what their speedups do not tell is drawn, or as the task says."""
    if task["run_s"] is None:
        known = zip(
            speedups.codes, speedups.processes.tolist(), speedups.compact_s.tolist(), strict=True
        )
        return [Code(name, processes, LONGER * time) for name, processes, time in known]
    low, high = np.log(task["run_s"])
    times = np.exp(np.random.default_rng([task["seed"], 2]).uniform(low, high, len(speedups)))
    if task["rising"]:
        rank = speedups.filled.mean(axis=1).argsort().argsort()
        times = np.sort(times)[rank]
    names = zip(speedups.codes, times.tolist(), strict=True)
    return [Code(name, task["processes"], time) for name, time in names]


# --- What ELiSE does not say of its experiment, read in several ways ------------------------------

MAIN = "main"

#: [s] the shortest and the longest of the seven NAS codes of 256 processes measured on ARIS, ten
#: times as long, as in the load file NASx10, whose run times the document's table of jobs has.
RUN_S = [561.0, 1459.0]
#: Standard deviation of the measured speedups of NAS on Grvingt.
GRVINGT = 0.11
#: Of the main reading: each node is judged by itself.
BEST: Mapping[str, str | float] = {"partners": "best"}


@dataclass(frozen=True)
class Reading:
    """How the experiment of the table is read.

    Attributes
    ----------
    meaning : in words.
    codes : how many codes the jobs of a workload run.
    spread : standard deviation of the speedups of all pairs.
    run_s : compact run times are drawn between these [s], their logarithms uniformly.
    rising : the longest is that of the code that gains most on average beside the others, and so
        on.
    chosen_of : codes are chosen of so many, as those whose mean is the nearest of many draws; None:
        the heatmap has this mean.
    alone : rate on half sockets with nobody beside; None: the greatest of the code's speedups.
    arrivals : as :data:`hpcgym.workload.codes.ARRIVALS` has them.
    rules : of all co-schedulers, by the names of :class:`hpcgym.Scheduler`'s attributes.
    """

    meaning: str
    codes: int = 8
    spread: float = GRVINGT
    run_s: Sequence[float] = field(default_factory=lambda: RUN_S)
    rising: bool = False
    chosen_of: int | None = None
    alone: float | None = None
    arrivals: str = "at-once"
    rules: Mapping[str, str | float] = field(default_factory=lambda: BEST)


#: Name -> reading; the main one first.
READINGS = readings(Reading, __file__)


# --- The tasks of the study: which sets of jobs are simulated -------------------------------------

#: ELiSE: "cluster: 100 nodes, 48 cores", "Process count: 256", 500 jobs, 5 shuffles.
CLUSTER, PROCESSES, JOBS, SHUFFLES = "marconi", 256, 500, 5
#: 200 nodes of 2 x 10 cores: the document does not print a number, the machine is ARIS.
MEASURED_CLUSTER = "aris"
#: "64, 128, 512, 1024 process count", "4 workloads": one count more each.
COUNTS = (64, 128, 512, 1024)
#: What mixes are simulated with -> what is special in tasks of it.
KINDS: dict[str, Task] = {
    MEASURED: {"rules": BEST},
    "nodes in use first": {"rules": {"partners": "fill"}},
    "all pairs alike": {"rules": BEST, "alike": True},
}
#: Mean pair speedups beside the published ones, for what runs make of them.
MORE_MEANS = (0.95, 1.0, 1.035, 1.2, 1.25)
#: Of whom the heatmap "chosen codes" are chosen from has this mean.
OF_ALL = 1.1


@dataclass(frozen=True)
class Sizes:
    """How much is simulated.

    Attributes
    ----------
    heatmaps : generated ones of each reading and mean.
    shuffles : of the mixes of process counts.
    jobs : of each set.
    """

    heatmaps: int = 20
    shuffles: int = 20
    jobs: int = JOBS


QUICK = Sizes(heatmaps=2, shuffles=2, jobs=60)


#: Fields of a reading that its tasks have as they are.
_READ = ("alone", "run_s", "rising", "arrivals", "rules")


def of_pairs(sizes: Sizes, quick: bool) -> list[Task]:
    """Return the tasks of the table of mean speedups, under all readings."""
    tasks = []
    for name in [MAIN, "no spread"] if quick else READINGS:
        reading, means = READINGS[name], sorted([*IMPROVEMENTS, *(MORE_MEANS * (name == MAIN))])
        same: Task = {**PLAIN, **{field: getattr(reading, field) for field in _READ}}
        same |= {"part": "pairs", "reading": name, "processes": PROCESSES, "cluster": CLUSTER}
        same |= {"chosen": reading.codes if reading.chosen_of else None, "jobs": sizes.jobs}
        same |= {"shuffles": list(range(SHUFFLES))}
        for mean, seed in product(means, range(sizes.heatmaps)):
            of = (reading.chosen_of, OF_ALL) if reading.chosen_of else (reading.codes, mean)
            speedups = generate_speedups(*of, reading.spread, seed)
            drawn = {"speedups": speedups.source, "digest": speedups.digest}
            tasks.append({**same, "mean": mean, "seed": seed, **drawn})
    return tasks


def of_mixes(speedups: Heatmap, sizes: Sizes) -> list[Task]:
    """Return the tasks of mixes of process counts, of each of :data:`KINDS`.

    Raises
    ------
    HpcgymError : the speedups have no codes of some of these process counts.
    """
    of = list(zip(speedups.codes, speedups.processes.tolist(), strict=True))
    for count in COUNTS:
        if all(processes != count for _, processes in of):
            raise HpcgymError(f"{speedups.source} has no code of {count} processes")
    same = {**PLAIN, "part": "mixes", "seed": 0, "speedups": MEASURED, "digest": speedups.digest}
    same |= {"cluster": MEASURED_CLUSTER, "jobs": sizes.jobs}
    tasks = []
    for mix, (kind, special) in product(range(1, len(COUNTS) + 1), KINDS.items()):
        counts = COUNTS[:mix]
        codes = [name for name, processes in of if processes in counts]
        mixed = {**same, "mix": "+".join(map(str, counts)), "kind": kind, "codes": codes, **special}
        tasks += [{**mixed, "shuffles": [shuffle]} for shuffle in range(sizes.shuffles)]
    return tasks
