"""``hpcgym verify``: files come out again, and whatever has been changed in one is found."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run, succeed

import hpcgym
from hpcgym.explore import write_page
from hpcgym.files.recorded import NAME, beside, record_of_file, record_text
from hpcgym.files.tables import write_parquet
from hpcgym.report import save_picture
from hpcgym.workload import write_swf

TABLES = ("a.swf", "a.swf.gz", "a.csv", "a.csv.gz", "a.json", "a.parquet")
PICTURES = ("a.png", "a.svg", "a.pdf", "a.html")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of a machine, in a file."""
    path = tmp_path / "log.swf"
    jobs = hpcgym.load_workload("lublin:jobs=60,processors=16,load=0.9")
    write_swf(hpcgym.simulate(jobs, "easy").as_workload(), path)
    return path


def needs(name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install pyarrow")
    if name in PICTURES:
        pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")


def written(log: Path, name: str, *more: Any) -> Path:
    """What simulate writes into a file of this name."""
    needs(name)
    path, option = log.with_name(name), "--output" if name in TABLES else "--picture"
    succeed("simulate", log, "--scheduler", "saf", option, path, "--force", *more)
    return path


def printed(log: Path, kind: str, command: str = "simulate", *more: Any) -> Path:
    path = log.with_name(f"printed.{kind}")
    path.write_text(succeed(command, log, "--format", kind, *more).stdout)
    return path


def found(path: Path, *more: Any) -> str:
    """What verify says of a file that differs."""
    result = run("verify", path, *more)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith(f"{path}: differs: ")
    return str(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TABLES, *PICTURES])
