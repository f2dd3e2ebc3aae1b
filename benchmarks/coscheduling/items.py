"""What ELiSE prints of results, and its items with their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
#: The paper's table 3: scheduler -> jobs -> cores -> simulated days an hour. The slides print the
#: numbers of FCFS for EASY, too.
CORES = (256, 25_600, 2_560_000)
DAYS_AN_HOUR = {
    scheduler: {int(jobs): dict(zip(CORES, of, strict=True)) for jobs, of in rows.items()}
    for scheduler, rows in _PRINTED.items()
    if scheduler in ("fcfs", "easy")
}
#: What "10-fold" may be and still be called so: half of it to twice.
TENFOLD = (5.0, 20.0)


# --- The items of ELiSE, and what makes their verdicts --------------------------------------------


CLOSE = 3.0  # percentage points


def _improvements(stored: items.Stored) -> items.Verdict:
    """Judge the table by the first reading: within three points each, or rising with the mean."""
    names = [f"{mean:g} %" for mean in IMPROVEMENTS]
    ours = stored.table("table-improvements", *names)[names].iloc[0].tolist()
    apart = [gain - published for gain, published in zip(ours, IMPROVEMENTS.values(), strict=True)]
    near = sum(abs(points) <= CLOSE for points in apart)
    told = ", ".join(f"{points:+.1f}" for points in apart)
    words = f"{near} of {len(ours)} improvements within 3 points of the published one ({told})"
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


def _mixes(stored: items.Stored, *columns: str) -> pd.DataFrame:
    """Return the rows of the judged reading of the table of mixes, the least diverse first."""
    table = stored.table("table-mixes", "reading", *columns)
    rows: pd.DataFrame = table[table["reading"] == table["reading"].iloc[0]]
    if len(rows) < len(MIXES):
        raise items.NotThereError("one mix")
    return rows


def _gains(scheduler: str) -> items.Judge:
    """Return what judges the bars of a co-scheduler in figure 9 of the paper."""

    def judge(stored: items.Stored) -> items.Verdict:
        rows = _mixes(stored, f"{scheduler} %")
        printed = [of[scheduler] for of in MIXES.values()]
        gains = ", ".join(f"{gain:.1f}" for gain in rows[f"{scheduler} %"])
        found = items.of_values(rows[f"{scheduler} %"], printed, 0.01, "improvements")
        return found.noted(f"{gains} %, published {', '.join(map(str, printed))} %")

    return judge


def _falls(rows: pd.Series) -> bool:
    """Return whether values fall by most pairs, and from the first to the last."""
    values = rows.tolist()
    pairs = [(a, b) for k, a in enumerate(values) for b in values[k + 1 :]]
    return sum(b < a for a, b in pairs) > len(pairs) / 2 and bool(values[-1] < values[0])


def _of_mixes(stored: items.Stored) -> Iterator[dict[str, pd.DataFrame]]:
    """Return what the sentences are about: benefit, use of the machine, and who is overtaken."""
    names = [f"{name}{of}" for name in COSCHEDULED for of in (" %", ": overtaken", " (share)")]
    rows = _mixes(stored, *names)
    simple, overtaken, use, filler, more, _ = (rows[name] for name in names)
    yield {
        "mixes": pd.DataFrame(
            {
                "less_benefit": [_falls(simple)],
                "gains": [", ".join(f"{gain:.1f}" for gain in simple)],
                "less_used": [_falls(use)],
                "use": [", ".join(f"{share:.2f}" for share in use)],
                "kept": [", ".join(f"{gain:.1f}" for gain in filler.iloc[1:])],
                "least": [filler.iloc[1:].min()],
                "of_one_count": [filler.iloc[0]],
                "fewest": [(more - overtaken).iloc[1:].min()],
                "above": [f"{(filler > simple).iloc[1:].sum()} of {len(rows) - 1}"],
            }
        )
    }


def _above(stored: items.Stored) -> str:
    """Say in how many mixes the filler is above simple co-scheduling."""
    (of,) = _of_mixes(stored)
    return f"it is above simple co-scheduling in {of['mixes']['above'].item()} mixes"


def _times(stored: items.Stored) -> dict[str, dict[tuple[int, int], float]]:
    """Return how long simulations take here [ms], by scheduler, jobs and cores."""
    table = stored.table("table-speed", "scheduler", "jobs", "cores", "ms a run")
    of = {name: table[table["scheduler"] == name] for name in DAYS_AN_HOUR}
    return {
        name: rows.set_index(["jobs", "cores"])["ms a run"].to_dict() for name, rows in of.items()
    }


def _steps(stored: items.Stored, jobs: int, cores: int) -> dict[str, float]:
    """Return how many times as long simulations of so many times the jobs and cores take."""
    found = {}
    for name, ms in _times(stored).items():
        for (some, size), short in ms.items():
            many = (jobs * some, cores * size)
            if many in ms:
                found[f"{name}, {many[0]:,} jobs on {many[1]:,} cores"] = ms[many] / short
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
    rows = [row for of in DAYS_AN_HOUR.values() for row in of.values()]
    at_most = [row[CORES[1]] / row[CORES[2]] for row in rows]
    found = _tenfold(_steps(stored, 1, 100))
    if max(at_most) >= TENFOLD[0]:
        return found
    why = (
        "ten-fold is said; by the printed days an hour a simulation takes at most"
        f" {', '.join(f'{times:.2f}' for times in at_most)} times as long on 2,560,000 cores as on"
        " 25,600"
    )
    return items.Verdict(items.CONTRADICTION, why).noted(found.why)


def _easy_row(stored: items.Stored) -> items.Verdict:
    """Judge where EASY simulates fewer days an hour than FCFS, or more."""
    table = stored.table("table-speed", "scheduler", "jobs", "cores", "ours days/h")
    ours = table.set_index(["scheduler", "jobs", "cores"])["ours days/h"]
    sizes = [(jobs, cores) for jobs, of in DAYS_AN_HOUR["easy"].items() for cores in of]
    if not all(("easy", *size) in ours and ("fcfs", *size) in ours for size in sizes):
        raise items.NotThereError("one size")
    slower = {
        (jobs, cores): DAYS_AN_HOUR["easy"][jobs][cores] < DAYS_AN_HOUR["fcfs"][jobs][cores]
        for jobs, cores in sizes
    }
    holds = [(ours["easy", *size] < ours["fcfs", *size]) == slower[size] for size in sizes]
    small = [so for so, (_, cores) in zip(holds, sizes, strict=True) if cores == CORES[0]]
    what = "sizes at which EASY simulates fewer days an hour than FCFS, or more, as printed"
    return items.of_count(sum(holds), len(sizes), what, f"{sum(small)} of 3 on 256 cores")


def _said(item: str) -> items.Judge:
    return items.by_sentences(__file__, [item], _of_mixes)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "MJS & MS correlation, table": _improvements,
    "MJS & MS correlation, text": _correlation,
    "process count diversity": _said("process count diversity"),
    "process count diversity, figure": _gains("easy-co"),
    "filler co-scheduler": items.noted(_said("filler co-scheduler"), _above),
    "filler co-scheduler, figure": _gains("filler-co"),
    "synthetic workloads, jobs": lambda stored: _tenfold(_steps(stored, 10, 1)),
    "synthetic workloads, cores": _more_cores,
    "synthetic workloads, EASY": _easy_row,
}
