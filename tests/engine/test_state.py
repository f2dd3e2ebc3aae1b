"""What a pass finds, worked out by hand: orders see it so, in the engine and in the reference.

At a time, A waits, and B, which came later. An order has B first if a name has a value for it: so
who starts tells whether it has.
"""

from __future__ import annotations

from typing import Any

import pytest
from few_jobs import few_jobs
from same_results import agreed

from hpcgym.machine import Cluster, Failures, NodeGroup, Partition
from hpcgym.scheduler.asked_for import check_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.workload.model import Workload

A, B = -2, -1  # the last two jobs
HOUR = 3600


def sees(
    jobs: Workload, name: str, value: float, time: int, backfill: str = "none", **rules: Any
) -> bool:
    """Return whether B starts at this time, and A later, rather than the other way round."""
    policy = f"(submit == {jobs.submit_time[B]}) * ({name} == {value!r})"
    result = agreed(jobs, policy=policy, backfill=backfill, **rules)
    starts = result.start[A], result.start[B]
    assert min(starts) == time < max(starts)
    return bool(starts[1] == time)


# At 10 s one of two jobs of user 1 has ended, the other runs on. Three of four processors are free.
MACHINE = few_jobs(
    4,
    submit=[0, 0, 5, 6],
    run=[10, 30, 20, 20],
    wide=[2, 1, 3, 2],
    requested=[11, 10 + HOUR, 21, 22],
    user_id=[1, 1, 2, 1],
    header={"UnixStartTime": ["1000000000"]},  # a Sunday, at 1:46:40
)
VALUES = {
    "free": (0.75, 0.5, 1.0),
    "free_1h": (1.0, 0.75),
    "queued": (2, 1, 4),
    "behind": (26.75, 26.0),
    "hour": (1.7805555555555554, 0.0),  # 1:46:50
    "weekday": (6, 0, 5),
    "machine_size": (4, 3, 1),
    "fits": (1, 0),
    "leaves": (0.25, 0.75, 0.0),
    "user_running": (1, 0, 2),
    "user_waiting": (1, 0, 2),
    "last_run": (10, 11, 22, 30),
    "mean_run": (10, 22, 20),
    "spread_run": (0, 10),
    "known_runs": (1, 0, 2),
}


@pytest.mark.parametrize("passes", ["per-timestamp", "per-event"])
@pytest.mark.parametrize("name", VALUES)
def test_each_name_has_its_value(name: str, passes: str) -> None:
    right, *wrong = VALUES[name]
    assert sees(MACHINE, name, right, 10, passes=passes)
    for value in wrong:
        assert not sees(MACHINE, name, value, 10, passes=passes)


def test_an_hour_begins_now_and_the_second_of_an_end_is_in_it() -> None:
    later = MACHINE.with_columns(requested_time=[11, 11 + HOUR, 21, 22])
    assert sees(later, "free_1h", 0.75, 10)
    assert not sees(later, "free_1h", 1.0, 10)


def test_a_log_that_does_not_tell_when_it_began_does_so_on_a_monday() -> None:
    days = few_jobs(1, [0, 1, 2], [2 * 86_400 + 90, 9, 9], [1, 1, 1])
    assert sees(days, "weekday", 2, 2 * 86_400 + 90)
    assert sees(days, "hour", 0.025, 2 * 86_400 + 90)


def test_who_does_not_fit_leaves_nothing() -> None:
    """B wants all four, of which one is taken up to 30 s; A would start before it, at 10 s."""
    wide = MACHINE.with_columns(requested_processors=[2, 1, 3, 4])
    cases = (("fits == 0", [30, 50]), ("leaves == 0", [50, 30]), ("leaves < 0", [10, 30]))
    for seen, starts in cases:
        result = agreed(wide, policy=f"(submit == 6) * ({seen})", backfill="none")
        assert result.start.tolist() == [0, 0, *starts], seen


def test_last_run_times_are_of_ended_jobs_of_the_user_five_at_most() -> None:
    """Runs of 1 s to 6 s one after the other, then one of another user; B's runs are 2 s to 6 s."""
    runs = [1, 2, 3, 4, 5, 6, 79, 7, 7]
    submit = [0, 1, 2, 3, 4, 5, 6, 50, 51]
    jobs = few_jobs(1, submit, runs, [1] * 9, [99] * 9, user_id=[3] * 6 + [4, 4, 3])
    assert sees(jobs, "last_run", 6, 100)
    assert sees(jobs, "mean_run", 4, 100)
    assert sees(jobs, "spread_run", 2**0.5, 100)
    assert sees(jobs, "known_runs", 5, 100)
    others = jobs.with_columns(user_id=[3] * 6 + [4, 3, 4])
    assert sees(others, "last_run", 79, 100)
    assert sees(others, "spread_run", 0, 100)
    # two have ended
    some = jobs.with_columns(user_id=[3, 5, 5, 3, 5, 5, 4, 4, 3])
    assert sees(some, "mean_run", 2.5, 100)
    assert sees(some, "spread_run", 1.5, 100)


def test_without_a_run_it_is_the_requested_time_whatever_stands_for_it() -> None:
    jobs = MACHINE.with_columns(user_id=[1, 1, 2, 3])
    for name, value in (("last_run", 22), ("mean_run", 22), ("spread_run", 0), ("known_runs", 0)):
        for estimate in ("requested", "clairvoyant", "ave2"):
            assert sees(jobs, name, value, 10, policy_estimate=estimate)


