"""Environments with plans, quotas, windows and jobs that follow or stop others, on both engines."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from drawing import given, settings
from drawing import strategies as st
from driving import NAMES, SINGLE, SLOW, go_on, play, visible_acts, whole
from node_driving import places, units_on_nodes
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import quotas, with_queues
from restrictions import DRAWN
from share_strategies import BUSY_W, accounts, order, watts_of, with_power
from strategies import DEPTHS, SLURM, workloads
from submission_strategies import chains
from test_by_usage import FEATURES
from test_native_environments import (
    EPISODES,
    INTERVALS,
    LEARNED,
    LOADED,
    is_over,
    on_both,
    options_of,
)
from test_preempting_environments import QUEUES
from test_restricted_environments import windows_of

from hpcgym.cluster.pool import Cluster
from hpcgym.workload import Workload

pytestmark = DRAWN
SEVERAL = st.one_of(st.sampled_from(DEPTHS), SLURM)
RULES = st.fixed_dictionaries(
    {
        "backfill_order": st.sampled_from(["fcfs", "sjbf", "saf", "lexp"]),
        "estimate": st.sampled_from(["requested", "clairvoyant", "ave2"]),
        "correction": st.sampled_from(["requested", "incremental", "recursive-doubling"]),
    }
)
#: Rules of all kinds, which restrict or plan, or look at usage.
KEPT = (
    {"backfill": "depth:3"},
    {"backfill": "slurm"},
    {"quota": "user:jobs=3"},
    {"quota": "user:submitted=3"},
    {"maintenance": "0/9999:processors=3"},
    {"preemption": "user:2>1"},
    {"backfill_order": "fairshare", "cluster": "8x2x4"},
)
#: What restricts who may start when.
KINDS = ("plan", "quota", "quota", "moved", "stopped", "stopped")


def restricted(
    data: Any, workload: Workload, name: str, cluster: Cluster | None, moves: bool = True
) -> dict[str, Any]:
    """Draw arguments of an environment that restrict who may start when, and those of episodes."""
    names = [kind for kind in KINDS if name != "JobSelection" or kind not in ("plan", "stopped")]
    names = [kind for kind in names if moves or kind != "moved"]
    kind = data.draw(st.sampled_from(names))
    selects = name == "JobSelection"
    one = st.sampled_from(["easy", "none"])
    backfill = data.draw(SEVERAL if kind == "plan" else one if selects else st.one_of(one, SEVERAL))
    options = {**data.draw(RULES), **data.draw(EPISODES), "backfill": backfill}
    options |= {"observation": "flat", "features": ("wait", "within_quota", "fits", "expansion")}
    workload = with_queues(workload, data.draw(QUEUES))
    mode = ""
    if kind == "stopped":
        workload = crowded(workload, data.draw(CLOSE))
        options["preemption"], (_, _, mode, *_) = data.draw(preemptions(workload))
    if kind == "moved":
        workload, options["dependencies"], _ = data.draw(chains(workload))
        options["estimate"] = data.draw(st.sampled_from(["requested", "clairvoyant"]))
        most = data.draw(st.sampled_from([None, 1, 2]))
        options["quota"] = most and f"user:submitted={most}"
    elif kind != "plan" and data.draw(st.booleans()):
        options["quota"], _ = data.draw(quotas(workload))
    if kind != "plan" and mode != "suspend" and cluster is None:
        _, options["maintenance"] = windows_of(data, workload.processors)
        if options["maintenance"]:
            options["estimate"] = "requested"
    if kind in ("moved", "stopped"):
        options["horizon"] = None
    if selects:
        options["skip_forced"] = data.draw(st.booleans())
    elif kind != "moved":
        options["threshold"] = data.draw(st.sampled_from([None, None, 5, 100]))
    if name == "MixedPolicy":
        intervals = INTERVALS if kind != "moved" else st.sampled_from(["pass", "episode", "1h"])
        options["interval"] = data.draw(intervals)
    return whole(workload, **options, cluster=cluster)


@settings(SLOW, max_examples=200)
@given(st.data(), workloads(), st.sampled_from(NAMES), st.integers(0, 2**16))
def test_an_episode_is_the_same(
    data: st.DataObject, workload: Workload, name: str, seed: int
) -> None:
    options = restricted(data, workload, name, None)
    shown_by_both(name, options, seed)


@settings(SLOW, max_examples=100)
@given(st.data(), places(), st.sampled_from(NAMES), st.integers(0, 2**16))
def test_an_episode_on_nodes_is_the_same(
    data: st.DataObject, place: tuple[Cluster, Workload], name: str, seed: int
) -> None:
    options = restricted(data, place[1], name, place[0])
    shown_by_both(name, options, seed)


@settings(SLOW, max_examples=200)
@given(st.data(), workloads(max_jobs=30), st.sampled_from(NAMES), st.integers(0, 2**16))
def test_an_episode_by_usage_is_the_same(
    data: st.DataObject, workload: Workload, name: str, seed: int
) -> None:
    jobs = data.draw(with_power(workload))
    fair, slow = data.draw(accounts(jobs))
    ours, _ = data.draw(order(slow, watts_of(jobs)))
    cluster = Cluster(jobs.processors, busy_power_w=BUSY_W)
    if data.draw(st.integers(0, 2)) == 0:
        options = restricted(data, jobs, name, None, moves=False)
    else:
        options = whole(jobs, **options_of(data, name)) | {"backfill": "easy"}
        if data.draw(st.booleans()):
            options |= data.draw(LEARNED)
    options |= {"cluster": cluster, "fair_share": fair, "reward": "bsld"}
    if name != "MixedPolicy" or data.draw(st.booleans()):
        options["backfill_order"] = ours
        options["backfill"] = data.draw(st.sampled_from(["easy", "depth:3"]))
        if name == "JobSelection" or "passes" in options or "reservation" in options:
            options["backfill"] = "easy"
    if name == "MixedPolicy":
        options["policy_features"] = FEATURES
    shown_by_both(name, options, seed)


@pytest.mark.parametrize("kept", KEPT, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_it_is_the_native_engine_that_serves(name: str, kept: dict[str, Any]) -> None:
    if name == "JobSelection" and {"backfill", "preemption"} & set(kept):
        return
    env = SINGLE[name](LOADED, jobs=20, **kept)
    assert env.simulations.native is not None


def shown_by_both(name: str, options: dict[str, Any], seed: int) -> None:
    """Compare what an episode shows on both engines."""

    def show() -> list[Any]:
        env = SINGLE[name](**options)
        acts = visible_acts(env, seed)
        steps = play(env, acts, most=8)
        seen: list[Any] = [*steps]
        seen += [env.time, env.free, env.queued(), env.running(), env.submit_times()]
        saved = env.snapshot()
        for snapshot in (saved, pickle.loads(pickle.dumps(saved))):
            seen.append(env.restore(snapshot))
            if not is_over(env):
                seen += go_on(env, acts, None, steps[-1].info, first=8)
        result = env.result()
        seen += [result.start, result.end, result.backfilled, result.reserved_start]
        if result.interrupted is not None:
            seen += [result.interrupted.job, result.interrupted.start, result.interrupted.end]
        if result.allocation is not None:  # the kernels plan where those of other jobs are
            units = zip(units_on_nodes(result), result.start, strict=True)
            seen += [held for held, start in units if start >= 0]
        return [*seen, result.suspended]

    with pytest.MonkeyPatch.context() as patched:
        on_both(patched, show)
