"""What Glesser 2016, chapter 4, prints of power caps; nothing is computed from it but the workload.

Figure 4.6 has no numbers, only its text has. From section 4.6.2 the substitute for Curie's trace
has two facts: how many jobs are huge, and how much more time is requested than is needed.
"""

from __future__ import annotations

from typing import NamedTuple


class Benchmark(NamedTuple):
    """A row of table 4.3."""

    name: str
    degradation: float
    rho: float
    best: str


TABLE_4_3 = (
    Benchmark("NA", 2.27, 0.0, "-"),
    Benchmark("linpack", 2.14, -0.027, "Switch-off"),
    Benchmark("IMB", 2.13, -0.029, "Switch-off"),
    Benchmark("SPEC Float", 1.89, -0.088, "Switch-off"),
    Benchmark("SPEC Integer", 1.74, -0.134, "Switch-off"),
    Benchmark("Common value", 1.63, -0.174, "Switch-off"),
    Benchmark("NAS suite", 1.5, -0.225, "Switch-off"),
    Benchmark("STREAM", 1.26, -0.350, "Switch-off"),
    Benchmark("GROMACS", 1.16, -0.422, "Switch-off"),
)

#: Section 4.6.2: the share of jobs that use more than the whole machine for an hour.
HUGE = 0.001

#: Section 4.6.3: by how much less is computed if nodes can only be left idle; work of the 24 hours
#: under a cap of 40 %, of what is possible.
NONE_LESS = 0.40
DAY_WORK = {"SHUT": 0.94, "DVFS": 0.85, "MIX": 0.85}
