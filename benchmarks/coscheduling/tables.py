"""Tables and report of the study of co-scheduling, ours beside the published values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpcgym.benchmarks.coscheduling import runs
from hpcgym.benchmarks.coscheduling.published import IMPROVEMENTS, TRACES
from hpcgym.benchmarks.coscheduling.speed import machine_name
from hpcgym.benchmarks.studies import tables
from hpcgym.benchmarks.studies.tables import pearson
from hpcgym.naming import HOUR_S

# --- The tables of the study, ours beside the published values ------------------------------------

Floats = NDArray[np.float64]
#: Tasks, each with what :func:`runs.measure` returns of it.
Outcomes = Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]

#: The document's simple co-scheduling, which the table of improvements is read to be of.
SIMPLE = "easy-co"
COSCHEDULERS = [name for name in runs.SCHEDULERS if name != runs.REFERENCE]
#: Those under which jobs share nodes.
SHARING = [name for name in COSCHEDULERS if name != "easy-spread"]
#: Schedulers in the table of files.
OF_FILES = (runs.REFERENCE, "easy-spread", SIMPLE, "sjf-co")
CLOSE = 3.0  # percentage points
OF_RUNS = "mean over jobs"
#: Readings that differ in how nodes are chosen -> the rule.
PARTNERS = {runs.MAIN: "best", "filled nodes": "fill", "first partners": "first"}


def values(outcome: Mapping[str, Any], scheduler: str, what: str) -> Floats:
    """Return an amount of each shuffle; None becomes NaN.

    ``what`` is one of :func:`runs.amounts`; "improvement", the makespan of EASY over that of the
    scheduler - 1 [%]; or "saved", 1 - the makespan of the scheduler over that of EASY [%].
    """
    by_name = {name: _rows(outcome, name) for name in (scheduler, runs.REFERENCE)}
    if what in ("improvement", "saved"):
        ours = _column(by_name[scheduler], "makespan_s")
        reference = _column(by_name[runs.REFERENCE], "makespan_s")
        share = reference / ours - 1 if what == "improvement" else 1 - ours / reference
        return 100 * share
    return _column(by_name[scheduler], what)


def text_of(mean: float) -> str:
    """Return a mean speedup as the document prints it."""
    return f"{mean:.2f}"


def _rows(outcome: Mapping[str, Any], scheduler: str) -> list[Mapping[str, Any]]:
    return [row for row in outcome["rows"] if row["scheduler"] == scheduler]


def _column(rows: Iterable[Mapping[str, Any]], what: str) -> Floats:
    return np.array([np.nan if row[what] is None else row[what] for row in rows], np.float64)


# --- Mean speedups of pairs -----------------------------------------------------------------------


def over_heatmaps(outcomes: Outcomes, reading: str, scheduler: str, what: str) -> dict[float, Any]:
    """Return mean speedup -> an amount of each heatmap, the mean over its shuffles."""
    found: dict[float, list[float]] = {}
    for task, outcome in outcomes:
        if task["reading"] == reading:
            mean = float(values(outcome, scheduler, what).mean())
            found.setdefault(task["mean"], []).append(mean)
    return {mean: np.array(of) for mean, of in sorted(found.items())}


def improvements(outcomes: Outcomes) -> pd.DataFrame:
    """Return the document's table under the main reading, of its simple co-scheduling."""
    found = {
        what: over_heatmaps(outcomes, runs.MAIN, SIMPLE, what)
        for what in ("improvement", "saved", "job_speedup")
    }
    rows = []
    for mean, published in IMPROVEMENTS.items():
        ours = found["improvement"][mean]
        apart = float(ours.mean()) - published
        low, high = np.percentile(ours, [2.5, 97.5])
        rows.append(
            {
                "mean pair speedup": text_of(mean),
                "published %": published,
                "ours %": float(ours.mean()),
                "95 % interval of the mean": tables.interval(ours, 1),
                "apart (points)": f"{apart:+.1f}",
                "within 3 points": "yes" if abs(apart) <= CLOSE else "no",
                "95 % of heatmaps": f"{low:.1f} to {high:.1f}",
                "makespan saved %": float(found["saved"][mean].mean()),
                "job speedup (ratio)": float(found["job_speedup"][mean].mean()),
            }
        )
    return pd.DataFrame(rows)


