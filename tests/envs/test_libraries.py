"""Libraries that users bring along: each is the real one, with environments as users make them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import gymnasium
import numpy as np
import plain_envs
import pytest
from driving import BUSY, CHASSIS, CROWD, FOLLOWING, LOADED, NAMES, assert_same, terms_of
from gymnasium.envs.registration import EnvSpec
from plain_envs import plain

from hpcgym.envs import IDS
from hpcgym.envs.ids import id_of
from hpcgym.errors import installing

pytestmark = pytest.mark.slow

NAMED = "lublin:jobs=400,processors=32,seed=0,load=1"


def arguments_of(name: str) -> dict[str, Any]:
    """Small episodes of an environment, by its id without ``hpcgym/`` and version."""
    given: dict[str, Any] = {"jobs": 12, "window": 6}
    if name in ("PowerCap", "EnergyBudget"):
        return {**given, "workload": LOADED, "cluster": CHASSIS, "interval": 4}
    if name == "CoSchedule":
        return {**given, "neighbours": 4}
    return {**given, "workload": NAMED, **({"interval": 4} if name == "MixedPolicy" else {})}


# --- RLlib ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["JobSelection", "QueueOrdering"])
def test_rllib(name: str) -> None:
    """It pins Gymnasium 1.2.2, so that it is in no extra: ``pip install 'ray[rllib]'``."""
    ppo = pytest.importorskip("ray.rllib.algorithms.ppo")
    ray = pytest.importorskip("ray")
    more = {"observation": "flat"}
    ray.tune.registry.register_env(
        "jobs", lambda _: gymnasium.make(id_of(name), **plain(name, arguments_of(name) | more))
    )
    config = ppo.PPOConfig().environment("jobs").env_runners(num_env_runners=0)
    learner = config.training(train_batch_size=200, minibatch_size=50, num_epochs=1).build_algo()
    try:
        trained = [learner.train() for _ in range(2)][-1]
        assert trained["num_env_steps_sampled_lifetime"] >= 400
        returns = trained["env_runners"]["episode_return_mean"]
        assert -1e6 < returns < 0  # each is minus a mean bounded slowdown
    finally:
        learner.stop()
        ray.shutdown()


# --- TorchRL --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_torchrl(name: str) -> None:
    """Its GymEnv passes ``frameskip``, and takes it away only if Python's words refuse it."""
    envs = pytest.importorskip("torchrl.envs")
    env = envs.GymEnv(id_of(name), **plain(name, arguments_of(name)))
    envs.check_env_specs(env, seed=0)
    rollout = env.rollout(100)
    assert bool(rollout["next", "terminated"][-1])
    total = float(rollout["next", "reward"].sum())
    assert total == pytest.approx(-env.unwrapped.result().metrics["mean_bsld"], rel=1e-5)


def test_torchrl_takes_vector_rewards() -> None:
    envs = pytest.importorskip("torchrl.envs")
    more = {"reward": ["bsld", "energy"], "observation": "flat"}
    env = envs.GymEnv(
        "hpcgym/JobSelection-v2", **plain("JobSelection", arguments_of("JobSelection") | more)
    )
    envs.check_env_specs(env, seed=0)
    assert env.rollout(5)["next", "reward"].shape == (5, 2)


def test_torchrl_takes_many() -> None:
    envs = pytest.importorskip("torchrl.envs")
    given = plain("JobSelection", arguments_of("JobSelection"))
    many = envs.SerialEnv(2, lambda: envs.GymEnv("hpcgym/JobSelection-v2", **given))
    assert many.rollout(5)["next", "jobs"].shape == (2, 5, 6, 14)


#: Gymnasium's own beside all of ours: what TorchRL does with it, it does with these.
WITH_CARTPOLE = ["CartPole-v1", *IDS]
#: In episodes of two jobs the first step, by which it learns what infos have, may be the last.
LENGTHS = [40, 2]


