"""What a leaderboard says of its values: ranks, differences, groups of jobs, and text."""

from __future__ import annotations

import csv
import io
import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from boards import FEW, SMALL, TRACE, First, board_of, failing, rows_in
from mistakes import mistakes_of

from hpcgym.report.cells import latex
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.study import Leaderboard, evaluate

NAN = float("nan")

# --- Numbers --------------------------------------------------------------------------------------


def test_means_wins_and_regret() -> None:
    table = board_of({"a": [2.0, 4.0, 8.0, 1.0], "b": [2.0, 2.0, 9.0, 3.0]}).table
    assert list(table.index) == ["a", "b"]
    a, b = table.loc["a"], table.loc["b"]
    assert (a["mean_bsld"], a["median_bsld"]) == (3.75, 3.0)
    assert (b["mean_bsld"], b["median_bsld"]) == (4.0, 2.5)
    assert (a["win_rate"], b["win_rate"]) == (2.5 / 4, 1.5 / 4)
    assert a["mean_regret"] == pytest.approx((0 + 1 + 0 + 0) / 4)
    assert b["mean_regret"] == pytest.approx((0 + 0 + 1 / 8 + 2) / 4)
    table = board_of({"a": [0.0, 2.0], "b": [5.0, 1.0]}, metric="mean_wait_s").table
    assert table["mean_regret"].to_dict() == {"a": 1.0, "b": 0.0}  # without where the best is 0


def test_it_is_printed_as_the_table() -> None:
    lines = repr(board_of({"a": [2.0, 4.0, 8.0, 1.0], "b": [2.0, 2.0, 9.0, 3.0]})).splitlines()
    assert lines[1].split()[:3] == ["policy", "BSLD", "interval"]
    assert [line.split()[:2] for line in lines[3:5]] == [["a", "3.750*"], ["b", "4.000"]]
    assert lines[5:] == [
        "* best of its column",
        "no 95 % intervals: they need 5 slices or more, and there are 4",
    ]


def test_gains_tails_and_the_gate_by_hand() -> None:
    """A crowded slice decides the mean over jobs alone; each slice counts alike in a gain."""
    nobody_waits = [0.0, 0.0]
    values = {
        "mean_bsld": {"easy": [4.0, 100.0], "quiet": [1.0, 150.0], "starves": [2.0, 50.0],
                      "x": [2.0, 50.0], "y": [4.0, 100.0]},
        "max_wait_s": {"easy": [36_000.0, 180_000.0], "quiet": [0.0, 360_000.0],
                       "starves": [0.0, 360_001.0], "x": [1.0, 400_000.0], "y": nobody_waits},
        "area_weighted_wait_s": {"easy": [3600.0, 7200.0], "quiet": [3600.0, 18_000.0],
                                 "starves": nobody_waits, "x": nobody_waits, "y": nobody_waits},
    }  # fmt: skip
    board = Leaderboard(
        {name: pd.DataFrame(columns) for name, columns in values.items()},
        dict.fromkeys(("easy", "quiet", "starves", "two")),
        trainings={"two": ("x", "y")},
        easy="easy",
    )
    table = board.table
    assert table.mean_bsld.to_dict() == {"easy": 52, "quiet": 75.5, "starves": 26, "two": 39}
    assert table.gain["quiet"] == pytest.approx((np.log(4) + np.log(1 / 1.5)) / 2)
    assert table.gated_gain["quiet"] == table.gain["quiet"]  # just 100 h, and 3 h on average
    assert table.gain["starves"] == pytest.approx(np.log(2))
    assert table.gain["two"] == pytest.approx(np.log(2) / 2)
    assert table.gated_gain[["easy", "starves", "two"]].tolist() == [0, 0, 0]  # of two: x breaks it
    assert table.longest_wait_s["two"] == 400_000
    assert table.area_weighted_wait_s["quiet"] == 10_800
    kept = {"easy": "", "quiet": ""}
    assert board.gate == {
        **kept, "starves": "longest wait 100.0 h, at most 100.0 h",
        "two": "longest wait 111.1 h, at most 100.0 h",
    }  # fmt: skip
    lines = repr(board).splitlines()
    assert any(line.split()[:4] == ["starves", "0.69*", "-", "0.00"] for line in lines)
    assert "0.00 (longest)" in repr(board)
    assert max(map(len, lines[: lines.index("* best of its column")])) <= 100
    assert {row["name"]: row["gate"] for row in board.rows()} == board.gate
    assert board.facts()["policies"][0]["gate"] == board.gate["starves"]
    assert not board_of({"a": [2.0]}).gate


