"""Evaluations where jobs share nodes: rows, intervals, what is refused, the commands."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import hpcgym
from hpcgym.baselines.pair_policies import PairPolicy
from hpcgym.cli import app
from hpcgym.envs import CoSchedule
from hpcgym.errors import HpcgymError, PolicyWarning
from hpcgym.evaluation import Leaderboard, evaluate, lineup, shared
from hpcgym.evaluation.intervals import bootstrap
from hpcgym.evaluation.shared import ENVIRONMENT, REFERENCES
from hpcgym.speedups import find_speedups

JOBS = "codes:jobs=300,processes=24,processors=192,seed=2"
MACHINE = "8x2x12"


def board(policies: Any = (), **arguments: Any) -> Leaderboard:
    usual: dict[str, Any] = {"env": ENVIRONMENT, "cluster": MACHINE, "jobs": 30, "n": 5}
    return evaluate(policies, JOBS, **{**usual, **arguments})


class First:
    """The first that can be done; called as the rule that is the same."""

    name = "first-pairs"

    def act(self, observation: Any, info: Any) -> int:
        return int(np.argmax(info["action_mask"]))


class Agent(First):
    """The same, with the environment that it was made for."""

    name = "mine"
    env_id = ENVIRONMENT

    def __init__(self, cluster: str = MACHINE) -> None:
        self.env_options = {"cluster": cluster, "window": 20}


def test_rows_are_simulations_of_the_slices() -> None:
    found = board(["popularity-co", "greedy-pairs"])
    assert set(found.table.index) == {*REFERENCES, "popularity-co", "greedy-pairs"}
    assert found.schedulers["greedy-pairs"] is None
    whole = CoSchedule(JOBS, cluster=MACHINE, jobs=30, part="test")
    speedups, outcomes = find_speedups("generated"), {}
    for name in found.schedulers:
        if name == "greedy-pairs":
            continue
        results = []
        for episode in whole.episodes.named(5, 0):
            jobs = whole.episodes.workload_of(episode)
            results.append(hpcgym.simulate(jobs, name, cluster=MACHINE, speedups=speedups))
        outcomes[name] = results
        assert found.by_slice[name].tolist() == [r.metrics["mean_bsld"] for r in results]
    makespans = {
        name: np.array([one.metrics["makespan_s"] for one in outcomes[name]]) for name in outcomes
    }
    for name, mine in makespans.items():
        row, gain = found.table.loc[name], makespans["filler-co"] / mine - 1
        assert row["makespan_s"] == pytest.approx(mine.mean())
        (low,), (high,) = bootstrap(gain[:, None])
        ends = [row[f"improvement{end}"] for end in ("", "_low", "_high")]
        assert ends == pytest.approx([gain.mean(), low, high], abs=1e-9)
    assert found.reference == "filler-co"
    assert found.difference("filler-co", "filler-co", "makespan_s") == (0, 0, 0)


def test_agents_bring_their_environment() -> None:
    alone = evaluate([Agent(), "first-pairs"], JOBS, jobs=30, n=5)
    with_it = board([Agent()], cluster=None)
    assert alone.by_slice["mine"].tolist() == with_it.by_slice["mine"].tolist()
    assert alone.by_slice["mine"].tolist() == alone.by_slice["first-pairs"].tolist()


class Waits:
    name = "waits"

    def act(self, observation: Any, info: Any) -> int:
        return len(info["action_mask"])


def test_a_policy_that_fails_is_noted() -> None:
    with pytest.warns(PolicyWarning, match="^waits failed on 5 of 5 slices, first on "):
        found = board(Waits())
    assert np.isnan(found.table.loc["waits", "mean_bsld"])
    assert "action must be an index" in found.failures["waits", found.by_slice.index[0]]


def test_nothing_else_gets_the_row_of_a_name() -> None:
    """Objects that are called as a name that is given, or as a name that there is."""
    first, waits = First(), Waits()
    named = shared_by_name([first, "first-pairs", waits, waits])
    assert list(named) == ["first-pairs (2)", "first-pairs", "waits", "waits (2)"]
    assert named["first-pairs (2)"] is first
    assert isinstance(named["first-pairs"], PairPolicy)
    waits.name = "filler-co"
    assert list(shared_by_name([waits])) == ["filler-co (acting)"]
    # what a name stands for may be given as it is, too
    assert list(shared_by_name([PairPolicy("greedy-pairs")])) == ["greedy-pairs"]
    assert list(shared_by_name({"easy-co": "easy-co", 3: waits})) == ["easy-co", "3"]


@pytest.mark.parametrize(
    "policies",
    [{"filler-co": First()}, {"easy-co": "sjf-co"}, {"first-pairs": First()}],
    ids=["reference", "name", "pairs"],
)
def test_names_of_ones_own_are_no_others(policies: Any) -> None:
    (name,) = policies
    with pytest.raises(HpcgymError, match=f"the name '{name}' stands for a scheduler or policy"):
        shared_by_name(policies)
    with pytest.raises(HpcgymError, match="'3' is there twice"):
        shared_by_name({3: First(), "3": First()})


def shared_by_name(policies: Any) -> dict[str, Any]:
    return lineup.by_name(lineup.listed(policies), shared._find_policy, shared._other)


@pytest.mark.parametrize(
    ("policies", "arguments", "message"),
    [
        ([], {"resamples": 0}, "resamples must be a whole number of at least 1, not 0"),
        ([], {"budget": -1}, "budget must be a whole number of at least 0, not -1"),
        ([{}], {}, "a policy is a name, a path, a Scheduler or an object with act, not {}"),
        (["first-pairs"], {"env_options": {"observation": "flat"}}, "first-pairs acts in"),
        (["easy-cos"], {}, "did you mean 'easy-co'"),
        ([], {"backfill": "easy"}, "unknown argument 'backfill'"),
        ([], {"env_options": {"speedups": "nowhere.csv"}}, "nowhere.csv: no such file"),
    ],
)
def test_bad_arguments(policies: Any, arguments: Any, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        board(policies, **arguments)


def test_agents_of_another_machine() -> None:
    with pytest.raises(HpcgymError, match="on another machine"):
        board({"one": Agent(), "other": Agent("16x2x12")}, cluster=None)


def test_commands() -> None:
    command = ["evaluate", "greedy-pairs", "sjf-filler-co", "--workload", JOBS, "--jobs", "30"]
    command += ["--env", "CoSchedule", "--cluster", MACHINE, "--number", "4"]
    shown = CliRunner().invoke(app, command)
    assert shown.exit_code == 0, shown.output
    assert "makespan" in shown.output
    assert "sjf-filler-co" in shown.output
    speedups = ["--speedups", "generated:codes=16,spread=0.2"]
    printed = CliRunner().invoke(app, [*command, *speedups, "--format", "json"])
    facts = json.loads(printed.stdout)
    names = {policy["name"] for policy in facts["policies"]}
    assert names == {"greedy-pairs", "sjf-filler-co", *REFERENCES}
    assert facts["reference"] == "filler-co"
    assert CliRunner().invoke(app, [*command, "--format", "csv"]).exit_code == 0
