"""The network that evolution finds: where it begins, that seeds make it, and its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from mistakes import mistakes_of

from hpcgym import load_workload, simulate
from hpcgym.agents import TRAINED, ending_of, import_agent, named_file
from hpcgym.agents.net_es import NetEs
from hpcgym.agents.practice import maker
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.scheduler.policies.networks import read_network

WORKLOAD = "lublin:jobs=1500,processors=32,seed=3,load=0.5"
SMALL: dict[str, Any] = {"generations": 3, "population": 4, "worlds": 0, "units": 3}


def make_of(env: str = "QueueOrdering", workload: object = WORKLOAD) -> Any:
    return maker(workload, f"hpcgym/{env}-v2", {})


def trained(env: str = "QueueOrdering", seed: int = 0, **settings: Any) -> NetEs:
    return NetEs(**{**SMALL, **settings}).train(make_of(env), seed, 10**9)


def test_it_is_the_agent_of_its_name() -> None:
    module, name = TRAINED["net-es"]
    assert getattr(import_agent(module), name) is NetEs
    assert ending_of("net-es") == ".json"


def test_it_begins_as_the_scheduler_aged() -> None:
    """With the hold with which the other search begins, whatever its hidden units are."""
    jobs = load_workload(WORKLOAD)
    aged = find_scheduler("aged").but(hold={"share": 0.01, "by": "both"})
    starts = simulate(jobs, aged).start
    for units, seed in ((1, 0), (24, 0), (24, 5)):
        agent = NetEs(units=units)
        agent.begin(make_of(), seed)
        assert (simulate(jobs, agent.scheduler).start == starts).all()


def test_a_vector_is_all_weights_and_the_hold() -> None:
    agent = NetEs(units=3)
    begun = agent.network
    moved = np.zeros(len(agent.vector))
    assert len(moved) == 12 + 3 * 12 + 3 + 3 + 1
    moved[[0, 12, 48, 51, 54]] = 1.0, 2.0, -1.0, 3.0, 2.0
    agent.vector = moved
    network = agent.network
    assert network.skip[0] - begun.skip[0] == 0.5
    assert network.hidden[0, 0] - begun.hidden[0, 0] == 0.7
    assert np.isclose(network.bias[0] - begun.bias[0], -0.35)
    assert np.isclose(network.output[0], 0.9)
    assert (network.skip[1:] == begun.skip[1:]).all()
    assert agent.scheduler.hold is not None
    assert agent.scheduler.hold.share == 0.0272


def test_seeds_make_networks() -> None:
    agent, again, other = trained(), trained(), trained(seed=1)
    assert agent.network == again.network
    assert agent.network != other.network


def test_the_environments_of_one_question_have_one_network() -> None:
    assert trained("JobSelection").network == trained().network


def test_it_is_a_policy_in_a_file(tmp_path: Path) -> None:
    agent = trained()
    agent.save(tmp_path / "net.json")
    named = named_file("net-es", tmp_path / "net.json")
    read, jobs = find_scheduler(named), load_workload(WORKLOAD)
    assert (simulate(jobs, read).start == simulate(jobs, agent.scheduler).start).all()
    assert read.hold == agent.scheduler.hold
    network = read_network(tmp_path / "net.json")
    assert network.trained["by"] == "net-es"
    assert network.trained["settings"]["units"] == 3


test_mistakes = mistakes_of(globals())
