"""What ELiSE prints of results, and its items with their verdicts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pandas as pd

from hpcgym.benchmarks.studies import items

# --- What ELiSE prints of its results -------------------------------------------------------------

_PRINTED = {table: [row[1:] for row in items.csv_cells(__file__) if row[0] == table]
            for table in ("improvements", "days an hour", "logs")}  # fmt: skip

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

#: "Real Workloads": log -> scheduler -> simulated days an hour; its jobs; nodes, cores of a node.
TRACES = {name: {"fcfs": float(row[0]), "easy": float(row[1])} for name, *row in _PRINTED["logs"]}
TRACE_JOBS = {name: int(row[2]) for name, *row in _PRINTED["logs"]}
TRACE_NODES = {name: (int(row[3]), int(row[4])) for name, *row in _PRINTED["logs"]}


# --- The items of ELiSE, and what makes their verdicts --------------------------------------------

#: The document's simple co-scheduling, and that which fills.
_PLAIN, _FILLER = "easy-co", "filler-co"


def _improvements(stored: items.Stored) -> items.Verdict:
    """Judge the table: within three points each, or rising with the mean speedup."""
    table = stored.table(
        "table-improvements", "within 3 points", "mean pair speedup", "ours %", "apart (points)"
    )
    near = int((table["within 3 points"] == "yes").sum())
    ours = table.sort_values("mean pair speedup")["ours %"].tolist()
    rising = sum(a < b for a, b in pairwise(ours))
    apart = ", ".join(f"{one:+.1f}" for one in table["apart (points)"])
    words = f"{near} of {len(table)} within 3 points ({apart})"
    if near == len(table):
        return items.Verdict("close", words)
    return items.of_count(rising, len(ours) - 1, "steps up as published", words)


def _correlation(stored: items.Stored) -> items.Verdict:
    """Judge whether both go together over the workloads of each heatmap, four of five shuffles."""
    table = stored.table("table-correlation", "reading", "heatmaps", "above 0", "least")
    return items.of_sentences(
        {
            f"{row['reading']}: in each of {row['heatmaps']} series of workloads, the least"
            f" correlation {row['least']:+.2f}": row["above 0"] == row["heatmaps"]
            for row in table.to_dict("records")
        }
    )


def _mixes(stored: items.Stored, name: str, *columns: str) -> Any:
    """Return the rows of the measured speedups of a table of mixes, the least diverse first."""
    table = stored.table(name, "speedups", *columns)
    rows = table[table["speedups"] == "measured"]
    if len(rows) < 2:
        raise items.NotThereError("one mix")
    return rows


def _falls(rows: pd.Series) -> bool:
    """Return whether values fall by most pairs, and from the first to the last."""
    values = rows.tolist()
    pairs = [(a, b) for k, a in enumerate(values) for b in values[k + 1 :]]
    return sum(b < a for a, b in pairs) > len(pairs) / 2 and bool(values[-1] < values[0])


def _diversity(stored: items.Stored) -> items.Verdict:
    """Judge whether more diverse process counts mean less benefit, and less utilization."""
    gains = _mixes(stored, "table-mixes", f"{_PLAIN} %")[f"{_PLAIN} %"]
    use = _mixes(stored, "table-mix-utilisation", f"{_PLAIN} (share)")[f"{_PLAIN} (share)"]
    told = ", ".join(f"{one:.1f}" for one in gains), ", ".join(f"{one:.2f}" for one in use)
    return items.of_sentences(
        {
            f"the more counts, the less benefit ({told[0]} %)": _falls(gains),
            f"the lower the utilization ({told[1]})": _falls(use),
        }
    )


def _filler(stored: items.Stored) -> items.Verdict:
    """Judge whether the filler keeps the benefit where counts are diverse, and who is overtaken."""
    columns = f"{_PLAIN} %", f"{_FILLER} %", f"{_PLAIN}: overtaken", f"{_FILLER}: overtaken"
    table = _mixes(stored, "table-mixes", *columns)
    diverse, first = table.iloc[1:], table.iloc[0][columns[1]]
    so = {
        f"{row['processes']}: more benefit than simple co-scheduling": row[columns[1]]
        > row[columns[0]]
        for row in diverse.to_dict("records")
    }
    least = float(diverse[columns[1]].min())
    so[f"at least half of the benefit of one count is preserved ({least:.1f} of {first:.1f} %)"] = (
        least >= first / 2
    )
    for row in diverse.to_dict("records"):
        so[f"{row['processes']}: more jobs are overtaken"] = row[columns[3]] > row[columns[2]]
    return items.of_sentences({words: bool(holds) for words, holds in so.items()})


def _speed(stored: items.Stored) -> items.Verdict:
    """Judge the scaling that is printed: ten times the jobs, or a hundred the cores, ten the time.

    Whether hpcgym is faster than another program on another computer is no verdict.
    """
    table = stored.table("table-speed", "scheduler", "jobs", "cores", "ms a run")
    so = {}
    for name in ("fcfs", "easy"):
        part = table[table["scheduler"] == name].set_index(["jobs", "cores"])["ms a run"]
        steps = [((jobs, cores), (10 * jobs, cores)) for jobs, cores in part.index]
        steps += [((jobs, cores), (jobs, 100 * cores)) for jobs, cores in part.index]
        for a, b in steps:
            if b in part.index:
                times = float(part[b] / part[a])
                words = f"{name}, {a[0]} jobs on {a[1]} cores to {b[0]} on {b[1]}: {times:.1f} fold"
                so[words] = TENFOLD[0] <= times <= TENFOLD[1]
    if not so:
        raise items.NotThereError("one size")
    holds = sum(so.values())
    return items.of_count(holds, len(so), "steps take ten times as long, within a factor of 2",
                          "; ".join(words for words, so_ in so.items() if not so_))  # fmt: skip


def _logs(stored: items.Stored) -> items.Verdict:
    """Judge whether FCFS and EASY are as fast as each other; their days an hour are a machine's."""
    table = stored.table("table-traces", "trace", "a job of p processors", "scheduler", "ms a run")
    so = {}
    for (trace, shape), part in table.groupby(["trace", "a job of p processors"], sort=False):
        ms = part.set_index("scheduler")["ms a run"]
        times = float(ms["easy"] / ms["fcfs"])
        printed = TRACES[str(trace)]["fcfs"] / TRACES[str(trace)]["easy"]
        words = f"{trace}, {shape}: EASY takes {times:.2f} times as long as FCFS ({printed:.2f})"
        so[words] = abs(times / printed - 1) <= items.CLOSE
    return items.of_sentences(so)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "MJS & MS correlation, table": _improvements,
    "MJS & MS correlation, text": _correlation,
    "process count diversity": _diversity,
    "filler co-scheduler": _filler,
    "synthetic workloads": _speed,
    "real workloads": _logs,
}