def of_jobs(env_id: str, jobs: int = 40) -> dict[str, Any]:
    """Arguments for small environments with so many jobs in an episode; none for CartPole."""
    if env_id not in IDS:
        return {}
    name = env_id.removeprefix("hpcgym/")[: -len("-v0")]
    given = {"workload": LOADED, "cluster": CHASSIS, "interval": 4}
    given = given if name in ("PowerCap", "EnergyBudget") else {}
    if name in (*NAMES, *FOLLOWING):
        given = {"workload": BUSY, "start": "empty", "arrivals": "stop", "horizon": None}
        # many decisions in each
        given |= {"MixedPolicy": {"interval": "pass"}, "Backfill": {"workload": CROWD}}.get(
            name, {}
        )
    return {**given, "jobs": jobs, "window": 6}


@pytest.mark.parametrize("jobs", LENGTHS)
@pytest.mark.parametrize("env_id", WITH_CARTPOLE)
def test_torchrl_registers_infos(env_id: str, jobs: int) -> None:
    """What each step says lies beside what it shows, as numbers."""
    envs = pytest.importorskip("torchrl.envs")
    env = envs.GymEnv(env_id, **of_jobs(env_id, jobs)).auto_register_info_dict()
    envs.check_env_specs(env, seed=0)
    begun = env.reset()
    before = env.unwrapped.simulations.batch.totals[0].copy() if env_id in IDS else None
    played = env.rollout(200, auto_reset=False, tensordict=begun)
    assert bool(played["next", "done"][-1])
    if before is not None:  # what jobs had cost at the first decision is paid for in no step
        assert (played["next", "time_s"].diff() >= 0).all()
        paid = env.unwrapped.simulations.batch.totals[0] - before
        assert float(played["next", "reward_wait_s"].sum()) == pytest.approx(paid[1])


@pytest.mark.parametrize("mode", ["SameStep", "Disabled"])
@pytest.mark.parametrize("env_id", WITH_CARTPOLE)
def test_torchrl_wraps_vectors(env_id: str, mode: str) -> None:
    """Those that one call of the engine steps, and Gymnasium's loop: rewards are those of steps."""
    envs = pytest.importorskip("torchrl.envs")
    in_loop: dict[str, Any] = {
        "vectorization_mode": "sync", "vector_kwargs": {"autoreset_mode": mode}
    }  # fmt: skip
    ways = [in_loop, {"autoreset_mode": mode}] if env_id in IDS else [in_loop]
    for way in ways:
        made = gymnasium.make_vec(env_id, num_envs=2, **of_jobs(env_id), **way)
        env, steps, step = envs.GymWrapper(made), [], made.step

        def noting(actions: Any, steps: list[Any] = steps, step: Any = step) -> Any:
            steps.append(step(actions))
            return steps[-1]

        envs.check_env_specs(env, seed=0)
        made.step = noting
        played = env.rollout(100, break_when_any_done=False)["next"]
        _, rewards, terminated, truncated, _ = zip(*steps, strict=True)
        done = np.array(terminated).T | np.array(truncated).T
        assert played["done"].squeeze(-1).tolist() == done.tolist()
        assert done.any()
        np.testing.assert_allclose(played["reward"].squeeze(-1), np.array(rewards).T, rtol=1e-6)


@pytest.mark.parametrize(
    ("env_id", "jobs"), [*((env_id, 40) for env_id in WITH_CARTPOLE), ("hpcgym/JobSelection-v2", 2)]
)
def test_torchrl_makes_vectors(env_id: str, jobs: int) -> None:
    """Each environment in a process of its own."""
    envs = pytest.importorskip("torchrl.envs")
    named = f"hpcgym:{env_id}" if env_id in IDS else env_id  # processes begin without its import
    env = envs.GymEnv(named, num_envs=2, **of_jobs(env_id, jobs))
    try:
        envs.check_env_specs(env, seed=0)
        played = env.rollout(100, break_when_any_done=False)
        assert bool(played["next", "done"].any())
        assert played["next", "reward"].shape == (2, 100, 1)
    finally:
        env.close()


# --- The defaults of environments -----------------------------------------------------------------

