"""Backfill and Inspector: a rule orders the queue, and the agent says which of some jobs start."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from drawing import costly, given, settings
from drawing import strategies as st
from driving import (
    CALM,
    CROWD,
    FOLLOWING,
    LOADED,
    RULES,
    SEEDS,
    SINGLE,
    SLEEPY,
    SLOW,
    VECTOR,
    by_chance,
    cost_so_far,
    for_slow,
    jobs_of,
    noting_first,
    play,
    prove,
    rows_of,
    rules,
    terms_of,
    whole,
)
from expression_strategies import at_states, slow_order
from gymnasium.vector import AutoresetMode
from mistakes import mistakes_of
from restrictions import restrict, with_numbers
from slow_environments import Inspecting, OnPool, Picking, agent_on
from strategies import workloads

import hpcgym
from hpcgym.baselines import find_baseline
from hpcgym.envs import Backfill, Inspector
from hpcgym.scheduler.estimates.by_name import KNOWN
from hpcgym.workload import Workload, load_workload

pytestmark = pytest.mark.filterwarnings("ignore::hpcgym.errors.HpcgymWarning")
TRACES = Path(__file__).parents[3] / "shared" / "traces"
NAMED = ["fcfs", "fcfs", "sjf", "saf", "wfp3", "sqf"]
BOUNDS = st.sampled_from([(0, 600), (1, 7), (3, 600), (5, 60), (72, 1)])
#: Up to which wait of the head the agent may break what was promised to it [s].
BROKEN_S = st.sampled_from([0, 0, 0, 1, 20, 600, 10**6])
#: The same by run times of candidates.
RELAXED = st.sampled_from(
    [{}, {}, {"relax": 20, "candidate_estimate": "clairvoyant"},
     {"relax": 600, "candidate_estimate": "typical-ratio"}]
)  # fmt: skip
Act = Callable[[Any, dict[str, Any]], int]


def played(env: Any, act: Act) -> Any:
    """Return the result of an episode, and how many questions there were."""
    return env, len(play(env, lambda _, observation, info: act(observation, info))) - 1


def all_of(name: str, workload: Workload, **more: Any) -> Any:
    return SINGLE[name](**whole(workload, **more))


# --- Against slow environments --------------------------------------------------------------------


@costly
@settings(SLOW, max_examples=400)
@given(
    workloads(), st.one_of(RULES, rules()), st.lists(at_states(), max_size=2),
    st.sampled_from(NAMED), st.sampled_from([2, 3, 40]),
    BOUNDS, BROKEN_S, RELAXED, st.sampled_from([None, None, 0, 100]), SEEDS,
)  # fmt: skip
@pytest.mark.parametrize("name", FOLLOWING)
def test_any_choices(
    name: str, jobs: Workload, given_rules: dict[str, Any], looks: list[Any], policy: str,
    window: int, bounds: tuple[int, int], broken_s: int, relaxed: dict[str, Any],
    threshold: int | None, seed: int,
) -> None:  # fmt: skip
    """The same questions about the same jobs at the same times, whatever is answered.

    ``looks``: orders that look at the state, in place of others.
    """
    given_rules = given_rules | {"policy": policy, "threshold": threshold}
    given_rules |= dict(zip(("backfill_order", "policy"), looks, strict=False))
    if given_rules["backfill"] != "none" and not broken_s:
        given_rules |= relaxed
        if relaxed and given_rules.get("policy_estimate", "requested") not in KNOWN:
            given_rules["candidate_estimate"] = "clairvoyant"
    theirs = {
        rule: slow_order(given_rules[rule], jobs)
        for rule in ("policy", "backfill_order")
        if given_rules[rule] in looks
    }
    check_choices(name, jobs, given_rules, theirs, window, bounds, broken_s, seed)


@pytest.mark.parametrize("which", ["quota", "minutes", "follow", "places", "follow places quota"])
@pytest.mark.parametrize("name", FOLLOWING)
@costly
@settings(SLOW, max_examples=200)
@given(data=st.data())
def test_any_choices_under_rules_of_a_site(name: str, which: str, data: st.DataObject) -> None:
    """The same where quotas bar jobs, and where the schedule says when jobs come."""
    jobs = with_numbers(data.draw(workloads()), data.draw(st.lists(st.integers(1, 3), min_size=1)))
    given_rules = data.draw(RULES) | {"policy": data.draw(st.sampled_from(NAMED))}
    if which not in ("quota", "minutes"):
        given_rules["hold"] = None
        if given_rules["estimate"] == "ave2":
            given_rules["estimate"] = "requested"
    ours, theirs = dict[str, Any](), dict[str, Any]()
    jobs = restrict(data, which.split(), jobs, ours, theirs)
    window, bounds = data.draw(st.sampled_from([2, 3, 40])), data.draw(BOUNDS)
    broken_s, seed = data.draw(BROKEN_S), data.draw(SEEDS)
    check_choices(name, jobs, given_rules | ours, theirs, window, bounds, broken_s, seed)


def check_choices(
    name: str, jobs: Workload, given_rules: dict[str, Any], theirs: dict[str, Any],
    window: int, bounds: tuple[int, int], broken_s: int, seed: int,
) -> None:  # fmt: skip
    """Compare an episode with the slow environment's; ``theirs``: rules as that takes them."""
    numbers, act = by_chance(seed, "place", window)
    more: dict[str, Any] = {}
    deciding: tuple[Any, ...] = numbers, window
    if name == "Backfill":
        if given_rules["backfill"] == "none":
            given_rules["backfill"] = "easy"
        more["promise"] = broken_s or "kept"
        slow = type("Breaking", (agent_on(OnPool, Picking),), {"breaks_s": broken_s})
    else:
        more = dict(zip(("put_offs", "delay"), bounds, strict=True))
        numbers, act = put_off_by_chance(seed)
        slow, deciding = agent_on(OnPool, Inspecting), (numbers, window, bounds)
    env = all_of(name, jobs, window=window, **given_rules, **more)
    steps = play(env, lambda k, seen, info: act(k, seen, info) if rows_of(info) else 0)
    site = ("quota", "dependencies")
    own_rules = {rule: value for rule, value in given_rules.items() if rule not in site}
    made = slow.of(jobs, *deciding, **for_slow(own_rules) | theirs)
    asked = sum(bool(rows_of(step.info)) for step in steps)
    assert asked == len(made.seen)
    result, came = env.result(), sorted(made.jobs, key=lambda job: (job.submit, job.number))
    assert result.workload.submit_time.tolist() == [job.submit for job in came]
    assert result.start.tolist() == [job.start for job in came]
    assert result.predicted_run_time.tolist() == [job.predicted for job in came]
    assert result.backfilled.tolist() == [job.backfilled for job in came]
    assert result.reserved_start.tolist() == [job.reserved_start for job in came]
    prove(name, result)
    terms = [terms_of(step.info) for step in steps]
    assert sum(term["wait_s"] for term in terms) == result.wait.sum()
    assert sum(term["bsld"] for term in terms) == pytest.approx(result.bsld.sum(), rel=1e-12)


