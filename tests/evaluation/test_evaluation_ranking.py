"""Leaderboards by any metric, against any row, with chance in them, and as text."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from boards import SMALL, TRACE, board_of

from hpcgym.baselines import find_baseline
from hpcgym.baselines.chance import random_order
from hpcgym.envs.core.episodes import Episodes
from hpcgym.errors import HpcgymError
from hpcgym.evaluation import evaluate
from hpcgym.report.tables import latex
from hpcgym.schedule.metrics import METRICS, MORE, NEITHER, ranking_metrics
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate

FEW: dict[str, Any] = {**SMALL, "budget": 0}
EVERYWHERE = [
    metric.name
    for metric in METRICS
    if metric.better != NEITHER and metric.formula and not metric.of
]
EVERYWHERE.remove("starved_share")  # it is of schedulers with a threshold


@pytest.mark.parametrize("metric", EVERYWHERE)
def test_any_metric_ranks(metric: str) -> None:
    board = evaluate("wfp3", TRACE, metric=metric, **FEW)
    part = Episodes(TRACE, jobs=100, part="test")
    for name in ("wfp3", "easy"):
        values = [
            simulate(part.workload_of(one), name).metrics[metric]
            for one in part.named(6, 0)
            if one.name in board.by_slice.index
        ]
        assert board.by_slice[name].tolist() == values
    means = board.table[metric].tolist()
    more = ranking_metrics()[metric].better == MORE
    assert means == sorted(means, reverse=more)
    assert board.table["win_rate"].sum() == pytest.approx(1)
    best = board.by_slice.max(axis=1) if more else board.by_slice.min(axis=1)
    wins = (board.by_slice.eq(best, axis=0)).any()
    assert board.table["win_rate"].gt(0).to_dict() == wins.loc[board.table.index].to_dict()
    assert not (board.table["mean_regret"] < 0).any()
    assert board.table.columns.is_unique
    assert board.facts()["metric"] == metric


def test_more_is_better_where_it_is() -> None:
    values = {"a": [0.5, 0.5, 0.5], "b": [0.25, 1.0, 0.5]}
    board = board_of(values, metric="utilization", references=("a", "b"))
    assert list(board.table.index) == ["b", "a"]
    a, b = board.table.loc["a"], board.table.loc["b"]
    assert (a["win_rate"], b["win_rate"]) == (1.5 / 3, 1.5 / 3)
    assert (a["mean_regret"], b["mean_regret"]) == pytest.approx((1 / 3, 1 / 3))
    assert board.reference == "b"


def test_starved_jobs_rank_where_a_threshold_is_given() -> None:
    board = evaluate("wfp3", TRACE, metric="starved_share", threshold=3600, **FEW)
    part = Episodes(TRACE, jobs=100, part="test")
    jobs = [part.workload_of(one) for one in part.named(6, 0)]
    shares = [simulate(one, "wfp3", threshold=3600).metrics["starved_share"] for one in jobs]
    assert board.by_slice.iloc[:, 0].tolist() == shares
    with pytest.raises(HpcgymError, match="metric 'starved_share': there is no value of it on any"):
        evaluate("wfp3", TRACE, metric="starved_share", **FEW)


def test_slices_whose_best_is_0_have_no_regret() -> None:
    board = board_of({"a": [0.0, 2.0], "b": [5.0, 1.0]}, metric="mean_wait_s")
    assert board.table["mean_regret"].to_dict() == {"a": 1.0, "b": 0.0}


def test_slices_without_a_value_are_left_out() -> None:
    board = evaluate("spf", TRACE, metric="mean_bsld_long", **{**FEW, "jobs": 4, "n": 40})
    assert 0 < len(board.by_slice) < 40
    assert board.by_slice.notna().all(axis=None)
    assert board.table["failed"].eq(0).all()
    with pytest.raises(HpcgymError, match="metric 'mean_dispatch_s': there is no value of it on"):
        evaluate("spf", TRACE, metric="mean_dispatch_s", **FEW)


def test_ranks_under_limits_and_where_nodes_are_shared() -> None:
    few: dict[str, Any] = {**FEW, "jobs": 40, "n": 2}
    board = evaluate(
        (),
        TRACE,
        env="hpcgym/EnergyBudget-v0",
        metric="energy_j",
        env_options={"share": 0.6},
        **few,
    )
    assert board.table["energy_j"].is_monotonic_increasing
    assert {"mean_bsld", "limited_energy_j", "random"} <= {*board.table, *board.table.index}
    board = evaluate(
        "greedy-pairs", "codes:jobs=400,processes=96,processors=768", cluster="16x2x24",
        env="hpcgym/CoSchedule-v0", metric="makespan_s", reference="easy-co", **few,
    )  # fmt: skip
    assert board.reference == "easy-co"
    assert board.table["makespan_s"].is_monotonic_increasing
    assert board.table.loc["easy-co", "improvement"] == 0


# --- The row that all are compared with ----------------------------------------------------------


def test_the_reference_is_easy_unless_another_is_asked_for() -> None:
    usual = evaluate("wfp3", TRACE, **FEW)
    assert (usual.reference, usual.references) == ("easy", ())
    assert np.isnan(usual.table.loc["easy", "p_value"])
    assert evaluate("easy", TRACE, backfill="none", **FEW).reference == "fcfs"
    for name, row in (("saf", "saf (no backfilling)"), ("wfp3", "wfp3 (no backfilling)")):
        board = evaluate("wfp3", TRACE, backfill="none", reference=name, **FEW)
        assert board.reference == row
        means = board.table["mean_bsld"]
        assert board.table["above_reference"].to_numpy() == pytest.approx(means - means[row])
    assert evaluate((), TRACE, reference="best-static", **SMALL).reference == "best-static"
    assert evaluate((), TRACE, reference="random", **FEW).reference == "random"


def test_a_reference_that_is_no_row_is_said_before_anything_runs() -> None:
    def progress(title: str, total: int) -> Any:
        raise AssertionError

    for name in ("sav", "best-static"):
        with pytest.raises(HpcgymError, match=f"unknown reference '{name}'"):
            evaluate("wfp3", TRACE, reference=name, progress=progress, **FEW)
    for metric in ("jobs", "carbon_g", "p99"):
        with pytest.raises(HpcgymError, match=f"unknown metric '{metric}'"):
            evaluate("wfp3", TRACE, metric=metric, progress=progress, **FEW)


# --- Chance --------------------------------------------------------------------------------------


def test_chance_is_a_random_order_where_nothing_acts() -> None:
    board = evaluate((), TRACE, seed=4, **FEW)
    numbers = np.random.default_rng(4).permutation(len(TRACE)) + 1
    part = Episodes(TRACE, jobs=100, part="test")
    for episode in part.named(6, 4):
        given = numbers[episode.start : episode.stop]
        rules = Scheduler(policy="spf", policy_estimate=given, backfill_order="spf")
        expected = simulate(part.workload_of(episode), rules).metrics["mean_bsld"]
        assert board.by_slice.loc[episode.name, "random"] == expected
    assert not board.by_slice["random"].equals(
        evaluate((), TRACE, seed=5, **FEW).by_slice["random"]
    )


def test_chance_is_named_at_most_once() -> None:
    assert list(evaluate(["random", "sjf"], TRACE, **FEW).by_slice).count("random") == 1
    with pytest.raises(HpcgymError, match="the name 'random' stands for"):
        evaluate({"random": "sjf"}, TRACE, **FEW)


@pytest.mark.parametrize("env", ["JobSelection", "QueueOrdering", "MixedPolicy"])
def test_chance_acts_where_policies_do(env: str) -> None:
    one = find_baseline("saf")
    boards = [
        evaluate(more, TRACE, env=f"hpcgym/{env}-v0", env_options={"window": 20}, **FEW)
        for more in ((), one, one)
    ]
    for board in boards:
        assert not board.failures
        assert "random" not in board.by_slice
        assert board.by_slice["random (acting)"].equals(boards[0].by_slice["random (acting)"])
    assert not boards[0].by_slice["random (acting)"].equals(boards[0].by_slice["easy"])


def test_a_random_order_is_one_of_its_numbers() -> None:
    """On one processor, jobs of one moment run in the order of their numbers."""
    jobs = TRACE.take(slice(0, 30)).with_columns(
        submit_time=np.zeros(30, np.int64), requested_processors=np.full(30, TRACE.processors)
    )
    for policy in ("easy", "wfp3"):
        rules = random_order(Scheduler(policy="fcfs" if policy == "easy" else policy), 30, 7)
        numbers = np.random.default_rng(7).permutation(30)
        assert np.array_equal(np.argsort(simulate(jobs, rules).start), np.argsort(numbers))


# --- What rows are called, and text --------------------------------------------------------------


def test_rows_say_who_backfills_where_it_is_not_as_usual() -> None:
    board = evaluate({"spf": "spf", "mine": Scheduler("saf")}, TRACE, **SMALL)
    rows = ["spf", "mine", "easy", "easy-sjbf", "saf", "f1", "random", "best-static"]
    assert sorted(board.schedulers) == sorted(rows)
    board = evaluate((), TRACE, backfill_order="fcfs", **FEW)
    assert {"saf (backfill fcfs)", "f1 (backfill fcfs)"} <= {*board.schedulers}


def test_boards_as_json_and_csv(tmp_path: Path) -> None:
    board = evaluate("spf", TRACE, metric="max_wait_s", **SMALL)
    text = board.to_json()
    assert text is not None
    value = json.loads(text)
    assert value["metric"] == "max_wait_s"
    assert [row["name"] for row in value["policies"]] == list(board.table.index)
    assert value["by_slice"] == board.by_slice.to_dict(orient="index")
    text = board.to_csv()
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    for row, (name, expected) in zip(rows, board.table.iterrows(), strict=True):
        assert row["name"] == name
        assert float(row["max_wait_s"]) == expected["max_wait_s"]
        assert row["backfill"] == "easy"
        if name == "random":
            assert (row["policy"], row["backfill_order"]) == ("random", "random")
            assert row["policy_estimate"] == ""
    for ending in ("json", "csv", "latex"):
        write = getattr(board, f"to_{ending}")
        assert write(tmp_path / ending) is None
        assert (tmp_path / ending).read_text() == write()


def test_minus_signs_of_latex() -> None:
    rows = [["a-1", "-1.5", "-"], ["b", "-2.0 to -1.0", "1e-05"]]
    cells = [[(text, False) for text in row] for row in rows]
    lines = latex(["policy", "x", "y"], cells).splitlines()
    assert lines[4:6] == [r"a-1 & $-$1.5 & - \\", r"b & $-$2.0 to $-$1.0 & 1e-05 \\"]


def test_columns_of_words_are_to_the_left() -> None:
    row = [("1", False), ("a-1", False), ("-2.0", False)]
    lines = latex(["week", "policy", "x"], [row], 2).splitlines()
    assert lines[0].startswith(r"\begin{tabular}{llr}")
    assert lines[4] == r"1 & a-1 & $-$2.0 \\"


def test_headings_of_differences_name_the_reference() -> None:
    values = {"new": [1.0, 2.0, 3.0, 4.0, 5.0], "easy": [2.0, 3.0, 4.0, 5.0, 7.0]}
    text = board_of(values, references=("easy",)).to_latex()
    assert text is not None
    heading = text.splitlines()[2].removesuffix(r" \\").split(" & ")
    assert heading[2] == r"95 \% interval"
    assert heading[6:8] == ["above easy", r"95 \% interval above easy"]
    assert len({*heading}) == len(heading)


def test_a_board_as_latex() -> None:
    values = {"a_b & 50%": [1.0, 2.0, 3.0, 4.0, 5.0], "easy": [2.0, 3.0, 4.0, 5.0, 6.0]}
    text = board_of(values, plain="easy").to_latex()
    assert text is not None
    lines = text.splitlines()
    assert lines[0].startswith(r"\begin{tabular}{lrrrrrr}")
    assert lines[1:3] == [
        r"\toprule",
        r"policy & mean BSLD & 95 \% interval & median BSLD & wins (\%) & regret (\%) & p \\",
    ]
    assert lines[4].startswith(r"a\_b \& 50\% & \textbf{3.000} & ")
    assert lines[4].endswith(r" & 0.0625 \\")  # 2 / 2^5
    assert lines[5].startswith("easy & 4.000 & ")
    assert all(" to " in line for line in lines[4:6])
    assert lines[5].endswith(r" & - \\")
    assert lines[6:] == [r"\bottomrule", r"\end{tabular}"]
