"""Episodes that are drawn by how hard they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import plain_envs
import pytest
from drawing import given
from drawing import strategies as st
from driving import BUSY
from mistakes import mistakes_of
from plain_envs import JobSelection

from hpcgym.envs.core.episodes import Episodes
from hpcgym.envs.core.samplers import choice_of, difficulty
from hpcgym.envs.core.slices import Episode
from hpcgym.reference.jobs import jobs_of
from hpcgym.reference.pool import simulate_pool
from hpcgym.study import evaluate
from hpcgym.workload import Workload

AROUND: dict[str, Any] = {"start": "warm", "arrivals": "continue", "horizon": "9h"}
SLOWDOWNS = st.lists(st.floats(1, 1e6), min_size=1, max_size=30)


def listed(n: int) -> list[Episode]:
    return [Episode(str(k), k, k + 1) for k in range(n)]


def slow_difficulty(jobs: Workload) -> float:
    """Return the mean bounded slowdown under SJF, by the slow simulator."""
    done = simulate_pool(jobs_of(jobs), jobs.processors, policy="spf")
    return float(np.mean([max((job.end - job.submit) / max(job.actual, 10), 1) for job in done]))


@given(SLOWDOWNS)
def test_the_filter_keeps_the_middle(slowdowns: list[float]) -> None:
    """Between median and twice the mean, of any slowdowns at least one."""
    choice = choice_of("filtered", listed(len(slowdowns)), np.array(slowdowns))
    chances = np.diff(choice.up_to, prepend=0)
    ordered, n = sorted(slowdowns), len(slowdowns)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    most = 2 * np.array(slowdowns).mean()
    kept = [middle <= slowdown <= most for slowdown in slowdowns]
    assert any(kept)
    assert chances == pytest.approx([each / sum(kept) for each in kept])


@given(SLOWDOWNS.filter(lambda some: max(some) > 1.001), st.integers(0, 2**32))
def test_hard_ones_are_drawn_by_their_logarithms(slowdowns: list[float], seed: int) -> None:
    choice = choice_of("hard", listed(len(slowdowns)), np.array(slowdowns))
    total = sum(np.log(slowdown) for slowdown in slowdowns)
    chances = [np.log(slowdown) / total for slowdown in slowdowns]
    assert np.diff(choice.up_to, prepend=0) == pytest.approx(chances, abs=1e-12)
    generator = np.random.default_rng(seed)
    where = np.random.default_rng(seed).random()
    episode = choice.draw(generator)
    assert slowdowns[episode.start] > 1  # where nobody waits, never
    assert sum(chances[: episode.start]) <= where + 1e-9
    assert where <= sum(chances[: episode.start + 1]) + 1e-9


def test_difficulty_is_that_of_the_slow_simulator() -> None:
    episodes = Episodes(BUSY, jobs=40)
    for episode in episodes.listing:
        jobs = episodes.workload_of(episode)
        assert difficulty(jobs, episode, jobs.processors) == pytest.approx(slow_difficulty(jobs))


@pytest.mark.parametrize("sampler", ["hard", "filtered"])
@pytest.mark.parametrize("around", [{}, AROUND], ids=["alone", "warm"])
def test_what_is_drawn_is_harder(sampler: str, around: dict[str, Any]) -> None:
    drawn = {}
    for name in ("uniform", sampler):
        episodes, rng = (
            Episodes(BUSY, jobs=60 if not around else 20, sampler=name, **around),
            np.random.default_rng(0),
        )
        some = [episodes.draw(rng) for _ in range(60)]
        drawn[name] = [
            difficulty(episodes.workload_of(episode), episode, BUSY.processors) for episode in some
        ]
        again = np.random.default_rng(0)
        assert [episodes.draw(again) for _ in range(60)] == some
    if sampler == "hard":
        assert np.mean(np.log(drawn["hard"])) > np.mean(np.log(drawn["uniform"]))
    else:
        assert min(drawn["filtered"]) > min(drawn["uniform"])
        assert max(drawn["filtered"]) < max(drawn["uniform"])


def test_samplers_stay_in_their_part() -> None:
    cut = BUSY.row_at(0.5)
    for part, low, high in (("train", 0, cut), ("test", cut, 300)):
        episodes = Episodes(BUSY, jobs=20, part=part, sampler="hard")
        rng = np.random.default_rng(1)
        drawn = [episodes.draw(rng) for _ in range(50)]
        assert min(episode.start for episode in drawn) >= low
        assert max(episode.stop for episode in drawn) <= high


def test_single_and_vector_environments_draw_the_same() -> None:
    given = {"workload": BUSY, "jobs": 20, "sampler": "hard"}
    envs = plain_envs.make_vec("hpcgym/JobSelection-v2", num_envs=3, **given)
    single = plain_envs.make("hpcgym/JobSelection-v2", **given).unwrapped
    envs.reset(seed=5)
    for k, name in enumerate(envs.unwrapped.simulations.names):
        single.reset(seed=5 + k)
        assert single.simulations.names[0] == name


def test_named_slices_and_evaluations_are_the_same_whatever_is_drawn() -> None:
    plain, hard = (Episodes(BUSY, jobs=20, sampler=name) for name in ("uniform", "filtered"))
    assert plain.listing == hard.listing
    boards = [
        evaluate(
            {"first": lambda observation, info: 0}, BUSY, env="hpcgym/JobSelection-v2",
            env_options=options, n=5, jobs=20, budget=0,
        ).by_slice["first"].tolist()
        for options in ({}, {"sampler": "hard"})
    ]  # fmt: skip
    assert boards[0] == boards[1]


@pytest.mark.parametrize("kind", ["CoSchedule-v1", "EnergyBudget-v1", "QueueOrdering-v2"])
def test_other_environments_have_samplers_too(kind: str) -> None:
    env = plain_envs.make(f"hpcgym/{kind}", jobs=30, sampler="filtered")
    assert env.reset(seed=0)[1]["time_s"] >= 0


_FIVE = np.full(40, 5)
CALM = Workload.from_columns(
    {
        "submit_time": np.arange(40) * 100,
        "run_time": _FIVE,
        "requested_time": _FIVE,
        "requested_processors": _FIVE // 5,
    },
    processors=4,
    name="calm",
)


def test_where_nobody_waits_nothing_is_hard() -> None:
    JobSelection(CALM, jobs=5, sampler="filtered").reset(seed=0)


test_mistakes = mistakes_of(globals())
