"""What Glesser 2016, chapter 4, prints of power caps, and its items with their verdicts."""

from __future__ import annotations

from typing import NamedTuple

from hpcgym.benchmarks.studies.items import (
    Item,
    Judge,
    Stored,
    Verdict,
    built,
    left_out,
    no_result,
    of_count,
    of_picture,
    of_values,
    said,
)

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

DOCUMENT = "Glesser 2016"
#: Of figures of single runs one is drawn of each workload and reading.
_SUBSTITUTE = "substitute-12_000_times"


def _table_4_3(stored: Stored) -> Verdict:
    table = stored.table(
        "table-4.3", "ours rho ratio", "published rho ratio", "published best", "best by C1 and C3"
    )
    found = of_values(table["ours rho ratio"], table["published rho ratio"], 0.001, "values of rho")
    rows = table[table["published best"] != "-"]
    named = int((rows["published best"] == rows["best by C1 and C3"]).sum())
    return of_count(named, len(rows), "mechanisms as published", f"of rho {found.why}")


def _statements(*begin: str) -> Judge:
    """Judge sentences of section 4.6.3 by the first reading; the others are in the report."""
    return said("table-statements", "Glesser 2016, section 4.6.3", begin)


ITEMS: tuple[Item, ...] = (
    no_result(DOCUMENT, "figure 4.1", "the model as a picture"),
    built(
        DOCUMENT,
        "equations of section 4.2",
        "nodes off or slowed down under a cap: C1 to C3, rho",
        "docs/power.md",
    ),
    no_result(DOCUMENT, "figure 4.2", "the architecture of SLURM"),
    built(
        DOCUMENT,
        "algorithms 2 and 3",
        "choosing nodes to switch off, and frequencies",
        "docs/power-limits.md",
    ),
    built(
        DOCUMENT, "table 4.1", "watts of chassis and racks: the machine `curie`", "docs/power.md"
    ),
    built(
        DOCUMENT, "table 4.2", "watts of a node by frequency: the machine `curie`", "docs/power.md"
    ),
    left_out(
        DOCUMENT,
        "figure 4.3",
        "watts and times of four applications by frequency",
        "measured on nodes of Curie; of it the thesis prints table 4.2 alone",
    ),
    Item(
        DOCUMENT,
        "table 4.3",
        "switching off or slowing down, by benchmark",
        _table_4_3,
        published="TABLE_4_3",
    ),
    Item(
        DOCUMENT,
        "figure 4.4",
        "cores and power over 24 hours, MIX, 40 %",
        of_picture(f"24h-MIX-{_SUBSTITUTE}.png"),
    ),
    Item(
        DOCUMENT,
        "figure 4.5",
        "cores and power over 5 hours, SHUT and DVFS",
        of_picture(f"bigjob-SHUT-{_SUBSTITUTE}.png", f"smalljob-DVFS-{_SUBSTITUTE}.png"),
    ),
    Item(
        DOCUMENT,
        "figure 4.6",
        "energy, launched jobs and work by policy and cap",
        _statements("DVFS", "MIX", "work and energy", "SHUT and MIX", "nodes left idle"),
        published="section 4.6.3",
    ),
    Item(
        DOCUMENT,
        "section 4.6.3, 24 hours",
        "work and energy under 40 %",
        _statements("24 h"),
        published="DAY_WORK",
    ),
    Item(
        DOCUMENT,
        "section 4.7",
        "switching off below 60 %, frequencies at 80 %",
        _statements("conclusion"),
        published="section 4.7",
    ),
    left_out(
        DOCUMENT,
        "section 8.2, frequencies",
        "frequencies that change while jobs run",
        "future work, of which the thesis gives no rule and no numbers",
    ),
)