def put_off_by_chance(seed: int) -> tuple[Any, Any]:
    """Return random answers by time and waiting rows, as slow agents and environments want them."""

    def number(now: int, rows: list[int]) -> int:
        return int(np.random.default_rng((seed, now, *rows)).integers(2))

    return number, lambda _, __, info: number(info["time_s"], rows_of(info))


# --- What they can express exactly ----------------------------------------------------------------


def first(_: Any, info: dict[str, Any]) -> int:
    return 1 if len(rows_of(info)) > 1 else 0


def none(_: Any, __: Any) -> int:
    return 0


def least(of: Callable[[Workload], Any]) -> Callable[[Any], Act]:
    """Return an actor that picks the candidate with the least value, of equals the first."""

    def begin(env: Any) -> Act:
        values = of(env.episode_workload)

        def act(_: Any, info: dict[str, Any]) -> int:
            rows = rows_of(info)[1:]
            return 1 + int(np.argmin(values[rows])) if rows else 0

        return act

    return begin


#: Who acts -> which rules of backfilling it is.
ACTORS: dict[str, tuple[Callable[[Any], Act], dict[str, Any]]] = {
    "first": (lambda env: first, {"backfill_order": "fcfs"}),
    "none": (lambda env: none, {"backfill": "none"}),
    "shortest": (least(lambda jobs: jobs.requested_time), {"backfill_order": "sjbf"}),
    "smallest": (
        least(lambda jobs: jobs.requested_time * jobs.requested_processors),
        {"backfill_order": "saf"},
    ),
}


