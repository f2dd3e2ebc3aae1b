"""Performance profiles, by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.schedule.metrics import LESS, Metric, known_metrics
from hpcgym.study.evaluation.figures import (
    draw_profiles,
    profiles,
    ratios_to_best,
)

BSLD = Metric("mean_bsld", "mean BSLD", "", LESS)


def test_profiles_are_shares_of_slices_near_the_best() -> None:
    grid = pd.DataFrame({"x": [1.0, 4.0, 9.0], "y": [2.0, 2.0, 3.0]})
    np.testing.assert_allclose(ratios_to_best(grid, BSLD), [[1, 2], [2, 1], [3, 1]])
    np.testing.assert_allclose(
        ratios_to_best(grid, known_metrics()["utilization"]), [[2, 1], [1, 2], [1, 3]]
    )
    pytest.importorskip("matplotlib")
    first, second = draw_profiles(grid, BSLD).get_lines()
    for line, ratios in ((first, [1, 2, 3]), (second, [2, 1, 1])):
        x, share = line.get_data()
        for at in (1.0, 1.5, 2.0, 2.9, 3.0):
            reached = share[np.flatnonzero(np.asarray(x) <= at)[-1]]
            assert reached == pytest.approx(100 * sum(ratio <= at for ratio in ratios) / 3)
    assert first.get_label() == "x: best on 33 %"


test_mistakes = mistakes_of(globals(), profiles)
