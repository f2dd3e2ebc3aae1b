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
from mistakes import mistakes_of
from predictors import Told

from hpcgym import Cluster, HpcgymError, Workload, load_workload
from hpcgym.baselines import find_baseline
from hpcgym.envs import JobSelection
from hpcgym.errors import WorkloadError
from hpcgym.machine import NodeGroup, NodePower
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.study import evaluate
from hpcgym.workload.codes import with_codes

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")

# --- Arguments that cannot be ---------------------------------------------------------------------

NAN = float("nan")


def usual(name: str) -> dict[str, Any]:
    """Arguments that an environment takes."""
    if name == "CoSchedule":
        return {"workload": SIXTEEN, "cluster": SHARED_NODES, "jobs": 10}
    return {"workload": CROWD if name == "Backfill" else BUSY, "jobs": 20}


def assert_refused(name: str, arguments: dict[str, Any], message: str) -> None:
    """By the single and the vector environment, in one line."""
    for classes in (SINGLE, VECTOR):
        with pytest.raises((HpcgymError, WorkloadError), match=message) as caught:
            classes[name](**usual(name) | arguments)
        assert "\n" not in str(caught.value)


#: Values that an argument cannot have; errors name it.
BAD: dict[str, dict[str, list[Any]]] = {
    "JobSelection": {
        "episodes": ["days"], "jobs": [0, 2.5], "part": ["validation"], "train_share": [1.5],
        "arrivals": ["go on", "continue"], "warmup": ["a week"], "sampler": ["hardest"],
        "backfill": ["conservative", None, np.array(["easy", "none"])],
        "correction": ["never"], "passes": ["per-second"], "observation": ["image", np.zeros(2)],
        "reward": ["slowdown", {"bsld": NAN}, {"bsld": 1e308}, {}, {"speed": 1.0}, 3, [],
                   ["bsld", "speed"], [["bsld"]], "wait/easy", "log_energy", "throughput"],
        "window": [0, 2.0, True, "both", "split:1"], "processors": [0, 3], "cluster": [6.4],
        "features": [["speed"], [], "wait", [["wait"]], {"mine": 3}, ["wait", "wait"],
                     ["speed=2"], ["queue="], {"mine": lambda jobs: np.zeros(3)},
                     {"mine": lambda jobs: jobs.requested},
                     {"mine": lambda jobs: np.full(len(jobs.requested), NAN)}],
        "reservation": ["never", None, np.zeros(2)], "paid": ["later"], "skip_forced": [1],
        "shutdown_action": [1],
    },
    "MixedPolicy": {
        "interval": ["fortnight", 0, 1.5, 2**63, "0h"], "scale": ["wide"],
        "policy_features": [(), "wait", [["wait"]], ("wait", "speed"), ("wait", "wait")],
    },
    "PowerCap": {
        "controls": ["power", ["power", "speed"], ["power", "power"], []], "share": [-0.1, "much"],
        "policy_features": [["speed"], max], "interval": ["pass", "fortnight"], "power": ["half"],
        "limits": [[3], 0.6], "backfill": ["conservative"], "jobs": [0], "reward": ["slowdown"],
        "hours": [(20, 8), (8, 25), (8,), "day", (8.0, 20), None, 8],
    },
    "EnergyBudget": {"period": [0, 1.5, "hour"], "share": [-0.1], "allocation": ["best-fit"]},
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
    assert_refused(name, {argument: value}, argument)


UNLIKE = Cluster(groups=(NodeGroup("a", 32, {"core": 1}, POWER),
                         NodeGroup("b", 32, {"core": 2}, POWER)))  # fmt: skip
POWERED = Cluster(groups=(NodeGroup("thin", 8, {"core": 8}, NodePower(100, 200)),))
PLAIN = Cluster(groups=(NodeGroup("plain", 16, {"core": 2}),))
NO_POWER = {"cluster": Cluster(64, busy_power_w=0.0)}
MEASURED = {"workload": SMALL.with_columns(power_w=np.full(len(SMALL), 5.0))}
ONE_CORE = Cluster(groups=(NodeGroup("n", 4, {"core": 1}, NodePower(10.0, (50.0,))),))
OTHER = NodeGroup("other", 4, {"core": 4}, POWER)
QUOTA = {"workload": four_jobs(), "jobs": 4, "quota": "user:jobs=1"}
AFTER = {"workload": chained(80), "dependencies": "after"}
STOPS = {"workload": stopping(60), "preemption": "queue:2>3"}
ON = {"workload": EURORA, "cluster": "eurora"}
PART = {"workload": TINY.extract(100), "episodes": "whole"}
LONG = load_workload("lublin:jobs=3000,processors=32,seed=2")


#: Values that do not go together.
TOGETHER: list[tuple[str, dict[str, Any], str]] = [
    ("JobSelection", {"processors": 64, "cluster": Cluster(64)}, "either cluster or processors"),
    ("JobSelection", {"episodes": "whole", "start": "warm"}, "nothing comes before"),
    ("JobSelection", {"start": "sfa"}, "unknown scheduler"),
    ("JobSelection", {"reward": "bsld/eazy"}, "unknown scheduler"),
    ("JobSelection", {"sampler": "hard", "episodes": "whole"}, "'whole' are a single one"),
    ("JobSelection", {"sampler": "filtered", "episodes": "stream"}, "'stream' are a single one"),
    ("QueueOrdering", {**NO_POWER, "backfill_order": "energy-fairshare"}, "without power there is"),
    ("MixedPolicy", {**NO_POWER, "policy_features": ["energy_fairshare"]}, "without power there"),
    *[(name, {rule: estimate}, f"^{rule}=.* and environments do not go together: no Python runs")
      for name in NAMES for rule in ("estimate", "policy_estimate")
      for estimate in ("data-driven", Told(lambda x: 1.0))],
    *[(name, {"workload": LONG, "episodes": "weeks", "policy_estimate": LONG.run_time},
       "policy_estimate: predictions of one's own are for all") for name in NAMES],
    # rules of a site
    ("JobSelection", {**QUOTA, "hold": 0.1}, "hold and quota do not go together"),
    ("JobSelection", {**QUOTA, "reservation": "kept"}, "^reservation='kept' does not go"),
    ("JobSelection", {**QUOTA, "start": "conservative", "arrivals": "stop"},
     "backfill='conservative' and quota='user:jobs=1' do not go together"),
    ("JobSelection", {**QUOTA, "shutdown_action": True}, "only where a job may"),
    ("JobSelection", {"backfill": "slurm"}, "^backfill='slurm' and environments that ask for one"),
    ("JobSelection", {**QUOTA, "threshold": 60}, "^threshold does not go with quota"),
    ("JobSelection", {"passes": "per-event", "shutdown_action": True}, "passes='per-event'"),
    ("JobSelection", STOPS, "one job after the other"),
    ("QueueOrdering", {**STOPS, "warmup": "1d"}, "starts that are final"),
    ("MixedPolicy", {**STOPS, "start": "easy"}, "starts that are final"),
    ("QueueOrdering", {**AFTER, **STOPS}, "do not go together in environments"),
    ("MixedPolicy", {**STOPS, "quota": "user:submitted=9"}, "do not go together"),
    ("QueueOrdering", {**AFTER, "hold": 0.1}, "^hold and dependencies='after' do not go together"),
    ("QueueOrdering", {**STOPS, "reward": len}, "no start is final|vector environments take"),
    ("QueueOrdering", {**STOPS, "cluster": POWERED, "reward": "energy"}, "no start is final"),
    ("JobSelection", {**AFTER, "start": "warm"}, "start='warm' does not go with dependencies="),
    ("JobSelection", {**AFTER, "warmup": "1h"}, "not go with dependencies='after': they go by sub"),
    ("JobSelection", {**AFTER, "episodes": "stream"}, "^episodes='stream' does not go with depend"),
    ("JobSelection", {**AFTER, "reservation": "kept"}, "^reservation='kept' does not go with"),
    ("MixedPolicy", {**AFTER, "interval": 5}, "interval=5 does not go with dependencies='after'"),
    ("MixedPolicy", {**AFTER, "policy_features": ("area", "f3")}, "'f3' looks at when the log"),
    # nodes
    ("JobSelection", {**ON, "passes": "per-event"}, "passes='per-event' and a machine of nodes"),
    ("JobSelection", {**ON, "shutdown_action": True}, "shutdown_action"),
    ("JobSelection", {"cluster": FOUR, "shutdown_action": True}, "shutdown_action"),
    ("JobSelection", {"cluster": ASLEEP, "allocation": "best-fit"}, "^allocation: with nodes of t"),
    ("JobSelection", {"cluster": ASLEEP, "passes": "per-event"}, "^passes='per-event' and .* do"),
    ("JobSelection", {"cluster": ASLEEP, "reward": "max_wait"}, "^reward 'max_wait' does not go"),
    ("JobSelection", {"cluster": Cluster(groups=(*ASLEEP.groups, OTHER), shutdown_after_s=1)},
     "nodes that are all alike, but groups 'node' and 'other' differ"),
    ("JobSelection", {"cluster": PLAIN, "allocation": "contiguous"},
     "^with nodes of their own for jobs .* and group 'plain' has no power; give it one: power="),
    *[("MixedPolicy", {**MEASURED, "cluster": cluster, "reward": {"bsld": 1, "energy": 0.1}},
       "power_w, count only where jobs have nodes") for cluster in (MIXED, None)],
    # limits
    ("EnergyBudget", {"reward": "max_wait"}, "^reward 'max_wait' does not go with nodes"),
    ("EnergyBudget", {"reward": "bsld/easy"}, "^reward: what is divided by that of a sch"),
    ("PowerCap", {"limits": [EnergyBudget(1, 0, 9), EnergyBudget(1, 8, 20)]}, "must not overlap"),
    ("PowerCap", {"estimate": "data-driven"}, "estimate='data-driven' and environments"),
    ("PowerCap", {"cluster": Cluster(64)}, "machines with nodes"),
    ("PowerCap", {"cluster": UNLIKE}, "all alike"),
    ("EnergyBudget", {"cluster": Cluster(groups=(NodeGroup("a", 64, {"core": 1}),))},
     "need the power of nodes"),
    ("PowerCap", {"passes": "per-event"}, "per-event"),
    *[(name, argument, "^start, warmup, arrivals and horizon .* go with")
      for name in (*LIMITED, "CoSchedule")
      for argument in ({"start": "warm"}, {"horizon": "1d"}, {"warmup": 5})],
    # nodes that jobs share
    ("CoSchedule", {"allocation": "part:13"}, "have no 13 parts"),
    ("CoSchedule", {"allocation": "contiguous"}, "allocation: with speedups it is compact"),
    ("CoSchedule", {"cluster": Cluster(256)}, "instead of 256 processors give nodes"),
    ("CoSchedule", {"cluster": with_files()["cluster"]}, "says nothing without what codes read"),
    ("CoSchedule", {"estimate": "ave2"}, "estimate='ave2' and speedups of jobs"),
    # extracts
    ("QueueOrdering", {**PART, "episodes": "windows"},
     r"^episodes='windows' begin with an empty machine, and tiny from 100 with the jobs that run at"
     r" 100 s: use episodes='whole', or windows of the whole trace$"),
    ("QueueOrdering", {**PART, "episodes": "weeks"}, "^episodes='weeks' begin with an empty mac"),
    ("QueueOrdering", {**PART, "part": "test"},
     "^part='test': an episode of tiny from 100 begins with all jobs that run or wait at 100 s"),
    ("QueueOrdering", {**PART, "part": "train"}, "^part='train': an episode .*, rows 0:4$"),
    ("QueueOrdering", {**PART, "workload": TINY.take(slice(0, 2), name="both").extract(100)},
     "^part='all': all its jobs run at 100 s, when both from"),
    ("QueueOrdering", {**PART, "warmup": "1h"}, "are for whole traces: tiny from 100 is an ext"),
    ("JobSelection", {**PART, "shutdown_action": True},
     "^shutdown_action and tiny from 100, which begins"),
    ("QueueOrdering", {**PART, "cluster": Cluster(4, shutdown_after_s=5)}, "do not go together"),
    # whatever the episodes: no kind of them would do
    *[("PowerCap", {**PART, "cluster": ONE_CORE, "episodes": kind}, "go together: .*leave the extr")
      for kind in ("whole", "windows")],
    ("CoSchedule", {**PART, "workload": with_codes(TINY, ["code-1"] * 5).extract(100),
                    "cluster": ONE_CORE}, "do not go together: .*leave the extract out"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments", "message"), TOGETHER, ids=label)
def test_what_does_not_go_together(name: str, arguments: dict[str, Any], message: str) -> None:
    assert_refused(name, arguments, message)


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


def test_an_unknown_reward_names_all() -> None:
    with pytest.raises(HpcgymError, match="did you mean 'log_bsld'") as caught:
        SINGLE["JobSelection"](BUSY, reward="logbsld")
    for name in ("max_wait", "p99_wait", "log_wait", "bsld/NAME of a scheduler"):
        assert name in str(caught.value)


@pytest.mark.parametrize("name", [*NAMES, *LIMITED])
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


def test_a_whole_workload_needs_an_empty_start() -> None:
    make: dict[str, Any] = {"workload": "lublin:jobs=200,processors=16", "episodes": "whole"}
    with pytest.raises(HpcgymError, match="give start='empty'"):
        JobSelection(**make, start="warm")
    gives_way = JobSelection(**make).episodes
    assert (gives_way.around["start"], gives_way.around["horizon"]) == ("empty", None)
    assert (gives_way.part, gives_way.longest) == ("all", 200)


# --- Resets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"slice": "week 3"}, r"options\['slice'\].*week 3"),
        ({"slice": None}, r"options\['slice'\]"),
        ({"start": 0}, "'start' and 'jobs'"),
        ({"start": 0, "jobs": 21}, "21 jobs"),
        ({"start": 290, "jobs": 20}, "290"),
        ({"begin": 0}, "begin"),
        (3, "options must be a dict, not 3"),
    ],
    ids=label,
)
def test_options_of_reset(options: Any, words: str) -> None:
    for env in (SINGLE["JobSelection"](BUSY, jobs=20), VECTOR["JobSelection"](2, BUSY, jobs=20)):
        with pytest.raises(HpcgymError, match=words):
            env.reset(options=options)
        env.reset(seed=1)
        env.step(env.action_space.sample())


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


INDICES = ("JobSelection", *FOLLOWING, "CoSchedule")
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


@pytest.mark.parametrize("name", [name for name in INDICES if name != "Inspector"])
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


def test_who_cannot_be_asked() -> None:
    """Dispatchers know nothing of jobs that share nodes, of nodes of their own, and of quotas."""
    for name, given, message in (
        ("CoSchedule", {}, "dispatchers know nothing of jobs that share nodes"),
        ("JobSelection", {"cluster": ASLEEP}, "^pass_view: where jobs have nodes of their own"),
    ):
        env = SINGLE[name](**usual(name) | given)
        env.reset(seed=0)
        with pytest.raises(HpcgymError, match=message):
            env.pass_view()
    env = SINGLE["JobSelection"](**whole(four_jobs(), backfill="none", quota="user:jobs=1"))
    env.reset()
    with pytest.raises(HpcgymError, match="expert 'prb' is not told of quotas"):
        find_baseline("prb").begin(env)


test_mistakes = mistakes_of(globals(), CHASSIS, LOADED, PowerCap, evaluate)
