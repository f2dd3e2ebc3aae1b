"""What rules lead to: measures by hand, losses, and files from which searches go on."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import load_workload, simulate
from hpcgym.agents.search import Checkpoint
from hpcgym.schedule.measures import MEASURES, measures, weekly_sums
from hpcgym.study import open_executor
from hpcgym.study.tuning.trials import (
    MARGIN,
    USUAL_BOUNDS,
    Bound,
    Candidates,
    Losses,
    Trials,
    by_week,
    try_rules,
    varied,
    weeks_of,
)
from hpcgym.study.tuning.tune import less
from hpcgym.units import WEEK_S
from hpcgym.workload.load import machine_of
from hpcgym.workload.model import Workload

DAY = 86_400
RULES = [{}, {"policy": "saf", "backfill_order": "spf"}, {"threshold": 3600, "policy": "spf"}]


@pytest.fixture(scope="module")
def log() -> Workload:
    return load_workload("lublin:jobs=1500,processors=32,seed=2,load=1.0")


def by_hand() -> Workload:
    """Four jobs of one processor, each of an hour, on a machine of one: waits 0, 1, 2 h, then 0."""
    return Workload.from_columns(
        {
            "submit_time": [0, 0, 0, 8 * DAY],
            "requested_processors": [1] * 4,
            "run_time": [3600] * 4,
            "requested_time": [3600] * 4,
            "user_id": [1, 1, 2, 2],
        },
        processors=1,
    )


def test_measures_by_hand() -> None:
    jobs = by_hand()
    result = simulate(jobs, "fcfs")
    measured = measures(result, np.ones(4, bool))
    assert measured["mean_bsld"] == (1 + 2 + 3 + 1) / 4
    assert measured["weekly_bsld"] == pytest.approx(math.sqrt(2 * 1))
    assert measured["mean_wait_h"] == 0.75
    assert measured["max_wait_h"] == 2
    assert measured["p99_wait_h"] == pytest.approx(1.97)
    # users wait half an hour and an hour
    assert measured["users_p90_wait_h"] == pytest.approx(0.95)
    assert weekly_sums(result, np.ones(4, bool), 3).tolist() == [[3, 6, 3], [1, 1, 0], [0, 0, 0]]
    assert all(math.isnan(value) for value in measures(result, np.zeros(4, bool)).values())
    assert list(measured) == list(MEASURES)
    assert weeks_of(jobs) == 2


def test_each_trial_is_a_simulation(log: Workload) -> None:
    """On any executor, in any chunks."""
    machine = machine_of(log, None, None)
    since = float(log.submit_time[700])
    tried = try_rules(log, machine, RULES, (0, 5), since)
    assert tried.values.shape == (3, 2, len(MEASURES))
    assert tried.weeks.shape == (3, 2, weeks_of(log), 3)
    for number, rules in enumerate(RULES):
        for place, seed in enumerate((0, 5)):
            jobs = varied(log, 0, seed)
            result = simulate(jobs, **rules)
            later = np.isin(jobs.job_number, log.job_number[log.submit_time >= since])
            assert tried.values[number, place, 0] == pytest.approx(result.bsld[later].mean())
            week = (jobs.submit_time - log.submit_time[0])[later] // WEEK_S
            for number_of_week in np.unique(week):
                sums = result.bsld[later][week == number_of_week].sum()
                assert tried.weeks[number, place, number_of_week, 1] == pytest.approx(sums)
    for name, workers in (("serial", None), ("processes", 2)):
        with open_executor(name, workers) as executor:
            again = Trials(log, machine, executor).of(RULES * 5, (0, 5), since)
        assert np.array_equal(again.values, np.tile(tried.values, (5, 1, 1)))
        assert np.array_equal(again.weeks, np.tile(tried.weeks, (5, 1, 1, 1)))


def losses_of(log: Workload, known: Checkpoint, limit: float = 1e9) -> Losses:
    trials = Trials(log, machine_of(log, None, None), None)  # type: ignore[arg-type]
    bound = Bound.parse("max_wait <= 1h")
    return Losses(trials, "mean_bsld", [(bound, limit)], known, lambda *progress: None)


def test_a_loss_is_the_objective_and_more_where_a_bound_is_broken(log: Workload) -> None:
    tried = try_rules(log, machine_of(log, None, None), RULES, (0, 1))
    values = tried.values
    with Checkpoint(None, "") as known:
        free = losses_of(log, known).of(tried)
        assert free == pytest.approx(np.log(values[:, :, 0].mean(axis=1)))
        longest = values[:, :, list(MEASURES).index("max_wait_h")].mean(axis=1)
        bound = losses_of(log, known, limit=longest[0] / MARGIN / 2).of(tried)
    assert bound[0] - free[0] == pytest.approx(10 * np.log(2))


def test_what_was_tried_is_not_tried_again(log: Workload, tmp_path: Path) -> None:
    asked, path, answers = Candidates(RULES, (0, 1), "round 1"), tmp_path / "search.checkpoint", []
    with suppress(KeyboardInterrupt), Checkpoint(path, "a") as known:
        losses = losses_of(log, known)
        with open_executor("serial") as losses.trials.executor:
            answers.append(losses.answer(asked))
        raise KeyboardInterrupt
    with Checkpoint(path, "a") as known:  # no executor now: nothing is simulated
        assert losses_of(log, known).answer(asked) == pytest.approx(answers[0], abs=0)
    assert not path.exists()


def test_weeks_add_up_to_the_objectives(log: Workload) -> None:
    tried = try_rules(log, machine_of(log, None, None), RULES, (0, 3))
    means = tried.values.mean(axis=1)
    assert by_week(tried.weeks, "mean_bsld").mean(axis=1) == pytest.approx(
        means[:, 0] / means[:, 0].min()
    )
    assert means[:, 0] == pytest.approx(tried.means["mean_bsld"])
    logs = np.log(tried.means["weekly_bsld"])
    assert by_week(tried.weeks, "weekly_bsld").mean(axis=1) == pytest.approx(logs)
    place = list(MEASURES).index("mean_wait_h")
    assert by_week(tried.weeks, "mean_wait_h").mean(axis=1) == pytest.approx(
        means[:, place] / means[:, place].min()
    )


def test_a_difference_and_its_interval_by_hand() -> None:
    n = 40
    mine, theirs = np.ones((1, n, 3)), np.ones((1, n, 3))
    mine[0, :, 1], theirs[0, :, 1] = 8.0, 10.0
    for objective in ("mean_bsld", "weekly_bsld"):
        assert less(mine, theirs, objective) == pytest.approx((-20, -20, -20))
    mine[0, ::2, 1] = 12.0  # half of the weeks 20 % worse, half 20 % better
    change, low, high = less(mine, theirs, "mean_bsld")
    assert change == pytest.approx(0)
    # of the mean of 40 weeks with a deviation of 20 %: 2 x 20 / sqrt(40)
    assert (low, high) == pytest.approx((-6.2, 6.2), abs=0.7)
    assert math.isnan(less(mine[:, :4], theirs[:, :4], "mean_bsld")[1])


# --- Bounds, as texts ---------------------------------------------------------------------------

EASY = {"max_wait_h": 50.0, "p99_wait_h": 20.0, "mean_bsld": 8.0}


@pytest.mark.parametrize(
    ("text", "measure", "limit"),
    [
        ("max_wait <= 7d", "max_wait_h", 168.0),
        ("max_wait<=2w", "max_wait_h", 336.0),
        ("max_wait_h <= 7.5", "max_wait_h", 7.5),
        ("p99_wait <= 90m", "p99_wait_h", 1.5),
        ("p99_wait <= 7200s", "p99_wait_h", 2.0),
        ("p99_wait <= 1d 12h", "p99_wait_h", 36.0),
        (USUAL_BOUNDS[0], "p99_wait_h", 30.0),
        (" max_wait <= 1.5 * easy ", "max_wait_h", 75.0),
        ("mean_bsld <= 2x easy", "mean_bsld", 16.0),
        ("users_p90_wait <= 1e2", "users_p90_wait_h", 100.0),
    ],
)
def test_what_bounds_mean(text: str, measure: str, limit: float) -> None:
    bound = Bound.parse(text)
    assert (bound.measure, bound.limit(EASY)) == (measure, pytest.approx(limit))
    assert Bound.parse(str(bound)) == bound


test_mistakes = mistakes_of(globals())
