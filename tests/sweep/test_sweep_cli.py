"""``hpcgym sweep``: what it prints, where it writes, how it ends."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.progress import measuring
from hpcgym.speedups import generate_speedups, write_speedups
from hpcgym.sweep import load_experiment, read_table, run_experiment, status

FAILING = """
schedulers = ["easy"]
[[workloads]]
workload = "small.csv"
[[workloads]]
workload = "lublin:jobs=20,processors=8"
"""


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def succeed(*arguments: object) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def test_a_sweep_from_its_file_to_its_table(
    write_experiment: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_experiment(tmp_path / "here")
    result = succeed("run", path, "--executor", "serial")
    folder = tmp_path / "small.sweep"
    assert "8 of 8 simulations are done, 8 of them now: hpcgym sweep table small.sweep" in (
        result.stderr
    )
    assert result.stdout == ""
    assert succeed("status", folder).stdout == "complete: 8 tasks, 8 done, 0 failed, 0 left\n"
    facts = json.loads(succeed("status", folder, "--format", "json").stdout)
    assert facts == {
        "state": "complete", "tasks": 8, "done": 8, "failed": 0, "left": 0, "damaged": 0,
        "failures": [],
    }  # fmt: skip
    table = read_table(folder)
    rows = list(csv.DictReader(io.StringIO(succeed("table", folder, "--format", "csv").stdout)))
    assert [row["seed"] for row in rows] == ["3", "3", "4", "4", "", "", "", ""]
    assert [float(row["mean_bsld"]) for row in rows] == table["mean_bsld"].tolist()
    values = json.loads(succeed("table", folder, "--format", "json").stdout)
    assert [value["slice"] for value in values] == table["slice"].tolist()
    assert values[-1]["seed"] is None
    assert succeed("resume", folder, "--executor", "serial").stderr.startswith("8 of 8")
    again = run("run", path, "--executor", "serial")
    assert again.exit_code == 1
    assert "has a sweep already: hpcgym sweep resume small.sweep goes on with it" in again.stderr


def test_the_table_for_people_has_means(reference: Path) -> None:
    text = succeed("table", reference).stdout
    table = read_table(reference)
    mean = table[table["workload"] == "generated"].groupby("scheduler")["mean_bsld"].mean()
    (easy,) = (line for line in text.splitlines() if line.split()[:2] == ["generated", "easy"])
    assert easy.split()[2] == "2"
    assert float(easy.split()[3].rstrip("*").replace(",", "")) == pytest.approx(mean["easy"], 1e-3)
    assert text.count("*") >= 3  # a best of each workload, and the caption


def test_the_table_of_a_paper_has_the_numbers_of_the_summary(reference: Path) -> None:
    from hpcgym.evaluation import summary

    asked = ["--metric", "mean_bsld,max_wait_s", "--paired", "easy", "--normalise", "easy", "--ci"]
    found = summary(
        read_table(reference), ["mean_bsld", "max_wait_s"], paired="easy", normalise="easy",
        intervals=["mean_bsld", "max_wait_s"],
    )  # fmt: skip
    printed = succeed("table", reference, *asked, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert list(rows[0]) == list(found.columns)
    assert [float(row["mean_bsld_above"] or "nan") for row in rows] == pytest.approx(
        found["mean_bsld_above"].tolist(), nan_ok=True
    )
    facts = json.loads(succeed("table", reference, *asked, "--format", "json").stdout)
    assert [fact["mean_bsld"] for fact in facts] == found["mean_bsld"].tolist()
    table = succeed("table", reference, *asked).stdout
    latex = succeed("table", reference, *asked, "--format", "latex").stdout
    markdown = succeed("table", reference, *asked, "--format", "markdown")
    assert latex.count(r"\\") == len(rows) + 1
    assert len(markdown.stdout.splitlines()) == len(rows) + 2
    assert "no 95 % intervals: they need 5 simulations" in markdown.stderr
    for row in found.itertuples():
        number = f"{row.mean_bsld:.4g}" if row.mean_bsld < 1 else f"{row.mean_bsld:.3f}"
        assert all(number in text for text in (table, latex, markdown.stdout))
    assert "unknown --metric" in run("table", reference, "--metric", "meen_bsld").stderr


@pytest.mark.parametrize("format", ["table", "csv", "json", "markdown", "latex"])
def test_simulations_too_few_for_intervals_are_a_line(reference: Path, format: str) -> None:
    told = "no 95 % intervals: they need 5 simulations or more, and there are 2"
    for asked, times in ((["--ci"], 1), (["--paired", "easy"], 1), (["--by", "seed"], 0)):
        done = succeed("table", reference, *asked, "--format", format)
        assert (done.stdout + done.stderr).count(told) == times


@pytest.fixture
def unequal(reference: Path, tmp_path: Path) -> Path:
    """A sweep whose best scheduler has done one of two simulations of a workload."""
    folder = tmp_path / "unequal"
    shutil.copytree(reference, folder)
    lines = (folder / "results.jsonl").read_text().splitlines()
    table = read_table(reference)
    rows = table[table["workload"] == "generated"].set_index(["scheduler", "seed"])["mean_bsld"]
    seed = int(rows["easy"].idxmax())  # its mean over the other seed is the lowest of all
    assert rows["easy"].min() < rows["saf-20h"].mean()
    left = [line for line in lines if not _is_of(json.loads(line), "easy", seed)]
    assert len(left) == len(lines) - 1
    (folder / "results.jsonl").write_text("\n".join(left) + "\n")
    return folder


def _is_of(line: Any, scheduler: str, seed: int) -> bool:
    task = line["task"]
    return (task["scheduler"], task["workload"], task["seed"]) == (scheduler, "generated", seed)


@pytest.mark.parametrize(("format", "mark"), [("table", "*"), ("markdown", "**"), ("latex", "bf")])
def test_means_over_fewer_simulations_are_never_the_best(
    unequal: Path, format: str, mark: str
) -> None:
    done = succeed("table", unequal, "--format", format)
    lines = [line for line in done.stdout.splitlines() if "generated" in line]
    (easy,) = (line for line in lines if "easy" in line)
    (saf,) = (line for line in lines if "saf-20h" in line)
    assert "1 of 2" in easy
    assert " of " not in saf
    assert mark not in easy + saf  # nothing can be compared with the other
    others = "".join(line for line in done.stdout.splitlines() if "small" in line)
    assert mark in others
    told = " ".join((done.stdout + done.stderr).split())
    assert "are means over other jobs than the other rows" in told


def test_profiles_of_a_sweep_are_figures(reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = tmp_path / "figures"
    result = succeed("table", reference, "--metric", "mean_bsld", "--figures", folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["profile-mean_bsld.pdf", "profile-mean_bsld.svg"]
    assert f"wrote profile-mean_bsld into {folder}" in result.stderr
    assert "has files in it already" in run("table", reference, "--figures", folder).stderr


@pytest.mark.parametrize(
    ("number", "numbers"), enumerate([(2, 3, 3, 0, 0, 0), (2, 3, 0, 1, 20, 0), (1, 3, 0, 0, 0, 3)])
)
def test_the_experiments_in_the_help_are_some(
    number: int, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    shown = succeed("run", "--help").stdout
    # from a heading such as "An experiment, weeks.toml:" to the next line that is not indented
    text = re.findall(r"^\S.*\.toml:\n((?:  .*\n|\n)+)", shown, re.MULTILINE)[number]
    write_speedups(generate_speedups(4), tmp_path / "aris.json")
    (tmp_path / "help.toml").write_text(text)
    found = load_experiment(tmp_path / "help.toml")
    lists = ("workloads", "schedulers", "seeds", "speedups", "shuffles", "limits")
    assert tuple(len(getattr(found, name)) for name in lists) == numbers


@pytest.mark.parametrize(
    ("page", "column", "values"),
    [
        ("sweeps.md", "scheduler", {"easy", "saf", "saf-5h"}),
        ("power-limits.md", "limits", {"none", "60 %", "80 %"}),
        pytest.param(
            "coscheduling.md", "scheduler", {"easy", "easy-co", "filler-co", "learning"},
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_the_experiments_of_guides_run(
    page: str, column: str, values: set[str], tmp_path: Path
) -> None:
    guide = Path(__file__).parents[2] / "docs" / page
    (text,) = re.findall(r"^```toml\n(.*?)^```", guide.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "guide.toml").write_text(text)
    folder = tmp_path / "sweep"
    succeed("run", tmp_path / "guide.toml", "--executor", "serial", "--output", folder)
    assert set(read_table(folder)[column]) == values


@pytest.fixture
def failed(tmp_path: Path) -> Path:
    """A sweep one of whose workloads cannot be simulated."""
    (tmp_path / "small.csv").write_text(
        "submit_time,run_time,requested_time,requested_processors\n0,5,9,4\n"
    )
    path = tmp_path / "failing.toml"
    path.write_text(FAILING.replace('"small.csv"', '"small.csv"\nprocessors = 2\nclean = "none"'))
    result = run("run", path, "--executor", "serial", "--output", tmp_path / "sweep")
    assert result.exit_code == 1
    assert "failed: small.csv · whole · easy: WorkloadError: small" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("hpcgym: 1 of 2 tasks failed: ")
    return tmp_path / "sweep"


def test_failed_tasks_are_told_with_their_inputs(failed: Path) -> None:
    result = succeed("status", failed)
    assert result.stdout.splitlines()[0] == "failed: 2 tasks, 1 done, 1 failed, 0 left"
    assert "requested_processors must be from 1 to 2" in result.stdout
    (failure,) = json.loads(succeed("status", failed, "--format", "json").stdout)["failures"]
    assert failure["task"]["processors"] == 2
    table = succeed("table", failed, "--format", "csv")
    assert table.stdout.count("\n") == 2
    assert "1 of 2 tasks are done" in table.stderr


def test_a_sweep_with_nothing_done_has_a_table(failed: Path) -> None:
    (failed / "results.jsonl").unlink()
    assert succeed("table", failed, "--format", "json").stdout == "[]\n"
    assert "0 of 2 tasks are done" in succeed("table", failed).stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "none.toml"], "none.toml: no such file"),
        (["run", "none.toml", "--executor", "das"], "unknown executor 'das'; did you mean 'dask'"),
        (
            ["run", "none.toml", "--executor", "serial", "--workers", "3"],
            "workers: executor 'serial' takes no number of them; it is this process alone",
        ),
        (["resume", "none"], "none is no sweep: it has no manifest.json"),
        (["status", "none"], "none is no sweep"),
    ],
)
def test_mistakes_end_in_one_line(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("hpcgym: ")
    assert message in line
    assert not list(tmp_path.iterdir())


def _hear_ctrl_c() -> None:
    """Undo what a shell does to tests that it runs in the background: they do not hear Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_leaves_a_sweep_that_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "long.toml"
    path.write_text(
        'schedulers = ["easy", "saf"]\nseeds = ['
        + ",".join(map(str, range(300)))
        + ']\n[[workloads]]\nworkload = "lublin:jobs=5000,processors=64,load=0.9,seed={seed}"\n'
    )
    folder = tmp_path / "long.sweep"
    command = [sys.executable, "-m", "hpcgym", "sweep", "run", str(path), "--workers", "1"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=_hear_ctrl_c
    )
    results = folder / "results.jsonl"
    end = time.monotonic() + 300
    while not (results.exists() and results.read_bytes().count(b"\n") > 1):
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, text = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "hpcgym sweep resume long.sweep goes on" in text
    assert "Traceback" not in text
    found = status(folder)
    assert found.state == "interrupted"
    assert 1 < found.done < 600