DEFAULTS = (*NAMES, *FOLLOWING)


def by_default(name: str) -> dict[str, Any]:
    """What a user gives beside a log: a small window, and episodes that take a second."""
    return {"workload": NAMED, "jobs": 12, "window": 6, "part": "train"}


@pytest.mark.parametrize("name", DEFAULTS)
def test_torchrl_plays_the_defaults(name: str) -> None:
    """Episodes that begin warm and may be truncated: its rewards are those of Gymnasium's steps."""
    envs = pytest.importorskip("torchrl.envs")
    env = envs.GymEnv(id_of(name), **by_default(name))
    envs.check_env_specs(env, seed=0)
    env.set_seed(5)
    played = env.rollout(500)
    assert bool(played["next", "done"][-1])
    again = gymnasium.make(id_of(name), **by_default(name))
    again.reset(seed=5)
    seen, _ = again.reset()  # as its rollout does
    for step in played:
        assert step["jobs"].numpy().tolist() == seen["jobs"].tolist()
        action = env.action_spec.to_numpy(step["action"])
        seen, reward, *_ = again.step(action)
        assert float(step["next", "reward"]) == pytest.approx(reward)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_loop_like_those_of_cleanrl(name: str) -> None:
    """One rollout and one update of its PPO, on a vector of flat environments that count episodes.

    Returns are those of Gymnasium's wrapper, and the critic comes nearer to the rewards.
    """
    torch = pytest.importorskip("torch")
    given = {**by_default(name), "observation": "flat"}

    def made_env() -> gymnasium.Env[Any, Any]:
        made = gymnasium.make(id_of(name), **given)
        return gymnasium.wrappers.RecordEpisodeStatistics(made)

    envs = gymnasium.vector.SyncVectorEnv([made_env, made_env])
    torch.manual_seed(0)
    discrete = isinstance(envs.single_action_space, gymnasium.spaces.Discrete)
    n_seen = int(np.prod(envs.single_observation_space.shape))
    n_acts = envs.single_action_space.n if discrete else int(envs.single_action_space.shape[0])
    actor, critic = torch.nn.Linear(n_seen, n_acts), torch.nn.Linear(n_seen, 1)
    optimizer = torch.optim.Adam([*actor.parameters(), *critic.parameters()], lr=3e-3)

    def policy(seen: Any) -> Any:
        if discrete:
            return torch.distributions.Categorical(logits=actor(seen))
        normal = torch.distributions.Normal(actor(seen), 0.5)
        return torch.distributions.Independent(normal, 1)

    seen = torch.as_tensor(envs.reset(seed=1)[0])
    totals, returns, rows = np.zeros(2), [], []
    for _ in range(200):
        with torch.no_grad():
            action = policy(seen).sample()
            log_prob, value = policy(seen).log_prob(action), critic(seen).squeeze(1)
        after, reward, terminated, truncated, infos = envs.step(action.numpy())
        rows.append((seen, action, log_prob, value, torch.as_tensor(reward, dtype=torch.float32)))
        totals += reward
        ended = terminated | truncated
        for k in np.flatnonzero(ended):
            returns.append((infos["episode"]["r"][k], totals[k]))
            totals[k] = 0.0
        seen = torch.as_tensor(after)
    assert returns
    for counted, summed in returns:
        assert counted == pytest.approx(summed, abs=1e-5)
    seen, action, log_prob, value, reward = (
        torch.cat(column) for column in zip(*rows, strict=True)
    )
    advantage = reward - value
    before = critic(seen).squeeze(1).sub(reward).pow(2).mean().item()
    for _ in range(20):
        ratio = (policy(seen).log_prob(action) - log_prob).exp()
        surrogate = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        loss = critic(seen).squeeze(1).sub(reward).pow(2).mean() - surrogate.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert critic(seen).squeeze(1).sub(reward).pow(2).mean().item() < before
    envs.close()


# --- Minari ---------------------------------------------------------------------------------------


