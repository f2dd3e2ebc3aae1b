"""Tuning where jobs share nodes: the rules that are searched, and a search from end to end."""

from __future__ import annotations

import json

import numpy as np
import pytest

import hpcgym
from hpcgym import Scheduler, generate_speedups, load_workload, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.schedule.measures import measures
from hpcgym.tuning import Plan, SharedSpace, Space, Tuned, tune
from hpcgym.tuning.space import WEIGHTS, SharedArm
from hpcgym.tuning.trials import jittered
from hpcgym.workload.model import Workload

SPEEDUPS = generate_speedups(codes=16, mean=1.1, spread=0.15, seed=0)
CLUSTER = "20x2x24"
ALL = SharedSpace(
    orders=("fcfs", "sjf", "filler", "popularity-filler", WEIGHTS),
    backfilling=("none", "easy", "fill"),
    backfill_orders=("fcfs", "same"),
    allocations=("compact", "spread", "half-socket", "part:3"),
)
SMALL = SharedSpace(
    orders="fcfs,filler,weights",
    backfill_orders="fcfs",
    partners="fill,best",
    levers=["pairs_above"],
)
PLAN = Plan(SMALL, bounds=["max_wait <= 20d"], budget=40)


@pytest.fixture(scope="module")
def log() -> Workload:
    """Three weeks of jobs of 16 codes."""
    return load_workload(
        "codes:speedups=generated:codes=16,processes=256,jobs=900,arrivals=poisson,interval=2000"
    )


@pytest.fixture(scope="module")
def tuned(log: Workload) -> Tuned:
    return tune(log, PLAN, cluster=CLUSTER, speedups=SPEEDUPS, executor="serial")


def test_every_arm_is_a_scheduler_that_is_simulated(log: Workload) -> None:
    jobs, rng = log.take(slice(0, 40)), np.random.default_rng(0)
    units, arms = ALL.units([jobs]), ALL.arms()
    assert len(arms) == len(set(arms)) > 90
    for number, arm in enumerate(arms):
        for numbers in (*ALL.starts(arm), rng.normal(size=ALL.numbers(arm))):
            assert len(numbers) == len(ALL.bounds(arm))
            rules = ALL.rules(arm, numbers, units)
            assert json.loads(json.dumps(rules)) == rules
            scheduler = Scheduler(**rules)
        assert ("threshold" in rules, "pairs_above" in rules) == (arm.threshold, arm.pairs_above)
        if number % 3 == 0:
            simulate(jobs, scheduler, cluster=CLUSTER, speedups=SPEEDUPS)


def test_each_coscheduler_is_an_arm() -> None:
    """Those of the same orders: all but the longest and the largest first."""
    space = SharedSpace(allocations=["half-socket", "spread"])
    found = []
    for arm in space.arms():
        for numbers in space.starts(arm):
            found.append(Scheduler(**space.rules(arm, numbers, space.units([]))))
    missing = {name for name, one in COSCHEDULERS.items() if one not in found}
    assert missing == {"ljf-co", "largest-co"}


def test_rules_of_numbers_by_hand() -> None:
    arm = SharedArm("half-socket", WEIGHTS, "easy", "fcfs", "best", False, True)
    units = np.ones(3)
    rules = ALL.rules(arm, np.array([0.5, -2.0, 0.25, 1.0]), units)
    assert rules["policy"] == {"fit": 0.5, "popularity": -1.0, "shortness": 0.25}
    assert rules["pairs_above"] == 1.4
    assert ALL.parts_of(rules) == 3 + 1 + 1 + 1  # weights, nodes, partners, bound
    nothing = ALL.rules(arm, np.array([0.0, 0.0, 0.0, -1.0]), units)
    assert (nothing["policy"], nothing["pairs_above"]) == ({"fit": 1.0}, 0.8)
    assert [one[-1] for one in ALL.starts(arm)][:4:3] == pytest.approx([1 / 3, 0.5])
    easy = SharedArm("compact", "fcfs", "easy", "same", "fill", False, False)
    assert ALL.parts_of(ALL.rules(easy, np.zeros(0), units)) == 0