def assert_exact(jobs: Workload, policy: str, window: int, **more: Any) -> int:
    """Play all that is expressible on some jobs; return how many questions there were."""
    asked = 0
    for begin, order in ACTORS.values():
        learned = more.get("policy_estimate", "requested") != "requested"
        if learned and order.get("backfill_order") == "saf":
            continue  # it would go by other times than the actor does
        # which is looked at where not each submission has a pass
        of_passes = {"backfill_order": order.get("backfill_order", "fcfs"), **more}
        env = all_of("Backfill", jobs, policy=policy, window=window, **of_passes)
        env.reset(seed=0)
        _, steps = played(env, begin(env))
        same = hpcgym.simulate(jobs, policy=policy, **{"backfill": "easy"} | more | order)
        assert env.result().start.tolist() == same.start.tolist()
        asked += steps
    for backfill in ("easy", "none"):
        given_rules = {"policy": policy, "backfill": backfill, **more}
        env, steps = played(all_of("Inspector", jobs, **given_rules), none)
        same = hpcgym.simulate(jobs, **given_rules)
        assert env.result().start.tolist() == same.start.tolist()
        assert steps == len(jobs)
        assert env.result().metrics == pytest.approx(same.metrics, nan_ok=True)
        assert hpcgym.simulate(jobs, **env.scheduler_rules).start.tolist() == same.start.tolist()
    return asked


@settings(SLOW, max_examples=100)
@given(workloads(), st.sampled_from(NAMED), st.sampled_from(["saf", "wfp3", "f1", "sqf"]))
def test_a_baseline_is_an_order_of_backfilling(jobs: Workload, policy: str, order: str) -> None:
    env, actor = all_of("Backfill", jobs, policy=policy, window=60), find_baseline(order)
    env.reset()
    actor.begin(env)
    played(env, actor.act)
    same = hpcgym.simulate(jobs, policy=policy, backfill="easy", backfill_order=order)
    assert env.result().start.tolist() == same.start.tolist()


@settings(SLOW, max_examples=150)
@given(
    workloads(),
    st.sampled_from([*NAMED, "(1+wait)/processors", {"wait": 1.0, "area": -0.1}]),
    st.sampled_from(["per-timestamp", "per-event"]),
    st.sampled_from(["requested", "ave2", "e-loss"]),
)
def test_rules_are_expressible(jobs: Workload, policy: Any, passes: str, estimate: str) -> None:
    assert_exact(jobs, policy, 60, passes=passes, policy_estimate=estimate)


@pytest.fixture(scope="module")
def kth() -> Workload:
    path = TRACES / "KTH-SP2-1996-2.swf.gz"
    if not path.exists():
        pytest.skip("the trace is not here")
    return load_workload(path)


@pytest.mark.parametrize("policy", ["fcfs", "saf"])
def test_so_they_are_on_a_real_log(kth: Workload, policy: str) -> None:
    assert assert_exact(kth.take(slice(0, 2000), name="part"), policy, 128) > 500


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["saf", "wfp3"])
def test_so_they_are_on_all_of_it(kth: Workload, policy: str) -> None:
    """Several hundred jobs wait at times."""
    assert assert_exact(kth, policy, 512) > 5000


@pytest.mark.parametrize(
    "more",
    [
        {"cluster": SLEEPY}, {"hold": 0.1}, {"threshold": 2000}, {"backfill": "until-shadow"},
        {"estimate": "ave2", "correction": "incremental"},
        {"estimate": "ave2", "correction": "kill"},
    ],
    ids=str,
)  # fmt: skip
def test_so_they_are_under_other_rules(more: dict[str, Any]) -> None:
    for jobs in (CALM, CROWD):
        for policy in ("fcfs", "wfp3", "user_running*processors-wait*free"):
            given_rules = {"policy": policy, "backfill": "easy", "backfill_order": "fcfs", **more}
            start = hpcgym.simulate(jobs, **given_rules).start.tolist()
            for name, act in (("Backfill", first), ("Inspector", none)):
                env, _ = played(all_of(name, jobs, window=300, **given_rules), act)
                assert env.result().start.tolist() == start


