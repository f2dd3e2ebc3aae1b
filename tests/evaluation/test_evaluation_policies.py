"""Leaderboards of policies that act in an environment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from boards import SMALL, TRACE

from hpcgym.baselines import find_baseline
from hpcgym.cli.boards import notes_of
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, PolicyWarning
from hpcgym.evaluation import evaluate, lineup
from hpcgym.scheduler.asked_for import OF_ENVIRONMENTS
from hpcgym.scheduler.policies import FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload


class OneChoice:
    """An environment of one step: the action is the policy of the whole episode."""

    action_kind = "one choice"

    def __init__(self, workload: Any = TRACE, jobs: int = 100, **rules: Any) -> None:
        self.episodes = Episodes(workload, jobs=jobs)
        scheduler = Scheduler().but(**rules)
        self.scheduler_rules = {rule: getattr(scheduler, rule) for rule in OF_ENVIRONMENTS}
        self.unwrapped = self
        self.truncates = False

    def reset(self, seed: int, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        self.episode_workload = self.episodes.workload_of(self.episodes.find(options))
        return None, {}

    def result(self) -> Any:
        return simulate(self.episode_workload)

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        result = simulate(self.episode_workload, policy=action, **self.scheduler_rules)
        return None, 0.0, not self.truncates, self.truncates, {"metrics": result.metrics}


def choosing(policy: str, **more: Any) -> Any:
    """A policy for it."""
    return SimpleNamespace(name="agent", act=lambda observation, info: policy, **more)


def test_a_policy_acts_in_the_environment_given() -> None:
    env = OneChoice(backfill_order="sqf", passes="per-event")
    board = evaluate([choosing("spf"), "spf"], TRACE, env=env, **SMALL)
    assert board.by_slice["agent"].equals(board.by_slice["spf (backfill sqf)"])
    assert board.schedulers["agent"] is None
    assert not board.failures
    spf = board.schedulers["spf (backfill sqf)"]
    assert spf is not None
    assert (spf.backfill_order, spf.passes) == ("sqf", "per-event")


def test_begin_is_called_once_an_episode_with_the_environment() -> None:
    seen = []
    env = OneChoice()
    evaluate(choosing("saf", begin=seen.append), TRACE, env=env, jobs=100, n=3, budget=0)
    assert seen == [env] * 3


def test_agents_with_the_name_of_a_reference_or_of_each_other_are_told_apart() -> None:
    agents = [choosing("saf") for _ in range(3)]
    agents[2].name = "saf"
    board = evaluate(agents, TRACE, env=OneChoice(), jobs=100, n=2, budget=0)
    assert list(board.by_slice.columns)[:3] == ["agent", "agent (2)", "saf (acting)"]


def test_a_failing_policy_is_reported_and_not_dropped() -> None:
    calls = []

    def act(observation: Any, info: Any) -> str:
        calls.append(1)
        if len(calls) == 2:
            raise ZeroDivisionError("no way")
        return "spf"

    env = OneChoice(backfill_order="spf")
    board = evaluate([SimpleNamespace(act=act), "spf"], TRACE, env=env, **SMALL)
    assert board.by_slice.columns[0] == "simplenamespace"
    where = board.by_slice.index[1]
    ((row, said),) = board.failures.items()
    assert row == ("simplenamespace", where)
    assert said.startswith("ZeroDivisionError: no way (test_evaluation_policies.py, line ")
    assert board.by_slice.isna().to_numpy().sum() == 1
    assert len(calls) == 6  # it went on with the next
    table = board.table
    assert table.index[-1] == "simplenamespace"
    row = table.loc["simplenamespace"]
    assert (row["failed"], row["slices"]) == (1, 6)
    assert row[["mean_bsld", "mean_bsld_low", "median_bsld", "mean_regret"]].isna().all()
    assert table["win_rate"].sum() == pytest.approx(1)
    others = table.drop("simplenamespace")
    assert others.drop(columns="p_value").notna().all(axis=None)
    assert others.index[others["p_value"].isna()].tolist() == ["easy"]  # the reference itself


def test_a_begin_that_fails_is_a_failure_unless_it_says_that_it_does_not_fit() -> None:
    def begin(env: Any) -> None:
        calls.append(1)
        if len(calls) == 2:
            raise errors.pop()

    few: dict[str, Any] = {"jobs": 100, "n": 3, "budget": 0, "env": OneChoice()}
    calls: list[int] = []
    errors: list[Exception] = [HpcgymError("not here"), ZeroDivisionError("no way")]
    with pytest.warns(PolicyWarning, match="^agent failed on 1 of 3 slices, first on ") as caught:
        board = evaluate(choosing("spf", begin=begin), TRACE, **few)
    ((row, said),) = board.failures.items()
    assert row == ("agent", board.by_slice.index[1])
    assert said.startswith("ZeroDivisionError: no way (test_evaluation_policies.py, line ")
    assert caught[0].filename == __file__  # of who called evaluate
    calls.clear()
    with pytest.raises(HpcgymError, match=r"^not here$"):
        evaluate(choosing("spf", begin=begin), TRACE, **few)


def test_text_is_the_name_of_its_row_whatever_comes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineup, "load_agent", lambda path: choosing("spf"))
    mine = {name: choosing("spf") for name in ("lookahead", "0.5,0,0,0,-0.5,0", "powercap", "sjf")}
    for name, one in mine.items():
        one.name = name
    policies = [*mine.values(), "lookahead", "0.5,0,0,0,-0.5,0", Path("sjf")]
    named = lineup.by_name(policies, lineup.find_policy, lineup.other_scheduler)
    assert list(named) == [
        "lookahead (2)", "0.5,0,0,0,-0.5,0 (acting)", "powercap (acting)", "sjf (acting)",
        "lookahead", "0.5,0,0,0,-0.5,0", "sjf (acting) (2)",
    ]  # fmt: skip
    assert list(named.values())[:4] == list(mine.values())


def test_each_failing_policy_is_said_with_its_own_count() -> None:
    def at(failing: Sequence[int]) -> Any:
        calls: list[int] = []

        def act(observation: Any, info: Any) -> str:
            calls.append(1)
            if len(calls) in failing:
                raise ZeroDivisionError("no way")
            return "spf"

        return SimpleNamespace(act=act)

    policies = {"once": at([3]), "twice": at([1, 2]), "never": at([])}
    with pytest.warns(UserWarning, match="failed on") as caught:
        board = evaluate(policies, TRACE, env=OneChoice(), jobs=100, n=3, budget=0)
    said = [str(one.message) for one in caught if "failed" in str(one.message)]
    where = list(board.by_slice.index)
    assert [text.partition(":")[0] for text in said] == [
        f"once failed on 1 of 3 slices, first on {where[2].partition(':')[0]}",
        f"twice failed on 2 of 3 slices, first on {where[0].partition(':')[0]}",
    ]
    assert board.table["failed"].to_dict() == {
        "never": 0, "easy": 0, "easy-sjbf": 0, "saf (backfill fcfs)": 0, "f1 (backfill fcfs)": 0,
        "random": 0, "once": 1, "twice": 2,
    }  # fmt: skip


def test_an_episode_that_is_cut_short_is_a_failure() -> None:
    env = OneChoice()
    env.truncates = True
    board = evaluate(choosing("spf"), TRACE, env=env, jobs=100, n=2, budget=0)
    assert len(board.failures) == 2
    assert {*board.failures.values()} == {
        "RuntimeError: truncated before all jobs of the slice had started"
    }


def test_environments_that_do_not_fit_are_said() -> None:
    few: dict[str, Any] = {"jobs": 100, "n": 2, "budget": 0}
    agent = choosing("spf")
    with pytest.raises(HpcgymError, match="agent acts in an environment: give env="):
        evaluate(agent, TRACE, **few)
    with pytest.raises(HpcgymError, match="has another workload in rows"):
        evaluate(agent, TRACE, env=OneChoice(load_workload("lublin:jobs=2000")), **few)
    with pytest.raises(HpcgymError, match="has backfill='easy', and the evaluation 'none'"):
        evaluate(agent, TRACE, env=OneChoice(), backfill="none", **few)
    with pytest.raises(HpcgymError, match="env_options are for the id"):
        evaluate(agent, TRACE, env=OneChoice(), env_options={"window": 3}, **few)
    with pytest.raises(HpcgymError, match="env 'hpcgym/Nothing-v0': "):
        evaluate(agent, TRACE, env="hpcgym/Nothing-v0", **few)
    with pytest.raises(HpcgymError, match="env must be the id of an environment"):
        evaluate(agent, TRACE, env=7, **few)


@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering", "MixedPolicy"])
@pytest.mark.parametrize("backfill", ["easy", "none"])
def test_in_a_real_environment_a_baseline_scores_as_its_simulation(
    name: str, backfill: str
) -> None:
    weights = "0.5,0,0.125,0,-0.25,-0.125"
    baselines = [find_baseline("saf"), find_baseline(weights)]
    board = evaluate(
        [*baselines, "saf", weights],
        TRACE,
        env=f"hpcgym/{name}-v0",
        env_options={"window": 100},
        backfill=backfill,
        **SMALL,
    )
    assert not board.failures
    values = board.by_slice
    order = "spf" if name == "MixedPolicy" else "fcfs"
    row = "saf" if order == "spf" else "saf (backfill fcfs)"
    row = row if backfill == "easy" else "saf (no backfilling)"
    assert values["saf (acting)"].equals(values[row])
    assert values.iloc[:, 1].equals(values.iloc[:, 3])
    saf = board.schedulers[row]
    assert saf is not None
    assert (saf.backfill, saf.backfill_order) == (backfill, order)


def test_static_weights_are_over_the_features_of_the_environment() -> None:
    features = ("requested", "wait")
    board = evaluate(
        find_baseline("spf"),
        TRACE,
        env="hpcgym/MixedPolicy-v0",
        env_options={"policy_features": features},
        **SMALL,
    )
    assert set(board.static_weights) <= set(features)
    assert board.by_slice["spf (acting)"].equals(evaluate("spf", TRACE, **SMALL).by_slice["spf"])


@pytest.mark.slow
def test_usage_is_counted_by_all_with_the_same_shares() -> None:
    """Of weights that act, of schedulers that are simulated, of weights that do not change."""
    users = np.random.default_rng(0).zipf(1.6, len(TRACE)) % 11
    shares = {"fair_share": "half_life_s=3600", "backfill_order": "fairshare"}
    board = evaluate(
        {"acting": find_baseline("fairshare"), "alone": Scheduler(policy="fairshare", **shares)},
        TRACE.with_columns(user_id=users),
        env="hpcgym/MixedPolicy-v0",
        env_options={"policy_features": ("wait", "fairshare")},
        **shares,
        **SMALL,
    )
    assert not board.failures
    assert board.by_slice["acting"].equals(board.by_slice["alone"])
    assert set(board.static_weights) <= {"wait", "fairshare"}
    static = board.schedulers["best-static"]
    assert static is not None
    assert static.fair_share == FairShare(3600)
    (saf,) = (one for name, one in board.schedulers.items() if name.startswith("saf"))
    assert saf is not None
    assert (saf.backfill_order, saf.fair_share) == ("fairshare", FairShare(3600))


def test_a_policy_may_know_its_own_environment() -> None:
    one = find_baseline("saf")
    one.env_id, one.env_options = "hpcgym/QueueOrdering-v0", {"window": 100, "backfill": "none"}
    board = evaluate([one, "saf"], TRACE, **SMALL)
    assert board.by_slice["saf (acting)"].equals(board.by_slice["saf (no backfilling)"])
    assert "fcfs" in board.by_slice
    assert "easy" not in board.by_slice
    other = find_baseline("saf")
    other.env_id = "hpcgym/JobSelection-v0"
    with pytest.raises(HpcgymError, match=r"saf \(acting\) \(2\) has backfill='easy'"):
        evaluate([one, other], TRACE, **SMALL)
    board = evaluate([one, other], TRACE, backfill="easy", **SMALL)
    assert board.by_slice["saf (acting)"].equals(board.by_slice["saf (acting) (2)"])


def test_a_window_that_is_smaller_than_the_queue_is_told() -> None:
    """Of 30 jobs that each take the whole machine one runs, and 29 wait."""
    burst = TRACE.take(slice(0, 30)).with_columns(
        submit_time=np.zeros(30, np.int64), requested_processors=np.full(30, TRACE.processors)
    )
    boards = {
        window: evaluate(
            find_baseline("saf"), burst, slices="all", episodes="whole", budget=0,
            env="hpcgym/QueueOrdering-v0", env_options={"window": window},
        )
        for window in (5, 30)
    }  # fmt: skip
    assert boards[5].unseen["saf (acting)"] == (5, 29)
    assert boards[30].unseen == {}
    (line,) = (line for line in notes_of(boards[5]) if line.startswith("saf (acting): "))
    assert line == (
        "saf (acting): sees at most 5 waiting jobs, and up to 29 waited at once: the others"
        " come after these"
    )


def test_saved_agents_are_called_by_their_path(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load(path: Any) -> Any:
        loaded.append(path)
        return find_baseline("saf")

    monkeypatch.setattr(lineup, "load_agent", load)
    paths = ["runs/one.pt", Path("runs/two.pt")]
    env = "hpcgym/JobSelection-v0"
    board = evaluate(paths, TRACE, env=env, jobs=100, n=2, budget=0)
    assert list(board.by_slice.columns)[:2] == ["runs/one.pt", "runs/two.pt"]
    assert loaded == paths
    assert "mine" in evaluate({"mine": paths[0]}, TRACE, env=env, jobs=100, n=2, budget=0).by_slice


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": "eazy"}, "unknown policy 'eazy'; did you mean 'easy'"),
        ({"policies": "no/such/agent.pt"}, "no/such/agent.pt: there is no such file"),
        ({"policies": ["1,2,3"]}, "a policy has 6 weights"),
        (
            {"policies": [7]},
            "a policy is a name, a path, a dispatcher (a callable, see simulate) or an object with",
        ),
        ({"policies": 7}, "policies must be names, paths, dispatchers or policies with act, not 7"),
        ({"slices": "tset"}, "unknown part 'tset'; did you mean 'test'"),
        ({"jobs": 10**6}, "jobs=1000000"),
        ({"n": 0}, "n must be"),
        ({"budget": -1}, "budget must be a whole number of at least 0, not -1"),
        ({"resamples": 0}, "resamples must be"),
        ({"budget": True}, "budget must be a whole number of at least 0, not True"),
        ({"policies": {1: "spf", "1": "sjf"}}, "'1' is there twice"),
        ({"backfil": "easy"}, "unknown argument 'backfil'; did you mean 'backfill'"),
        ({"backfill": "conservative"}, "evaluate 'conservative' by name"),
        ({"estimate": [1.0]}, "estimate must be a name"),
        ({"thresholds": 5}, "unknown argument 'thresholds'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        evaluate(**{"workload": TRACE, **arguments})
    assert message in str(caught.value)
