"""A leaderboard holds what the simulator says, and its statistics are those of its columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from predictors import Crooked

from hpcgym.agents import search
from hpcgym.baselines import SCHEDULERS, find_baseline
from hpcgym.baselines.experts import Expert
from hpcgym.cli import options
from hpcgym.cluster import Cluster, NodeGroup, find_cluster
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.job_selection import JobSelection
from hpcgym.errors import HpcgymError, PolicyWarning
from hpcgym.evaluation import Leaderboard, evaluate, lineup
from hpcgym.evaluation.stage import RULES
from hpcgym.evaluation.static_weights import best_static
from hpcgym.scheduler.policies import WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import learn_before, simulate
from hpcgym.workload import Workload, load_workload

TRACE = load_workload("lublin:jobs=2000,processors=64,seed=0,load=3")
WEEKS = load_workload("lublin:jobs=9000,processors=64,seed=2,load=0.3")
SMALL: dict[str, Any] = {"jobs": 100, "n": 6, "budget": 14, "resamples": 200}


def board_of(by_slice: dict[str, list[float]], **changes: Any) -> Leaderboard:
    table = pd.DataFrame(by_slice, index=pd.Index(range(len(next(iter(by_slice.values()))))))
    return Leaderboard(table, dict.fromkeys(by_slice), {}, {}, **changes)


class OneChoice:
    """An environment of one step: the action is the policy of the whole episode."""

    action_kind = "one choice"

    def __init__(self, workload: Any = TRACE, jobs: int = 100, **rules: Any) -> None:
        self.episodes = Episodes(workload, jobs=jobs)
        scheduler = Scheduler().but(**rules)
        self.scheduler_rules = {rule: getattr(scheduler, rule) for rule in RULES}
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


# --- What is run ----------------------------------------------------------------------------


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
        "best-static",
    ]
    for name in board.by_slice:
        scheduler = board.schedulers[name]
        assert scheduler is not None
        if name in SCHEDULERS:
            assert scheduler == SCHEDULERS[name]
        for episode in chosen:
            jobs = TRACE.take(slice(episode.start, episode.stop))
            value = simulate(jobs, scheduler).metrics["mean_bsld"]
            assert board.by_slice.loc[episode.name, name] == value
    assert len({*board.by_slice.to_numpy().mean(axis=0)}) > 4  # a workload that tells them apart


def test_slices_of_the_test_part_have_no_job_of_the_train_part() -> None:
    for part, first, stop in (("test", 1000, 2000), ("train", 0, 1000), ("all", 0, 2000)):
        board = evaluate((), TRACE, slices=part, jobs=100, n=40, budget=0)
        rows = [[int(row) for row in name[5:].split(":")] for name in board.by_slice.index]
        assert min(rows)[0] >= first
        assert max(rows)[1] <= stop
        assert len(rows) == 40


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
    assert list(board.by_slice.columns) == ["easy", "fcfs", *none, "best-static"]
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
    }
    assert board.by_slice[f"saf {both}"].equals(board.by_slice[f"0,0,0,0,0,-1 {both}"])


def test_the_same_seed_gives_the_same_board() -> None:
    one, same, other = (evaluate("spf", TRACE, seed=seed, **SMALL) for seed in (5, 5, 6))
    assert one.table.equals(same.table)
    assert one.static_weights == same.static_weights
    assert set(one.by_slice.index) != set(other.by_slice.index)


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(HpcgymError, match="policies: 'spf' is there twice"):
        evaluate(["spf", "easy", "spf"], TRACE, jobs=100, n=2, budget=0)


def test_schedulers_without_a_name_are_called_by_their_rules() -> None:
    two = [Scheduler(policy="saf"), Scheduler(policy="saf", threshold=60), Scheduler("saf")]
    board = evaluate([*two, SCHEDULERS["saf"]], TRACE, jobs=100, n=2, budget=0)
    rules = "queue by SAF, EASY backfilling by FCFS, requested times"
    rows = [rules, f"{rules}, threshold 60 s", f"{rules} (2)", "saf (2)"]
    assert list(board.by_slice.columns)[:4] == rows
    assert board.by_slice["saf"].equals(board.by_slice["saf (2)"])


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
        expected = simulate(jobs, options.rules(name, {})).metrics["mean_bsld"]
        (row,) = (row for row in board.by_slice if row == name or row.startswith(f"{name} ("))
        scheduler = board.schedulers[row]
        assert scheduler is not None
        if row == name:
            plain += 1
            assert board.by_slice[row].tolist() == [expected]
        else:
            assert scheduler.describe() != options.rules(name, {}).describe()
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


# --- Policies that act ----------------------------------------------------------------------


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
    assert board.failures == {("simplenamespace", where): "ZeroDivisionError: no way"}
    assert board.by_slice.isna().to_numpy().sum() == 1
    assert len(calls) == 6  # it went on with the next
    table = board.table
    assert table.index[-1] == "simplenamespace"
    row = table.loc["simplenamespace"]
    assert (row["failed"], row["slices"]) == (1, 6)
    assert row[["mean_bsld", "mean_bsld_low", "median_bsld", "mean_regret"]].isna().all()
    assert table["win_rate"].sum() == pytest.approx(1)
    assert table.drop("simplenamespace").notna().all(axis=None)


def test_a_function_of_observation_and_info_is_a_policy() -> None:
    """The same action always: the first of the window, which is FCFS with EASY backfilling."""
    few: dict[str, Any] = {"jobs": 100, "n": 2, "budget": 0, "env": "hpcgym/JobSelection-v0"}
    board = evaluate(lambda observation, info: 0, TRACE, **few)
    assert not board.failures
    assert board.by_slice["<lambda>"].tolist() == board.by_slice["easy"].tolist()
    board = evaluate({"first": lambda observation, info: 0}, TRACE, **few)
    assert board.by_slice["first"].tolist() == board.by_slice["easy"].tolist()


def test_a_function_without_an_environment_or_that_nobody_can_call_is_said_once() -> None:
    with pytest.raises(HpcgymError, match="<lambda> acts in an environment: give env="):
        evaluate(lambda observation, info: 0, TRACE, jobs=100, n=2, budget=0)
    for policies in (lambda: 0, [lambda one, two, three: 0]):
        with pytest.raises(HpcgymError, match="<lambda> must take one argument, as a dispatcher"):
            evaluate(policies, TRACE, jobs=100, n=2, budget=0)


def test_an_action_that_is_none_is_said_once() -> None:
    def act(observation: Any, info: Any) -> int:
        return -7

    few: dict[str, Any] = {"jobs": 100, "n": 2, "budget": 0, "env": "hpcgym/JobSelection-v0"}
    with pytest.warns(UserWarning, match="failed on") as caught:
        board = evaluate(act, TRACE, **few)
    said = [str(one.message) for one in caught if "failed on" in str(one.message)]
    assert len(said) == 1
    assert said[0].startswith("act failed on 2 of 2 slices, first on ")
    assert "HpcgymError: action must be an index from 0 to 127, not -7" in said[0]
    assert board.by_slice["act"].isna().all()


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
    assert board.failures == {("agent", board.by_slice.index[1]): "ZeroDivisionError: no way"}
    assert caught[0].filename == __file__  # of who called evaluate
    calls.clear()
    with pytest.raises(HpcgymError, match=r"^not here$"):
        evaluate(choosing("spf", begin=begin), TRACE, **few)


def test_policies_may_come_from_a_generator() -> None:
    board = evaluate((name for name in ("spf", "lpf")), TRACE, jobs=100, n=2, budget=0)
    assert {"spf", "lpf"} <= {*board.by_slice}


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
        "once": 1, "twice": 2,
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


def test_a_file_that_is_no_agent_is_said(tmp_path: Path) -> None:
    file = tmp_path / "agent.pt"
    file.write_text("nothing")
    with pytest.raises(HpcgymError) as caught:
        evaluate(file, TRACE)
    assert str(file) in str(caught.value)


def test_an_agent_that_does_nonsense_fails_in_a_real_environment() -> None:
    env = "hpcgym/QueueOrdering-v0"
    nan = np.full(128, np.nan)
    agent = SimpleNamespace(name="nan", act=lambda observation, info: nan)
    board = evaluate(agent, TRACE, env=env, jobs=100, n=2, budget=0)
    assert len(board.failures) == 2
    assert all("numbers from -1 to 1" in text for text in board.failures.values())
    with pytest.raises(HpcgymError, match="'easy-sjbf' needs an environment with"):
        evaluate(find_baseline("easy-sjbf"), TRACE, env=env, jobs=100, n=2, budget=0)


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
        ({"threshold": 5}, "unknown argument 'threshold'"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        evaluate(**{"workload": TRACE, **arguments})
    assert message in str(caught.value)


# --- Statistics -----------------------------------------------------------------------------


def test_means_wins_and_regret() -> None:
    table = board_of({"a": [2.0, 4.0, 8.0, 1.0], "b": [2.0, 2.0, 9.0, 3.0]}).table
    assert list(table.index) == ["a", "b"]
    a, b = table.loc["a"], table.loc["b"]
    assert (a["mean_bsld"], a["median_bsld"]) == (3.75, 3.0)
    assert (b["mean_bsld"], b["median_bsld"]) == (4.0, 2.5)
    assert (a["win_rate"], b["win_rate"]) == (2.5 / 4, 1.5 / 4)
    assert a["mean_regret"] == pytest.approx((0 + 1 + 0 + 0) / 4)
    assert b["mean_regret"] == pytest.approx((0 + 0 + 1 / 8 + 2) / 4)


def test_intervals_hold_the_mean_and_shrink_with_the_number_of_slices() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for n in (20, 2000):
        values = rng.exponential(10, n)
        row = board_of({"a": values.tolist()}).table.loc["a"]
        low, high = row["mean_bsld_low"], row["mean_bsld_high"]
        assert low < values.mean() < high
        # the normal interval of a mean
        assert high - low == pytest.approx(2 * 1.96 * values.std() / n**0.5, rel=0.15)
        widths.append(high - low)
    assert widths[1] < widths[0] / 5


def test_resamples_are_paired() -> None:
    values = np.random.default_rng(1).exponential(100, 50)
    board = board_of({"a": values.tolist(), "b": (values + 1).tolist()})
    table = board.table
    assert table["mean_bsld_high"].diff().iloc[1] == pytest.approx(1)
    assert board.difference("b", "a") == pytest.approx((1, 1, 1))
    mean, low, high = board.difference("a", "b")
    assert low <= mean <= high < 0
    with pytest.raises(HpcgymError, match="unknown policy 'c'; known are a, b"):
        board.difference("a", "c")


@pytest.mark.parametrize("number", [1, 2, 4, 5])
def test_few_slices_have_no_interval(number: int) -> None:
    board = board_of({"a": [3.0] * number, "b": [1.0, 2.0, 4.0, 5.0, 6.0][:number]})
    row = board.table.loc["b"]
    mean, low, high = board.difference("a", "b")
    assert row["mean_bsld"] == 3 - mean
    ends = [row["mean_bsld_low"], row["mean_bsld_high"], low, high]
    assert np.isnan(ends).tolist() == [number < 5] * 4


def test_a_slice_on_which_all_fail_is_nobodys() -> None:
    nan = float("nan")
    table = board_of({"a": [nan, 1.0], "b": [nan, 2.0]}).table
    assert table["win_rate"].tolist() == [0.5, 0]
    assert table["failed"].tolist() == [1, 1]


# --- Static weights -------------------------------------------------------------------------


def test_static_weights_are_the_best_of_the_training_part_only() -> None:
    board = evaluate((), TRACE, budget=40, jobs=100, n=5, seed=1)
    train = Episodes(TRACE, jobs=100, part="train")
    training = [train.workload_of(episode) for episode in train.named(100, 2)]
    means = {
        str(weights): np.mean(
            [simulate(part, "spf", policy=weights).metrics["mean_bsld"] for part in training]
        )
        for weights in candidates(training, WEIGHTED_FEATURES, 40, 1)
    }
    assert len(means) == 40
    assert min(means, key=lambda text: means[text]) == str(board.static_weights)
    assert sum(map(abs, board.static_weights.values())) == pytest.approx(1)
    # whatever is evaluated
    for part in ("train", "all"):
        again = evaluate((), TRACE, budget=40, jobs=100, n=2, seed=1, slices=part)
        assert again.static_weights == board.static_weights


def candidates(
    training: Sequence[Workload], features: Sequence[str], number: int, seed: int
) -> list[dict[str, float]]:
    """The weights that are tried, without 0."""
    rng = np.random.default_rng(seed)
    vectors = search.candidates(rng, len(features), number) / search.spread(training, features)
    rows = search.normalised(vectors).tolist()
    return [{name: w for name, w in zip(features, row, strict=True) if w} for row in rows]


def test_ties_go_to_the_first() -> None:
    one_job = [TRACE.take(slice(0, 1))]
    steps: list[str] = []
    best = best_static(one_job, ("area", "wait"), Scheduler(), 6, 0, steps.append)
    assert best == {"area": 1.0}
    assert len(steps) == 6


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
    assert "above_reference" not in board.table  # none of them solves a model
    assert board.facts()["reference"] is None


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


@pytest.mark.parametrize("env_id", ["hpcgym/JobSelection-v0", "hpcgym/QueueOrdering-v0"])
def test_policies_act_on_the_machine_that_is_given(env_id: str) -> None:
    actors = [find_baseline("prb"), find_baseline("saf")]
    board = evaluate(
        [*actors, "prb", "saf"], EURORA, env=env_id, budget=0, backfill="none",
        env_options={"window": 64}, **ON_NODES,
    )  # fmt: skip
    assert not board.failures
    for name, row in {"prb": "prb", "saf": "saf (no backfilling)"}.items():
        assert board.by_slice[f"{name} (acting)"].tolist() == board.by_slice[row].tolist()


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
