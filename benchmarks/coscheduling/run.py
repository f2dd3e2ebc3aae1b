"""The whole study of co-scheduling: simulations, tables beside the published values, report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hpcgym import read_speedups
from hpcgym.benchmarks.coscheduling import runs, speed
from hpcgym.benchmarks.coscheduling.items import DAYS_AN_HOUR, IMPROVEMENTS
from hpcgym.benchmarks.coscheduling.runs import Sizes
from hpcgym.benchmarks.studies import tables
from hpcgym.benchmarks.studies.harness import Folder, Studied
from hpcgym.errors import check_whole
from hpcgym.naming import HOUR_S
from hpcgym.workload.archive import data_folders

#: Tasks, each with what its function returns of it.
Outcomes = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]

#: The document's simple co-scheduling, which the table of improvements is read to be of.
SIMPLE = "easy-co"
COSCHEDULERS = [name for name in runs.SCHEDULERS if name != runs.REFERENCE]
#: Schedulers of which it is shown whether later jobs overtake.
OVERTAKEN = [runs.REFERENCE, SIMPLE, "filler-co"]
CLOSE = 3.0  # percentage points
OF_RUNS = "mean over jobs"
#: Readings that differ in how nodes are chosen -> the rule.
PARTNERS = {runs.MAIN: "best", "filled nodes": "fill", "first partners": "first"}


def frame(outcomes: Outcomes) -> pd.DataFrame:
    """Return a row for each simulation: labels of its task, and its amounts.

    Columns are those of :func:`hpcgym.benchmarks.coscheduling.runs.amounts` and "improvement", the
    makespan of EASY over that of the scheduler - 1 [%]; "saved", 1 - the second over the first [%].
    """
    labels = ("part", "reading", "mean", "seed", "mix", "kind")
    rows = [
        {name: task.get(name) for name in labels} | {"mean pair": outcome["mean_pair"]} | row
        for task, outcome in outcomes
        for row in outcome["rows"]
    ]
    found = pd.DataFrame(rows)
    key = [*labels, "shuffle"]
    easy = found[found["scheduler"] == runs.REFERENCE].set_index(key)["makespan_s"]
    times = easy.reindex(pd.MultiIndex.from_frame(found[key])).to_numpy() / found["makespan_s"]
    return found.assign(improvement=100 * (times - 1), saved=100 * (1 - 1 / times))


# --- Mean speedups of pairs -----------------------------------------------------------------------


def by_heatmap(found: pd.DataFrame, reading: str, scheduler: str, what: str) -> pd.DataFrame:
    """Return an amount by mean speedup and heatmap, the mean over shuffles; (means, heatmaps)."""
    rows = found[(found["reading"] == reading) & (found["scheduler"] == scheduler)]
    return rows.pivot_table(what, "mean", "seed")


@tables.of_rows
def improvements(found: pd.DataFrame) -> tables.Rows:
    """Return the document's table under the main reading, of its simple co-scheduling."""
    gain, saved, speedup = (
        by_heatmap(found, runs.MAIN, SIMPLE, what)
        for what in ("improvement", "saved", "job_speedup")
    )

    for mean, published in IMPROVEMENTS.items():
        ours = gain.loc[mean].to_numpy()
        apart = float(ours.mean()) - published
        low, high = np.percentile(ours, [2.5, 97.5])
        row = {"mean pair speedup": f"{mean:.2f}", "published %": published}
        row |= {"ours %": float(ours.mean())}
        row |= {"95 % interval of the mean": tables.interval(ours, 1)}
        row |= {"apart (points)": f"{apart:+.1f}"}
        row |= {"within 3 points": "yes" if abs(apart) <= CLOSE else "no"}
        row |= {"95 % of heatmaps": f"{low:.1f} to {high:.1f}"}
        row |= {"makespan saved %": float(saved.loc[mean].to_numpy().mean())}
        yield row | {"job speedup (ratio)": float(speedup.loc[mean].to_numpy().mean())}


