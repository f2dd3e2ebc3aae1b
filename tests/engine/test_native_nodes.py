"""The native engine on machines of nodes and the kernels are in the same state after each pass."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import quota_strategies
import submission_strategies
import test_submitted
import test_windows
from drawing import given, settings
from drawing import strategies as st
from extract_strategies import parts_of, recorded, usable
from failure_strategies import Failure, failing_cases, failures_for, table_of
from node_strategies import ALLOCATIONS, node_cases, node_schedulers, partitioned_cases
from preemption_strategies import CLOSE, crowded, preemptions
from quota_strategies import with_queues
from strategies import SLURM, cases
from test_nodes_against_oracle import crowd
from twins import assert_same_after_each_pass as assert_same_of_any
from twins import assert_same_nodes, assert_twins, going_on

from hpcgym._engine import Simulation
from hpcgym.cluster import Cluster, NodeGroup
from hpcgym.engine import state
from hpcgym.engine.machines.nodes.failures import FailingNodes
from hpcgym.engine.passes.requeueing import lengthened
from hpcgym.errors import WorkloadError
from hpcgym.simulation.continued import continued
from hpcgym.simulation.driver import new_simulation
from hpcgym.simulation.failing import failing
from hpcgym.simulation.native import serves, simulation_of
from hpcgym.simulation.nodes import needs_on, nodes_for
from hpcgym.simulation.run import scheduler_of, simulate
from hpcgym.workload.load import load_workload
from hpcgym.workload.model import Workload

QUEUES = st.lists(st.integers(1, 2), min_size=1, max_size=5)
Case = tuple[Cluster, Workload, dict[str, Any]]
FailingCase = tuple[Cluster, Workload, dict[str, Any], list[Failure]]


def assert_same_outages(machine: FailingNodes, native: Simulation) -> None:
    """Compare what has happened of failures, and the runs that were lost."""
    facts, own = native.facts(), machine.scalars[0]
    assert facts["outage"] == own.next
    lost, cells = machine.lost[: own.lost], machine.cells[: own.cells]
    for name in ("job", "start", "end"):
        assert facts[f"lost_{name}"].tolist() == lost[name].tolist()
    assert facts["lost_first"][:-1].tolist() == lost["first"].tolist()
    for name in ("node", "units"):
        assert facts[f"lost_{name}"].tolist() == cells[name].tolist()


def assert_same_after_each_pass(
    workload: Workload, cluster: Cluster, rules: dict[str, Any], pieces: int = 1
) -> bool:
    """Simulate with both; return whether the native engine has the rules."""
    scheduler = scheduler_of("easy", rules)
    nodes = nodes_for(workload, needs_on(workload, cluster), cluster, scheduler)
    return assert_twins_on_nodes(new_simulation(workload, scheduler, cluster, nodes), pieces)


def assert_twins_on_nodes(simulation: Any, pieces: int = 1) -> bool:
    """Drive a simulation that has not begun with both engines, and compare them."""
    arrays, machine = simulation.arrays, simulation.machine
    if not serves(simulation):
        return False
    native = simulation_of(simulation)
    loop = simulation.kind.loop_of(arrays.sim)
    while True:
        done = 0
        while done < pieces:
            done += loop(*arrays, machine, state.FOREVER, pieces - done)
            if not (isinstance(machine, FailingNodes) and machine.scalars[0].full):
                break
            machine = lengthened(machine)
        assert native.run(passes=pieces) == done
        if not done:
            return True
        native = going_on(native)
        assert_twins(arrays, native)
        if isinstance(machine, FailingNodes):
            assert_same_outages(machine, native)
        assert_same_nodes(arrays, getattr(machine, "nodes", machine), native)


def drawn_rules(data: st.DataObject, rules: dict[str, Any]) -> dict[str, Any]:
    """Return rules that the native engine has, and sometimes nodes in a random order."""
    if rules["backfill"].startswith("slurm"):
        rules["backfill"] = data.draw(st.one_of(SLURM, st.sampled_from(["depth:1", "depth:5"])))
    if data.draw(st.integers(0, 4)) == 0:
        rules["allocation"] = "random:7"
    return rules


@settings(max_examples=400)
@given(st.data(), node_cases())
def test_each_pass_on_nodes(data: st.DataObject, case: Case) -> None:
    cluster, workload, rules = case
    pieces = data.draw(st.sampled_from([1, 3]))
    assert assert_same_after_each_pass(workload, cluster, drawn_rules(data, rules), pieces)


@settings(max_examples=200)
@given(st.data(), partitioned_cases())
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
def test_each_pass_on_partitions(data: st.DataObject, case: Case) -> None:
    cluster, workload, rules = case
    assert assert_same_after_each_pass(workload, cluster, drawn_rules(data, rules))


@settings(max_examples=20)
@given(st.data(), st.integers(0, 10**6))
def test_long_queues(data: st.DataObject, seed: int) -> None:
    """Lists of several blocks."""
    cluster, workload = crowd(seed, jobs=data.draw(st.sampled_from([80, 400])))
    rules = drawn_rules(data, data.draw(node_schedulers(workload)))
    assert assert_same_after_each_pass(workload, cluster, rules, 7)


@pytest.mark.parametrize("log", ["KTH-SP2", "SDSC-SP2"])
@pytest.mark.parametrize("allocation", ["first-fit", "best-fit", "hybrid", "random:3"])
def test_logs_start_by_start(log: str, allocation: str) -> None:
    """Their processors on nodes of one core each, and on nodes of four with memory."""
    workload = load_workload(log)
    processors, n_jobs = workload.processors, len(workload)
    random = np.random.default_rng(0)
    core = np.where(workload.requested_processors % 2 == 0, random.integers(1, 3, n_jobs), 1)
    of_four = replace(
        workload,
        units=workload.requested_processors // core,
        per_unit={"core": core, "mem": random.integers(0, 3, n_jobs)},
    )
    nodes = NodeGroup("thin", processors // 4, {"core": 4, "mem": 9})
    fat = NodeGroup("fat", 2, {"core": 4, "mem": 64})
    ones = Cluster(groups=(NodeGroup("all", processors, {"core": 1}),))
    rules = {"allocation": allocation, "policy": "saf", "backfill_order": "sjbf"}
    for jobs, cluster in ((workload, ones), (of_four, Cluster(groups=(nodes, fat)))):
        assert assert_same_after_each_pass(jobs, cluster, rules, 10_000)


@settings(max_examples=300)
@given(st.data(), st.one_of(node_cases(), partitioned_cases()), QUEUES)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
@pytest.mark.filterwarnings("ignore:.*EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*no window is between")
@pytest.mark.filterwarnings("ignore:.*no job falls under these quotas")
@pytest.mark.filterwarnings("ignore:.*no job follows another")
def test_each_pass_under_restrictions(data: st.DataObject, case: Case, queues: list[int]) -> None:
    """Quotas, windows of some nodes or all, jobs that come when others have ended."""
    cluster, workload, rules = case[0], test_submitted.with_numbers(case[1], queues), case[2]
    rules = drawn_rules(data, quota_strategies.fitted(test_windows.fitted(rules, workload)))
    which = data.draw(st.sets(st.sampled_from(["quota", "windows", "submissions"]), min_size=1))
    if "submissions" in which:
        rules = submission_strategies.fitted(rules)
        workload, rules["dependencies"], _ = data.draw(submission_strategies.chains(workload))
        rules["quota"] = data.draw(test_submitted.bounds(workload))[0]
    elif "quota" in which:
        rules["quota"] = data.draw(quota_strategies.quotas(workload))[0]
    if "windows" in which:
        _, texts = test_windows.windows_on(data, cluster, workload)
        rules["maintenance"] = "; ".join(texts)
    scheduler = scheduler_of("easy", rules)
    pieces = data.draw(st.sampled_from([1, 3]))
    assert assert_same_of_any(workload, scheduler, cluster, pieces)


@settings(max_examples=300)
@given(
    st.data(),
    st.one_of(node_cases(), partitioned_cases()),
    st.lists(st.integers(1, 4), min_size=2, max_size=6),
)
@pytest.mark.filterwarnings("ignore:.*its jobs are in none of the machine's partitions")
@pytest.mark.filterwarnings("ignore:.*EASY's reservation is of nodes by name")
@pytest.mark.filterwarnings("ignore:.*no job may stop another", "ignore:.*there is no job of")
@pytest.mark.filterwarnings("ignore:.*no job f", "ignore:.*no window is between")
def test_each_pass_in_which_jobs_stop_others(
    data: st.DataObject, case: Case, queues: list[int]
) -> None:
    """On partitions, too; beside quotas, windows, and jobs that follow others."""
    cluster, workload = case[0], crowded(with_queues(case[1], queues), data.draw(CLOSE))
    rules = drawn_rules(data, quota_strategies.fitted(case[2]))
    rules["preemption"], slow = data.draw(preemptions(workload))
    if data.draw(st.booleans()):
        rules["quota"] = data.draw(quota_strategies.quotas(workload))[0]
    which = data.draw(st.sampled_from(["nothing", "windows", "dependencies"]))
    if which == "windows" and slow[2] != "suspend":
        rules = test_windows.fitted(rules, workload)
        _, texts = test_windows.windows_on(data, cluster, workload)
        rules["maintenance"] = "; ".join(texts)
    elif which == "dependencies" and slow[2] != "cancel":
        rules = submission_strategies.fitted(rules)
        workload, rules["dependencies"], _ = data.draw(submission_strategies.chains(workload))
    scheduler = scheduler_of("easy", rules)
    pieces = data.draw(st.sampled_from([1, 3]))
    assert assert_same_of_any(workload, scheduler, cluster, pieces)


@settings(max_examples=300)
@given(st.data(), node_cases())
def test_each_pass_of_an_extract(data: st.DataObject, case: Case) -> None:
    """Of a log, which does not say the nodes, or of a simulation that goes on."""
    cluster, workload, rules = case
    rules = usable(drawn_rules(data, rules))
    part: Workload | None
    if data.draw(st.booleans()):
        part, rules, _, _ = parts_of(data, recorded(data, workload), rules)
        if data.draw(st.booleans()):  # run times are learned, or not
            rules["estimate"] = "regression:over=absolute,under=squared,weight=small,eta=1,l2=0"
    else:
        if not isinstance(rules["estimate"], str):
            rules["estimate"] = "clairvoyant"
        long = simulate(workload, cluster=cluster, **rules)
        near = {time + more for time in (*long.start, *long.end) for more in (0, 1)}
        begin = int(data.draw(st.sampled_from(sorted(near))))
        part = continued(long, begin) if (long.end >= begin).any() else None
    if part is None:
        return
    scheduler = scheduler_of("easy", rules)
    try:
        same = assert_same_of_any(part, scheduler, cluster, data.draw(st.sampled_from([1, 3])))
    except WorkloadError as error:
        reasons = {"finds no room on the nodes"}
        if rules["correction"] == "kill":  # others would have run then
            reasons.add("cannot run still")
        assert any(reason in str(error) for reason in reasons)  # noqa: PT017
    else:
        assert same


@settings(max_examples=300)
@given(st.data(), failing_cases())
def test_each_pass_where_nodes_fail(data: st.DataObject, case: FailingCase) -> None:
    cluster, workload, rules, failures = case
    scheduler = scheduler_of("easy", drawn_rules(data, rules))
    pieces = data.draw(st.sampled_from([1, 3]))
    assert assert_twins_on_nodes(failing(workload, scheduler, cluster, table_of(failures)), pieces)


@settings(max_examples=10)
@given(st.data(), st.integers(0, 10**6))
def test_long_queues_where_nodes_fail(data: st.DataObject, seed: int) -> None:
    """Jobs go back into the middle of lists of several blocks, among others of their key."""
    cluster, workload = crowd(seed, jobs=data.draw(st.sampled_from([80, 400])))
    rules = drawn_rules(data, data.draw(node_schedulers(workload))) | {"hold": None}
    if rules["backfill"] not in ("none", "easy", "until-shadow"):
        rules["backfill"] = "easy"
    failures = table_of(data.draw(failures_for(cluster, workload)))
    scheduler = scheduler_of("easy", rules)
    assert assert_twins_on_nodes(failing(workload, scheduler, cluster, failures), 5)


@settings(max_examples=100)
@given(st.data(), cases())
def test_nodes_given_afterwards(data: st.DataObject, case: tuple[Workload, dict[str, Any]]) -> None:
    """Jobs that ask for single cores run as on a pool, and are given nodes at their starts."""
    workload, rules = case
    rules = {name: rules[name] for name in ("backfill", "estimate", "correction")}
    if rules["backfill"] not in ("none", "easy", "until-shadow"):
        rules["backfill"] = "easy"
    rules["allocation"] = data.draw(st.sampled_from([*ALLOCATIONS, "random:7"]))
    cores = data.draw(st.integers(1, max(workload.processors, 1)))
    whole, rest = divmod(workload.processors, cores)
    groups = [NodeGroup("whole", whole, {"core": cores, "gpu": 1})]
    groups += [NodeGroup("rest", 1, {"core": rest})] if rest else []
    cluster = Cluster(groups=tuple(groups))
    mine = simulate(workload, cluster=cluster, **rules)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HPCGYM_ENGINE", "numba")
        other = simulate(workload, cluster=cluster, **rules)
    assert mine.allocation is not None
    assert other.allocation is not None
    for one, two in zip(mine.allocation, other.allocation, strict=True):
        assert one.tolist() == two.tolist()
