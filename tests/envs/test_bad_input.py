"""A mistake ends in an error that names the argument, or in the documented fallback."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import BUSY, LIMITED, NAMES, SINGLE, VECTOR, assert_same, label, play, random_acts

from hpcgym import Cluster, HpcgymError, Workload

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
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(action)
    play(env, random_acts(env.action_space, 0))
    with pytest.raises(gymnasium.error.ResetNeeded):
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
