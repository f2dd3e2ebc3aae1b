"""``hpcgym verify``: files come out again, and whatever has been changed in one is found."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import as_json, run, succeed

import hpcgym
from hpcgym.explore import write_page
from hpcgym.files.recorded import NAME, beside, record_of_file, record_text
from hpcgym.files.tables import write_parquet
from hpcgym.report import save_picture
from hpcgym.workload import write_swf

TABLES = ("a.swf", "a.swf.gz", "a.csv", "a.csv.gz", "a.json", "a.parquet")
PICTURES = ("a.png", "a.svg", "a.pdf", "a.html")


@pytest.fixture(autouse=True)
def log(here: Path) -> Path:
    """A log of a machine, in a file of the current folder."""
    jobs = hpcgym.load_workload("lublin:jobs=60,processors=16,load=0.9")
    write_swf(hpcgym.simulate(jobs, "easy").as_workload(), "log.swf")
    return here / "log.swf"


def written(name: str, *more: Any) -> Path:
    """What simulate writes into a file of this name, or prints into it."""
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow", reason="Parquet needs pyarrow: pip install pyarrow")
    if name in PICTURES:
        pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    option = "--output" if name in TABLES else "--html" if name == "a.html" else "--picture"
    succeed("simulate", "log.swf", "--scheduler", "saf", option, name, "--force", *more)
    return Path(name)


def printed(kind: str, *words: Any) -> Path:
    path = Path(f"{words[0]}.{kind}")
    path.write_text(succeed(words[0], "log.swf", *words[1:], "--format", kind).stdout)
    return path


def verified(*words: Any) -> str:
    """What verify says of files; its exit code tells whether all are equal."""
    result = run("verify", *words)
    equal = all(": equal" in line for line in result.stdout.splitlines())
    assert result.exit_code == (0 if equal else 1), result.output
    return str(result.stdout)


def difference_in(path: Path, *more: Any) -> str:
    """What verify says of a file that differs."""
    said = verified(path, *more)
    assert said.startswith(f"{path}: differs: ")
    return said


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def rewrite(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


# --- What is equal --------------------------------------------------------------------------------


def equal(*files: Any, also: str = "") -> None:
    done = succeed("verify", *files)
    assert done.stdout == "".join(f"{file}: equal{also}\n" for file in files)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TABLES, *PICTURES])
def test_each_file_of_simulate_comes_out_again(name: str) -> None:
    equal(written(name))


@pytest.mark.parametrize("kind", ["json", "csv"])
@pytest.mark.parametrize(
    "sizes",
    [("--processors", "12", "--processors", "16"), ("--cluster", "16x1x1", "--cluster", "8x2x1")],
)
def test_what_is_printed_comes_out_again(kind: str, sizes: tuple[str, ...]) -> None:
    names = ("compare", "--scheduler", "easy,saf", *sizes)
    equal(printed(kind, "simulate"), printed(kind, *names))


@pytest.mark.parametrize(
    "words",
    [
        ("eurora:days=1", "--cluster", "eurora", "--allocation", "best-fit"),
        ("log.swf", "--from", "30000", "--scheduler", "fairshare"),
        ("codes:jobs=40,processes=16", "--cluster", "20x2x8", "--speedups", "generated"),
    ],
)
def test_machines_with_nodes_extracts_and_shared_nodes(words: Any) -> None:
    files = ("a.csv", "b.json", "c.swf")
    for file in files:
        succeed("simulate", *words, "--output", file)
    equal(*files)


def test_what_another_version_wrote_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [written("a.swf"), printed("json", "simulate"), written("a.csv")]
    for module in ("schedule.provenance", "files.recorded", "cli.output", "cli.verify"):
        monkeypatch.setattr(f"hpcgym.{module}.__version__", "9.9")
    equal(*files, also="; hpcgym 0.1.0 wrote it, not 9.9")


# --- What differs ---------------------------------------------------------------------------------


def test_what_explore_wrote_is_made_again() -> None:
    succeed("explore", "log.swf", "--scheduler", "easy,saf,fcfs", "--output", "page.html")
    equal("page.html")
    path, word = Path("page.html"), "zoom in and out"
    text = text_of(path)
    assert word in text
    rewrite(path, text.replace(word, "job 61"))
    assert re.search(r"differs: line \d+ differs from that of now", difference_in(path))


@pytest.mark.parametrize("name", TABLES)
def test_a_wait_that_was_changed_is_found(name: str) -> None:
    path = written(name)
    if ".swf" in name:
        *lines, last = text_of(path).splitlines()
        number, submit, wait, *fields = last.split()
        last = " ".join([number, submit, str(int(wait) + 1), *fields])
        rewrite(path, "\n".join([*lines, last, ""]))
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
    assert re.search(r"job 60, wait_time is \d+, and should be \d+\n", difference_in(path))


def in_json(*where: Any, to: Any) -> Callable[[str], str]:
    """Return what changes a value of a text in JSON."""

    def change(text: str) -> str:
        value = json.loads(text)
        inner = value
        for part in where[:-1]:
            inner = inner[part]
        inner[where[-1]] = to
        return json.dumps(value)

    return change


def _cell(text: str) -> str:
    lines = text.splitlines()
    cells = lines[2].split(",")
    cells[lines[0].split(",").index("max_wait_s")] = "1"
    return "\n".join([*lines[:2], ",".join(cells), ""])


METRIC = ("schedules", 0, "metrics", "max_wait_s")
RULE = ("provenance", "schedules", 0, "rules", "policy")


@pytest.mark.parametrize(
    ("make", "change", "said"),
    [
        ("a.csv", lambda t: t[: t.rindex("\n", 0, -1) + 1], "it has 59 rows, and should have 60"),
        ("a.csv", lambda t: f"{t}{t.splitlines()[-1]}\n", "it has 61 rows, and should have 60"),
        ("a.csv", lambda t: t.replace("wait", "weight", 1), "weight_time is 0, and should be noth"),
        ("a.csv record", in_json(*METRIC, to=-1), "the metrics of saf: max_wait_s is -1"),
        (
            "a.swf",
            lambda t: t.replace("scheduler: policy=saf", "scheduler: policy=spf"),
            "and should be ; Note: scheduler: policy=saf",
        ),
        ("json", in_json("mean_bsld", to=1.0), "mean_bsld is 1.0, and should be"),
        ("json", in_json(*RULE, to="saf"), "the rules of easy: policy is saf, and should be fcfs"),
        ("csv", _cell, "row 2, max_wait_s is 1, and should be"),
        pytest.param(
            "a.svg",
            lambda t: t.replace("<path", "<path ", 1),
            "it is not the picture that is drawn now",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_what_was_changed_is_found(make: str, change: Any, said: str) -> None:
    if make == "csv":
        path = printed(make, "compare", "--scheduler", "easy,saf")
    else:
        path = printed(make, "simulate") if make == "json" else written(make.split()[0])
    file = beside(path) if make.endswith("record") else path
    file.write_text(change(file.read_text()))
    assert said in difference_in(path)


def test_a_log_that_has_changed_is_found_and_named(log: Path) -> None:
    path, lines = written("a.csv"), log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:-1]))
    said = difference_in(path)
    assert "the jobs are others (jobs: is 60, and should be 59)" in said
    assert "the schedule" in said
    assert "log.swf has other contents now" in said
    log.write_text("".join(["; Note: moved\n", *lines]))  # the same jobs
    equal(path, also="; log.swf has other contents now")


# --- Files that are elsewhere, or tell nothing ----------------------------------------------------


def test_a_log_may_lie_elsewhere(log: Path) -> None:
    path = written("a.csv")
    Path("elsewhere").mkdir()
    log.rename("elsewhere/log.swf")
    said = run("verify", path).stdout
    assert "its command cannot be run again" in said
    assert "--workload says where the log lies now" in said
    done = succeed("verify", path, "--workload", "elsewhere/log.swf")
    assert done.stdout == f"{path}: equal\n"


def test_a_log_may_have_another_name(log: Path) -> None:
    """What names it in files is what it was called, from a file or from a pipe."""
    files = ["named.swf", "named.html"]
    succeed("simulate", log, "--output", files[0], "--html", files[1])
    succeed("simulate", "-", "--output", "piped.swf", input=log.read_text())
    log.rename("other.swf")
    done = succeed("verify", *files, "piped.swf", "--workload", "other.swf")
    assert done.stdout == "".join(f"{name}: equal\n" for name in [*files, "piped.swf"])
    changed = Path("other.swf").read_text().splitlines()[:-1]
    Path("other.swf").write_text("\n".join(changed) + "\n")
    said = run("verify", files[0], "--workload", "other.swf").stdout
    assert "the jobs are others" in said


@pytest.mark.slow
def test_files_without_a_command_say_so() -> None:
    pytest.importorskip("matplotlib")
    result = hpcgym.simulate(hpcgym.load_workload("log.swf"), "easy")
    result.to_swf("made.swf")
    write_page(result, "made.html", report=True)
    save_picture(result, "made.png")
    for file in map(Path, ("made.swf", "made.html", "made.png")):
        assert f"{file}: not verified: it was written from Python" in verified(file)
        record = record_of_file(file)
        assert (record["command"], record["workloads"][0]["jobs"]) == (None, 60)


def test_one_file_that_cannot_be_verified_does_not_stop_the_others() -> None:
    path = written("a.csv")
    Path("lone.csv").write_text("a\n1\n")
    write_swf(hpcgym.load_workload(written("a.swf")), "again.swf")  # a log, and no schedule
    said = verified("lone.csv", "log.swf", "again.swf", "none.csv", path)
    *without, none, last = said.splitlines()
    assert all(text.endswith("has no record of what it was made from") for text in without)
    assert (len(without), none.endswith("none.csv: no such file")) == (3, True)
    assert last == f"{path}: equal"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("generate lublin x.csv", "hpcgym generate wrote it, and only files of"),
        ("simulate lublin --nothing", "its command line is not one of now"),
        ("simulate --help", "its command line is not one of now"),
        ("compare", "its command line is not one of now"),
        ("explore lublin", "its command writes no file that ends in .json"),
        ("simulate lublin", "its command writes no file that ends in .json"),
        ("simulate pipe", "pipe is a pipe, not a file"),
    ],
)
def test_a_command_that_makes_no_such_file_is_not_run(
    command: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo("pipe")
    for place in ("simulation.run.simulate", "workload.load._generate"):
        monkeypatch.setattr(f"hpcgym.{place}", lambda *_, **__: pytest.fail("it is run"))
    record = {
        "hpcgym": "1", "date": "now", "command": shlex.split(command), "files": {},
        "workloads": [{"jobs": 5}], "schedules": [{"name": "easy"}],
    }  # fmt: skip
    Path("a.json").write_text(json.dumps({"provenance": record}))
    text = verified("a.json")
    assert "not verified: " in text
    assert said in text


# --- What is recorded -----------------------------------------------------------------------------


def test_verifying_writes_no_file(here: Path) -> None:
    pytest.importorskip("matplotlib")
    path = written("a.csv", "--html", "page.html")
    Path("page.html").unlink()
    before = {file: file.read_bytes() for file in here.iterdir()}
    equal(path)
    assert {file: file.read_bytes() for file in here.iterdir()} == before


@pytest.mark.slow
def test_the_same_command_writes_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for name in (*TABLES, *PICTURES):
        both = []
        for _ in range(2):
            path = written(name)
            both.append([file.read_bytes() for file in (path, beside(path)) if file.exists()])
        assert both[0] == both[1], name
        assert record_of_file(path)["date"] == "2023-11-14T22:13:20Z"


def test_traces_show_tells_checksums(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of_file(printed("json", "simulate"))
    monkeypatch.setenv("HPCGYM_DATA", str(log.parent))
    facts = as_json("traces", "show", "log")
    assert facts["sha256"] == record["files"]["log.swf"]
    assert facts["sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    assert facts["sha256_of_jobs"] == record["workloads"][0]["sha256"]
    assert facts["sha256_of_jobs"] in succeed("traces", "show", log).stdout


def test_files_in_lists_are_recorded_and_told_apart() -> None:
    for folder, policy in (("a", "saf"), ("b", "sqf")):
        Path(folder).mkdir()
        Path(folder, "mine.toml").write_text(f'policy = "{policy}"\n')
    words = ("--scheduler", "a/mine.toml,easy", "--scheduler", "b/mine.toml")
    files = as_json("compare", "log.swf", *words)["provenance"]["files"]
    assert list(files) == ["a/mine.toml", "b/mine.toml", "log.swf"]


def test_records_beside_tables_are_passed_over_and_other_inputs_are_told() -> None:
    conf, path = Path("slurm.conf"), Path("a.csv")
    text = "SchedulerType=sched/backfill\nNodeName=n[1-4] CPUs=4\nPartitionName=p Nodes=ALL\n"
    conf.write_text(text)
    succeed("simulate", "log.swf", "--scheduler", conf, "--output", path)
    said = f"{path}: equal\n{beside(path)}: is the record of a.csv\n"
    assert succeed("verify", path, beside(path)).stdout == said
    conf.write_text(f"{text}# another line\n")
    equal(path, also="; slurm.conf has other contents now")
