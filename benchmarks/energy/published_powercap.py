"""What Glesser 2016, chapter 4, prints of power caps, and its items with their verdicts."""

from __future__ import annotations

from typing import NamedTuple

from hpcgym.benchmarks.studies import items

# --- What Glesser 2016, chapter 4, prints of power caps -------------------------------------------


class Benchmark(NamedTuple):
    """A row of table 4.3."""

    name: str
    degradation: float
    rho: float
    best: str


TABLE_4_3 = (
    Benchmark("NA", 2.27, 0.0, "-"),
    Benchmark("linpack", 2.14, -0.027, "Switch-off"),
    Benchmark("IMB", 2.13, -0.029, "Switch-off"),
    Benchmark("SPEC Float", 1.89, -0.088, "Switch-off"),
    Benchmark("SPEC Integer", 1.74, -0.134, "Switch-off"),
    Benchmark("Common value", 1.63, -0.174, "Switch-off"),
    Benchmark("NAS suite", 1.5, -0.225, "Switch-off"),
    Benchmark("STREAM", 1.26, -0.350, "Switch-off"),
    Benchmark("GROMACS", 1.16, -0.422, "Switch-off"),
)

#: Section 4.6.2: the share of jobs that use more than the whole machine for an hour.
HUGE = 0.001

#: Section 4.6.3: by how much less is computed if nodes can only be left idle; work of the 24 hours
#: under a cap of 40 %, of what is possible.
NONE_LESS = 0.40
DAY_WORK = {"SHUT": 0.94, "DVFS": 0.85, "MIX": 0.85}


# --- The items of Glesser 2016, chapter 4, and their verdicts -------------------------------------

#: Of figures of single runs one is drawn of each workload and reading.
_SUBSTITUTE = "substitute-12_000_times"


def _table_4_3(stored: items.Stored) -> items.Verdict:
    table = stored.table(
        "table-4.3", "ours rho ratio", "published rho ratio", "published best", "best by C1 and C3"
    )
    found = items.of_values(
        table["ours rho ratio"], table["published rho ratio"], 0.001, "values of rho"
    )
    rows = table[table["published best"] != "-"]
    named = int((rows["published best"] == rows["best by C1 and C3"]).sum())
    return items.of_count(named, len(rows), "mechanisms as published", f"of rho {found.why}")


def _statements(*begin: str) -> items.Judge:
    """Judge sentences of section 4.6.3 by the first reading; the others are in the report."""
    return items.said("table-statements", "Glesser 2016, section 4.6.3", begin)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 4.3": _table_4_3,
    "figure 4.4": items.of_picture(f"24h-MIX-{_SUBSTITUTE}.png"),
    "figure 4.5": items.of_picture(
        f"bigjob-SHUT-{_SUBSTITUTE}.png", f"smalljob-DVFS-{_SUBSTITUTE}.png"
    ),
    "figure 4.6": _statements("DVFS", "MIX", "work and energy", "SHUT and MIX", "nodes left idle"),
    "section 4.6.3, 24 hours": _statements("24 h"),
    "section 4.7": _statements("conclusion"),
}
