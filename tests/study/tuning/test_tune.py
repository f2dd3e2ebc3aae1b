"""Tuning from beginning to end, on small logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from mistakes import mistakes_of

from hpcgym import Scheduler, generate_speedups, load_workload, simulate, validate_schedule
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.schedule.measures import measures
from hpcgym.study import Plan, SharedSpace, Space, Tuned, tune
from hpcgym.study.tuning.trials import Trials, jittered
from hpcgym.workload.model import Workload

SPACE = Space(orders="fcfs,saf,weights", features="area,wait", estimates="requested,ave2")
PLAN = Plan(SPACE, bounds=["max_wait <= 20d"], budget=90)
SHARED = SharedSpace(
    orders="fcfs,filler,weights",
    backfill_orders="fcfs",
    partners="fill,best",
    levers=["pairs_above"],
)
#: Three weeks of jobs of 16 codes.
CODES = "codes:speedups=generated:codes=16,processes=256,jobs=900,arrivals=poisson,interval=2000"
PAIRS = generate_speedups(codes=16, mean=1.1, spread=0.15, seed=0)


class Case(NamedTuple):
    """A log to tune on, how, on which machine, and what came of it."""

    log: Workload
    plan: Plan
    machine: dict[str, Any]
    references: tuple[str, ...]
    tuned: Tuned


@pytest.fixture(scope="module")
def log() -> Workload:
    return load_workload("lublin:jobs=3000,processors=32,seed=5,load=1.0")


@pytest.fixture(scope="module")
def tuned(log: Workload) -> Tuned:
    return tune(log, PLAN, against=["easy-sjbf"], executor="serial")


@pytest.fixture(scope="module", params=["a pool", "shared nodes"])
def case(request: pytest.FixtureRequest, log: Workload, tuned: Tuned) -> Case:
    if request.param == "a pool":
        return Case(log, PLAN, {}, ("saf", "easy", "easy-sjbf"), tuned)
    codes, plan = load_workload(CODES), Plan(SHARED, bounds=["max_wait <= 20d"], budget=40)
    machine = {"cluster": "20x2x24", "speedups": PAIRS}
    tuned_codes = tune(codes, plan, executor="serial", **machine)
    return Case(codes, plan, machine, (*COSCHEDULERS, "easy"), tuned_codes)


@pytest.mark.slow
def test_the_board_is_what_simulations_say(case: Case) -> None:
    log, tuned = case.log, case.tuned
    assert list(tuned.board.index) == ["tuned", *case.references]
    since = log.submit_time[0] + 0.5 * (log.submit_time[-1] - log.submit_time[0])
    for name in ("tuned", *case.references[-3:]):
        scheduler = tuned.scheduler if name == "tuned" else name
        values = []
        for seed in range(8):
            jobs, which = jittered(log, seed)
            result = simulate(jobs, scheduler, **case.machine)
            # which jobs are of the later part, jitter does not change
            measured = measures(result, log.submit_time[which] >= since)
            values.append([measured["mean_bsld"], measured["max_wait_h"]])
        row = tuned.board.loc[name]
        assert [row["mean_bsld"], row["max_wait_h"]] == pytest.approx(np.mean(values, axis=0))
        ratio = tuned.board.loc["tuned", "weekly_bsld"] / row["weekly_bsld"]
        assert row["tuned_percent"] == pytest.approx(100 * (ratio - 1))


@pytest.mark.slow
def test_later_jobs_change_nothing_of_what_is_found(log: Workload, tuned: Tuned) -> None:
    half = log.submit_time >= log.submit_time[0] + 0.5 * np.ptp(log.submit_time)
    other = log.with_columns(
        run_time=np.where(half, 1, log.run_time),
        requested_processors=np.where(half, 1, log.requested_processors),
    )
    again = tune(other, PLAN, executor="serial")
    assert again.scheduler == tuned.scheduler
    assert again.trace.equals(tuned.trace)
    assert not again.board.loc["saf"].equals(tuned.board.loc["saf"])


def test_the_way_to_easy_ends_there(case: Case) -> None:
    board, way = case.tuned.board, case.tuned.ablation
    assert way["given_up"].iloc[0] == "nothing"
    last, easy = way.iloc[-1], board.loc["easy"]
    assert last["later"] == pytest.approx(easy["weekly_bsld"])
    assert last["early"] == pytest.approx(easy["early"])
    assert way.iloc[0]["later"] == pytest.approx(board.loc["tuned", "weekly_bsld"])


def test_a_folder_has_all_and_its_scheduler_is_one(case: Case, tmp_path: Path) -> None:
    files = case.tuned.save(tmp_path / "new")
    assert [path.name for path in files] == [
        "scheduler.toml", "board.csv", "ablation.csv", "search.csv",
    ]  # fmt: skip
    assert all(path.stat().st_size > 100 for path in files)
    same = simulate(case.log, str(files[0]), **case.machine)
    again = simulate(case.log, case.tuned.scheduler, **case.machine)
    assert np.array_equal(same.start, again.start)
    validate_schedule(same)
    assert case.tuned.verdict in files[0].read_text()


@pytest.mark.slow
def test_an_interrupted_search_goes_on(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = tmp_path / "search.checkpoint", list[Any]()
    tried_of = Trials.of

    def noted(trials: Trials, rules: Any, seeds: Any, *since: float) -> Any:
        asked.append((rules, tuple(seeds)))
        return tried_of(trials, rules, seeds, *since)

    def stop(tried: int, stage: str, loss: float) -> None:
        if stage == "round 2":
            raise KeyboardInterrupt

    monkeypatch.setattr(Trials, "of", noted)
    words = {**case.machine, "executor": "serial", "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        tune(case.log, case.plan, progress=stop, **words)
    assert path.exists()
    before, asked[:] = list(asked), []
    assert tune(case.log, case.plan, **words).scheduler == case.tuned.scheduler
    # the schedulers to compare with are simulated again, and nothing else
    assert len([candidates for candidates in asked if candidates in before]) == 2 < len(before)
    assert not path.exists()


def test_the_verdict_says_what_the_intervals_say(tuned: Tuned) -> None:
    board = tuned.board.copy()
    columns = ["tuned_percent", "low", "high"]
    board.loc["saf", columns] = -5, -9, -1
    board.loc["easy", columns] = -5, -9, 1
    board.loc["easy-sjbf", columns] = 5, 1, 9
    verdict = Tuned(**{**vars(tuned), "board": board}).verdict
    assert verdict == (
        "weekly_bsld on later weeks: better than saf, -5 % [-9, -1]; no better than easy, -5 %"
        " [-9, +1]; worse than easy-sjbf, +5 % [+1, +9]; all bounds kept"
    )
    board.loc["saf", ["low", "high"]] = np.nan
    board.loc["tuned", "max_wait_h"] = 1e6
    verdict = Tuned(**{**vars(tuned), "board": board}).verdict
    assert "-5 % against saf (fewer than five weeks: no interval)" in verdict
    assert "max_wait_h <= 480 is broken (1e+06 > 480)" in verdict


def test_schedulers_to_compare_with(log: Workload) -> None:
    """References may be named too, and schedulers given as they are."""
    plan = Plan(Space(orders="saf,spf", levers=(), estimates="requested"), budget=1)
    own = Scheduler("spf", threshold=7200)
    search = tune(log, plan, against=["easy", "saf", "spf", own], executor="serial")
    assert list(search.board.index)[:4] == ["tuned", "saf", "easy", "spf"]
    assert len(search.board) == 5
    same = "saf" if search.scheduler.policy == "saf" else "spf"
    percents = search.board["tuned_percent"].abs()
    assert percents[same] < percents["easy"]
    bounds = {bound.measure: limit for bound, limit in search.bounds}  # by EASY on the later part
    expected = search.board.loc["easy", ["p99_wait_h", "max_wait_h"]] * 1.5
    assert bounds == pytest.approx(expected.to_dict())


FEW = load_workload("lublin:jobs=150,processors=8,seed=1")


test_mistakes = mistakes_of(globals(), fixtures=("log",))
