"""The report of the study: tables and pictures, ours beside what is published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.benchmarks.coscheduling.plans import Sizes
from hpcgym.benchmarks.coscheduling.published import TRACES
from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

#: What reports of this study begin with.
HEAD = """\
# Co-scheduling, computed anew

E. Karapanagiotis, N. Triantafyllis, A. Tsoukleidis-Karydakis, G. Goumas, N. Koziris: ELiSE
(ELiSE). Computed by hpcgym {version}. Jobs take half of the cores of each socket of twice as
many nodes, and share these with others. The improvement is the makespan of EASY on whole nodes over
that of a co-scheduler, less 1; *saved* is 1 less the second over the first. *easy-co* is what the
document calls simple co-scheduling.

**Not the document's heatmaps**, which are not public, nor its jobs: {heatmaps} generated heatmaps
for each mean and reading, 5 shuffles each. *95 % of heatmaps* is what single ones give.
"""

_NO_MEASURED = """\
**Without measured speedups**: the mixes of process counts and the shuffles of measured codes are
left out. They need ELiSE's `{file}`, in a folder of HPCGYM_DATA or named by `--speedups-file`.
"""

#: Name of a table -> heading, and what is said below it.
TEXTS = {
    "improvements": (
        "Makespan improvement over EASY by mean speedup",
        "500 jobs of 256 processes on 100 nodes of 2 x 24 cores, easy-co, the main reading. By room"
        " alone a gain of 12.5 % is due: a job takes 6 of 100 nodes alone, so that 16 run at a"
        " time, and 11 of 200 half nodes, so that 18 do.",
    ),
    "coschedulers": (
        "The same by all co-schedulers",
        "By how nodes are chosen (`partners`): *best* is the main reading, the others are two of"
        " those below. easy-spread takes half of each socket too, but leaves the other half idle.",
    ),
    "readings": (
        "What the document does not say, read in other ways",
        "easy-co; improvements, and how far they are from 24.42, 25.29, 25.87 and 30.63 %. Each"
        " reading differs from the main one in one point.",
    ),
    "files": (
        "A file system that all jobs share",
        "Nothing is published of it. The reading *filled nodes*, mean speedup 1.10. Alone, the"
        " eight codes read or write for shares of their time from the least to the greatest here,"
        " each core with 10 MB/s meanwhile: our assumptions. Bandwidths are shares of what all"
        " cores of the machine ask for together; congestion is how many times as long files take.",
    ),
    "mixes": (
        "Mixes of process counts",
        "Jobs of the measured codes on 200 nodes of 2 x 10 cores; the more counts, the more"
        " diverse. *nodes in use first* is `partners=fill`, with the measured speedups too. Codes"
        " of other counts have other speedups: with all pairs alike, at the mix's mean, only"
        " counts and run times differ.",
    ),
    "mix-utilisation": (
        "Utilisation by mix",
        "Share of the cores on which a process runs until the queue is empty.",
    ),
    "against-easy": (
        "Shuffles of measured codes",
        "Sets of 500 jobs on 200 nodes of 2 x 10 cores; intervals of resampled shuffles. Codes that"
        " do not fit on half of each node of the machine take whole nodes.",
    ),
    "correlations": (
        "What the improvement goes together with",
        "Pearson's correlation over shuffles, with intervals of resampled shuffles; last, that of"
        " the means of the co-schedulers. Under orders by length nothing but the order of equals is"
        " shuffled.",
    ),
    "speed": (
        "Simulated days an hour",
        "Sets of jobs submitted at once, of codes as those measured on Grvingt, on nodes of 2 x 16"
        " cores; seconds of one core of {machine}, without compiling. The document prints the same"
        " numbers of FCFS and EASY, and neither its jobs nor its nodes: the longer jobs are, the"
        " more days an hour has.",
    ),
    "traces": (
        "Simulated days an hour of logs",
        "128 nodes of 64 cores, as the document prints; SDSC-SP2 as cleaned here, its jobs with"
        " codes drawn at random. KIT-FH2 (published: "
        f"{TRACES['KIT-FH2']['fcfs']} and {TRACES['KIT-FH2']['easy']} days an hour) is public too,"
        " `hpcgym traces fetch KIT-FH2`, and not timed here.",
    ),
}


def report_text(
    made: Mapping[str, pd.DataFrame],
    pictures: Mapping[str, Path],
    sizes: Sizes,
    *,
    machine: str,
    missing: str | None,
    notes: Sequence[str],
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    made : the tables by name, of :data:`TEXTS`.
    pictures : heading -> file.
    sizes : how much was simulated.
    machine : what was timed on.
    missing : the file of measured speedups that there is none of; None: there is.
    notes : what else is to be said, such as that this is a small cut.
    """
    parts = [HEAD.format(version=__version__, heatmaps=sizes.heatmaps)]
    if missing is not None:
        parts.append(_NO_MEASURED.format(file=missing))
    parts += [f"{note}\n" for note in notes]
    for name, (heading, note) in TEXTS.items():
        if name in made:
            parts += [f"## {heading}\n", f"{note.format(machine=machine)}\n"]
            parts.append(table_text(made[name]))
    for heading, file in pictures.items():
        parts.append(f"## {heading}\n\n![{heading}]({file.as_posix()})\n")
    return "\n".join(parts)
