"""Forecasts: what they say, and what they never look at."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from drawing import given, settings
from drawing import strategies as st
from mistakes import mistakes_of
from other_futures import altered

import hpcgym
from hpcgym import Cluster
from hpcgym.errors import HpcgymError, WorkloadError, WorkloadWarning
from hpcgym.forecasting.arrivals import Arrivals
from hpcgym.forecasting.forecasts import StartForecast, quantiles
from hpcgym.forecasting.reasons import correlations, least_told
from hpcgym.forecasting.run_times import Distribution, RunTimes
from hpcgym.machine import Partition
from hpcgym.schedule.result import Result
from hpcgym.workload.extracts import joined
from hpcgym.workload.model import Workload

LOG = hpcgym.load_workload("lublin:jobs=900,processors=64,load=1.1,seed=3")
EASY = hpcgym.simulate(LOG, "easy")
DAY = 86_400


def busy(result: Result, share: float = 0.6) -> int:
    """A time at which jobs wait."""
    waits = np.flatnonzero(result.wait > 600)
    return int(result.start[waits[int(share * len(waits))]]) - 1


def told(state: Any, rules: str = "easy", **more: Any) -> list[Any]:
    """All that a forecast says, of a few futures."""
    forecast = hpcgym.forecast(state, rules, futures=8, **more)
    new = forecast.if_submitted(16, "2h", user=int(state.jobs.user_id[0]))
    shapes = forecast.shapes([8, 32], ["1h", 7200])
    table = forecast.table()
    shorter = forecast.shorter(int(table.job.iloc[-1]), [600]) if len(table) else shapes
    tables = [each.to_numpy().tolist() for each in (table, shapes, shorter, forecast.reasons())]
    return [*tables, forecast.starts.tolist(), new.starts.tolist()]


# --- Nothing that nobody can know -----------------------------------------------------------------


@pytest.mark.parametrize("rules", ["easy", "aged", "fairshare", "easy++", "conservative"])
@pytest.mark.parametrize("seed", range(2))
def test_forecasts_of_a_simulation_do_not_see_the_future(rules: str, seed: int) -> None:
    result = hpcgym.simulate(LOG, rules)
    now = busy(result)
    other = hpcgym.simulate(altered(LOG, result, now, seed), rules, processors=64)
    both = [hpcgym.snapshot(each, now + 1) for each in (result, other)]
    names = ("submit_time", "requested_time", "requested_processors", "user_id", "run_time")
    first, second = (
        [[part.columns[name].tolist() for name in names] for part in (state.jobs, state.past)]
        for state in both
    )
    assert first == second
    assert (both[0].jobs.run_time == -1).all()
    n = len(other.workload)
    assert other.workload.run_time.tolist() != LOG.run_time[:n].tolist()
    assert told(both[0], rules) == told(both[1], rules)


def test_forecasts_of_a_log_do_not_see_the_future() -> None:
    log, now = EASY.as_workload(), busy(EASY)
    ended = EASY.end <= now
    rng = np.random.default_rng(0)
    waits = log.submit_time + log.wait_time >= now
    columns = {
        "run_time": np.where(ended, log.run_time, log.requested_time),
        "wait_time": np.where(waits, log.wait_time + rng.integers(0, 999, len(log)), log.wait_time),
        "submit_time": np.where(log.submit_time >= now, log.submit_time + DAY, log.submit_time),
    }
    other, first = log.with_columns(**columns), hpcgym.snapshot(log, now)
    live = log.take(log.submit_time < now)
    started = live.submit_time + live.wait_time < now
    live = live.with_columns(
        run_time=np.where(EASY.end[: len(live)] <= now, live.run_time, -1),
        wait_time=np.where(started, live.wait_time, -1),
    )
    expected = told(first)
    for same in (other, live):
        state = hpcgym.snapshot(same, now)
        assert len(state.jobs) == len(first.jobs)
        assert told(state) == expected


def test_a_past_of_ones_own_is_used_up_to_the_time_only() -> None:
    state = hpcgym.snapshot(EASY, busy(EASY))
    whole = EASY.as_workload()
    ended = whole.take(EASY.end <= state.time)
    assert told(state, past=whole) == told(state, past=ended) == told(state)
    assert told(state, past=ended.take(slice(50))) != told(state)


def test_the_same_seed_says_the_same_on_any_number_of_threads() -> None:
    state = hpcgym.snapshot(EASY, busy(EASY))
    first = told(state, threads=1)
    assert told(state, threads=2) == told(state, threads=5) == told(state) == first
    assert told(state, seed=1) != first


# --- What is known at a time ----------------------------------------------------------------------


def test_a_live_log_has_jobs_that_have_not_ended_or_started() -> None:
    """The first has ended, the second runs beyond its limit, the third runs, the others wait."""
    live = Workload.from_columns(
        {
            "job_number": [1, 2, 3, 4, 5, 6],
            "submit_time": [0, 5, 10, 20, 30, 99],
            "wait_time": [0, 5, 20, -1, 70, 1],
            "run_time": [50, -1, -1, -1, 30, 5],
            "requested_time": [60, 60, 600, 60, 60, 60],
            "requested_processors": [1, 2, 1, 4, 1, 1],
        },
        processors=4,
        name="live",
    )
    state = hpcgym.snapshot(live, at=100)
    assert state.jobs.job_number.tolist() == [2, 3, 4, 5, 6]
    assert state.start.tolist() == [10, 30, -1, -1, -1]
    assert state.jobs.requested_time.tolist() == [91, 600, 60, 60, 60]
    assert set(state.jobs.run_time.tolist()) == {-1}
    assert state.jobs.wait_time.tolist() == [5, 20, -1, -1, -1]
    assert state.past.job_number.tolist() == [1]
    assert repr(state) == (
        "MachineState(live at 100 s: 2 jobs run on 4 processors, 3 wait, 1 have ended)"
    )
    starts = hpcgym.forecast(state, "easy", futures=5).of(4)
    assert (starts.starts >= 101).all()


def test_an_idle_machine_starts_a_job_at_once() -> None:
    state = hpcgym.snapshot(EASY, int(EASY.end.max()) + 10 * DAY)
    assert len(state.jobs) == 0
    forecast = hpcgym.forecast(state, "easy", futures=3)
    assert forecast.if_submitted(64, "1h").starts.tolist() == [state.time] * 3
    assert forecast.table().empty


def test_a_result_tells_more_than_its_log() -> None:
    """Such as which reservations there are."""
    result = hpcgym.simulate(LOG, "conservative")
    now = busy(result)
    known, log = hpcgym.snapshot(result, now), hpcgym.snapshot(result.as_workload(), now)
    assert known.jobs.job_number.tolist() == log.jobs.job_number.tolist()
    assert known.start.tolist() == log.start.tolist()
    assert known.jobs.initial.ongoing is not None  # type: ignore[union-attr]
    assert log.jobs.initial.ongoing is None  # type: ignore[union-attr]


# --- What is asked of a forecast ------------------------------------------------------------------


def test_a_table_has_the_quantiles_of_each_waiting_job() -> None:
    state = hpcgym.snapshot(EASY, busy(EASY))
    forecast = hpcgym.forecast(state, "easy", futures=20)
    table = forecast.table([0.05, 0.5, 0.975])
    names = ["job", "user", "processors", "requested", "waited", "p5", "p50", "p97.5"]
    assert list(table) == names
    assert table.job.tolist() == state.jobs.job_number[~state.running].tolist()
    assert ((table.p5 <= table.p50) & (table.p50 <= table["p97.5"])).all()
    for job in table.job:
        one = forecast.of(job)
        assert one.median == table.p50[table.job == job].item()
        assert one.by(float(one.starts[-1])) == 1
        assert one.by(float(one.starts[0]) - 1) == 0
        assert "starts in: 10 %" in repr(one)


def test_quantiles_between_a_time_and_never_are_never() -> None:
    """By hand: of four, the quantile of level p is at place (4 + 1/3) p + 1/3, from 1."""
    never = np.inf
    starts = np.array([[10.0, 20, 30, 40], [10, 20, never, never], [-never, -never, 30, 40]])
    levels = [0.0, 1 / 13, 2 / 13, 0.5, 1.0]  # places 1 (as 1/3 is before it), 1, 1, 2.5 and 4
    assert quantiles(starts.T, levels).T.tolist() == [
        pytest.approx([10, 10, 10, 25, 40]),
        [10, 10, 10, never, never],
        [-never, -never, -never, -never, 40],
    ]
    whole = np.full((4, 2), [never, -never])
    assert quantiles(whole, [0.1, 0.9]).tolist() == [[never, -never], [never, -never]]


def test_a_shape_that_is_given_twice_has_one_row() -> None:
    forecast = hpcgym.forecast(hpcgym.snapshot(EASY, busy(EASY)), "easy", futures=4)
    once = forecast.shapes([8, 16], ["1h", "2h"])
    twice = forecast.shapes([8, 16, 8], ["1h", 3600, "2h", "3600"])
    assert once.to_numpy().tolist() == twice.to_numpy().tolist()
    job = int(forecast.table().job.iloc[-1])
    now = int(forecast.table().requested.iloc[-1])
    assert forecast.shorter(job, [600, now, "10min"]).requested.tolist() == [now, 600]


def test_by_takes_times_of_day_and_durations() -> None:
    one = StartForecast(7, 2 * DAY + 3600 * 13, 3600 * np.array([50.0, 62.0, 66.0, np.inf]))
    assert one.second_of("18:00") == 2 * DAY + 3600 * 18
    assert one.second_of("9:30:15") == 3 * DAY + 3600 * 9 + 1815
    assert one.second_of("6h") == 2 * DAY + 3600 * 19
    assert (one.by("14:00"), one.by("18:00"), one.by("1d"), one.by(10 * DAY)) == (
        0.5, 0.75, 0.75, 0.75,
    )  # fmt: skip
    assert one.quantiles([0.1, 0.9]).tolist() == [50 * 3600, np.inf]


def test_numbers_are_seconds_of_the_clock_and_a_day_ends_at_24() -> None:
    start = StartForecast(7, 9 * DAY + 3600, np.array([9.5 * DAY]))
    assert start.second_of("777600") == start.second_of(777_600) == 9 * DAY
    assert start.second_of("24:00") == start.second_of("00:00") == 10 * DAY
    for wrong in ("25:00", "24:01", "12:60", float("nan"), float("inf")):
        with pytest.raises(HpcgymError, match="by: a time of day"):
            start.second_of(wrong)


def test_a_log_says_when_it_knows_too_little() -> None:
    log = EASY.as_workload()
    first, last = int(log.submit_time[0]), int(log.submit_time[-1])
    with pytest.raises(WorkloadError, match="before the first submission"):
        hpcgym.snapshot(log, first - 1)
    with pytest.warns(WorkloadWarning, match="after the last submission"):
        hpcgym.snapshot(log, last + 9 * DAY)
    with pytest.warns(WorkloadWarning, match="less than two weeks"):
        hpcgym.snapshot(log, first + DAY)
    names = ("submit_time", "wait_time", "run_time", "requested_time", "requested_processors")
    jobs = pd.DataFrame({name: log.columns[name] for name in names})
    jobs.loc[jobs.run_time > 9000, "run_time"] = -1
    with pytest.warns(WorkloadWarning, match="had no run time and were dropped"):
        hpcgym.snapshot(hpcgym.load_workload(jobs, processors=64), last)
    with warnings.catch_warnings(record=True) as told_of:
        warnings.simplefilter("always")
        state = hpcgym.snapshot(jobs, last, processors=64)
    assert not any("dropped" in str(warning.message) for warning in told_of)
    assert (state.jobs.job_number[state.running]).size


@pytest.mark.parametrize(
    ("when", "hours"),
    [
        ("18:00", 8),
        ("10:00", 0),
        ("9:59:59", 24 - 1 / 3600 + 1),  # Sunday has 25 hours
        ("sun 18:00", 33),
        ("Saturday 9:00", 24 * 7 + 0),
        ("Mon 24:00", 24 + 25 + 24 - 10),
        ("2023-10-29 18:00", 33),
        ("2023-10-29T18:00:00+01:00", 33),
        ("2023-10-28", -10),
        ("6h", 6),
    ],
)
def test_times_are_those_of_the_clocks_of_the_log(when: str, hours: float) -> None:
    """It is Saturday, 2023-10-28, 10:00 in Berlin, where clocks are set back in the night."""
    zone = {"UnixStartTime": ["1698393600"], "TimeZoneString": ["Europe/Berlin"]}
    now = 1698480000 - 1698393600
    one = StartForecast(7, now, np.array([np.inf]), zone)
    assert one.second_of(when) == now + 3600 * hours


def test_without_dates_there_are_no_weekdays() -> None:
    one = StartForecast(7, DAY, np.array([np.inf]))
    for wrong in ("Tue 18:00", "2024-05-03 18:00"):
        with pytest.raises(HpcgymError, match="the log does not tell the date at which it begins"):
            one.second_of(wrong)
    for wrong in ("Tux 18:00", "Tue 25:00", "2024-05-33"):
        with pytest.raises(HpcgymError, match=r"^by"):
            StartForecast(7, 0, one.starts, {"UnixStartTime": ["1698393600"]}).second_of(wrong)


def test_smaller_and_shorter_jobs_start_no_later_in_the_mean() -> None:
    state = hpcgym.snapshot(EASY, busy(EASY))
    forecast = hpcgym.forecast(state, "easy", futures=16)
    shapes = forecast.shapes([64, 32, 4], ["20h", "1h"])
    assert shapes.processors.tolist() == [64, 64, 32, 32, 4, 4]
    assert shapes.requested.tolist() == [72_000, 3600] * 3
    assert shapes.earlier.iloc[0] == 0 == shapes.earlier_share.iloc[0]
    assert shapes.earlier.iloc[-1] > 0
    alone = forecast.if_submitted(4, "1h")
    assert shapes.p50.iloc[-1] == alone.median - state.time
    of_work = forecast.shapes([64, 3], work="8h")
    assert of_work.requested.tolist() == [450, 9600]


def test_a_job_that_asks_for_less_is_the_same_job_in_the_same_futures() -> None:
    forecast = hpcgym.forecast(STATE, "easy", futures=16)
    waiting = forecast.table()
    job, now = int(waiting.job.iloc[-1]), int(waiting.requested.iloc[-1])
    shorter = forecast.shorter(job, [now, 600])
    assert shorter.requested.tolist() == [now, 600]
    assert shorter.p50[0] == forecast.of(job).median - STATE.time
    assert shorter.ends[0] == 1 >= shorter.ends[1]
    assert shorter.earlier_p10[1] <= shorter.earlier_p50[1] <= shorter.earlier_p90[1]
    assert shorter.earlier[1] > 0


def test_new_jobs_ask_for_resources_of_nodes() -> None:
    result = hpcgym.simulate("helios:jobs=1500,load=1.3,seed=1", "easy", cluster="helios")
    state = hpcgym.snapshot(result, int(result.workload.submit_time[1400]))
    forecast = hpcgym.forecast(state, "easy", futures=4)
    most = dict(zip(result.cluster.resources, result.cluster.capacity.max(axis=0), strict=True))
    gpus = int(most["gpu"])
    nodes = len(result.cluster.capacity)
    for asked in ({"core": 1}, {"core": 1, "gpu": gpus}):
        forecast.if_submitted(1, "1h", per_unit=asked)
    with pytest.raises(hpcgym.errors.WorkloadError):  # more than a node has
        forecast.if_submitted(1, "1h", per_unit={"gpu": gpus + 1})
    free, whole = (
        forecast.if_submitted(nodes, "1h", per_unit={"gpu": of_node}).median
        for of_node in (0, gpus)
    )
    assert free <= whole
    assert whole > state.time


def test_nodes_have_forecasts_too() -> None:
    machine = Cluster(groups=(hpcgym.machine.NodeGroup("n", 16, {"core": 4}),))
    jobs = LOG.with_columns(requested_processors=np.maximum(LOG.requested_processors // 4, 1) * 4)
    units = jobs.requested_processors // 4
    jobs = Workload.from_columns(
        jobs.columns, processors=64, units=units, per_unit={"core": np.full(len(jobs), 4)}
    )
    result = hpcgym.simulate(jobs, "easy", cluster=machine)
    forecast = hpcgym.forecast(hpcgym.snapshot(result, busy(result)), "easy", futures=4)
    assert np.isfinite(forecast.starts).all()
    assert np.isfinite(forecast.if_submitted(64, "1h").starts).all()


def test_a_start_depends_on_the_job_that_it_waits_for() -> None:
    """Job 3 starts as job 1 ends, which has 3 of 4 processors; job 4 as all have ended."""
    columns = {
        "job_number": [1, 2, 3, 4],
        "user_id": [1, 2, 3, 3],
        "requested_processors": [3, 1, 3, 4],
        "submit_time": [0, 0, 10, 20],
        "wait_time": [0, 0, -1, -1],
        "requested_time": [1000] * 4,
        "run_time": [-1] * 4,
    }
    past = ended(run_time=[100, 200, 300, 400, 500] * 8, user_id=[1, 2] * 20)
    past = past.with_columns(requested_time=np.full(40, 1000), job_number=np.arange(10, 50))
    jobs = Workload.from_columns(columns, processors=4).with_columns(
        submit_time=np.array([0, 0, 10, 20]) + 9000, wait_time=np.array([0, 0, -1, -1])
    )
    state = hpcgym.snapshot(joined(past, jobs), 9050)
    assert state.jobs.job_number[state.running].tolist() == [1, 2]
    forecast = hpcgym.forecast(state, "easy", futures=64)
    of_third, of_fourth = forecast.depends_on(3), forecast.depends_on(4)
    assert list(of_third) == ["job", "user", "processors", "correlation", "share"]
    assert of_third.job.tolist() == [1, 2]
    assert of_third.correlation[0] == pytest.approx(1)
    assert abs(of_third.correlation[1]) < 0.4
    assert of_fourth.job[0] == 1
    assert of_fourth.correlation[0] < 0.9  # job 3 runs before it, too
    shares = {job: np.median(forecast._own_runs[:, k]) / 1000 for k, job in enumerate([1, 2])}
    assert dict(zip(of_third.job, of_third.share, strict=True)) == shares
    reasons = forecast.reasons()
    assert (reasons.job.tolist(), reasons.on.tolist()) == ([3, 4], [1, 1])
    assert reasons.correlation.tolist() == [of_third.correlation[0], of_fourth.correlation[0]]
    assert reasons.share.tolist() == [shares[1]] * 2
    usual = f"{shares[1]:.0%}"
    assert forecast.why(3) == (
        f"its start depends most on job 1, which usually ends at {usual} of its request (rank"
        " correlation 1.00)"
    )


@given(st.integers(0, 1000))
@settings(max_examples=30)
def test_correlations_are_those_of_ranks(seed: int) -> None:
    """By the definition: ties have their mean rank, and never is the latest."""
    rng = np.random.default_rng(seed)
    runs, starts = rng.integers(1, 6, (12, 3)), rng.integers(0, 9, (12, 2)).astype(float)
    starts[starts == 8] = np.inf

    def ranks(values: Any) -> Any:
        return [(values < x).sum() + ((values == x).sum() - 1) / 2 for x in values]

    result = correlations(runs, starts)
    for i in range(3):
        for k in range(2):
            both = [ranks(runs[:, i]), ranks(starts[:, k])]
            wanted = 0 if min(map(np.std, both)) == 0 else np.corrcoef(both)[0, 1]
            assert result[i, k] == pytest.approx(wanted, abs=1e-12)


def test_chance_alone_is_not_told() -> None:
    """Of independent run times and starts of 20 jobs, one is told in a hundredth of the cases."""
    rng = np.random.default_rng(0)
    most = [correlations(rng.random((64, 20)), rng.random((64, 1))).max() for _ in range(400)]
    assert 0 <= np.mean(np.array(most) > least_told(64, 20)) <= 0.03
    assert least_told(1, 5) == least_told(9, 0) == 1


def parted(default: str) -> tuple[Cluster, Workload]:
    """A machine of which 8 nodes are a partition of their own, and a third of small jobs there."""
    nodes = tuple(range(64))
    parts = {"most": nodes[8:], "few": nodes[:8]}
    machine = Cluster(
        groups=(hpcgym.machine.NodeGroup("n", 64, {"core": 1}),),
        partitions=tuple(
            Partition(name, on, default=name == default) for name, on in parts.items()
        ),
    )
    small = (LOG.requested_processors <= 8) & (np.arange(len(LOG)) % 3 == 0)
    size = np.minimum(LOG.requested_processors, 56)
    jobs = LOG.with_columns(partition=np.where(small, 2, 1), requested_processors=size)
    names = {"Partition": ["1 most", "2 few"], "User": ["1 alice", "2 bob"]}
    return machine, replace(jobs, header={**LOG.header, **names})


def test_new_jobs_are_in_a_partition() -> None:
    answers = {}
    for default in ("most", "few"):
        machine, jobs = parted(default)
        result = hpcgym.simulate(jobs, "easy", cluster=machine)
        forecast = hpcgym.forecast(hpcgym.snapshot(result, busy(result)), "easy", futures=4)
        for asked in (None, "few", 2, "most"):
            starts = forecast.if_submitted(4, "1h", partition=asked).starts.tolist()
            answers[default, asked] = starts
    assert answers["most", None] == answers["most", "most"] == answers["few", "most"]
    assert answers["few", None] == answers["few", "few"] == answers["few", 2]
    assert answers["few", "few"] != answers["few", "most"]
    with pytest.raises(HpcgymError, match=r"^unknown partition 'fw'; did you mean 'few'"):
        forecast.if_submitted(4, "1h", partition="fw")
    with pytest.raises(WorkloadError, match="16 units of 1 core, in partition few"):
        forecast.if_submitted(16, "1h", partition="few")


def test_a_partition_in_which_no_job_has_been_yet() -> None:
    machine, jobs = parted("most")
    jobs = replace(
        jobs.with_columns(partition=np.ones(len(jobs))), header={"Partition": ["1 most"]}
    )
    result = hpcgym.simulate(jobs, "easy", cluster=machine)
    state = hpcgym.snapshot(result, busy(result))
    forecast = hpcgym.forecast(state, "easy", futures=4)
    assert forecast.partitions == {"most": 1, "few": 2}
    assert forecast.if_submitted(8, "1h", partition="few").starts.tolist() == [state.time] * 4
    assert forecast.if_submitted(8, "1h").median > state.time


def test_users_have_names() -> None:
    forecast = hpcgym.forecast(hpcgym.snapshot(replace_users(), busy(EASY)), "easy", futures=8)
    by_number = forecast.if_submitted(16, "2h", user=3).starts.tolist()
    for user in ("carol", "3"):
        assert forecast.if_submitted(16, "2h", user=user).starts.tolist() == by_number
    with pytest.raises(HpcgymError, match=r"of a user 'carl'; did you mean 'carol'"):
        forecast.if_submitted(16, "2h", user="carl")
    with pytest.raises(HpcgymError, match="of a user 'carol'; it tells no names"):
        FORECAST.if_submitted(16, "2h", user="carol")


def replace_users() -> Workload:
    log = EASY.as_workload()
    return replace(log, header={**log.header, "User": ["3 carol", "4 dora"]})


def test_numbers_alone_are_seconds_and_not_minutes() -> None:
    """Here, in Python; ``hpcgym when -t`` takes them as sbatch does."""
    for requested, seconds in [("240", 240), (240, 240), ("4min", 240), ("4:00:00", 14_400)]:
        assert FORECAST.shapes([4], [requested]).requested.tolist() == [seconds]


def test_warnings_point_to_who_asks() -> None:
    """Also where what is asked for is worked out when it is first asked for."""
    machine, _ = parted("most")
    forecast = hpcgym.forecast(hpcgym.snapshot(EASY.as_workload(), busy(EASY), cluster=machine))
    with pytest.warns(WorkloadWarning, match="none of the machine's partitions") as record:
        forecast.table()
    assert {warning.filename for warning in record} == {__file__}


# --- Run times and arrivals -----------------------------------------------------------------------


def ended(**columns: Any) -> Workload:
    n = len(columns["run_time"])
    usual = {"submit_time": np.zeros(n, np.int64), "wait_time": np.zeros(n, np.int64)}
    usual |= {"requested_time": [100] * n, "requested_processors": [1] * n, "user_id": [1] * n}
    return Workload.from_columns(usual | columns, processors=4)


def test_run_times_are_learned_from_what_has_ended() -> None:
    known = RunTimes(ended(run_time=[10, 20, 90]))
    assert known.typical_ratio(5) == 1.0
    assert known.typical_ratio(10) == 0.1
    assert known.typical_ratio(1000) == 0.2
    before, after = known.of(1, 100, 1, 5), known.of(1, 100, 1, 50)
    assert before.values.tolist() == list(range(10, 101, 10))  # even over the request
    assert after.cumulative[-1] == 1
    assert after.quantile(0.3) == 10 < after.quantile(0.7) == 20
    others = known.of(2, 1000, 1, 50)  # by the share of the request
    assert {100, 200} < set(others.values.tolist())


def test_a_running_job_runs_at_least_as_long_as_it_has() -> None:
    known = RunTimes(ended(run_time=[10, 20, 90]))
    assert known.of(1, 100, 1, 500, elapsed=20).values.min() == 20
    assert known.of(1, 100, 1, 500, elapsed=21).values.min() > 21
    assert known.of(1, 100, 1, 500, elapsed=100).values.tolist()[0] == 100


def test_draws_have_their_distributions_and_are_alike_within_a_request() -> None:
    past = ended(run_time=list(range(1, 101)) * 2, user_id=[1, 2] * 100)
    known, none = RunTimes(past), np.full(4, -1)
    asked = ended(run_time=[-1] * 4, user_id=[1, 1, 2, 3], requested_time=[100, 100, 100, 50])
    drawn = known.sample(asked, none, 1000, 4000, [0])
    assert drawn.shape == (4000, 4)
    for j, user in enumerate(asked.user_id.tolist()):
        by = known.of(user, int(asked.requested_time[j]), 1, 1000)
        assert isinstance(by, Distribution)
        for level in (0.1, 0.5, 0.9):
            assert abs(np.quantile(drawn[:, j], level) - by.quantile(level)) <= 2
    rank = drawn.argsort(axis=0).argsort(axis=0)
    alike = np.corrcoef(rank.T)
    assert 0.4 < alike[0, 1] < 0.6
    assert abs(alike[0, 2]) < 0.1


def test_blocks_of_past_weeks_come_at_the_same_time_of_the_week() -> None:
    week = 7 * DAY
    submit = np.sort(np.concatenate([k * week + np.arange(10) * 3600 for k in range(4)]))
    jobs = ended(run_time=[60] * 40, submit_time=submit, job_number=list(range(40)))
    arrivals = Arrivals(jobs, jobs.run_time)
    blocks = arrivals.sample(4 * week, 30, np.random.default_rng(0))
    assert all((block.submit >= 4 * week).all() for block in blocks)
    assert {int(block.submit[0]) for block in blocks if len(block.rows) == 10} >= {4 * week}
    shifts = {int(s) for block in blocks for s in block.submit - submit[block.rows]}
    assert shifts <= {k * week + day for k in (1, 2, 3) for day in (0, DAY)}
    again = arrivals.sample(4 * week, 30, np.random.default_rng(0))
    assert [b.submit.tolist() for b in again] == [b.submit.tolist() for b in blocks]
    assert (
        Arrivals(jobs.take(slice(0)), np.zeros(0, np.int64))
        .sample(5, 1, np.random.default_rng(0))[0]
        .rows.tolist()
        == []
    )


def test_blocks_have_the_load_of_late() -> None:
    week = 7 * DAY
    submit = np.arange(0, 10 * week, 600)
    wide = np.where(submit < 8 * week, 1, 3)
    jobs = ended(run_time=[60] * len(submit), submit_time=submit, requested_processors=wide)
    blocks = Arrivals(jobs, jobs.run_time).sample(10 * week, 200, np.random.default_rng(0))
    asked = [int(wide[block.rows].sum()) for block in blocks]
    old = [n for n, block in zip(asked, blocks, strict=True) if (wide[block.rows] == 1).all()]
    assert np.mean(old) == pytest.approx(2 * 1008, rel=0.02)  # three times as many are too many


STATE = hpcgym.snapshot(EASY, busy(EASY))
FORECAST = hpcgym.forecast(STATE, "easy", futures=2)
#: A job has run longer than the last two of its user.
LONGER = hpcgym.snapshot(ended(submit_time=[0, 20, 40], run_time=[10, 10, -1]), 99)
RUNNING = int(STATE.jobs.job_number[STATE.running][0])

test_mistakes = mistakes_of(globals())
