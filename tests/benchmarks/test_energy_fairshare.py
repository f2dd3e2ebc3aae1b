"""The study of energy fair share, on a small workload, and on the thesis's trace if at hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.benchmarks.energy import shares, shares_run
from hpcgym.benchmarks.energy.shares import READINGS, TEXT, load_trace, measure, stretches
from hpcgym.benchmarks.studies.items import Stored
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
    rows = shares_run.rows_of([{"trace": "t", "reading": TEXT}], [outcome])
    of = rows.set_index(["config", "efficiency", "user"]).loc[("efs", "green", user)]
    by_means, by_jobs = of["by_means"], of["by_jobs"]
    assert by_means == pytest.approx(after.mean() / before.mean(), rel=1e-12)
    assert by_jobs == pytest.approx((after / before).mean(), rel=1e-12)
    assert by_means != by_jobs


def test_late_copies_tell_what_chance_does() -> None:
    outcome = measure(task_of("late 1"))
    assert [row["policy"] for row in outcome["rows"]] == ["efs"] * 2 + ["fs+efs"] * 2 + ["fs"]
    assert (outcome["rows"][-1]["policy"], outcome["rows"][-1]["efficiency"]) == shares.CHANCE
    chance = np.array(outcome["rows"][-1]["by_means"])
    assert (chance > 0).all()
    assert (chance != 1).any()
    late, logged = (load_trace(SOURCE, READINGS[name], None) for name in ("late 1", TEXT))
    moved = late.submit_time[np.argsort(late.job_number)] - logged.submit_time
    assert (moved.min(), moved.max()) == (0, 60)


def test_statistics_are_those_of_a_sample() -> None:
    known = {"trace": "t", "reading": TEXT, "config": "efs", "efficiency": "green"}
    rows = pd.DataFrame([{**known, "by_means": value} for value in (0.5, 1.0, 3.0)])
    (row,) = shares_run.table_6_1(rows)[shares_run.STATISTICS].to_numpy().tolist()
    assert row == [0.5, 1.5, 1.0, pytest.approx(np.sqrt(1.75)), 3.0]


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
    values = shares.run_esp(1.0, 5)
    table = shares_run.statements({1.0: values}, ["figure 6.2", "figure 6.3"])
    so = dict(zip(table["sentence"], table["so, load 1"], strict=True))
    assert len(so) == 8
    open_here = ("under FS and FIFO", "under EFS the efficient", "under FS+EFS users")
    assert {of for words, of in so.items() if not words.startswith(open_here)} == {"yes"}
    used = values[[f"used_{policy}" for policy in shares.ESP_POLICIES]]
    assert used.shape == (5, 4)
    assert used.to_numpy().min() > 0.85
    assert used.to_numpy().max() < 0.95


def test_frequencies_are_as_the_thesis_says_of_them() -> None:
    """Linpack's degradation over Curie's frequencies, and 2.3 GHz as the most efficient one."""
    k, a = shares.shares_of_frequency()
    assert shares.slowdown(1.2 / 2.7, k) == pytest.approx(2.14)
    ghz = np.linspace(1.6, 2.5, 901)
    energy = [shares.slowdown(x, k) * shares.drawn_at(x, a) for x in ghz / 2.5]
    assert ghz[np.argmin(energy)] == pytest.approx(2.3)
    assert np.argmax(energy) == 0
    efficiencies = shares.efficiencies()
    assert efficiencies["normal"] == (1.0, 1.0)
    assert efficiencies["green"][0] == pytest.approx(1 + k * (2.5 / 2.3 - 1))


def test_light_esp_on_180_cores_is_table_6_2_with_users_in_turn() -> None:
    jobs = shares.light_esp_of(seed=5, load=1.0)
    assert len(jobs) == 4 * 230
    assert (jobs.requested_processors % 12 == 0).all()
    users, sizes = jobs.user_id.reshape(4, 230), jobs.requested_processors.reshape(4, 230)
    assert (sizes == sizes[0]).all()
    for turn in range(1, 4):  # each time another user
        assert ((users[turn] - users[0]) % 3 == turn % 3).all()
    # job type A: 22 s at the highest frequency, on one node
    longer = {user: times_and_power[0] for user, times_and_power in shares.efficiencies().items()}
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


def test_sentences_of_180_cores_can_hold_and_fail() -> None:
    """Users in the other order: what the text says of one is then said of another."""
    usual = shares.run_180(1.0, 10)
    turned = {"green": "gluttonous", "normal": "normal", "gluttonous": "green"}
    other = {
        policy: [
            {what: {user: by[turned[user]] for user in by} for what, by in became.items()}
            for became in of
        ]
        for policy, of in usual.items()
    }
    verdicts = []
    for outcome in (usual, other):
        values = {1.0: shares_run.values_of_180(outcome)}
        table = shares_run.statements(values, ["figure 6.5", "figure 6.6", "figure 6.7"])
        assert len(table) == 11
        verdicts.append(table.set_index(["item", "sentence"])["so, load 1"])
    for key in (
        ("figure 6.5", "gluttonous jobs wait much longer than both others"),
        ("figure 6.6", "gluttonous jobs have the worst"),
        ("figure 6.7", "gluttonous jobs wait much longer than both others"),
    ):
        assert [so[key] for so in verdicts] == ["yes", "no"]


def test_a_burst_is_better_for_green_jobs_in_both() -> None:
    others = dict.fromkeys(shares.BURST_USERS[1:], np.array([2.0]))
    green = shares.BURST_USERS[0]
    bursts = {
        saved: {
            "wait": {green: np.array([1.0]), **others},
            "stretch": {green: np.array([stretch]), **others},
        }
        for saved, stretch in ((0.3, 1.7), (0.2, 1.9), (0.1, 3.0))  # 1.9 is not a tenth better
    }
    table = shares_run.of_burst(bursts)
    assert table.filter(like="so, ").to_numpy().tolist() == [["yes", "no", "no"]]


def test_what_chance_decides_is_undecided() -> None:
    for values, so in (([0.5, 0.6], True), ([1.5, 1.6], False), ([0.1, 1.8], "undecided")):
        orders = pd.DataFrame({"x": values * 5, "y": 1.0})
        assert shares_run.findings(orders, [{"so": "x < 1"}]) == [(f"x {np.mean(values):.4g}", so)]


@pytest.mark.parametrize(
    ("by_jobs", "chance", "expected"),
    [(2.0, 4.8, "not met"), (2.0, 1.05, "not met"), (1.0, 4.8, "close")],
)
def test_table_6_1_is_no_mean_of_ratios_if_chance_alone_has_more(
    by_jobs: float, chance: float, expected: str, tmp_path: Path
) -> None:
    """By the other mean all is as printed; by the text's, so many times that."""
    mine = shares_run.TABLE_6_1["mean"].loc["SDSC-SP2"]
    known = {"trace": "SDSC-SP2", "reading": TEXT}
    rows = pd.DataFrame(
        {**known, "config": policy, "efficiency": efficiency, "user": 1, "by_means": mean}
        | {"by_jobs": by_jobs * mean}
        for (policy, efficiency), mean in mine.items()
    )
    differs = dict(zip(("config", "efficiency"), shares.CHANCE, strict=True))
    late = {**known, **differs, "user": 1, "reading": "late 1", "by_means": 1.0, "by_jobs": chance}
    made = {"6.1": shares_run.table_6_1(rows), "6.1-by-jobs": shares_run.table_6_1(rows, "by_jobs")}
    made["late"] = shares_run.of_late(pd.concat([rows, pd.DataFrame([late])]))
    for name, table in made.items():
        table.to_csv(tmp_path / f"table-{name}.csv", index=False)
    verdict, why = shares_run.JUDGES["table 6.1"](Stored(tmp_path))
    assert verdict == expected
    words = "where nobody differs, is SDSC-SP2 4.80, above every printed mean (SDSC-SP2 1.10 at"
    assert (words in why) == (by_jobs == 2.0 and chance == 4.8)
    assert "by a user's mean stretch over that before 4 means are within 0.1, and 6 sente" in why


