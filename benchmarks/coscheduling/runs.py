"""What is simulated: sets of jobs under EASY and all co-schedulers, by readings of the document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.benchmarks.coscheduling.published import IMPROVEMENTS
from hpcgym.benchmarks.studies.harness import readings
from hpcgym.errors import HpcgymError
from hpcgym.machine.files import find_cluster
from hpcgym.machine.pool import Cluster
from hpcgym.machine.speedups import Heatmap, find_speedups, generate_speedups
from hpcgym.schedule.result import Result
from hpcgym.simulation.run import simulate
from hpcgym.workload import Code, generate_code_jobs
from hpcgym.workload.model import Workload

# --- Simulations of the study ---------------------------------------------------------------------

REFERENCE = "easy"
SCHEDULERS = (REFERENCE, *COSCHEDULERS)

#: What stands in a task for the file of measured speedups, wherever that lies.
MEASURED = "measured"
#: Of measured run times, which are tens of seconds and are rounded up to whole ones: as NASx10.
LONGER = 10

_DRAWS = 2_000  # choices of codes, of which that with the nearest mean is taken


def measure(task: Mapping[str, Any], measured: str | None) -> dict[str, Any]:
    """Simulate shuffles of a set of jobs under EASY and all co-schedulers.

    Parameters
    ----------
    task : "speedups", :data:`MEASURED` or what :func:`find_speedups` takes, and "digest" of them;
        "codes", names of those that jobs run, or None: all; "chosen", how many are chosen for
        "mean", or None; "alike", whether all pairs have the mean speedup; "alone", a rate or None;
        "processes" and "run_s" of codes whose speedups do not tell them, and whether they are
        "rising" with the code's mean speedup; "seed" of what is drawn;
        "jobs"; "arrivals"; "cluster"; "rules" of co-schedulers; "shuffles", seeds; "files", what
        :func:`with_files` takes, or None.
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
    if task["files"] is not None:
        speedups, cluster = with_files(task, speedups, cluster)
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
    amounts : "makespan_s"; "job_speedup", mean over jobs; "slowed", share of jobs; "wait_s" and
        "bsld", means; "utilisation", of :func:`utilisation`; "congestion" of files, 1 without any.
    """
    metrics = result.metrics
    return {
        "makespan_s": float(metrics["makespan_s"]),
        "job_speedup": float(metrics["mean_job_speedup"]),
        "slowed": float(metrics["slowed_share"]),
        "wait_s": float(metrics["mean_wait_s"]),
        "bsld": float(metrics["mean_bsld"]),
        "utilisation": utilisation(result),
        "congestion": float(metrics.get("io_congestion", 1.0)),
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


def with_files(
    task: Mapping[str, Any], speedups: Heatmap, cluster: Cluster
) -> tuple[Heatmap, Cluster]:
    """Return codes that read and write, and a machine with a bandwidth.

    "files" of the task: "share", least and greatest of the codes' time, those between evenly, in an
    order drawn by "seed"; "demand_mb_s" of each core meanwhile; "bandwidth", over what all cores of
    the machine ask for together.
    """
    files = task["files"]
    order = np.random.default_rng([task["seed"], 4]).permutation(len(speedups))
    least, greatest = files["share"]
    share = np.linspace(least, greatest, len(speedups))[order]
    demand = np.where(share > 0, files["demand_mb_s"], 0.0)
    speedups = replace(speedups, io_share=share, io_demand_mb_s=demand)
    all_gb_s = cluster.processors * files["demand_mb_s"] / 1000
    return speedups, replace(cluster, io_bandwidth_gb_s=files["bandwidth"] * all_gb_s)


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
    at_once = task["arrivals"] == "at-once"
    return generate_code_jobs(
        codes,
        task["jobs"],
        processors=processors,
        seed=shuffle,
        mix="shuffle",
        arrivals=task["arrivals"],
        interval_s=None if at_once else interval_s,
    )


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


def generated(codes: int, mean: float, spread: float, seed: int) -> tuple[str, str]:
    """Return a text that stands for generated speedups, and their digest."""
    speedups = generate_speedups(codes, mean, spread, seed)
    return speedups.source, speedups.digest


# --- What ELiSE does not say of its experiment, read in several ways ------------------------------

MAIN = "main"

#: [s] the shortest and the longest of the seven NAS codes of 256 processes measured on ARIS, ten
#: times as long, as in the load file NASx10, whose run times the document's table of jobs has.
RUN_S = (561.0, 1459.0)
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
    run_s: Sequence[float] = RUN_S
    rising: bool = False
    chosen_of: int | None = None
    alone: float | None = None
    arrivals: str = "at-once"
    rules: Mapping[str, str | float] = field(default_factory=lambda: BEST)


#: Name -> reading; the main one first.
READINGS = readings(Reading, __file__)


# --- The tasks of the study: which sets of jobs are simulated -------------------------------------

Task = dict[str, Any]

#: ELiSE: "cluster: 100 nodes, 48 cores", "Process count: 256", 500 jobs, 5 shuffles.
CLUSTER, PROCESSES, JOBS, SHUFFLES = "marconi", 256, 500, 5
#: 200 nodes of 2 x 10 cores: issue and document do not print a name, the machine is ARIS.
MEASURED_CLUSTER = "aris"
#: "64, 128, 512, 1024 process count", "4 workloads": one count more each.
COUNTS = (64, 128, 512, 1024)
#: What mixes are simulated with -> what is special in tasks of it.
IN_USE, ALIKE = "nodes in use first", "all pairs alike"
KINDS: dict[str, Task] = {
    MEASURED: {"rules": BEST},
    IN_USE: {"rules": {"partners": "fill"}},
    ALIKE: {"rules": BEST, "alike": True},
}
#: Mean pair speedups beside the published ones, for what runs make of them.
MORE_MEANS = (0.95, 1.0, 1.035, 1.2, 1.25)
#: How much of their time codes read and write, from the least to the greatest share, and what each
#: core asks for meanwhile [MB/s]: assumptions.
SHARES = ((0.0, 0.4), (0.3, 0.7))
DEMAND_MB_S = 10.0
#: Bandwidths of the machine, over what all of its cores ask for together.
BANDWIDTHS = (1.0, 0.6, 0.3)
#: Mean pair speedup of these.
FILES_MEAN = 1.1
#: Of whom the heatmap "chosen codes" are chosen from has this mean.
OF_ALL = 1.1


@dataclass(frozen=True)
class Sizes:
    """How much is simulated.

    Attributes
    ----------
    heatmaps : generated ones of each reading and mean.
    shuffles : of the mixes of process counts.
    measured_shuffles : of sets of measured codes.
    jobs : of each set.
    """

    heatmaps: int = 20
    shuffles: int = 20
    measured_shuffles: int = 100
    jobs: int = JOBS


QUICK = Sizes(heatmaps=2, shuffles=2, measured_shuffles=6, jobs=60)


def of_pairs(sizes: Sizes, quick: bool) -> list[Task]:
    """Return the tasks of the table of mean speedups, under all readings."""
    names = [MAIN, "no spread"] if quick else list(READINGS)
    tasks = []
    for name in names:
        means = [*IMPROVEMENTS, *(MORE_MEANS if name == MAIN else ())]
        tasks += [
            _of_mean(name, READINGS[name], mean, seed, sizes.jobs)
            for mean in sorted(means)
            for seed in range(sizes.heatmaps)
        ]
    return tasks


def _of_mean(name: str, reading: Reading, mean: float, seed: int, jobs: int) -> Task:
    """Return a task with a generated heatmap of a mean."""
    if reading.chosen_of is None:
        source, digest = generated(reading.codes, mean, reading.spread, seed)
    else:
        source, digest = generated(reading.chosen_of, OF_ALL, reading.spread, seed)
    chosen = None if reading.chosen_of is None else reading.codes
    return _task(
        {"part": "pairs", "reading": name, "mean": mean, "seed": seed},
        speedups=source,
        digest=digest,
        chosen=chosen,
        alone=reading.alone,
        processes=PROCESSES,
        run_s=list(reading.run_s),
        rising=reading.rising,
        arrivals=reading.arrivals,
        rules=dict(reading.rules),
        cluster=CLUSTER,
        jobs=jobs,
        shuffles=list(range(SHUFFLES)),
    )


def of_files(sizes: Sizes) -> list[Task]:
    """Return the tasks of a file system that all jobs share, under the reading "filled nodes"."""
    reading = READINGS["filled nodes"]
    return [
        {
            **_of_mean("filled nodes", reading, FILES_MEAN, seed, sizes.jobs),
            "part": "files",
            "files": {"share": share, "demand_mb_s": DEMAND_MB_S, "bandwidth": bandwidth},
        }
        for share in map(list, SHARES)
        for bandwidth in BANDWIDTHS
        for seed in range(sizes.heatmaps)
    ]


def of_mixes(speedups: Heatmap, sizes: Sizes) -> list[Task]:
    """Return the tasks of mixes of process counts, of each of :data:`KINDS`.

    Raises
    ------
    HpcgymError : the speedups have no codes of some of these process counts.
    """
    tasks = []
    for mix in range(1, len(COUNTS) + 1):
        codes = codes_with(speedups, COUNTS[:mix])
        tasks += [
            _of_file(
                {"part": "mixes", "mix": mix_name(mix), "kind": kind},
                speedups,
                codes=codes,
                jobs=sizes.jobs,
                shuffles=[shuffle],
                **rules,
            )
            for kind, rules in KINDS.items()
            for shuffle in range(sizes.shuffles)
        ]
    return tasks


def of_shuffles(speedups: Heatmap, sizes: Sizes) -> list[Task]:
    """Return the tasks of shuffles of measured codes: all, and those that fit on half nodes."""
    half = find_cluster(MEASURED_CLUSTER).processors // 2
    of = zip(speedups.codes, speedups.processes.tolist(), strict=True)
    fitting = [name for name, size in of if size <= half]
    sets = {
        f"all {len(speedups)}": (list(speedups.codes), MEASURED),
        f"{len(fitting)} that fit on half nodes": (fitting, MEASURED),
        f"these, {IN_USE}": (fitting, IN_USE),
    }
    return [
        _of_file(
            {"part": "shuffles", "set": name},
            speedups,
            codes=codes,
            jobs=sizes.jobs,
            shuffles=[shuffle],
            **KINDS[kind],
        )
        for name, (codes, kind) in sets.items()
        for shuffle in range(sizes.measured_shuffles)
    ]


def mix_name(number: int) -> str:
    """Return what the mix of so many process counts is called."""
    return "+".join(map(str, COUNTS[:number]))


def codes_with(speedups: Heatmap, counts: Sequence[int]) -> list[str]:
    """Return the codes that have one of these numbers of processes.

    Raises
    ------
    HpcgymError : there are none of one of them.
    """
    of = list(zip(speedups.codes, speedups.processes.tolist(), strict=True))
    for count in counts:
        if all(processes != count for _, processes in of):
            raise HpcgymError(f"{speedups.source} has no code of {count} processes")
    return [name for name, processes in of if processes in counts]


def _of_file(labels: Task, speedups: Heatmap, **given: Any) -> Task:
    """Return a task with measured speedups, processes and run times."""
    return _task(
        {**labels, "seed": 0},
        speedups=MEASURED,
        digest=speedups.digest,
        cluster=MEASURED_CLUSTER,
        **given,
    )


def _task(labels: Task, **given: Any) -> Task:
    """Return a task with all that :func:`runs.measure` needs."""
    plain: Task = {
        "codes": None,
        "chosen": None,
        "alike": False,
        "alone": None,
        "processes": None,
        "run_s": None,
        "rising": False,
        "arrivals": "at-once",
        "rules": {},
        "files": None,
    }
    return {**labels, **plain, **given}
