"""What environments say of mistakes."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

from hpcgym.envs import any_version
from hpcgym.errors import HpcgymError

JOBS = "lublin:jobs=200,processors=16"


def made(name: str = "JobSelection-v0", **arguments: Any) -> Any:
    with any_version():
        return gymnasium.make(f"hpcgym/{name}", workload=JOBS, **arguments).unwrapped


def test_an_unknown_reward_names_all() -> None:
    with pytest.raises(HpcgymError, match="did you mean 'log_bsld'") as caught:
        made(reward="logbsld")
    for name in ("max_wait", "p99_wait", "log_wait", "bsld/NAME of a scheduler"):
        assert name in str(caught.value)


def test_a_step_before_the_first_reset_is_told_from_one_after_the_end() -> None:
    env = made(jobs=20)
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
        env.step(0)
    env.reset(seed=0)
    while not any(env.step(0)[2:4]):
        pass
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode has ended"):
        env.step(0)


def test_a_whole_workload_needs_an_empty_start() -> None:
    with pytest.raises(HpcgymError, match="give start='empty'"):
        made("JobSelection-v1", episodes="whole")
    made("JobSelection-v1", episodes="whole", start="empty")


def test_an_array_as_an_index_is_not_printed() -> None:
    env = made(jobs=20)
    env.reset(seed=0)
    with pytest.raises(HpcgymError, match=r"not an array of shape \(128,\)$"):
        env.step(np.full(128, np.nan))
    with pytest.raises(HpcgymError, match=r"not nan$"):
        env.step(np.nan)


def test_a_version_of_hpcgyms_own_choice_does_not_warn() -> None:
    """As of what ``hpcgym train maskable-ppo`` makes."""
    pytest.importorskip("stable_baselines3")
    from hpcgym.envs.sb3 import HpcVecEnv

    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        HpcVecEnv("hpcgym/JobSelection-v0", 2, workload=JOBS, jobs=20).close()