def test_each_file_of_simulate_comes_out_again(log: Path, name: str) -> None:
    path = written(log, name)
    assert succeed("verify", path).stdout == f"{path}: equal\n"


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize("sizes", [("--processors", "12,16"), ("--cluster", "16x1x1,8x2x1")])
def test_what_is_printed_comes_out_again(log: Path, kind: str, sizes: tuple[str, str]) -> None:
    one = printed(log, kind)
    several = log.with_name(f"several.{kind}")
    names = ("--scheduler", "easy,saf", *sizes)
    several.write_text(printed(log, kind, "compare", *names).read_text())
    one.write_text(printed(log, kind).read_text())
    assert succeed("verify", one, several).stdout == f"{one}: equal\n{several}: equal\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("eurora:days=1", "--cluster", "eurora", "--allocation", "best-fit"),
        ("log.swf", "--from", "30000", "--scheduler", "fairshare"),
        ("codes:jobs=40,processes=16", "--cluster", "20x2x8", "--speedups", "generated"),
    ],
)
def test_machines_with_nodes_extracts_and_shared_nodes(
    log: Path, arguments: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    files = [log.with_name(name) for name in ("a.csv", "b.json", "c.swf")]
    for file in files:
        succeed("simulate", *arguments, "--output", file)
    assert succeed("verify", *files).stdout == "".join(f"{file}: equal\n" for file in files)


@pytest.mark.parametrize("name", ["page.html", "trace.json", "trace.json.gz"])
def test_what_explore_wrote_is_made_again(log: Path, name: str) -> None:
    file = log.with_name(name)
    succeed("explore", log, "--scheduler", "easy,saf,fcfs", "--output", file)
    assert succeed("verify", file).stdout == f"{file}: equal\n"
    packed = name.endswith(".gz")
    text = gzip.decompress(file.read_bytes()).decode() if packed else file.read_text()
    changed = text.replace("zoom in and out" if name == "page.html" else "job 60", "job 61")
    assert changed != text
    file.write_bytes(gzip.compress(changed.encode()) if packed else changed.encode())
    assert re.search(r"differs: line \d+ differs from that of now", found(file))


@pytest.mark.parametrize("name", TABLES)
def test_a_wait_that_was_changed_is_found(log: Path, name: str) -> None:
    path = written(log, name)
    if ".swf" in name:
        packed = name.endswith(".gz")
        text = gzip.decompress(path.read_bytes()).decode() if packed else path.read_text()
        *lines, last = text.splitlines()
        number, submit, wait, *fields = last.split()
        last = " ".join([number, submit, str(int(wait) + 1), *fields])
        changed = "\n".join([*lines, last, ""]).encode()
        path.write_bytes(gzip.compress(changed) if packed else changed)
    elif name.endswith("json"):
        rows = json.loads(path.read_text())
        rows[-1]["wait_time"] += 1
        path.write_text(json.dumps(rows))
    else:
        packed = name.endswith("parquet")
        record, frame = record_of_file(path), (pd.read_parquet if packed else pd.read_csv)(path)
        frame.loc[59, "wait_time"] += 1
        if packed:
            write_parquet(frame, path, {NAME: record_text(record)})
        else:
            frame.to_csv(path, index=False)
    assert re.search(r"job 60, wait_time is \d+, and should be \d+\n", found(path))


def _metric(text: str) -> str:
    record = json.loads(text)
    record["schedules"][0]["metrics"]["max_wait_s"] += 1
    return json.dumps(record)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (
            "a.csv",
            lambda text: text[: text.rindex("\n", 0, -1) + 1],
            "it has 59 rows, and should have 60",
        ),
        (
            "a.csv",
            lambda text: text + text.splitlines()[-1] + "\n",
            "it has 61 rows, and should have 60",
        ),
        (
            "a.csv",
            lambda text: text.replace("wait", "weight", 1),
            "job 1, weight_time is 0, and should be nothing",
        ),
        ("a.csv record", _metric, "the metrics of saf: max_wait_s is"),
        (
            "a.swf",
            lambda text: text.replace("scheduler: policy=saf", "scheduler: policy=spf"),
            "and should be ; Note: scheduler: policy=saf",
        ),
        pytest.param(
            "a.svg",
            lambda text: text.replace("<path", "<path ", 1),
            "it is not the picture that is drawn now",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_was_changed_is_found(log: Path, name: str, change: Any, said: str) -> None:
    path = written(log, name.removesuffix(" record"))
    file = beside(path) if name.endswith("record") else path
    file.write_text(change(file.read_text()))
    assert said in found(path)


def test_tables_with_the_names_of_earlier_versions_are_equal(log: Path) -> None:
    path = written(log, "a.csv")
    head, rest = path.read_text().split("\n", 1)
    old = {"requested_processors": "processors", "submit_time": "submit", "start_time": "start"}
    old |= {"end_time": "end", "wait_time": "wait"}
    assert old.keys() <= {*head.split(",")}
    path.write_text(",".join(old.get(name, name) for name in head.split(",")) + "\n" + rest)
    assert succeed("verify", path).stdout == f"{path}: equal\n"


def test_numbers_and_rules_that_were_changed_are_found(log: Path) -> None:
    path = printed(log, "json")
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "mean_bsld": 1.0}))
    assert "mean_bsld is 1.0, and should be" in found(path)
    facts["provenance"]["schedules"][0]["rules"]["policy"] = "saf"
    path.write_text(json.dumps(facts))
    assert "the rules of easy: policy is saf, and should be fcfs" in found(path)
    rows = printed(log, "csv", "compare", "--scheduler", "easy,saf")
    lines = rows.read_text().splitlines()
    place = lines[0].split(",").index("max_wait_s")
    cells = lines[2].split(",")
    cells[place] = "1"
    rows.write_text("\n".join([*lines[:2], ",".join(cells), ""]))
    assert "row 2, max_wait_s is 1, and should be" in found(rows)


def test_a_log_that_has_changed_is_found_and_named(log: Path) -> None:
    path = written(log, "a.csv")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-1]))
    said = found(path)
    assert "the jobs are others (jobs is 60, and should be 59)" in said.replace(": ", " ")
    assert "the schedule" in said
    assert "log.swf has other contents now" in said
    log.write_text("".join(["; Note: moved\n", *lines]))  # the same jobs
    assert succeed("verify", path).stdout == f"{path}: equal; log.swf has other contents now\n"


