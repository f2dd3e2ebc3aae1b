"""Learning while it runs: what learners are told and when, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import load_workload, simulate, validate_schedule
from hpcgym.agents.weight_bandit import Ended, WeightBandit
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.study import Prequential, prequential
from hpcgym.study.evaluation.online import FIXED
from hpcgym.study.intervals import bootstrap
from hpcgym.units import WEEK_S
from hpcgym.workload.model import Workload

TIMES = ("submit_time", "run_time", "requested_time")


class Saf:
    """Always the same, and keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[float, Ended]] = []
        self.asked: list[dict[str, Any]] = []

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        self.asked.append(info)
        return [-1.0 if name == "area" else 0.0 for name in WEIGHTED_FEATURES]

    def observe(self, observation: Any, reward: float, ended: Ended) -> None:
        self.told.append((reward, ended))


class Swayed:
    """Weights that depend on all it has ever been told or shown."""

    features = ("area", "wait", "requested")

    def __init__(self) -> None:
        self.state = 0.5
        self.actions: list[tuple[int, tuple[float, ...]]] = []

    def act(self, observation: Any, info: dict[str, Any]) -> Any:
        for field in observation.values():
            self._mix(float(np.abs(field).sum()))
        self._mix(info["time_s"] % 1000 + len(info["window"]))
        action = (-self.state, 30 * (1 - self.state), self.state - 1)
        self.actions.append((info["time_s"], action))
        return action

    def observe(self, observation: Any, reward: float, ended: Ended) -> None:
        self._mix(reward)
        for column in ended:
            self._mix(float(np.sum(column % 977)))

    def _mix(self, number: float) -> None:
        self.state = (3.9 * self.state * (1 - self.state) + 0.01 * (number % 1)) % 1


@pytest.fixture(scope="module")
def log() -> Workload:
    """Eighteen weeks of jobs that are long, so that days and weeks matter."""
    jobs = load_workload("lublin:jobs=5400,processors=8,seed=1,load=0.9")
    return jobs.with_columns(**{name: 4 * jobs.columns[name] for name in TIMES})


def learn(learner: Any, log: Workload, interval: Any) -> tuple[Any, int]:
    """The schedule of a learner, and how often it chose."""
    board = prequential({"me": learner}, log, interval=interval, budget=1)
    return board.results["me"], board.decisions["me"]


@pytest.fixture(scope="module")
def board(log: Workload) -> Prequential:
    """Two learners; progress is shown in as many steps as it says."""
    steps: list[str] = []

    @contextmanager
    def shows(title: str, total: int) -> Iterator[Callable[[str], None]]:
        yield steps.append
        assert (steps[0], len(steps)) == ("bandit", total)

    learners = {"bandit": WeightBandit(), "same": Saf()}
    return prequential(learners, log, budget=30, progress=shows)


# --- What learners are told -----------------------------------------------------------------


@pytest.mark.parametrize("interval", ["day", "week", "6h", 50])
def test_who_always_says_saf_is_saf(log: Workload, interval: Any) -> None:
    result, decisions = learn(Saf(), log, interval)
    assert np.array_equal(result.start, simulate(log, "saf").start)
    assert decisions > 10


