"""The report on energy budgets: figures 5.1 to 5.3 and table 5.1, ours beside the published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.benchmarks.energy.budget import DRAWN_W, RECKONED_W
from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

#: What reports of this study begin with.
HEAD = """\
# Energy budgets, computed anew

D. Glesser: Road to exascale (2016), chapter 5, with P.-F. Dutot, Y. Georgiou, L. Lefèvre, M. Poquet
and I. Raïs. Computed by hpcgym {version}. A budget for the three days from the third on of a busy
week, which begins on an empty machine; 100 % is what processors use that are all busy, as the
scheduler reckons them, {reckoned} W each. What is drawn is {drawn} W, and the meter, looked at
every ten minutes, sees that. Processors are nodes of Taurus, and jobs need them in a row.

Traces: {traces}. The thesis has Curie, MetaCentrum and SDSC-BLUE, five weeks each. Weeks are those
of high utilisation: {weeks}.
"""

#: Name of a table -> heading, and what is said below it.
TEXTS = {
    "statements": (
        "What the text says, and whether it is so",
        "Means over traces of means over weeks. Reading *as written* is the one of the figures."
        " *Comparable*: within a factor of two at each budget; *consumes more*: in more than half"
        " of budgets, with and without shutdown.",
    ),
    "statements-by-trace": ("The same for each trace, as written", "Means over its weeks."),
    "5.1": (
        "What switching off idle processors changes (table 5.1)",
        "The mean over budgets and weeks of the change of each run. Intervals are of resampled"
        " weeks.",
    ),
    "figures": (
        "The values of figures 5.1 to 5.3",
        "Over those of EASY in the same week, but for the energy, which is over that of processors"
        " that are all busy. Within the week; AVEbsld is that of all its jobs.",
    ),
    "weeks": ("Weeks", "Numbered from week 0 of the trace."),
    "readings": (
        "Readings",
        "The first three were there before any result. *Off as idle* was added once results were"
        " known, the last two after those of that reading.",
    ),
}


def report_text(
    made: Mapping[str, pd.DataFrame],
    pictures: Mapping[str, Path],
    traces: list[str],
    weeks: str,
    quick: bool,
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    made : the tables by name.
    pictures : heading -> file.
    traces : their names.
    weeks : how weeks were chosen, in words.
    quick : whether this is a small cut.
    """
    parts = [
        HEAD.format(
            version=__version__,
            reckoned=RECKONED_W,
            drawn=DRAWN_W,
            traces=", ".join(traces),
            weeks=weeks,
        )
    ]
    if quick:
        parts.append("**A quick cut: a week of each trace, three budgets. Not to be compared.**\n")
    for name, (heading, note) in TEXTS.items():
        if name in made:
            parts += [f"## {heading}\n", f"{note}\n", table_text(made[name])]
    for heading, file in pictures.items():
        parts.append(f"## {heading}\n\n![{heading}]({file.as_posix()})\n")
    return "\n".join(parts)
