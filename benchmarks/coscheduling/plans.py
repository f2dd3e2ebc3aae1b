"""The tasks of the study: which sets of jobs are simulated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hpcgym.benchmarks.coscheduling.published import IMPROVEMENTS
from hpcgym.benchmarks.coscheduling.readings import BEST, MAIN, READINGS, Reading
from hpcgym.benchmarks.coscheduling.runs import MEASURED, generated
from hpcgym.cluster.files import find_cluster
from hpcgym.errors import HpcgymError
from hpcgym.speedups import Heatmap

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
