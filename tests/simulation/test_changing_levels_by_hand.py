"""Levels that change while jobs run: small schedules worked out by hand, and refusals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import hpcgym
from hpcgym import simulate, validate_schedule
from hpcgym.baselines.labels import scheduler_name
from hpcgym.cluster import Cluster, NodeGroup, NodePower
from hpcgym.cluster.power import slowed, units_a_second
from hpcgym.errors import HpcgymError
from hpcgym.schedule.level_changes import LevelChanges
from hpcgym.schedule.result import Result
from hpcgym.scheduler.limits import EnergyBudget, PowerCap
from hpcgym.scheduler.rules import Scheduler
from hpcgym.validation.validate import ScheduleError

pytestmark = pytest.mark.slow

#: Half as fast at the lower level, 150 W for 200 W.
POWER = NodePower(100, [150, 200], 10, [1, 2], 2.0)
MACHINE = Cluster(groups=(NodeGroup("node", 4, {"core": 1}, POWER),))


def jobs(*rows: tuple[int, int, int, int]) -> hpcgym.Workload:
    """Submission, run time, requested time, nodes."""
    names = ("submit_time", "run_time", "requested_time", "requested_processors")
    columns = dict(zip(names, (list(column) for column in zip(*rows, strict=True)), strict=True))
    return hpcgym.Workload.from_columns(columns, processors=4, name="by hand")


def running(workload: hpcgym.Workload, *caps: PowerCap, **rules: Any) -> Result:
    rules = {"power": "dvfs", "dvfs_when": "running", **rules}
    result = simulate(workload, cluster=MACHINE, limits=caps, **rules)
    assert {"levels", "caps", "energy"} <= set(validate_schedule(result))
    return result


def changes(result: Result) -> list[tuple[int, ...]]:
    assert result.level_changes is not None
    return list(zip(*(column.tolist() for column in result.level_changes), strict=True))


def test_a_job_is_slow_while_a_cap_lasts() -> None:
    """50 s at the highest level do half of its work, 30 s at the lowest 15 of 100."""
    workload, cap = jobs((0, 100, 100, 4)), PowerCap(600, 50, 80)
    result = running(workload, cap)
    assert changes(result) == [(0, 50, 0), (0, 80, 1)]
    assert result.frequency is not None
    assert (result.frequency[0], result.end[0]) == (1, 115)
    assert result.power.watts.tolist() == [800, 600, 800, 0]
    assert result.power.time.tolist() == [0, 50, 80, 115]
    joules = 800 * 50 + 600 * 30 + 800 * 35
    assert result.energy.by_job.energy_j.tolist() == [joules]
    assert result.energy.by_node.energy_j.tolist() == [joules / 4] * 4
    assert result.metrics["energy_j"] == joules
    assert result.metrics["cap_exceeded_s"] == 0
    assert result.full_speed_run_time.tolist() == [100]
    assert result.bsld[0] == 1.15
    assert not result.killed.any()
    # a level that is chosen at the start alone is low throughout
    before = simulate(workload, cluster=MACHINE, limits=[cap], power="dvfs")
    assert before.end.tolist() == [200]
    assert before.level_changes is None


def test_a_job_is_killed_at_its_requested_time_as_it_is_stretched() -> None:
    result = running(jobs((0, 500, 100, 4)), PowerCap(600, 50, 80))
    assert (result.end[0], result.killed[0]) == (115, True)


def test_the_head_slows_others_to_start() -> None:
    """Under 650 W the first has 2 nodes at the highest level, both have all 4 at the lowest."""
    result = running(jobs((0, 100, 100, 2), (10, 50, 50, 2)), PowerCap(650, 0, 10_000))
    assert result.start.tolist() == [0, 10]
    assert changes(result) == [(0, 10, 0), (0, 110, 1)]
    # 10 s, 100 s at half speed, 40 s
    assert result.end.tolist() == [150, 110]


def test_a_backfilled_job_slows_nobody() -> None:
    """The second waits for all nodes; the third would fit beside the first, if that were slow."""
    rows = (0, 100, 100, 2), (10, 50, 50, 4), (20, 5, 5, 2)
    result = running(jobs(*rows), PowerCap(650, 0, 10_000))
    assert result.start.tolist() == [0, 100, 200]
    assert result.end[0] == 100


def test_the_last_to_start_is_slowed_first() -> None:
    """Of 800 W a cap leaves 700: one of two jobs goes slower."""
    result = running(jobs((0, 100, 100, 2), (1, 100, 100, 2)), PowerCap(700, 50, 60))
    assert changes(result) == [(1, 50, 0), (1, 60, 1)]
    assert result.end.tolist() == [100, 106]


def test_the_first_to_start_is_sped_up_first() -> None:
    rows = (0, 100, 100, 1), (0, 100, 100, 1), (0, 20, 20, 1)
    # 550 W: all at the lowest; the third ends at 40 s, and leaves 50 W, for one node
    result = running(jobs(*rows), PowerCap(550, 0, 1000))
    assert result.frequency is not None
    assert result.frequency.tolist() == [0, 0, 0]
    assert changes(result) == [(0, 40, 1), (1, 120, 1)]


def test_a_cap_that_is_announced_late_slows_what_runs() -> None:
    workload, cap = jobs((0, 100, 100, 4)), PowerCap(500, 30, 60, announced=40)
    result = running(workload, cap)
    assert changes(result) == [(0, 40, 0), (0, 60, 1)]
    assert result.metrics["cap_exceeded_s"] == 20  # not even the lowest level keeps it
    killing = running(workload, replace(cap, watts=600, kills=True))
    assert not killing.killed.any()  # slow is enough
    assert running(workload, replace(cap, kills=True)).end.tolist() == [40]


def test_how_long_a_job_may_take_is_reckoned_anew() -> None:
    """The first would end at 120 s at the lowest level, at 100 s once it has run for 20 s.

    So at the pass of 20 s there is power under the cap to come for the second, which needs as much.
    """
    rows = (0, 60, 60, 2), (0, 60, 60, 2), (20, 1, 1, 4)
    result = running(jobs(*rows), PowerCap(500, 100, 1000))
    assert result.start.tolist()[:2] == [0, 20]
    assert running(jobs(*rows[:2]), PowerCap(500, 100, 1000)).start.tolist() == [0, 60]


def test_predictions_move_with_the_work() -> None:
    """The head is promised the predicted end of what runs, as it is by then."""
    rows = (0, 100, 100, 4), (55, 10, 10, 4)
    result = running(jobs(*rows), PowerCap(600, 50, 80))
    assert result.reserved_start[1] == 150  # half of the work at half speed
    assert result.start[1] == 115


def test_nothing_changes_without_caps() -> None:
    workload = hpcgym.load_workload("lublin:jobs=200,processors=4,seed=3")
    for limits in ([], [PowerCap(1e6)]):
        rules = {"cluster": MACHINE, "limits": limits, "power": "mix"}
        usual = simulate(workload, **rules)
        result = simulate(workload, dvfs_when="running", **rules)
        assert np.array_equal(result.start, usual.start)
        assert np.array_equal(result.end, usual.end)
        assert (result.frequency, changes(result)) == (None, [])
        assert result.metrics == usual.metrics


def test_a_log_of_changes_that_grows() -> None:
    caps = [PowerCap(600, 10 * k, 10 * k + 5) for k in range(1, 60)]
    result = running(jobs((0, 400, 400, 4)), *caps)
    # 10 s, then 7.5 s of work in each 10
    assert (result.end[0], len(changes(result))) == (530, 2 * 52)


def test_units_of_work() -> None:
    """A job that keeps its level takes as long as its slowdown says, or at most a second less."""
    factor = np.array([1.0, 1.1, 1.63, 2.5, 7.0, 1000.0])
    assert units_a_second(factor)[[0, 3]].tolist() == [10**9, 4 * 10**8]
    for time in (1, 59, 3600, 86_400, 10**7):
        by_units = -(-time * 10**9 // units_a_second(factor))
        less = slowed(np.full(6, time), factor) - by_units
        assert set(less.tolist()) <= {0, 1}
        assert time > 10**6 or not less.any()


def test_the_label() -> None:
    rules = Scheduler(power="mix", dvfs_when="running")
    assert scheduler_name(rules) == "easy, mix power, frequencies change while jobs run"


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"dvfs_when": "later"}, "unknown dvfs_when 'later'"),
        ({"power": "shut"}, "dvfs_when='running' slows jobs down: it needs power='dvfs' or 'mix'"),
        ({"policy": "fairshare"}, "dvfs_when='running' and policy='fairshare' do not go together"),
        ({"dispatcher": "prb"}, "dvfs_when='running' and dispatcher='prb' do not go together"),
        ({"limits": [EnergyBudget(1e9, 0, 60)]}, "dvfs_when='running' does not go with budgets"),
        ({"limits": None}, "power='dvfs' needs limits"),
    ],
)
def test_refusals(rules: dict[str, Any], message: str) -> None:
    given = {"limits": [], "power": "dvfs", "dvfs_when": "running", **rules}
    with pytest.raises(HpcgymError) as error:
        simulate(jobs((0, 1, 1, 1)), cluster=MACHINE, **given)
    assert message in str(error.value)


def test_more_work_than_is_counted() -> None:
    with pytest.raises(HpcgymError, match=r"a job requests 2e\+09 s; .* counted up to 1e\+09 s"):
        running(jobs((0, 1, 2 * 10**9, 1)), PowerCap(700))
    with pytest.raises(HpcgymError, match=r"estimate: for a job it predicts 1\.1e\+12 s; .* up to"):
        running(jobs((0, 1, 1, 1)), PowerCap(700), estimate=[2**40])


# --- Broken schedules are told ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([(0, 50, 0)], "has run time 115 s instead of 150 s"),
        ([(0, 50, 0), (0, 81, 1)], "run time 115 s instead of 116 s"),
        ([(0, 80, 0), (0, 50, 1)], "those of job 0 are not one after the other"),
        ([(0, 50, 0), (0, 120, 1)], "those of job 0 are not one after the other"),
        ([(1, 50, 0)], "level changes: the schedule has 1 jobs"),
        ([(0, 50, -1), (0, 80, 1)], "job 0 goes on at level -1, and there are 2"),
        ([(0, 50, 2), (0, 80, 1)], "job 0 goes on at level 2, and there are 2"),
    ],
)
def test_changes_that_are_wrong(rows: list[tuple[int, int, int]], message: str) -> None:
    result = running(jobs((0, 100, 100, 4)), PowerCap(600, 50, 80))
    told = LevelChanges(*(np.array(column) for column in zip(*rows, strict=True)))
    with pytest.raises((ScheduleError, HpcgymError)) as error:
        validate_schedule(replace(result, level_changes=told))
    assert message in str(error.value)


def test_fast_jobs_above_a_cap_are_told() -> None:
    result = running(jobs((0, 100, 100, 4)), PowerCap(600, 50, 80))
    lower = (PowerCap(500, 10, 40, announced=10), *(result.limits or ()))
    with pytest.raises(ScheduleError, match="jobs run fast at 0 s"):
        validate_schedule(replace(result, limits=(PowerCap(700, 0, 40), *lower)))


def test_changes_when_nothing_happens_are_told() -> None:
    """As long, and as much, but a second early."""
    result = running(jobs((0, 100, 100, 4)), PowerCap(600, 50, 80))
    early = LevelChanges(np.zeros(2, np.int64), np.array([49, 79]), np.array([0, 1]))
    with pytest.raises(ScheduleError, match="changes at 49 s, when nothing happens"):
        validate_schedule(replace(result, level_changes=early))
