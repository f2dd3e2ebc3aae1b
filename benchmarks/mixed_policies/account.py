"""How near the sums are to the paper's; README.md tells what differs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpcgym.benchmarks.mixed_policies.published import TABLES_3_TO_6
from hpcgym.benchmarks.mixed_policies.tables import gains, order_agreement
from hpcgym.benchmarks.studies.harness import table_text

if TYPE_CHECKING:
    import pandas as pd

    from hpcgym.benchmarks.mixed_policies.run import Findings

#: Where the differences are told.
_DIFFERENCES = "`benchmarks/mixed_policies/README.md`, *What differs, and why*"


def account_text(findings: Sequence[Findings]) -> str:
    """Return the account as Markdown; empty if the paper has no values of these traces."""
    compared = [found for found in findings if "paper" in found.tables["thresholds"]]
    if not compared:
        return ""
    note = (
        "Sums without a threshold, ours divided by the paper's; pairs of policies that are in the"
        " same order; the largest difference of a gain over FCFS, in percentage points. What"
        f" differs from the paper, and why as far as that is known: {_DIFFERENCES}.\n"
    )
    table = table_text(closeness(compared))
    return f"## How close\n\n{note}\n{table}"


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
