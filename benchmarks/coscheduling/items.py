"""What ELiSE prints of results, and its items with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import pandas as pd

from hpcgym.benchmarks.studies import items

# --- What ELiSE prints of its results -------------------------------------------------------------

_PRINTED = {table: [row[1:] for row in items.csv_cells(__file__) if row[0] == table]
            for table in ("improvements", "days an hour")}  # fmt: skip

#: "MJS & MS correlation": mean job speedup of a workload -> makespan improvement over EASY [%].
IMPROVEMENTS = {float(mean): float(percent) for mean, percent in _PRINTED["improvements"]}

#: "Performance": jobs -> cores -> simulated days an hour. It prints the same of FCFS and of EASY.
CORES = (256, 25_600, 2_560_000)
DAYS_AN_HOUR = {
    int(jobs.split()[0]): dict(zip(CORES, map(float, row), strict=True))
    for jobs, *row in _PRINTED["days an hour"]
}
#: What "10-fold" may be and still be called so: half of it to twice.
TENFOLD = (5.0, 20.0)


# --- The items of ELiSE, and what makes their verdicts --------------------------------------------

#: The document's simple co-scheduling, and that which fills.
_PLAIN, _FILLER = "easy-co", "filler-co"
_STEPS_UP = "steps to a higher mean speedup raise the improvement, as published"


def _improvements(stored: items.Stored) -> items.Verdict:
    """Judge the table: within three points each, or rising with the mean speedup."""
    table = stored.table(
        "table-improvements", "within 3 points", "mean pair speedup", "ours %", "apart (points)"
    )
    near = int((table["within 3 points"] == "yes").sum())
    ours = table.sort_values("mean pair speedup")["ours %"].tolist()
    rising = sum(a < b for a, b in pairwise(ours))
    apart = ", ".join(f"{one:+.1f}" for one in table["apart (points)"])
    words = f"{near} of {len(table)} improvements within 3 points of the published one ({apart})"
    if near == len(table):
        return items.Verdict("close", words)
    return items.of_count(rising, len(ours) - 1, _STEPS_UP, words)


def _correlation(stored: items.Stored) -> items.Verdict:
    """Judge whether both go together over the workloads of each heatmap, four of five shuffles."""
    table = stored.table("table-correlation", "heatmaps", "above 0", "least", "published")
    holds = int((table["above 0"] == table["heatmaps"]).sum())
    words = f"the least of all {table['least'].min():+.2f}, published {table['published'][0]:+.2f}"
    series = int(table["heatmaps"].min())
    return items.of_count(
        holds, len(table), f"readings with a correlation above 0 in each of {series} series", words
    )


def _mixes(stored: items.Stored, name: str, *columns: str) -> Any:
    """Return the rows of the measured speedups of a table of mixes, the least diverse first."""
    table = stored.table(name, "speedups", *columns)
    rows = table[table["speedups"] == "measured"]
    if len(rows) < 2:
        raise items.NotThereError("one mix")
    return rows


#: What sentences are about, by name.
Frames = Iterator[dict[str, pd.DataFrame]]


def _falls(rows: pd.Series) -> bool:
    """Return whether values fall by most pairs, and from the first to the last."""
    values = rows.tolist()
    pairs = [(a, b) for k, a in enumerate(values) for b in values[k + 1 :]]
    return sum(b < a for a, b in pairs) > len(pairs) / 2 and bool(values[-1] < values[0])


def _diversity(stored: items.Stored) -> Frames:
    """Whether more diverse process counts mean less benefit, and less utilization."""
    gains = _mixes(stored, "table-mixes", f"{_PLAIN} %")[f"{_PLAIN} %"]
    use = _mixes(stored, "table-mix-utilisation", f"{_PLAIN} (share)")[f"{_PLAIN} (share)"]
    row = {"less_benefit": _falls(gains), "gains": ", ".join(f"{one:.1f}" for one in gains)}
    row |= {"less_used": _falls(use), "use": ", ".join(f"{one:.2f}" for one in use)}
    yield {"mixes": pd.DataFrame([row])}


def _filler(stored: items.Stored) -> Frames:
    """Whether the filler keeps the benefit where counts are diverse, and who is overtaken."""
    columns = f"{_PLAIN} %", f"{_FILLER} %", f"{_PLAIN}: overtaken", f"{_FILLER}: overtaken"
    table = _mixes(stored, "table-mixes", *columns)
    simple, filler, before, overtaken = (table[name].iloc[1:] for name in columns)
    row = {"told": ", ".join(f"{gain:.1f}" for gain in filler), "least": filler.min()}
    row |= {"one": table[columns[1]].iloc[0], "fewest": (overtaken - before).min()}
    row["above"] = f"{(filler > simple).sum()} of {len(filler)}"
    yield {"mixes": pd.DataFrame([row])}


def _above(stored: items.Stored) -> str:
    """Say in how many mixes the filler is above simple co-scheduling."""
    (of,) = _filler(stored)
    return f"it is above simple co-scheduling in {of['mixes']['above'].item()} mixes"


def _steps(stored: items.Stored, jobs: int, cores: int) -> dict[str, float]:
    """Return how many times as long simulations of so many times the jobs and cores take."""
    table = stored.table("table-speed", "scheduler", "jobs", "cores", "ms a run")
    found = {}
    for name in ("fcfs", "easy"):
        ms = table[table["scheduler"] == name].set_index(["jobs", "cores"])["ms a run"].to_dict()
        for (some, size), one in ms.items():
            many = (jobs * some, cores * size)
            if many in ms:
                found[f"{name}, {many[0]:,} jobs on {many[1]:,} cores"] = ms[many] / one
    if not found:
        raise items.NotThereError("one size")
    return found


def _tenfold(steps: Mapping[str, float]) -> items.Verdict:
    """Judge "10-fold increase" of the time of a simulation; how fast hpcgym is is no verdict."""
    holds = sum(TENFOLD[0] <= times <= TENFOLD[1] for times in steps.values())
    words = f"{min(steps.values()):.1f} to {max(steps.values()):.0f} fold here"
    return items.of_count(holds, len(steps), "steps within a factor of 2 of ten-fold", words)


def _more_cores(stored: items.Stored) -> items.Verdict:
    """Judge ten-fold time for a hundred times the cores, which no schedule allows.

    Jobs that come at once take no longer on a larger machine, so the time of a simulation grows at
    most as printed days an hour fall.
    """
    at_most = [row[CORES[1]] / row[CORES[2]] for row in DAYS_AN_HOUR.values()]
    found = _tenfold(_steps(stored, 1, 100))
    if max(at_most) >= TENFOLD[0]:
        return found
    told = ", ".join(f"{one:.2f}" for one in at_most)
    why = (
        "ten-fold is said; by the printed days an hour a simulation takes at most"
        f" {told} times as long on 2,560,000 cores as on 25,600"
    )
    return items.Verdict(items.CONTRADICTION, why).noted(found.why)


_said = partial(items.by_sentences, __file__)

#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "MJS & MS correlation, table": _improvements,
    "MJS & MS correlation, text": _correlation,
    "process count diversity": _said(["process count diversity"], _diversity),
    "filler co-scheduler": items.noted(_said(["filler co-scheduler"], _filler), _above),
    "synthetic workloads, jobs": lambda stored: _tenfold(_steps(stored, 10, 1)),
    "synthetic workloads, cores": _more_cores,
}
