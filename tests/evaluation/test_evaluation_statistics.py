"""What a leaderboard says of its values, and the static weights among its rows."""

from __future__ import annotations

import numpy as np
import pytest
from boards import TRACE, board_of, candidates

from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.online import best_static
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate

# --- Statistics -----------------------------------------------------------------------------


def test_means_wins_and_regret() -> None:
    table = board_of({"a": [2.0, 4.0, 8.0, 1.0], "b": [2.0, 2.0, 9.0, 3.0]}).table
    assert list(table.index) == ["a", "b"]
    a, b = table.loc["a"], table.loc["b"]
    assert (a["mean_bsld"], a["median_bsld"]) == (3.75, 3.0)
    assert (b["mean_bsld"], b["median_bsld"]) == (4.0, 2.5)
    assert (a["win_rate"], b["win_rate"]) == (2.5 / 4, 1.5 / 4)
    assert a["mean_regret"] == pytest.approx((0 + 1 + 0 + 0) / 4)
    assert b["mean_regret"] == pytest.approx((0 + 0 + 1 / 8 + 2) / 4)


def test_resamples_are_paired() -> None:
    values = np.random.default_rng(1).exponential(100, 50)
    board = board_of({"a": values.tolist(), "b": (values + 1).tolist()})
    table = board.table
    assert table["mean_bsld_high"].diff().iloc[1] == pytest.approx(1)
    assert board.difference("b", "a") == pytest.approx((1, 1, 1))
    mean, low, high = board.difference("a", "b")
    assert low <= mean <= high < 0
    with pytest.raises(HpcgymError, match="unknown policy 'c'; known are a, b"):
        board.difference("a", "c")


@pytest.mark.parametrize("number", [1, 2, 4, 5])
def test_few_slices_have_no_interval(number: int) -> None:
    board = board_of({"a": [3.0] * number, "b": [1.0, 2.0, 4.0, 5.0, 6.0][:number]})
    row = board.table.loc["b"]
    mean, low, high = board.difference("a", "b")
    assert row["mean_bsld"] == 3 - mean
    ends = [row["mean_bsld_low"], row["mean_bsld_high"], low, high]
    assert np.isnan(ends).tolist() == [number < 5] * 4


def test_a_slice_on_which_all_fail_is_nobodys() -> None:
    nan = float("nan")
    table = board_of({"a": [nan, 1.0], "b": [nan, 2.0]}).table
    assert table["win_rate"].tolist() == [0.5, 0]
    assert table["failed"].tolist() == [1, 1]


# --- Static weights -------------------------------------------------------------------------


def test_static_weights_are_the_best_of_the_training_part_only() -> None:
    board = evaluate((), TRACE, budget=40, jobs=100, n=5, seed=1)
    train = Episodes(TRACE, jobs=100, part="train")
    training = [train.workload_of(episode) for episode in train.named(100, 2)]
    means = {
        str(weights): np.mean(
            [simulate(part, "spf", policy=weights).metrics["mean_bsld"] for part in training]
        )
        for weights in candidates(training, WEIGHTED_FEATURES, 40, 1)
    }
    assert len(means) == 40
    assert min(means, key=lambda text: means[text]) == str(board.static_weights)
    assert sum(map(abs, board.static_weights.values())) == pytest.approx(1)
    # whatever is evaluated
    for part in ("train", "all"):
        again = evaluate((), TRACE, budget=40, jobs=100, n=2, seed=1, slices=part)
        assert again.static_weights == board.static_weights


def test_ties_go_to_the_first() -> None:
    one_job = [TRACE.take(slice(0, 1))]
    steps: list[str] = []
    best = best_static(one_job, ("area", "wait"), Scheduler(), 6, 0, steps.append)
    assert best == {"area": 1.0}
    assert len(steps) == 6