def test_a_log_may_lie_elsewhere(log: Path) -> None:
    path = written(log, "a.csv")
    moved = log.parent / "elsewhere"
    moved.mkdir()
    log.rename(moved / "log.swf")
    result = run("verify", path)
    assert result.exit_code == 1
    assert "its command cannot be run again" in result.stdout
    assert "--workload says where the log lies now" in result.stdout
    assert succeed("verify", path, "--workload", moved / "log.swf").stdout == f"{path}: equal\n"


def test_what_another_version_wrote_is_compared_too(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [written(log, "a.swf"), printed(log, "json"), written(log, "a.csv")]
    for module in ("schedule.provenance", "files.recorded", "cli.output", "cli.verify"):
        monkeypatch.setattr(f"hpcgym.{module}.__version__", "9.9")
    said = "equal; hpcgym 0.1.0 wrote it, not 9.9"
    assert succeed("verify", *files).stdout == "".join(f"{file}: {said}\n" for file in files)


@pytest.mark.slow
def test_files_without_a_command_say_so(log: Path) -> None:
    needs("a.html")
    result = hpcgym.simulate(hpcgym.load_workload(log), "easy")
    files = [log.with_name(name) for name in ("made.swf", "made.html", "made.png")]
    result.to_swf(files[0])
    write_page(result, files[1], report=True)
    save_picture(result, files[2])
    for file in files:
        told = run("verify", file)
        assert told.exit_code == 1
        assert f"{file}: not verified: it was written from Python" in told.stdout
        record = record_of_file(file)
        assert record["command"] is None
        assert record["workloads"][0]["jobs"] == 60


def test_one_file_that_cannot_be_verified_does_not_stop_the_others(log: Path) -> None:
    path = written(log, "a.csv")
    lone = log.with_name("lone.csv")
    lone.write_text("a\n1\n")
    result = run("verify", lone, log, log.with_name("none.csv"), path)
    assert result.exit_code == 1
    first, second, third, last = result.stdout.splitlines()
    assert first.endswith("lone.csv has no record of what it was made from")
    assert second.endswith("log.swf has no record of what it was made from")
    assert third.endswith("none.csv: no such file")
    assert last == f"{path}: equal"


FEW, MANY = (",".join(map(str, range(1, end))) for end in (40, 1200))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("generate lublin x.csv", "hpcgym generate wrote it, and only files of"),
        ("simulate lublin --nothing", "its command line is not one of now"),
        ("simulate --help", "its command line is not one of now"),
        ("compare", "its command line is not one of now"),
        (
            "simulate lublin:jobs=100000000",
            "far more jobs, lublin:jobs=100000000, than the 100,500",
        ),
        ("simulate 'lublin:seed=1, jobs = 1e8'", "far more jobs"),
        ("explore kit:days=1e6", "far more jobs, kit:days=1e6"),
        ("compare lublin:jobs=inf", "far more jobs"),
        ("compare lublin:jobs=9 --scheduler easy,saf", "its command makes 2 schedules"),
        ("explore lublin:jobs=9 --scheduler easy,saf", "its command makes 2 schedules"),
        (f"compare lublin:jobs=9 --threshold {MANY}", "1,199"),
        (f"compare lublin:jobs=9 --threshold {FEW} --processors {FEW}", "and the file tells 1"),
    ],
)
def test_a_command_that_is_none_or_costs_far_more_than_its_file_tells_is_not_run(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("simulation.run.simulate", "workload.load._generate"):
        monkeypatch.setattr(f"hpcgym.{place}", lambda *_, **__: pytest.fail("it is run"))
    record = {
        "hpcgym": "1", "date": "now", "command": shlex.split(command), "files": {},
        "workloads": [{"jobs": 5}], "schedules": [{"name": "easy"}],
    }  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps({"provenance": record}))
    result = run("verify", tmp_path / "a.json")
    assert result.exit_code == 1
    assert "not verified: " in result.stdout
    assert said in result.stdout


def test_a_schedule_tells_no_more_jobs_than_it_has_bytes(log: Path) -> None:
    path = written(log, "a.csv")
    record = json.loads(beside(path).read_text())
    record["workloads"][0]["jobs"] = 10**9
    beside(path).write_text(json.dumps({**record, "command": ["simulate", "lublin:jobs=5000000"]}))
    assert "far more jobs" in run("verify", path).stdout


