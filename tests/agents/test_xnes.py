"""Weights found by search: what they reach, on which paths, and how they act and are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
from mistakes import mistakes_of

import hpcgym
from hpcgym.agents import load
from hpcgym.agents.practice import maker
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.errors import HpcgymError
from hpcgym.scheduler.policies import WEIGHTED_FEATURES, FairShare
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.study import evaluate
from hpcgym.workload import load_workload

TRACE = load_workload("lublin:jobs=1000,processors=64,seed=0,load=4")
SLICES = [TRACE.take(slice(k, k + 100), name=f"part {k}") for k in (0, 300, 600)]
SHORT: dict[str, Any] = {"budget": 40, "restarts": 2}


def weights_and_trace(agent: Xnes) -> tuple[Any, ...]:
    return agent.weights_, agent.best_, agent.trace_.to_csv()


def mean_bsld(agent: Xnes, slices: Any) -> float:
    results = [hpcgym.simulate(part, agent.scheduler()) for part in slices]
    return float(np.mean([result.metrics["mean_bsld"] for result in results]))


# --- Learning -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("method", ["xnes", "cma-es", "random"])
def test_it_is_as_good_as_it_says_and_better_than_pure_policies(method: str) -> None:
    agent = Xnes(method=method, budget=200).fit(SLICES)
    assert agent.name == method
    assert agent.slices_ == ["part 0", "part 300", "part 600"]
    assert tuple(agent.weights_) == WEIGHTED_FEATURES
    assert sum(map(abs, agent.weights_.values())) == 1.0
    assert mean_bsld(agent, SLICES) == pytest.approx(agent.best_, rel=1e-12)
    pure = np.vstack([np.eye(6), -np.eye(6)])
    assert agent.best_ < BatchSimulator(SLICES).run(pure).mean(axis=1).min()


@pytest.mark.slow
def test_the_trace_shows_the_way() -> None:
    trace = Xnes("xnes3", **SHORT).fit(SLICES).trace_
    assert trace["evaluations"].iloc[-1] == 40
    assert trace["evaluations"].is_monotonic_increasing
    assert trace["best"].is_monotonic_decreasing
    np.testing.assert_array_equal(trace["best"], trace["value"].cummin())
    np.testing.assert_allclose(trace["objective"], trace["best"] + 20)
    assert trace["restart"].unique().tolist() == [0, 1, 2]
    assert (trace["step_size"].isna() == (trace["restart"] == 0)).all()
    weights = trace[["processors", "requested", "wait"]]
    np.testing.assert_allclose(weights.abs().sum(axis=1), 1)
    last = weights.iloc[[-1]].to_numpy()
    batch = BatchSimulator(SLICES, ["processors", "requested", "wait"])
    assert batch.run(last).mean() == trace["best"].iloc[-1]


@pytest.mark.slow
def test_weights_of_usage_are_found_kept_and_acted_by(tmp_path: Path) -> None:
    users = np.random.default_rng(0).zipf(1.6, len(TRACE)) % 11
    trace = TRACE.with_columns(user_id=users)
    slices = [trace.take(slice(k, k + 100), name=f"part {k}") for k in (0, 300)]
    fair = FairShare(3600, shares={1: 3.0, "a": 2.0}, accounts={2: "a", 3: "a"})
    rules = Scheduler(backfill_order="fairshare", fair_share=fair)
    agent = Xnes(["wait", "fairshare", "area"], scheduler=rules, **SHORT).fit(slices)
    assert mean_bsld(agent, slices) == pytest.approx(agent.best_, rel=1e-12)
    agent.save(tmp_path / "agent.json")
    kept = load(tmp_path / "agent.json")
    assert kept.scheduler().describe() == agent.scheduler().describe()
    assert kept.weights_["fairshare"] != 0
    env: Any = plain_envs.make(kept.env_id, workload=trace, jobs=100, **kept.env_options)
    observation, info = env.reset(options={"start": 300, "jobs": 100})
    kept.begin(env)
    env.step(kept.act(observation, info))
    expected = hpcgym.simulate(slices[1], agent.scheduler())
    assert env.unwrapped.result().start.tolist() == expected.start.tolist()


@pytest.mark.slow
def test_the_seed_decides_and_threads_do_not() -> None:
    search = weights_and_trace(Xnes(seed=3, **SHORT).fit(SLICES))
    assert weights_and_trace(Xnes(seed=3, **SHORT).fit(SLICES, threads=1)) == search
    assert weights_and_trace(Xnes(seed=4, **SHORT).fit(SLICES)) != search


def test_searches_side_by_side_are_the_same_searches() -> None:
    each = Xnes("xnes3", seed=5, **SHORT).fit_each(SLICES)
    for k, (agent, part) in enumerate(zip(each, SLICES, strict=True)):
        alone = Xnes("xnes3", seed=5 + k, **SHORT).fit([part])
        assert agent.slices_ == [part.name]
        assert agent.seed == 5 + k
        assert weights_and_trace(agent) == weights_and_trace(alone)


def test_it_is_trained_as_the_suite_does() -> None:
    """On the train part, with its features and rules, and as many vectors as its jobs pay for."""
    options = {"jobs": 40, "backfill_order": "sjbf", "policy_features": ["area", "wait"]}
    make = maker(TRACE, "hpcgym/MixedPolicy-v2", options)
    submit = TRACE.submit_time[: TRACE.row_at(0.5)]
    submit = submit[submit - submit[0] < 0.75 * (submit[-1] - submit[0])]
    log: list[Any] = []
    agent = Xnes(sigma=0.2).train(
        make, 3, 12 * len(submit), lambda *steps_and_values: log.append(steps_and_values)
    )
    rules = Scheduler(backfill_order="sjbf")
    jobs = make().unwrapped.options.workload
    same = Xnes(["area", "wait"], scheduler=rules, budget=12, seed=3, sigma=0.2).fit(jobs)
    assert len(jobs) == len(submit)
    assert weights_and_trace(agent) == weights_and_trace(same)
    assert agent.scheduler() == same.scheduler()
    assert log[-1] == (12 * len(submit), {"train/least_mean_bsld": agent.best_})


def test_other_metrics_rules_and_features() -> None:
    rules = Scheduler(backfill_order="sjbf", estimate="ave2", threshold=3600)
    agent = Xnes(["area", "f1"], metric="max_wait_s", scheduler=rules, **SHORT).fit(TRACE)
    result = hpcgym.simulate(TRACE, agent.scheduler())
    assert result.scheduler.threshold == 3600
    assert result.metrics["max_wait_s"] == agent.best_
    # better than pure policies, and than what another metric finds
    pure = np.vstack([np.eye(2), -np.eye(2)])
    assert (
        agent.best_ < BatchSimulator([TRACE], ["area", "f1"], rules).run(pure, "max_wait_s").min()
    )
    other = Xnes(["area", "f1"], scheduler=rules, **SHORT).fit(TRACE)
    assert agent.best_ < hpcgym.simulate(TRACE, other.scheduler()).metrics["max_wait_s"]


def environment(**changes: Any) -> Any:
    given: dict[str, Any] = {"episodes": "windows", "jobs": 100, "part": "train"}
    given |= {"workload": TRACE, "interval": "episode", **changes}
    return plain_envs.make("hpcgym/MixedPolicy-v2", **given)


# --- Interruptions --------------------------------------------------------------------------


class StoppedError(Exception):
    """In place of a user's Ctrl-C."""


