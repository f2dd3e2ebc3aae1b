"""What ELiSE prints of results, and its items with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pandas as pd

from hpcgym.benchmarks.studies import items

# --- What ELiSE prints of its results -------------------------------------------------------------

_PRINTED: dict[str, dict[str, list[float]]] = {}
for _table, _of, *_values in items.csv_cells(__file__):
    _PRINTED.setdefault(_table, {})[_of] = [float(value) for value in _values]

#: The slides' "MJS & MS correlation", the paper's table 2: mean job speedup of a workload ->
#: makespan improvement over EASY [%].
IMPROVEMENTS = {float(mean): percent for mean, (percent,) in _PRINTED["improvements"].items()}
#: The paper's figure 9: process counts -> the same of both co-schedulers.
COSCHEDULED = ("easy-co", "filler-co")
MIXES = {
    mix: dict(zip(COSCHEDULED, gains, strict=True)) for mix, gains in _PRINTED["mixes"].items()
}
#: The paper's table 3: (scheduler, jobs, cores) -> simulated days an hour. The slides print the
#: numbers of FCFS for EASY, too.
CORES = (256, 25_600, 2_560_000)
DAYS_AN_HOUR = {
    (scheduler, int(jobs), cores): days
    for scheduler in ("fcfs", "easy")
    for jobs, row in _PRINTED[scheduler].items()
    for cores, days in zip(CORES, row, strict=True)
}
NOTES = items.notes_of(__file__)
#: What is called near [percentage points]; what "10-fold" may be: half of it to twice.
CLOSE, TENFOLD = 3.0, (5.0, 20.0)


# --- The items of ELiSE, and what makes their verdicts --------------------------------------------


def _improvements(stored: items.Stored) -> items.Verdict:
    """Judge the table by the first reading: within three points each, or rising with the mean."""
    names = [f"{mean:g} %" for mean in IMPROVEMENTS]
    ours = stored.table("table-improvements", *names)[names].iloc[0].tolist()
    apart = [gain - published for gain, published in zip(ours, IMPROVEMENTS.values(), strict=True)]
    near = sum(abs(points) <= CLOSE for points in apart)
    differences = ", ".join(f"{points:+.1f}" for points in apart)
    words = (
        f"{near} of {len(ours)} improvements within 3 points of the published one ({differences})"
    )
    if near == len(ours):
        return items.Verdict("close", words)
    steps = "steps to a higher mean speedup raise the improvement, as published"
    return items.of_count(sum(a < b for a, b in pairwise(ours)), len(ours) - 1, steps, words)


def _correlation(stored: items.Stored) -> items.Verdict:
    """Judge whether both go together over the workloads of each shuffle, by each reading."""
    table = stored.table("table-improvements", "series", "above 0", "least correlation")
    holds, series = int((table["above 0"] == table["series"]).sum()), int(table["series"].min())
    words = f"the least of all {table['least correlation'].min():+.2f}"
    what = f"readings with a correlation above 0 in each of {series} series"
    return items.of_count(holds, len(table), what, words)


def _mixes(stored: items.Stored, *columns: str, reading: str = "") -> pd.DataFrame:
    """Return the rows of a reading, "" is the judged one, of mixes, the least diverse first."""
    table = stored.table("table-mixes", "reading", *columns)
    rows: pd.DataFrame = table[table["reading"] == (reading or table["reading"].iloc[0])]
    if len(rows) < len(MIXES):
        raise items.NotThereError("one mix")
    return rows


def _gains(scheduler: str, stored: items.Stored) -> items.Verdict:
    """Judge the bars of a co-scheduler in figure 9 of the paper."""
    ours = _mixes(stored, f"{scheduler} %")[f"{scheduler} %"]
    printed = [of[scheduler] for of in MIXES.values()]
    values = f"{_listed(ours, '.1f')} %, published {', '.join(map(str, printed))} %"
    return items.of_values(ours, printed, 0.01, "improvements").noted(values)


def _falls(rows: pd.Series) -> bool:
    """Return whether values fall by most pairs, and from the first to the last."""
    values = rows.tolist()
    pairs = [(a, b) for k, a in enumerate(values) for b in values[k + 1 :]]
    return sum(b < a for a, b in pairs) > len(pairs) / 2 and bool(values[-1] < values[0])


def _listed(values: pd.Series, form: str) -> str:
    return ", ".join(f"{value:{form}}" for value in values)


def _of_mixes(stored: items.Stored, reading: str = "") -> Iterator[dict[str, pd.DataFrame]]:
    """Return what the sentences are about: benefit, use of the machine, and who is overtaken."""
    names = [f"{name}{of}" for name in COSCHEDULED for of in (" %", ": overtaken", " (share)")]
    rows = _mixes(stored, *names, reading=reading)
    simple, overtaken, use, filler, more, _ = (rows[name] for name in names)
    row = {"less_benefit": _falls(simple), "gains": _listed(simple, ".1f")}
    row |= {"less_used": _falls(use), "use": _listed(use, ".2f")}
    kept = filler.iloc[1:]
    row |= {"of_one_count": filler.iloc[0], "least": kept.min(), "kept": _listed(kept, ".1f")}
    yield {"mixes": pd.DataFrame([row | {"fewest": (more - overtaken).iloc[1:].min()}])}


def _said(item: str) -> items.Judge:
    """Return what judges the sentences of an item, and tells of the machine of 200 nodes."""
    judge, other = (
        items.by_sentences(__file__, [item], partial(_of_mixes, reading=reading))
        for reading in ("", "200 nodes")
    )
    return items.noted(judge, lambda stored: NOTES["nodes"].format(why=other(stored).why))


def _of_speed(stored: items.Stored, what: str) -> dict[tuple[str, int, int], float]:
    """Return a column of the table of speed by scheduler, jobs and cores."""
    key = ["scheduler", "jobs", "cores"]
    times = stored.table("table-speed", *key, what).set_index(key)[what].to_dict()
    if not times.keys() >= DAYS_AN_HOUR.keys():
        raise items.NotThereError("one size")
    return {size: times[size] for size in DAYS_AN_HOUR}


def _tenfold(jobs: int, cores: int, stored: items.Stored) -> items.Verdict:
    """Judge "10-fold increase" of the time of a simulation of so many times the jobs and cores.

    How fast hpcgym is is no verdict. What is printed is a contradiction if most of its own steps
    cannot be ten-fold. Ten times the jobs have no shorter makespan, so the time of a simulation
    grows at least as printed days an hour fall. Jobs that come at once take no longer on a larger
    machine, so there it grows at most so.
    """
    ms = _of_speed(stored, "ms a run")
    sizes = {of: to for of in ms if (to := (of[0], jobs * of[1], cores * of[2])) in ms}
    steps = [ms[large] / ms[small] for small, large in sizes.items()]
    holds = sum(TENFOLD[0] <= times <= TENFOLD[1] for times in steps)
    words = f"{min(steps):.1f} to {max(steps):.0f} fold here"
    verdict = items.of_count(holds, len(steps), "steps within a factor of 2 of ten-fold", words)
    fall = [DAYS_AN_HOUR[small] / DAYS_AN_HOUR[large] for small, large in sizes.items()]
    more, bound = jobs > 1, "at least" if jobs > 1 else "at most"
    beyond = sum(times > TENFOLD[1] if more else times < TENFOLD[0] for times in fall)
    if not beyond:
        return verdict
    falls = ", ".join(f"{times:.2f}" for times in fall)
    why = NOTES["printed"].format(bound=bound, times=falls, beyond=beyond, number=len(fall))
    if 2 * beyond <= len(fall):
        return verdict.noted(why)
    return items.Verdict(items.CONTRADICTION, why).noted(verdict.why)


def _easy_row(stored: items.Stored) -> items.Verdict:
    """Judge where EASY simulates fewer days an hour than FCFS, or more.

    Where both simulate as many days they make one schedule, and chance says which is faster.
    """
    ours, days = (_of_speed(stored, what) for what in ("ours days/h", "simulated days"))
    orders: dict[str, str] = {}
    for size in dict.fromkeys(of[1:] for of in DAYS_AN_HOUR):
        easy, fcfs = ("easy", *size), ("fcfs", *size)
        as_printed = len({of[easy] < of[fcfs] for of in (ours, DAYS_AN_HOUR)}) == 1
        how = "held" if as_printed else "contradicted"
        of_size = "{:,} jobs on {:,} cores".format(*size)
        orders[of_size] = "undecided" if days[easy] == days[fcfs] else how
    return items.of_intervals(orders, "orders of EASY's and FCFS's days an hour")


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "MJS & MS correlation, table": _improvements,
    "MJS & MS correlation, text": _correlation,
    "process count diversity": _said("process count diversity"),
    "process count diversity, figure": partial(_gains, "easy-co"),
    "filler co-scheduler": _said("filler co-scheduler"),
    "filler co-scheduler, figure": partial(_gains, "filler-co"),
    "synthetic workloads, jobs": partial(_tenfold, 10, 1),
    "synthetic workloads, cores": partial(_tenfold, 1, 100),
    "synthetic workloads, EASY": _easy_row,
}
