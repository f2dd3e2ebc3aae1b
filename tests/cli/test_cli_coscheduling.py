"""The command line where jobs share nodes: options, names, results, mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import as_csv, as_json, run, succeed

from hpcgym import generate_speedups, load_workload, read_speedups, simulate
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.cli.simulate import SHARED_DEFAULT
from hpcgym.speedups import write_speedups

PAIRS = "generated:codes=4,mean=1.1,spread=0.1,seed=1"
JOBS = "codes:speedups=generated:codes=4,jobs=60,processes=40,seed=2"
MACHINE = ("--cluster", "16x2x4", "--speedups", PAIRS)

TWO = "submit_time,run_time,requested_time,requested_processors,code\n0,60,60,4,a\n0,60,60,4,b\n"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two jobs of 4 processes for a node of 2 sockets of 2 cores each, and their speedups.

    Beside each other a runs at 1.5 and b at 0.5; alone b runs at 2.
    """
    jobs, pairs = tmp_path / "two.csv", tmp_path / "pairs.csv"
    jobs.write_text(TWO)
    pairs.write_text("code,a,b\na,1,1.5\nb,0.5,2\n")
    return jobs, pairs


# --- simulate -------------------------------------------------------------------------------------


# --- compare --------------------------------------------------------------------------------------


def test_all_co_schedulers_are_compared_with_easy() -> None:
    rows = as_csv("compare", JOBS, *MACHINE)
    assert [row["scheduler"] for row in rows] == list(SHARED_DEFAULT)
    assert {*COSCHEDULERS, "fcfs", "easy", "conservative"} == set(SHARED_DEFAULT)
    first = float(rows[0]["makespan_s"])
    for row in rows:
        found = simulate(load_workload(JOBS), row["scheduler"], cluster="16x2x4", speedups=PAIRS)
        assert float(row["makespan_s"]) == found.metrics["makespan_s"]
        assert float(row["makespan_improvement"]) == first / found.metrics["makespan_s"] - 1
    text = succeed("compare", JOBS, *MACHINE).stdout
    heading = " ".join(text.split("─")[0].split())
    for words in ("makespan", "improvement (%)", "down (%)", "(jobs/h)", "utilization"):
        assert words in heading


def test_rules_of_sharing_leave_the_others_as_they_are() -> None:
    options = ("--scheduler", "easy,easy-co,easy-spread", "--allocation", "part:4")
    value = as_json("compare", JOBS, *MACHINE, *options, "--partners", "best")
    told = [
        (one["scheduler"]["allocation"], one["scheduler"]["partners"]) for one in value["results"]
    ]
    assert told == [("first-fit", "fill"), ("part:4", "best"), ("spread", "fill")]
    assert value["speedups"]["digest"] == generate_speedups(4, seed=1).digest


# --- speedups -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_are_shared_by_what_files_say(two: tuple[Path, Path], tmp_path: Path) -> None:
    jobs, pairs = two
    pairs.write_text("code,a,b,io_share,io_demand_mb_s\na,1,1.5,0.5,10\nb,0.5,2,0.25,10\n")
    machine = tmp_path / "slow.toml"
    machine.write_text(
        'name = "slow"\nio_bandwidth_gb_s = 0.04\n\n[[group]]\nname = "n"\nnodes = 2\n'
        "sockets = 2\ncore = 4\n"
    )
    assert succeed("machines", machine).stdout == machine.read_text()
    assert as_json("machines", machine)["io_bandwidth_gb_s"] == 0.04
    asked = ("simulate", jobs, "--cluster", machine, "--speedups", pairs, "--scheduler", "easy")
    # 8 cores ask for 80 MB/s: twice as long; b's quarter until 75 s, when a has done 50 s
    metrics = as_json(*asked)
    assert metrics["makespan_s"] == 85
    assert metrics["io_congestion"] == pytest.approx(1 + 75 / 85)
    codes = as_json("speedups", pairs)["codes"]
    assert [(row["io_share"], row["io_demand_mb_s"]) for row in codes] == [(0.5, 10), (0.25, 10)]
    assert "I/O share" in succeed("speedups", pairs).stdout
    pairs.write_text("code,a,b\na,1,1.5\nb,0.5,2\n")
    result = run(*asked)
    assert result.exit_code == 1
    assert f"give {pairs} io_share and io_demand_mb_s of each code" in result.stderr


def test_speedups_are_told(two: tuple[Path, Path]) -> None:
    _, pairs = two
    pairs.write_text("code,a,b\na,1,1.5\nb,0.5,\n")
    value = as_json("speedups", pairs)
    assert (value["unknown_pairs"], value["mean_speedup"]) == (1, 1.0)
    assert value["digest"] == read_speedups(pairs).digest
    a, b = value["codes"]
    assert a == {
        "code": "a", "processes": None, "compact_s": None, "alone": 1.5, "mean_speedup": 1.25,
        "least": 1.0, "greatest": 1.5, "mean_of_others": 0.75, "unknown_pairs": 0,
    }  # fmt: skip
    assert (b["mean_speedup"], b["mean_of_others"], b["unknown_pairs"]) == (0.5, 1.5, 1)
    rows = as_csv("speedups", pairs)
    assert [row["mean_speedup"] for row in rows] == ["1.25", "0.5"]
    text = succeed("speedups", pairs).stdout
    assert "2 codes · mean 1.0000 · 1 of 4 pairs unknown" in text.replace("\n", " ")
    assert value["digest"] in text


def test_speedups_are_written_in_another_form(tmp_path: Path) -> None:
    source = generate_speedups(3, seed=5)
    write_speedups(source, tmp_path / "pairs.json")
    result = succeed(
        "speedups", tmp_path / "pairs.json", "--output", tmp_path / "pairs.csv", "--picture",
        tmp_path / "heatmap.svg",
    )  # fmt: skip
    assert result.stderr.count("wrote ") == 2
    np.testing.assert_array_equal(read_speedups(tmp_path / "pairs.csv").speedup, source.speedup)
    assert "3 codes" in (tmp_path / "heatmap.svg").read_text()
    succeed("speedups", PAIRS, "--output", tmp_path / "other.json")
    assert read_speedups(tmp_path / "other.json").digest == generate_speedups(4, seed=1).digest


# --- Names and help -------------------------------------------------------------------------------


# --- Mistakes -------------------------------------------------------------------------------------
