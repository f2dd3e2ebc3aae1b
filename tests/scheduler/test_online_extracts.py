"""Predictions that are learned, in extracts: from the jobs that ended before the beginning."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from few_jobs import few_jobs
from mistakes import mistakes_of

from hpcgym import continued, simulate, validate_schedule
from hpcgym.agents.runtime_regression import RuntimeRegression
from hpcgym.reference.predictions import Estimator
from hpcgym.scheduler.estimates import JOB_FEATURES
from hpcgym.simulation.run import learn_before, predict_recorded

# --- Worked out by hand ---------------------------------------------------------------------------

#: At 100 s: 0 and 1 have ended, 2 runs, 3 waits; 4 comes then, when nothing more has ended.
SMALL = few_jobs(
    4,
    [0, 10, 20, 90, 100],
    [20, 40, 80, 10, 10],
    [2, 1, 2, 4, 1],
    [40, 50, 90, 100, 200],
    job_number=[0, 1, 2, 3, 4],
    wait_time=[0, 50, 30, 40, 5],
    user_id=[1, 1, 2, 1, 1],
    name="t",
)


class Kept:
    """A predictor that says what was requested; copies share what they were told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def __deepcopy__(self, memo: Any) -> Kept:
        return self

    def predict_one(self, x: dict[str, Any]) -> float:
        self.told.append(("predict", x))
        return float(x["requested"])

    def learn_one(self, x: dict[str, Any], y: float) -> None:
        self.told.append(("learn", x))


def test_what_is_known_when() -> None:
    kept = Kept()
    simulate(SMALL.extract(100), estimate=kept)
    first, second, runs, waits, comes = kept.told[:5]
    names = ("job", "requested", "last", "last2", "running_jobs", "longest_running", "break_time")
    assert [(what, [x[name] for name in names]) for what, x in (first, second)] == [
        ("learn", [0, 40, 0, 0, 0, 0, 0]),
        ("learn", [1, 50, 0, 0, 1, 10, 0]),  # 0 ran when it was submitted, and had done so for 10 s
    ]
    assert [(what, [x[name] for name in names]) for what, x in (runs, waits, comes)] == [
        ("predict", [2, 90, 0, 0, 0, 0, 0]),
        ("predict", [3, 100, 40, 20, 0, 0, 0]),  # 1 has just ended; of the user 1 no job runs
        ("predict", [4, 200, 40, 20, 0, 0, 0]),
    ]
    assert [x["job"] for what, x in kept.told if what == "learn"] == [0, 1, 2, 3, 4]


