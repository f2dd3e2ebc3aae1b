"""What Glesser 2016, chapter 6, prints of energy fair share, and its items with their verdicts."""

from __future__ import annotations

from typing import NamedTuple

from hpcgym.benchmarks.studies import items

# --- What Glesser 2016, section 6.3, prints of energy fair share ----------------------------------


class Row(NamedTuple):
    """A row of table 6.1: statistics over 20 users of their stretch over that in the baseline."""

    least: float
    mean: float
    median: float
    deviation: float
    greatest: float


#: Table 6.1: trace -> (configuration, efficiency) -> row. "fs" is 1 everywhere: it is the baseline.
TABLE_6_1: dict[str, dict[tuple[str, str], Row]] = {
    trace: {(policy, name): Row(*of) for policy, by in rows.items() for name, of in by.items()}
    for trace, rows in items.published_values(__file__, "published_shares.csv")["table 6.1"].items()
}

#: Section 6.3.2, in its text; figures 6.2 and 6.3 have no numbers.
UTILISATION = 0.89  # of all policies
SAVED = 0.60  # by which share the efficient user's stretch is reduced

#: Section 6.3.3: frequencies [GHz] of the users of 180 cores: the most energy-efficient one, the
#: highest, and the lowest, which is "usually the most energy-consuming one".
FREQUENCIES = {"green": 2.3, "normal": 2.5, "gluttonous": 1.6}

#: Waits [s] up to which efficiency hardly matters under EFS (figure 6.5b).
ALIKE_UP_TO_S = 1_250

#: Figure 6.8: jobs that are submitted at once, and their cores.
BURST = (60, 60)


# --- The items of Glesser 2016, chapter 6, and what makes their verdicts --------------------------


#: How far a mean may be from a published one to count as near.
NEAR = 0.1


def _table_6_1(stored: items.Stored) -> items.Verdict:
    """Means of table 6.1: near the published ones, on the same side of 1, in the same order."""
    table = stored.table("table-6.1", "trace", "config", "efficiency", "mean")
    rows = table[table["trace"].isin(list(TABLE_6_1))]
    so = {}
    near = []
    for trace, part in rows.groupby("trace", sort=False):
        means = part.set_index(["config", "efficiency"])["mean"]
        for key, row in TABLE_6_1[str(trace)].items():
            near.append(abs(means[key] - row.mean) <= NEAR)
            so[f"{trace}, {' '.join(key)}: the same side of 1"] = (means[key] > 1) == (row.mean > 1)
        for policy in ("efs", "fs+efs"):
            below = means[policy, "green"] < means[policy, "gluttonous"]
            printed = [TABLE_6_1[str(trace)][policy, one].mean for one in ("green", "gluttonous")]
            so[f"{trace}, {policy}: the order"] = below == (printed[0] < printed[1])
    found = items.of_sentences(so)
    words = f"{sum(near)} of {len(near)} means within {NEAR:g}; {found.why}"
    return items.Verdict("close" if all(near) and all(so.values()) else found.verdict, words)


def _statements(*begin: str) -> items.Judge:
    return items.said("table-statements", "Glesser 2016, section 6.3.2", begin)


#: Items with results -> what makes their verdicts.
JUDGES: dict[str, items.Judge] = {
    "table 6.1": _table_6_1,
    "figure 6.2": _statements("FS and", "EFS", "FS+EFS", "all policies"),
    "figure 6.3": _statements("other jobs"),
    "figure 6.4": items.of_picture("figure-6.4.png"),
    **{
        f"figure 6.{k}": items.said(
            "table-statements-180", "Glesser 2016, section 6.3.3", [f"figure 6.{k}"]
        )
        for k in range(5, 9)
    },
}
