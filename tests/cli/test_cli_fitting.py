"""Tables of means."""

from __future__ import annotations

import pandas as pd

from hpcgym.cli.means import Asked, means_of


def test_means_of_ratios_say_of_how_many() -> None:
    rows = pd.DataFrame(
        {
            "workload": "w",
            "seed": [0, 1, 0, 1],
            "scheduler": ["easy", "easy", "saf", "saf"],
            "mean_wait_s": [0.0, 10.0, 5.0, 20.0],
        }
    )
    asked = Asked(metric=["mean_wait_s"], normalise="easy")
    (found,) = means_of(rows, "", asked).sheet.tables
    place = found.heads.index("ratios")
    assert [row[place][0] for row in found.cells] == ["1", "1"]
    (full,) = means_of(rows.assign(mean_wait_s=1.0), "", asked).sheet.tables
    assert "ratios" not in full.heads
