"""What is simulated: sets of jobs under EASY and co-schedulers, by readings of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from hpcgym import Heatmap, HpcgymError, Result, Scheduler, Workload, read_speedups, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS, find_scheduler
from hpcgym.benchmarks.coscheduling.items import IMPROVEMENTS, MIXES
from hpcgym.benchmarks.studies.harness import readings
from hpcgym.machine import find_cluster
from hpcgym.workload import Code, generate_code_jobs

REFERENCE, SIMPLE = "easy", "easy-co"

# --- How the experiments are read -----------------------------------------------------------------

#: ELiSE's backfilling: the job that came first has a reservation, and of the next hundred start
#: those that are over by then as requested.
FIRST_COME: Mapping[str, Any] = {"backfill": "first-come:100"}
#: Idle cores; `free` is the share of half nodes, so this is a whole number up to rounding.
_IDLE = "floor({cores} * free + 0.5)"
#: ELiSE's "Algorithm 2: Filler Co-Scheduler": how well a job fits the idle cores, over its number
#: as a part of how many wait.
FILLER = f"(1 - ({_IDLE} - processors) / {_IDLE} if fits else -1) / (job / queued)"
#: [s] the shortest and the longest of the seven NAS codes of 256 processes measured on ARIS, ten
#: times as long, as in the load file NASx10, whose run times the slides' table of jobs has.
RUN_S = (561.0, 1459.0)


@dataclass(frozen=True)
class Reading:
    """How the experiments are read.

    Attributes
    ----------
    meaning : in words.
    run_s : compact run times of Marconi's codes are drawn between these [s], their logarithms
        uniformly.
    easy, rules : of EASY and of all co-schedulers, by the names of :class:`hpcgym.Scheduler`'s
        attributes.
    filler : the order of the filler, on so many ``cores``; "": that of hpcgym.
    aris : the machine of mixes of ARIS's codes.
    """

    meaning: str
    run_s: Sequence[float] = RUN_S
    easy: Mapping[str, Any] = field(default_factory=lambda: FIRST_COME)
    rules: Mapping[str, Any] = field(default_factory=lambda: {**FIRST_COME, "partners": "used"})
    filler: str = FILLER
    aris: str = "aris"


#: Name -> reading; the judged one first.
READINGS = readings(Reading, __file__)
MAIN = next(iter(READINGS))


# --- The tasks: which sets of jobs are simulated --------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """How much is simulated: parts of the heatmap for each mean, shuffles, jobs.

    The paper has 500 jobs, and "four shuffled experiments" of each set.
    """

    heatmaps: int = 12
    shuffles: int = 4
    jobs: int = 500


QUICK = Sizes(heatmaps=2, shuffles=2, jobs=60)

#: The heatmap that figure 2 of the paper prints with two digits, and the machine that it is of.
MARCONI, ROUNDING, PROCESSES = Path(__file__).with_name("marconi.csv"), 0.005 + 1e-9, 256
#: "64, 128, 256, 512, and 1024 process counts".
COUNTS = (64, 128, 256, 512, 1024)
#: Of measured run times, which are tens of seconds and are rounded up to whole ones: as NASx10.
LONGER = 10


def parts_of(speedups: Heatmap, mean: float, most: int) -> list[list[str]]:
    """Return choices of three codes or more whose pairs have a mean speedup, at most so many."""
    parts = [
        [speedups.codes[row] for row in rows]
        for number in range(3, len(speedups) + 1)
        for rows in combinations(range(len(speedups)), number)
        if abs(speedups.filled[np.ix_(rows, rows)].mean() - mean) <= ROUNDING
    ]
    chosen = np.random.default_rng(0).permutation(len(parts))[:most]
    return [parts[place] for place in sorted(chosen.tolist())]


def of_pairs(sizes: Sizes) -> list[dict[str, Any]]:
    """Return the tasks of the table of mean speedups, under all readings."""
    speedups = read_speedups(MARCONI)
    same = {"part": "pairs", "jobs": sizes.jobs, "shuffles": [*range(sizes.shuffles)]}
    same["schedulers"] = [REFERENCE, SIMPLE]
    return [
        {**same, **asdict(reading), "reading": name, "mean": mean, "seed": seed, "codes": codes}
        for (name, reading), mean in product(READINGS.items(), IMPROVEMENTS)
        if reading.aris == Reading.aris
        for seed, codes in enumerate(parts_of(speedups, mean, sizes.heatmaps))
    ]


def of_mixes(speedups: Heatmap, sizes: Sizes) -> list[dict[str, Any]]:
    """Return the tasks of mixes of process counts, of measured speedups.

    Raises
    ------
    HpcgymError : the speedups have no codes of some of these process counts.
    """
    of = dict(zip(speedups.codes, speedups.processes.tolist(), strict=True))
    if missing := [count for count in COUNTS if count not in of.values()]:
        raise HpcgymError(f"{speedups.source} has no code of {missing[0]} processes")
    same = {"part": "mixes", "jobs": sizes.jobs, "digest": speedups.digest}
    same["schedulers"] = [REFERENCE, *COSCHEDULERS]
    tasks = []
    for mix, (name, reading), shuffle in product(MIXES, READINGS.items(), range(sizes.shuffles)):
        counts = COUNTS if mix == "all" else [int(count) for count in mix.split("/")]
        codes = [code for code, processes in of.items() if processes in counts]
        given = {"reading": name, "mix": mix, "codes": codes, "shuffles": [shuffle]}
        if reading.run_s == RUN_S:  # that of these codes is measured
            tasks.append({**same, **asdict(reading), **given})
    return tasks


# --- Simulations ----------------------------------------------------------------------------------


def measure(task: Mapping[str, Any], measured: str | None) -> dict[str, Any]:
    """Simulate shuffles of a set of jobs under several schedulers.

    Parameters
    ----------
    task : "part", "pairs" of Marconi's codes or "mixes" of measured ones, with the "digest" of
        these; "codes", names of those that jobs run; "seed" of what is drawn; "jobs", how many;
        "shuffles", seeds; "schedulers", names; and what a reading has.
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
    cluster = find_cluster("marconi" if task["part"] == "pairs" else task["aris"])
    rows = []
    for shuffle in task["shuffles"]:
        jobs = jobs_of(task, speedups, cluster.processors, shuffle)
        for name in task["schedulers"]:
            scheduler = scheduler_of(name, task, cluster.processors)
            result = simulate(jobs, scheduler, cluster=cluster, speedups=speedups)
            rows.append({"shuffle": shuffle, "scheduler": name, **amounts(result)})
    return {"mean_pair": float(speedups.filled.mean()), "rows": rows}


