"""The study of rules on whole logs: what it measures, what it chooses, what it writes."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hpcgym import Workload, load_workload, simulate
from hpcgym.baselines import SCHEDULERS
from hpcgym.benchmarks.frontier import run
from hpcgym.benchmarks.frontier.run import (
    AIMS,
    HEADS,
    SHOWN,
    chosen,
    chosen_alone,
    gains,
    levers,
    over_logs,
)
from hpcgym.benchmarks.frontier.runs import ALL, ORDERS, Rule, load_log, measures_by_class
from hpcgym.benchmarks.studies.harness import Folder
from hpcgym.schedule.gains import Felt, felt, gain
from hpcgym.study.tuning.trials import varied
from hpcgym.units import WEEK_S

JOBS = "lublin:jobs=1500,processors=32,seed=2,load=1.1"


def log_of(rows: dict[str, list[tuple[float, float, float, float]]]) -> pd.DataFrame:
    """Rows of a log: rule -> the aims of its early and its late part."""
    return pd.DataFrame(
        [
            {"rule": rule, "start_week": 0, "seed": 0, "part": part}
            | dict(zip(AIMS, values, strict=True))
            | {"area_weighted_wait_h": 2 * values[0]}
            for rule, parts in rows.items()
            for part, values in zip(("early", "late"), parts, strict=True)
        ]
    )


# --- Rules ----------------------------------------------------------------------------------------


def test_each_rule_has_a_name_of_its_own() -> None:
    assert len({rule.name for rule in ALL}) == len(ALL) == 140
    assert {rule.order for rule in ALL} == set(ORDERS)
    assert all(rule.threshold_h is None or rule.order.startswith("saf") for rule in ALL)


def test_a_rule_is_what_its_name_says() -> None:
    rule = Rule("saf-typical", 80, 0.1, "until-shadow")
    assert rule.name == "saf-typical, threshold 80 h, hold 0.1, until shadow"
    described = rule.scheduler.describe()
    assert (described["policy"], described["threshold"]) == ("saf", 288_000)
    assert described["hold"] == "share=0.1,from_s=3600,factor=64,erode_s=14400,by=both"
    assert Rule("easy").scheduler.hold is None
    assert Rule("evolved", 80).scheduler == SCHEDULERS["evolved"]
    for name in ("aged", "aged-safe", "f1", "wfp3"):
        assert Rule(name).name == name
        assert Rule(name).scheduler == SCHEDULERS[name]


# --- What is measured -----------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    """On one processor: a job of 2 h, one of half an hour behind it, one of another user."""
    columns = {
        "submit_time": [0, 0, 3600],
        "requested_processors": [1, 1, 1],
        "run_time": [7200, 1800, 3600],
        "requested_time": [7200, 1800, 3600],
        "user_id": [1, 1, 2],
    }
    result = simulate(Workload.from_columns(columns, processors=1), "fcfs")
    measures = measures_by_class(result, np.array([True, True, True]))
    assert measures["mean_wait_h"] == pytest.approx((0 + 2 + 1.5) / 3)
    assert measures["max_wait_h"] == 2
    assert measures["area_weighted_wait_h"] == pytest.approx((0.5 * 2 + 1 * 1.5) / 3.5)
    assert measures["mean_bsld"] == pytest.approx((1 + 5 + 2.5) / 3)
    assert measures["users_p90_wait_h"] == pytest.approx(1 + 0.9 * 0.5)  # 1 h and 1.5 h
    assert measures["utilization"] == 1
    assert measures["mean_wait_h, below 1 h"] == pytest.approx(1.75)
    assert measures["mean_wait_h, 1 to 6 h"] == 0
    assert math.isnan(measures["mean_wait_h, above 6 h"])
    assert measures["mean_wait_h, above 1/4"] == measures["mean_wait_h"]
    assert measures_by_class(result, np.array([False, True, False]))["mean_bsld"] == 5


def test_variants_of_a_log() -> None:
    jobs = load_workload("lublin:jobs=2000,processors=32,seed=2")
    first = int(jobs.submit_time[0])
    later = varied(jobs, 1, 0)
    assert later.submit_time.min() >= first + WEEK_S
    assert len(later) == int((jobs.submit_time >= first + WEEK_S).sum())
    assert varied(jobs, 0, 0) is jobs
    moved = varied(jobs, 0, 3)
    assert np.array_equal(moved.submit_time, varied(jobs, 0, 3).submit_time)
    assert (np.diff(moved.submit_time) >= 0).all()
    by_number = np.argsort(moved.job_number)
    shift = moved.submit_time[by_number] - jobs.submit_time
    assert 0 <= shift.min() < shift.max() <= 600
    assert np.array_equal(moved.run_time[by_number], jobs.run_time)


# --- Whom it chooses ------------------------------------------------------------------------------


def test_late_parts_choose_nothing() -> None:
    early = {"easy": (100, 2, 20, 80), "quick": (40, 2, 29, 119), "tail": (10, 1, 31, 80)}
    log = log_of({name: [values, (1, 1, 1, 1)] for name, values in early.items()})
    assert list(chosen({"one": log}).index) == ["quick", "easy"]
    other = log_of({name: [values, (9, 9, 9, 9)] for name, values in early.items()})
    assert chosen({"one": other}).equals(chosen({"one": log}))


def test_a_lever_is_a_rule_over_the_same_without_it() -> None:
    rules = [Rule("easy"), Rule("easy", share=0.1), Rule("easy", None, 0.1, "until-shadow")]
    values = [(4.0, 1.0, 1.0, 1.0), (2.0, 1.0, 1.0, 3.0), (1.0, 1.0, 2.0, 3.0)]
    rows = log_of({rule.name: [of, of] for rule, of in zip(rules, values, strict=True)})
    rows["part"] = "whole"
    rows = pd.concat([rows, rows.assign(rule="easy, until shadow")[:1]])
    table = levers({"one": rows}, {rule.name: rule for rule in rules}).set_index("lever")
    head = HEADS["mean_bsld"]
    # one half of 4, and one quarter of what the third has without it
    assert table.loc["hold 0.1", f"{head} ratio"] == pytest.approx(np.median([0.5, 0.25]))
    assert table.loc["without extra processors", f"{head} ratio"] == 0.5


def test_all_logs_choose_together_or_each_alone() -> None:
    late = (1.0, 1.0, 1.0, 1.0)
    log = log_of(
        {"easy": [(8, 1, 1, 1), late], "a": [(2, 1, 1, 1), late], "b": [(4, 1, 1, 1), late]}
    )
    two = log_of(
        {"easy": [(8, 1, 1, 1), late], "a": [(8, 1, 1, 2), late], "b": [(4, 1, 1, 1), late]}
    )
    assert chosen_alone({"one": log, "two": two}) == {"one": "a", "two": "b"}
    together = chosen({"one": log, "two": two})
    assert list(together.index) == ["b", "easy"]
    assert together["slowdown / EASY's"].tolist() == [0.5, 1.0]


def test_ratios_over_logs_are_geometric_means() -> None:
    rules_of_first = {"easy": (8.0, 2.0, 4.0, 5.0), "a": (4.0, 1.0, 4.0, 20.0)}
    two = {"easy": (10.0, 1.0, 1.0, 5.0), "a": (20.0, 4.0, 1.0, 5.0)}
    logs = {}
    for log, rules in {"one": rules_of_first, "two": two}.items():
        logs[log] = log_of({rule: [values, values] for rule, values in rules.items()})
    row = over_logs(logs, "late").set_index("rule").loc["a"]
    names = [head.removesuffix(" h") for head in (HEADS[aim] for aim in SHOWN)]
    assert names[-1] == "area-weighted wait"
    means = [float(row[f"{name} / EASY's"]) for name in names]
    assert means == pytest.approx([1.0, math.sqrt(2), 1.0, 2.0, 1.0])
    assert [float(row[f"{name} / EASY's, greatest"]) for name in names] == [2.0, 4.0, 1.0, 4.0, 2.0]


def test_gains_over_logs_count_none_where_the_gate_is_broken() -> None:
    """Two logs of 20 weeks: on the second, one rule lets a job wait for 90 h."""

    def of(bsld: float, longest_h: float) -> Felt:
        return Felt(np.full(20, 25), np.full(20, bsld), longest_h, 1.0)

    felt_on_first = {"easy": of(8.0, 40.0), "a": of(4.0, 80.0), "b": of(2.0, 70.0)}
    two = {"easy": of(8.0, 40.0), "a": of(4.0, 80.0), "b": of(2.0, 90.0)}
    table = gains({"one": felt_on_first, "two": two}).set_index("rule")
    assert table["gain"].tolist() == pytest.approx([0, math.log(2), math.log(4) / 2])
    assert table["without the gate"].tolist() == pytest.approx([0, math.log(2), math.log(4)])
    assert table["two"].tolist() == table["one"].tolist()
    assert table["breaks the gate"].tolist() == ["", "", "two: longest wait 90.0 h, at most 80.0 h"]
    assert table.loc["a", ["low", "high"]].tolist() == pytest.approx([math.log(2)] * 2)


def test_orders_that_age_reach_on_a_real_log_what_the_page_says(
    trace: Callable[[str], Path],
) -> None:
    """KTH-SP2 as a whole: slowdown, mean wait, 99th percentile and longest wait over EASY's."""
    jobs = load_log(str(trace("KTH-SP2-1996-2.swf.gz")), "glesser")
    values_of, of_late = {}, {}
    when = jobs.submit_time - jobs.submit_time[0]
    for name in ("easy", "aged", "aged-safe", "saf-typical-80h"):
        result = simulate(jobs, name)
        values = measures_by_class(result, np.ones(len(jobs), bool))
        values_of[name] = np.array([values[aim] for aim in AIMS])
        of_late[name] = felt(result, 2 * when >= when[-1])
    assert (values_of["aged"] / values_of["easy"]).round(2).tolist() == [0.50, 0.76, 1.11, 1.22]
    assert (values_of["aged-safe"] / values_of["easy"]).round(2).tolist() == [
        0.49,
        0.72,
        1.00,
        1.34,
    ]
    gained = {name: gain(of_late["easy"], felt_by) for name, felt_by in of_late.items()}
    scores = {name: round(gain_of_rule.score, 2) for name, gain_of_rule in gained.items()}
    assert scores == {"easy": 0, "aged": 0.68, "aged-safe": 0.68, "saf-typical-80h": 0}
    assert gained["saf-typical-80h"].broken == ("longest wait 131.5 h, at most 119.0 h",)


