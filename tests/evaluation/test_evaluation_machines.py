"""Leaderboards with dispatchers, and on machines with nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from boards import SMALL, TRACE, board_of, candidates

from hpcgym.baselines import find_baseline
from hpcgym.baselines.policies import Expert
from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.job_selection import JobSelection
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import evaluate, lineup
from hpcgym.evaluation.online import best_static
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

# --- Dispatchers, and how far all are above the best of them -------------------------------------


def test_dispatchers_are_simulated_by_name() -> None:
    board = evaluate(["prb", "sdprb"], TRACE, seed=3, estimate="ave2", **{**SMALL, "budget": 0})
    part = Episodes(TRACE, jobs=100, part="test")
    for name in ("prb", "sdprb"):
        rules = Scheduler(dispatcher=name, estimate="ave2")
        expected = [
            simulate(part.workload_of(episode), rules).metrics["mean_bsld"]
            for episode in part.named(6, 3)
        ]
        assert board.by_slice[f"{name} (estimate ave2)"].tolist() == expected
    assert board.references == ()  # none of them solves a model
    assert board.facts()["reference"] == "easy (estimate ave2)"


@pytest.mark.slow
def test_agents_order_the_queue_of_slurm() -> None:
    """Beside the order of submission under the same backfilling, and EASY itself."""
    rules = {"backfill": "slurm:bf_interval=300", "env": "hpcgym/QueueOrdering-v0"}
    board = evaluate(["saf"], TRACE, seed=3, **{**SMALL, "budget": 0}, **rules)
    part = Episodes(TRACE, jobs=100, part="test")
    slices = [part.workload_of(episode) for episode in part.named(6, 3)]
    plain = f"easy:backfill={rules['backfill']}"
    for name, scheduler in {plain: Scheduler(backfill=rules["backfill"]), "easy": "easy"}.items():
        expected = [simulate(one, scheduler).metrics["mean_bsld"] for one in slices]
        assert board.by_slice[name].tolist() == expected
    assert board.facts()["reference"] == plain
    assert any(row.startswith("saf (slurm") for row in board.by_slice)
    with pytest.raises(
        HpcgymError, match="'slurm' or 'none' here; evaluate 'conservative' by name"
    ):
        evaluate(["saf"], TRACE, **{**SMALL, "budget": 0}, backfill="conservative")


def in_order(view: Any) -> list[int]:
    return view.in_order(range(len(view.job)))  # type: ignore[no-any-return]


def test_a_dispatcher_of_ones_own_is_simulated() -> None:
    few = {**SMALL, "budget": 0}
    board = evaluate([in_order, "fcfs-list"], TRACE, **few)
    assert board.by_slice["in_order"].equals(board.by_slice["fcfs-list"])
    assert board.schedulers["in_order"] == Scheduler(dispatcher=in_order)
    assert "in_order" in evaluate(in_order, TRACE, **few).by_slice
    assert "mine" in evaluate({"mine": in_order}, TRACE, **few).by_slice
    with pytest.raises(HpcgymError, match=r"must not be the class Mine; give Mine\(\)"):
        evaluate(type("Mine", (), {"__call__": in_order}), TRACE)
    with pytest.raises(HpcgymError, match=r"a path, a dispatcher .* or an object with act, not 3"):
        evaluate([3], TRACE)


@pytest.mark.parametrize("as_policy", [lambda one: one, Expert])
def test_a_dispatcher_that_answers_wrongly_fails(as_policy: Any) -> None:
    def nothing(view: Any) -> list[int]:
        return []

    def all_of_them(view: Any) -> list[int]:
        return list(range(len(view.job)))

    policies = {one.__name__: as_policy(one) for one in (nothing, all_of_them, in_order)}
    env = "hpcgym/JobSelection-v0"
    with pytest.warns(UserWarning, match="failed on 2 of 2 slices"):
        board = evaluate(policies, TRACE, env=env, backfill="none", jobs=60, n=2, budget=0)
    failed = board.table["failed"]
    assert (failed["nothing"], failed["all_of_them"], failed["in_order"]) == (2, 2, 0)
    assert all(text.startswith("DispatchError: ") for text in board.failures.values())


def test_a_dispatcher_that_solves_a_model_makes_a_column_above_reference() -> None:
    pytest.importorskip("ortools")
    few = {**SMALL, "jobs": 30, "n": 3, "budget": 0}
    board = evaluate(["cph-3", "prb", "spf"], TRACE, seed=1, **few)
    assert board.references == ("cph-3", "prb", *lineup.REFERENCES["easy"])
    best = board.by_slice[list(board.references)].mean().min()
    above = board.table["above_reference"]
    assert above[board.reference] == 0
    assert above.to_numpy() == pytest.approx(board.table["mean_bsld"].to_numpy() - best)
    assert board.facts()["reference"] == board.reference


def test_above_reference_is_the_paired_difference_to_the_best() -> None:
    values = {"agent": [1.0, 2.0, 6.0, 1.0, 5.0], "pcp20": [2.0] * 5, "easy": [1.0] + [9.0] * 4}
    board = board_of(values, references=("pcp20", "easy"))
    assert board.reference == "pcp20"
    row = board.table.loc["agent"]
    found = tuple(row[["above_reference", "above_reference_low", "above_reference_high"]])
    assert found == board.difference("agent", "pcp20") == pytest.approx((1.0, found[1], found[2]))
    assert found[1] < 0 < found[2]


def test_a_reference_that_failed_is_none() -> None:
    board = board_of({"agent": [1.0, 2.0], "pcp20": [np.nan, 1.0]}, references=("pcp20",))
    assert board.reference is None
    assert "above_reference" not in board.table


def test_dispatchers_names_are_taken_and_near_ones_are_said() -> None:
    with pytest.raises(HpcgymError, match="the name 'pcp20' stands for a scheduler"):
        evaluate({"pcp20": Scheduler()}, TRACE, **SMALL)
    with pytest.raises(HpcgymError, match=r"unknown policy 'sdprp'; did you mean 'sdprb'"):
        evaluate("sdprp", TRACE, **SMALL)


# --- Machines -----------------------------------------------------------------------------------


EURORA = load_workload("eurora:jobs=600,seed=0,load=2")
ON_NODES: dict[str, Any] = {"cluster": "eurora", "jobs": 60, "n": 3, "resamples": 50}


def test_all_is_simulated_on_the_machine_that_is_given() -> None:
    policies = ["prb", "easy++", "conservative", Scheduler("saf", backfill="none")]
    board = evaluate(policies, EURORA, seed=2, budget=0, allocation="best-fit", **ON_NODES)
    part = Episodes(EURORA, jobs=60, part="test")
    for name, scheduler in board.schedulers.items():
        assert scheduler is not None
        own = name == "queue by SAF, no backfilling, requested times"
        assert scheduler.allocation == ("first-fit" if own else "best-fit")
        if name == "random":
            continue  # its order is of all jobs, not of a slice
        expected = [
            simulate(part.workload_of(episode), scheduler, cluster="eurora").metrics["mean_bsld"]
            for episode in part.named(3, 2)
        ]
        assert board.by_slice[name].tolist() == expected
    pool = evaluate(policies, EURORA, seed=2, budget=0, **{**ON_NODES, "cluster": None})
    assert (pool.by_slice["easy"] != board.by_slice["easy"]).any()


@pytest.mark.parametrize("cluster", ["eurora", Cluster(1100)], ids=["nodes", "pool"])
def test_static_weights_are_the_best_on_the_machine(cluster: Any) -> None:
    steps: list[str] = []
    training = [EURORA.take(slice(k, k + 60)) for k in (0, 60, 120)]
    rules = Scheduler("spf", backfill_order="spf")
    machine = find_cluster(cluster) if isinstance(cluster, str) else cluster
    found = best_static(training, WEIGHTED_FEATURES, rules, 20, 5, steps.append, machine)
    means = [
        np.mean(
            [
                simulate(part, rules.but(policy=one), cluster=machine).metrics["mean_bsld"]
                for part in training
            ]
        )
        for one in candidates(training, WEIGHTED_FEATURES, 20, 5)
    ]
    assert found == candidates(training, WEIGHTED_FEATURES, 20, 5)[int(np.argmin(means))]
    assert len(steps) == 20
    board = evaluate((), EURORA, budget=3, **{**ON_NODES, "cluster": cluster})
    assert board.by_slice["best-static"].notna().all()


def test_one_way_of_choosing_static_weights_is_the_other() -> None:
    """The batch's, for as many processors as the workload's; and slice by slice, for others."""
    training = [TRACE.take(slice(k, k + 60)) for k in (0, 60, 120)]
    rules = Scheduler("spf", backfill_order="spf")
    nodes = Cluster(groups=(NodeGroup("all", 16, {"core": 4}),))  # of single cores: a pool
    one, other = (
        best_static(training, WEIGHTED_FEATURES, rules, 30, 7, lambda text: None, machine)
        for machine in (None, nodes)
    )
    assert one == other


@pytest.mark.parametrize(
    ("there", "here", "expected"),
    [
        ({}, {}, "next-second"),
        ({"correction": "incremental"}, {}, "incremental"),
        ({}, {"correction": "requested"}, "requested"),
    ],
)
def test_dispatchers_correct_as_in_simulate_whoever_acts(
    there: dict[str, str], here: dict[str, str], expected: str
) -> None:
    """Unless somebody asks for another correction; the environment's usual one is no wish."""
    few: dict[str, Any] = {"budget": 0, "jobs": 30, "n": 1, "estimate": "ave2"}
    env = JobSelection(TRACE, jobs=30, estimate="ave2", backfill="none", **there)
    board = evaluate([find_baseline("saf"), "prb", "sjf"], TRACE, env=env, **few, **here)
    (prb,) = (one for row, one in board.schedulers.items() if row.startswith("prb ("))
    (sjf,) = (one for row, one in board.schedulers.items() if row.startswith("sjf ("))
    assert prb.correction == expected
    assert sjf.correction == {**there, **here}.get("correction", "requested")