def stop_after(evaluations: int) -> Callable[[int, float], None]:
    def progress(done: int, best: float) -> None:
        assert best > 0
        if done >= evaluations:
            raise StoppedError

    return progress


@pytest.mark.parametrize("evaluations", [16, 27, 39])
def test_an_interrupted_search_loses_nothing(
    evaluations: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [weights_and_trace(agent) for agent in Xnes(**SHORT).fit_each(SLICES)]
    file = tmp_path / "folder" / "search"
    with pytest.raises(StoppedError):
        Xnes(**SHORT).fit_each(SLICES, checkpoint=file, progress=stop_after(evaluations))
    simulated = 0
    run = BatchSimulator.run

    def counted(batch: Any, weights: Any, *rest: Any, **named: Any) -> Any:
        nonlocal simulated
        simulated += len(weights)
        return run(batch, weights, *rest, **named)

    monkeypatch.setattr(BatchSimulator, "run", counted)
    again = Xnes(**SHORT).fit_each(SLICES, checkpoint=file)
    assert [weights_and_trace(agent) for agent in again] == whole
    assert simulated <= 40 - evaluations
    assert not list(file.parent.iterdir())


def test_a_checkpoint_is_of_one_search_only(tmp_path: Path) -> None:
    file = tmp_path / "search"
    with pytest.raises(StoppedError):
        Xnes(**SHORT).fit(SLICES, checkpoint=file, progress=stop_after(20))
    kept = file.read_bytes()
    others = [
        (Xnes(seed=1, **SHORT), SLICES),
        (Xnes(sigma=0.2, **SHORT), SLICES),
        (Xnes(**SHORT), SLICES[:2]),
        (Xnes(**SHORT), SLICES[::-1]),
    ]
    for agent, slices in others:
        with pytest.raises(HpcgymError, match="with other arguments, jobs or versions"):
            agent.fit(slices, checkpoint=file)
    with pytest.raises(HpcgymError, match="with other arguments"):
        Xnes(**SHORT).fit_each(SLICES, checkpoint=file)
    assert file.read_bytes() == kept
    file.write_text("no checkpoint")
    with pytest.raises(HpcgymError, match="is no archive of arrays"):
        Xnes(**SHORT).fit(SLICES, checkpoint=file)


# --- Acting and files -----------------------------------------------------------------------


@pytest.mark.slow
def test_a_saved_agent_is_the_same(tmp_path: Path) -> None:
    rules = Scheduler(
        backfill="none",
        backfill_order=(0, 1, 0, 0, 0, -0.5),
        estimate="ave2",
        correction="incremental",
        threshold=7200.0,
        hold=0.1,
        passes="per-event",
        policy_estimate="user-ratio",
    )
    usual = Scheduler(policy="saf")
    alike = usual.describe().items() & rules.describe().items()
    # no other rule that batches know is left out here; they run on pools
    left = {("allocation", "first-fit"), ("fair_share", None), ("power", "none")}
    left |= {("partners", "fill"), ("pairs_above", None)}
    left |= {("pair_estimate", "known"), ("quota", None), ("maintenance", None)}
    left |= {("dependencies", "none"), ("preemption", None)}
    left |= {("relax", None), ("candidate_estimate", None)}  # nothing is backfilled
    assert alike == {("dispatcher", None), ("dispatch_time", None), *left}
    agent = Xnes("xnes3", method="random", budget=10, scheduler=rules).fit(SLICES)
    agent.save(tmp_path / "agent.json")
    again = load(tmp_path / "agent.json")
    assert weights_and_trace(again) == weights_and_trace(agent)
    assert again.scheduler() == agent.scheduler()
    assert again.settings() == agent.settings()
    assert again.slices_ == agent.slices_
    assert [file.name for file in tmp_path.iterdir()] == ["agent.json"]


@pytest.mark.parametrize(
    "env_id", ["hpcgym/MixedPolicy-v2", "hpcgym/JobSelection-v2", "hpcgym/QueueOrdering-v2"]
)
def test_it_acts_in_all_environments_as_it_is_simulated(env_id: str) -> None:
    agent = Xnes(**SHORT).fit(SLICES)
    rules = {rule: agent.env_options[rule] for rule in ("backfill", "backfill_order", "estimate")}
    env = plain_envs.make(env_id, workload=TRACE, jobs=100, **rules)
    observation, info = env.reset(options={"start": 300, "jobs": 100})
    agent.begin(env)
    over = False
    while not over:
        observation, _, over, _, info = env.step(agent.act(observation, info))
    expected = hpcgym.simulate(SLICES[1], agent.scheduler())
    assert env.unwrapped.result().start.tolist() == expected.start.tolist()


def test_a_leaderboard_takes_it_from_its_file(tmp_path: Path) -> None:
    agent = Xnes("area,unicef", scheduler=Scheduler(backfill_order="sjbf"), **SHORT).fit(SLICES)
    agent.save(tmp_path / "agent.json")
    few = {"jobs": 100, "n": 3, "budget": 4, "resamples": 10}
    board = evaluate(tmp_path / "agent.json", TRACE, **few, **NOTHING_AROUND)
    column = board.by_slice[str(tmp_path / "agent.json")]
    rows = [name.removeprefix("rows ").split(":") for name in column.index]
    parts = [TRACE.take(slice(int(first), int(stop))) for first, stop in rows]
    expected = [hpcgym.simulate(part, agent.scheduler()).metrics["mean_bsld"] for part in parts]
    np.testing.assert_allclose(column, expected, rtol=1e-12)
    assert set(board.static_weights) <= {"area", "unicef"}


def retold(folder: Path, **changes: Any) -> Path:
    """Write an agent of which the file tells something else."""
    Xnes(method="random", budget=3).fit(SLICES).save(file := folder / "agent.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    return file


test_mistakes = mistakes_of(globals())
