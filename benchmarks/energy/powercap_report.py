"""The report on power caps: figures 4.4 to 4.6 and table 4.3, ours beside what is published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.benchmarks.energy.powercap import CAPPED
from hpcgym.benchmarks.energy.powercap_workload import INTERVALS, LOAD, OF_SHORT, REQUESTS, SHORTER
from hpcgym.benchmarks.energy.published_powercap import HUGE
from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

#: What reports of this study begin with.
HEAD = """\
# Power caps, computed anew

D. Glesser: Road to exascale (2016), chapter 4, with Y. Georgiou and D. Trystram. Computed by hpcgym
{version} on the machine `{cluster}`. A cap for an hour in the middle of an interval, told at its
beginning. SHUT switches nodes off, DVFS lowers frequencies, MIX does both with frequencies from
2.0 GHz on; *none* leaves nodes idle. Work is core seconds in which jobs run, which a lower
frequency makes more; *computed* are those at the highest frequency that would have done the same.

**Not the thesis's trace**, unless you named it. *substitute* is generated: jobs of the
Lublin-Feitelson model for 80,640 cores, run and requested times divided by {shorter}, so that
{huge:.1%} of jobs use more than the machine for an hour, as the thesis says of Curie; and
{load:g} times as much comes as the machine can do, of which it says that there is always a queue.
The thesis replays intervals of Curie in Slurm, with fair share; here it is EASY in order of
arrival, from an empty machine on, a day at least before the interval.

Requested times:
"""

#: What was read otherwise once results were known.
ADDED = (
    "Caps on nodes were added once results of those on the machine were known, and so was"
    f" *{OF_SHORT}*, which is read with those on the machine only."
)

#: Name of a table -> heading, and what is said below it.
TEXTS = {
    "statements": (
        "What the text says, and whether it is so",
        "Means over workloads, intervals and caps. *Most of the time*: in more than half of"
        " intervals and caps; *the same order*: within 20 %; *about 40 % lower*: within 15 points,"
        " under the lowest cap; *about the same*: within 10 %; shares of the 24 hours: within 5"
        " points.",
    ),
    "4.6": (
        "Energy, launched jobs and work (figure 4.6)",
        "Means over workloads. Energy and work over those of a machine that is busy throughout at"
        " the highest frequency, launched jobs over the most of any run of the interval.",
    ),
    "4.3": (
        "Switching off or slowing down (table 4.3)",
        "rho = 1 - 1/deg - ratio, ratio = (Pmax - Pdvfs) / (Pmax - Poff). The published values need"
        " another ratio than the watts of table 4.2 give. And where rho is below 0, slowing down"
        " computes more by the document's own C1 and C3; its algorithm 2 switches off there.",
    ),
    "intervals": (
        "Intervals",
        "The intervals that were chosen, by their jobs under no limit.",
    ),
}


def report_text(
    made: Mapping[str, pd.DataFrame], pictures: Mapping[str, Path], cluster: str, quick: bool
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    made : the tables by name.
    pictures : heading -> file.
    cluster : the machine.
    quick : whether this is a small cut.
    """
    head = HEAD.format(version=__version__, cluster=cluster, shorter=SHORTER, huge=HUGE, load=LOAD)
    readings = [f"- {name}: {meaning}." for name, meaning in REQUESTS.items()]
    readings += ["", "A cap on", "", *(f"- {name}: {words}." for name, words in CAPPED.items())]
    readings += ["", ADDED]
    hours = ", ".join(f"{name} {of} h" for name, of in INTERVALS.items())
    parts = [head, "\n".join(readings) + f"\n\nIntervals: {hours}.\n"]
    if quick:
        parts.append("**A quick cut: one short workload, one cap. Not to be compared.**\n")
    for name, (heading, note) in TEXTS.items():
        if name in made:
            parts += [f"## {heading}\n", f"{note}\n", table_text(made[name])]
    for heading, file in pictures.items():
        parts.append(f"## {heading}\n\n![{heading}]({file.as_posix()})\n")
    return "\n".join(parts)
