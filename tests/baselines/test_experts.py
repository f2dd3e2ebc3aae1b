"""Dispatchers that act in environments make the schedules that ``simulate`` makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from node_strategies import machines, workloads_for
from plain_envs import JobSelection, MixedPolicy, QueueOrdering
from strategies import workloads

import hpcgym
from hpcgym import simulate
from hpcgym.baselines import find_baseline
from hpcgym.baselines.dispatchers import find_dispatcher
from hpcgym.baselines.policies import Expert
from hpcgym.machine import Cluster, NodeGroup, find_cluster
from hpcgym.workload import Workload, load_workload

LISTS = ("fcfs-list", "sjf-list", "prb", "sdprb")
RULES = st.fixed_dictionaries(
    {
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
    }
)


class Watched:
    """A dispatcher that keeps what it is shown."""

    def __init__(self, name: str) -> None:
        self.name, self.dispatcher = name, find_dispatcher(name)
        self.seen: list[dict[str, Any]] = []

    def __call__(self, view: Any) -> Any:
        plain = {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(view).items()
        }
        self.seen.append(plain)
        return self.dispatcher(view)


def act(env: Any, expert: Expert) -> Any:
    """Return the schedule of an expert, whole."""
    observation, info = env.reset()
    expert.begin(env)
    ended = False
    while not ended:
        observation, _, ended, _, info = env.step(expert.act(observation, info))
    return env.result()


def on(kind: Any, workload: Workload, **options: Any) -> Any:
    options = {"episodes": "whole", "window": 64, "backfill": "none", **options}
    return kind(workload, **options)


def assert_same_schedule(result: Any, expected: Any) -> None:
    assert result.start.tolist() == expected.start.tolist()
    for column, other in zip(result.allocation or (), expected.allocation or (), strict=True):
        assert column.tolist() == other.tolist()
    hpcgym.validate_schedule(expected)


def check(workload: Workload, name: str, cluster: Cluster | None, **rules: Any) -> None:
    """Compare schedules and, where a pass asks once, all views."""
    asked, shown = Watched(name), Watched(name)
    expected = simulate(workload, asked, cluster=cluster, **rules)
    assert_same_schedule(
        act(on(QueueOrdering, workload, cluster=cluster, **rules), Expert(shown, name)), expected
    )
    if cluster is None or not alike(workload):
        assert shown.seen == asked.seen
    env = on(JobSelection, workload, cluster=cluster, **rules)
    assert_same_schedule(act(env, Expert(find_dispatcher(name), name)), expected)


def alike(workload: Workload) -> bool:
    """Tell whether units are single cores, whose machine is shown as one node."""
    return workload.units is None or all(
        (demand == (resource == "core")).all() for resource, demand in workload.per_unit.items()
    )


@pytest.mark.slow
@settings(max_examples=120)
@given(
    st.data(),
    machines(),
    st.sampled_from(LISTS),
    RULES,
    st.sampled_from(["first-fit", "best-fit", "worst-fit", "random:3"]),
)
def test_on_nodes(
    data: st.DataObject, cluster: Cluster, name: str, rules: dict[str, Any], allocation: str
) -> None:
    workload = data.draw(workloads_for(cluster))
    check(workload, name, cluster, allocation=allocation, **rules)


@pytest.mark.slow
@settings(max_examples=120)
@given(workloads(), st.sampled_from(LISTS), RULES)
def test_on_a_pool(workload: Workload, name: str, rules: dict[str, Any]) -> None:
    check(workload, name, None, **rules)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "allocation"), [("prb", "first-fit"), ("sdprb", "best-fit")])
def test_on_eurora_with_its_queues(name: str, allocation: str) -> None:
    workload = load_workload("eurora:jobs=150,seed=2,load=3")
    cluster = find_cluster("eurora")
    asked = Watched(name)
    simulate(workload, asked, cluster=cluster, allocation=allocation)
    waits = {wait for view in asked.seen for wait in view["expected_wait"]}
    assert len(waits) > 1
    assert {view["max_expected_wait"] for view in asked.seen} == {max(cluster.queues.values())}
    assert max(len(view["job"]) for view in asked.seen) <= 150
    options = {"window": 150, "cluster": cluster, "allocation": allocation}
    shown = Watched(name)
    result = act(on(QueueOrdering, workload, **options), Expert(shown, name))
    assert shown.seen == asked.seen
    assert_same_schedule(
        result,
        simulate(workload, name, cluster=cluster, allocation=allocation, estimate="requested"),
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(workloads(), st.sampled_from(LISTS), st.sampled_from([JobSelection, QueueOrdering]))
def test_views_are_whole_at_single_events_too(workload: Workload, name: str, kind: Any) -> None:
    """What is free and what runs add up to the machine, whatever passes there are."""
    asked = Watched(name)
    act(on(kind, workload, passes="per-event"), Expert(asked, name))
    for view in asked.seen:
        held = sum(demand[0] for demand in view["running_per_unit"])
        assert view["capacity"] == [[workload.processors]]
        assert view["free"][0][0] + held == workload.processors


@pytest.mark.slow
def test_a_small_window_is_all_that_an_expert_sees() -> None:
    workload = load_workload("eurora:jobs=150,seed=2,load=3")
    asked = Watched("prb")
    result = act(on(QueueOrdering, workload, cluster="eurora", window=5), Expert(asked, "prb"))
    assert max(len(view["job"]) for view in asked.seen) == 5
    assert (result.start >= 0).all()
    hpcgym.validate_schedule(result)


class Idle:
    """Starts one job at a time, the last."""

    name = "idle"

    def __call__(self, view: Any) -> list[tuple[int, Any]]:
        fits = np.flatnonzero(view.fits())
        return [] if len(view.running_job) else [(int(fits[-1]), np.zeros(1, np.int64))]


def test_the_order_is_what_starts_then_what_does_not_fit() -> None:
    columns = {
        "submit_time": [0, 0, 0, 0],
        "run_time": [10, 10, 10, 10],
        "requested_time": [10, 10, 10, 10],
        "requested_processors": [1, 3, 4, 2],
    }
    workload = Workload.from_columns(columns, processors=4)
    expert = Expert(Idle(), "idle")
    assert expert.rules == {"backfill": "none"}
    env = on(QueueOrdering, workload, window=6)
    observation, info = env.reset()
    expert.begin(env)
    action = expert.act(observation, info)
    # the last starts; the second is the first that does not fit beside it
    assert expert.order.tolist() == [3, 1, 0, 2]
    assert np.argsort(-action, kind="stable").tolist()[:4] == [3, 1, 0, 2]
    assert env.action_space.contains(action)
    env.step(action)
    assert env.result().start.tolist() == [-1, -1, -1, 0]
    assert env.time == 10


def test_where_all_fit_one_more_starts() -> None:
    """As its docstring says: an order cannot say that nothing more is to start."""
    columns = {
        "submit_time": [0, 0],
        "run_time": [10, 10],
        "requested_time": [10, 10],
        "requested_processors": [1, 1],
    }
    workload = Workload.from_columns(columns, processors=4)
    result = act(on(JobSelection, workload), Expert(Idle(), "idle"))
    assert result.start.tolist() == [0, 0]
    assert simulate(workload, Idle()).start.tolist() == [10, 0]


@pytest.mark.parametrize("name", [*LISTS, "ljf-list"])
def test_a_baseline_of_that_name_is_an_expert(name: str) -> None:
    expert = find_baseline(name)
    assert isinstance(expert, Expert)
    assert (expert.name, repr(expert)) == (name, f"Expert({name!r})")


# --- Those that solve a model ---------------------------------------------------------------

#: Two nodes, on which three of four jobs fit at once.
TINY = Workload.from_columns(
    {
        "submit_time": [0, 0, 0, 1, 1, 30],
        "run_time": [50, 20, 60, 5, 10, 10],
        "requested_time": [60, 30, 60, 10, 10, 10],
        "requested_processors": [4, 2, 2, 4, 3, 1],
    },
    processors=6,
    units=[2, 1, 2, 2, 3, 1],
    per_unit={"core": [2, 2, 1, 2, 1, 1]},
)
TWO = Cluster(groups=(NodeGroup("a", 1, {"core": 4}), NodeGroup("b", 1, {"core": 2})))


@pytest.mark.parametrize("kind", [JobSelection, QueueOrdering])
@pytest.mark.parametrize("name", ["cph-3", "hcp19", "pcp20"])
def test_experts_that_solve_a_model_serve_all_that_is_visible(name: str, kind: Any) -> None:
    pytest.importorskip("ortools")
    expert = Expert(find_dispatcher(name), name)
    env = on(kind, TINY, cluster=TWO, window=8)
    observation, info = env.reset()
    expert.begin(env)
    ended = False
    while not ended:
        action = expert.act(observation, info)
        places = expert.order.tolist()
        assert sorted(places) == list(range(int((info["window"] >= 0).sum())))
        observation, _, ended, _, info = env.step(action)
    result = env.result()
    assert (result.start >= 0).all()
    hpcgym.validate_schedule(result)


@pytest.mark.parametrize(("cluster", "waits"), [(TWO, True), (None, False)])
def test_experts_are_recorded_on_the_machine_that_is_given(
    cluster: Cluster | None, waits: bool
) -> None:
    """Two jobs of three cores fit six cores together, but not the nodes of four and two."""
    from hpcgym.agents.recordings import record

    columns = {
        "submit_time": [0, 0],
        "run_time": [10, 10],
        "requested_time": [10, 10],
        "requested_processors": [3, 3],
    }
    workload = Workload.from_columns(columns, processors=6, units=[1, 1], per_unit={"core": [3, 3]})
    given = {"episodes": "whole", "part": "all", "record_episodes": 1}
    options = {"env_options": {"reward": "wait"}, "cluster": cluster}
    done = record("prb", workload, **given, **options)
    assert (done.rewards.sum() < 0) == waits


def test_an_expert_is_called_what_its_dispatcher_is() -> None:
    def widest(view: Any) -> Any:
        return view.in_order(np.argsort(-view.units, kind="stable"))

    assert repr(find_baseline(widest)) == "Expert('widest')"


def asked(answer: Any) -> Any:
    """Let an expert act that answers so."""

    def wrong(view: Any) -> Any:
        return answer

    env = on(JobSelection, TINY, cluster=TWO, window=8)
    observation, info = env.reset()
    expert = Expert(wrong, "wrong")
    expert.begin(env)
    return expert.act(observation, info)


def test_the_dispatcher_is_told_that_an_episode_begins() -> None:
    class Once(Watched):
        begun = 0

        def begin(self) -> None:
            self.begun += 1

    asked = Once("prb")
    env = on(JobSelection, TINY, cluster=TWO, window=8)
    for times in (1, 2):
        act(env, Expert(asked, "prb"))
        assert asked.begun == times


@pytest.mark.parametrize("cluster", ["eurora", None])
def test_what_views_share_is_that_of_their_episode(cluster: str | None) -> None:
    """Also of one that a snapshot goes back to."""
    workload = load_workload("eurora:jobs=150,seed=2,load=3")
    env = JobSelection(workload, jobs=40, backfill="none", cluster=cluster)

    def shown() -> dict[str, list[Any]]:
        view = env.pass_view()
        names = ("user", "queue", "expected_wait", "units", "per_unit", "free")
        return {name: getattr(view, name).tolist() for name in names}

    env.reset(options={"start": 0, "jobs": 40})
    first, snapshot = shown(), env.snapshot()
    env.step(int(np.flatnonzero(env.pass_view().fits())[0]))
    assert shown()["free"] != first["free"]
    env.reset(options={"start": 60, "jobs": 40})
    assert env.pass_view().user.tolist() == workload.user_id[60 + env.queued()].tolist()
    env.restore(snapshot)
    assert shown() == first
    if cluster is None:  # elsewhere the future cannot be hidden
        env.restore(env.snapshot(hide=True))
        assert shown() == first


test_mistakes = mistakes_of(globals(), MixedPolicy)