@pytest.fixture
def minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Minari, whose data sets lie in a folder of the test.

    Of JAX, which is large, it takes one function, which PyTorch has too; JAX itself if it is there.
    """
    pytest.importorskip("minari")
    pytree = pytest.importorskip("torch.utils._pytree")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    try:
        import jax  # noqa: F401
    except ImportError:
        jax_like, trees = ModuleType("jax"), ModuleType("jax.tree_util")
        trees.tree_map = pytree.tree_map  # type: ignore[attr-defined]
        jax_like.tree_util = trees  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "jax", jax_like)
        monkeypatch.setitem(sys.modules, "jax.tree_util", trees)
    return pytest.importorskip("minari")


@pytest.mark.filterwarnings("ignore::UserWarning")  # of data sets without an author
@pytest.mark.parametrize("name", NAMES)
def test_minari_records_infos(name: str, minari: Any) -> None:
    """Infos of resets and steps have the same form; the page says to leave out those of ends."""

    class WithoutEnds(minari.StepDataCallback):  # type: ignore[misc]
        def __call__(self, env: Any, **step: Any) -> Any:
            step["info"] = {
                key: value for key, value in step["info"].items() if not key.startswith("episode_")
            }
            return super().__call__(env, **step)

    made = plain_envs.make(id_of(name), **arguments_of(name))
    env = minari.DataCollector(
        made, record_infos=True, data_format="arrow", step_data_callback=WithoutEnds
    )
    windows, terms, ends = [], [], []
    for seed in range(2):
        _, info = env.reset(seed=seed)
        windows.append([info["window"]])
        terms.append([info["reward_wait_s"]])
        ended = False
        while not ended:
            env.action_space.seed(len(windows[-1]))
            _, _, ended, _, info = env.step(env.action_space.sample())
            windows[-1].append(info["window"])
            terms[-1].append(info["reward_wait_s"])
        ends.append(info)  # whoever steps sees them all the same
    stored = env.create_dataset("hpcgym/test-v0", algorithm_name="random")
    assert len(stored) == 2
    for episode, rows, waits, end in zip(stored, windows, terms, ends, strict=True):
        assert episode.infos["window"].tolist() == np.array(rows).tolist()
        assert waits[0] == 0
        assert sum(waits) / 12 == pytest.approx(end["episode_mean_wait_s"])
        assert float(episode.rewards.sum()) == pytest.approx(-end["episode_mean_bsld"])


@pytest.mark.parametrize("name", [name[len("hpcgym/") : -len("-v0")] for name in IDS])
def test_infos_of_resets_and_steps_have_the_same_form(name: str) -> None:
    """Numbers and arrays of numpy, by names that no field of an observation has."""
    env = plain_envs.make(id_of(name), **arguments_of(name))
    env.action_space.seed(0)

    def form(info: Any) -> Any:
        if isinstance(info, dict):
            return {key: form(value) for key, value in info.items()}
        return (type(info), getattr(info, "shape", None), getattr(info, "dtype", None))

    observation, first = env.reset(seed=1)
    assert not {*observation} & {*first}
    assert all(isinstance(value, np.ndarray | np.number) for value in first.values())
    # where jobs start unasked, some may have ended before the first question
    assert name in ("Backfill", "Submit") or not any(terms_of(first).values())
    *_, ended, _, info = env.step(env.action_space.sample())
    while not ended:
        assert form(info) == form(first)
        *_, ended, _, info = env.step(env.action_space.sample())
    ends = {"episode_mean_bsld", "episode_mean_wait_s", "episode_energy_j"}
    ends |= {"episode_mean_turnaround_s"} if name == "Submit" else set()
    assert set(info) - set(first) == ends | ({"episode_makespan_s"} & set(info))
    assert all(isinstance(info[key], np.float64) for key in ends)
    assert form({key: info[key] for key in first}) == form(first)


# --- MO-Gymnasium ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_mo_gymnasium(name: str) -> None:
    mo = pytest.importorskip("mo_gymnasium")
    given = {**arguments_of(name), "reward": ["bsld", "energy"], "observation": "flat"}
    env = mo.make(id_of(name), **plain(name, given))
    assert env.unwrapped.reward_dim == 2
    assert env.unwrapped.reward_space.shape == (2,)
    weight = np.array([0.7, 0.3])
    mixed = mo.wrappers.LinearReward(env, weight=weight)
    counted = mo.wrappers.MORecordEpisodeStatistics(
        mo.make(id_of(name), **plain(name, given)), gamma=1.0
    )
    mixed.reset(seed=0)
    counted.reset(seed=0)
    total, ended = 0.0, False
    while not ended:
        action = mixed.action_space.sample()
        _, reward, ended, _, _ = mixed.step(action)
        total += reward
        _, both, _, _, info = counted.step(action)
        assert env.unwrapped.reward_space.contains(both)
        assert reward == pytest.approx(float(weight @ both))
    assert info["episode"]["r"][0] == pytest.approx(-info["episode_mean_bsld"], rel=1e-5)
    assert float(weight @ info["episode"]["r"]) == pytest.approx(total, rel=1e-5)
    skipping = mo.wrappers.MOMaxAndSkipObservation(
        mo.make(id_of(name), **plain(name, given)), skip=2
    )
    skipping.reset(seed=0)
    assert skipping.step(skipping.action_space.sample())[1].shape == (2,)
    many = mo.wrappers.vector.MOSyncVectorEnv(
        [lambda: mo.make(id_of(name), **plain(name, given))] * 2
    )
    own = plain_envs.make_vec(id_of(name), 2, **given)
    assert (own.unwrapped.reward_dim, own.unwrapped.reward_space) == (2, many.reward_space)
    many.reset(seed=0)
    own.reset(seed=0)
    ends = 0
    while ends < 3:  # as its loop over single ones, which keeps float32
        actions = many.action_space.sample()
        theirs, ours = many.step(actions), own.step(actions)
        assert theirs[1].shape == ours[1].shape == (2, 2)
        np.testing.assert_allclose(theirs[1], ours[1], rtol=1e-6)
        assert theirs[2].tolist() == ours[2].tolist()
        ends += int(ours[2].sum())


# --- Gymnasium's own tools ------------------------------------------------------------------------

WITHOUT_MATPLOTLIB = """
import sys, warnings