def test_run_times_of_the_past_make_predictions() -> None:
    part = SMALL.extract(100)
    ratio = simulate(part, estimate="user-ratio")
    # (20 / 40 + 40 / 50) / 2 = 0.65 of user 1; 2 ends at 130 s, after 80 of 90 s
    assert ratio.predicted_run_time.tolist() == [90, 65, 130]
    for estimate in ("ave2", "user-ratio"):
        asked = simulate(part, policy="saf", policy_estimate=estimate)
        # 4 runs from 100 to 110 s: then 3, which waits on, is predicted anew
        times = [90, (40 + 10) // 2, 30] if estimate == "ave2" else [90, 45, 130]
        assert asked.policy_run_time is not None
        assert asked.policy_run_time.tolist() == times


def test_what_is_given_stands_for_the_past() -> None:
    part = SMALL.extract(100)
    other = few_jobs(4, [0], [10], [1], [100], user_id=[1])
    learned = simulate(other, estimate="user-ratio").learned
    result = simulate(part, estimate="user-ratio", learned=learned)
    assert result.predicted_run_time.tolist() == [90, 10, 20]
    kept = Kept()
    simulate(part, estimate=kept, learned=simulate(other, estimate=Kept()).learned)
    assert kept.told == []  # it goes on with the other


def test_without_a_past_nothing_is_learned_before() -> None:
    part = SMALL.extract(15)
    assert part.initial is not None
    assert len(part.initial.past) == 0
    result = simulate(part, estimate="user-ratio")
    assert result.predicted_run_time[:2].tolist() == [40, 50]


@pytest.mark.parametrize("estimate", ["ave2", "user-ratio"])
def test_what_is_learned_up_to_a_time_has_the_past_in_it(estimate: str) -> None:
    rules = {"estimate": estimate, "scheduler": "easy"}
    learned = learn_before(SMALL.extract(100), time=101, **rules)
    assert learned is not None
    assert learned.memory[1][:3].tolist() == [2, 60, 3]


UNTOLD = SMALL.with_columns(requested_time=[40, -1, 90, 100, 200]).extract(100)


def test_averages_need_no_requests_of_the_past() -> None:
    simulate(UNTOLD, estimate="ave2")


def test_the_past_of_a_simulation_is_learned_too() -> None:
    long = simulate(SMALL, "easy")
    part = continued(long, 95)
    result = simulate(part, "easy", estimate="user-ratio")
    validate_schedule(result)
    assert part.initial is not None
    assert result.predicted_run_time[0] == 90


# --- Predictions of a whole log, by its own ends --------------------------------------------------

E_LOSS: dict[str, Any] = {"over": "squared", "under": "absolute", "weight": "large"}


@pytest.mark.parametrize(
    ("estimate", "slow"),
    [
        ("ave2", "ave2"),
        ("ave1", "ave1"),
        ("user-ratio", "user-ratio"),
        ("typical-ratio", "typical-ratio"),
        ("clairvoyant", "clairvoyant"),
        ("e-loss", RuntimeRegression(**E_LOSS, features=tuple(JOB_FEATURES))),
    ],
)
def test_a_log_is_predicted_by_its_own_ends(estimate: str, slow: Any) -> None:
    rng, n = np.random.default_rng(2), 60
    submit, run = np.sort(rng.choice(9_000, n, replace=False)), rng.integers(1, 3_000, n)
    wait, size = rng.choice([0, 0, 7, 900], n), rng.integers(1, 5, n)
    request = run + rng.integers(0, 5_000, n)
    users = rng.integers(1, 4, n)
    # on a machine on which these starts could not have been
    log = few_jobs(4, submit, run, size, request, wait_time=wait, user_id=users)
    rows = zip(submit, wait, run, size, request, users, strict=True)
    jobs = [
        SimpleNamespace(
            number=k, submit=s, start=s + w, end=s + w + r, actual=r, processors=q, requested=p,
            user=u, seen=None,
        )
        for k, (s, w, r, q, p, u) in enumerate([map(int, row) for row in rows])
    ]  # fmt: skip
    estimator, ended = Estimator(slow), []
    expected = []
    for job in jobs:
        now = job.submit
        over = sorted((of for of in jobs if of.end <= now), key=lambda of: (of.end, of.start))
        for other in over[len(ended) :]:
            estimator.learn(other)
        ended = over
        runs = sorted((of for of in jobs if of.start < now < of.end), key=lambda of: of.start)
        mine = [of for of in ended if of.user == job.user]
        expected.append(estimator.predict(job, now, mine, runs))
    assert predict_recorded(log, estimate).tolist() == expected
    assert estimate == "clairvoyant" or expected != request.tolist()


def test_only_what_the_engine_predicts_is_predicted_of_a_log() -> None:
    assert predict_recorded(SMALL, [3, 3, 3, 3, 3]).tolist() == [3] * 5
    # the wait of 2 is not known
    unknown = SMALL.with_columns(wait_time=[0, 50, -1, 40, 5])
    assert predict_recorded(unknown, "ave1").tolist() == [40, 50, 90, 20, 40]
    assert len(predict_recorded(SMALL.take(slice(0)), "ave2")) == 0


test_mistakes = mistakes_of(globals())