@tables.of_rows
def all_coschedulers(found: pd.DataFrame) -> tables.Rows:
    """Return improvements of all co-schedulers, by how nodes beside others are chosen [%]."""
    means = found.pivot_table("improvement", ["reading", "mean"], "scheduler")[COSCHEDULERS]
    gains: dict[Any, dict[Any, float]] = means.add_suffix(" %").to_dict("index")
    for (reading, partners), (mean, published) in product(PARTNERS.items(), IMPROVEMENTS.items()):
        if (reading, mean) in gains:
            row = {"partners": partners, "mean pair speedup": f"{mean:.2f}"}
            yield row | {"published %": published, **gains[reading, mean]}


@tables.of_rows
def by_reading(found: pd.DataFrame) -> tables.Rows:
    """Return improvements of the simple co-scheduling under each reading, less those published."""
    said = {name: (of.meaning, by_heatmap(found, name, SIMPLE, "improvement").mean(axis=1))
            for name, of in runs.READINGS.items() if name in set(found["reading"])}  # fmt: skip
    said[OF_RUNS] = "the speedup is the mean over the jobs of a run, not over pairs", at_runs(found)

    for name, (meaning, gain) in said.items():
        row: dict[str, Any] = {"reading": name, "what is read so": meaning}
        row |= {f"{mean:.2f} %": float(gain[mean]) for mean in IMPROVEMENTS}
        apart = [float(gain[mean]) - published for mean, published in IMPROVEMENTS.items()]
        row["apart (points)"] = ", ".join(f"{one:+.1f}" for one in apart)
        row["within 3 points"] = f"{sum(abs(one) <= CLOSE for one in apart)} of {len(apart)}"
        yield (row)


def at_runs(found: pd.DataFrame) -> pd.Series:
    """Return the improvement where the mean speedup of a run's jobs is as published.

    Of each series of heatmaps that differ in their mean alone, between the nearest two, linearly;
    the mean over the series that reach so far.
    """
    at, series = list(IMPROVEMENTS), []
    of_simple = found[(found["reading"] == runs.MAIN) & (found["scheduler"] == SIMPLE)]
    for _, of in of_simple.groupby("seed"):
        means = of.groupby("mean")[["job_speedup", "improvement"]].mean().sort_values("job_speedup")
        x, y = (means[name].to_numpy() for name in means)
        series.append(np.interp(at, x, y, left=np.nan, right=np.nan))
    return pd.DataFrame(series, columns=at).mean()


@tables.of_rows
def correlation(found: pd.DataFrame) -> tables.Rows:
    """Return how improvement and mean speedup go together over workloads and shuffles.

    A series is a heatmap with its four published means, and five shuffles of each: Pearson's
    correlation over these twenty. The document prints four means, whose correlation is beside it.
    """
    printed = tables.pearson(*map(np.array, zip(*IMPROVEMENTS.items(), strict=True)))
    simple = found[(found["scheduler"] == SIMPLE) & found["mean"].isin([*IMPROVEMENTS])]

    for name in PARTNERS:
        r = [
            tables.pearson(of["mean"].to_numpy(), of["improvement"].to_numpy())
            for _, of in simple[simple["reading"] == name].groupby("seed")
        ]
        if r:
            row = {"reading": name, "heatmaps": len(r), "above 0": int((np.array(r) > 0).sum())}
            yield (row | {"least": min(r), "mean": float(np.mean(r)), "published": printed})


# --- Mixes of process counts ----------------------------------------------------------------------


@tables.of_rows
def mixes(found: pd.DataFrame) -> tables.Rows:
    """Return improvements by mix of process counts, and who is overtaken by later jobs."""
    for (mix, kind), part in found.groupby(["mix", "kind"], sort=False):
        means = part.groupby("scheduler")[["improvement", "overtaken"]].mean()
        gain = part[part["scheduler"] == SIMPLE]["improvement"].to_numpy()
        yield (
            {"processes": mix, "speedups": kind}
            | {"mean pair speedup (ratio)": float(part["mean pair"].mean())}
            | means.loc[COSCHEDULERS, "improvement"].add_suffix(" %").to_dict()
            | {f"95 % interval of {SIMPLE}": tables.interval(gain, 1)}
            | means.loc[OVERTAKEN, "overtaken"].add_suffix(": overtaken").to_dict()
        )


def mix_utilisation(found: pd.DataFrame) -> pd.DataFrame:
    """Return the utilisation until the queue is empty by mix of process counts."""
    means = found.groupby(["mix", "kind", "scheduler"], sort=False)["utilisation"].mean()
    table = means.unstack(sort=False).add_suffix(" (share)").reset_index()
    return table.rename(columns={"mix": "processes", "kind": "speedups"}).rename_axis(columns=None)