# --- The whole ------------------------------------------------------------------------------------


def test_a_quick_study(tmp_path: Path) -> None:
    path, tables = run.reproduce([JOBS], Folder(tmp_path / "study", "serial"), quick=True)
    text = path.read_text()
    assert text.startswith("# Rules of a scheduler on whole logs")
    named = tables["named"].set_index("rule")
    expected = simulate(load_workload(JOBS, clean="legrand"), "saf").metrics
    assert named.loc["saf", "mean BSLD"] == expected["mean_bsld"]
    assert named.loc["saf", "longest wait h"] == expected["max_wait_s"] / 3600
    assert {file.name for file in path.parent.glob("*.csv")} == {f"{name}.csv" for name in tables}
    assert tables["choices"]["rule"][0] in named.index
    levers = tables["levers"][["order", "lever"]].apply(tuple, axis=1).tolist()
    assert levers == [
        ("saf", "threshold 80 h"),
        *((order, "hold 0.1") for order in ("easy", "saf")),
        *((order, "without extra processors") for order in ("easy", "saf")),
    ]


def test_rules_by_name_alone(tmp_path: Path) -> None:
    folder = tmp_path / "study"
    path, tables = run.reproduce([JOBS], Folder(folder, "serial"), quick=True, named=True)
    rules = tables["over-logs"]["rule"].tolist()
    assert rules[:2] == ["easy", "easy-sjbf"]
    assert rules[-4:] == ["aged", "aged-safe", "evolved, threshold 80 h", "saf, clairvoyant"]
    assert tables["gains-late"]["rule"].tolist() == rules
    assert len(tables["named"]) == len(rules)
    named = tables["named"].set_index("rule")["mean BSLD"]
    ratios = tables["over-logs"].set_index("rule")["mean BSLD / EASY's"]
    assert ratios["aged-safe"] == pytest.approx(named["aged-safe"] / named["easy"])
    assert "## Over all logs" in path.read_text()
    assert "## Over the late parts" in path.read_text()
    assert "Chosen" not in path.read_text()
