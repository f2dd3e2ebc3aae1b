"""Windows: the engine's schedules equal those of the slow simulators; by hand; what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drawing import given
from drawing import strategies as st
from few_jobs import few_jobs
from node_strategies import (
    slow_jobs_and_nodes,
)

import hpcgym
from hpcgym.cluster import Cluster, Failures, NodeGroup
from hpcgym.errors import HpcgymError, WorkloadWarning
from hpcgym.reference.jobs import node_jobs_of
from hpcgym.reference.nodes import simulate_nodes
from hpcgym.scheduler.restrictions import Window, read_windows
from hpcgym.workload.model import Workload


def same(result: hpcgym.Result, expected: list[Any]) -> None:
    assert result.start.tolist() == [job.start for job in expected]
    assert result.end.tolist() == [job.end for job in expected]
    assert result.backfilled.tolist() == [job.backfilled for job in expected]
    assert result.reserved_start.tolist() == [job.reserved_start for job in expected]
    assert "windows" in hpcgym.validate_schedule(result)


def test_by_hand_in_an_extract() -> None:
    """At 5 s a job runs that ends at 20 s; the machine is closed from 10 s to 30 s."""
    log = few_jobs(4, [0, 6, 7], [20, 5, 4], [2, 1, 1], wait_time=[0, 0, 0])
    for maintenance, starts in (
        ("10/30", [0, 30, 30]),
        ("10/30:processors=2", [0, 20, 20]),
        ("10/30:processors=1", [0, 6, 11]),
        ("12/30", [0, 6, 7]),
    ):
        result = hpcgym.simulate(log.extract(5), maintenance=maintenance)
        assert result.start.tolist() == starts
        hpcgym.validate_schedule(result)
        early = replace(result, start=np.array([0, 9, 7]))
        if maintenance == "10/30":
            with pytest.raises(HpcgymError, match="job 1 runs from 9 s to 14 s, within the window"):
                hpcgym.validate_schedule(early)


def three(**columns: list[int]) -> Workload:
    """Return three jobs of 10 s on 2 of 4 processors each, submitted at 0 s, 1 s and 2 s."""
    given = {
        "submit_time": [0, 1, 2],
        "run_time": [10] * 3,
        "requested_time": [10] * 3,
        "requested_processors": [2] * 3,
    }
    header = {"UnixStartTime": ["1772352000"], "TimeZoneString": ["Europe/Berlin"]}
    return replace(Workload.from_columns({**given, **columns}, processors=4), header=header)


@pytest.mark.parametrize(
    ("window", "starts"),
    [
        ("12/20", [0, 1, 20]),  # the third would run until 20 s, and two run until 10 s and 11 s
        ("10/11", [0, 11, 11]),  # a job may end as the window begins, and start as it ends
        ("9/11", [11, 11, 21]),
        ("0/5:processors=2", [0, 5, 10]),
        ("3/5:processors=2", [0, 5, 10]),
        ("5/5000000:processors=1; 40/50:processors=3", [0, 10, 20]),
        # 9:00 in Berlin is the log's beginning
        ("2026-03-01T09:00:10/2026-03-01T08:00:11+00:00", [0, 11, 11]),
        ("2020-01-01/2026-03-01T09:00:05", [5, 5, 15]),  # it began before the log
        (None, [0, 1, 10]),
    ],
)
@pytest.mark.parametrize("backfill", ["none", "easy", "depth:2"])
def test_by_hand(window: str | None, starts: list[int], backfill: str) -> None:
    result = hpcgym.simulate(three(), maintenance=window, backfill=backfill)
    assert result.start.tolist() == starts
    hpcgym.validate_schedule(result)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*no window is between")
@pytest.mark.parametrize("seed", range(6))
def test_more_nodes_than_bits_in_a_word(seed: int) -> None:
    """Slurm's reservations and windows, on nodes on both sides of the 64th and the 128th."""
    rng, n = np.random.default_rng(seed), 60
    run = rng.integers(1, 400, n)
    columns = {
        "submit_time": np.sort(rng.integers(0, 500, n)),
        "run_time": run,
        "requested_time": run * rng.integers(1, 6, n),
        "requested_processors": np.where(rng.random(n) < 0.3, 2, rng.integers(1, 200, n)),
    }
    workload = Workload.from_columns(columns, processors=260)
    cluster = Cluster(groups=(NodeGroup("n", 130, {"core": 2}),))
    windows = [(200, 700, list(range(60, 70))), (900, 1500, [0, 63, 64, 127, 128, 129])]
    texts = [f"{a}/{b}:nodes={','.join(map(str, of))}" for a, b, of in windows]
    rules = {"policy": "fcfs", "backfill": "slurm:bf_interval=30", "backfill_order": "fcfs"}
    rules |= {"estimate": "requested", "correction": "requested", "allocation": "first-fit"}
    result = hpcgym.simulate(workload, cluster=cluster, maintenance="; ".join(texts), **rules)
    jobs, capacity = slow_jobs_and_nodes(cluster, workload)
    same(result, simulate_nodes(jobs, capacity, windows=windows, **rules))
    assert result.backfilled.sum() > 5


