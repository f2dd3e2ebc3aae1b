"""Estimates that are formulas over what is remembered of users: their names and settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Formula:
    """An estimate that learns by remembering; the engine has its formula.

    Seconds are cut to whole ones, from 1 to the requested time, which also stands for what is no
    number.

    Attributes
    ----------
    meaning : what it is, in lists of names.
    label : what it takes run times to be, in tables and pictures; ``{last}`` stands for a number.
    last : how many of the user's last run times it looks at.
    by_class : whether it looks at ratios; else none are kept.
    """

    meaning: str
    label: str
    last: int = 0
    by_class: bool = False


#: Name -> estimate, in the order of the engine. The first stands for ave1, ave2, ave3 and so on.
FORMULAS = {
    "ave2": Formula(
        "the mean of the user's last two ended jobs, at most the requested time; the requested "
        "time while there are not two (Tsafrir et al. 2007; Glesser 2016, section 7.2.2; L2 of "
        "Galleguillos et al. 2020). ave1, ave3 and so on: of the last one, three ...",
        "mean of the user's last {last} run times",
        last=2,
    ),
    "user-ratio": Formula(
        "requested time x the mean of run time / requested time of the user's ended jobs",
        "requested times x the user's mean ratio",
    ),
    "typical-ratio": Formula(
        "requested time x the geometric mean of run time / requested time of the user's ended "
        "jobs, and of those as wide, the latest counting most",
        "requested times x the user's typical ratio",
        by_class=True,
    ),
}
