"""The report: tables and pictures of all rules on whole logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgym.benchmarks.frontier.choice import AT_MOST
from hpcgym.benchmarks.frontier.tables import NOBODY
from hpcgym.benchmarks.studies.markdown import table_text
from hpcgym.version import __version__

if TYPE_CHECKING:
    import pandas as pd

#: What reports of this study begin with.
HEAD = """\
# Rules of a scheduler on whole logs

Computed by hpcgym {version}. Logs are simulated as a whole, from the first job to the last: nothing
drains at the end of a week, and wide jobs that starve are not cut off. Bounded slowdowns are with
10 s, waits in hours.
"""

#: Name of a table -> heading, and what is said below it.
_TEXTS = {
    "over-logs": (
        "Over all logs",
        "Divided by EASY's: geometric means over the logs, and the greatest of them.",
    ),
    "over-logs-late": (
        "Over the late parts of all logs",
        "The same of jobs submitted in the second half of each log's time.",
    ),
    "named": (
        "Rules by name",
        "The logs as they are, and the rule that is chosen, if one is.",
    ),
    "choices": (
        "Chosen on the early parts",
        "Of all combinations of order, threshold, hold and backfilling, those that keep these"
        " bounds on the early parts of all logs (jobs submitted in the first half of the time): "
        + ", ".join(f"{aim} at most {most:g} times EASY's" for aim, most in AT_MOST.items())
        + ". The first has the least geometric mean of the slowdowns, divided by EASY's. Means over"
        " variants of each log: from several weeks on, with jittered submissions.",
    ),
    "held-out": (
        "What it reaches on the late parts",
        "Nothing of these parts was looked at. Means over the variants, with the least and the"
        " greatest.",
    ),
    "held-out-own": (
        "What each log's own choice reaches",
        "Chosen on the early part of the log alone, as a site would, and shown on its late part.",
    ),
    "who-pays": ("Who waits", "Mean waits by run time, and by width as a part of the machine."),
    "levers": (
        "What the levers do",
        "Medians over all logs and the other rules, of a value with the lever divided by that"
        " without it.",
    ),
    "extra-processors": (
        "Without extra processors",
        "EASY lets a job run beyond the shadow time if it leaves the head enough processors; until"
        " shadow: it must end by then, as in Slurm.",
    ),
    "weekly": (
        "Sums over weeks",
        "Of weekly mean bounded slowdowns, each week from an empty machine with what was learned in"
        " those before; of logs that have whole weeks. *By similar jobs*: run times are predicted"
        " by the user's last 40 jobs, those alike counting most.",
    ),
    "fronts": (
        "Rules that nobody beats",
        "In mean slowdown, mean wait, 99th percentile and longest wait at once.",
    ),
}


def report_text(
    made: Mapping[str, pd.DataFrame], pictures: Mapping[str, Path], best: str | None, quick: bool
) -> str:
    """Return the report as Markdown.

    Parameters
    ----------
    made : the tables by name.
    pictures : log -> file.
    best : the rule that is chosen, None if none keeps the bounds.
    quick : whether this is a small cut.
    """
    parts = [HEAD.format(version=__version__)]
    if quick:
        parts.append("**A quick cut: the first jobs, few rules. Nothing to go by.**\n")
    if "choices" in made:
        parts.append(f"Chosen on the early parts: **{best or NOBODY}**.\n")
    for log, file in pictures.items():
        parts.append(f"![{log}]({file.as_posix()})\n")
    for name, (heading, note) in _TEXTS.items():
        if name in made and made[name].shape[1] > 1:
            parts += [f"## {heading}\n", f"{note}\n", table_text(made[name])]
    return "\n".join(parts)
