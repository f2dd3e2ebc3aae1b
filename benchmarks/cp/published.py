"""What is published: numbers to be shown beside ours, in tables and in the report's sentences.

Nothing of ours is computed from them, but by ``VARIABLES_BELOW`` and ``SECONDS_BETWEEN`` how many
of our ratios are within what is published.

Galleguillos et al. 2020: C. Galleguillos, Z. Kiziltan and R. Soto, A constraint programming-based
job dispatcher for modern HPC systems and applications (2020). Remediani 2017: V. Remediani,
Data-driven job scheduling in constraint programming for HPC systems (2017), prints no table of
results. Its figures are boxes without numbers, of which only the order can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

INFINITE = float("inf")


@dataclass(frozen=True)
class Times:
    """A row of table 1 or 2 of Galleguillos et al. 2020.

    Attributes
    ----------
    dispatch_ms : average CPU time of a dispatching decision [ms]; infinite: the run did not end.
    total_s : time of the whole simulation [s].
    """

    dispatch_ms: float
    total_s: float


#: Machine -> (dispatcher, duration) -> what tables 1 and 2 of Galleguillos et al. 2020 print.
TIMES: dict[str, dict[tuple[str, str], Times]] = {
    "kit-forhlr-ii": {
        ("hcp19", "L2"): Times(292, 58_934),
        ("pcp19", "L2"): Times(INFINITE, INFINITE),
        ("pcp20", "L2"): Times(537, 108_608),
        ("hcp19", "R"): Times(270, 54_719),
        ("pcp19", "R"): Times(INFINITE, INFINITE),
        ("pcp20", "R"): Times(662, 133_086),
    },
    "eurora": {
        ("hcp19", "D"): Times(411, 219_142),
        ("pcp19", "D"): Times(565, 301_078),
        ("pcp20", "D"): Times(252, 134_240),
        ("hcp19", "R"): Times(385, 204_363),
        ("pcp19", "R"): Times(512, 272_925),
        ("pcp20", "R"): Times(364, 193_751),
    },
}

#: Galleguillos et al. 2020, section 4: how many jobs the logs behind these tables have.
JOBS = {"kit-forhlr-ii": 114_355, "eurora": 400_000}

#: How many months they are of: June 2016 to January 2018 (Galleguillos 2020, section 4), and
#: March 2014 to August 2015 (Remediani 2017, section 3.1.1).
MONTHS = {"kit-forhlr-ii": 20, "eurora": 18}

#: Galleguillos 2020, figure 6: on each instance the ratio of variables, PCP'20 to PCP'19, is below.
VARIABLES_BELOW = 0.1

#: Figure 7: between these is the ratio of dispatching times on almost all instances.
SECONDS_BETWEEN = (0.01, 1.0)


class Statement(NamedTuple):
    """What the text of Remediani 2017 says of two runs in one of its figures.

    Attributes
    ----------
    first, second : a dispatcher and a duration each.
    measure : a column of our tables; its mean, or of a box the upper quartile.
    section : where it says so.
    about : it says that both are about the same; else that the first is below the second.
    later : it was added here once results were known.
    """

    first: str
    second: str
    measure: str
    section: str
    about: bool = False
    later: bool = False


#: Remediani 2017, chapters 3 and 5: what its text says of the figures.
STATEMENTS: tuple[Statement, ...] = (
    Statement("sdprb R", "sdprb D", "slowdown", "5.2.1"),
    Statement("sdprb D", "sdprb W", "slowdown", "5.2.1"),
    Statement("sdprb D", "prb D", "slowdown", "5.2.1"),
    Statement("sdprb D", "prb R", "slowdown", "5.2.1"),
    Statement("sdprb R", "prb R", "slowdown", "5.2.1"),
    Statement("prb D", "sdprb D", "slowdown, long", "5.2.1"),
    Statement("prb R", "sdprb R", "slowdown, long", "5.2.1"),
    Statement("sdprb R", "prb R", "queue", "5.2.2"),
    Statement("sdprb D", "prb D", "queue", "5.2.2"),
    Statement("sdprb D", "prb D", "wait", "5.2.3"),
    Statement("sdprb R", "sdprb D", "wait", "5.2.3"),
    Statement("cph-3 D", "cph-0 D", "slowdown", "5.3.1"),
    Statement("cph-1 D", "cph-0 D", "slowdown", "5.3.1"),
    Statement("cph-2 D", "cph-0 D", "slowdown", "5.3.1"),
    Statement("cph-3 D", "cph-0 D", "queue", "5.3.2"),
    Statement("cph-3 D", "cph-0 D", "wait", "5.3.3"),
    Statement("cp-1 D", "cp-0 D", "slowdown", "5.4.1"),
    Statement("cp-2 D", "cp-0 D", "slowdown", "5.4.1"),
    Statement("cp-1 D", "cp-3 D", "slowdown", "5.4.1"),
    Statement("cp-0 W", "cp-2 W", "slowdown", "5.4.1"),
    Statement("cp-3 D", "cp-0 D", "queue", "5.4.2"),
    Statement("cp-0 R", "cp-0 W", "queue", "5.4.2"),
    Statement("cp-0 W", "cp-2 W", "wait", "5.4.3"),
    Statement("prb W", "easy W", "slowdown", "3.3.1"),
    Statement("cph-0 W", "easy W", "slowdown", "3.3.1"),
    Statement("cph-0 R", "cph-0 W", "slowdown", "3.3.1"),
    Statement("sjf-list R", "sjf-list W", "slowdown", "3.3.1"),
    Statement("easy R", "easy W", "slowdown", "3.3.1"),
    Statement("ljf-list W", "ljf-list R", "slowdown", "3.3.1"),
    # its central problem: expected waits make no use of predictions
    Statement("cph-0 W", "cph-0 D", "box of slowdown", "3.3.3", later=True),
    Statement("cph-0 R", "cph-0 D", "box of slowdown", "3.3.3", later=True),
    Statement("cph-0 W", "cph-0 D", "box of queue", "3.3.3", later=True),
    Statement("cph-0 R", "cph-0 D", "box of queue", "3.3.3", later=True),
    Statement("prb W", "prb D", "slowdown", "3.3.3", later=True),
    Statement("prb W", "prb D", "slowdown", "5.2.1", later=True),
    Statement("prb R", "prb D", "slowdown", "5.2.1", later=True),
    Statement("prb W", "prb D", "queue", "5.2.2", about=True, later=True),
    Statement("prb W", "prb R", "queue", "5.2.2", about=True, later=True),
    # and what becomes of it where slowdown takes their place, or does not
    Statement("sdprb W", "prb W", "slowdown", "5.2.1", about=True, later=True),
    Statement("cph-1 D", "cph-1 R", "slowdown", "5.3.1", about=True, later=True),
    Statement("cph-1 D", "cph-1 R", "slowdown, short", "5.3.1", about=True, later=True),
    Statement("cph-1 D", "cph-1 R", "slowdown, long", "5.3.1", later=True),
    Statement("cph-3 D", "cph-3 R", "slowdown", "5.3.1", about=True, later=True),
    Statement("cph-3 D", "cph-3 R", "slowdown, short", "5.3.1", about=True, later=True),
    Statement("cph-3 D", "cph-3 R", "slowdown, long", "5.3.1", later=True),
    Statement("cph-3 D", "cph-3 R", "queue", "5.3.2", about=True, later=True),
    Statement("cph-2 W", "cph-0 W", "queue", "5.3.2", about=True, later=True),
    Statement("cph-2 D", "cph-0 D", "queue", "5.3.2", about=True, later=True),
    Statement("cph-2 R", "cph-0 R", "queue", "5.3.2", about=True, later=True),
)

#: Within which share of the second both are about the same: the document names none. It was chosen
#: before these statements were looked at.
ABOUT = 0.1
