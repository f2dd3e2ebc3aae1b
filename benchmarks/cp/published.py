"""What is published: numbers to be shown beside ours, in tables and in the report's sentences.

Nothing of ours is computed from them, but by ``VARIABLES_BELOW`` and ``SECONDS_BETWEEN`` how many
of our ratios are within what is published.

Document 001: C. Galleguillos, Z. Kiziltan and R. Soto, A constraint programming-based job
dispatcher for modern HPC systems and applications (2020). Document 000: V. Remediani, Data-driven
job scheduling in constraint programming for HPC systems (2017), prints no table of results: its
figures are boxes without numbers, so that of its results only the order can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

INFINITE = float("inf")


@dataclass(frozen=True)
class Times:
    """A row of table 1 or 2 of document 001.

    Attributes
    ----------
    dispatch_ms : average CPU time of a dispatching decision [ms]; infinite: the run did not end.
    total_s : time of the whole simulation [s].
    """

    dispatch_ms: float
    total_s: float


#: Machine -> (dispatcher, duration) -> what tables 1 and 2 of document 001 print.
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

#: Document 001, section 4: how many jobs the logs behind these tables have.
JOBS = {"kit-forhlr-ii": 114_355, "eurora": 400_000}

#: How many months they are of: June 2016 to January 2018 (document 001, section 4), and March 2014
#: to August 2015 (document 000, section 3.1.1).
MONTHS = {"kit-forhlr-ii": 20, "eurora": 18}

#: Document 001, figure 6: on every instance the ratio of variables, PCP'20 to PCP'19, is below.
VARIABLES_BELOW = 0.1

#: Figure 7: between these is the ratio of dispatching times on almost all instances.
SECONDS_BETWEEN = (0.01, 1.0)

#: Document 000, chapter 5: what its text says of the figures: (better, than, by what, where).
#: A name is a dispatcher and a duration; the measure a column of our tables.
STATEMENTS: tuple[tuple[str, str, str, str], ...] = (
    ("sdprb R", "sdprb D", "slowdown", "5.2.1"),
    ("sdprb D", "sdprb W", "slowdown", "5.2.1"),
    ("sdprb D", "prb D", "slowdown", "5.2.1"),
    ("sdprb D", "prb R", "slowdown", "5.2.1"),
    ("sdprb R", "prb R", "slowdown", "5.2.1"),
    ("prb D", "sdprb D", "slowdown, long", "5.2.1"),
    ("prb R", "sdprb R", "slowdown, long", "5.2.1"),
    ("sdprb R", "prb R", "queue", "5.2.2"),
    ("sdprb D", "prb D", "queue", "5.2.2"),
    ("sdprb D", "prb D", "wait", "5.2.3"),
    ("sdprb R", "sdprb D", "wait", "5.2.3"),
    ("cph-3 D", "cph-0 D", "slowdown", "5.3.1"),
    ("cph-1 D", "cph-0 D", "slowdown", "5.3.1"),
    ("cph-2 D", "cph-0 D", "slowdown", "5.3.1"),
    ("cph-3 D", "cph-0 D", "queue", "5.3.2"),
    ("cph-3 D", "cph-0 D", "wait", "5.3.3"),
    ("cp-1 D", "cp-0 D", "slowdown", "5.4.1"),
    ("cp-2 D", "cp-0 D", "slowdown", "5.4.1"),
    ("cp-1 D", "cp-3 D", "slowdown", "5.4.1"),
    ("cp-0 W", "cp-2 W", "slowdown", "5.4.1"),
    ("cp-3 D", "cp-0 D", "queue", "5.4.2"),
    ("cp-0 R", "cp-0 W", "queue", "5.4.2"),
    ("cp-0 W", "cp-2 W", "wait", "5.4.3"),
    ("prb W", "easy W", "slowdown", "3.3.1"),
    ("cph-0 W", "easy W", "slowdown", "3.3.1"),
    ("cph-0 R", "cph-0 W", "slowdown", "3.3.1"),
    ("sjf-list R", "sjf-list W", "slowdown", "3.3.1"),
    ("easy R", "easy W", "slowdown", "3.3.1"),
    ("ljf-list W", "ljf-list R", "slowdown", "3.3.1"),
)
