"""Rules that act in CoSchedule make the schedules of the co-schedulers whose orders they have."""

from __future__ import annotations

import numpy as np
import pytest
from mistakes import mistakes_of
from plain_envs import JobSelection

import hpcgym
from hpcgym.baselines.pair_policies import PairPolicy
from hpcgym.envs import CoSchedule
from hpcgym.machine.speedups import Heatmap
from hpcgym.workload import Workload, assign_codes, load_workload, with_codes

pytestmark = pytest.mark.slow

CODES = [f"code-{k}" for k in range(1, 17)]


def of_many_sizes() -> Workload:
    jobs = load_workload("lublin:jobs=200,processors=192,seed=5,load=1.5")
    return assign_codes(jobs, CODES, seed=1)


def played(env: CoSchedule, policy: PairPolicy) -> hpcgym.Result:
    observation, info = env.reset(seed=0)
    policy.begin(env)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(policy.act(observation, info))
    return env.result()


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("first-pairs", "fcfs"),
        ("sjf-pairs", "sjf"),
    ],
)
def test_orders_are_those_of_schedulers(name: str, order: str) -> None:
    env = CoSchedule(of_many_sizes(), cluster="8x2x12", episodes="whole", window=200, neighbours=1)
    result = played(env, PairPolicy(name))
    machine = {"cluster": env.options.cluster, "speedups": env.speedups, "partners": "best"}
    same = hpcgym.simulate(
        env.episode_workload, policy=order, backfill="fill", allocation="half-socket", **machine
    )
    assert result.coschedule is not None
    assert same.coschedule is not None
    np.testing.assert_array_equal(result.coschedule.start_ticks, same.coschedule.start_ticks)
    np.testing.assert_array_equal(result.coschedule.end_ticks, same.coschedule.end_ticks)


def test_greedy_by_hand() -> None:
    """One node of two halves: a is fast alone, c is the best beside it, though b came first."""
    pairs = np.array([[0.5, 1.0, 1.6], [1.0, 0.5, 1.0], [1.2, 1.0, 0.5]])
    heatmap = Heatmap(("a", "b", "c"), pairs, alone=np.array([2.0, 1.0, 1.0]))
    columns = {"submit_time": [0, 0, 0], "run_time": [100] * 3, "requested_time": [100] * 3,
               "requested_processors": [4] * 3}  # fmt: skip
    jobs = with_codes(Workload.from_columns(columns, processors=8, name="hand"), ["b", "a", "c"])
    env = CoSchedule(jobs, speedups=heatmap, cluster="1x2x4", episodes="whole", window=3)
    result = played(env, PairPolicy("greedy-pairs"))
    # a at 1.6 from 0 to 62.5; then c has done 75 of 100, and goes on at 1 beside b, which starts
    np.testing.assert_allclose(result.start, [62.5, 0.0, 0.0])
    np.testing.assert_allclose(result.end, [162.5, 62.5, 87.5])


test_mistakes = mistakes_of(globals(), JobSelection)
