"""Leaderboards over slices that begin with jobs, go on with later ones, and end by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError, TrainingWarning
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.brought import PLAIN, around_of, warn_of_seen
from hpcgym.workload import load_workload

TRACE = load_workload("lublin:jobs=900,processors=64,seed=4,load=0.9")
AROUND: dict[str, Any] = {
    "start": "warm", "warmup": "2h", "arrivals": "continue", "horizon": "12h",
}  # fmt: skip


class FirstCome:
    """Select the job that was submitted first: in an environment with EASY that is EASY."""

    def act(self, observation: Any, info: dict[str, Any]) -> int:
        return 0


class Saved(FirstCome):
    """The same with what a file says of its training."""

    def __init__(self, version: str = "v0", **env_options: Any) -> None:
        self.env_id, self.env_options = f"hpcgym/JobSelection-{version}", env_options


def test_who_acts_and_who_is_simulated_are_charged_alike() -> None:
    board = evaluate(
        {"mine": FirstCome()}, TRACE, env="hpcgym/JobSelection-v0", jobs=60, budget=0, **AROUND,
        env_options={"window": 256},
    )  # fmt: skip
    rows = board.by_slice
    assert len(rows) == 7
    assert list(rows.index) == [f"window {k:04}" for k in range(7)]
    np.testing.assert_allclose(rows["mine"], rows["easy"], rtol=1e-12)
    one, other = board.table.loc["mine"], board.table.loc["easy"]
    for metric in ("mean_wait_s", "utilization"):
        assert one[metric] == pytest.approx(other[metric])
    assert (rows["mine"] != rows["saf (backfill fcfs)"]).any()


def test_slices_of_easy_are_those_of_its_whole_schedule() -> None:
    board = evaluate(
        "easy", TRACE, jobs=60, budget=0, start="easy", arrivals="continue", horizon="60d"
    )
    whole = hpcgym.simulate(TRACE, "easy")
    first = len(TRACE) // 2
    for k, (name, value) in enumerate(board.by_slice["easy"].items()):
        rows = np.arange(first + 60 * k, first + 60 * (k + 1))
        assert value == pytest.approx(whole.bsld[rows].mean()), name


def test_newer_environments_have_slices_of_their_own() -> None:
    few: dict[str, Any] = {"jobs": 60, "budget": 0, "n": 3}
    board = evaluate(FirstCome(), TRACE, env="hpcgym/JobSelection-v1", **few)
    rules = {"start": "warm", "arrivals": "continue", "horizon": "7d", "backfill": "none"}
    same = evaluate("fcfs", TRACE, **few, **rules)
    np.testing.assert_allclose(board.by_slice["fcfs"], same.by_slice["fcfs"])


def test_an_evaluation_follows_what_a_saved_agent_says() -> None:
    few: dict[str, Any] = {"jobs": 60, "budget": 0, "n": 3}
    agent = Saved(window=256, **AROUND)
    board = evaluate({"mine": agent}, TRACE, **few)
    assert board.around == AROUND
    rows, same = board.by_slice, evaluate("easy", TRACE, **few, **AROUND).by_slice
    np.testing.assert_allclose(rows["mine"], same["easy"], rtol=1e-12)
    np.testing.assert_allclose(rows["easy"], same["easy"], rtol=1e-12)
    none = {"start": "empty", "warmup": "none", "arrivals": "stop", "horizon": "none"}
    board = evaluate({"mine": agent}, TRACE, **few, **none)
    assert board.around == PLAIN
    plain = evaluate("easy", TRACE, **few).by_slice["easy"]
    np.testing.assert_allclose(board.by_slice["mine"], plain, rtol=1e-12)
    assert not np.allclose(plain, same["easy"])


def test_what_is_around_slices_is_said_by_the_user_then_by_agents_then_by_versions() -> None:
    nothing = dict.fromkeys(PLAIN)
    newer = {"start": "warm", "warmup": None, "arrivals": "continue", "horizon": "7d"}
    assert around_of(nothing, None, None, {}) == PLAIN
    assert around_of(nothing, "hpcgym/JobSelection-v1", None, {}) == newer
    agents: dict[str, Any] = {"mine": Saved("v1", horizon="3d"), "function": FirstCome()}
    assert around_of(nothing, None, None, agents) == {**newer, "horizon": "3d"}
    given = {**nothing, "start": "saf", "horizon": "1d"}
    expected = {**newer, "start": "saf", "horizon": "1d"}
    assert around_of(given, None, {"horizon": "2d"}, agents) == expected
    assert around_of(nothing, None, {"horizon": "2d"}, agents)["horizon"] == "2d"
    # one that was trained elsewhere acts where it is asked to
    assert around_of(nothing, "hpcgym/QueueOrdering-v0", None, agents) == PLAIN
    alike = {"a": Saved(start="warm", horizon="7d"), "b": Saved(start="easy", horizon=604_800)}
    assert around_of(nothing, None, None, alike)["start"] == "warm"
    alike["b"].env_options["horizon"] = "8d"
    with pytest.raises(HpcgymError, match=r"of b has horizon='8d', and that of a '7d'; give hor"):
        around_of(nothing, None, None, alike)
    assert around_of({**nothing, "horizon": "1d"}, None, None, alike)["horizon"] == "1d"


@pytest.mark.parametrize(
    ("trained", "evaluated", "told"),
    [
        ("all", "test", "has seen jobs of the test part: its row tells nothing of new jobs"),
        ("all", "all", "has seen jobs of the whole workload"),
        ("test", "test", "was trained with part='test'"),
        ("train", "test", ""),
        ("all", "train", ""),
    ],
)
def test_it_is_said_where_training_saw_the_jobs_of_the_evaluation(
    trained: str, evaluated: str, told: str, recwarn: pytest.WarningsRecorder
) -> None:
    agent, part = Saved(), Episodes(TRACE, jobs=60, part=evaluated)
    first, last = Episodes(TRACE, jobs=60, part=trained).submitted
    seen = {"workload": TRACE.name, "part": trained, "first_s": first, "last_s": last}
    agent.trained_on = seen
    warn_of_seen({"mine": agent, "other": FirstCome()}, TRACE, part)
    said = [str(one.message) for one in recwarn.list if one.category is TrainingWarning]
    assert len(said) == bool(told)
    assert told in "".join(said)
    recwarn.clear()
    agent.trained_on = {**seen, "workload": "another"}
    warn_of_seen({"mine": agent}, TRACE, part)
    agent.trained_on = {**seen, "first_s": first + 1}  # of other jobs of that name
    assert first + 1 not in TRACE.submit_time
    warn_of_seen({"mine": agent}, TRACE, part)
    assert not recwarn.list
