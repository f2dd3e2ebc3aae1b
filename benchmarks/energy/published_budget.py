"""What Glesser 2016, chapter 5, prints of energy budgets, and its items with their verdicts.

Figures 5.1 to 5.3 have no numbers.
"""

from __future__ import annotations

from hpcgym.benchmarks.studies.items import (
    Item,
    Judge,
    NotThereError,
    Stored,
    Verdict,
    built,
    of_count,
    said,
)

# --- What Glesser 2016, chapter 5, prints of energy budgets ---------------------------------------

#: Table 5.1: measure -> mechanism -> change when idle nodes are switched off [%].
TABLE_5_1 = {
    "AVEbsld": {"powercap": 0.27, "energyBud": -9.83, "reducePC": 1.91},
    "utilisation": {"powercap": -0.37, "energyBud": 2.05, "reducePC": 1.22},
    "jobs started": {"powercap": -0.13, "energyBud": 1.66, "reducePC": 1.67},
    "energy": {"powercap": -4.62, "energyBud": -1.32, "reducePC": -1.79},
}


# --- The items of Glesser 2016, chapter 5, and what makes their verdicts --------------------------

DOCUMENT = "Glesser 2016"


def _table_5_1(stored: Stored) -> Verdict:
    """Judge the signs under the first reading; those under others are named."""
    table = stored.table("table-5.1", "reading", "the same sign")
    signs = {
        str(name): int((part["the same sign"] == "yes").sum())
        for name, part in table.groupby("reading", sort=False)
    }
    if not signs:
        raise NotThereError("no readings")
    first, *others = signs
    number = len(table) // len(signs)
    words = ", ".join(f"{name} {signs[name]}" for name in others)
    return of_count(signs[first], number, f"signs, {first}", f"others: {words}")


def _statements(begin: str) -> Judge:
    return said("table-statements", "Glesser 2016, chapter 5", [begin])


ITEMS: tuple[Item, ...] = (
    built(DOCUMENT, "algorithm 4", "energyBud and reducePC", "docs/power-limits.md"),
    built(DOCUMENT, "section 5.2.2", "opportunistic shutdown", "docs/power-limits.md"),
    Item(
        DOCUMENT,
        "section 5.3",
        "budgets are kept; an unbounded one is EASY",
        _statements("5.3"),
        published="sections 5.3.1 and 5.3.2",
    ),
    Item(
        DOCUMENT,
        "figure 5.1",
        "utilization by budget",
        _statements("figure 5.1"),
        published="section 5.4.4",
    ),
    Item(
        DOCUMENT,
        "figure 5.2",
        "AVEbsld by budget",
        _statements("figure 5.2"),
        published="section 5.4.4",
    ),
    Item(
        DOCUMENT,
        "figure 5.3",
        "energy by budget",
        _statements("figure 5.3"),
        published="section 5.4.4",
    ),
    Item(DOCUMENT, "table 5.1", "what switching off changes", _table_5_1, published="TABLE_5_1"),
    Item(
        DOCUMENT,
        "table 5.1, text",
        "energyBud gains most by shutdown",
        _statements("table 5.1"),
        published="section 5.4.4",
    ),
)
