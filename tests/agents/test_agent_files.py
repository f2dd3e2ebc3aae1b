"""Files of agents that are damaged, of other kinds, or of PPO of Stable-Baselines3."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plain_envs
import pytest
import torch
from stable_baselines3.common.policies import MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from hpcgym.agents import contents_of, load, network_files
from hpcgym.agents.job_ppo import JobPpo
from hpcgym.agents.job_ppo import load as job_ppo_of
from hpcgym.agents.maskable_ppo import MaskablePpo, MaskedJobNetwork, both_scales
from hpcgym.agents.ppo import in_own_units
from hpcgym.agents.xnes import Xnes
from hpcgym.envs.core.observation import CLUSTER_SIZE, QUEUE_SIZE, TIME_SIZE
from hpcgym.errors import HpcgymError
from hpcgym.study import evaluate

WORKLOAD = "lublin:jobs=600,processors=32,seed=3,load=1.0"
CONTEXT = CLUSTER_SIZE + QUEUE_SIZE + TIME_SIZE
#: Of the released agents of this kind, whose files are no longer written.
PPO_OPTIONS = {
    "window": 16, "interval": 5, "observation": "dict",
    "policy_features": ["processors", "requested", "wait", "ratio", "expansion", "area"],
}  # fmt: skip


def maskable(path: Path) -> None:
    """As older versions wrote it, with the state of an optimiser."""
    agent = MaskablePpo()
    agent.network = MaskedJobNetwork(8, CONTEXT, 4)
    agent.made_for({"window": 16})
    agent.head = torch.nn.Linear(8, 1).state_dict()
    agent.save(path)
    network_files.write(path, {**contents_of(path), "steps": 64, "seed": 1, "optimizer": {}})


def clone(path: Path) -> None:
    agent = MaskablePpo()
    agent.name, agent.network = "clone", MaskedJobNetwork(8, CONTEXT, 4)
    agent.made_for({})
    agent.save(path)


def job_ppo(path: Path) -> None:
    agent = JobPpo()
    agent.kind, agent.env_id, agent.env_options = "select", "hpcgym/JobSelection-v2", {}
    agent.save(path)


class Means(BaseFeaturesExtractor):
    """What such networks saw: cluster, queue, time, and means over the visible jobs."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, CONTEXT + 2 * space["jobs"].shape[1])

    def forward(self, seen: Any) -> torch.Tensor:
        visible = (seen["mask"] > 0.5)[..., None]
        jobs = both_scales(seen["jobs"]) * visible
        means = jobs.sum(dim=1) / visible.sum(dim=1).clamp(min=1)
        return torch.cat([seen["cluster"], seen["queue"], seen["time"], means], dim=1)


def mixed_env() -> Any:
    return plain_envs.make(
        "hpcgym/MixedPolicy-v2", workload=WORKLOAD, jobs=40, part="test", **PPO_OPTIONS
    )


def policy_of_ppo() -> Any:
    """A policy of Stable-Baselines3 whose weights look at the state."""
    torch.manual_seed(1)
    env = mixed_env()
    layers = {"pi": [8, 8], "vf": [8, 8]}
    made = MultiInputActorCriticPolicy(
        env.observation_space, env.action_space, lambda _: 0.0, net_arch=layers,
        features_extractor_class=Means,
    )  # fmt: skip
    torch.nn.init.normal_(made.action_net.weight)
    return made


def ppo(path: Path) -> None:
    about = {"agent": "ppo", "env_id": "hpcgym/MixedPolicy-v2", "env_options": PPO_OPTIONS}
    more = {"steps": 64, "seed": 1, "width": 8, "units": [1.0] * 5 + [1e6]}
    network_files.write(path, {**about, **more, "weights": policy_of_ppo().state_dict()})


