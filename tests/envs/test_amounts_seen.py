"""What jobs ask for of GPUs and other amounts, and what limits leave, as agents see it."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import BUSY, EURORA, SINGLE, VECTOR, play, rows_of, visible_acts, whole
from few_jobs import few_jobs
from gymnasium.utils.env_checker import check_env

import hpcgym
from hpcgym.machine import Cluster, NodeGroup

NAMES = ("JobSelection", "QueueOrdering", "MixedPolicy", "Backfill", "Inspector")
TWO = Cluster(groups=(NodeGroup("gpu", 2, {"core": 8, "mem": 16_000, "gpu": 4}),))


def with_gpus(gpus: list[int], **columns: Any) -> hpcgym.Workload:
    """Return jobs of one core a GPU that are submitted at once, and request what they run for."""
    units = np.ones(len(gpus), np.int64)
    per_unit = {"core": np.maximum(gpus, 1), "mem": 1000 * units, "gpu": np.array(gpus)}
    wide = per_unit["core"]
    times: Any = [10] * len(gpus)
    return few_jobs(16, [0] * len(gpus), times, wide, units=units, per_unit=per_unit, **columns)


def test_shares_and_what_limits_leave_by_hand() -> None:
    """User 1 may have 4 GPUs, all together 6 jobs' memory of 1 GB; the fourth job asks for none."""
    jobs = with_gpus([2, 3, 1, 0, 4], user_id=[1, 1, 1, 1, 2])
    features = ("gpu", "mem", "limit_left")
    quota = "user=1/user:gpu=4; everybody:mem=6000"
    env = SINGLE["JobSelection"](
        **whole(jobs, cluster=TWO, features=features, quota=quota, window=5)
    )
    seen, _ = env.reset()
    np.testing.assert_allclose(seen["jobs"][:, 0], np.array([2, 3, 1, 0, 4]) / 8)
    np.testing.assert_allclose(seen["jobs"][:, 1], 1 / 32, rtol=1e-6)
    # 2, 1 and 3 of 4 GPUs would be left; of the memory 5 of 6 GB
    np.testing.assert_allclose(seen["jobs"][:, 2], [2 / 4, 1 / 4, 3 / 4, 5 / 6, 5 / 6], rtol=1e-6)
    seen, _, _, _, info = env.step(0)
    assert rows_of(info) == [1, 2, 3, 4]
    # the second job may not start: 2 GPUs are left, and it asks for 3
    np.testing.assert_allclose(seen["jobs"][:4, 2], [-1 / 4, 1 / 4, 4 / 6, 4 / 6], rtol=1e-6)
    assert not seen["jobs"][4].any()


@pytest.mark.parametrize("name", NAMES)
def test_what_limits_leave_is_counted_anew(name: str) -> None:
    """From the jobs that run: of GPUs or licences and jobs by user, of another amount by all."""
    more: dict[str, Any] = {"interval": "pass"} if name == "MixedPolicy" else {}
    if name in ("Backfill", "Inspector"):  # they are for pools
        jobs = BUSY.with_columns(**{"licence.x": BUSY.user_id % 3, "user_id": BUSY.user_id % 9})
        own, of_all = "licence.x", "processors"
        of_one, of_many = jobs.columns[own], jobs.requested_processors
    else:
        jobs, own, of_all = EURORA, "gpu", "mem"
        of_one, of_many = (jobs.units * jobs.per_unit[amount] for amount in (own, of_all))
        more["cluster"] = "eurora"
    most, together = int(of_one.max()) + 1, int(of_many.max()) + 9
    user, quota = jobs.user_id, f"user:{own}={most}+jobs=3; everybody:{of_all}={together}"
    more |= {"features": ("limit_left", "within_quota", f"asked({own})"), "quota": quota}
    env = SINGLE[name](**whole(jobs, window=12, **more))
    act, seen = visible_acts(env, 1), set()

    def check(number: int, observation: Any, info: dict[str, Any]) -> Any:
        rows, runs = rows_of(info), env.running()
        mine = user[runs][:, np.newaxis] == user[rows]
        asked = of_one[rows]
        left = (most - (of_one[runs][:, np.newaxis] * mine).sum(0) - asked) / most
        parts = [(3 - mine.sum(0) - 1) / 3, np.where(asked > 0, left, 1)]
        parts.append((together - of_many[runs].sum() - of_many[rows]) / together)
        shown = observation["jobs"][: len(rows)]
        expected = np.clip(np.min(parts, axis=0), -1, 1)
        np.testing.assert_allclose(shown[:, 0], expected, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(shown[:, 2], asked / (4 + asked), rtol=1e-6)
        assert ((expected > -1e-9) >= shown[:, 1].astype(bool)).all()
        if name not in ("Backfill", "Inspector"):  # where jobs are passed over for more than that
            assert ((expected > -1e-9) == shown[:, 1].astype(bool)).all()
            seen.update((expected < -1e-9).tolist())
        return act(number, observation, info)

    play(env, check)
    if name != "Inspector":  # there jobs may start when they are put off no more
        hpcgym.validate_schedule(env.result())
    assert len(seen) == 2 * (name not in ("Backfill", "Inspector"))


def test_without_limits_all_is_left_and_vectors_show_the_same() -> None:
    features = ("gpu", "limit_left", "rank(asked(gpu))", "in_use(gpu) * asked(gpu)", "wait")
    given = whole(EURORA, cluster="eurora", features=features, window=8)
    single, vector = SINGLE["JobSelection"](**given), VECTOR["JobSelection"](num_envs=2, **given)
    seen, info = single.reset()
    both, _ = vector.reset()
    for _ in range(40):
        assert (seen["jobs"][: len(rows_of(info)), 1] == 1).all()
        for k in range(2):
            np.testing.assert_array_equal(both["jobs"][k], seen["jobs"])
        action = int(np.flatnonzero(info["action_mask"])[-1])
        seen, _, over, _, info = single.step(action)
        both, *_ = vector.step(np.full(2, action))
        assert not over
    check_env(single.unwrapped, skip_render_check=True)


def test_a_quota_of_all_says_what_there_is_where_nodes_do_not() -> None:
    """Licences of 4 jobs on a pool; and by Gymnasium's ids with jobs of the generator."""
    asked = [1, 0, 3, 5]
    jobs = few_jobs(8, [0] * 4, [10] * 4, [1] * 4).with_columns(**{"licence.matlab": asked})
    features, quota = ("licence.matlab",), "everybody:licence.matlab=10"
    env = SINGLE["JobSelection"](**whole(jobs, features=features, quota=quota, window=4))
    np.testing.assert_allclose(env.reset()[0]["jobs"][:, 0], np.array(asked) / 10, rtol=1e-6)
    log, rules = "helios:jobs=400,load=1.1", {"cluster": "helios", "quota": "user:gpu=128"}
    features = ("wait", "requested", "gpu", "limit_left")
    made = gymnasium.make("hpcgym/QueueOrdering-v2", workload=log, features=features, **rules)
    seen, info = made.reset(seed=0)
    rows = info["window"][info["window"] >= 0]
    gpus = made.unwrapped.episode_workload
    expected = (gpus.units * gpus.per_unit["gpu"])[rows] / (133 * 8)
    np.testing.assert_allclose(seen["jobs"][: len(rows), 2], expected, rtol=1e-6)
