"""``hpcgym when``: sentences of one job, tables of several, and numbers in full."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import as_csv, as_json, in_words, run, succeed

import hpcgym
from hpcgym.forecasting.backtests import METHODS

AT = 250_000


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("when") / "log.swf"
    hpcgym.simulate("lublin:jobs=600,processors=64,load=1.2,seed=3", "easy").to_swf(path)
    return path


def test_waiting_jobs_have_a_row_each(log: Path) -> None:
    asked = ("when", "--log", log, "--at", AT, "--futures", 8)
    text = in_words(succeed(*asked, "--by", "1d").stdout)
    assert "8 futures by easy" in text
    assert "starts in, 90 %" in text
    state = hpcgym.snapshot(log, AT)
    table = hpcgym.forecast(state, "easy", futures=8).table()
    rows = as_csv(*asked)
    assert [int(row["job"]) for row in rows] == table.job.tolist()
    assert [float(row["p50_s"]) for row in rows] == table.p50.tolist()
    assert {row["time_s"] for row in rows} == {str(AT)}


def test_one_job_is_a_sentence(log: Path) -> None:
    state = hpcgym.snapshot(log, AT)
    job = int(state.jobs.job_number[~state.running][-1])
    asked = ("when", job, "--log", log, "--at", AT, "--by", "18:00", "--futures", 8)
    lines = succeed(*asked).stdout.splitlines()
    assert lines[1].startswith(f"job {job} starts in ")
    assert lines[2].startswith("by 18:00: ")
    (row,) = as_json(*asked)
    one = hpcgym.forecast(state, "easy", futures=8).of(job)
    assert (row["job"], row["by"], row["p90_s"]) == (job, one.by("18:00"), one.quantiles()[2])


def test_a_job_that_is_not_there_yet(log: Path) -> None:
    asked = ("when", "--log", log, "--at", AT, "--scheduler", "saf", "--futures", 8)
    lines = succeed(*asked, "-n", 16, "-t", "4:00:00").stdout.splitlines()
    assert lines[1].startswith("such a job starts in ")
    told = hpcgym.forecast(hpcgym.snapshot(log, AT), "saf", futures=8)
    for limit in ("4:00:00", "240", "4h"):
        (row,) = as_json(*asked, "-n", 16, "-t", limit, "--user", 3)
        assert row["p50_s"] == told.if_submitted(16, "4h", user=3).median


def test_a_backtest_ends_in_a_sentence(log: Path) -> None:
    asked = ("when", "--backtest", log, "--moments", 4, "--futures", 4)
    text = in_words(succeed(*asked).stdout)
    assert "recent waits alone; the waits are those of the rules themselves" in text
    rows = as_json(*asked, "--truth", "recorded")
    assert [row["method"] for row in rows] == [*METHODS]
    assert all(0 <= row["coverage_80"] <= 1 for row in rows)
    for words, said in (
        ("--at 5", "not with --backtest"),
        ("--truth real", "unknown truth 'real'"),
    ):
        assert said in run(*asked, *words.split()).stderr
    assert "give --log and --at, or --backtest" in run("when", "--at", 5).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-n 4", "a job that is not there yet has both"),
        ("7 -n 4 -t 60", "either a waiting job or a new one"),
        ("--user 3", "give -n and -t, too"),
        ("-n 4 -t soon", "'soon' is no time limit such as 4:00:00, 90 (minutes) or 4h"),
        ("-n 400 -t 60", "processors must be a whole number from 1 to 64, not 400"),
        ("1", "job 1 does not wait"),
        ("--scheduler sjf-list", "do not go together: not built: no Python runs inside"),
        ("--by soon", "a time of day such as '18:00'"),
    ],
)
def test_mistakes(log: Path, words: str, said: str) -> None:
    result = run("when", "--log", log, "--at", AT, *words.split())
    assert result.exit_code in (1, 2)
    assert said in in_words(result.stderr)
