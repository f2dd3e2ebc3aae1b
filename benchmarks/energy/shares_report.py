"""The report on energy fair share: table 6.1 and Light-ESP, ours beside the published values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

#: What reports of this study begin with.
HEAD = """\
# Energy fair share, computed anew

D. Glesser: Road to exascale (2016), chapter 6, with Y. Georgiou, K. Rzadca and D. Trystram.
Computed by hpcgym {version}. FS: first comes the user with the least recent processor seconds; EFS:
with the least recent joules; FS+EFS: with the least sum of both, each over its present maximum.
Usage is counted when a job ends. Stretch is (wait + run time) / run time.

Energy is in proportion to processor seconds but for one user, who needs 30 % less (green) or more
(gluttonous). Where nobody differs all three are one schedule, to the second: the baseline.
"""

#: Name of a table -> heading, and what is said below it.
TEXTS = {
    "6.1": (
        "A user who saves or wastes energy (table 6.1)",
        "A user's mean stretch over that in the baseline; statistics over the 20 users who submit"
        " most, each in a simulation of her own. The interval is of resamples of these users. So"
        " read, numbers like the published ones come out; the text has another mean, that of the"
        " next table.",
    ),
    "6.1-by-jobs": (
        "The same, of each job's ratio",
        "The text averages, over a user's jobs, each job's stretch over its stretch in the"
        " baseline. Any change of the schedule draws such a mean above 1, whoever gains: a job that"
        " waits an hour more may have a hundred times its stretch, and one that gains loses a part"
        " of it. See *nobody differs* below. The published means below 1 are hardly of this kind.",
    ),
    "readings": (
        "Readings",
        "Means over users, as in the first table. What the text leaves open is read in several"
        " ways; none was chosen by its result.",
    ),
    "late": (
        "How steady the means are",
        "Over copies of the trace in which each job comes up to a minute later, and the trace"
        " itself. *Nobody differs*: FS on the copies over FS on the trace, which is what chance"
        " alone does.",
    ),
    "users": ("Users", "Their ratios, by number in the trace."),
    "light-esp": (
        "Light-ESP on a machine of Curie's size (figures 6.2 and 6.3)",
        "Four repetitions, three users; means over orders of the jobs. Figures 6.2 and 6.3 print no"
        " numbers. When jobs come and what they request is assumed (see the generator"
        " `light-esp`): with load 1 as fast as the machine could run them without gaps, with 1.2 by"
        " a fifth faster.",
    ),
    "statements": (
        "What the text says of Light-ESP",
        "*Roughly the same*: within 10 %; *roughly 60 %*: within 15 points; *about 89 %*: within"
        " 3 points.",
    ),
    "frequencies": (
        "Users who choose their frequencies (figure 6.4)",
        "A model, not a measurement: times as of Linpack in table 4.3; power with a part that"
        " frequency does not act on, so large that 2.3 GHz needs the least energy, as section 6.3.3"
        " says.",
    ),
    "light-esp-180": (
        "Light-ESP on 180 cores (figures 6.5 to 6.8)",
        "Four repetitions, with other users for the groups of jobs in each; over orders of the"
        " jobs. The burst is 60 jobs of 60 cores; their users are green, normal, and one whose"
        " governor keeps the highest frequency. What a green job saves there is not told: 20 and"
        " 25 % are what section 6.1.2 reports of others, the third is the model's.",
    ),
    "statements-180": (
        "What the text says of Light-ESP on 180 cores",
        "By means. *Similar*: within 20 %; *much longer*, *significantly* and the like: by more"
        " than 10 %. Limits are ours, chosen once first runs were known. The sentence of the burst"
        " is judged with 20 % saved.",
    ),
}


def report_text(made: Mapping[str, pd.DataFrame], pictures: Mapping[str, Path], quick: bool) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    made : the tables by name.
    pictures : heading -> file.
    quick : whether this is a small cut.
    """
    parts = [HEAD.format(version=__version__)]
    if quick:
        parts.append("**A quick cut: few jobs, users and orders. Not to be compared.**\n")
    for name, (heading, note) in TEXTS.items():
        if name in made:
            parts += [f"## {heading}\n", f"{note}\n", table_text(made[name])]
    for heading, file in pictures.items():
        parts.append(f"## {heading}\n\n![{heading}]({file.as_posix()})\n")
    return "\n".join(parts)