def all_coschedulers(outcomes: Outcomes) -> pd.DataFrame:
    """Return improvements of all co-schedulers, by how nodes beside others are chosen [%]."""
    rows = []
    for reading, partners in PARTNERS.items():
        gains = {
            name: over_heatmaps(outcomes, reading, name, "improvement") for name in COSCHEDULERS
        }
        for mean, published in IMPROVEMENTS.items() if gains[SIMPLE] else ():
            row = {
                "partners": partners,
                "mean pair speedup": text_of(mean),
                "published %": published,
            }
            rows.append(row | {f"{name} %": float(of[mean].mean()) for name, of in gains.items()})
    return pd.DataFrame(rows)


def by_reading(outcomes: Outcomes) -> pd.DataFrame:
    """Return improvements of the simple co-scheduling under each reading, less those published."""
    rows = []
    for name, reading in runs.READINGS.items():
        found = over_heatmaps(outcomes, name, SIMPLE, "improvement")
        if found:
            ours = {mean: float(found[mean].mean()) for mean in IMPROVEMENTS}
            rows.append(_reading_row(name, reading.meaning, ours))
    rows.append(
        _reading_row(
            OF_RUNS,
            "the speedup is the mean over the jobs of a run, not over pairs",
            at_runs(outcomes),
        )
    )
    return pd.DataFrame(rows)


def _reading_row(name: str, meaning: str, ours: Mapping[float, float]) -> dict[str, Any]:
    row: dict[str, Any] = {"reading": name, "what is read so": meaning}
    row |= {f"{text_of(mean)} %": ours[mean] for mean in IMPROVEMENTS}
    apart = np.array([ours[mean] - published for mean, published in IMPROVEMENTS.items()])
    row["apart (points)"] = ", ".join(f"{one:+.1f}" for one in apart)
    row["within 3 points"] = f"{int((np.abs(apart) <= CLOSE).sum())} of {len(apart)}"
    return row


def at_runs(outcomes: Outcomes) -> dict[float, float]:
    """Return the improvement where the mean speedup of a run's jobs is as published.

    Of each series of heatmaps that differ in their mean alone, between the nearest two, linearly;
    the mean over the series that reach so far.
    """
    speedups = over_heatmaps(outcomes, runs.MAIN, SIMPLE, "job_speedup")
    gains = over_heatmaps(outcomes, runs.MAIN, SIMPLE, "improvement")
    x, y = np.array(list(speedups.values())), np.array(list(gains.values()))
    found = {}
    for published in IMPROVEMENTS:
        at = [_between(x[:, k], y[:, k], published) for k in range(x.shape[1])]
        found[published] = float(np.mean([one for one in at if np.isfinite(one)] or [np.nan]))
    return found


def _between(x: Floats, y: Floats, at: float) -> float:
    """Return y at a place, linearly; NaN beyond the ends."""
    order = np.argsort(x)
    return float(np.interp(at, x[order], y[order], left=np.nan, right=np.nan))


# --- Files ----------------------------------------------------------------------------------------


def files(outcomes: Outcomes) -> pd.DataFrame:
    """Return what a shared file system leaves of the gain over EASY, by its bandwidth."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for task, outcome in outcomes:
        low, high = (round(100 * share) for share in task["files"]["share"])
        case = f"{low} to {high} %", f"{task['files']['bandwidth']:.0%}"
        found.setdefault(case, []).append(outcome)
    rows = []
    for (share, bandwidth), of in found.items():
        for name in OF_FILES:
            # a heatmap is one: the mean over its shuffles
            gain = np.array([values(one, name, "improvement").mean() for one in of])
            rows.append(
                {
                    "I/O of codes": share,
                    "bandwidth": bandwidth,
                    "scheduler": name,
                    "makespan (h)": float(pooled(of, name, "makespan_s").mean()) / HOUR_S,
                    "improvement %": float(gain.mean()),
                    "95 % interval": "" if name == runs.REFERENCE else tables.interval(gain, 1),
                    "mean BSLD": float(pooled(of, name, "bsld").mean()),
                    "job speedup (ratio)": float(pooled(of, name, "job_speedup").mean()),
                    "I/O congestion": float(pooled(of, name, "congestion").mean()),
                }
            )
    return pd.DataFrame(rows)


# --- Mixes and shuffles ---------------------------------------------------------------------------


def mixes(outcomes: Outcomes) -> pd.DataFrame:
    """Return improvements and utilisations by mix of process counts."""
    rows = []
    for (mix, kind), of in _by_mix(outcomes).items():
        row: dict[str, Any] = {
            "processes": mix,
            "speedups": kind,
            "mean pair speedup (ratio)": of[0]["mean_pair"],
        }
        for name in COSCHEDULERS:
            row[f"{name} %"] = float(pooled(of, name, "improvement").mean())
        row[f"95 % interval of {SIMPLE}"] = tables.interval(pooled(of, SIMPLE, "improvement"), 1)
        rows.append(row)
    return pd.DataFrame(rows)


def mix_utilisation(outcomes: Outcomes) -> pd.DataFrame:
    """Return the utilisation until the queue is empty by mix of process counts."""
    rows = []
    for (mix, kind), of in _by_mix(outcomes).items():
        row: dict[str, Any] = {"processes": mix, "speedups": kind}
        for name in runs.SCHEDULERS:
            row[f"{name} (share)"] = float(np.nanmean(pooled(of, name, "utilisation")))
        rows.append(row)
    return pd.DataFrame(rows)


def _by_mix(outcomes: Outcomes) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Return mix and kind -> outcomes."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for task, outcome in outcomes:
        found.setdefault((task["mix"], task["kind"]), []).append(outcome)
    return found


def pooled(outcomes: Sequence[Mapping[str, Any]], scheduler: str, what: str) -> Floats:
    """Return an amount of all shuffles of some outcomes."""
    return np.concatenate([values(outcome, scheduler, what) for outcome in outcomes])


def by_set(outcomes: Outcomes) -> dict[str, list[Mapping[str, Any]]]:
    """Return set of measured codes -> the outcomes of its shuffles."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for task, outcome in outcomes:
        found.setdefault(task["set"], []).append(outcome)
    return found