def test_the_state_is_read_once_in_a_pass() -> None:
    """Three wait for two processors: as many as at first, also once one has started."""
    jobs = few_jobs(2, [0, 1, 2, 3], [10, 5, 5, 5], [2, 1, 1, 1])
    policy = "submit * (1 if queued == 3 else -1)"
    assert agreed(jobs, policy=policy, backfill="none").start.tolist() == [0, 15, 10, 10]
    # backfilled in such an order, too, behind a head that does not fit
    jobs = few_jobs(4, [0, 0, 1, 2, 3, 4], [20, 10, 9, 5, 5, 5], [2, 2, 4, 1, 1, 1])
    rules = {"policy": "fcfs", "backfill": "easy", "backfill_order": "submit * (free == 0.5)"}
    assert agreed(jobs, **rules).start.tolist() == [0, 0, 20, 15, 10, 10]


def test_who_ends_and_who_comes_in_the_second_of_a_pass_has_done_so() -> None:
    jobs = few_jobs(2, [0, 0, 9, 10], [10, 20, 5, 5], [1, 1, 1, 1], user_id=[1, 2, 3, 1])
    for name, value in (("queued", 2), ("free", 0.5), ("user_running", 0), ("last_run", 10)):
        assert sees(jobs, name, value, 10)


# --- Nodes ----------------------------------------------------------------------------------------

NODES = Cluster(groups=(NodeGroup("a", 2, {"core": 2}),))


def test_on_nodes_a_job_fits_where_its_units_do() -> None:
    """A core of each node is taken, and B has a unit of two: where it goes first A waits, too."""
    cores = [1, 1, 1, 2]
    crowd = few_jobs(4, [0, 0, 5, 5], [9] * 4, cores, units=[1] * 4, per_unit={"core": cores})
    rules = {"cluster": NODES, "allocation": "worst-fit", "backfill": "none"}
    for seen, starts in (("fits == 0", [9, 9]), ("fits == 1", [5, 9]), ("leaves > 0", [5, 9])):
        policy = f"(processors == 2) * ({seen})"
        assert agreed(crowd, policy=policy, **rules).start.tolist() == [0, 0, *starts], seen


def test_nodes_that_are_down_are_free_once_they_are_repaired() -> None:
    jobs = few_jobs(2, [0, 5, 6], [50, 9, 9], [1, 1, 1], user_id=[1, 2, 3])
    nodes = Cluster(groups=(NodeGroup("a", 2, {"core": 1}),))
    for repair, then in ((50 + HOUR, 1.0), (51 + HOUR, 0.5)):
        failures = Failures([1], [1], [repair])
        rules = {"cluster": nodes, "failures": failures}
        assert sees(jobs, "free_1h", then, 50, **rules)
        assert not sees(jobs, "free_1h", 1.5 - then, 50, **rules)
        assert sees(jobs, "free", 0.5, 50, **rules)


def test_partitions_bound_where_a_job_fits() -> None:
    parts = (Partition("a", [0]), Partition("b", [1]))
    machine = Cluster(groups=(NodeGroup("n", 2, {"core": 2}),), partitions=parts)
    names = {"Partition": ["1 a", "2 b"]}
    jobs = few_jobs(4, [0, 5, 6], [9, 9, 9], [2, 1, 1], partition=[1, 1, 2], header=names)
    start = agreed(jobs, policy="fits", backfill="none", cluster=machine).start.tolist()
    assert start == [0, 9, 6]


# --- Preemption -----------------------------------------------------------------------------------


def test_the_state_is_that_before_jobs_are_stopped() -> None:
    """At 6 s a queue stops the job that runs; both of it find nothing free, and one job running."""
    jobs = few_jobs(
        2, [0, 6, 6], [90, 5, 5], [2, 2, 2], queue=[1, 2, 2], user_id=[7, 8, 9]
    )  # fmt: skip
    policy = "(user == 9) * (free == 0) * (queued == 2) * (fits == 0)"
    start = agreed(jobs, policy=policy, backfill="easy", preemption="queue:2>1").start.tolist()
    assert start == [16, 11, 6]


# --- Jobs that the schedule itself lets come ------------------------------------------------------


@pytest.mark.parametrize(
    "rules", [{"quota": "user:submitted=1"}, {"dependencies": "closed-loop"}], ids=str
)
def test_who_comes_in_a_pass_waits_already_and_nobody_else(rules: dict[str, Any]) -> None:
    """At 10 s the second job comes; the third waits outside. The last has waited since 3 s."""
    jobs = few_jobs(
        1, [0, 1, 2, 3], [10, 5, 5, 5], [1] * 4, user_id=[1, 1, 1, 2],
        job_number=[1, 2, 3, 4], preceding_job=[-1, 1, 2, -1], think_time=[-1, 0, 0, -1],
    )  # fmt: skip
    for name, value in (("queued", 2), ("user_waiting", 1), ("last_run", 10)):
        for number in range(1, 13):
            policy = f"(user == 1) * (99 if {name} == {number} else -99)"
            result = agreed(jobs, policy=policy, backfill="none", **rules)
            second = result.start[result.workload.job_number == 2].tolist()
            assert second == ([10] if number == value else [15])


@pytest.mark.parametrize("rule", ["policy", "backfill_order"])
def test_where_what_is_free_is_another_matter_other_expressions_are_not(rule: str) -> None:
    check_scheduler(Scheduler(**{rule: "wait ** 2"}), "whole nodes")