@pytest.mark.slow
def test_the_board_is_what_simulations_say(log: Workload, tuned: Tuned) -> None:
    assert list(tuned.board.index) == ["tuned", *COSCHEDULERS, "easy"]
    since = log.submit_time[0] + 0.5 * (log.submit_time[-1] - log.submit_time[0])
    for name in ("tuned", "filler-co", "easy"):
        scheduler = tuned.scheduler if name == "tuned" else name
        found = []
        for seed in range(8):
            jobs, which = jittered(log, seed)
            result = simulate(jobs, scheduler, cluster=CLUSTER, speedups=SPEEDUPS)
            told = measures(result, log.submit_time[which] >= since)
            found.append([told["mean_bsld"], told["max_wait_h"]])
        row = tuned.board.loc[name]
        assert [row["mean_bsld"], row["max_wait_h"]] == pytest.approx(np.mean(found, axis=0))


def test_the_way_to_easy_ends_there(tuned: Tuned) -> None:
    last, easy = tuned.ablation.iloc[-1], tuned.board.loc["easy"]
    assert tuned.ablation["given_up"].iloc[0] == "nothing"
    assert last["later"] == pytest.approx(easy["weekly_bsld"])
    assert last["early"] == pytest.approx(easy["early"])
    assert tuned.verdict.count(";") == len(COSCHEDULERS) + 1


@pytest.mark.slow
def test_it_goes_on_with_the_same_speedups_alone(log: Workload, tuned: Tuned, tmp_path) -> None:
    path = tmp_path / "search.checkpoint"

    def stop(tried: int, stage: str, loss: float) -> None:
        if stage == "round 2":
            raise KeyboardInterrupt

    words = {"cluster": CLUSTER, "executor": "serial", "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        tune(log, PLAN, speedups=SPEEDUPS, progress=stop, **words)
    others = generate_speedups(codes=16, mean=1.2, spread=0.15, seed=0)
    with pytest.raises(HpcgymError, match="other arguments"):
        tune(log, PLAN, speedups=others, **words)
    assert tune(log, PLAN, speedups=SPEEDUPS, **words).scheduler == tuned.scheduler


def test_a_folder_has_all_and_its_scheduler_is_one(log: Workload, tuned: Tuned, tmp_path) -> None:
    files = tuned.save(tmp_path / "new")
    same = simulate(log, str(files[0]), cluster=CLUSTER, speedups=SPEEDUPS)
    again = simulate(log, tuned.scheduler, cluster=CLUSTER, speedups=SPEEDUPS)
    assert np.array_equal(same.start, again.start)
    hpcgym.validate_schedule(same)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"orders": "saf,swf"}, "unknown orders 'swf'"),
        ({"orders": []}, "orders: there must be at least one"),
        ({"backfilling": "conservative"}, "unknown backfilling 'conservative'"),
        ({"allocations": "first-fit"}, "they are compact, spread, half-socket or part:K"),
        ({"allocations": "part:99"}, "from 2 to 16"),
        ({"partners": "worst"}, "unknown partners 'worst'"),
        ({"levers": "hold"}, "unknown levers 'hold'"),
    ],
)
def test_what_is_no_space(given: dict[str, object], said: str) -> None:
    with pytest.raises(HpcgymError, match=said):
        SharedSpace(**given)  # type: ignore[arg-type]


def test_spaces_and_speedups_go_together(log: Workload) -> None:
    with pytest.raises(HpcgymError, match="needs speedups"):
        tune(log, Plan(SMALL))
    with pytest.raises(HpcgymError, match="it is a SharedSpace"):
        tune(log, Plan(Space()), cluster=CLUSTER, speedups=SPEEDUPS)
