"""The native engine and the kernels that it replaces are in the same state after each pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import submission_strategies
import test_submitted
import test_windows
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded, usable
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import fitted, quotas, with_queues
from strategies import SLURM, cases, clusters
from twins import assert_same_after_each_pass

import hpcgym
from hpcgym.cluster.pool import Cluster
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.native import simulation_of
from hpcgym.simulation.run import scheduler_of
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

QUEUES = st.lists(st.integers(1, 2), min_size=1, max_size=5)


@pytest.mark.parametrize("policy", ["fcfs", "saf", "lexp"])
@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
def test_queues_of_many_blocks_with_a_reservation_for_each(policy: str, passes: str) -> None:
    """Only in long queues it is noted who may find an earlier place."""
    rules = {"policy": policy, "passes": passes, "backfill": "conservative"}
    for seed in range(2):
        workload = load_workload(f"lublin:jobs=400,processors=64,load=200,seed={seed}")
        cluster = Cluster(workload.processors)
        for more in ({}, {"estimate": "ave2", "correction": "incremental"}):
            scheduler = scheduler_of("easy", rules | more)
            assert assert_same_after_each_pass(workload, scheduler, cluster, 7)


@settings(max_examples=300)
@given(st.data())
def test_each_pass_on_a_pool(data: st.DataObject) -> None:
    workload, rules = data.draw(cases())
    for name in ("policy", "backfill_order"):
        if not isinstance(rules[name], str) and not any(rules[name]):
            rules[name] = "saf"
    cluster = Cluster(workload.processors)
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    may_switch = rules["backfill"] in ("none", "easy", "until-shadow")
    if may_switch and rules["passes"] == "per-timestamp" and data.draw(st.booleans()):
        cluster = data.draw(clusters(workload.processors))
        rules |= {"threshold": None, "hold": None}
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        workload, scheduler, cluster, data.draw(st.sampled_from([1, 3]))
    )


@settings(max_examples=300)
@given(st.data(), cases())
@pytest.mark.filterwarnings("ignore:.*no window is between")
@pytest.mark.filterwarnings("ignore:.*no job falls under these quotas")
def test_each_pass_under_quotas_and_around_windows(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]]
) -> None:
    workload, rules = with_queues(case[0], data.draw(QUEUES)), case[1]
    rules = fitted(test_windows.fitted(rules, workload))
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    which = data.draw(st.sampled_from(["quota", "maintenance", "both"]))
    if which != "maintenance":
        rules["quota"] = data.draw(quotas(workload))[0]
    if which != "quota":
        widths = st.integers(1, workload.processors)
        drawn = [(*t, {0: data.draw(widths)}) for t in data.draw(test_windows.times(workload))]
        apart = test_windows.apart(drawn, {0: workload.processors})
        rules["maintenance"] = "; ".join(f"{a}/{b}:processors={w[0]}" for a, b, w in apart)
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        workload, scheduler, Cluster(workload.processors), data.draw(st.sampled_from([1, 3]))
    )


@settings(max_examples=300)
@given(st.data(), cases(), QUEUES)
@pytest.mark.filterwarnings("ignore:.*no job follows another")
@pytest.mark.filterwarnings("ignore:.*no window is between")
@pytest.mark.filterwarnings("ignore:.*no job falls under these quotas")
def test_each_pass_of_jobs_that_come_when_others_have_ended(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]], queues: list[int]
) -> None:
    workload = test_submitted.with_numbers(case[0], queues)
    rules = submission_strategies.fitted(case[1])
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    which = data.draw(st.sampled_from(["dependencies", "quota", "both"]))
    if which != "quota":
        workload, rules["dependencies"], _ = data.draw(submission_strategies.chains(workload))
    if which != "dependencies":
        rules["quota"] = data.draw(test_submitted.bounds(workload))[0]
    if isinstance(rules["estimate"], str) and data.draw(st.booleans()):
        begin = data.draw(st.sampled_from(workload.submit_time.tolist()))
        rules["maintenance"] = f"{begin}/{begin + 50}"
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        workload, scheduler, Cluster(workload.processors), data.draw(st.sampled_from([1, 3]))
    )


@settings(max_examples=300)
@given(st.data(), cases(), st.lists(st.integers(1, 4), min_size=2, max_size=6))
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*there is no job of")
@pytest.mark.filterwarnings("ignore:.*no job f", "ignore:.*no window is between")
def test_each_pass_in_which_jobs_stop_others(
    data: st.DataObject, case: tuple[Workload, dict[str, Any]], queues: list[int]
) -> None:
    workload = crowded(with_queues(case[0], queues), data.draw(CLOSE))
    rules = fitted(case[1])
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    rules["preemption"], slow = data.draw(preemptions(workload))
    if data.draw(st.booleans()):
        rules["quota"] = data.draw(quotas(workload))[0]
    which = data.draw(st.sampled_from(["nothing", "maintenance", "dependencies"]))
    if which == "maintenance" and slow[2] != "suspend":
        rules = test_windows.fitted(rules, workload)
        begin = data.draw(st.sampled_from(workload.submit_time.tolist()))
        width = data.draw(st.integers(1, workload.processors))
        rules["maintenance"] = f"{begin}/{begin + 50}:processors={width}"
    elif which == "dependencies" and slow[2] != "cancel":
        rules = submission_strategies.fitted(rules)
        workload, rules["dependencies"], _ = data.draw(submission_strategies.chains(workload))
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        workload, scheduler, Cluster(workload.processors), data.draw(st.sampled_from([1, 3]))
    )


@settings(max_examples=300)
@given(st.data())
def test_each_pass_of_an_extract(data: st.DataObject) -> None:
    """It begins with jobs that run and wait: of a log, or of a simulation that goes on."""
    workload, rules = data.draw(cases())
    rules = usable(rules)
    if rules["backfill"] == "slurm":
        rules["backfill"] = data.draw(SLURM)
    part: Workload | None
    if data.draw(st.booleans()):
        part, rules, _, _ = parts_of(data, recorded(data, workload), rules)
    else:
        if not isinstance(rules["estimate"], str):
            rules["estimate"] = "clairvoyant"
        long = hpcgym.simulate(workload, **rules)
        near = {time + more for time in (*long.start, *long.end) for more in (0, 1)}
        begin = int(data.draw(st.sampled_from(sorted(near))))
        part = hpcgym.continued(long, begin) if (long.end >= begin).any() else None
        if data.draw(st.booleans()):
            rules |= {"policy": "saf", "correction": "incremental"}
    if part is None:
        return
    scheduler = scheduler_of("easy", rules)
    assert assert_same_after_each_pass(
        part, scheduler, Cluster(part.processors), data.draw(st.sampled_from([1, 3]))
    )


@settings(max_examples=300)
@given(st.data())
def test_a_branch_goes_on_with_the_jobs_that_run_and_wait(data: st.DataObject) -> None:
    """Nothing more comes there: it ends as the whole one does after its last submission."""
    workload, rules = data.draw(cases())
    rules = usable(rules)
    rules["backfill"] = data.draw(st.sampled_from(["none", "easy", "until-shadow"]))
    scheduler = scheduler_of("easy", rules)
    whole = simulation_of(new_simulation(workload, scheduler, Cluster(workload.processors)))
    time = int(workload.submit_time[-1]) + data.draw(st.sampled_from([0, 1, 60, 1000, 100_000]))
    whole.run(until=time)
    known = whole.schedule()
    branch, rows = whole.branch()
    assert (np.diff(rows) > 0).all()
    assert set(np.flatnonzero(known["start"] < 0)) <= set(rows.tolist())
    again, _ = branch.branch()
    for simulation in (whole, branch, again):
        simulation.run()
    expected, found = whole.schedule(), branch.schedule()
    for name in expected:
        if name != "promised":  # the reservation of now is made anew
            assert found[name].tolist() == expected[name][rows].tolist(), name
    assert again.schedule()["start"].tolist() == found["start"].tolist()


def test_quotas_count_all_jobs_so_that_no_branch_has_them() -> None:
    workload = load_workload("lublin:jobs=20,processors=16,seed=1")
    scheduler = scheduler_of("easy", {"quota": "all:jobs=3"})
    simulation = simulation_of(new_simulation(workload, scheduler, Cluster(workload.processors)))
    with pytest.raises(ValueError, match="branch: quotas count all jobs"):
        simulation.branch()
