"""What Glesser 2016, chapter 5, prints of energy budgets, and its items with their verdicts.

Figures 5.1 to 5.3 have no numbers.
"""

from __future__ import annotations

from hpcgym.benchmarks.studies import items

# --- What Glesser 2016, chapter 5, prints of energy budgets ---------------------------------------

#: Table 5.1: measure -> mechanism -> change when idle nodes are switched off [%].
TABLE_5_1 = {
    "AVEbsld": {"powercap": 0.27, "energyBud": -9.83, "reducePC": 1.91},
    "utilisation": {"powercap": -0.37, "energyBud": 2.05, "reducePC": 1.22},
    "jobs started": {"powercap": -0.13, "energyBud": 1.66, "reducePC": 1.67},
    "energy": {"powercap": -4.62, "energyBud": -1.32, "reducePC": -1.79},
}


# --- The items of Glesser 2016, chapter 5, and what makes their verdicts --------------------------


def _table_5_1(stored: items.Stored) -> items.Verdict:
    """Judge the signs under the first reading; those under others are named."""
    table = stored.table("table-5.1", "reading", "the same sign")
    signs = {
        str(name): int((part["the same sign"] == "yes").sum())
        for name, part in table.groupby("reading", sort=False)
    }
    if not signs:
        raise items.NotThereError("no readings")
    first, *others = signs
    number = len(table) // len(signs)
    words = ", ".join(f"{name} {signs[name]}" for name in others)
    return items.of_count(signs[first], number, f"signs, {first}", f"others: {words}")


def _statements(begin: str) -> items.Judge:
    return items.said("table-statements", "Glesser 2016, chapter 5", [begin])


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "section 5.3": _statements("5.3"),
    "figure 5.1": _statements("figure 5.1"),
    "figure 5.2": _statements("figure 5.2"),
    "figure 5.3": _statements("figure 5.3"),
    "table 5.1": _table_5_1,
    "table 5.1, text": _statements("table 5.1"),
}
