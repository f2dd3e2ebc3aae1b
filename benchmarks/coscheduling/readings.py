"""What ELiSE does not say of its experiment, read in several ways.

The main reading was settled, each point by a sentence of the document or by what ELiSE's public
measurements are like, before anything was simulated. Each other reading changes one point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

MAIN = "main"

#: [s] the shortest and the longest of the seven NAS codes of 256 processes measured on ARIS, ten
#: times as long, as in the load file NASx10, whose run times the document's table of jobs has.
RUN_S = (561.0, 1459.0)
#: The same of all 33 NAS codes on ARIS.
WIDE_RUN_S = (201.0, 5611.0)
#: Standard deviations of the measured speedups: NAS on Grvingt, NAS and SPEC on ARIS.
GRVINGT, ARIS, SPEC = 0.11, 0.19, 0.26
#: Of the main reading: each node is judged by itself.
BEST: Mapping[str, str | float] = {"partners": "best"}


@dataclass(frozen=True)
class Reading:
    """How the experiment of the table is read.

    Attributes
    ----------
    meaning : in words.
    codes : how many codes the jobs of a workload run.
    spread : standard deviation of the speedups of all pairs.
    run_s : compact run times are drawn between these [s], their logarithms uniformly.
    rising : the longest is that of the code that gains most on average beside the others, and so
        on.
    chosen_of : codes are chosen of so many, as those whose mean is the nearest of many draws; None:
        the heatmap has this mean.
    alone : rate on half sockets with nobody beside; None: the greatest of the code's speedups.
    arrivals : as :data:`hpcgym.workload.codes.ARRIVALS` has them.
    rules : of all co-schedulers, by the names of :class:`hpcgym.Scheduler`'s attributes.
    """

    meaning: str
    codes: int = 8
    spread: float = GRVINGT
    run_s: tuple[float, float] = RUN_S
    rising: bool = False
    chosen_of: int | None = None
    alone: float | None = None
    arrivals: str = "at-once"
    rules: Mapping[str, str | float] = field(default_factory=lambda: BEST)


_MAIN = Reading("all as settled beforehand")

#: Name -> reading; the main one first.
READINGS: dict[str, Reading] = {
    MAIN: _MAIN,
    "no spread": replace(_MAIN, meaning="all pairs have the mean speedup", spread=0.0),
    "spread of ARIS": replace(_MAIN, meaning=f"a spread of {ARIS}: NAS on ARIS", spread=ARIS),
    "spread of SPEC": replace(_MAIN, meaning=f"a spread of {SPEC}: SPEC on ARIS", spread=SPEC),
    "4 codes": replace(_MAIN, meaning="jobs run 4 codes", codes=4),
    "16 codes": replace(_MAIN, meaning="jobs run 16 codes: eight in two classes", codes=16),
    "chosen codes": replace(
        _MAIN,
        meaning=f"8 codes chosen of 32 with a mean of 1.1 and a spread of {ARIS}",
        chosen_of=32,
        spread=ARIS,
    ),
    "equal run times": replace(_MAIN, meaning="all codes run 1,000 s", run_s=(1000.0, 1000.0)),
    "wide run times": replace(
        _MAIN, meaning="run times as far apart as of all NAS codes on ARIS", run_s=WIDE_RUN_S
    ),
    "alone 1": replace(_MAIN, meaning="with nobody beside, a job runs as when compact", alone=1.0),
    "first partners": replace(
        _MAIN, meaning="nodes are taken by number, whoever is there", rules={"partners": "first"}
    ),
    "filled nodes": replace(
        _MAIN, meaning="nodes in use are taken before idle ones", rules={"partners": "fill"}
    ),
    "long jobs gain": replace(
        _MAIN,
        meaning="*filled nodes*, and run times rise with a code's mean speedup",
        rising=True,
        rules={"partners": "fill"},
    ),
    "good pairs only": replace(
        _MAIN,
        meaning="jobs share a node only if that gains on average",
        rules={**BEST, "pairs_above": 1.0},
    ),
    "arrivals": replace(
        _MAIN,
        meaning="jobs come at random, as many as compact nodes can do",
        arrivals="poisson",
    ),
}