KINDS: dict[str, Callable[[Path], None]] = {
    "maskable-ppo": maskable, "clone": clone, "job-ppo": job_ppo, "ppo": ppo
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A file of each kind."""
    folder = tmp_path_factory.mktemp("networks")
    for kind, write in KINDS.items():
        write(folder / f"{kind}.pt")
    return {kind: folder / f"{kind}.pt" for kind in KINDS}


def changed(contents: Any, places: tuple[Any, ...], change: Any) -> Any:
    """Return contents with another value in one place; ``change`` is given what stands there."""
    if not places:
        return change(contents)
    return {**contents, places[0]: changed(contents.get(places[0]), places[1:], change)}


def refused(path: Path, folder: Path, places: tuple[Any, ...], change: Any, message: str) -> None:
    """Check that a file with another value in one place is refused in one line that names it."""
    bad = folder / "bad.pt"
    torch.save(changed(torch.load(path, weights_only=True), places, change), bad)
    with pytest.raises(HpcgymError, match=message) as caught:
        load(bad)
    assert str(bad) in str(caught.value)
    assert "\n" not in str(caught.value)


#: Layer of a network whose weights are changed.
LAYERS = {**dict.fromkeys(KINDS, "score.3.weight"), "ppo": "action_net.weight"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one: one * math.nan, "has values that no training leads to"),
        (lambda one: one + math.inf, "has values that no training leads to"),
        (lambda one: one.double() * 0 + 1e300, "has values that no training leads to"),
        (lambda one: one.to(torch.complex64), "must be a tensor of real numbers"),
        (lambda one: one.long(), "must be a tensor of real numbers"),
        (lambda one: "x", "must be a tensor of real numbers"),
        (lambda one: one[None], "has the shape"),
        (lambda one: torch.zeros(1).expand(one.shape[0], 10**5), "not all numbers are stored"),
    ],
)
def test_weights_that_cannot_be_are_refused(
    kind: str, change: Any, message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    refused(files[kind], tmp_path, ("weights", LAYERS[kind]), change, message)


@pytest.mark.parametrize(
    ("kind", "places", "change", "message"),
    [
        *((kind, ("env_id",), lambda one: "x", "'env_id' is 'x'") for kind in ("clone", "ppo")),
        *((kind, ("format",), lambda one: torch.zeros(3), "is not the file") for kind in KINDS),
        *((kind, ("env_options",), lambda one: 3, "is of another kind") for kind in KINDS),
        *(
            (kind, ("seed",), lambda one: torch.zeros(1).expand(10**6), "not all numbers are")
            for kind in KINDS
        ),
        *(
            (kind, ("weights",), lambda one: {**one, "other": one}, "not those of such a network")
            for kind in ("clone", "job-ppo", "maskable-ppo")
        ),
        ("maskable-ppo", ("value", "bias"), lambda one: one[:0], "has the shape"),
        ("job-ppo", ("kind",), lambda one: "weights", "unknown kind 'weights'"),
        ("job-ppo", ("order",), lambda one: "lifo", "unknown order 'lifo'"),
        ("ppo", ("units",), lambda one: [0.0] * 6, "'units' must be numbers above 0"),
        ("ppo", ("units",), lambda one: [math.nan] * 6, "'units' must be numbers above 0"),
        ("ppo", ("units",), lambda one: [1.0], "'units' must have a number for each"),
        ("ppo", ("units",), lambda one: ["x"] * 6, "is not the file of a"),
        ("ppo", ("width",), lambda one: 10**5, "has the shape"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_are_refused(
    kind: str, places: Any, change: Any, message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    refused(files[kind], tmp_path, places, change, message)


def test_weights_without_numbers_are_not_written(files: dict[str, Path], tmp_path: Path) -> None:
    (path := tmp_path / "agent.pt").write_bytes(files["clone"].read_bytes())
    agent = load(path)
    torch.nn.init.constant_(agent.network.of_job.bias, math.nan)
    with pytest.raises(HpcgymError, match="a lower learning_rate may help"):
        agent.save(path)
    assert path.read_bytes() == files["clone"].read_bytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"passes": "x"}, "unknown passes 'x'"),
        ({"passez": "per-event"}, r"bad\.pt: env_options: .* did you mean 'passes'"),
    ],
)
def test_an_evaluation_names_the_file_of_wrong_rules(
    wrong: dict[str, str], message: str, files: dict[str, Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.pt"
    network_files.write(bad, {**contents_of(files["maskable-ppo"]), "env_options": wrong})
    with pytest.raises(HpcgymError, match=message):
        evaluate([str(bad)], WORKLOAD, jobs=20, n=1, budget=0)


def test_older_files_say_what_is_decided_in_other_words(files: dict[str, Path]) -> None:
    contents = contents_of(files["job-ppo"])
    for word, kind in (("selection", "select"), ("ordering", "order")):
        assert job_ppo_of({**contents, "kind": word}).kind == kind
    with pytest.raises(HpcgymError, match="unknown kind 'weights'"):
        job_ppo_of({**contents, "kind": "weights"})


# --- What PPO of Stable-Baselines3 has learned in the suite ---------------------------------------


def test_a_released_network_acts_as_its_library_does(files: dict[str, Path]) -> None:
    """Its weights, in units of their features; and by the state, so they are not all the same."""
    agent, policy, env = load(files["ppo"]), policy_of_ppo(), mixed_env()
    assert (agent.name, agent.env_id) == ("ppo", "hpcgym/MixedPolicy-v2")
    observation, _ = env.reset(seed=1)
    agent.begin(env)
    actions, over = [], False
    while not over:
        actions.append(agent.act(observation))
        mean = policy.predict(observation, deterministic=True)[0]
        expected = in_own_units(mean, np.array([1.0] * 5 + [1e6]))
        assert actions[-1] == pytest.approx(expected, rel=1e-5, abs=1e-9)
        assert np.abs(actions[-1]).max() == pytest.approx(1.0)
        observation, _, over, _, _ = env.step(actions[-1])
    assert np.ptp(actions, axis=0).max() > 0
    board = evaluate([str(files["ppo"])], WORKLOAD, jobs=20, n=1, budget=0)
    assert board.by_slice[str(files["ppo"])].notna().all()


def test_weights_keep_their_proportions() -> None:
    units = np.array([1.0, 100.0])
    assert in_own_units([0.5, 1.0], units) == pytest.approx([1.0, 0.02])
    assert in_own_units([0.0, 0.0], units).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("env_id", "options", "message"),
    [
        ("hpcgym/QueueOrdering-v2", {}, "ppo acts in environments of the kind weights"),
        ("hpcgym/MixedPolicy-v2", {"observation": "flat"}, "observation='dict'"),
        ("hpcgym/MixedPolicy-v2", {"policy_features": ["area"]}, "weighs processors, requested"),
        ("hpcgym/MixedPolicy-v2", {"features": ["wait"]}, "knows 14 features"),
    ],
)
def test_other_environments_are_refused(
    env_id: str, options: dict[str, Any], message: str, files: dict[str, Path]
) -> None:
    env = plain_envs.make(env_id, workload=WORKLOAD, jobs=20, **options)
    with pytest.raises(HpcgymError, match=message):
        load(files["ppo"]).begin(env)


# --- Files that hold no agent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.pt", "nothing", "is not the file of an agent of this version: it is not JSON"),
        ("a.zip", "nothing", "a.zip is no archive: it is damaged, or no model of Stable-Baselines"),
        ("a.pt", {"weights": 1}, "is not the file of an agent"),
        ("a.pt", {"format": 1, "agent": "x"}, "holds an agent that this version does not know"),
        ("a.json", "{}", "holds no agent: it names none"),
        ("a.json", '{"agent": "ppp"}', "does not know: did you mean 'ppo'"),
        ("a.json", '{"agent": ["xnes"]}', "does not know"),
        ("a.json", "[]", "it holds no object of JSON"),
        ("a.json", '{"agent": "ppo"}', "is not the file of an agent of this version: ppo has file"),
        ("a.json", None, "a.json: no such file"),
    ],
)
def test_files_that_hold_no_agent(name: str, content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if isinstance(content, dict):
        torch.save(content, path)
    elif content is not None:
        path.write_text(content)
    with pytest.raises(HpcgymError, match=message):
        load(path)


def test_loading_runs_no_code_from_the_file(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> Any:
            return (open, (str(tmp_path / "harm"), "w"))

    path = tmp_path / "agent.pt"
    torch.save({"format": network_files.FORMAT, "agent": Harmful()}, path)
    with pytest.raises(HpcgymError, match="is not the file of an agent"):
        load(path)
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize("before", [b"\n \t", "\ufeff\n".encode()], ids=["blank", "mark"])
def test_what_stands_before_json_makes_it_no_network(before: bytes, tmp_path: Path) -> None:
    path = tmp_path / "xnes.json"
    agent = Xnes("xnes3")
    agent.weights_ = {"wait": 1.0}
    agent.save(path)
    path.write_bytes(before + path.read_bytes())
    assert load(path).weights_ == {"wait": 1.0}


def test_the_package_alone_loads_no_torch_and_says_what_is_missing(tmp_path: Path) -> None:
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