def test_every_job_is_told_once_when_it_has_ended(log: Workload) -> None:
    saf = Saf()
    hours = {name: -(-log.columns[name] // 3600) * 3600 for name in TIMES}
    log = log.with_columns(**hours)  # jobs end in the second of a decision, too
    result, decisions = learn(saf, log, 50)
    assert len(saf.told) == len(saf.asked) == decisions
    now = [info["time_s"] for info in saf.asked]
    rows = np.concatenate([ended.row for _, ended in saf.told])
    assert sorted(rows.tolist()) == list(range(len(log)))
    assert all(info.keys() == {"time_s", "window"} for info in saf.asked)  # not when jobs will end
    end, known = result.start + result.run_time, np.zeros(len(log), bool)
    assert np.isin(end, now).any()
    for k, (reward, ended) in enumerate(saf.told):
        mine = ended.row
        known[mine] = True
        if k + 1 < decisions:
            assert np.array_equal(known, end <= now[k + 1])
        assert reward == -ended.bsld.sum()
        assert np.array_equal(ended.bsld, result.bsld[mine])
        assert np.array_equal(ended.wait_s, result.wait[mine])
        assert np.array_equal(ended.run_time_s, result.run_time[mine])
        assert np.array_equal(ended.submit_time_s, log.submit_time[mine])
        assert np.array_equal(ended.requested_time_s, log.requested_time[mine])
        assert np.array_equal(ended.processors, log.requested_processors[mine])
        assert np.array_equal(ended.user, log.user_id[mine])


@pytest.mark.parametrize("interval", ["day", "6h", 40])
def test_other_jobs_to_come_change_no_decision_before(log: Workload, interval: Any) -> None:
    """Later jobs are others, fewer, and run for other times; so do those that run then."""
    first = Swayed()
    result, _ = learn(first, log, interval)
    middle = int(log.submit_time[len(log) // 2])
    known = result.start + result.run_time <= middle
    before = log.submit_time <= middle
    run = np.where(known, log.run_time, np.maximum(log.requested_time // 3, 1))
    kept = before | (np.arange(len(log)) % 3 > 0)
    size = np.where(before, log.requested_processors, 1 + log.requested_processors // 2)
    # what runs at that time has run since its start, and must not have ended before
    still = (result.start <= middle) & ~known
    run = np.where(still, np.maximum(run, middle - result.start + 1), run)
    run = np.minimum(run, log.requested_time)
    still_fits = np.all(run[still] > middle - result.start[still])
    assert still_fits
    other = log.with_columns(run_time=run, requested_processors=size).take(kept)
    second = Swayed()
    learn(second, other, interval)
    mine, theirs = (
        [action for action in each.actions if action[0] < middle] for each in (first, second)
    )
    assert len(mine) > 10
    if interval == 40:  # an interval by submissions ends before the next one
        mine, theirs = mine[:-1], theirs[: len(mine) - 1]
    assert mine == theirs
    assert first.actions != second.actions


@pytest.mark.slow
def test_rules_hold_for_learners_as_for_references(log: Workload) -> None:
    rules = {"backfill_order": "fcfs", "policy_estimate": "typical-ratio", "threshold": 50_000}
    board = prequential({"me": Saf()}, log, interval="week", budget=5, **rules)
    saf = next(name for name in board.results if name.startswith("saf ("))
    assert np.array_equal(board.results["me"].start, board.results[saf].start)
    assert board.results["me"].start.tolist() == simulate(log, "saf", **rules).start.tolist()


# --- What is said of them -------------------------------------------------------------------


def test_the_table_is_of_all_jobs(log: Workload, board: Prequential) -> None:
    table = board.table
    assert list(board.results)[:2] == ["bandit", "same"]
    for name, scheduler in (("saf", "saf"), ("easy", "easy"), ("saf-typical", "saf-typical")):
        result, row = simulate(log, scheduler), table.loc[name]
        assert row["mean_bsld"] == pytest.approx(result.bsld.mean())
        assert row["mean_wait_h"] == pytest.approx(result.wait.mean() / 3600)
        assert row["p99_wait_h"] == pytest.approx(np.percentile(result.wait, 99) / 3600)
        assert row["max_wait_h"] == result.wait.max() / 3600
        assert row["decisions"] == 0
    for name in ("bandit", "same"):
        validate_schedule(board.results[name])
        assert table.loc[name, "decisions"] > 50
    assert table.loc["same"].drop("decisions").equals(table.loc["saf"].drop("decisions"))
    assert table["mean_bsld"].is_monotonic_increasing
    assert table.loc[FIXED, ["regret", "regret_low", "regret_high"]].tolist() == [0, 0, 0]


def test_the_fixed_weights_are_the_best_of_those_tried(log: Workload, board: Prequential) -> None:
    policy = simulate(log, "spf", policy=board.weights)
    assert np.array_equal(policy.start, board.results[FIXED].start)
    # SAF is among what is tried
    assert policy.bsld.mean() <= simulate(log, "saf").bsld.mean()


def test_regret_adds_up_by_the_weeks_of_submission(log: Workload, board: Prequential) -> None:
    mine, fixed = board.results["bandit"].bsld, board.results[FIXED].bsld
    regret = board.regret
    week = (log.submit_time - log.submit_time[0]) // WEEK_S
    for number in (0, 3, int(week[-1])):
        by_then = week <= number
        expected = 100 * (mine[by_then].sum() - fixed[by_then].sum()) / fixed.sum()
        assert regret.loc[number, "bandit"] == pytest.approx(expected)
    assert regret.iloc[-1]["bandit"] == pytest.approx(board.table.loc["bandit", "regret"])
    assert (regret[FIXED] == 0).all()
    by_week = board.by_week()
    assert by_week["jobs"].sum() == len(log)
    third = week == 3
    assert by_week.loc[3, "bandit"] == pytest.approx(mine[third].mean())
    assert by_week.loc[3, "jobs"] == third.sum()


def test_intervals_are_of_paired_blocks_of_weeks(log: Workload, board: Prequential) -> None:
    weeks = board.by_week(sums=True)
    n = len(weeks)
    assert 15 <= n <= 27  # blocks of three weeks, five or more
    jobs = weeks["jobs"].to_numpy()
    low, high = bootstrap(weeks[["easy"]].to_numpy(), block=3, counts=jobs)
    row = board.table.loc["easy"]
    assert (row["mean_bsld_low"], row["mean_bsld_high"]) == (low[0], high[0])
    above, low_end, high_end = board.difference("easy", "saf")
    less = board.difference("saf", "easy")[0]
    assert (1 + above / 100) * (1 + less / 100) == pytest.approx(1)
    assert low_end < above < high_end
    assert board.difference("same", "saf") == (0, 0, 0)
    assert board.verdicts[1] == "same: no better than saf, 0 % [0, 0]"


def test_a_part_is_a_stream_of_its_own(log: Workload) -> None:
    board = prequential({"me": Saf()}, log, part="test", interval="week", budget=5)
    later = log.take(np.arange(len(log)) >= log.row_at(0.5))
    assert np.array_equal(board.results["me"].start, simulate(later, "saf").start)
    first = (later.submit_time[0] - log.submit_time[0]) // WEEK_S
    assert board.by_week().index[0] == first  # weeks are those of the log
    assert np.isnan(board.table["regret_low"]).all()  # too few


# --- What cannot be ------------------------------------------------------------


class Wrong(Saf):
    def act(self, observation: Any, info: Any) -> Any:
        return super().act(observation, info)[: 6 - (len(self.asked) > 50)]


class Breaks(Saf):
    def observe(self, observation: Any, reward: Any, ended: Any) -> None:
        raise KeyError("why")


test_mistakes = mistakes_of(globals(), fixtures=("board", "log"))