def test_by_name_and_in_a_vector(kth: Workload) -> None:
    """EASY, EASY-SJBF and SAF by their names, each of three simulations."""
    jobs = kth.take(slice(0, 600), name="part")
    for scheduler, actor in (("easy", "first"), ("easy-sjbf", "shortest")):
        expected = hpcgym.simulate(jobs, scheduler).start.tolist()
        env = VECTOR["Backfill"](3, **whole(jobs), autoreset_mode=AutoresetMode.DISABLED)
        act = ACTORS[actor][0](SINGLE["Backfill"](**whole(jobs)))
        single = all_of("Backfill", jobs, scheduler=scheduler)
        single.reset()
        act = ACTORS[actor][0](single)
        _, info = env.reset(seed=0)
        done = np.zeros(3, np.bool_)
        while not done.all():
            actions = [act(None, {"window": window}) for window in info["window"]]
            *_, terminated, _, info = env.step(np.array(actions))
            done |= terminated
        for state in env.ends.states:
            assert state.schedule["start"].tolist() == expected
    env = VECTOR["Inspector"](
        2, **whole(jobs, scheduler="saf"), autoreset_mode=AutoresetMode.DISABLED
    )
    env.reset(seed=0)
    done = np.zeros(2, np.bool_)
    while not done.all():
        *_, terminated, _, _ = env.step(np.zeros(2, np.int64))
        done |= terminated
    expected = hpcgym.simulate(jobs, "saf").start.tolist()
    assert [state.schedule["start"].tolist() for state in env.ends.states] == [expected] * 2


# --- By hand --------------------------------------------------------------------------------------


def test_the_head_starts_when_easy_promised() -> None:
    """Whatever is picked. The first three take all, 3 is the head, and the others may start."""
    rows = [(0, 4, 100), (0, 2, 60), (0, 2, 40), (1, 8, 50)]
    rows += [(2, 2, 50), (2, 2, 58), (2, 2, 70), (2, 4, 10)]
    jobs = jobs_of(rows, 8)
    for picks, starts in (
        ([], [100, 150, 150, 150, 200]),
        ([1], [100, 40, 150, 150, 150]),
        ([2, 1], [100, 150, 40, 150, 150]),
        ([3], [100, 150, 150, 150, 200]),  # which stands for nobody
        ([1, 1], [100, 40, 150, 150, 90]),
    ):
        env = all_of("Backfill", jobs, window=4, features=["past_shadow"])
        seen, info = env.reset()
        assert seen["jobs"].tolist() == [[0]] * 4  # of the head, too: it would run on beyond 40 s
        assert (info["time_s"], rows_of(info)) == (40, [3, 4, 5])
        assert info["action_mask"].tolist() == [1, 1, 1, 0]
        left, over = list(picks), False
        while not over:
            _, _, over, _, info = env.step(left.pop(0) if left else 0)
        assert env.result().start[3:].tolist() == starts


def test_a_promise_may_be_broken_until_the_head_has_waited() -> None:
    """3 waits from 1 s on for 100 s. At 40 s 4, 5, 6 and 7 fit; 6 and 7 would run on beyond."""
    rows = [(0, 4, 100), (0, 2, 60), (0, 2, 40), (1, 8, 50)]
    rows += [(2, 2, 50), (2, 2, 58), (2, 2, 70), (2, 2, 500)]
    jobs = jobs_of(rows, 8)
    for promise, shown in (
        ("kept", [3, 4, 5]),
        (39, [3, 4, 5]),
        (40, [3, 4, 5, 6, 7]),
        ("1h", [3, 4, 5, 6, 7]),
    ):
        env = all_of("Backfill", jobs, window=8, promise=promise)
        _, info = env.reset()
        assert (info["time_s"], rows_of(info)) == (40, shown)
        assert env.unwrapped.promise == promise
    over = False
    while not over:  # 7 starts, and 3 waits for it although it was promised 100 s
        *_, over, _, info = env.step(max(len(rows_of(info)) - 1, 0))
    result = env.result()
    assert (result.start[7], result.start[3]) == (40, 540)
    assert result.metrics.max_promise_delay_s == 440
    assert env.result().metrics.promises_broken > 0


