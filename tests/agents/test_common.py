"""What the learning agents share."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import hpcgym
from hpcgym.agents import contents_of, load, maskable_ppo, network_files
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.sb3 import HpcVecEnv

WORKLOAD = "lublin:jobs=400,processors=32,seed=1,load=1.0"


def test_a_budget_of_steps():
    budget = maskable_ppo.Budget(100, None, done=50)
    assert (budget.left, budget.last_step) == (1.0, 150)
    budget.done = 75
    assert budget.left == 0.75
    budget.done = 200
    assert budget.left == 0.0


def test_a_budget_of_minutes(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(maskable_ppo.time, "monotonic", lambda: now[0])
    budget = maskable_ppo.Budget(None, 2.0)
    now[0] = 30.0
    assert budget.left == 0.75
    both = maskable_ppo.Budget(100, 2.0)
    both.done = 90
    assert both.left == pytest.approx(0.1)
    now[0] = 1000.0
    assert budget.left == both.left == 0.0


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_rewards_relative_to_a_reference(power):
    """The rewards of an episode add up to its mean BSLD over a power of the reference's."""
    plain = HpcVecEnv(
        "hpcgym/JobSelection-v0", num_envs=2, workload=WORKLOAD, jobs=20, backfill="none"
    )
    envs = maskable_ppo.RelativeRewards(plain, "saf", power)
    envs.seed(3)
    envs.reset()
    sums, ended = np.zeros(2), 0
    for _ in range(80):
        names = list(plain.env.simulations.names)
        _, rewards, dones, infos = envs.step(np.zeros(2, np.int64))
        sums += rewards
        for e in np.flatnonzero(dones):
            ended += 1
            jobs = plain.env.episodes.workload_of(plain.env.episodes.find({"slice": names[e]}))
            saf = hpcgym.simulate(jobs, policy="saf", backfill="none").metrics["mean_bsld"]
            expected = -infos[e]["metrics"]["mean_bsld"] / saf**power
            assert sums[e] == pytest.approx(expected, rel=1e-4)
            sums[e] = 0.0
    assert ended > 2


def test_both_scales_keep_the_order():
    hours = torch.tensor([[0.001, 0.5, 1.0, 30.0]])
    features = hours / (hours + 1)
    both = maskable_ppo.both_scales(features)
    assert torch.equal(both[:, :4], features)
    assert torch.allclose(both[:, 4:], torch.log(hours) / 4, atol=1e-3)
    assert torch.isfinite(maskable_ppo.both_scales(torch.tensor([[0.0, 1.0, -1.0]]))).all()


def test_files_that_hold_no_agent(tmp_path):
    text, other = tmp_path / "text.pt", tmp_path / "other.pt"
    text.write_text("nothing")
    torch.save({"weights": 1}, other)
    unknown = tmp_path / "unknown.pt"
    network_files.write(unknown, {"agent": "unheard-of"})
    nameless, near, odd, listed, network = (
        tmp_path / f"{name}.json" for name in ("nameless", "near", "odd", "listed", "network")
    )
    nameless.write_text("{}")
    near.write_text('{"agent": "ppp"}')
    odd.write_text('{"agent": ["xnes"]}')
    listed.write_text("[]")
    network.write_text('{"agent": "ppo"}')
    (archive := tmp_path / "bad.zip").write_text("nothing")
    for path, message in (
        (text, "is not the file of an agent of this version: it is not JSON"),
        (other, "is not the file of an agent"),
        (archive, "bad.zip is no archive: it is damaged, or no model of Stable-Baselines3"),
        (unknown, "unknown.pt holds an agent that this version does not know: known are clone, "),
        (nameless, "nameless.json holds no agent: it names none"),
        (near, "does not know: did you mean 'ppo'"),
        (odd, "does not know"),
        (listed, "it holds no object of JSON"),
        (network, "network.json is not the file of an agent of this version: ppo has files of"),
        (tmp_path / "missing.pt", "missing.pt: no such file"),
    ):
        with pytest.raises(hpcgym.HpcgymError, match=message):
            load(path)


def test_a_training_does_not_go_on_from_weights_in_json(tmp_path):
    path = tmp_path / "rule-es.json"
    path.write_text('{"agent": "rule-es"}')
    with pytest.raises(hpcgym.HpcgymError, match="holds no network, but JSON"):
        network_files.read_before(path, "hpcgym/JobSelection-v0", "maskable-ppo")


def test_loading_runs_no_code_from_the_file(tmp_path):
    class Harmful:
        def __reduce__(self):
            return (open, (str(tmp_path / "harm"), "w"))

    path = tmp_path / "agent.pt"
    torch.save({"format": network_files.FORMAT, "agent": Harmful()}, path)
    with pytest.raises(hpcgym.HpcgymError, match="is not the file of an agent"):
        load(path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "before",
    [b"\n \t", "\ufeff".encode(), "\ufeff\n".encode()],
    ids=["blank", "mark", "both"],
)
def test_what_stands_before_json_makes_it_no_network(before, tmp_path):
    path = tmp_path / "xnes.json"
    agent = Xnes("xnes3")
    agent.weights_ = {"wait": 1.0}
    agent.save(path)
    path.write_bytes(before + path.read_bytes())
    assert load(path).weights_ == {"wait": 1.0}
    assert contents_of(path)["agent"] == "xnes"


def test_the_package_alone_loads_no_torch_and_says_what_is_missing(tmp_path):
    path = tmp_path / "x.pt"
    torch.save({}, path)
    code = (
        "import sys, hpcgym.agents as agents\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        f"for do in (lambda: agents.load({str(path)!r}), lambda: agents.maskable_ppo):\n"
        "    try:\n        do()\n    except ValueError as error:\n        print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.count("pip install '.[agents]'") == 2
