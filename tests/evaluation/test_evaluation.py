"""Leaderboards: what is run, and on which jobs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from boards import SMALL, TRACE
from predictors import Crooked

from hpcgym.baselines import SCHEDULERS
from hpcgym.cli.lineup import rules_of
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import evaluate
from hpcgym.scheduler.rules import PASSES, Scheduler
from hpcgym.simulation.run import learn_before, simulate
from hpcgym.workload import load_workload

WEEKS = load_workload("lublin:jobs=9000,processors=64,seed=2,load=0.3")


def test_values_are_those_of_simulations_of_the_slices() -> None:
    board = evaluate(["conservative", "0.5,0,0,0,-0.5,0"], TRACE, seed=3, **SMALL)
    part = Episodes(TRACE, jobs=100, part="test")
    chosen = part.named(6, 3)
    assert list(board.by_slice.index) == [episode.name for episode in chosen]
    assert list(board.by_slice.columns) == [
        "conservative",
        "0.5,0,0,0,-0.5,0",
        "easy",
        "easy-sjbf",
        "saf",
        "f1",
        "random",
        "best-static",
    ]
    for name in board.by_slice.columns.drop("random"):
        scheduler = board.schedulers[name]
        assert scheduler is not None
        if name in SCHEDULERS:
            assert scheduler == SCHEDULERS[name]
        for episode in chosen:
            jobs = TRACE.take(slice(episode.start, episode.stop))
            value = simulate(jobs, scheduler).metrics["mean_bsld"]
            assert board.by_slice.loc[episode.name, name] == value
    assert len({*board.by_slice.to_numpy().mean(axis=0)}) > 4  # a workload that tells them apart


def test_weeks_are_all_evaluated_unless_some_are_asked_for() -> None:
    weeks = Episodes(WEEKS, "weeks", part="test").listing
    assert len(weeks) > 1
    board = evaluate("spf", WEEKS, episodes="weeks", budget=3)
    assert list(board.by_slice.index) == [week.name for week in weeks]
    assert len(evaluate("spf", WEEKS, episodes="weeks", n=1, budget=0).by_slice) == 1
    assert len(evaluate("spf", TRACE, budget=0).by_slice) == 100


def test_without_backfilling_references_have_none() -> None:
    board = evaluate("easy", TRACE, backfill="none", **SMALL)
    none = [f"{name} (no backfilling)" for name in ("sjf", "saf", "f1")]
    assert list(board.by_slice.columns) == ["easy", "fcfs", *none, "random", "best-static"]
    for name, scheduler in board.schedulers.items():
        assert scheduler is not None
        assert scheduler.backfill == ("easy" if name == "easy" else "none")  # asked for by name


def test_rules_go_to_all_that_do_not_stand_for_one() -> None:
    rules = {"estimate": "clairvoyant", "backfill_order": "sqf", "passes": "per-event"}
    board = evaluate(["spf", "easy++", "0,0,0,0,0,-1"], TRACE, **SMALL, **rules)
    got = {
        name: (scheduler.estimate, scheduler.backfill_order, scheduler.passes)
        for name, scheduler in board.schedulers.items()
        if scheduler is not None
    }
    both, one = "(backfill sqf, estimate clairvoyant)", "(estimate clairvoyant)"
    assert got == {
        **dict.fromkeys([f"spf {both}", f"saf {both}"], ("clairvoyant", "sqf", "per-event")),
        **dict.fromkeys([f"f1 {both}", "best-static"], ("clairvoyant", "sqf", "per-event")),
        f"0,0,0,0,0,-1 {both}": ("clairvoyant", "sqf", "per-event"),
        f"easy {one}": ("clairvoyant", "fcfs", "per-event"),
        f"easy-sjbf {one}": ("clairvoyant", "sjbf", "per-event"),
        "easy++": ("ave2", "sjbf", "per-event"),
        "random": ("clairvoyant", "spf", "per-event"),  # back-filled in its own order
    }
    assert board.by_slice[f"saf {both}"].equals(board.by_slice[f"0,0,0,0,0,-1 {both}"])


def test_the_same_seed_gives_the_same_board() -> None:
    one, same, other = (evaluate("spf", TRACE, seed=seed, **SMALL) for seed in (5, 5, 6))
    assert one.table.equals(same.table)
    assert one.static_weights == same.static_weights
    assert set(one.by_slice.index) != set(other.by_slice.index)


def test_schedulers_without_a_name_are_called_by_their_rules() -> None:
    rule = {"policy": "saf", "backfill_order": "fcfs"}
    two = [Scheduler(**rule), Scheduler(**rule, threshold=60), Scheduler(**rule)]
    board = evaluate([*two, SCHEDULERS["saf"]], TRACE, jobs=100, n=2, budget=0)
    rules = "queue by SAF, EASY backfilling by FCFS, requested times"
    rows = [rules, f"{rules}, threshold 60 s", f"{rules} (2)", "saf (2)"]
    assert list(board.by_slice.columns)[:4] == rows
    assert board.by_slice["saf"].equals(board.by_slice["saf (2)"])
    passes = [Scheduler(**rule, passes=each) for each in PASSES]
    named = evaluate(passes, TRACE, jobs=100, n=2, budget=0)
    assert list(named.by_slice.columns)[:2] == [f"{rules}, {each} passes" for each in PASSES]


#: Settings of an evaluation in which names may not stand for what they are in ``compare``.
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    {"env": "hpcgym/JobSelection-v0"},
    {"env": "hpcgym/MixedPolicy-v0", "estimate": "ave2"},
    {"backfill": "none"},
    {"policy_estimate": "user-ratio"},
    {"estimate": "clairvoyant", "correction": "kill", "backfill_order": "saf"},
)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_name_alone_is_the_scheduler_that_compare_has(setting: dict[str, Any]) -> None:
    jobs = load_workload("lublin:jobs=120,processors=32,load=2,seed=4,users=5")
    learns = {"estimate", "policy_estimate"} & {*setting}
    policies = [
        name
        for name, scheduler in SCHEDULERS.items()
        if not (learns and any(scheduler.usage_orders))  # which do not go together
    ]
    policies += [] if "env" in setting else ["sjf-list"]
    board = evaluate(policies, jobs, episodes="whole", slices="all", budget=0, **setting)
    plain = 0
    for name in policies:
        expected = simulate(jobs, rules_of(name, {})).metrics["mean_bsld"]
        (row,) = (row for row in board.by_slice if row == name or row.startswith(f"{name} ("))
        scheduler = board.schedulers[row]
        assert scheduler is not None
        if row == name:
            plain += 1
            assert board.by_slice[row].tolist() == [expected]
        else:
            assert scheduler.describe() != rules_of(name, {}).describe()
    assert plain == len(policies) if not setting else 0 < plain < len(policies)


def test_names_of_ones_own() -> None:
    mine = Scheduler(policy="saf", threshold=3600)
    board = evaluate(
        {"mine": mine, "short": "spf"}, TRACE, jobs=100, n=2, budget=0, passes="per-event"
    )
    assert list(board.by_slice.columns)[:2] == ["mine", "short"]
    assert board.schedulers["mine"] == mine
    with pytest.raises(HpcgymError, match="'saf' stands for a scheduler"):
        evaluate({"saf": "spf"}, TRACE)


def test_progress_has_as_many_steps_as_it_says() -> None:
    seen: list[str] = []
    totals: list[int] = []

    @contextmanager
    def watch(title: str, total: int) -> Iterator[Any]:
        totals.append(total)
        yield seen.append

    evaluate("spf", TRACE, progress=watch, **SMALL)
    evaluate("spf", TRACE, progress=watch, **{**SMALL, "budget": 0})
    assert sum(totals) == len(seen)
    assert {"saf: " in text for text in seen} == {True, False}


@pytest.mark.parametrize("part", ["test", "train"])
@pytest.mark.parametrize(
    "scheduler",
    [
        Scheduler("saf", estimate="e-loss", correction="predicted-again"),
        Scheduler("spf", estimate="typical-ratio", policy_estimate="user-ratio"),
        Scheduler("spf", backfill="conservative", policy_estimate=Crooked()),
        SCHEDULERS["easy++"],
    ],
)
def test_what_learns_has_learned_from_all_jobs_before_a_slice(
    scheduler: Scheduler, part: str
) -> None:
    board = evaluate({"one": scheduler}, TRACE, slices=part, jobs=100, n=5, budget=0, seed=3)
    slices = [
        slice(*map(int, name.removeprefix("rows ").split(":"))) for name in board.by_slice.index
    ]
    fresh, expected = [], []
    for rows in slices:
        jobs, begins = TRACE.take(rows), int(TRACE.submit_time[rows.start])
        # a slice's value depends on no other slice
        learned = learn_before(TRACE, scheduler, begins)
        assert learned is not None
        expected.append(simulate(jobs, scheduler, learned=learned).metrics["mean_bsld"])
        fresh.append(simulate(jobs, scheduler).metrics["mean_bsld"])
    assert board.by_slice["one"].tolist() == expected
    assert fresh != expected