def test_nodes_without_room_for_a_job_count_for_the_value_of_others() -> None:
    """Found at random: a core that no unit of job 2 fits has been taken by nobody at 1 s."""
    groups = (
        NodeGroup("gpu", 2, {"core": 2, "gpu": 1}),
        NodeGroup("large", 1, {"core": 7}),
        NodeGroup("small", 1, {"core": 1}),
    )
    units, cores = np.array([2, 12, 1, 1, 2, 12]), np.array([1, 1, 2, 1, 3, 1])
    jobs = replace(
        few_jobs(12, [0] * 6, [1] * 6, units * cores, [10, 1, 1, 1, 1, 1]),
        units=units,
        per_unit={"core": cores, "gpu": np.array([1, 0, 0, 0, 0, 0])},
    )
    cluster = Cluster(groups=groups)
    rules = {"allocation": "weighted", "policy": "f1", "backfill": "slurm"}
    result = hpcgym.simulate(jobs, cluster=cluster, maintenance="100/101", **rules)
    resources, capacity = cluster.resources, cluster.capacity.tolist()
    slow = simulate_nodes(
        node_jobs_of(jobs, resources), capacity, windows=[(100, 101, [0, 1, 2, 3])], **rules
    )
    same(result, slow)


NODES = Cluster(
    groups=(NodeGroup("thin", 2, {"core": 2}), NodeGroup("gpu", 1, {"core": 2, "gpu": 1}))
)


