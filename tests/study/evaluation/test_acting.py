"""Where policies act: environments that fit or do not, failures, and what is around slices."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import plain_envs
import pytest
from boards import FEW, SMALL, TRACE, First, FirstPair, Saved, as_it_is, failing
from gymnasium import spaces
from mistakes import mistakes_of
from numpy.typing import NDArray

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.errors import (
    HpcgymError,
    PolicyWarning,
    RuleWarning,
    TrainingWarning,
    WorkloadWarning,
)  # fmt: skip
from hpcgym.scheduler.asked_for import OF_ENVIRONMENTS
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.study import evaluate
from hpcgym.study.evaluation.environments import Agents, Environments, around_of, warn_of_seen
from hpcgym.study.evaluation.user_policies import check_spaces
from hpcgym.workload import Workload, load_workload

LONG = load_workload("lublin:jobs=900,processors=64,seed=4,load=0.9")
AROUND: dict[str, Any] = {
    "start": "warm", "warmup": "2h", "arrivals": "continue", "horizon": "12h",
}  # fmt: skip
WINDOWS: dict[str, Any] = {"jobs": 60, "budget": 0, "n": 3}
DAY = 86_400


class OneChoice(gymnasium.Env[Any, str]):
    """A user's environment of one step: the action is the policy of the whole episode."""

    action_kind = "one choice"

    def __init__(
        self, workload: Any, jobs: int, kept: Any = None, truncates: bool = False, **rules: Any
    ) -> None:
        self.episodes = Episodes(workload if kept is None else kept, jobs=jobs)
        scheduler = Scheduler(**{rule: rules[rule] for rule in OF_ENVIRONMENTS if rule in rules})
        self.scheduler_rules = {rule: getattr(scheduler, rule) for rule in OF_ENVIRONMENTS}
        self.truncates = truncates

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        self.episode_workload = self.episodes.workload_of(self.episodes.find(options))
        return None, {}

    def result(self) -> Any:
        return simulate(self.episode_workload)

    def metrics(self) -> Any:
        return self.last.metrics

    def step(self, action: str) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.last = simulate(self.episode_workload, policy=action, **self.scheduler_rules)
        return None, 0.0, not self.truncates, self.truncates, {}


gymnasium.register("test/OneChoice-v0", entry_point=OneChoice)
CHOICE: dict[str, Any] = {"env": "test/OneChoice-v0"}


def choosing(policy: str, **more: Any) -> Any:
    """A policy for it."""
    return SimpleNamespace(name="agent", act=lambda observation, info: policy, **more)


# --- Environments ---------------------------------------------------------------------------------


def test_a_policy_acts_in_the_environment_given() -> None:
    seen: list[Any] = []
    rules = {"backfill_order": "sqf", "passes": "per-event"}
    agent = choosing("spf", begin=seen.append)
    board = evaluate([agent, "spf"], TRACE, **CHOICE, env_options=rules, **SMALL)
    assert [type(env) for env in seen] == [OneChoice] * 6  # begin is called once an episode
    assert board.by_slice["agent"].equals(board.by_slice["spf (backfill sqf)"])
    assert board.schedulers["agent"] is None
    spf = board.schedulers["spf (backfill sqf)"]
    assert spf is not None
    assert (spf.backfill_order, spf.passes) == ("sqf", "per-event")


def selecting(**changes: Any) -> Saved:
    """A policy that says what it saw and did in the selection of one of 16 jobs."""
    agent = Saved(window=16)
    env = plain_envs.make("hpcgym/JobSelection-v2", window=16, workload=TRACE, jobs=100)
    agent.observation_space, agent.action_space = env.observation_space, env.action_space
    vars(agent).update(changes)
    return agent


def test_spaces_that_differ_are_said() -> None:
    made = {"workload": TRACE, "jobs": 100}
    env = plain_envs.make("hpcgym/JobSelection-v2", window=16, **made)
    agent = Saved(window=16)
    agent.observation_space, agent.action_space = env.observation_space, env.action_space
    for env_id in (None, agent.env_id):  # what it was made for, it brings along
        assert not evaluate({"mine": agent}, TRACE, env=env_id, **FEW).failures
    check_spaces("none", SimpleNamespace(), env)
    check_spaces("mine", agent, env)