def test_the_user_of_figure_6_1_is_placed_by_the_mean_of_ratios(tmp_path: Path) -> None:
    trace, user = shares_run.WORST_OFF
    cells = [cell for cell in shares_run.CELLS if cell != ("efs", "green")]
    known = {"trace": trace, "reading": TEXT}
    rows = [
        {**known, "config": policy, "efficiency": of, "user": who, "by_means": 1.0, "by_jobs": 1.0}
        for who in (user, 7)
        for policy, of in cells
    ]
    green = {**known, "config": "efs", "efficiency": "green"}
    rows += [{**green, "user": user, "by_means": 0.3, "by_jobs": 19.0}]
    rows += [{**green, "user": 7, "by_means": 2.0, "by_jobs": 2.0}]
    users = shares_run.of_users(pd.DataFrame(rows))
    users.to_csv(tmp_path / "table-users.csv", index=False)
    used = pd.DataFrame({"day": range(5), "used / most": [0.1, 1.0, 0.2, 0.8, 0.1]})
    used.to_csv(tmp_path / "table-counter.csv", index=False)
    verdict, why = shares_run.JUDGES["figure 6.1"](Stored(tmp_path))
    assert (verdict, why) == (
        "trend",
        "3 of 3 sentences hold; by the text it grows by 344 %, by table 6.1 to 3.44 times, which is"
        " by 244 %",
    )


def test_the_published_means_of_sdsc_sp2(trace: Callable[[str], Path]) -> None:
    """Signs, and means within 0.1."""
    file = str(trace("SDSC-SP2-1998-4.2-cln.swf.gz"))
    outcome = measure(task_of(TEXT, file, shares.USERS))
    rows = shares_run.rows_of([{"trace": "SDSC-SP2", "reading": TEXT}], [outcome])
    table = shares_run.table_6_1(rows)
    assert (table["mean"] - table["published mean"]).abs().max() <= 0.1
    assert ((table["mean"] < 1) == (table["published mean"] < 1)).all()


test_mistakes = mistakes_of(globals())