def test_more_is_better_where_it_is() -> None:
    values = {"a": [0.5, 0.5, 0.5], "b": [0.25, 1.0, 0.5]}
    table = board_of(values, metric="utilization").table
    assert list(table.index) == ["b", "a"]
    assert table["win_rate"].tolist() == [1.5 / 3, 1.5 / 3]
    assert table["mean_regret"].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_a_slice_on_which_all_fail_is_nobodys() -> None:
    table = board_of({"a": [NAN, 1.0], "b": [NAN, 2.0]}, reference="a").table
    assert table["win_rate"].tolist() == [0.5, 0]
    assert table["failed"].tolist() == [1, 1]
    assert table["above_reference"].isna().all()


def test_resamples_are_paired() -> None:
    values = np.random.default_rng(1).exponential(100, 50)
    board = board_of({"a": values.tolist(), "b": (values + 1).tolist()}, reference="a")
    row = board.table.loc["b"]
    assert board.table["mean_bsld_high"].diff().iloc[1] == pytest.approx(1)
    assert board.difference("b", "a") == pytest.approx((1, 1, 1))
    difference = row[["above_reference", "above_reference_low", "above_reference_high"]]
    assert difference.tolist() == pytest.approx([1, 1, 1])
    assert row["p_value"] < 0.001
    assert np.isnan(board.table.loc["a", "p_value"])
    mean, low, high = board.difference("a", "b")
    assert low <= mean <= high < 0


@pytest.mark.parametrize("number", [1, 2, 4, 5])
def test_few_slices_have_no_interval(number: int) -> None:
    board = board_of({"a": [3.0] * number, "b": [1.0, 2.0, 4.0, 5.0, 6.0][:number]})
    row = board.table.loc["b"]
    mean, low, high = board.difference("a", "b")
    assert row["mean_bsld"] == 3 - mean
    ends = [row["mean_bsld_low"], row["mean_bsld_high"], low, high]
    assert np.isnan(ends).tolist() == [number < 5] * 4


def test_trainings_that_differ_widen_the_interval() -> None:
    slices = np.random.default_rng(0).normal(10, 1, 50)
    members = {f"s{k}": (slices + 3 * k).tolist() for k in range(4)}
    mean = (slices + 4.5).tolist()
    board = board_of(
        {**members, "alone": mean}, rows=["agent", "alone"], trainings={"agent": tuple(members)}
    )
    assert board.by_slice["agent"].tolist() == pytest.approx(mean)
    wide, narrow = (board.table.loc[name] for name in ("agent", "alone"))
    assert (wide["seeds"], narrow["seeds"]) == (4, 1)
    assert wide["mean_bsld"] == pytest.approx(narrow["mean_bsld"])
    width = wide["mean_bsld_high"] - wide["mean_bsld_low"]
    assert width > 3 * (narrow["mean_bsld_high"] - narrow["mean_bsld_low"])
    # the difference of the two is what the seeds make of it: slices are drawn for both at once
    mean_of, low, high = board.difference("agent", "alone")
    assert mean_of == pytest.approx(0)
    every = [np.mean(four) - 4.5 for four in product((0, 3, 6, 9), repeat=4)]
    assert (low, high) == pytest.approx(tuple(np.percentile(every, [2.5, 97.5])), abs=0.4)


# --- By which metric, and against whom ------------------------------------------------------------


def test_slices_without_a_value_are_left_out() -> None:
    long: dict[str, Any] = {**FEW, "jobs": 4, "n": 40, "metric": "mean_bsld_long"}
    board = evaluate("spf", TRACE, **long)
    assert 0 < len(board.by_slice) < 40
    assert board.by_slice.notna().all(axis=None)
    assert board.table["failed"].eq(0).all()


def test_the_reference_is_easy_unless_another_is_asked_for() -> None:
    usual = evaluate("wfp3", TRACE, **FEW)
    assert (usual.reference, usual.compared) == ("easy", False)
    assert evaluate("easy", TRACE, backfill="none", **FEW).reference == "fcfs"
    for name in ("saf", "wfp3"):
        board = evaluate("wfp3", TRACE, backfill="none", reference=name, **FEW)
        assert (board.reference, board.compared) == (f"{name} (no backfilling)", True)
        means = board.table["mean_bsld"]
        less = means - means[board.reference]
        assert board.table["above_reference"].to_numpy() == pytest.approx(less)
    assert evaluate((), TRACE, reference="best-static", **SMALL).reference == "best-static"
    assert evaluate((), TRACE, reference="random", **FEW).reference == "random"


