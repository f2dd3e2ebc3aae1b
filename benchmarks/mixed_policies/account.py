"""What agrees with the paper, what does not, and why as far as that is known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from hpcgym.benchmarks.mixed_policies.markdown import table_text
from hpcgym.benchmarks.mixed_policies.published import TABLES_3_TO_6
from hpcgym.benchmarks.mixed_policies.tables import gains, order_agreement

if TYPE_CHECKING:
    import pandas as pd
    from hpcgym.benchmarks.mixed_policies.run import Findings

#: What was found out with KTH-SP2 and SDSC-SP2; the figures are in the tables.
_ACCOUNT = """\
**Ten seconds or sixty, and jobs at the ends of weeks.** The paper sets the bounded slowdown's
limit to 10 s (section 2.3) and removes jobs that start in one week and finish in another (section
5.1). Its numbers follow from neither. With both (reading *text*) the sums are 2.4 to 2.8 times
table 5 on KTH-SP2, and within 0.98 to 1.18 of table 3 on SDSC-SP2, where two differences nearly
cancel: dropping the jobs takes about a tenth off the sums, 10 s instead of 60 s adds about a
fifth. With 60 s and no job dropped (reading *numbers*) tables 2, 3 and 5 come out together. FCFS,
on which no detail of the other policies has a bearing, is then within 0.5 % of all four values:
KTH-SP2 0.996, SDSC-SP2 0.999, its training half 1.002, its testing half 0.996. Dropping short
jobs instead does not explain it (on KTH-SP2 without jobs below 30 s the ratios are 0.70 to 0.91,
below 60 s 0.41 to 0.47), nor do a larger machine or known run times. Table 1 agrees: its mean run
times (8,579 and 6,318 s) are those of the cleaned traces (8,578 and 6,324 s), not of what
dropping leaves (8,509 and 5,898 s).

**Week numbers.** Sections 6 and 7 name weeks of SDSC-SP2: 43, 92 and 94 are quiet; 64, 73, 79 and
100 are busy; in 38, 44, 56 and 85 SAF is clearly not the best. With weeks of 7 days from the
trace's time 0, all of this holds if the paper's week 1 is the fourth of the trace, and with no
other shift of up to 5 weeks. The sums come nearest there too, and w* of week 73 is 3.2 times
below FCFS and 2.2 times below SAF, in the paper 3 and 2.5 times.

**Columns of tables 3 to 6.** Each is in rising order, but only the first beside its own names. No
threshold changes FCFS; yet its 2864.63 is in the row of SEXP in table 3 (20 hours), and its
357.75 in those of LPF and LRF in table 6. So with a threshold, values are compared by place, not
by name.

**Number of jobs.** The recipe `legrand` leaves 49,865 jobs of SDSC-SP2 and 28,006 of KTH-SP2;
table 1 has 49,809 and 27,670. Without the first week it is 49,808 and 27,987. No filter on the
fields of the log that we tried leaves 27,670 jobs of that mean run time. The authors may have had
another edition of the log.

**What is left.** Single policies differ by up to 10 % (SPF on both traces, in opposite
directions), SRF on the training weeks by 21 %. Scheduling passes per event instead of per second
change sums by less than 2 %, and the order in which equal scores are served is not described in
the paper. Nothing was tuned to come closer.

**Best vectors.** The paper's w* (376.67 and 357.51 in table 2) is far below the best of the grid
if times are in seconds, and its w*_train (682.11) above. A weight of processors in [-1, 1] is
nothing beside weights of seconds: the two halves q <= 0 and q >= 0 of the space are the same to
0.2 %, where figure 4 shows them different. The paper does not name its units; the table of units
shows what others would do. The grid here is in processors and seconds.

**Which half of the space.** Section 7.3 says that q >= 0 has the lower slowdowns. With the
paper's own convention (FCFS is a weight of +1 of the waiting time) q >= 0 serves large jobs first
and must be the worse half, as LQF is worse than SQF in tables 3 to 6; the figure's sign must be
reversed.

**w_greedy.** Many vectors share a week's least value, on quiet weeks a tenth of all and more, and
they differ on the next week. The paper does not say which it takes. *w_greedy* is the mean over
all of them; *w_greedy, first* in `weekly.csv` is the first in the order of the grid.

**Months.** The paper gives no numbers. Periods are 30 days from time 0, the first left out;
training is on the first ten, or the first half of a shorter trace; the grid has fewer points.
"""


def account_text(findings: Sequence[Findings]) -> str:
    """Return the account as Markdown; empty if the paper has no values of these traces."""
    compared = [found for found in findings if "paper" in found.tables["thresholds"]]
    if not compared:
        return ""
    note = (
        "Sums without a threshold, ours divided by the paper's; pairs of policies that are in the"
        " same order; the largest difference of a gain over FCFS, in percentage points.\n"
    )
    table = table_text(closeness(compared))
    return f"## How close, and why not closer\n\n{note}\n{table}\n{_ACCOUNT}"


def closeness(findings: Sequence[Findings]) -> pd.DataFrame:
    """Return how near the sums without a threshold are to the paper's, by trace and reading."""
    import pandas as pd

    rows = []
    for found in findings:
        study, table = found.study, found.tables["thresholds"]
        free = table[table["threshold (s)"] == "none"].set_index("policy")
        ours = {str(name): float(value) for name, value in free["ours"].items()}
        paper = {name: row[0] for name, row in TABLES_3_TO_6[study.trace].items()}
        ratio = free["ours / paper"]
        same, pairs = order_agreement(ours, paper)
        mine, theirs = gains(ours), gains(paper)
        rows.append(
            {
                "trace": study.trace,
                "reading": study.reading.name,
                "FCFS: ratio": float(ratio["fcfs"]),
                "least ratio": float(ratio.min()),
                "geometric mean ratio": float(np.exp(np.log(ratio).mean())),
                "largest ratio": float(ratio.max()),
                "same order": f"{same} of {pairs}",
                "largest difference of a gain": max(abs(mine[p] - theirs[p]) for p in ours),
            }
        )
    return pd.DataFrame(rows)