def scheduler_of(name: str, reading: Mapping[str, Any], cores: int) -> Scheduler:
    """Return a scheduler by the rules of a reading, on a machine of so many cores."""
    rules = dict(reading["easy"] if name == REFERENCE else reading["rules"])
    if name == "filler-co" and reading["filler"]:
        rules["policy"] = reading["filler"].format(cores=cores)
    return find_scheduler(name).but(**rules)


def amounts(result: Result) -> dict[str, float | None]:
    """Return what is compared of a schedule.

    Returns
    -------
    amounts : "makespan_s"; "utilisation", the share of cores on which a process runs until the last
        job starts ("the percentage of the system that is in use until the waiting queue is empty"),
        None if all start at once; "overtaken", share of pairs of jobs of which that behind in the
        queue starts first.
    """
    before, behind = np.triu_indices(len(result.start), 1)
    begin, until = float(result.workload.submit_time.min()), float(result.start.max())
    inside = np.minimum(result.end, until) - np.minimum(result.start, until)
    busy = float((result.workload.requested_processors * inside).sum())
    room = result.cluster.processors * (until - begin)
    return {
        "makespan_s": float(result.metrics["makespan_s"]),
        "utilisation": busy / room if room > 0 else None,
        "overtaken": float((result.start[before] > result.start[behind]).mean()),
    }


def speedups_of(task: Mapping[str, Any], measured: str | None) -> Heatmap:
    """Return the speedups of a task; what a code does alone is the greatest of its row."""
    if task["part"] == "mixes" and measured is None:
        raise HpcgymError("a task is of measured speedups, and there is no file of them")
    speedups = read_speedups(MARCONI if task["part"] == "pairs" else str(measured))
    if task.get("digest", speedups.digest) != speedups.digest:
        raise HpcgymError(f"{speedups.source} has other speedups than where the study was begun")
    return replace(speedups.take(task["codes"]), alone=np.full(len(task["codes"]), np.nan))


def jobs_of(task: Mapping[str, Any], speedups: Heatmap, processors: int, shuffle: int) -> Workload:
    """Return a shuffle of the jobs of a task, each code equally often; all come at once."""
    counts, times = speedups.processes.tolist(), LONGER * speedups.compact_s
    if task["part"] == "pairs":  # what the paper does not tell of Marconi
        random = np.random.default_rng([task["seed"], 2])
        low, high = np.log(task["run_s"])
        times = np.exp(random.uniform(low, high, len(speedups)))
        counts = [PROCESSES] * len(speedups)
    codes = [Code(*of) for of in zip(speedups.codes, counts, times.tolist(), strict=True)]
    return generate_code_jobs(
        codes, task["jobs"], mix="shuffle", processors=processors, seed=shuffle
    )