def test_policies_bring_their_environments() -> None:
    mine, other = find_baseline("saf"), find_baseline("saf")
    mine.env_id, mine.env_options = "hpcgym/QueueOrdering-v2", {"window": 100, "backfill": "none"}
    board = evaluate([mine, "saf"], TRACE, **FEW)
    assert board.by_slice["saf (acting)"].equals(board.by_slice["saf (no backfilling)"])
    assert "fcfs" in board.by_slice
    other.env_id = "hpcgym/JobSelection-v2"
    board = evaluate([mine, other], TRACE, backfill="easy", **FEW)
    assert board.by_slice["saf (acting)"].equals(board.by_slice["saf (acting) (2)"])


def test_a_policy_says_which_arguments_its_environment_needs() -> None:
    """Also one that leaves the environment to the evaluation, and a function."""

    def first(observation: Any, info: Any) -> int:
        assert observation["jobs"].shape == (16, 2)
        return 0

    wanted = {"window": 16, "features": ["area", "wait"]}
    given: dict[str, Any] = {"env": "hpcgym/JobSelection-v2", **FEW}
    with pytest.warns(PolicyWarning, match="AssertionError: assert"):
        assert evaluate(first, TRACE, **given).failures
    first.env_options = wanted  # type: ignore[attr-defined]
    assert not evaluate(first, TRACE, **given).failures
    assert not evaluate(SimpleNamespace(act=first, env_options=wanted), TRACE, **given).failures


def test_a_policy_for_other_shapes_is_told_the_remedy() -> None:
    def scores(observation: Any, info: Any) -> Any:
        return observation["jobs"] @ np.ones(3)

    with pytest.warns(PolicyWarning, match="env_id and env_options of your policy"):
        evaluate(scores, TRACE, env="hpcgym/QueueOrdering-v2", **FEW)


def test_where_jobs_share_nodes_the_first_agent_brings_machine_and_speedups() -> None:
    codes = "codes:jobs=300,processes=24,processors=192,seed=2"

    class Agent(FirstPair):
        name, env_id = "mine", "hpcgym/CoSchedule-v1"
        env_options = {"cluster": "8x2x12", "window": 20}  # noqa: RUF012

    alone = evaluate([Agent(), "first-pairs"], codes, jobs=30, n=5)
    given = evaluate(FirstPair(), codes, jobs=30, n=5, env=Agent.env_id, cluster="8x2x12")
    assert alone.by_slice["mine"].equals(alone.by_slice["first-pairs"])
    assert alone.by_slice["mine"].tolist() == given.by_slice.iloc[:, 0].tolist()


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
    env: dict[str, Any] = {"env": "hpcgym/JobSelection-v2", "env_options": there}
    board = evaluate(
        [find_baseline("saf"), "prb", "sjf"], TRACE, backfill="none", **env, **few, **here
    )
    (prb,) = (scheduler for row, scheduler in board.schedulers.items() if row.startswith("prb ("))
    (sjf,) = (scheduler for row, scheduler in board.schedulers.items() if row.startswith("sjf ("))
    assert prb.correction == expected
    assert sjf.correction == {**there, **here}.get("correction", "requested")


def test_environments_may_be_named_without_their_versions() -> None:
    class Oldest:
        env_id, env_options = "JobSelection", {"window": 3}

        def act(self, observation: Any, info: Any) -> int:
            return 0

    own = evaluate({"oldest": Oldest()}, LONG, **WINDOWS)
    given = evaluate(
        {"oldest": lambda observation, info: 0}, LONG, env="JobSelection",
        env_options={"window": 3}, **WINDOWS,
    )  # fmt: skip
    assert own.by_slice["oldest"].equals(given.by_slice["oldest"])
    assert own.unseen["oldest"][0] == 3  # also where later jobs go on to come
    assert own.unseen["oldest"] == given.unseen["oldest"]


def test_rules_that_are_lifted_go_with_environments_that_do_not_know_them() -> None:
    given: dict[str, Any] = {**WINDOWS, "env": "hpcgym/PowerCap-v1"}
    evaluate("saf", LONG, preemption=None, quota=None, **given)


def test_a_window_that_is_smaller_than_the_queue_is_told() -> None:
    """Of 30 jobs that each take the whole machine one runs, and 29 wait."""
    burst = TRACE.take(slice(0, 30)).with_columns(
        submit_time=np.zeros(30, np.int64), requested_processors=np.full(30, TRACE.processors)
    )
    boards = {
        window: evaluate(
            find_baseline("saf"), burst, slices="all", episodes="whole", budget=0,
            env="hpcgym/QueueOrdering-v2", env_options={"observation": {"window": window}},
        )
        for window in (5, 30)
    }  # fmt: skip
    assert boards[5].unseen["saf (acting)"] == (5, 29)
    assert boards[30].unseen == {}
    (line,) = (line for line in repr(boards[5]).splitlines() if line.startswith("saf (acting): "))
    assert line == (
        "saf (acting): sees at most 5 waiting jobs, and up to 29 waited at once: the others"
        " come after these"
    )


