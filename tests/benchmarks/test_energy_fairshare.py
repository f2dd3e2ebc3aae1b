"""The study of energy fair share, on a small workload, and on the thesis's trace if at hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcgym.benchmarks.energy import shares, shares_run
from hpcgym.benchmarks.energy.shares import READINGS, TEXT, load_trace, measure, stretches
from hpcgym.benchmarks.energy.shares_run import TABLE_6_1
from hpcgym.errors import HpcgymError
from hpcgym.simulation.run import simulate
from hpcgym.workload.fingerprint import fingerprint

SOURCE = "lublin:jobs=1500,processors=32,seed=3,load=1.1,users=12"


def task_of(reading: str, source: str = SOURCE, users: int = 3) -> dict[str, Any]:
    jobs = load_trace(source, READINGS[reading], None)
    known = {"source": source, "reading": reading, "jobs": None, "users": users}
    return {**known, "jobs_sha256": fingerprint([jobs])}


def test_one_user_at_a_time_saves_or_wastes() -> None:
    outcome = measure(task_of(TEXT))
    jobs = load_trace(SOURCE, READINGS[TEXT], None)
    number = np.bincount(jobs.user_id)
    assert number[outcome["users"]].tolist() == sorted(number.tolist(), reverse=True)[:3]
    assert outcome["jobs"] == 1500
    rules = {"backfill_order": "energy-fairshare", "passes": "per-event"}
    user = outcome["users"][1]
    mine = jobs.user_id == user
    before = stretches(simulate(jobs, "energy-fairshare", **rules))[mine]
    # the usual power does not matter, only what it is of the others'
    green = jobs.with_columns(power_w=np.where(mine, 7.0, 10.0))
    after = stretches(simulate(green, "energy-fairshare", **rules))[mine]
    found = shares_run.ratios(outcome)["efs", "green"][1]
    assert found == pytest.approx(after.mean() / before.mean(), rel=1e-12)
    by_jobs = shares_run.ratios(outcome, "by_jobs")["efs", "green"][1]
    assert by_jobs == pytest.approx((after / before).mean(), rel=1e-12)
    assert found != by_jobs


def test_late_copies_tell_what_chance_does() -> None:
    outcome = measure(task_of("late 1"))
    assert [row["policy"] for row in outcome["rows"]] == ["efs"] * 2 + ["fs+efs"] * 2 + ["fs"]
    chance = shares_run.ratios(outcome)[shares.CHANCE]
    assert (chance > 0).all()
    assert (chance != 1).any()
    late, logged = (load_trace(SOURCE, READINGS[name], None) for name in ("late 1", TEXT))
    moved = late.submit_time[np.argsort(late.job_number)] - logged.submit_time
    assert (moved.min(), moved.max()) == (0, 60)


def test_other_jobs_are_refused() -> None:
    with pytest.raises(HpcgymError, match="other jobs here"):
        measure({**task_of(TEXT), "jobs_sha256": "x"})


def test_statistics_are_those_of_a_sample() -> None:
    row = shares_run.row_of(np.array([0.5, 1.0, 3.0]))
    assert row == (0.5, 1.5, 1.0, pytest.approx(np.sqrt(1.75)), 3.0)
    low, high = json.loads(shares_run.interval(np.array([0.5, 1.0, 3.0, 0.5, 2.5])))
    assert 0.5 <= low < 1.5 < high <= 3.0
    assert shares_run.interval(np.array([0.5, 1.0, 3.0, 1.5])) == "-"


def test_the_counter_of_a_user_halves_in_a_half_life() -> None:
    jobs = load_trace(SOURCE, READINGS[TEXT], None).take(slice(0, 60))
    jobs = jobs.with_columns(power_w=np.full(60, 2.0))
    result = simulate(jobs, "fcfs")
    user = int(jobs.user_id[0])
    times, used = shares_run.counter(result, user, 5_000)
    joules = 2.0 * jobs.requested_processors * result.run_time
    mine = jobs.user_id == user
    last = np.append(np.diff(times) > 0, True)  # of all that ends in a second
    assert len(times) == mine.sum() > 3
    for time, of in zip(times[last], used[last], strict=True):
        ended = mine & (result.end <= time)
        halved = 0.5 ** ((time - result.end[ended]) / 5_000)
        assert of == pytest.approx((joules[ended] * halved).sum())


def test_three_users_of_light_esp() -> None:
    """What the thesis says of its figures, but for what depends on when jobs come."""
    outcomes = [shares.run_esp(kind, 1.0, 3) for kind in (shares.EFFICIENCY, shares.WORKLOAD)]
    table = shares_run.statements(outcomes)
    so = dict(zip(table["Glesser 2016, section 6.3.2"], table["so, load 1"], strict=True))
    assert len(so) == 7
    assert so["other jobs: but for FIFO all policies have the same results"] == "yes"
    assert so["other jobs: the user with most is penalised"] == "yes"
    assert so["EFS and FS+EFS: the more energy, the larger the stretch"] == "yes"
    assert so["all policies have the same utilisation"] == "yes"
    by_policy = shares_run.of_esp(outcomes).groupby("policy")["utilisation"]
    assert by_policy.mean().between(0.85, 0.93).all()


def test_frequencies_are_as_the_thesis_says_of_them() -> None:
    """Linpack's degradation over Curie's frequencies, and 2.3 GHz as the most efficient one."""
    k, a = shares.shares_of_frequency()
    assert shares.slowdown(1.2 / 2.7, k) == pytest.approx(2.14)
    ghz = np.linspace(1.6, 2.5, 901)
    energy = [shares.slowdown(x, k) * shares.drawn_at(x, a) for x in ghz / 2.5]
    assert ghz[np.argmin(energy)] == pytest.approx(2.3)
    assert np.argmax(energy) == 0
    found = shares.efficiencies()
    assert found["normal"] == (1.0, 1.0)
    assert found["green"][0] == pytest.approx(1 + k * (2.5 / 2.3 - 1))


def test_light_esp_on_180_cores_is_table_6_2_with_users_in_turn() -> None:
    jobs = shares.light_esp_of(seed=5, load=1.0)
    assert len(jobs) == 4 * 230
    assert (jobs.requested_processors % 12 == 0).all()
    users, sizes = jobs.user_id.reshape(4, 230), jobs.requested_processors.reshape(4, 230)
    assert (sizes == sizes[0]).all()
    for turn in range(1, 4):  # each time another user
        assert ((users[turn] - users[0]) % 3 == turn % 3).all()
    # job type A: 22 s at the highest frequency, on one node
    longer = {user: found[0] for user, found in shares.efficiencies().items()}
    times = {user: int(np.rint(22 * longer[user])) for user in ("green", "normal", "gluttonous")}
    assert times == {"green": 24, "normal": 22, "gluttonous": 33}
    green = jobs.run_time[(jobs.user_id == 1) & (jobs.requested_processors == 12)]
    assert 24 in green
    assert 22 not in green
    assert jobs.submit_time[230] == 935
    assert (np.diff(jobs.submit_time) >= 0).all()


def test_a_burst_is_served_by_what_users_have_consumed() -> None:
    """Three of 60 jobs fit at a time: by hand, until the first turn in which users differ."""
    jobs = shares.burst(0.20)
    assert len(jobs) == 60
    assert set(jobs.requested_processors) == {60}
    joules = jobs.power_w * jobs.run_time * 60
    assert joules[1] == joules[2]
    assert joules[0] == pytest.approx(0.8 * joules[1])
    result = shares.simulated(jobs, "EFS")
    first = np.flatnonzero(result.start == 0)
    assert first.tolist() == [0, 1, 2]  # nobody has used anything: in order of submission
    # at 60 s the jobs of both others have ended, the green user's has not: nothing is counted for
    # her, and both processors are hers
    second = np.flatnonzero(result.start == 60)
    assert jobs.user_id[second].tolist() == [1, 1]
    assert int((result.start + jobs.run_time).max()) <= 60 // 3 * 65


def test_what_the_text_says_of_180_cores_holds_with_load_1() -> None:
    outcomes = {1.0: shares.run_180(1.0, shares.SEEDS)}
    table = shares_run.statements_180(outcomes, shares.run_burst())
    so = dict(zip(table["Glesser 2016, section 6.3.3"], table["so, load 1"], strict=True))
    assert len(so) == 12
    assert set(so.values()) == {"yes"}


def test_sentences_of_180_cores_can_fail() -> None:
    """Users in the other order: what the text says of one is then said of another."""
    usual = shares.run_180(1.0, 2)
    turned = {"green": "gluttonous", "normal": "normal", "gluttonous": "green"}
    other = {
        policy: shares.Outcome180(
            {user: of.wait[turned[user]] for user in of.wait},
            {user: of.stretch[turned[user]] for user in of.stretch},
        )
        for policy, of in usual.items()
    }
    table = shares_run.statements_180({1.0: other}, shares.run_burst())
    so = dict(zip(table["Glesser 2016, section 6.3.3"], table["so, load 1"], strict=True))
    for words in ("6.5: gluttonous jobs wait", "6.6: gluttonous jobs", "6.7: gluttonous jobs wait"):
        assert {value for key, value in so.items() if words in key} == {"no"}


@pytest.mark.parametrize(("green", "so"), [(0.85, True), (0.95, False), (1.05, False)])
def test_a_little_less_is_not_clearly_better(green: float, so: bool) -> None:
    means = dict(zip(shares.BURST_USERS, (green, 1.0, 1.1), strict=True))
    values = {user: np.array([mean]) for user, mean in means.items()}
    for other in (values, {**values, shares.BURST_USERS[0]: np.array([0.1])}):
        outcome = shares.Outcome180(wait=values, stretch=other)
        assert shares_run._improved({min(shares.BURST_SAVED): outcome})[1] == so


def test_the_published_means_of_sdsc_sp2(trace: Callable[[str], Path]) -> None:
    """Signs, and means within 0.1."""
    file = str(trace("SDSC-SP2-1998-4.2-cln.swf.gz"))
    outcome = measure(task_of(TEXT, file, shares.USERS))
    means = {cell: of.mean() for cell, of in shares_run.ratios(outcome).items()}
    for cell, theirs in TABLE_6_1["SDSC-SP2"].items():
        assert means[cell] == pytest.approx(theirs.mean, abs=0.1)
        assert (means[cell] < 1) == (theirs.mean < 1)
