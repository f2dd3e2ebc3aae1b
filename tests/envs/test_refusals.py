"""A mistake ends in an error that names the argument, or in the documented fallback."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import numpy as np
import pytest
from driving import (
    ASLEEP,
    BUSY,
    CHASSIS,
    CROWD,
    EURORA,
    EVERY,
    FOLLOWING,
    FOUR,
    LIMITED,
    LOADED,
    MIXED,
    NAMES,
    POWER,
    SHARED_NODES,
    SINGLE,
    SIXTEEN,
    SMALL,
    TINY,
    VECTOR,
    assert_same,
    chained,
    four_jobs,
    label,
    play,
    random_acts,
    stopping,
    whole,
    with_files,
)
from mistakes import mistakes_of, why_not

from hpcgym import Cluster, HpcgymError, Workload, load_workload
from hpcgym.baselines import find_baseline
from hpcgym.envs import JobSelection
from hpcgym.machine import NodeGroup, NodePower
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.study import evaluate

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")

# --- Arguments that cannot be ---------------------------------------------------------------------

NAN = float("nan")


def usual(name: str) -> dict[str, Any]:
    """Arguments that an environment takes."""
    if name == "CoSchedule":
        return {"workload": SIXTEEN, "cluster": SHARED_NODES, "jobs": 10}
    return {"workload": CROWD if name == "Backfill" else BUSY, "jobs": 20}


def made(name: str, **given: Any) -> None:
    """Make an environment, and several in one, which are refused for the same."""
    arguments = usual(name) | given
    why = why_not(SINGLE[name], **arguments)
    assert why == why_not(VECTOR[name], **arguments)
    if why:
        raise HpcgymError(why)


#: Values that an argument cannot have; errors name it.
BAD: dict[str, dict[str, list[Any]]] = {
    "JobSelection": {
        "episodes": ["days"], "jobs": [0], "part": ["validation"], "train_share": [1.5],
        "arrivals": ["go on", "continue"], "warmup": ["a week"], "sampler": ["hardest"],
        "backfill": ["conservative", np.array(["easy", "none"])],
        "correction": ["never"], "passes": ["per-second"], "observation": ["image"],
        "reward": ["slowdown", {"bsld": NAN}, {"bsld": 1e308}, {}, {"speed": 1.0}, 3, [],
                   ["bsld", "speed"], [["bsld"]], "wait/easy", "log_energy", "throughput"],
        "window": [0, "both", "split:1"], "processors": [0, 3], "cluster": [6.4],
        "features": [["speed"], [], "wait", [["wait"]], {"mine": 3}, ["wait", "wait"],
                     ["speed=2"], ["queue="], {"mine": lambda jobs: np.zeros(3)},
                     {"mine": lambda jobs: jobs.requested},
                     {"mine": lambda jobs: np.full(len(jobs.requested), NAN)}],
        "reservation": ["never"], "paid": ["later"], "skip_forced": [1],
        "shutdown_action": [1],
    },
    "MixedPolicy": {
        "interval": ["fortnight", 0, 2**63, "0h"], "scale": ["wide"],
        "policy_features": [(), "wait", [["wait"]], ("wait", "speed"), ("wait", "wait")],
    },
    "PowerCap": {
        "controls": ["power", ["power", "speed"], ["power", "power"], []], "share": [-0.1, "much"],
        "policy_features": [["speed"], max], "interval": ["pass", "fortnight"], "power": ["half"],
        "limits": [[3], 0.6], "backfill": ["conservative"], "reward": ["slowdown"],
        "hours": [(20, 8), (8, 25), (8,), "day", 8],
    },
    "EnergyBudget": {"period": [0, "hour"], "share": [-0.1], "allocation": ["best-fit"]},
    "CoSchedule": {
        "action": ["pairs"], "neighbours": [0], "window": [True], "observation": ["image"],
        "reward": ["makespan", "p99_wait"], "partners": ["worst"], "part": ["validation"],
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        (name, argument, bad)
        for name, of in BAD.items()
        for argument, some in of.items()
        for bad in some
    ],
    ids=label,
)
def test_values(name: str, argument: str, value: Any) -> None:
    with pytest.raises(HpcgymError, match=argument):
        made(name, **{argument: value})


UNLIKE = Cluster(groups=(NodeGroup("a", 32, {"core": 1}, POWER),
                         NodeGroup("b", 32, {"core": 2}, POWER)))  # fmt: skip
POWERED = Cluster(groups=(NodeGroup("thin", 8, {"core": 8}, NodePower(100, 200)),))
PLAIN = Cluster(groups=(NodeGroup("plain", 16, {"core": 2}),))
NO_POWER = {"cluster": Cluster(64, busy_power_w=0.0)}
MEASURED = {"workload": SMALL.with_columns(power_w=np.full(len(SMALL), 5.0))}
OTHER = NodeGroup("other", 4, {"core": 4}, POWER)
QUOTA = {"workload": four_jobs(), "jobs": 4, "quota": "user:jobs=1"}
AFTER = {"workload": chained(80), "dependencies": "after"}
STOPS = {"workload": stopping(60), "preemption": "queue:2>3"}
ON = {"workload": EURORA, "cluster": "eurora"}
PART = {"workload": TINY.extract(100), "episodes": "whole"}
LONG = load_workload("lublin:jobs=3000,processors=32,seed=2")


@pytest.mark.parametrize("name", EVERY)
def test_arguments_that_nobody_knows_are_refused_in_pythons_words(name: str) -> None:
    for classes in (SINGLE, VECTOR):
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'"):
            classes[name](**usual(name), frameskip=1)
        with pytest.raises(TypeError, match="argument 'rewards'; did you mean 'reward'"):
            classes[name](**usual(name), rewards="bsld")
        with pytest.raises(gymnasium.error.Error, match="render_mode"):
            classes[name](**usual(name), render_mode="human")
    for rule in ("backfill", "quota", "maintenance", "preemption", "dependencies"):
        if name == "CoSchedule":
            with pytest.raises(TypeError, match=rule):
                SINGLE[name](**usual(name), **{rule: "none"})


COLUMNS = ("submit_time", "run_time", "requested_time", "requested_processors")
FEWEST = Workload.from_columns({name: [1, 1, 2] for name in COLUMNS}, processors=2)


@pytest.mark.parametrize("name", [*NAMES, *LIMITED])
def test_a_workload_shorter_than_an_episode(name: str) -> None:
    env = SINGLE[name](FEWEST, jobs=3)
    play(env, random_acts(env.action_space, 0))


def test_a_whole_workload_needs_an_empty_start() -> None:
    make: dict[str, Any] = {"workload": "lublin:jobs=200,processors=16", "episodes": "whole"}
    gives_way = JobSelection(**make).episodes
    assert (gives_way.around["start"], gives_way.around["horizon"]) == ("empty", None)
    assert (gives_way.part, gives_way.longest) == ("all", 200)


# --- Resets ---------------------------------------------------------------------------------------


def test_masks_and_seeds_of_resets() -> None:
    env = VECTOR["JobSelection"](3, BUSY, jobs=20)
    assert_same(env.reset(seed=np.arange(3))[0], env.reset(seed=[0, 1, 2])[0])


def test_limits_of_an_episode() -> None:
    """What functions give is looked at when an episode begins, and so is what nodes do then."""
    switching = EnergyBudget(1e9, 0, 10, shutdown=True)
    for make in (VECTOR["PowerCap"], SINGLE["PowerCap"]):
        # a list says beforehand that nodes will be switched off
        make(workload=BUSY, jobs=20, controls=["power"], limits=[switching]).reset(seed=0)


# --- Actions --------------------------------------------------------------------------------------


def saved(env: Any) -> Any:
    """What snapshots have: arrays, and what simulations know beside them."""
    some = range(len(env.simulations.names))
    return [(env.simulations.written(e), env.simulations.simulation(e).saved()) for e in some]


INDICES = ("JobSelection", *FOLLOWING, "CoSchedule", "Submit")
SPOILED = [
    lambda action: action[:-1],
    lambda action: action[None],
    lambda action: None,
    lambda action: "scores",
    lambda action: [[1.0], [1.0, 2.0]],
    lambda action: action.astype(complex),
    lambda action: action.astype(object),
    lambda action: np.where(np.arange(action.size).reshape(action.shape) == 1, np.nan, action),
    lambda action: np.full_like(action, np.inf),
]


@pytest.mark.parametrize("name", [name for name in EVERY if name not in INDICES])
def test_no_numbers(name: str) -> None:
    for env, word in ((SINGLE[name](BUSY, jobs=20), "action"), (VECTOR[name](2, BUSY), "actions")):
        env.reset(seed=0)
        before = saved(env)
        for spoil in SPOILED:
            with pytest.raises(HpcgymError, match=f"^{word} must be"):
                env.step(spoil(env.action_space.sample()))
        assert_same(saved(env), before)  # nothing has happened
        env.step(env.action_space.sample())


@pytest.mark.parametrize("name", INDICES)
def test_no_index(name: str) -> None:
    env, many = SINGLE[name](**usual(name)), VECTOR[name](2, **usual(name))
    n = int(env.action_space.n)
    for either in (env, many):
        either.reset(seed=0)
    before = saved(env), saved(many)
    message = re.escape(f"action must be an index from 0 to {n - 1}, not")
    for action in (-1, n, 10**20, 0.5, 1.0, np.nan, None, "0", [0, 1], np.zeros(9), np.zeros(1)):
        with pytest.raises(HpcgymError, match=message) as caught:
            env.step(action)
        assert "\n" not in str(caught.value)  # no array is printed
    for actions in (0, [0], [0, 1, 2], [0.0, 1.0], [0, n], [-1, 0], None, [0, np.nan]):
        with pytest.raises(HpcgymError, match="actions must be"):
            many.step(actions)
    assert_same((saved(env), saved(many)), before)


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


@pytest.mark.parametrize("name", [name for name in INDICES if name not in ("Inspector", "Submit")])
def test_what_is_masked_stands_for_the_first_that_is_not(name: str) -> None:
    masked_env, other = SINGLE[name](**usual(name)), SINGLE[name](**usual(name))
    _, info = masked_env.reset(seed=3)
    other.reset(seed=3)
    rng, ended, masked = np.random.default_rng(0), False, 0
    while not ended:
        some = np.flatnonzero(info["action_mask"] == 0)
        first = int(np.flatnonzero(info["action_mask"])[0])
        *step, info = masked_env.step(int(rng.choice(some)) if some.size else first)
        masked += some.size
        assert_same([*step, info], list(other.step(first)))
        ended = step[2]
    assert masked > 0


@pytest.mark.parametrize("name", [name for name in EVERY if name not in INDICES])
def test_numbers_beyond_the_space(name: str) -> None:
    """Scores and weights are taken as they are, which changes no order; controls as the ends."""
    outcomes = []
    for factor in (1.0, 8.0):
        more = {"interval": 2} if name != "QueueOrdering" else {}
        env = SINGLE[name](BUSY, jobs=40, window=9, **more)
        acts = random_acts(env.action_space, 0)

        def act(*given: Any, f: float = factor, acts: Any = acts) -> Any:
            numbers = acts(*given)
            return f * (np.sign(numbers) if name in LIMITED else numbers)

        outcomes.append(play(env, act, seed=0))
    assert_same(*outcomes)


# --- Order of calls -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_steps_before_a_reset_and_after_the_end(name: str) -> None:
    env = SINGLE[name](**usual(name))
    for call in (env.step, env.snapshot):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call(*[env.action_space.sample()] * (call == env.step))
    play(env, random_acts(env.action_space, 0))
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode has ended"):
        env.step(env.action_space.sample())
    env.reset()
    env.step(env.action_space.sample())
    for mode in ("NextStep", "SameStep", "Disabled"):
        many = VECTOR[name](2, **usual(name), autoreset_mode=mode)
        for _ in range(2):
            with pytest.raises(gymnasium.error.ResetNeeded):
                many.step(many.action_space.sample())
            many.reset(options={"reset_mask": np.array([True, False])})


def begun(env: Any) -> Any:
    env.reset(seed=0)
    return env


test_mistakes = mistakes_of(
    globals(), ASLEEP, CHASSIS, FOUR, LOADED, MIXED, PowerCap, evaluate, find_baseline, whole,
    with_files,
)  # fmt: skip
