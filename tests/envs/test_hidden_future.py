"""Nothing is seen that an online scheduler could not know.

Run times of jobs that have not ended, and all there is to know of jobs not submitted yet,
are altered so that the past stays the same. Observations and infos must stay the same. A reward
is another matter: it is given when a job starts and holds its run time, as does
``info["reward_terms"]``; agents must not be shown them as observations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import assume, costly, given, settings
from drawing import strategies as st
from driving import NAMES, SINGLE, SLOW, Step, assert_same, go_on, play, visible_acts, whole
from strategies import workloads

from hpcgym.workload import Workload

SEEN = ("wait", "predicted", "policy_time", "expansion")
# often wrong within a few jobs
EAGER = "regression:over=absolute,under=squared,weight=small,eta=1,l2=0"
PREDICTED = {"backfill_order": "saf", "policy_estimate": EAGER, "features": SEEN}
ESTIMATES = st.sampled_from(
    [
        {"estimate": "requested"},
        {"estimate": "ave2"},
        {"estimate": "ave2", "correction": "incremental", "backfill_order": "sjbf"},
        {"estimate": "ave2", "correction": "recursive-doubling"},
        {"estimate": "ave2", "passes": "per-event"},
        {"estimate": "requested", "backfill": "none"},
        {**PREDICTED, "estimate": "ave3", "policy_estimate": "e-loss"},
        {**PREDICTED, "estimate": EAGER, "policy_estimate": "user-ratio"},
        {**PREDICTED, "estimate": "user-ratio", "policy_estimate": "typical-ratio"},
        {**PREDICTED, "estimate": "e-loss", "policy_estimate": EAGER, "passes": "per-event"},
        {**PREDICTED, "estimate": EAGER, "correction": "predicted-again"},
        {**PREDICTED, "estimate": "double-requested", "backfill_order": "lexp"},
    ]
)
INTERVALS = ("pass", "1h", 2, 3, "episode")


def altered(env: Any, now: int, seed: int, most_jobs: int, keeps_next: bool) -> Workload:
    """Return the jobs of an episode with another future, after ``now`` [s]."""
    rng = np.random.default_rng(seed)
    jobs, start = env.episode_workload, env.result().start
    n = int((jobs.submit_time <= now).sum())  # events of this second are known
    names = ("submit_time", "run_time", "requested_time", "requested_processors", "user_id")
    columns = {name: jobs.columns[name].tolist() for name in names}
    for row in range(n):
        requested = columns["requested_time"][row]
        run = min(columns["run_time"][row], requested)
        if start[row] < 0:
            columns["run_time"][row] = int(rng.integers(1, 2 * requested + 1))
        elif start[row] + run > now and start[row] + requested > now + 1:
            least = max(now + 1 - start[row], 1)  # it may wait for its nodes
            columns["run_time"][row] = int(rng.integers(least, 2 * requested + 1))
    later = columns["submit_time"][n:]
    # that submissions come next is what ended an interval of submissions: their time is known
    following = [time for time in later if time == later[0]] if keeps_next else []
    for values in columns.values():
        del values[n:]
    for k in range(len(later) or int(rng.integers(1, most_jobs + 1))):
        then = max(columns["submit_time"][-1], now) + int(rng.choice([1, 7, 600, 5000]))
        columns["submit_time"].append(following[k] if k < len(following) else then)
        columns["run_time"].append(int(rng.integers(1, 3000)))
        columns["requested_time"].append(int(rng.integers(1, 3000)))
        columns["requested_processors"].append(int(rng.integers(1, jobs.processors + 1)))
        columns["user_id"].append(int(rng.integers(-1, 3)))
    return Workload.from_columns(columns, processors=jobs.processors, name=jobs.name)


def known(steps: list[Step]) -> list[Any]:
    """Return what an agent may look at."""
    return [
        (s.observation, {k: v for k, v in s.info.items() if k != "reward_terms"}) for s in steps
    ]


def horizon(env: Any, interval: Any) -> int:
    """Return the second up to which everything has shown when a decision is made."""
    jobs, now = env.episode_workload, env.time
    coming = jobs.submit_time[len(env.queued()) + int((env.result().start >= 0).sum()) :]
    if isinstance(interval, int) and coming.size:
        return max(now, int(coming[0]) - 1)
    return now


@costly
@settings(SLOW, max_examples=400)
@given(
    workloads(max_jobs=25),
    ESTIMATES,
    st.sampled_from(NAMES),
    st.sampled_from(INTERVALS),
    st.sampled_from(["revised", "kept"]),
    st.integers(0, 30),
    st.integers(0, 2**16),
)
def test_another_future_looks_the_same(
    workload: Workload,
    rules: dict[str, Any],
    name: str,
    interval: Any,
    reservation: str,
    decisions: int,
    seed: int,
) -> None:
    arguments: dict[str, Any] = {"window": 4, **rules}
    if name == "JobSelection":
        arguments["reservation"] = reservation
    if name == "MixedPolicy":
        arguments["interval"] = interval
    else:
        interval = None
    env = SINGLE[name](**whole(workload, **arguments))
    acts = visible_acts(env, seed)
    one = play(env, acts, most=decisions)
    assume(not one[-1].terminated)
    now = horizon(env, interval)
    if name == "MixedPolicy" and len(one) == 1 and interval != "pass":
        now = int(workload.submit_time[0]) - 1  # nothing has been submitted yet
    if now >= workload.submit_time[0]:
        other_workload = altered(env, now, seed, 5, isinstance(interval, int))
        other_env = SINGLE[name](**whole(other_workload, **arguments))
        other = play(other_env, acts, most=decisions)
        assert_same(known(one), known(other))
        assert_hidden_alike(env, other_env, acts, one[-1], other[-1])


def assert_hidden_alike(env: Any, other: Any, acts: Any, here: Step, there: Step) -> None:
    """What follows a snapshot that hides does not depend on what it hides."""
    same_size = len(env.episode_workload) == len(other.episode_workload)
    futures = []
    for each, step in ((env, here), (other, there)):
        observation, info = each.restore(each.snapshot(hide=True))
        assert_same(observation, step.observation)
        steps = go_on(each, acts, observation, info, most=5000)
        assert steps[-1].terminated
        rewards = [step.reward for step in steps]
        futures.append((known(steps), rewards, each.result().start, each.result().run_time))
    first, second = futures
    assert_same(first[2:], second[2:])
    assert_same(first[0], second[0])
    if same_size:  # of which rewards are means
        assert_same(first[1], second[1])


@pytest.mark.parametrize("rule", ["estimate", "policy_estimate"])
@pytest.mark.parametrize("name", NAMES)
def test_a_clairvoyant_estimate_is_seen(name: str, rule: str) -> None:
    """The test above can fail: where run times are predictions, they show."""
    columns = {
        "submit_time": [0, 0, 1],
        "run_time": [50, 60, 70],
        "requested_time": [100, 100, 100],
        "requested_processors": [2, 2, 2],
    }
    seen = []
    for run in ([50, 60, 70], [50, 90, 70]):
        workload = Workload.from_columns({**columns, "run_time": run}, processors=2)
        options = {"interval": "pass"} if name == "MixedPolicy" else {}
        rules = {rule: "clairvoyant", "features": SEEN, **options}
        env = SINGLE[name](**whole(workload, window=4, **rules))
        seen.append(env.reset()[0]["jobs"].tolist())
    assert seen[0] != seen[1]
