"""What agents make of observations: beside the jobs themselves, and EASY by another hand."""

from __future__ import annotations

import job_view
import numpy as np
import plain_envs
import pytest
from drawing import given, settings
from drawing import strategies as st
from job_view import JOB
from mistakes import mistakes_of

import hpcgym
from hpcgym.envs.core.observation import HORIZONS

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=0.8"


def look_of(free, jobs):
    """What is seen: free shares at 1 + 8 horizons, and jobs (share of the machine, requested s)."""
    n = len(jobs)
    wide, long = np.array(jobs, np.float32).reshape(n, 2).T
    zeros = np.zeros((n, len(JOB)), np.float32)
    return job_view.Seen(
        zeros, np.zeros((1, 20), np.float32), np.zeros(n, np.int64), np.arange(n),
        np.ones((1, n), bool), wide[None], long[None], np.array([free], np.float32),
    )  # fmt: skip


def slow_harmless(free, jobs, order):
    """Those that start, then of the others what is strict, loose, and fits: job by job."""
    left, starts = free[0], []
    for place in order:
        if jobs[place][0] > left + 1e-6:
            break
        starts.append(place)
        left -= jobs[place][0]
    others = [place for place in order if place not in starts]
    if not others:
        return starts, {}
    blocked = others[0]
    ahead = [
        share - sum(jobs[k][0] for k in starts if jobs[k][1] > horizon)
        for share, horizon in zip(free[1:], HORIZONS.tolist(), strict=True)
    ]
    enough = [k for k, share in enumerate(ahead) if share >= jobs[blocked][0] - 1e-6]
    at = enough[0] if enough else len(HORIZONS) - 1
    allowed = {}
    for place in others:
        wide, long = jobs[place]
        if wide > left + 1e-6:
            allowed[place] = (False, False, False)
            continue
        beside = wide <= ahead[at] - jobs[blocked][0] + 1e-6
        before = HORIZONS[at - 1] if at else 0
        allowed[place] = (long <= before or beside, long <= HORIZONS[at] or beside, True)
    return starts, allowed


@settings(max_examples=200)
@given(st.data())
def test_backfilling_is_that_of_a_slow_one(data) -> None:
    n = data.draw(st.integers(1, 9))
    shares = st.integers(0, 64).map(lambda k: k / 64)
    free = np.sort([data.draw(shares) for _ in range(9)]).tolist()
    times = st.sampled_from([1, 30, 60, 61, 500, 3600, 9000, 90_000, 700_000])
    jobs = [(data.draw(st.integers(1, 64)) / 64, data.draw(times)) for _ in range(n)]
    scores = np.array([data.draw(st.permutations(range(n)))], np.float32)
    weights = np.array([100.0, 10_000.0, 1_000_000.0], np.float32)
    scores_now = job_view.backfilled(look_of(free, jobs), scores, weights)[0]
    order = np.argsort(-scores[0], kind="stable").tolist()
    starts, allowed = slow_harmless(free, jobs, order)
    for place in range(n):
        added = scores_now[place] - scores[0, place]
        if place in starts:
            assert added == 2 * job_view.EASY.sum()
        else:
            assert added == pytest.approx(
                float(np.dot(allowed[place], weights)), rel=1e-6, abs=1e-3
            )


def test_a_prefix_is_what_starts_and_the_one_behind() -> None:
    look = look_of([0.5] * 9, [(0.25, 60), (0.25, 60), (0.5, 60), (0.1, 60)])
    orders = {(0, 1, 2, 3): 3, (2, 0, 1, 3): 2, (3, 2, 0, 1): 2, (3, 0, 2, 1): 3}
    for order, count in orders.items():
        assert job_view.prefix(look, np.array([order])).tolist() == [count]
    alone = look_of([1.0] * 9, [(0.25, 60), (0.25, 60)])
    assert job_view.prefix(alone, np.array([[1, 0]])).tolist() == [2]


@pytest.mark.slow
def test_jobs_behind_one_that_a_quota_keeps_back_are_seen() -> None:
    """Two of the first four jobs are of a user who has one running, so that places have gaps."""
    jobs = hpcgym.Workload.from_columns(
        {
            "submit_time": [0, 0, 0, 0, 0],
            "run_time": [100, 100, 50, 60, 70],
            "requested_time": [100, 100, 50, 60, 70],
            "requested_processors": [4, 3, 2, 1, 2],
            "user_id": [1, 1, 2, 1, 3],
        },
        processors=8,
    )
    envs = plain_envs.make_vec(
        "hpcgym/JobSelection-v2", workload=jobs, jobs=5, window=8, quota="user:jobs=1"
    )
    envs.reset(seed=0)
    observation, _, _, _, info = envs.step(np.array([0]))
    assert info["window"][0, :4].tolist() == [1, 2, 3, 4]
    look = job_view.seen(observation)
    assert look.place.tolist() == [1, 3]
    assert look.mask.tolist() == [[False, True, False, True]]
    assert look.requested_s[0, [1, 3]] == pytest.approx([50, 70], rel=1e-4)


@pytest.mark.slow
def test_numbers_are_those_of_the_jobs() -> None:
    options = {"workload": WORKLOAD, "jobs": 40, "window": 16}
    envs = plain_envs.make_vec("hpcgym/JobSelection-v2", num_envs=3, **options)
    observation, info = envs.reset(seed=0)
    for _ in range(30):
        observation, *_, info = envs.step(np.zeros(3, np.int64))
    look = job_view.seen(observation)
    assert len(look.jobs) == observation["mask"].sum() > 3
    of = {name: look.jobs[:, JOB.index(name)] for name in JOB}
    single = plain_envs.make("hpcgym/JobSelection-v2", **options).unwrapped
    for e in range(3):
        single.reset(seed=e)
        for _ in range(30):
            single.step(0)
        rows = info["window"][e][observation["mask"][e] > 0]
        jobs, mine = single.episode_workload, look.owner == e
        area = jobs.requested_time[rows] * jobs.requested_processors[rows]
        assert of["log_area"][mine] == pytest.approx(np.log(area / (32 * 3600)) / 4, abs=1e-4)
        wide = jobs.requested_processors[rows] / 32
        assert of["log_processors"][mine] == pytest.approx(np.log(wide) / 4, abs=1e-5)
        soon = [(look.free[e] >= share - 1e-6).mean() for share in wide]
        assert of["soon"][mine] == pytest.approx(soon, abs=1e-6)


test_mistakes = mistakes_of(globals())
