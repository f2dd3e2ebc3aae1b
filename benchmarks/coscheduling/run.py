"""The whole study of co-scheduling: simulations, tables beside the published values, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import read_speedups
from hpcgym.benchmarks.coscheduling import items, runs, speed
from hpcgym.benchmarks.coscheduling.items import COSCHEDULED, DAYS_AN_HOUR, IMPROVEMENTS, MIXES
from hpcgym.benchmarks.coscheduling.runs import Sizes
from hpcgym.benchmarks.studies import tables
from hpcgym.benchmarks.studies.harness import Folder, Studied
from hpcgym.errors import check_whole
from hpcgym.units import HOUR_S
from hpcgym.workload.archive import data_folders

#: Tasks, each with what its function returns of it.
Outcomes = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]


def frame(outcomes: Outcomes) -> pd.DataFrame:
    """Return a row for each simulation: labels of its task, and its amounts.

    Columns are those of :func:`hpcgym.benchmarks.coscheduling.runs.amounts` and "improvement", the
    makespan of EASY over that of the scheduler - 1 [%].
    """
    labels = ("reading", "mean", "seed", "mix")
    rows = [
        {name: task.get(name) for name in labels} | {"mean pair": outcome["mean_pair"]} | row
        for task, outcome in outcomes
        for row in outcome["rows"]
    ]
    table = pd.DataFrame(rows)
    by_set = table.groupby([*labels, "shuffle"], dropna=False)["makespan_s"]
    easy = by_set.transform("first")  # each set is scheduled by EASY first
    return table.assign(improvement=100 * (easy / table["makespan_s"] - 1))


@tables.of_rows
def improvements(table: pd.DataFrame) -> tables.Rows:
    """Return the paper's table by reading, and how improvement and mean speedup go together.

    Improvements are means over parts of the heatmap, and these over shuffles. A series is a shuffle
    of all parts: Pearson's correlation of mean pair speedup and improvement over these.
    """
    for name, of in table[table["scheduler"] == runs.SIMPLE].groupby("reading", sort=False):
        gain = of.pivot_table("improvement", "mean", "seed").mean(axis=1)
        apart = [float(gain[mean]) - published for mean, published in IMPROVEMENTS.items()]
        series = [
            tables.pearson(by_part["mean pair"].to_numpy(), by_part["improvement"].to_numpy())
            for _, by_part in of.groupby("shuffle")
        ]
        row: dict[str, Any] = {"reading": name, "what is read so": runs.READINGS[str(name)].meaning}
        row |= {f"{mean:g} %": float(gain[mean]) for mean in IMPROVEMENTS}
        row["apart (points)"] = ", ".join(f"{points:+.1f}" for points in apart)
        row |= {"series": len(series), "above 0": sum(r > 0 for r in series)}
        yield row | {"least correlation": min(series), "mean correlation": float(np.mean(series))}


@tables.of_rows
def mixes(table: pd.DataFrame) -> tables.Rows:
    """Return improvements by mix of process counts, who is overtaken, and how much is in use."""
    for (name, mix), part in table.groupby(["reading", "mix"], sort=False):
        amounts = ["improvement", "overtaken", "utilisation"]
        means = part.groupby("scheduler", sort=False)[amounts].mean()
        both = means.loc[[runs.REFERENCE, *COSCHEDULED]]
        yield (
            {"reading": name, "processes": mix}
            | {"mean pair speedup (ratio)": float(part["mean pair"].mean())}
            | {f"published {scheduler} %": gain for scheduler, gain in MIXES[str(mix)].items()}
            | means["improvement"].drop(runs.REFERENCE).add_suffix(" %").to_dict()
            | both["overtaken"].add_suffix(": overtaken").to_dict()
            | both["utilisation"].add_suffix(" (share)").to_dict()
        )


# --- Simulated days an hour -----------------------------------------------------------------------


@tables.of_rows
def speeds(timings: Outcomes) -> tables.Rows:
    """Return simulated days an hour of sets of jobs beside the published."""
    for task, outcome in timings:
        published = DAYS_AN_HOUR.get((task["scheduler"], task["jobs"], task["cores"]), np.nan)
        ours = outcome["days"] / (outcome["cpu_s"] / HOUR_S)
        row = {name: task[name] for name in ("jobs", "cores", "scheduler")}
        row |= {"published days/h": published, "ours days/h": ours}
        row |= {"simulated days": outcome["days"] / task["repeats"]}
        yield row | {"ms a run": 1e3 * outcome["cpu_s"] / task["repeats"]}


# --- The report of the study ----------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, machine=speed.machine_name())

#: ELiSE's file of speedups measured on ARIS, NAS.
MEASURED_FILE = "lm-aris.compute-NAS.json"


def find_measured() -> Path | None:
    """Return the file of measured speedups if it is on this machine.

    It is looked for in the folders of ``HPCGYM_DATA``, and in folders ``coscheduling`` in or beside
    these.
    """
    within = "", "coscheduling", "../coscheduling"
    files = [folder / each / MEASURED_FILE for folder in data_folders() for each in within]
    return next((file for file in files if file.exists()), None)


def reproduce(
    measured: Path | None, folder: Folder, *, heatmaps: int = Sizes.heatmaps, quick: bool = False
) -> Studied:
    """Run the study; see :mod:`hpcgym.benchmarks.studies.harness`.

    Parameters
    ----------
    measured : a file of speedups with processes and compact run times; None: without what needs it.
    folder : where the study is run; outcomes are in its folders ``tasks`` and ``timings``. What is
        timed always runs in this process.
    heatmaps : parts of Marconi's heatmap for each mean, at most.
    quick : few jobs and parts of the heatmap.

    Raises
    ------
    HpcgymError : a number below 1, a file that cannot be read or written, or lacks codes, a
        simulation that fails, or no matplotlib.
    """
    check_whole("heatmaps", heatmaps, 1)
    folder.begin(HEAD)
    sizes = runs.QUICK if quick else Sizes(heatmaps=heatmaps)
    pairs = runs.of_pairs(sizes)
    mixed = [] if measured is None else runs.of_mixes(read_speedups(measured), sizes)
    measure = partial(runs.measure, measured=None if measured is None else str(measured))
    outcomes = list(folder.run(measure, [*pairs, *mixed], "sets of jobs"))
    timed = speed.tasks_of(quick, speed.machine_name())
    here = replace(folder, executor="serial", workers=None)  # nothing else runs meanwhile
    timings = list(zip(timed, here.run(speed.measure, timed, "timings", "timings"), strict=True))
    without = "" if measured else "\n" + items.NOTES["no_measured"].format(file=MEASURED_FILE)
    made = {"improvements": improvements(frame([*zip(pairs, outcomes, strict=False)]))}
    if mixed:
        made["mixes"] = mixes(frame([*zip(mixed, outcomes[len(pairs) :], strict=True)]))
    made["speed"] = speeds(timings)
    cut = "few jobs and parts of the heatmap" * quick
    return folder.publish(HEAD + without, made, TEXTS, {}, cut)
