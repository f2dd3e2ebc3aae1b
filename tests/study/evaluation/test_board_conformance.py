"""A board's numbers are those of simulations of its slices, and who acts reaches its own."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from boards import (
    BUDGET,
    CODES,
    FEW,
    SHARED_MACHINE,
    SMALL,
    TAURUS,
    TRACE,
    as_it_is,
    candidates,
    rows_in,
)  # fmt: skip
from mistakes import mistakes_of
from predictors import Crooked

import hpcgym
from hpcgym.baselines import SCHEDULERS, find_baseline
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.ids import id_of
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.machine.speedups import find_speedups
from hpcgym.schedule.metrics import METRICS, MORE, NEITHER, ranking_metrics
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.policies import WEIGHTED_FEATURES, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import learn_before, simulate
from hpcgym.study import Leaderboard, evaluate
from hpcgym.study.evaluation.platform import Platform, energies
from hpcgym.study.evaluation.references import OF_SHARED_NODES, best_static
from hpcgym.workload import Workload, load_workload

QUEUES = load_workload("lublin:jobs=900,processors=64,seed=4,load=1.2")
FITTING = QUEUES.take(np.asarray(QUEUES.requested_processors) <= 44)
EURORA = load_workload("eurora:jobs=600,seed=0,load=2")
LIMITED = load_workload("lublin:jobs=600,processors=16,seed=1,load=1.2")
KEPT: dict[str, Any] = {"quota": "user:jobs=2", "maintenance": "1/9000000:processors=20"}
STOPS: dict[str, Any] = {"preemption": "queue:interactive>batch"}


class Place(NamedTuple):
    """An evaluation, and what its schedulers are simulated on."""

    jobs: Workload
    policies: list[Any]
    given: dict[str, Any]  # to evaluate
    on: dict[str, Any]  # to simulate
    rules: dict[str, Scheduler]  # what some rows must have


PLACES = {
    "pool": Place(
        TRACE, ["conservative", "0.5,0,0,0,-0.5,0", "easy++"], SMALL, {},
        {"easy": Scheduler(), "conservative": SCHEDULERS["conservative"],
         "easy++": SCHEDULERS["easy++"]},
    ),
    "rules": Place(
        TRACE, ["spf", "easy", "0,0,0,0,0,-1"],
        {**SMALL, "estimate": "clairvoyant", "backfill_order": "sqf", "passes": "per-event"}, {},
        {"spf (backfill sqf, estimate clairvoyant)": Scheduler(
            "spf", backfill_order="sqf", estimate="clairvoyant", passes="per-event"),
         "easy (estimate clairvoyant)": Scheduler(estimate="clairvoyant", passes="per-event")},
    ),
    "dispatchers": Place(
        TRACE, ["prb", "sdprb"], {**FEW, "estimate": "ave2"}, {},
        {"prb (estimate ave2)": Scheduler(dispatcher="prb", estimate="ave2")},
    ),
    "nodes": Place(
        EURORA, ["prb", "easy++", Scheduler("saf", backfill="none")],
        {**FEW, "cluster": "eurora", "jobs": 60, "allocation": "best-fit"}, {"cluster": "eurora"},
        {"queue by SAF, no backfilling, requested times": Scheduler("saf", backfill="none"),
         "easy": Scheduler(allocation="best-fit")},
    ),
    "quota": Place(
        FITTING, ["saf", "spf"], {**FEW, "jobs": 45, "n": 8, "budget": 15, **KEPT}, {},
        {"saf (quota user:jobs=2, maintenance 1/9000000:processors=20)":
            SCHEDULERS["saf"].but(**KEPT)},
    ),
    "preemption": Place(
        QUEUES, ["saf"], {**FEW, "jobs": 60, "n": 4, **STOPS}, {},
        {"saf (preemption queue:interactive>batch)": SCHEDULERS["saf"].but(**STOPS)},
    ),
    "slurm": Place(
        TRACE, ["saf"], {**FEW, "backfill": "slurm:bf_interval=300"}, {},
        {"easy:backfill=slurm:bf_interval=300": Scheduler(backfill="slurm:bf_interval=300"),
         "easy": Scheduler()},
    ),
    "shared nodes": Place(
        load_workload(CODES), ["popularity-co"],
        {"env": "hpcgym/CoSchedule-v1", "cluster": SHARED_MACHINE, "jobs": 30, "n": 5},
        {"cluster": SHARED_MACHINE, "speedups": find_speedups("generated")}, {},
    ),
}  # fmt: skip


@cache
def evaluated(place: str) -> Leaderboard:
    jobs, policies, given, *_ = PLACES[place]
    return evaluate(policies, jobs, seed=3, **given)


@pytest.mark.parametrize("place", PLACES)
def test_rows_are_simulations_of_the_slices(place: str) -> None:
    """By the rules that the board says they have, and these are the right ones."""
    jobs, _, given, on, rules = PLACES[place]
    board, share = evaluated(place), given.get("train_share", 0.5)
    part = Episodes(jobs, jobs=given["jobs"], part="test", train_share=share)
    chosen = part.apart(given["n"], 3)
    assert list(board.by_slice.index) == [episode.name for episode in chosen]
    assert {*rules} <= {*board.schedulers}
    for name, scheduler in board.schedulers.items():
        if name.startswith("random"):
            continue  # its order is of all jobs, not of a slice
        assert scheduler is not None
        assert scheduler == rules.get(name, scheduler)
        results = []
        for rows in (rows_in(episode.name) for episode in chosen):
            known = None  # of run times, from all jobs that have ended before a slice
            if "cluster" not in on and scheduler.dispatcher is None:
                known = learn_before(jobs, scheduler, int(jobs.submit_time[rows.start]))
            results.append(simulate(jobs.take(rows), scheduler, learned=known, **on))
        for metric, values in board.values.items():
            assert values[name].tolist() == [result.metrics[metric] for result in results]
    assert len({*board.by_slice.mean().round(6)}) >= len(board.by_slice.columns) / 2


def test_the_rows_of_a_board_stand_in_order() -> None:
    always = ["easy", "easy-sjbf", "saf", "f1", "random", "best-static"]
    mine = ["conservative", "0.5,0,0,0,-0.5,0", "easy++"]
    assert list(evaluated("pool").by_slice) == [*mine, *always]
    assert {*evaluated("shared nodes").by_slice} == {"popularity-co", *OF_SHARED_NODES}
    named = [name.partition(" ")[0] for name in evaluated("quota").by_slice]
    assert named == ["saf", "spf", "easy", "easy-sjbf", "f1", "random", "best-static"]


EVERYWHERE = [
    metric.name
    for metric in METRICS
    if metric.better != NEITHER and metric.formula and not metric.of
]


@pytest.mark.parametrize("metric", EVERYWHERE)
def test_any_metric_ranks(metric: str) -> None:
    board = evaluate("wfp3", TRACE, metric=metric, **{**FEW, "n": 6})
    for name in ("wfp3", "easy"):
        results = [
            simulate(TRACE.take(rows_in(name_of_slice)), name)
            for name_of_slice in board.by_slice.index
        ]
        assert board.by_slice[name].tolist() == [result.metrics[metric] for result in results]
    means, more = board.table[metric].tolist(), ranking_metrics()[metric].better == MORE
    assert means == sorted(means, reverse=more)
    best = board.by_slice.max(axis=1) if more else board.by_slice.min(axis=1)
    wins = board.by_slice.eq(best, axis=0).any()
    assert board.table["win_rate"].gt(0).to_dict() == wins.loc[board.table.index].to_dict()
    assert board.table["win_rate"].sum() == pytest.approx(1)
    assert not (board.table["mean_regret"] < 0).any()
    assert board.table.columns.is_unique
    assert board.facts()["metric"] == metric


def test_makespans_improve_over_those_of_the_reference() -> None:
    board = evaluated("shared nodes")
    makespans = board.of("makespan_s")
    gain = makespans[["filler-co"]].to_numpy() / makespans - 1
    assert board.table["improvement"].to_dict() == pytest.approx(gain.mean().to_dict())
    assert board.table.loc["filler-co", "improvement_high"] == 0
    assert board.difference("filler-co", "filler-co", "makespan_s") == (0, 0, 0)
    assert (board.reference, board.compared) == ("filler-co", True)


# --- Who acts -------------------------------------------------------------------------------------

#: Environment, its arguments, and what is beside: what a baseline reaches there is its simulation.
ACTED: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    f"{env} {backfill}": (env, {"window": 100}, {"backfill": backfill})
    for env in ("JobSelection", "QueueOrdering", "MixedPolicy")
    for backfill in ("easy", "none")
}
ACTED |= {
    "JobSelection kept": ("JobSelection", {"window": 256}, KEPT),
    "QueueOrdering kept": ("QueueOrdering", {"window": 256}, KEPT),
    "MixedPolicy stops": ("MixedPolicy", {"interval": "pass", "backfill_order": "fcfs"}, STOPS),
}


@pytest.mark.parametrize("case", ACTED)
def test_a_baseline_that_acts_is_its_simulation(case: str) -> None:
    env, options, rules = ACTED[case]
    jobs = TRACE if "backfill" in rules else FITTING
    weights = "0.5,0,0.125,0,-0.25,-0.125"
    mine = {"mine": find_baseline("saf"), "other": find_baseline(weights)}
    board = evaluate(
        {**mine, "alone": weights, "same": "saf"}, jobs, env=id_of(env),
        env_options=options, **{**FEW, "jobs": 30, "n": 12}, **rules,
    )  # fmt: skip
    assert not board.failures
    rows, same = board.by_slice, board.schedulers["same"]
    np.testing.assert_allclose(rows["mine"], rows["same"], rtol=1e-12)
    np.testing.assert_allclose(rows["other"], rows["alone"], rtol=1e-12)
    assert same is not None
    plain = next(row for row in rows if row.startswith(("easy", "fcfs")))
    assert (rows["mine"] != rows[plain]).any()
    assert same.backfill_order == options.get("backfill_order", "spf")
    for rule, value in rules.items():
        assert same.describe()[rule] == value


@pytest.mark.slow
def test_usage_is_counted_by_all_with_the_same_shares() -> None:
    """Of weights that act, of schedulers that are simulated, of weights that do not change."""
    users = np.random.default_rng(0).zipf(1.6, len(TRACE)) % 11
    shares = {"fair_share": "half_life_s=3600", "backfill_order": "fairshare"}
    board = evaluate(
        {"acting": find_baseline("fairshare"), "alone": Scheduler(policy="fairshare", **shares)},
        TRACE.with_columns(user_id=users), env="hpcgym/MixedPolicy-v2",
        env_options={"policy_features": ("wait", "fairshare")}, **shares, **SMALL,
    )  # fmt: skip
    assert not board.failures
    assert board.by_slice["acting"].equals(board.by_slice["alone"])
    assert set(board.static_weights) <= {"wait", "fairshare"}
    static = board.schedulers["best-static"]
    (saf,) = (scheduler for name, scheduler in board.schedulers.items() if name.startswith("saf"))
    assert static is not None
    assert saf is not None
    assert static.fair_share == saf.fair_share == FairShare(3600)
    assert saf.backfill_order == "fairshare"


# --- Slices ---------------------------------------------------------------------------------------


def test_which_slices_there_are() -> None:
    weeks = load_workload("lublin:jobs=9000,processors=64,seed=2,load=0.3")
    listing = Episodes(weeks, "weeks", part="test").listing
    assert len(listing) > 1
    board = evaluate("spf", weeks, episodes="weeks", budget=3)
    assert list(board.by_slice.index) == [week.name for week in listing]
    assert len(evaluate("spf", weeks, episodes="weeks", n=1, budget=0).by_slice) == 1
    # of windows of 256 the test part has room for three that share no job
    rows = [rows_in(name) for name in evaluate("spf", TRACE, budget=0).by_slice.index]
    first = TRACE.row_at(0.5)
    assert rows == [slice(row, row + 256) for row in range(first, first + 3 * 256, 256)]


def test_the_same_seed_gives_the_same_board() -> None:
    first, same, other = (evaluate("spf", TRACE, seed=seed, **SMALL) for seed in (5, 5, 6))
    assert first.table.equals(same.table)
    assert first.static_weights == same.static_weights
    assert set(first.by_slice.index) != set(other.by_slice.index)
    assert not first.by_slice["random"].equals(other.by_slice["random"])


def test_what_learns_has_learned_from_all_jobs_before_a_slice() -> None:
    """Its value depends on no other slice, and is another than of who knows nothing."""
    scheduler = Scheduler("spf", backfill="conservative", policy_estimate=Crooked())
    board = evaluate({"one": scheduler}, TRACE, slices="train", seed=3, **{**FEW, "n": 5})
    fresh, expected = [], []
    for rows in map(rows_in, board.by_slice.index):
        learned = learn_before(TRACE, scheduler, int(TRACE.submit_time[rows.start]))
        assert learned is not None
        for known, values in ((learned, expected), (None, fresh)):
            result = simulate(TRACE.take(rows), scheduler, learned=known)
            values.append(result.metrics["mean_bsld"])
    assert board.by_slice["one"].tolist() == expected != fresh


# --- Chance, and weights that do not change -------------------------------------------------------


def test_chance_is_a_random_order_where_nothing_acts() -> None:
    board = evaluate(["random", "sjf"], TRACE, seed=4, **{**FEW, "n": 6})
    numbers = np.random.default_rng(4).permutation(len(TRACE)) + 1
    assert list(board.by_slice).count("random") == 1
    for name, value in board.by_slice["random"].items():
        given = numbers[rows_in(str(name))]
        rules = Scheduler(policy="spf", policy_estimate=given, backfill_order="spf")
        assert value == simulate(TRACE.take(rows_in(str(name))), rules).metrics["mean_bsld"]


@pytest.mark.parametrize("env", ["JobSelection", "QueueOrdering", "MixedPolicy"])
def test_chance_acts_where_policies_do(env: str) -> None:
    where: dict[str, Any] = {"env": id_of(env), "env_options": {"window": 20}}
    boards = [evaluate(more, TRACE, **where, **FEW) for more in ((), find_baseline("saf"))]
    for board in boards:
        assert not board.failures
        assert "random" not in board.by_slice
        assert board.by_slice["random (acting)"].equals(boards[0].by_slice["random (acting)"])
    assert not boards[0].by_slice["random (acting)"].equals(boards[0].by_slice["easy"])


def means_of(training: list[Workload], rules: Scheduler, number: int, **on: Any) -> list[float]:
    """What each of the weights that are tried reaches on training slices."""
    return [
        float(np.mean([
            simulate(part, rules.but(policy=policy), **on).metrics["mean_bsld"] for part in training
        ]))
        for policy in candidates(training, WEIGHTED_FEATURES, number, 1)
    ]  # fmt: skip


def test_static_weights_are_the_best_of_the_training_part_only() -> None:
    board = evaluate((), TRACE, budget=12, jobs=100, n=5, seed=1)
    train = Episodes(TRACE, jobs=100, part="train")
    training = [train.workload_of(episode) for episode in train.named(100, 2)]
    means = means_of(training, Scheduler("spf", backfill_order="spf"), 12)
    every = candidates(training, WEIGHTED_FEATURES, 12, 1)
    assert every[int(np.argmin(means))] == board.static_weights
    assert sum(map(abs, board.static_weights.values())) == pytest.approx(1)
    for part in ("train", "all"):  # whatever is evaluated
        again = evaluate((), TRACE, budget=12, jobs=100, n=2, seed=1, slices=part)
        assert again.static_weights == board.static_weights


@pytest.mark.parametrize("cluster", ["eurora", Cluster(1100)], ids=["nodes", "pool"])
def test_static_weights_are_the_best_on_the_machine(cluster: Any) -> None:
    steps: list[str] = []
    training = [EURORA.take(slice(k, k + 60)) for k in (0, 60, 120)]
    rules = Scheduler("spf", backfill_order="spf")
    platform = Platform(find_cluster(cluster) if isinstance(cluster, str) else cluster)
    weights = best_static(training, WEIGHTED_FEATURES, rules, 20, 1, steps.append, platform)
    means = means_of(training, rules, 20, cluster=cluster)
    assert weights == candidates(training, WEIGHTED_FEATURES, 20, 1)[int(np.argmin(means))]
    assert len(steps) == 20


def test_one_way_of_choosing_static_weights_is_the_other() -> None:
    """The batch's, for as many processors as the workload's; and slice by slice, for others."""
    training = [TRACE.take(slice(k, k + 60)) for k in (0, 60, 120)]
    rules = Scheduler("spf", backfill_order="spf")
    nodes = Cluster(groups=(NodeGroup("all", 16, {"core": 4}),))  # of single cores: a pool
    batch, other = (
        best_static(training, WEIGHTED_FEATURES, rules, 30, 7, lambda text: None, platform)
        for platform in (None, Platform(nodes))
    )
    assert batch == other
    one_job = [TRACE.take(slice(0, 1))]  # all are equal: the first
    best = best_static(one_job, ("area", "wait"), Scheduler(), 6, 0, lambda text: None)
    assert best == {"area": 1.0}


def test_static_weights_are_over_the_features_of_the_environment() -> None:
    features = ("requested", "wait")
    board = evaluate(
        find_baseline("spf"), TRACE, env="hpcgym/MixedPolicy-v2",
        env_options={"policy_features": features}, **SMALL,
    )  # fmt: skip
    assert set(board.static_weights) <= set(features)


# --- Limits of power and energy -------------------------------------------------------------------


def budget_of(jobs: Workload, share: float = 0.7) -> EnergyBudget:
    start, end = int(jobs.submit_time[0]), int(jobs.submit_time[-1]) + 1
    return EnergyBudget(share * 16 * 190.738 * (end - start), start, end)


def second_by_second(result: Result, start: int, end: int) -> float:
    """The energy from ``start`` up to ``end``, added second by second [J]."""
    times, watts = result.power["time"].tolist(), result.power["watts"].tolist()
    total, row = 0.0, 0
    for second in range(start, min(end, times[-1])):
        while times[row + 1] <= second:
            row += 1
        total += watts[row]
    return total


@pytest.fixture(scope="module")
def limited() -> Leaderboard:
    policies = {"a": as_it_is(), "energy-bud": "energy-bud", "rpc": "reduce-pc+saf", "none": "none"}
    given = {**FEW, "jobs": 59, "n": 5, "budget": 4}
    return evaluate(policies, LIMITED, **given)


ON_TAURUS = {"powercap": "powercap", "energy-bud": "energy-bud", "rpc": "reduce-pc"}


def test_under_limits_rows_keep_those_of_each_slice(limited: Leaderboard) -> None:
    rows = dict.fromkeys(("powercap", "energy-bud", "none", "easy"), "easy")
    rows |= {"rpc": "saf", "f1 (backfill fcfs)": "f1"}
    for name in limited.by_slice.index:
        jobs = LIMITED.take(rows_in(name))
        budget = budget_of(jobs)
        for row, scheduler in rows.items():
            # the order of backfilling is the environment's
            rules = SCHEDULERS[scheduler].but(
                power=ON_TAURUS.get(row, "none"), backfill_order="fcfs"
            )
            result = simulate(jobs, rules, cluster=TAURUS, limits=[budget])
            assert limited.by_slice.loc[name, row] == result.metrics["mean_bsld"]
            assert limited.of("energy_j").loc[name, row] == result.metrics["energy_j"]
            used = second_by_second(result, budget.start, budget.end)
            energy = limited.of("limited_energy_j").loc[name, row]
            assert energy == pytest.approx(used, rel=1e-9)
            if row == "easy":  # budgets matter here
                assert 0.8 < used / budget.joules <= 1.0 + 1e-9
        static = limited.schedulers["best-static"]
        assert static is not None
        assert static.policy == limited.static_weights
        result = simulate(jobs, static, cluster=TAURUS, limits=[budget])
        assert limited.by_slice.loc[name, "best-static"] == result.metrics["mean_bsld"]
    assert len({*limited.by_slice.mean().round(6)}) >= 5
    for table in map(limited.of, limited.values):  # what acts keeps the same limits
        np.testing.assert_array_equal(table["a"], table["none"])


def test_schedulers_keep_limits_by_the_rule_of_the_environment() -> None:
    """But for those that are given, and for what a name says."""
    board = evaluate(
        {"mine": Scheduler("saf"), "same": "energy-bud+saf"}, LIMITED, env=BUDGET,
        env_options={"share": 0.7, "power": "reduce-pc"}, **{**FEW, "jobs": 60, "budget": 2},
    )  # fmt: skip
    power = {name: scheduler and scheduler.power for name, scheduler in board.schedulers.items()}
    others = {"mine": "none", "same": "energy-bud", "powercap": "powercap"}
    assert power == {**dict.fromkeys(power, "reduce-pc"), **others}


def test_seconds_under_several_limits_count_once() -> None:
    jobs = LIMITED.take(slice(0, 60))
    begin = int(jobs.submit_time[0])
    budget = EnergyBudget(1e12, begin + 3000, begin + 9000)
    limits = [budget, PowerCap(1e6, begin + 100, begin + 5000)]
    result = simulate(jobs, "easy", cluster=TAURUS, limits=limits)
    used = second_by_second(result, begin + 100, begin + 9000)
    assert energies(result)["limited_energy_j"] == pytest.approx(used, rel=1e-9)


def test_under_budgets_all_are_compared_with_powercap(limited: Leaderboard) -> None:
    table, joules = limited.table, limited.of("limited_energy_j")
    assert (limited.reference, limited.compared) == ("powercap", True)
    less = limited.by_slice.sub(limited.by_slice["powercap"], axis=0).mean()
    assert table["above_reference"].to_dict() == pytest.approx(less.to_dict(), abs=1e-9)
    assert table["limited_energy_j"].to_dict() == pytest.approx(joules.mean().to_dict(), rel=1e-12)
    low, high = table["limited_energy_j_low"], table["limited_energy_j_high"]
    mean = joules.mean()[table.index]
    assert ((low <= mean) & (mean <= high)).all()
    each = limited.of("energy_j")
    mean, low, high = limited.difference("none", "powercap", "energy_j")
    assert mean == pytest.approx((each["none"] - each["powercap"]).mean(), rel=1e-9)
    assert low <= mean <= high


def test_ranked_by_energy_or_by_makespans() -> None:
    few: dict[str, Any] = {**FEW, "jobs": 40}
    board = evaluate((), TRACE, env=BUDGET, metric="energy_j", env_options={"share": 0.6}, **few)
    assert board.table["energy_j"].is_monotonic_increasing
    assert {"mean_bsld", "limited_energy_j", "random"} <= {*board.table, *board.table.index}
    board = evaluate(
        "greedy-pairs", CODES, cluster=SHARED_MACHINE, env="hpcgym/CoSchedule-v1",
        metric="makespan_s", reference="easy-co", **few,
    )  # fmt: skip
    assert board.reference == "easy-co"
    assert board.table["makespan_s"].is_monotonic_increasing
    assert board.table.loc["easy-co", "improvement"] == 0


# --- Quotas and windows, as who is given or brings them -------------------------------------------

QUOTA: dict[str, Any] = {"quota": "user:jobs=2"}


def test_own_rules_stay_unless_there_are_to_be_none(tmp_path: Any) -> None:
    """An object and a file get a quota; who has one keeps it, unless there is to be none."""
    file = tmp_path / "mine.toml"
    file.write_text('policy = "saf"\n')
    own = Scheduler("saf", quota="user:jobs=1")
    policies = {"object": Scheduler("saf"), "file": str(file), "own": own}
    few: dict[str, Any] = {**FEW, "jobs": 60, "n": 4}
    rows = evaluate(policies, QUEUES, **few, **QUOTA)
    schedulers = [rows.schedulers[name] for name in ("object (quota user:jobs=2)", "file", "own")]
    assert schedulers == [Scheduler("saf", **QUOTA), find_scheduler(str(file)).but(**QUOTA), own]
    lifted = evaluate([*policies.values(), "saf:quota=user:jobs=1"], QUEUES, **few, quota=None)
    assert {
        scheduler and scheduler.describe()["quota"] for scheduler in lifted.schedulers.values()
    } == {None}
    assert "saf:quota=user:jobs=1 (no quota)" in lifted.by_slice
    board = evaluate(
        (), QUEUES, maintenance="0/60", reference="best-static", **{**few, "budget": 2}
    )
    always = ["random (maintenance 0/60)", "best-static (maintenance 0/60)"]
    assert [*board.by_slice][-2:] == always
    assert board.reference == always[1]
    chance = next(row for row in board.rows() if row["name"] == always[0])
    assert (chance["policy"], chance["maintenance"]) == ("random", "0/60")


class Spf:
    """Acts as SPF, and was trained under rules that it brings along."""

    env_id = "hpcgym/MixedPolicy-v2"

    def __init__(self, **rules: Any) -> None:
        self.env_options = {"interval": "episode", **rules}

    def act(self, observation: Any, info: Any) -> Any:
        return np.array([0, -1, 0, 0, 0, 0], np.float32)


@pytest.mark.parametrize(
    ("rule", "text"), [*STOPS.items(), *KEPT.items(), ("threshold", 1)], ids=str
)
def test_none_leaves_out_what_an_agent_was_trained_with(rule: str, text: Any) -> None:
    few: dict[str, Any] = {**FEW, "jobs": 60, "n": 4}
    log = FITTING if rule == "maintenance" else QUEUES
    trained = evaluate({"mine": Spf(**{rule: text})}, log, **few).by_slice
    freed = evaluate({"mine": Spf(**{rule: text})}, log, **{rule: None}, **few).by_slice
    plain = evaluate({"mine": Spf()}, log, **few).by_slice
    assert (trained["mine"] != plain["mine"]).any()
    assert freed.equals(plain)


@pytest.mark.slow
@pytest.mark.parametrize("env", [None, "JobSelection-v2"])
def test_slices_that_begin_with_jobs_begin_under_the_quotas(env: str | None) -> None:
    """Each begins as EASY under the quota left the machine, and is simulated so by all."""
    few: dict[str, Any] = {**FEW, "jobs": 60, "n": 6, "start": "warm", **QUOTA}
    if env:
        few |= {"env": f"hpcgym/{env}", "env_options": {"window": 256}}
    board = evaluate({"mine": find_baseline("saf")} if env else ["saf"], FITTING, **few)
    long = hpcgym.simulate(FITTING, "easy", **QUOTA)
    # beside who acts, schedulers have the environment's rules
    saf = Scheduler("saf", backfill_order="spf") if env else "saf"
    (name,) = [row for row in board.by_slice if row.startswith("saf (")]
    for where, value in board.by_slice[name].items():
        first = FITTING.row_at(few["train_share"]) + 60 * int(where.removeprefix("window "))
        part = hpcgym.continued(long, int(FITTING.submit_time[first]))
        rows = np.flatnonzero(part.job_number <= FITTING.job_number[first + 59])
        result = hpcgym.simulate(part.take(rows), saf, **QUOTA)
        counted = result.workload.job_number >= FITTING.job_number[first]
        assert value == pytest.approx(result.bsld[counted].mean(), rel=1e-12)
    if env:
        np.testing.assert_allclose(board.by_slice["mine"], board.by_slice[name], rtol=1e-12)
        # given to the environment alone, the quota holds for how slices begin, and for all rows
        options = {"env_options": {"window": 256, **QUOTA}, "quota": None}
        mine = {"mine": find_baseline("saf")}
        del options["quota"], few["quota"]
        there = evaluate(mine, FITTING, **{**few, **options})
        assert (there.by_slice["mine"] == board.by_slice["mine"]).all()
        (easy,) = [row for row in board.by_slice if row.startswith("easy (")]
        like = there.by_slice.filter(like="easy").eq(board.by_slice[easy], axis=0)
        assert like.all().any()


test_mistakes = mistakes_of(globals())
