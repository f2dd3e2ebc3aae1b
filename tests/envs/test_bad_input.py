"""A mistake ends in an error that names the argument, or in the documented fallback."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import (
    BUSY,
    CHASSIS,
    LIMITED,
    LOADED,
    NAMES,
    POWER,
    SINGLE,
    VECTOR,
    assert_same,
    label,
    play,
    random_acts,
)

from hpcgym import Cluster, HpcgymError, Workload
from hpcgym.cluster import NodeGroup
from hpcgym.envs import any_version
from hpcgym.envs.power_limits import PowerCapEnv
from hpcgym.scheduler.limits import EnergyBudget

ids = pytest.mark.parametrize("name", [*NAMES, *LIMITED])

BAD: list[tuple[str, dict[str, Any]]] = [
    ("episodes", {"episodes": "days"}),
    ("jobs", {"jobs": 0}),
    ("jobs", {"jobs": 2.5}),
    ("part", {"part": "validation"}),
    ("train_share", {"train_share": 1.5}),
    ("backfill", {"backfill": "conservative"}),
    ("backfill", {"backfill": None}),
    ("backfill", {"backfill": np.array(["easy", "none"])}),
    ("backfill_order", {"backfill_order": "shortest"}),
    ("backfill_order", {"backfill_order": (1, 2)}),
    ("estimate", {"estimate": "oracle"}),
    ("estimate", {"estimate": [1.0, 2.0]}),
    ("correction", {"correction": "never"}),
    ("passes", {"passes": "per-second"}),
    ("reward", {"reward": "slowdown"}),
    ("reward", {"reward": {"bsld": float("nan")}}),
    ("reward", {"reward": {"bsld": 1e308}}),
    ("reward", {"reward": {}}),
    ("reward", {"reward": {"speed": 1.0}}),
    ("reward", {"reward": ["bsld", "speed"]}),
    ("reward", {"reward": 3}),
    ("reward", {"reward": []}),
    ("reward", {"reward": [["bsld"]]}),
    ("window", {"window": 0}),
    ("window", {"window": 2.0}),
    ("window", {"window": True}),
    ("features", {"features": ["speed"]}),
    ("features", {"features": []}),
    ("features", {"features": "wait"}),
    ("features", {"features": [["wait"]]}),
    ("features", {"features": {"mine": 3}}),
    ("features", {"features": {"mine": lambda jobs: np.zeros(3)}}),
    ("features", {"features": {"mine": lambda jobs: jobs.requested}}),
    ("features", {"features": {"mine": lambda jobs: np.full(len(jobs.requested), np.nan)}}),
    ("features", {"features": ["wait", "wait"]}),
    ("observation", {"observation": "image"}),
    ("observation", {"observation": np.zeros(2)}),
    ("processors", {"processors": 0}),
    ("cluster", {"processors": 64, "cluster": Cluster(64)}),
    ("cluster", {"cluster": 64}),
    ("processors", {"processors": 3}),  # too few for some job
]


@pytest.mark.parametrize(("word", "arguments"), BAD, ids=label)
@ids
def test_arguments(name: str, word: str, arguments: dict[str, Any]) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match=word):
            classes[name](workload=BUSY, **{"jobs": 20, **arguments})


@ids
def test_unknown_arguments(name: str) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(TypeError, match="speed"):
            classes[name](workload=BUSY, speed=3)
        with pytest.raises(gymnasium.error.Error, match="render_mode"):
            classes[name](workload=BUSY, render_mode="human")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("JobSelection", {"reservation": "never"}),
        ("JobSelection", {"reservation": None}),
        ("JobSelection", {"reservation": np.zeros(2)}),
        ("MixedPolicy", {"interval": "fortnight"}),
        ("MixedPolicy", {"interval": 0}),
        ("MixedPolicy", {"interval": 1.5}),
        ("MixedPolicy", {"interval": 2**63}),
        ("MixedPolicy", {"interval": "0h"}),
        ("MixedPolicy", {"policy_features": ()}),
        ("MixedPolicy", {"policy_features": "wait"}),
        ("MixedPolicy", {"policy_features": [["wait"]]}),
        ("MixedPolicy", {"policy_features": ("wait", "speed")}),
        ("MixedPolicy", {"policy_features": ("wait", "wait")}),
        ("JobSelection", {"reward": "wait/easy"}),
        ("JobSelection", {"reward": "log_energy"}),
        ("JobSelection", {"paid": "later"}),
        ("JobSelection", {"window": "both"}),
        ("JobSelection", {"window": "split:1"}),
        ("JobSelection", {"skip_forced": 1}),
        ("JobSelection", {"arrivals": "go on"}),
        ("JobSelection", {"warmup": "a week"}),
    ],
    ids=label,
)
def test_arguments_of_one_environment(name: str, arguments: dict[str, Any]) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match=next(iter(arguments))):
            classes[name](workload=BUSY, jobs=20, **arguments)


@pytest.mark.parametrize("number", [0, -1, 2.5, "3"])
def test_number_of_environments(number: Any) -> None:
    with pytest.raises(HpcgymError, match="num_envs"):
        VECTOR["JobSelection"](number, BUSY)


def test_arguments_of_vectors() -> None:
    with pytest.raises(HpcgymError, match="autoreset_mode"):
        VECTOR["JobSelection"](2, BUSY, autoreset_mode="sometimes")
    for reward in (["bsld", "wait"], lambda view: 0.0):
        with pytest.raises(HpcgymError, match=r"reward.*sync"):
            VECTOR["JobSelection"](2, BUSY, reward=reward)


@ids
def test_a_workload_shorter_than_an_episode(name: str) -> None:
    columns = ("submit_time", "run_time", "requested_time", "requested_processors")
    few = Workload.from_columns({name: [1, 1, 2] for name in columns}, processors=2)
    with pytest.raises(HpcgymError, match=r"jobs=256.*jobs=3"):
        SINGLE[name](few)
    env = SINGLE[name](few, jobs=3)
    play(env, random_acts(env.action_space, 0))
    with pytest.raises(HpcgymError, match="week"):
        SINGLE[name](few, episodes="weeks")
    with pytest.raises(HpcgymError, match="jobs"):
        SINGLE[name](Workload.from_columns({"submit_time": []}, processors=2))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slice": "week 3"}, r"options\['slice'\].*week 3"),
        ({"slice": None}, r"options\['slice'\]"),
        ({"start": 0}, "'start' and 'jobs'"),
        ({"start": 0, "jobs": 21}, "21 jobs"),
        ({"start": 290, "jobs": 20}, "290"),
        ({"start": -1, "jobs": 20}, r"options\['start'\]"),
        ({"start": 0, "jobs": 0}, r"options\['jobs'\]"),
        ({"begin": 0}, "begin"),
        (3, "options must be a dict, not 3"),
        ({"start": 0, "jobs": 5, "slice": "rows 0:5"}, "slice"),
    ],
    ids=label,
)
@ids
def test_options_of_reset(name: str, options: Any, words: str) -> None:
    for env in (SINGLE[name](BUSY, jobs=20), VECTOR[name](2, BUSY, jobs=20)):
        with pytest.raises(HpcgymError, match=words):
            env.reset(options=options)
        env.reset(seed=1)
        env.step(env.action_space.sample())


def test_a_mask_of_resets() -> None:
    env = VECTOR["JobSelection"](2, BUSY, jobs=20)
    for mask in ([True], [0, 1], np.ones(3, bool)):
        with pytest.raises(HpcgymError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})
    with pytest.raises(HpcgymError, match="seed"):
        env.reset(seed=[1, 2, 3])


# --- Actions ----------------------------------------------------------------------------------

NOT_INDICES = [-1, 9, 10**20, 0.5, 1.0, np.nan, None, "0", [0, 1], np.zeros(9), np.array([0.0])]


@pytest.mark.parametrize("action", NOT_INDICES, ids=label)
def test_no_index(action: Any) -> None:
    env = SINGLE["JobSelection"](BUSY, jobs=20, window=9)
    env.reset(seed=0)
    before = env.snapshot()
    with pytest.raises(HpcgymError, match="action must be an index from 0 to 8"):
        env.step(action)
    assert_same(env.snapshot().rows, before.rows)  # nothing has happened


@pytest.mark.parametrize(
    ("action", "index"),
    [(0, 0), (np.int32(2), 2), (np.array(2), 2), (np.array([2]), 2), (True, 1), (False, 0)],
    ids=label,
)
def test_forms_of_an_index(action: Any, index: int) -> None:
    seen = []
    for form in (action, index, (index + 1) % 3):
        env = SINGLE["JobSelection"](BUSY, jobs=100, window=9)
        _, info = env.reset(seed=0)
        while not info["action_mask"][:3].all():  # else each index is the first visible job
            *_, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
        seen.append(env.step(form))
    assert_same(*seen[:2])
    assert (seen[1][0]["jobs"] != seen[2][0]["jobs"]).any()  # else it would show nothing


def test_an_index_without_a_job_is_the_first_visible_one() -> None:
    outcomes = []
    for action in (0, 127):
        env = SINGLE["JobSelection"](BUSY, jobs=50)
        outcomes.append(play(env, lambda _, __, info, a=action: a, seed=3))
        assert (outcomes[-1][0].info["action_mask"][1:] == 0).any()
    assert_same(*outcomes)
    vector = VECTOR["JobSelection"](2, BUSY, jobs=50, autoreset_mode="Disabled")
    vector.reset(seed=3)
    rewards, ended = 0.0, False
    while not ended:
        _, reward, ends, _, _ = vector.step(np.array([127, 0]))
        rewards, ended = rewards + reward[0], bool(ends[0])
        if ends[1] and not ended:
            vector.reset(options={"reset_mask": np.array([False, True])})
    assert rewards == sum(step.reward for step in outcomes[0])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda action: action[:-1],
        lambda action: action[None],
        lambda action: None,
        lambda action: "scores",
        lambda action: [[1.0], [1.0, 2.0]],
        lambda action: action.astype(complex),
        lambda action: action.astype(object),
        lambda action: np.where(np.arange(action.size).reshape(action.shape) == 1, np.nan, action),
        lambda action: np.full_like(action, np.inf),
    ],
)
@pytest.mark.parametrize("name", ["QueueOrdering", "MixedPolicy", *LIMITED])
def test_no_numbers(name: str, spoil: Any) -> None:
    single, vector = SINGLE[name](BUSY, jobs=20, window=9), VECTOR[name](2, BUSY, jobs=20, window=9)
    for env, word in ((single, "action"), (vector, "actions")):
        env.reset(seed=0)
        with pytest.raises(HpcgymError, match=f"^{word} must be"):
            env.step(spoil(env.action_space.sample()))
        env.step(env.action_space.sample())


@pytest.mark.parametrize(
    "actions", [0, [0], [0, 1, 2], [0.0, 1.0], [0, 9], [-1, 0], None, [0, np.nan]], ids=label
)
def test_no_indices(actions: Any) -> None:
    env = VECTOR["JobSelection"](2, BUSY, jobs=20, window=9)
    env.reset(seed=0)
    with pytest.raises(HpcgymError, match="actions must be"):
        env.step(actions)


@pytest.mark.parametrize("name", ["QueueOrdering", "MixedPolicy"])
def test_numbers_beyond_the_space_are_taken_as_they_are(name: str) -> None:
    outcomes = []
    for factor in (1.0, 8.0):
        options = {"interval": 2} if name == "MixedPolicy" else {}
        env = SINGLE[name](BUSY, jobs=40, window=9, **options)
        acts = random_acts(env.action_space, 0)
        outcomes.append(play(env, lambda *a, f=factor, acts=acts: f * acts(*a), seed=0))
    assert_same(*outcomes)


# --- Order of calls ---------------------------------------------------------------------------


@ids
def test_steps_before_a_reset_and_after_the_end(name: str) -> None:
    env = SINGLE[name](BUSY, jobs=20)
    action = env.action_space.sample()
    with pytest.raises(gymnasium.error.ResetNeeded, match="no episode has begun"):
        env.step(action)
    play(env, random_acts(env.action_space, 0))
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode has ended"):
        env.step(action)
    env.reset()
    env.step(action)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@ids
def test_steps_of_a_vector_before_a_reset(name: str, mode: str) -> None:
    env = VECTOR[name](2, BUSY, jobs=20, autoreset_mode=mode)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(env.action_space.sample())
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(env.action_space.sample())


@ids
def test_a_window_larger_than_the_queue_and_the_episode(name: str) -> None:
    results = []
    for window in (20, 1000):
        options = {} if name in ("JobSelection", "QueueOrdering") else {"interval": 2}
        env = SINGLE[name](BUSY, jobs=20, window=window, **options)

        def act(_: int, __: Any, info: Any, env: Any = env) -> Any:
            if env.action_kind == "selection":
                return int(info["action_mask"].sum()) - 1
            env.action_space.seed(0)
            if env.action_kind in ("weights", "controls"):
                return env.action_space.sample()
            return np.linspace(-1, -1 + env.action_space.shape[0] / 1000, env.action_space.shape[0])

        steps = play(env, act, seed=4)
        assert env.observation_space.contains(steps[0].observation)
        results.append(env.result().start.tolist())
    assert results[0] == results[1]


# --- Under limits ----------------------------------------------------------------------------

limited = pytest.mark.parametrize("name", LIMITED)
UNLIKE = Cluster(groups=(NodeGroup("a", 32, {"core": 1}, POWER),
                         NodeGroup("b", 32, {"core": 2}, POWER)))  # fmt: skip
BAD_UNDER_LIMITS: list[tuple[str, dict[str, Any]]] = [
    ("controls", {"controls": "power"}),
    ("controls", {"controls": ["power", "speed"]}),
    ("controls", {"controls": ["power", "power"]}),
    ("controls and policy_features", {"controls": []}),
    ("policy_features", {"policy_features": ["speed"]}),
    ("policy_features", {"policy_features": max}),
    ("share", {"share": -0.1}),
    ("share", {"share": "much"}),
    ("interval: controls hold", {"interval": "pass"}),
    ("interval must be", {"interval": "fortnight"}),
    ("limits must be", {"limits": [3]}),
    ("limits must be", {"limits": 0.6}),
    ("periods must not overlap", {"limits": [EnergyBudget(1, 0, 9), EnergyBudget(1, 8, 20)]}),
    ("power", {"power": "half"}),
    ("estimate='data-driven' and environments", {"estimate": "data-driven"}),
    ("machines with nodes", {"cluster": Cluster(64)}),
    ("all alike", {"cluster": UNLIKE}),
    ("need the power of nodes", {"cluster": Cluster(groups=(NodeGroup("a", 64, {"core": 1}),))}),
    ("allocation", {"allocation": "best-fit"}),
    ("per-event", {"passes": "per-event"}),
    ("backfill", {"backfill": "conservative"}),
]


@pytest.mark.parametrize(("words", "arguments"), BAD_UNDER_LIMITS, ids=label)
@limited
def test_bad_arguments(name: str, words: str, arguments: dict[str, Any]) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match=words):
            classes[name](workload=BUSY, **{"jobs": 20, **arguments})


@pytest.mark.parametrize("hours", [(20, 8), (8, 25), (8,), "day", (8.0, 20), None, 8], ids=label)
def test_bad_hours(hours: Any) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match="hours must be two whole hours of a day"):
            classes["PowerCap"](workload=BUSY, jobs=20, hours=hours)


@pytest.mark.parametrize("period", [0, 1.5, "hour"], ids=label)
def test_bad_periods(period: Any) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(HpcgymError, match="period"):
            classes["EnergyBudget"](workload=BUSY, jobs=20, period=period)


@pytest.mark.parametrize("name", [*LIMITED, "CoSchedule"])
@pytest.mark.parametrize("argument", [{"start": "warm"}, {"horizon": "1d"}, {"warmup": 5}])
def test_what_is_around_episodes_is_not_known(name: str, argument: dict[str, Any]) -> None:
    with pytest.raises(HpcgymError, match=r"^start, warmup, arrivals and horizon .* go with"):
        SINGLE[name](jobs=50, **argument)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("EnergyBudget", {"reward": "max_wait"}, "^reward 'max_wait' does not go with nodes"),
        ("EnergyBudget", {"reward": "bsld/easy"}, "^reward: bsld/NAME does not go with limits"),
        ("CoSchedule", {"reward": "p99_wait"}, "unknown reward 'p99_wait'"),
        ("JobSelection", {"episodes": "whole", "start": "warm"}, "nothing comes before"),
        ("JobSelection", {"arrivals": "continue"}, "needs a horizon"),
        ("JobSelection", {"start": "sfa"}, "unknown scheduler"),
        ("JobSelection", {"reward": "bsld/eazy"}, "unknown scheduler"),
        *[
            (name, {"cluster": Cluster(64, busy_power_w=0.0), **more}, "without power there is no")
            for name, more in (
                ("QueueOrdering", {"backfill_order": "energy-fairshare"}),
                ("MixedPolicy", {"policy_features": ["energy_fairshare"]}),
            )
        ],
    ],
    ids=label,
)
def test_what_does_not_go_together(name: str, arguments: dict[str, Any], message: str) -> None:
    workload = {} if name == "CoSchedule" else {"workload": BUSY}
    with pytest.raises(HpcgymError, match=message):
        SINGLE[name](**workload, **arguments)


def test_a_warm_beginning_is_known_of_slices_alone() -> None:
    env = SINGLE["JobSelection"](BUSY, jobs=20, start="warm")
    with pytest.raises(HpcgymError, match="known for slices alone"):
        env.reset(options={"start": 5, "jobs": 10})


def test_limits_of_a_function_that_are_none() -> None:
    env = PowerCapEnv(BUSY, jobs=20, limits=lambda workload: [0.6])
    with pytest.raises(HpcgymError, match="limits must be PowerCap and EnergyBudget"):
        env.reset(seed=0)
    many = EnergyBudget(1e9, 0, 10, shutdown=True)
    made = [VECTOR["PowerCap"], PowerCapEnv]
    for cls in made:  # a list says beforehand that nodes will be switched off
        cls(workload=BUSY, jobs=20, controls=["power"], limits=[many]).reset(seed=0)


def test_how_nodes_are_reckoned_is_said_of_nodes_that_are_switched() -> None:
    blind = EnergyBudget(1e9, 0, 10, off_as_idle=True)
    for cls in [VECTOR["PowerCap"], PowerCapEnv]:
        with pytest.raises(HpcgymError, match="budget: off_as_idle is about nodes that are off"):
            cls(workload=BUSY, jobs=20, controls=["power"], limits=[blind]).reset(seed=0)
        cls(workload=BUSY, jobs=20, controls=["nodes"], limits=[blind]).reset(seed=0)


NOT_NUMBERS = [[1.0, 1.0], np.ones((1, 3)), [np.nan, 1.0, 1.0], [np.inf] * 3, "all", None]


def saved(env: Any) -> Any:
    """What snapshots have: arrays, and what simulations know beside them."""
    some = range(len(env.simulations.names))
    return [(env.simulations.written(e), env.simulations.simulation(e).saved()) for e in some]


@pytest.mark.parametrize("action", NOT_NUMBERS, ids=label)
@limited
def test_bad_actions(name: str, action: Any) -> None:
    for env in (SINGLE[name](BUSY, jobs=20, window=9), VECTOR[name](2, BUSY, jobs=20, window=9)):
        env.reset(seed=0)
        before = saved(env)
        with pytest.raises(HpcgymError, match=r"^actions? must be"):
            env.step(action)
        assert_same(saved(env), before)  # nothing has happened


def test_numbers_beyond_the_space_count_as_its_ends() -> None:
    seen = []
    for factor in (1.0, 7.0):
        env = PowerCapEnv(LOADED, cluster=CHASSIS, jobs=30)
        ends = np.array([[1, -1, 1], [-1, 1, -1], [1, 1, -1]], np.float32)
        seen.append(play(env, lambda n, *_, f=factor, e=ends: f * e[n % 3], seed=0))
    assert_same(*seen)


# --- What is said ---------------------------------------------------------------------------

JOBS = "lublin:jobs=200,processors=16"


def made(name: str = "JobSelection-v0", **arguments: Any) -> Any:
    with any_version():
        return gymnasium.make(f"hpcgym/{name}", workload=JOBS, **arguments).unwrapped


def test_an_unknown_reward_names_all() -> None:
    with pytest.raises(HpcgymError, match="did you mean 'log_bsld'") as caught:
        made(reward="logbsld")
    for name in ("max_wait", "p99_wait", "log_wait", "bsld/NAME of a scheduler"):
        assert name in str(caught.value)


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