def test_verifying_writes_no_file(log: Path) -> None:
    needs("a.html")
    page = log.with_name("page.html")
    path = written(log, "a.csv", "--html", page)
    page.unlink()
    before = {file: file.read_bytes() for file in log.parent.iterdir()}
    succeed("verify", path)
    assert {file: file.read_bytes() for file in log.parent.iterdir()} == before


@pytest.mark.slow
def test_the_same_command_writes_the_same_bytes(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in (*TABLES, *PICTURES):
        path = written(log, name)
        before = path.read_bytes()
        told = beside(path).read_bytes() if beside(path).exists() else b""
        written(log, name)
        assert path.read_bytes() == before, name
        assert told == (beside(path).read_bytes() if beside(path).exists() else b"")
        assert record_of_file(path)["date"] == "2023-11-14T22:13:20Z"


def test_traces_show_tells_checksums(log: Path) -> None:
    show = ("traces", "show", log.stem, "--format", "json")
    told = json.loads(succeed(*show, env={"HPCGYM_DATA": str(log.parent)}).stdout)
    assert told["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    record = record_of_file(printed(log, "json"))
    assert told["sha256_of_jobs"] == record["workloads"][0]["sha256"]
    assert told["sha256"] == record["files"]["log.swf"]
    assert told["sha256_of_jobs"] in succeed("traces", "show", log).stdout


def test_files_in_lists_are_recorded_and_told_apart(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    for folder, policy in (("a", "saf"), ("b", "sqf")):
        Path(folder).mkdir()
        Path(folder, "mine.toml").write_text(f'policy = "{policy}"\n')
    words = ("--scheduler", "a/mine.toml,easy", "--scheduler", "b/mine.toml", "--format", "json")
    files = json.loads(succeed("compare", log.name, *words).stdout)["provenance"]["files"]
    assert list(files) == ["a/mine.toml", "b/mine.toml", log.name]


def test_a_log_made_of_a_schedule_has_its_record_no_more(log: Path) -> None:
    path = written(log, "a.swf")
    again = log.with_name("again.swf")
    write_swf(hpcgym.load_workload(path), again)
    assert "has no record" in run("verify", again).stdout
    assert "provenance" not in again.read_text()


def test_a_record_that_names_a_pipe_is_not_followed(log: Path) -> None:
    path, pipe = written(log, "a.csv"), log.with_name("pipe")
    os.mkfifo(pipe)
    record = json.loads(beside(path).read_text())
    beside(path).write_text(json.dumps({**record, "command": ["simulate", str(pipe)]}))
    assert "is no regular file" in run("verify", path).stdout


def test_records_beside_tables_are_passed_over_and_other_inputs_are_told(log: Path) -> None:
    conf = log.with_name("slurm.conf")
    text = "SchedulerType=sched/backfill\nNodeName=n[1-4] CPUs=4\nPartitionName=p Nodes=ALL\n"
    conf.write_text(text)
    path = log.with_name("a.csv")
    succeed("simulate", log, "--scheduler", conf, "--output", path)
    assert succeed("verify", path, beside(path)).stdout.splitlines() == [
        f"{path}: equal",
        f"{beside(path)}: is the record of a.csv",
    ]
    conf.write_text(f"{text}# another line\n")
    assert succeed("verify", path).stdout == f"{path}: equal; slurm.conf has other contents now\n"


def test_files_that_were_moved_are_found_beside(log: Path) -> None:
    prices, folder = log.with_name("price.csv"), log.with_name("moved")
    prices.write_text("time_s,price_per_kwh\n0,0.1\n5000,0.3\n90000,0.3\n")
    words = ["--cluster", "taurus", "--price", prices, f"--output={log.with_name('a.swf')}"]
    succeed("simulate", log, *words)
    folder.mkdir()
    for file in (log, prices, log.with_name("a.swf")):
        file.rename(folder / file.name)
    assert succeed("verify", folder / "a.swf").stdout == f"{folder / 'a.swf'}: equal\n"
    (folder / "price.csv").unlink()
    assert "price.csv" in run("verify", folder / "a.swf").stdout