def inspected(jobs: Workload, actions: list[int], **given_rules: Any) -> tuple[Any, Any, Any]:
    """Return times and rows of questions, how often each had been put off, and starts.

    Each question is answered in another environment: a pickle has all that is known.
    """
    given_rules |= {"policy": "fcfs", "delay": 30, "features": ["put_off"]}
    env, seen, often, over = all_of("Inspector", jobs, **given_rules), [], [], False
    env.reset()
    for action in actions:
        assert not over
        saved, env = pickle.dumps(env.snapshot()), all_of("Inspector", jobs, **given_rules)
        looks, info = env.restore(pickle.loads(saved))
        seen.append((info["time_s"], rows_of(info)))
        often.append(looks["jobs"][: len(rows_of(info)), 0].tolist())
        _, _, over, _, _ = env.step(action)
    assert over
    return seen, often, env.result().start.tolist()


def test_who_is_put_off_waits_for_the_delay() -> None:
    """Others start meanwhile; after so many times it starts unasked."""
    jobs = jobs_of([(0, 2, 1000), (0, 3, 20), (0, 1, 200), (55, 2, 100)], 4)
    # at 0 s job 0 is put off, 1 starts, and 2 is put off; when 1 ends at 20 s both are put off
    # again, and at 50 s, as nothing has happened, both start unasked; then 3 does
    seen, often, starts = inspected(jobs, [1, 0, 1, 1, 1, 0], put_offs=2)
    assert seen == [
        (0, [0, 1, 2]), (0, [1, 0, 2]), (0, [2, 0]), (20, [0, 2]), (20, [2, 0]), (250, [3]),
    ]  # fmt: skip
    assert often == [[0, 0, 0], [0, 0.5, 0], [0, 0.5], [0.5, 0.5], [0.5, 1], [0]]
    assert starts == [50, 0, 50, 250]
    # the delay counts from then on, though another has started since
    seen, _, starts = inspected(jobs.take(slice(0, 3), name="three"), [1, 0, 0], put_offs=1)
    assert (seen[1:], starts) == ([(0, [1, 0, 2]), (0, [2, 0])], [20, 0, 0])
    some = jobs_of([(0, 2, 1000), (0, 1, 200)], 4)
    assert inspected(some, [1, 0], put_offs=1)[2] == [30, 0]


def test_who_runs_on_beyond_the_shadow_time_takes_extra_processors() -> None:
    """The head, of 6, can start at 100 s; 2 processors are extra then."""
    jobs = jobs_of([(0, 5, 100), (1, 6, 50), (2, 1, 3698), (3, 1, 97), (4, 1, 5000), (5, 1, 9)], 8)
    env = all_of("Backfill", jobs, window=6, features=["past_shadow"])
    looks, info = env.reset()
    seen = [(rows_of(info), looks["jobs"][1 : len(rows_of(info)), 0].tolist())]
    for action in (1, 1, 0):
        looks, *_, info = env.step(action)
        seen.append((rows_of(info), looks["jobs"][1 : len(rows_of(info)), 0].tolist()))
    long = np.float32(4904) / np.float32(4904 + 3600)
    assert seen[0] == ([1, 2], [0.5])  # for an hour
    assert seen[1] == ([1, 3], [0.0])
    assert seen[2] == ([1, 4], [long])
    assert seen[3] == ([1, 4, 5], [pytest.approx(4905 / 8505), 0.0])


@pytest.mark.parametrize("name", FOLLOWING)
def test_what_happens_before_the_first_question_is_no_reward(name: str) -> None:
    """With jobs that run at first, and those that wait then: by the metrics of the slice."""
    given, cost = {"jobs": 20, "reward": ["bsld", "wait"]}, 0.0
    for seed in range(6):
        env = SINGLE[name](CROWD, start=("warm", "empty")[seed % 2], **given)
        acts, seen = noting_first(lambda *_: 0, lambda env=env: cost_so_far(env))
        steps = play(env, acts, seed=seed)
        assert [*terms_of(steps[0].info).values()][:2] == pytest.approx(seen[0].tolist())
        metrics, before = env.metrics(), seen[0] / 20
        bsld, wait = sum(step.reward for step in steps[1:])
        assert -bsld == pytest.approx(metrics["mean_bsld"] - before[0], rel=1e-9)
        assert -wait == pytest.approx((metrics["mean_wait_s"] - before[1]) / 3600, rel=1e-9)
        cost += before[0]
    assert cost > 0 or name == "Inspector"  # which is asked about each