def against_easy(outcomes: Outcomes) -> pd.DataFrame:
    """Return what each co-scheduler gains over EASY, over shuffles of measured codes."""
    rows = [
        {"codes": codes, "scheduler": name, **_beside_easy(of, name)}
        for codes, of in by_set(outcomes).items()
        for name in runs.SCHEDULERS
    ]
    return pd.DataFrame(rows)


def _beside_easy(of: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    """Return means over shuffles, and what there is of EASY itself."""
    gain = pooled(of, name, "improvement")
    reference = name == runs.REFERENCE
    return {
        "improvement %": float(gain.mean()),
        "95 % interval": "" if reference else tables.interval(gain, 1),
        "better than EASY": "" if reference else f"{int((gain > 0).sum())} of {len(gain)}",
        "job speedup (ratio)": float(pooled(of, name, "job_speedup").mean()),
        "share of jobs slowed": float(pooled(of, name, "slowed").mean()),
        "utilisation (share)": float(np.nanmean(pooled(of, name, "utilisation"))),
        "mean wait (h)": float(pooled(of, name, "wait_s").mean()) / HOUR_S,
    }


def correlations(outcomes: Outcomes) -> pd.DataFrame:
    """Return how improvements over shuffles go together with job speedups and utilisations.

    Also of the means of the co-schedulers under which jobs share nodes.
    """
    rows = []
    for codes, of in by_set(outcomes).items():
        amounts = {
            what: [pooled(of, name, what) for name in SHARING]
            for what in ("improvement", "job_speedup", "utilisation")
        }
        means = {what: np.array([np.nanmean(one) for one in a]) for what, a in amounts.items()}
        series = {
            name: {what: a[k] for what, a in amounts.items()} for k, name in enumerate(SHARING)
        }
        for name, one in (series | {"means of these": means}).items():
            row: dict[str, Any] = {"codes": codes, "scheduler": name}
            for what in ("job_speedup", "utilisation"):
                row[what.replace("_", " ")] = _correlation(one[what], one["improvement"])
            rows.append(row)
    return pd.DataFrame(rows)


def _correlation(x: Floats, y: Floats) -> str:
    """Return Pearson's correlation with the 95 % interval of resamples."""
    drawn = np.random.default_rng(0).integers(0, len(x), (2_000, len(x)))
    resampled = np.array([pearson(x[rows], y[rows]) for rows in drawn])
    known = resampled[np.isfinite(resampled)]
    low, high = np.percentile(known, [2.5, 97.5]) if len(known) else (np.nan, np.nan)
    return f"{pearson(x, y):+.2f} [{low:+.2f}, {high:+.2f}]"


# --- The report of the study ----------------------------------------------------------------------

#: What reports of this study begin with; of each table its heading, and what is said below it.
HEAD, TEXTS = tables.read_texts(
    __file__, machine=machine_name(), fcfs=TRACES["KIT-FH2"]["fcfs"], easy=TRACES["KIT-FH2"]["easy"]
)

NO_MEASURED = """\
**Without measured speedups**: the mixes of process counts and the shuffles of measured codes are
left out. They need ELiSE's `{file}`, in a folder of HPCGYM_DATA or named by `--speedups-file`.
"""
