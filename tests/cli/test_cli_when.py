"""``hpcgym when``: sentences of one job, tables of several, and numbers in full."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import as_csv, as_json, in_words, run, succeed

import hpcgym
from hpcgym.forecasting.backtests import METHODS
from hpcgym.workload import write_swf

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


def test_long_queues_under_the_rules_of_slurm_have_fewer_futures(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("when", "--log", log, "--at", AT, "--scheduler")
    assert "64 futures by" in succeed(*asked, "easy:backfill=slurm").stdout
    monkeypatch.setattr(sys.modules["hpcgym.cli.when"], "_MANY_WAIT", 1)
    assert "16 futures by" in succeed(*asked, "easy:backfill=slurm").stdout
    assert "64 futures by" in succeed(*asked, "easy").stdout
    assert "8 futures by" in succeed(*asked, "easy:backfill=slurm", "--futures", 8).stdout


def test_one_job_is_a_sentence(log: Path) -> None:
    state = hpcgym.snapshot(log, AT)
    forecast = hpcgym.forecast(state, "easy", futures=64)
    reasons = forecast.reasons()
    job = int(reasons.job[reasons.on > 0].iloc[0])
    asked = ("when", job, "--log", log, "--at", AT, "--by", "18:00", "--futures", 64)
    lines = succeed(*asked).stdout.splitlines()
    assert lines[1].startswith(f"job {job} starts in ")
    assert lines[-1].startswith("by 18:00: ")
    (row,) = as_json(*asked)
    one, depends = forecast.of(job), forecast.depends_on(job).iloc[0]
    assert forecast.why(job) == lines[2]
    assert lines[2].startswith(f"its start depends most on job {depends.job:.0f}, which usually")
    assert (row["depends_on"], row["depends_share"]) == (depends.job, depends.share)
    assert row["depends_correlation"] == depends.correlation
    assert (row["job"], row["by"], row["p90_s"]) == (job, one.by("18:00"), one.quantiles()[2])
    (row,) = as_json(*asked[:-1], 1)  # of one future nothing can be said
    assert row["depends_on"] is row["depends_share"] is row["depends_correlation"] is None


def test_a_job_that_is_not_there_yet(log: Path) -> None:
    asked = ("when", "--log", log, "--at", AT, "--scheduler", "saf", "--futures", 8)
    lines = succeed(*asked, "-n", 16, "-t", "4:00:00").stdout.splitlines()
    assert lines[1].startswith("such a job starts in ")
    forecasts = hpcgym.forecast(hpcgym.snapshot(log, AT), "saf", futures=8)
    for limit in ("4:00:00", "240", "4h"):
        (row,) = as_json(*asked, "-n", 16, "-t", limit, "--user", 3)
        assert row["p50_s"] == forecasts.if_submitted(16, "4h", user=3).median
        assert row["job"] is None
    (row,) = as_json(*asked, "-n", 16, "-t", "UNLIMITED")
    assert row["p50_s"] == forecasts.if_submitted(16, "365d").median


def test_users_and_partitions_have_names(log: Path, tmp_path: Path) -> None:
    jobs = hpcgym.load_workload(log)
    names = {"User": ["3 carol", "6 dan"], "Partition": ["1 long", "2 short"]}
    part = np.where(jobs.requested_processors > 4, 1, 2)
    named = replace(jobs.with_columns(partition=part), header={**jobs.header, **names})
    path, script = tmp_path / "named.swf", tmp_path / "job.sh"
    write_swf(named, path)
    rules = "easy:quota=partition:jobs=2"
    asked = ("when", "--log", path, "--at", AT, "--futures", 8, "--scheduler", rules)
    forecasts = hpcgym.forecast(
        hpcgym.snapshot(path, AT), "easy", quota="partition:jobs=2", futures=8
    )
    new = ("-n", 2, "-t", "1h", "--user", "carol")
    medians = [forecasts.if_submitted(2, "1h", user=3, partition=name).median for name in (1, 2)]
    assert medians[0] != medians[1]
    for name, median in zip(("long", "short"), medians, strict=True):
        (row,) = as_json(*asked, *new, "-p", name)
        assert row["p50_s"] == median
        script.write_text(f"#!/bin/sh\n#SBATCH -n 2 -t 60 -p {name}\n")
        (row,) = as_json("when", script, *asked[1:], "--user", "carol")
        assert (row["p50_s"], row["not_looked_at"]) == (median, "")
    users = {row["user"] for row in as_json(*asked)}
    assert ("dan" in users, 6 in users) == (True, False)
    assert "of a user 'carl'; did you mean 'carol'" in in_words(
        run(*asked, *new[:-1], "carl").stderr
    )


def test_a_dump_of_now_is_asked_without_a_warning_of_jobs_that_go_on(tmp_path: Path) -> None:
    path = tmp_path / "now.txt"
    path.write_text(
        "JobID|User|State|Submit|Start|End|TimelimitRaw|AllocCPUS|ReqCPUS\n"
        "1|bob|RUNNING|2024-05-03T08:00:00|2024-05-03T08:05:00|Unknown|120|8|8\n"
        "2|ann|PENDING|2024-05-03T08:30:00|Unknown|Unknown|240|0|8\n"
    )
    asked = ("--log", path, "--at", "2024-05-03T09:00", "--processors", 8, "--by", "Fri 10:06")
    result = succeed("when", 2, *asked)
    assert "1 job on 8 of 8 processors, 1 waiting" in in_words(result.stdout)
    assert "by Fri 10:06: 100%" in result.stdout
    assert "dropped" not in result.stderr


def test_a_title_has_rules_as_they_were_given(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "slurm.conf"
    path.write_text(
        "ClusterName=c\nSchedulerType=sched/backfill\nPriorityType=priority/multifactor\n"
    )
    path.write_text(path.read_text() + "PriorityWeightAge=1000\nNodeName=n[1-64] CPUs=1\n")
    path.write_text(path.read_text() + "PartitionName=all Nodes=ALL Default=YES\n")
    asked = ("when", "--log", log, "--at", AT, "--futures", 2, "--scheduler", path)
    assert in_words(succeed(*asked).stdout).partition(";")[2].startswith(f" 2 futures by {path}")


def test_a_script_is_a_job_that_is_not_there_yet(log: Path, tmp_path: Path) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/sh\n#SBATCH -n 8 -c 2 -t 4:00:00\n#SBATCH --gres=gpu:1 -p long\n")
    asked = ("when", script, "--log", log, "--at", AT, "--scheduler", "saf", "--futures", 8)
    lines = succeed(*asked).stdout.splitlines()
    assert lines[1].endswith("8 parts of 2 core; 4 h; not looked at: --partition, --gres")
    assert lines[2].startswith("such a job starts in ")
    forecasts = hpcgym.forecast(hpcgym.snapshot(log, AT), "saf", futures=8)
    for limit in ((), ("-t", "30")):
        (row,) = as_json(*asked, *limit)
        requested = "30min" if limit else "4h"
        assert row["p50_s"] == forecasts.if_submitted(16, requested).median
        assert row["not_looked_at"] == "partition gres"
    script.write_text("#!/bin/sh\n#SBATCH -n 8\n")
    assert "has no --time: give -t" in in_words(run(*asked).stderr)
    script.write_text("#!/bin/sh\n\n#SBATCH -n some\n")
    assert "job.sh, line 3: --ntasks=some: no whole number" in in_words(run(*asked).stderr)


def test_shapes_tell_what_asking_for_less_would_save(log: Path) -> None:
    state = hpcgym.snapshot(log, AT)
    forecasts = hpcgym.forecast(state, "easy", futures=8)
    waiting = forecasts.table()
    long = waiting[waiting.requested > 7200].iloc[-1]
    asked = ("when", int(long.job), "--log", log, "--at", AT, "--shapes", "--futures", 8)
    text = in_words(succeed(*asked).stdout)
    assert "ask for " in text
    assert "of such jobs end by then" in text
    rows = as_csv(*asked)
    times = [int(row["requested_s"]) for row in rows]
    assert times == sorted(times, reverse=True)
    table = forecasts.shorter(int(long.job), times[1:])
    assert table.requested.tolist() == times
    for name in ("earlier_p10", "earlier_p50", "earlier_p90"):
        assert [float(row[f"{name}_s"]) for row in rows] == table[name].tolist()
    assert [float(row["ends"]) for row in rows] == table.ends.tolist()
    rows = as_json("when", *asked[2:], "-n", 16, "-t", "8h")
    table = forecasts.shapes([16], ["8h", "4h", "2h", "1h", "30min"])
    assert [row["p50_s"] for row in rows] == (AT + table.p50).tolist()
    assert [row["earlier_p90_s"] for row in rows] == table.earlier_p90.tolist()


def test_a_backtest_ends_in_a_sentence(log: Path) -> None:
    asked = ("when", "--backtest", log, "--moments", 4, "--futures", 4)
    text = in_words(succeed(*asked).stdout)
    assert "recent waits alone, and their 95 % intervals held" in text
    assert "; what has been best so far: " in text
    assert "% of the pool); the waits are those of the rules themselves" in text
    rows = as_json(*asked, "--truth", "recorded")
    assert [row["method"] for row in rows] == [*METHODS]
    assert all(0 <= row["coverage_80"] <= 1 for row in rows)
    for words, said in (
        ("--at 5", "not with --backtest"),
        ("--shapes", "not with --backtest"),
        ("--truth real", "unknown truth 'real'"),
    ):
        assert said in run(*asked, *words.split()).stderr
    assert "give --log and --at, or neither" in run("when", "--at", 5).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-n 4", "a job that is not there yet has both"),
        ("7 -n 4 -t 60", "either a waiting job or a new one"),
        ("--user 3", "give -n and -t, too"),
        ("7 --partition long", "give -n and -t, too"),
        ("-n 4 -t 60 --partition long", "tells of no partitions"),
        ("-n 4 -t soon", "'soon' is no time limit such as 4:00:00, 90 (minutes) or 4h"),
        ("-n 400 -t 60", "processors must be a whole number from 1 to 64, not 400"),
        ("1", "job 1 does not wait"),
        ("1 --shapes", "job 1 does not wait"),
        ("1000000 --shapes", "job 1000000 does not wait"),
        ("--shapes", "of which job? give JOB, SCRIPT or -n"),
        ("-n 4 -t 60 --shapes --by 6h", "--shapes tells how much earlier"),
        ("job.sh", "job.sh: no such file"),
        ("--scheduler sjf-list", "do not go together: not built: no Python runs inside"),
        ("--by soon", "a time of day such as '18:00'"),
    ],
)
def test_mistakes(log: Path, words: str, said: str) -> None:
    result = run("when", "--log", log, "--at", AT, *words.split())
    assert result.exit_code in (1, 2)
    assert said in in_words(result.stderr)