def test_the_bar_tells_rate_and_remaining_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    now = iter([0.0, 2.0])
    clock = SimpleNamespace(monotonic=lambda: next(now))
    monkeypatch.setattr("hpcgym.progress.time", clock)
    monkeypatch.setattr("hpcgym.progress.watched", lambda: True)
    with measuring("simulating") as show:
        show(500, 1000)  # done before: no rate
        show(600, 1000)
    text = capsys.readouterr().err
    assert "600/1000" in text
    assert "50 a second" in text
    assert ":" in text.split("50 a second")[1]


def test_dates_of_a_log_are_of_the_zone_that_an_experiment_names(tmp_path: Path) -> None:
    lines = ["JobIDRaw|Submit|Start|End|Timelimit|NCPUS|State"]
    lines += [
        f"{job}|2024-03-31T{submit}:00|2024-03-31T{submit}:30|2024-03-31T{submit}:40|02:00:00|4|COMPLETED"
        for job, submit in ((1, "01:00"), (2, "03:00"))  # clocks go on by an hour between
    ]
    (tmp_path / "dump.txt").write_text("\n".join(lines) + "\n")
    makespans = {}
    for zone in ("UTC", "Europe/Berlin"):
        toml = 'schedulers = ["easy"]\n[[workloads]]\nworkload = "dump.txt"\nprocessors = 4\n'
        toml += f'tz = "{zone}"\n'
        path = tmp_path / f"{zone.partition('/')[0]}.toml"
        path.write_text(toml)
        run_experiment(path, tmp_path / path.stem, "serial")
        makespans[zone] = read_table(tmp_path / path.stem)["makespan_s"][0]
    assert makespans == {"UTC": 7210, "Europe/Berlin": 3610}