# --- Simulated days an hour -----------------------------------------------------------------------


@tables.of_rows
def speeds(timings: Outcomes) -> tables.Rows:
    """Return simulated days an hour of sets of jobs beside the published."""
    for task, outcome in timings:
        known = task["scheduler"] != SIMPLE
        published = DAYS_AN_HOUR[task["jobs"]][task["cores"]] if known else np.nan
        ours = outcome["days"] / (outcome["cpu_s"] / HOUR_S)
        row = {name: task[name] for name in ("jobs", "cores", "scheduler")}
        row |= {"published days/h": published, "ours days/h": ours}
        row |= {"times as fast": ours / published}
        row |= {"simulated days": outcome["days"] / task["repeats"]}
        row |= {"ms a run": 1e3 * outcome["cpu_s"] / task["repeats"]}
        yield row | {"jobs a second": int(task["jobs"] * task["repeats"] / outcome["cpu_s"])}


# --- The report of the study ----------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(__file__, machine=speed.machine_name())

NO_MEASURED = """\
**Without measured speedups**: the mixes of process counts are left out. They need ELiSE's `{file}`,
in a folder of HPCGYM_DATA or named by `--speedups-file`.
"""


#: ELiSE's file of speedups measured on ARIS, NAS.
MEASURED_FILE = "lm-aris.compute-NAS.json"


def find_measured() -> Path | None:
    """Return the file of measured speedups if it is on this machine.

    It is looked for in the folders of ``HPCGYM_DATA``, and in folders ``coscheduling`` in or beside
    these.
    """
    places = [
        place
        for folder in data_folders()
        for place in (folder, folder / "coscheduling", folder.parent / "coscheduling")
    ]
    return next((at / MEASURED_FILE for at in places if (at / MEASURED_FILE).is_file()), None)


def reproduce(
    measured: Path | None, folder: Folder, *, heatmaps: int = Sizes.heatmaps, quick: bool = False
) -> Studied:
    """Run the study and write tables and a report; what was simulated before is kept.

    Parameters
    ----------
    measured : a file of speedups with processes and compact run times; None: without what needs it.
    folder : where the study is run; outcomes are in its folders ``tasks`` and ``timings``. What is
        timed always runs in this process.
    heatmaps : generated ones of each mean and reading.
    quick : a small cut, which is compared with nothing published.

    Returns
    -------
    The file of the report, and the tables by name: see
    :data:`TEXTS`.

    Raises
    ------
    HpcgymError : a number below 1, a file that cannot be read or written, or lacks codes, a
        simulation that fails, or no matplotlib.
    """
    check_whole("heatmaps", heatmaps, 1)
    folder.begin(HEAD)
    sizes = runs.QUICK if quick else Sizes(heatmaps=heatmaps)
    tasks = runs.of_pairs(sizes, quick)
    if measured is not None:
        tasks += runs.of_mixes(read_speedups(measured), sizes)
    measure = partial(runs.measure, measured=None if measured is None else str(measured))
    outcomes = list(zip(tasks, folder.run(measure, tasks, "sets of jobs"), strict=True))
    timed = speed.tasks_of(quick, speed.machine_name())
    here = replace(folder, executor="serial", workers=None)  # nothing else runs meanwhile
    timings = list(zip(timed, here.run(speed.measure, timed, "timings", "timings"), strict=True))
    head = HEAD.format(heatmaps=sizes.heatmaps)
    if measured is None:
        head += "\n" + NO_MEASURED.format(file=MEASURED_FILE)
    found = frame(outcomes)
    pairs, mixed = (found[found["part"] == part] for part in ("pairs", "mixes"))
    made = {
        "improvements": improvements(pairs),
        "correlation": correlation(pairs),
        "coschedulers": all_coschedulers(pairs),
        "readings": by_reading(pairs),
        "speed": speeds(timings),
    }
    if len(mixed):
        made |= {"mixes": mixes(mixed), "mix-utilisation": mix_utilisation(mixed)}
    return folder.publish(head, made, TEXTS, {}, "few jobs and heatmaps" * quick)
