"""What ELiSE prints of results, and its items with their verdicts."""

from __future__ import annotations

from itertools import pairwise

from hpcgym.benchmarks.studies import items

# --- What ELiSE prints of its results -------------------------------------------------------------

#: "MJS & MS correlation": mean job speedup of a workload -> makespan improvement over EASY [%].
IMPROVEMENTS = {1.07: 24.42, 1.10: 25.29, 1.12: 25.87, 1.15: 30.63}

#: "Performance": jobs -> cores -> simulated days an hour. It prints the same of FCFS and of EASY.
DAYS_AN_HOUR = {
    100: {256: 2038.66, 25_600: 147.75, 2_560_000: 226.52},
    1_000: {256: 838.74, 25_600: 14.31, 2_560_000: 12.56},
    10_000: {256: 45.84, 25_600: 0.58, 2_560_000: 0.83},
}
REPETITIONS = 50

#: "Real Workloads": trace -> scheduler -> simulated days an hour; and the jobs that it had there.
TRACES = {
    "SDSC-SP2": {"fcfs": 116.87, "easy": 117.77},
    "KIT-FH2": {"fcfs": 28.32, "easy": 27.19},
}
TRACE_JOBS = {"SDSC-SP2": 73_496, "KIT-FH2": 114_335}


# --- The items of ELiSE, and what makes their verdicts: ``published.py`` --------------------------

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


def _diversity(stored: items.Stored) -> items.Verdict:
    """Judge whether more diverse process counts mean less benefit, and less utilisation."""
    gains = stored.table("table-mixes", "speedups", f"{_PLAIN} %")
    use = stored.table("table-mix-utilisation", "speedups", f"{_PLAIN} (share)")
    so = {}
    for table, column, what in (
        (gains, f"{_PLAIN} %", "the benefit falls"),
        (use, f"{_PLAIN} (share)", "the utilization falls"),
    ):
        rows = table[table["speedups"] == "measured"][column].tolist()
        if len(rows) < 2:
            raise items.NotThereError("one mix")
        so[f"{what} from the least to the most diverse"] = rows[-1] < rows[0]
        so[f"{what} at each step"] = all(b < a for a, b in pairwise(rows))
    return items.of_sentences(so)


def _filler(stored: items.Stored) -> items.Verdict:
    """Judge whether the filler co-scheduler keeps the benefit where counts are diverse."""
    table = stored.table("table-mixes", "speedups", f"{_PLAIN} %", f"{_FILLER} %")
    row = table[table["speedups"] == "measured"].iloc[-1]
    least = table[table["speedups"] == "measured"].iloc[0]
    return items.of_sentences(
        {
            "with the most diverse counts above the simple one": bool(
                row[f"{_FILLER} %"] > row[f"{_PLAIN} %"]
            ),
            "at least half of the benefit of one count": bool(
                row[f"{_FILLER} %"] >= 0.5 * least[f"{_PLAIN} %"]
            ),
        }
    )


def _correlation(stored: items.Stored) -> items.Verdict:
    """Judge whether improvement and mean speedup of jobs go together, over shuffles."""
    table = stored.table("table-correlations", "scheduler", "codes", "job speedup")
    rows = table[table["scheduler"] == "means of these"]
    found = {str(row["codes"]): float(str(row["job speedup"]).split()[0])
             for row in rows.to_dict("records")}  # fmt: skip
    return items.of_sentences({f"{codes}: {value:+.2f} above 0": value > 0
                         for codes, value in found.items()})  # fmt: skip


def _speed(stored: items.Stored) -> items.Verdict:
    """Judge whether days an hour fall with jobs and with cores as there."""
    table = stored.table("table-speed", "scheduler", "jobs", "cores", "ours days/h")
    so = {}
    for name, part in table.groupby("scheduler", sort=False):
        ours = part.set_index(["jobs", "cores"])["ours days/h"]
        for jobs, row in DAYS_AN_HOUR.items():
            if (jobs, 256) in ours.index and (10 * jobs, 256) in ours.index:
                so[f"{name}: slower with {10 * jobs} than with {jobs} jobs"] = bool(
                    ours[10 * jobs, 256] < ours[jobs, 256]
                )
            so[f"{name}, {jobs} jobs: at least as fast as printed"] = all(
                ours[jobs, cores] >= days
                for cores, days in row.items()
                if (jobs, cores) in ours.index
            )
    return items.of_sentences(so)


def _logs(stored: items.Stored) -> items.Verdict:
    """Judge whether two logs have at least as many days an hour as printed."""
    table = stored.table("table-traces", "published days/h", "ours days/h")
    rows = table.dropna(subset=["published days/h"])
    fast = int((rows["ours days/h"] >= rows["published days/h"]).sum())
    return items.of_count(fast, len(rows), "as fast as printed or faster")


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "MJS & MS correlation, table": _improvements,
    "MJS & MS correlation, text": _correlation,
    "process count diversity": _diversity,
    "filler co-scheduler": _filler,
    "synthetic workloads": _speed,
    "real workloads": _logs,
}
