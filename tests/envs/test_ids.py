"""Ids whose version has changed: what names the last one goes on, what is made anew says so."""

from __future__ import annotations

import gymnasium
import pytest
from mistakes import mistakes_of

from hpcgym.envs import IDS
from hpcgym.envs.core.base import kind_of
from hpcgym.envs.ids import id_of, successor
from hpcgym.errors import HpcgymError


def before(env_id: str, by: int = 1) -> str:
    name, _, version = env_id.rpartition("-v")
    return f"{name}-v{int(version) - by}"


@pytest.mark.parametrize("env_id", IDS)
def test_the_last_version_is_known_to_what_has_been_saved(env_id: str) -> None:
    last = before(env_id)
    assert successor(last) == successor(last.removeprefix("hpcgym/")) == env_id
    assert kind_of(last) == kind_of(env_id) != ""
    for other in (env_id, before(env_id, 2), "CartPole-v1", "test/JobSelection-v1", "JobSelection"):
        assert successor(other) == other


test_mistakes = mistakes_of(
    globals(), gymnasium, id_of, errors=(gymnasium.error.Error, HpcgymError)
)