class Missing:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Missing)
warnings.simplefilter("error")
import gymnasium, hpcgym
from gymnasium.utils.env_checker import check_env

given = {"workload": "lublin:jobs=60,processors=32,seed=0", "jobs": 12, "window": 6}
env = gymnasium.make("hpcgym/JobSelection-v2", render_mode="ansi", **given)
check_env(env.unwrapped)
print(env.metadata["render_modes"])
warnings.simplefilter("ignore")  # Gymnasium says that it does not know the mode
try:
    gymnasium.make("hpcgym/JobSelection-v2", render_mode="rgb_array", **given)
except gymnasium.error.DependencyNotInstalled as error:
    print(error)
"""


def test_environments_are_checked_and_made_without_matplotlib() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_MATPLOTLIB], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines() == [
        "['ansi']",
        f"render_mode 'rgb_array' needs matplotlib: {installing('report')}",
    ]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        *[(name, {}) for name in NAMES],
        ("MixedPolicy", {"policy_features": ("area", "wait")}),
        ("PowerCap", {"workload": "lublin:jobs=400", "cluster": None, "hours": (7, 21)}),
    ],
)
def test_a_description_goes_through_json(name: str, more: dict[str, Any]) -> None:
    """What it says makes the same environment; JSON has lists in the place of tuples."""
    given = plain(name, arguments_of(name) | more)
    env = gymnasium.make(id_of(name), **given)
    assert env.spec is not None
    assert json.loads(env.spec.to_json())["kwargs"] == json.loads(json.dumps(given))
    again = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    env.action_space.seed(0)
    assert_same(again.reset(seed=3), env.reset(seed=3))
    ended = False
    while not ended:
        action = env.action_space.sample()
        step = env.step(action)
        assert_same(again.step(action), step)
        ended = step[2]