def test_an_episode_without_a_question_takes_one_step() -> None:
    jobs = jobs_of([(0, 1, 10), (5, 1, 10), (90, 1, 3)], 8)
    for end in (None, 50):
        env = all_of("Backfill", jobs, horizon=end)
        _, info = env.reset()
        assert rows_of(info) == []
        _, reward, terminated, truncated, info = env.step(3)
        assert (terminated, truncated) == (end is None, end is not None)
        assert reward == 0.0  # for nothing has been decided
        assert env.metrics()["mean_bsld"] == 1.0  # who comes after the horizon does not count
        many = VECTOR["Backfill"](2, **whole(jobs, horizon=end))
        many.reset()
        for _ in range(2):  # which begins the next by itself
            _, rewards, terminated, truncated, _ = many.step([0, 1])
            assert rewards.tolist() == [reward] * 2
            assert (terminated | truncated).all()
            many.step([0, 1])
    for reward in ("p99_wait", "log_bsld", "energy", lambda view: 1.0):
        env = all_of("Backfill", jobs, reward=reward)
        env.reset()
        assert env.step(0)[1:3] == (0.0, True)
    waits = jobs_of([(0, 8, 100), (1, 8, 10)], 8)  # the second, alone, as the horizon comes
    env = all_of("Backfill", waits, horizon=50)
    env.reset()
    assert env.step(0)[1:4] == (0.0, False, True)


@pytest.mark.parametrize(
    ("paid", "before"), [("start", 9 + 8), ("end", 9), ("waiting", 9 + 8 + 7 + 6)]
)
def test_a_hidden_future_counts_once_what_happened_before_the_first_question(
    paid: str, before: int
) -> None:
    """At 20 s, as job 3 waits behind 2; the first step does not pay for the past again."""
    jobs = jobs_of([(0, 8, 10), (1, 8, 10), (12, 4, 100), (13, 8, 50), (14, 2, 10)], 8)
    env = all_of("Backfill", jobs, paid=paid)
    _, info = env.reset()
    assert (info["time_s"], rows_of(info)) == (20, [3, 4])
    env.restore(env.snapshot(hide=True))
    *_, over, _, info = env.step(0)
    waits = 9 + 8 + 107 + 156
    assert over
    assert info["reward_wait_s"] == waits - before
    assert env.snapshot().rows["totals"][1] == waits


# --- How they are made ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", FOLLOWING)
def test_a_function_as_reward_sees_who_has_started_since_the_first_question(name: str) -> None:
    """Each job of the slice once, and not those that ran as it began."""
    views: list[Any] = []

    def reward(view: Any) -> float:
        views.append(view)
        return 0.0

    before = 0
    for seed in range(6):
        start = ("warm", "empty")[seed % 2]
        env = SINGLE[name](LOADED, jobs=20, reward=reward, start=start, policy="fcfs")
        views.clear()
        env.reset(seed=seed)
        result, begin = env.result(), env.simulations.batch.episode_state[0]["begin"]
        ran = result.start >= 0
        counts = int((ran & (result.start >= begin))[env.counted()].sum())
        before += counts
        play(env, lambda *_: 0, seed=seed)
        started = np.concatenate([view.started for view in views]).tolist()
        assert sorted(started) == np.flatnonzero((env.result().start >= 0) & ~ran).tolist()
        assert sum(view.counts.sum() for view in views) == 20 - counts
    assert before > 0 or name == "Inspector"  # which is asked about each


@pytest.mark.parametrize("name", FOLLOWING)
def test_defaults(name: str) -> None:
    env = gymnasium.make(f"hpcgym/{name}-v2").unwrapped
    assert (env.episodes.around["start"], env.episodes.part) == ("warm", "train")
    env.reset(seed=0)
    total = 0.0
    for _ in range(50):
        _, reward, over, cut, _ = env.step(env.action_space.sample())
        total += reward
        if over or cut:
            break
    assert np.isfinite(total)


test_mistakes = mistakes_of(globals(), Backfill, Inspector)
