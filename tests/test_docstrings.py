"""The examples in docstrings do what they show."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

pytestmark = pytest.mark.compiled

MODULES = [
    "hpcgym.agents.lookahead",
    "hpcgym.agents.xnes",
    "hpcgym.baselines.policies",
    "hpcgym.envs.render.view",
    "hpcgym.evaluation.run",
    "hpcgym.report.numbers",
    "hpcgym.simulation.run",
    "hpcgym.sweep.batch",
    "hpcgym.sweep.executors",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    found = doctest.testmod(import_module(name))
    assert found.attempted > 0
    assert found.failed == 0