@pytest.mark.parametrize(
    ("window", "nodes", "starts"),
    [
        ("5/15:nodes=gpu", [0, 1, 0], [0, 1, 10]),
        ("5/15:nodes=thin", [2, 2, 0], [0, 10, 15]),
        ("5/15:nodes=1-2", [0, 0, 1], [0, 10, 15]),
        ("5/15", [0, 1, 2], [15, 15, 15]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*EASY's reservation is of nodes by name")
def test_nodes_by_hand(window: str, nodes: list[int], starts: list[int]) -> None:
    result = hpcgym.simulate(three(), cluster=NODES, maintenance=window)
    assert result.start.tolist() == starts
    assert result.allocation is not None
    assert result.allocation.node[result.allocation.first[:-1]].tolist() == nodes
    hpcgym.validate_schedule(result)


def test_short_jobs_start_before_a_window_and_long_ones_wait() -> None:
    jobs = three(run_time=[10, 50, 5], requested_time=[10, 50, 5], requested_processors=[4] * 3)
    assert hpcgym.simulate(jobs, maintenance="20/30").start.tolist() == [0, 30, 10]
    assert hpcgym.simulate(jobs, maintenance="20/30", backfill="none").start.tolist() == [0, 30, 80]


def test_priorities_by_usage_are_those_of_the_end_of_a_window() -> None:
    """By hand: by 1000 s what user 1 has used is forgotten, and job 1 has waited for longer."""
    jobs = few_jobs(1, [0, 5, 9], [10, 100, 100], [1, 1, 1], user_id=[1, 1, 2])
    rules = {"policy": {"fairshare": 1, "wait": 0.01}, "fair_share": {"half_life_s": 20}}
    soon = hpcgym.simulate(jobs, **rules)
    assert soon.start.tolist() == [0, 110, 10]
    late = hpcgym.simulate(jobs, maintenance="10/1000", **rules)
    assert late.start.tolist() == [0, 1000, 1100]


def test_a_file_of_failures_as_planned(tmp_path: Path) -> None:
    file = tmp_path / "outages.csv"
    Failures(np.array([0, 1, 2]), np.array([5, 5, 40]), np.array([15, 15, 50])).write(file)
    assert (
        hpcgym.Scheduler(maintenance=str(file)).describe()["maintenance"]
        == "5/15:nodes=0-1; 40/50:nodes=2"
    )
    result = hpcgym.simulate(three(), cluster=NODES, maintenance=str(file), backfill="depth:2")
    assert result.start.tolist() == [0, 10, 15]


def test_the_proof_looks_by_itself() -> None:
    result = hpcgym.simulate(three(), "easy")
    for window, text in (
        ("9/12", "job 0 runs from 0 s to 10 s, within the window 9/12 (and 2 more)"),
        ("3/4:processors=1", "at 3 s jobs and windows hold 5 of 4 processors"),
    ):
        wrong = replace(result, scheduler=replace(result.scheduler, maintenance=window))
        with pytest.raises(HpcgymError) as error:
            hpcgym.validate_schedule(wrong)
        assert text in str(error.value)
    result = hpcgym.simulate(three(), cluster=NODES)
    wrong = replace(result, scheduler=replace(result.scheduler, maintenance="9/12:nodes=1"))
    with pytest.raises(HpcgymError, match="job 1 runs from 1 s to 11 s, within the window"):
        hpcgym.validate_schedule(wrong)


DATES = st.sampled_from(["2026-03-01", "2026-03-01T08:00", "2026-03-01 08:00:01+01:00"])


@given(
    st.lists(
        st.one_of(
            st.builds(
                Window,
                st.integers(0, 100),
                st.integers(101, 2**53),
                st.one_of(st.none(), st.integers(1, 2**31)),
            ),
            st.builds(Window, DATES, DATES, nodes=st.sampled_from(["", "gpu", "thin,0-3,7"])),
        ),
        max_size=3,
    )
)
def test_as_text_and_back(given: list[Window]) -> None:
    assert read_windows("; ".join(map(str, given)) or None) == read_windows(given) == tuple(given)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("there/windows.csv", "there/windows.csv: no such file"),
        ("soon", "window 'soon' is neither a file nor BEGIN/END"),
        ("soon/later", "begin must be whole seconds of the log's clock or a date"),
        ("-5/10", "begin must be whole seconds"),
        ("10/10", "window '10/10': its end must be after its beginning"),
        ("2026-03-03/2026-03-02", "its end must be after its beginning"),
        ("2020-03-02/2020-03-01", "its end must be after its beginning"),
        ("2020-03-02/2020-03-03", "'2020-03-02/2020-03-03' is over before the log begins"),
        ("0/10:processors=0", "processors must be a whole number from 1 on, not 0"),
        ("0/10:processors=many", "processors must be a whole number, not 'many'"),
        ("0/10:processors=5", "the machine has 4 processors"),
        ("0/10:nodes=0", "a pool of processors has no nodes"),
        ("0/10:cores=1", "end must be whole seconds"),
        ("0/10; 5/20:processors=1", "0/10 and 5/20:processors=1 take more at once"),
    ],
)
def test_what_is_no_window_is_one_line(window: str, message: str) -> None:
    with pytest.raises(HpcgymError) as error:
        hpcgym.simulate(three(), maintenance=window)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("0/10:processors=2", "of a machine of nodes say which, such as :nodes=0-3"),
        ("0/10:nodes=fat", "'fat' is neither a group nor a number of nodes"),
        ("0/10:nodes=0-3", "node 3 is none of the machine"),
        ("0/10:nodes=0; 5/20:nodes=thin", "take more at once than there is of node 0"),
    ],
)
def test_windows_that_a_machine_cannot_have(window: str, message: str) -> None:
    with pytest.raises(HpcgymError, match=message):
        hpcgym.simulate(three(), cluster=NODES, maintenance=window)
    named = Cluster(groups=(NodeGroup("n[01-03]", 3, {"core": 2}),))
    with pytest.raises(
        HpcgymError, match="0/10:nodes=n02 and 5/20 take more at once than there is of node n02"
    ):
        hpcgym.simulate(three(), cluster=named, maintenance="0/10:nodes=n02; 5/20")


def test_what_windows_do_not_go_with() -> None:
    with pytest.raises(HpcgymError, match="estimate='ave2' may be too short, and a job would run"):
        hpcgym.simulate(three(), maintenance="5/10", estimate="ave2")
    hpcgym.simulate(three(), maintenance="5/10", estimate="ave2", correction="kill")
    with pytest.raises(HpcgymError, match="the log does not tell by which date it begins"):
        hpcgym.simulate(replace(three(), header={}), maintenance="2026-03-01/2026-03-02")
    with pytest.warns(WorkloadWarning, match=r"no window is between the first submission \(0 s\)"):
        hpcgym.simulate(three(), maintenance="500/600")