def test_an_environment_of_another_machine_is_told() -> None:
    env = JobSelection(EURORA, jobs=60, cluster="eurora")
    rules: dict[str, Any] = {"env": env, "jobs": 60, "n": 1, "budget": 0}
    for cluster in (None, Cluster(groups=(NodeGroup("all", 64, {"core": 16, "mem": 16_000}),))):
        jobs = EURORA if cluster is None else SERIAL_ON_1024
        with pytest.raises(HpcgymError, match="another workload in"):
            evaluate(find_baseline("saf"), jobs, cluster=cluster, **rules)
    board = evaluate(find_baseline("saf"), EURORA, cluster="eurora", **rules)
    assert not board.failures


SERIAL_ON_1024 = load_workload("lublin:jobs=600,processors=1024,seed=0")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cluster": "eurrora"}, "unknown machine 'eurrora'; did you mean 'eurora'"),
        ({"cluster": 64}, "a number is processors"),
        ({"cluster": Cluster(100)}, "requested_processors must be from 1 to 100"),
        (
            {"cluster": Cluster(groups=(NodeGroup("all", 999, {"core": 4, "mem": 16_000}),))},
            "'?(gpu|mic)'? a unit, which the machine lacks",
        ),
        ({"passes": "per-event"}, "passes='per-event' and a machine of nodes"),
        ({"allocation": "best"}, "did you mean 'best-fit'"),
        ({"env_options": {"cluster": "eurora"}}, "env_options: give cluster to the evaluation"),
        ({"env_options": {"processors": 64}}, "env_options: give processors to the evaluation"),
    ],
    ids=str,
)
def test_a_wrong_machine_is_told(options: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        evaluate("spf", EURORA, **{**ON_NODES, "budget": 0, **options})