# --- For each class of jobs, or user --------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*failed on")
def test_values_of_users_are_those_of_their_jobs() -> None:
    policies = {"some": [First(), First()], "lost": failing([1])}
    fcfs = {"backfill_order": "fcfs"}
    given: dict[str, Any] = {**FEW, "env": "hpcgym/JobSelection-v2", "env_options": fcfs}
    board = evaluate(policies, TRACE, by="user", metric="max_wait_s", **given)
    groups = board.groups
    assert groups is not None
    assert list(groups) == ["workload", "slice", "user", "scheduler", "jobs", "max_wait_s"]
    assert not groups.duplicated(["slice", "user", "scheduler"]).any()
    assert {*groups["scheduler"]} == {*board.by_slice} - {"lost"}  # who failed has none
    for where in groups["slice"].unique():
        jobs = simulate(TRACE.take(rows_in(where)), "easy").jobs
        mine = groups[(groups["slice"] == where)].set_index("user")
        for row in ("easy", "some"):
            rows = mine[mine["scheduler"] == row]
            assert rows["jobs"].sum() == len(jobs)
            for user, part in jobs.groupby("user_id"):
                assert rows.loc[f"user {user}", "jobs"] == len(part)
                assert rows.loc[f"user {user}", "max_wait_s"] == part["wait_time"].max()
    assert evaluate((), TRACE, **FEW).groups is None


# --- Text -----------------------------------------------------------------------------------------


def test_boards_as_json_and_csv(tmp_path: Path) -> None:
    board = evaluate({"mine": Scheduler("saf")}, TRACE, metric="max_wait_s", **FEW)
    value = json.loads(board.to_json())
    assert value["metric"] == "max_wait_s"
    assert [row["name"] for row in value["policies"]] == list(board.table.index)
    assert value["by_slice"] == board.by_slice.to_dict(orient="index")
    assert board.to_csv(tmp_path / "b.csv") is None
    assert (tmp_path / "b.csv").read_text() == board.to_csv()
    rows = list(csv.DictReader(io.StringIO(board.to_csv())))
    for row, (name, expected) in zip(rows, board.table.iterrows(), strict=True):
        assert row["name"] == name
        assert float(row["max_wait_s"]) == expected["max_wait_s"]
        assert row["backfill"] == "easy"
        if name == "random":
            assert (row["policy"], row["backfill_order"]) == ("random", "random")
            assert row["policy_estimate"] == ""


def test_a_board_as_latex() -> None:
    values = {"a_b & 50%": [1.0, 2.0, 3.0, 4.0, 5.0], "easy": [2.0, 3.0, 4.0, 5.0, 6.0]}
    text = board_of(values, reference="easy").to_latex()
    lines = text.splitlines()
    assert lines[0].startswith(r"\begin{tabular}{lrrrrrr}")
    assert lines[1:3] == [
        r"\toprule",
        r"policy & \shortstack[r]{mean \\ BSLD} & \shortstack[r]{95 \% \\ interval} &"
        r" \shortstack[r]{median \\ BSLD} & \shortstack[r]{wins \\ (\%)} &"
        r" \shortstack[r]{regret \\ (\%)} & p \\",
    ]
    assert lines[4].startswith(r"a\_b \& 50\% & \textbf{3.000} & ")
    assert lines[4].endswith(r" & 0.0625 \\")  # 2 / 2^5
    assert lines[5].startswith("easy & 4.000 & ")
    assert all(" to " in line for line in lines[4:6])
    assert lines[5].endswith(r" & - \\")
    assert lines[6:] == [r"\bottomrule", r"\end{tabular}"]
    # headings of differences name the reference
    text = board_of(values, reference="easy", compared=True).to_latex()
    first, second = text.split("\n\n")
    assert first.startswith("% part 1 of 2: 8 columns do not fit into one table\n")
    headings = [part.splitlines()[3].removesuffix(r" \\").split(" & ") for part in (first, second)]
    assert [len(cells) for cells in headings] == [5, 4]
    assert r"\shortstack[r]{95 \% interval \\ above easy}" in headings[1]
    assert all(
        table_text.splitlines()[5].startswith(r"a\_b \& 50\% & ") for table_text in (first, second)
    )


def test_signs_and_sides_of_latex() -> None:
    rows = [["a-1", "-1.5", "-"], ["b", "-2.0 to -1.0", "1e-05"]]
    cells = [[(text, False) for text in row] for row in rows]
    lines = latex(["policy", "x", "y"], cells).splitlines()
    assert lines[4:6] == [r"a-1 & $-$1.5 & - \\", r"b & $-$2.0 to $-$1.0 & 1e-05 \\"]
    row = [("1", False), ("a-1", False), ("-2.0", False)]
    lines = latex(["week", "policy", "x"], [row], 2).splitlines()
    assert lines[0].startswith(r"\begin{tabular}{llr}")
    assert lines[4] == r"1 & a-1 & $-$2.0 \\"


test_mistakes = mistakes_of(globals())