# --- Equal terms ----------------------------------------------------------------------------------


def accept(observation: Any, info: Any) -> int:
    return 0


@pytest.mark.parametrize(
    ("env", "options", "policy", "row"),
    [
        *((f"{name}-v2", {}, find_baseline("saf"), "saf")
          for name in ("JobSelection", "QueueOrdering", "MixedPolicy")),
        *(("JobSelection-v2", {"threshold": 3600 * h}, find_baseline("saf"),
           f"saf (threshold {3600 * h} s)") for h in (2, 24)),  # with 2 h nobody is ever asked
        ("Backfill-v2", {}, find_baseline("spf"), "easy-sjbf"),
        ("Backfill-v2", {"policy": "saf"}, find_baseline("spf"), "saf"),
        ("Inspector-v2", {}, accept, "sjf"),
        ("Inspector-v2", {"policy": "wait - area"}, accept,
         "queue by wait - area, EASY backfilling by SPF, requested times"),
        ("Inspector-v2", {"policy": "saf", "backfill_order": "fcfs"}, accept,
         "queue by SAF, EASY backfilling by FCFS, requested times"),
    ],
)  # fmt: skip
def test_a_policy_that_acts_as_a_row_makes_its_very_schedule(
    env: str, options: dict[str, Any], policy: Any, row: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the defaults of an environment, and no further options: the terms are equal.

    Where a rule orders the queue it is a row, and SAF is the SAF of other tables, whoever says what
    is backfilled here.
    """
    made: dict[str, list[NDArray[np.int64]]] = {}

    def run(self: Environments, name: str, *given: Any) -> Any:
        metrics = Environments.run(self, name, *given)
        made.setdefault(name, []).append(self.result().start)
        return metrics

    monkeypatch.setattr(
        "hpcgym.study.evaluation.run.Environments",
        type("Noted", (Environments,), {"run": run}),
    )
    board = evaluate({"mine": policy}, LONG, env=f"hpcgym/{env}", env_options=options, **WINDOWS)
    assert len(made["mine"]) == 3
    for mine, theirs in zip(made["mine"], made[row], strict=True):
        begun = mine >= 0  # an episode is over when its own jobs have started
        assert mine[begun].tolist() == theirs[begun].tolist()
        assert (theirs[~begun] >= mine.max()).all()
    assert board.by_slice["mine"].equals(board.by_slice[row])
    easy = next(name for name in made if name.startswith("easy"))
    assert not board.by_slice["mine"].equals(board.by_slice[easy])


def test_rules_that_those_who_act_do_not_have_are_told() -> None:
    board = evaluate(
        {"mine": find_baseline("saf"), "typical": "saf-typical-80h"}, TRACE, **FEW,
        env="hpcgym/JobSelection-v2", env_options={"reservation": "kept"},
    )  # fmt: skip
    assert board.unlike == {
        "mine": "a selected job keeps its reservation",
        "typical": "policies by typical-ratio, threshold 288000 s",
        "easy": "backfill fcfs",
        "easy-sjbf": "backfill sjbf",
    }
    (line,) = (line for line in repr(board).splitlines() if line.startswith("rules that "))
    assert line == (
        "rules that policies which act here do not have: mine: a selected job keeps its"
        " reservation; typical: policies by typical-ratio, threshold 288000 s; easy: backfill fcfs;"
        " easy-sjbf: backfill sjbf"
    )
    assert board.facts()["unlike"] == board.unlike
    alone = evaluate("saf-typical-80h", TRACE, **FEW)  # nobody acts
    assert alone.unlike == {}


# --- Failures -------------------------------------------------------------------------------------


def test_a_failing_policy_is_reported_with_its_own_count_and_not_dropped() -> None:
    saf = lambda observation, info: "saf"  # noqa: E731
    policies = {"once": failing([3], saf), "twice": failing([1, 2], saf), "never": failing([], saf)}
    with pytest.warns(PolicyWarning, match="failed on") as caught:
        board = evaluate(policies, TRACE, **CHOICE, jobs=100, n=5, budget=0)
    where = [name.partition(":")[0] for name in board.by_slice.index]
    assert [str(warning.message).partition(":")[0] for warning in caught] == [
        f"once failed on 1 of 5 slices, first on {where[2]}",
        f"twice failed on 2 of 5 slices, first on {where[0]}",
    ]
    assert caught[0].filename == __file__  # of who called evaluate
    assert len(policies["once"].calls) == 5  # it went on with the next
    said = board.failures["once", board.by_slice.index[2]]
    assert said.startswith("ZeroDivisionError: no way (boards.py, line ")
    assert board.by_slice.isna().to_numpy().sum() == len(board.failures) == 3
    table = board.table
    assert [*table.index[-2:]] == ["once", "twice"]
    assert table["failed"].to_dict() == {**dict.fromkeys(table.index, 0), "once": 1, "twice": 2}
    assert table.loc["once", ["mean_bsld", "mean_bsld_low", "median_bsld"]].isna().all()
    assert table["win_rate"].sum() == pytest.approx(1)
    others = table.drop(["once", "twice"])
    assert others.drop(columns="p_value").notna().all(axis=None)
    assert others.index[others["p_value"].isna()].tolist() == ["easy"]  # the reference itself


def refuses(env: Any) -> None:
    raise HpcgymError("not here")


def test_a_begin_that_fails_is_a_failure_unless_it_says_that_it_does_not_fit() -> None:
    def begin(env: Any) -> None:
        raise ZeroDivisionError("no way")

    with pytest.warns(PolicyWarning, match="^agent failed on 2 of 2 slices, first on "):
        board = evaluate(choosing("spf", begin=begin), TRACE, **CHOICE, **FEW)
    assert all(text.startswith("ZeroDivisionError: no way (") for text in board.failures.values())


def test_an_episode_that_is_cut_short_is_a_failure() -> None:
    cut = {"env_options": {"truncates": True}}
    with pytest.warns(PolicyWarning):
        board = evaluate(choosing("spf"), TRACE, **CHOICE, **cut, **FEW)
    assert [*board.failures.values()] == [
        "RuntimeError: truncated before all jobs of the slice had started"
    ] * 2


def test_one_that_is_cut_short_of_its_horizon_is_a_failure_too() -> None:
    cut = {**CHOICE, **FEW, "env_options": {"truncates": True}, "horizon": "7d"}
    with pytest.warns(PolicyWarning):
        assert len(evaluate(choosing("spf"), TRACE, **cut).failures) == 2


def test_policies_act_in_a_stream_and_are_the_rules_that_they_play() -> None:
    """Up to the last submission, when jobs wait; whoever waits then is charged up to then."""
    acting = {"mine": find_baseline("saf")}
    log = load_workload("lublin:jobs=600,processors=64,load=1")
    env = "hpcgym/JobSelection-v2"
    board = evaluate(acting, log, episodes="stream", budget=0, env=env, backfill_order="fcfs")
    assert not board.failures
    values = board.by_slice.loc["stream"]
    saf = values["saf (backfill fcfs)"]
    assert values["mine"] == pytest.approx(saf, rel=1e-12) != values["easy"]
    half = log.take(slice(log.row_at(0.5), None))
    result = hpcgym.simulate(half, "saf", backfill_order="fcfs")
    last = half.submit_time[-1]
    assert (result.start > last).any()
    wait, run = np.minimum(result.start, last) - half.submit_time, half.run_time
    slowdown = np.maximum((wait + run) / np.maximum(run, 10), 1)
    assert saf == pytest.approx(slowdown.mean())


def test_where_jobs_share_nodes_failures_are_noted_too() -> None:
    waits = SimpleNamespace(name="waits", act=lambda observation, info: len(info["action_mask"]))
    with pytest.warns(PolicyWarning, match="^waits failed on 2 of 2 slices, first on "):
        board = evaluate(
            waits, "codes:jobs=300,processes=24,processors=192,seed=2", cluster="8x2x12",
            env="hpcgym/CoSchedule-v1", jobs=30, n=2,
        )  # fmt: skip
    assert np.isnan(board.table.loc["waits", "mean_bsld"])
    assert "action must be an index" in board.failures["waits", board.by_slice.index[0]]


def test_progress_has_as_many_steps_as_it_says() -> None:
    seen: list[str] = []
    totals: list[int] = []

    @contextmanager
    def watch(title: str, total: int) -> Iterator[Any]:
        totals.append(total)
        yield seen.append

    for more in (SMALL, FEW, {**WINDOWS, "env": as_it_is().env_id}):
        evaluate("spf", TRACE, progress=watch, **more)
        assert sum(totals) == len(seen)
    assert {"saf: " in text for text in seen} == {True, False}


# --- What is around slices ------------------------------------------------------------------------


def test_who_acts_and_who_is_simulated_are_charged_alike() -> None:
    board = evaluate(
        {"mine": First()}, LONG, env="hpcgym/JobSelection-v2", jobs=60, budget=0,
        env_options={"window": 256, "backfill_order": "fcfs"}, **AROUND,
    )  # fmt: skip
    rows = board.by_slice
    assert list(rows.index) == [f"window {k:04}" for k in range(6)]
    np.testing.assert_allclose(rows["mine"], rows["easy"], rtol=1e-12)
    mine, other = board.table.loc["mine"], board.table.loc["easy"]
    for metric in ("mean_wait_s", "utilization"):
        assert mine[metric] == pytest.approx(other[metric])
    assert (rows["mine"] != rows["saf (backfill fcfs)"]).any()
    around: dict[str, Any] = {**AROUND, "horizon": "7d"}  # until all have started
    board = evaluate(
        {"mine": First()}, LONG, env="hpcgym/JobSelection-v2", by="class", **WINDOWS, **around
    )
    rows, groups = board.by_slice, board.groups
    assert groups is not None
    sizes = groups.pivot_table("jobs", "slice", "scheduler", "sum")
    assert (sizes == 60).all(axis=None)
    weighed = groups.assign(sum=groups["jobs"] * groups["mean_bsld"].fillna(0))
    total = weighed.pivot_table("sum", "slice", "scheduler", "sum") / 60
    np.testing.assert_allclose(total[rows.columns], rows)


def test_slices_of_easy_are_those_of_its_whole_schedule() -> None:
    board = evaluate(
        "easy", LONG, jobs=60, budget=0, start="easy", arrivals="continue", horizon="60d"
    )
    whole, first = hpcgym.simulate(LONG, "easy"), LONG.row_at(0.5)
    for k, (name, value) in enumerate(board.by_slice["easy"].items()):
        rows = np.arange(first + 60 * k, first + 60 * (k + 1))
        assert value == pytest.approx(whole.bsld[rows].mean()), name


def test_an_evaluation_follows_what_a_saved_agent_or_a_version_says() -> None:
    agent = Saved(window=256, backfill_order="fcfs", **AROUND)
    board = evaluate({"mine": agent}, LONG, **WINDOWS)
    assert board.around == AROUND
    same = evaluate("easy", LONG, **WINDOWS, **AROUND).by_slice
    for row in ("mine", "easy"):
        np.testing.assert_allclose(board.by_slice[row], same["easy"], rtol=1e-12)
    board = evaluate({"mine": agent}, LONG, **WINDOWS, **NOTHING_AROUND)
    assert board.around == NOTHING_AROUND
    plain = evaluate("easy", LONG, **WINDOWS).by_slice["easy"]
    np.testing.assert_allclose(board.by_slice["mine"], plain, rtol=1e-12)
    assert not np.allclose(plain, same["easy"])
    board = evaluate(First(), LONG, env="hpcgym/JobSelection-v2", **WINDOWS)
    rules = {"start": "warm", "arrivals": "continue", "horizon": "7d"}
    same = evaluate("easy", LONG, **WINDOWS, **rules).by_slice
    np.testing.assert_allclose(board.by_slice["easy"], same["easy"])


def test_what_is_around_slices_is_said_by_the_user_then_by_agents_then_by_versions() -> None:
    nothing: dict[str, Any] = {}
    newer = {"start": "warm", "warmup": None, "arrivals": "continue", "horizon": "7d"}
    assert around_of(nothing, Agents({}, {})) == NOTHING_AROUND
    assert around_of(nothing, Agents({}, {}, "hpcgym/JobSelection-v2")) == newer
    agents = {"mine": Saved("JobSelection-v2", horizon="3d"), "function": First()}
    assert around_of(nothing, Agents(agents, {})) == {**newer, "horizon": "3d"}
    given = {"start": "saf", "horizon": None}
    expected = {**newer, **given}
    assert around_of(given, Agents(agents, {}, options={"horizon": "2d"})) == expected
    assert around_of(nothing, Agents(agents, {}, options={"horizon": "2d"}))["horizon"] == "2d"
    # one that was trained elsewhere acts where it is asked to
    # by what is usual there
    assert around_of(nothing, Agents(agents, {}, "hpcgym/QueueOrdering-v2")) == newer
    alike = {"a": Saved(start="warm", horizon="7d"), "b": Saved(start="easy", horizon=604_800)}
    assert around_of(nothing, Agents(alike, {}))["start"] == "warm"
    alike["b"].env_options["horizon"] = "8d"
    assert around_of({"horizon": "1d"}, Agents(alike, {}))["horizon"] == "1d"


@pytest.mark.parametrize(
    ("trained", "evaluated", "message"),
    [
        ("all", "test", "has seen jobs of the test part: its row tells nothing of new jobs"),
        ("all", "all", "has seen jobs of the whole workload"),
        ("test", "test", "was trained with part='test'"),
        ("train", "test", ""),
        ("all", "train", ""),
    ],
)
def test_it_is_said_where_training_saw_the_jobs_of_the_evaluation(
    trained: str, evaluated: str, message: str, recwarn: pytest.WarningsRecorder
) -> None:
    agent, part = Saved(), Episodes(LONG, jobs=60, part=evaluated)
    first, last = Episodes(LONG, jobs=60, part=trained).submitted
    seen = {"workload": LONG.name, "part": trained, "first_s": first, "last_s": last}
    agent.trained_on = [seen]
    warn_of_seen({"mine": agent, "other": First()}, LONG, part)
    said = [str(warning.message) for warning in recwarn.list if warning.category is TrainingWarning]
    assert len(said) == bool(message)
    assert message in "".join(said)
    recwarn.clear()
    agent.trained_on = [{**seen, "workload": "another"}, seen]  # of several logs
    warn_of_seen({"mine": agent}, LONG, part)
    assert [str(warning.message) for warning in recwarn.list] == said
    recwarn.clear()
    assert first + 1 not in LONG.submit_time
    for other in ({"workload": "another"}, {"first_s": first + 1}):  # other jobs of that name
        agent.trained_on = [{**seen, **other}]
        warn_of_seen({"mine": agent}, LONG, part)
    assert not recwarn.list


# --- What is said of jobs -------------------------------------------------------------------------


def weeks_of(last_day: float) -> Workload:
    """Return a job a day for three weeks, the last week up to a day of it; two jobs cross."""
    days = np.arange(0.0, 14 + last_day, 1)
    run = np.full(len(days), 3600)
    run[[6, 13]] = 2 * DAY  # of the last days of weeks 0 and 1
    columns = {
        "submit_time": (days * DAY).astype(np.int64),
        "wait_time": np.zeros(len(days), np.int64),
        "run_time": run,
        "requested_time": run,
        "requested_processors": np.ones(len(days), np.int64),
    }
    return Workload.from_columns(columns, processors=4, name="three weeks")


def test_jobs_that_cross_the_end_of_a_week_are_counted() -> None:
    weeks: dict[str, Any] = {"slices": "all", "episodes": "weeks", "budget": 0}
    board = evaluate([], weeks_of(7), **weeks)
    assert board.left_out == board.facts()["left_out"] == 1  # that of week 0 is in no week here
    assert evaluate([], weeks_of(7), **{**weeks, "episodes": "whole"}).left_out == 0
    assert evaluate([], weeks_of(7), **weeks, arrivals="continue", horizon="7d").left_out == 0


def warned(kind: type[Warning], log: Workload, **given: Any) -> list[Any]:
    """The warnings of a kind that an evaluation gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate("spf", log, **given)
    return [warning for warning in caught if issubclass(warning.category, kind)]


@pytest.mark.parametrize(("days", "said"), [(3, True), (6, False)])
def test_a_last_week_that_has_hardly_begun_is_said_once(days: int, said: bool) -> None:
    weeks: dict[str, Any] = {"slices": "all", "episodes": "weeks", "budget": 0}
    texts = [str(warning.message) for warning in warned(WorkloadWarning, weeks_of(days), **weeks)]
    short = "three weeks: the last week, 2, ends after 2 d; it counts as much as a whole"
    assert texts == ([f"{short} week"] if said else [])


@pytest.mark.parametrize(
    "rules",
    [
        {"quota": "queue=99:jobs=1"},
        {"maintenance": "1/2"},
        {"preemption": "queue:98>99"},
        {"preemption": "queue:interactive>batch>99"},
        {"dependencies": "after"},
    ],
    ids=str,
)
def test_rules_that_restrict_nobody_are_told_once_for_all_slices(rules: dict[str, Any]) -> None:
    caught = warned(WorkloadWarning, LONG, **{**WINDOWS, "budget": 2}, **rules)
    assert [warning.category for warning in caught] == [RuleWarning]


test_mistakes = mistakes_of(globals(), spaces)
