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

import numpy as np
import pytest
from click.testing import CliRunner
from mistakes import is_told, mistakes_of
from sweep_files import changed, contents, cut

from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.machine.speedups import generate_speedups, write_speedups
from hpcgym.progress import measuring
from hpcgym.study import load_experiment, read_results, read_table, status, summary

FAILING = """
schedulers = ["easy"]
[[workloads]]
workload = "small.csv"
processors = 2
clean = "none"
[[workloads]]
workload = "lublin:jobs=20,processors=8"
"""


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


def succeed(*arguments: object) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return result


def rows_of(*arguments: object) -> list[dict[str, str]]:
    printed = succeed("table", *arguments, "--format", "csv").stdout
    return list(csv.DictReader(io.StringIO(printed)))


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
    table, rows = read_table(folder), rows_of(folder)
    assert [row["seed"] for row in rows] == ["3", "3", "4", "4", "", "", "", ""]
    assert [float(row["mean_bsld"]) for row in rows] == table["mean_bsld"].tolist()
    printed = json.loads(succeed("table", folder, "--format", "json").stdout)
    values = printed["rows"]
    assert list(printed["provenance"]["files"]) == [f"{folder.resolve().name}: manifest"]
    assert [value["slice"] for value in values] == table["slice"].tolist()
    assert values[-1]["seed"] is None
    assert succeed("run", folder, "--executor", "serial").stderr.startswith("8 of 8")


# --- Tables for people and papers -----------------------------------------------------------------


def test_the_table_for_people_has_means(reference: Path) -> None:
    text = succeed("table", reference).stdout
    table = read_table(reference)
    mean = table[table["workload"] == "generated"].groupby("scheduler")["mean_bsld"].mean()
    (easy,) = (line for line in text.splitlines() if line.split()[:2] == ["generated", "easy"])
    assert easy.split()[2] == "2"
    assert float(easy.split()[3].rstrip("*").replace(",", "")) == pytest.approx(mean["easy"], 1e-3)
    assert text.count("*") >= 3  # a best of each workload, and the caption


def test_the_table_of_jobs_that_share_nodes_has_improvements(shared: Path) -> None:
    lines = succeed("table", shared / "sweep").stdout.splitlines()[3:]
    assert "makespan" in lines[0]
    assert "95 %" in lines[0]
    assert "improvement (%)" in lines[1]
    few = "no 95 % intervals: they need 5 simulations or more, and there are 2"
    assert lines[-1].strip() == f"makespans improve over those of easy; {few}"
    assert all("- " in line for line in lines if " codes " in f" {line}" and "easy" in line)
    rows = read_table(shared / "sweep")
    best = rows[(rows["workload"] == "codes") & (rows["speedups"] == "pairs.json")]
    name = best.groupby("scheduler")["makespan_s"].mean().idxmin()
    (line,) = (line for line in lines if line.split()[:3] == ["codes", "pairs.json", name])
    assert line.split()[3] == "2"
    assert line.split()[4].endswith("*")


def test_the_table_of_a_paper_has_the_numbers_of_the_summary(reference: Path) -> None:
    asked = ["--metric", "mean_bsld,max_wait_s", "--paired", "easy", "--normalise", "easy", "--ci"]
    expected = summary(
        read_table(reference), ["mean_bsld", "max_wait_s"], paired="easy", normalise="easy",
        intervals=["mean_bsld", "max_wait_s"],
    )  # fmt: skip
    rows = rows_of(reference, *asked)
    assert list(rows[0]) == list(expected.columns)
    assert [float(row["mean_bsld_above"] or "nan") for row in rows] == pytest.approx(
        expected["mean_bsld_above"].tolist(), nan_ok=True
    )
    facts = json.loads(succeed("table", reference, *asked, "--format", "json").stdout)
    assert [fact["mean_bsld"] for fact in facts["rows"]] == expected["mean_bsld"].tolist()
    table = succeed("table", reference, *asked).stdout
    latex = succeed("table", reference, *asked, "--format", "latex").stdout
    markdown = succeed("table", reference, *asked, "--format", "markdown")
    parts = latex.count(r"\toprule")
    assert parts == 3  # of at most seven columns
    assert sum(text.endswith(r"\\") for text in latex.splitlines()) == parts * (len(rows) + 1)
    assert len(markdown.stdout.splitlines()) == len(rows) + 2
    for row in expected.itertuples():
        number = f"{row.mean_bsld:.4g}" if row.mean_bsld < 1 else f"{row.mean_bsld:.3f}"
        assert all(number in text for text in (table, latex, markdown.stdout))


@pytest.mark.parametrize("format", ["table", "csv", "json", "markdown", "latex"])
def test_simulations_too_few_for_intervals_are_a_line(reference: Path, format: str) -> None:
    sentence = "no 95 % intervals: they need 5 simulations or more, and there are 2"
    for asked, times in ((["--ci"], 1), (["--paired", "easy"], 1), (["--by", "seed"], 0)):
        done = succeed("table", reference, *asked, "--format", format)
        assert (done.stdout + done.stderr).count(sentence) == times


@pytest.fixture
def unequal(reference: Path, tmp_path: Path) -> Path:
    """A sweep whose best scheduler has done one of two simulations of a workload."""
    folder = tmp_path / "unequal"
    shutil.copytree(reference, folder)
    table = read_table(reference)
    rows = table[table["workload"] == "generated"].set_index(["scheduler", "seed"])["mean_bsld"]
    seed = int(rows["easy"].idxmax())  # its mean over the other seed is the lowest of all
    assert rows["easy"].min() < rows["saf-20h"].mean()
    for name, text in contents(folder)["results"]:
        task = json.loads(text)["task"]
        if (task["scheduler"], task["workload"], task["seed"]) == ("easy", "generated", seed):
            changed(folder, "DELETE FROM results WHERE name = ?", name)
    return folder


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
    assert mark in "".join(line for line in done.stdout.splitlines() if "small" in line)
    printed = " ".join((done.stdout + done.stderr).split())
    assert "are means over other jobs than the other rows" in printed


def test_by_class_and_by_user_are_printed(groups: Path) -> None:
    asked = ["--metric", "mean_wait_s", "--paired", "easy"]
    lines = rows_of(groups, "--by", "class", *asked)
    assert [line["class"] for line in lines] == [
        name for name in ("short", "medium", "long") for _ in range(2)
    ]
    rows = read_table(groups, "class").set_index(["class", "scheduler"])["mean_wait_s"]
    for line in lines:
        mean = rows.loc[line["class"], line["scheduler"]].mean()
        assert float(line["mean_wait_s"]) == pytest.approx(mean)
    users = rows_of(groups, "--by", "user", *asked)
    assert {line["user"] for line in users} == {*read_table(groups, "user")["user"]}
    printed = succeed("table", groups, "--by", "class", *asked, "--format", "markdown")
    note = "classes of jobs by run time: short, below 10 min; medium, below 2 h; long, from 2 h on"
    assert note in printed.stderr
    assert re.search(r"\| 0\.\d\d? \|$|\| 1 \|$", printed.stdout, re.MULTILINE)  # p
    users_told = succeed("table", groups, "--by", "user", *asked, "--format", "markdown").stderr
    assert note not in users_told


# --- Figures --------------------------------------------------------------------------------------


def test_profiles_are_figures(
    groups: Path, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of classes, too, figures are over whole simulations."""
    pytest.importorskip("matplotlib")
    folder, asked = tmp_path / "figures", ("--metric", "mean_bsld", "--figures")
    result = succeed("table", reference, *asked, folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["profile-mean_bsld.pdf", "profile-mean_bsld.png", "table.tex"]
    assert f"wrote profile-mean_bsld, table into {folder}" in result.stderr
    assert "has files in it already" in run("table", reference, *asked, folder).stderr
    rows = read_table(groups)
    weeks = len(rows) // 2
    picture = tmp_path / "weeks.svg"
    succeed("table", groups, "--by", "class", *asked[:2], "--picture", picture)
    assert f"{weeks} slices" in picture.read_text()
    first = (rows["slice"] == rows["slice"].iloc[0]) & (rows["scheduler"] == "saf")
    rows.loc[first, "mean_bsld"] = np.nan
    monkeypatch.setattr("hpcgym.study.read_table", lambda _: rows)
    done = run("table", groups, *asked, tmp_path / "missing")
    assert f"figures of mean_bsld are of {weeks - 1} of {weeks} slices" in done.stderr


# --- Help ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "numbers"),
    [(0, (2, 3, 3, 0, 0, 0)), (1, (2, 3, 0, 1, 20, 0)), (2, (1, 3, 0, 0, 0, 3))],
)
def test_the_experiments_in_the_help_are_some(
    number: int, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    shown = succeed("run", "--help-all").stdout
    # from a heading such as "An experiment, weeks.toml:" to the next line that is not indented
    text = re.findall(r"^\S.*\.toml:\n((?:  .*\n|\n)+)", shown, re.MULTILINE)[number]
    write_speedups(generate_speedups(4), tmp_path / "aris.json")
    (tmp_path / "help.toml").write_text(text)
    experiment = load_experiment(tmp_path / "help.toml")
    lists = ("workloads", "schedulers", "seeds", "speedups", "shuffles", "limits")
    assert tuple(len(getattr(experiment, name)) for name in lists) == numbers


# --- Failures, mistakes and interruptions ---------------------------------------------------------


def test_failed_tasks_are_told_with_their_inputs(tmp_path: Path) -> None:
    (tmp_path / "small.csv").write_text(
        "submit_time,run_time,requested_time,requested_processors\n0,5,9,4\n"
    )
    (tmp_path / "failing.toml").write_text(FAILING)
    folder = tmp_path / "sweep"
    result = run("run", tmp_path / "failing.toml", "--executor", "serial", "--output", folder)
    assert result.exit_code == 1
    assert "failed: small.csv · whole · easy: WorkloadError: small" in result.stderr
    assert result.stderr.splitlines()[-1].startswith("hpcgym: 1 of 2 tasks failed: ")
    result = succeed("status", folder)
    assert result.stdout.splitlines()[0] == "failed: 2 tasks, 1 done, 1 failed, 0 left"
    assert "requested_processors must be from 1 to 2" in result.stdout
    (failure,) = json.loads(succeed("status", folder, "--format", "json").stdout)["failures"]
    assert failure["task"]["processors"] == 2
    table = succeed("table", folder, "--format", "csv")
    assert table.stdout.count("\n") == 2
    assert "1 of 2 tasks are done" in table.stderr
    cut(folder, 0)
    assert json.loads(succeed("table", folder, "--format", "json").stdout)["rows"] == []
    assert "0 of 2 tasks are done" in succeed("table", folder).stderr
    is_told("fails('table', folder, '--metric', 'mean_bsld')", locals() | globals(), "none is yet")


def fails(*arguments: object) -> None:
    """Raise what a command says that fails; it writes nothing."""
    result = run(*arguments)
    if result.exit_code == 1:
        raise HpcgymError(result.stderr.rstrip("\n"))


def _hear_ctrl_c() -> None:
    """Undo what a shell does to tests that it runs in the background: they do not hear Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("by", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_ctrl_c_and_sigterm_leave_a_sweep_that_goes_on(
    by: signal.Signals, code: int, tmp_path: Path
) -> None:
    seeds = ",".join(map(str, range(300)))
    (tmp_path / "long.toml").write_text(
        f'schedulers = ["easy", "saf"]\nseeds = [{seeds}]\n[[workloads]]\n'
        'workload = "lublin:jobs=5000,processors=64,load=0.9,seed={seed}"\n'
    )
    folder = tmp_path / "long.sweep"
    command = [
        sys.executable,
        "-m",
        "hpcgym",
        "sweep",
        "run",
        "long.toml",
        "--executor",
        "processes:1",
    ]
    process = subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=_hear_ctrl_c
    )
    end = time.monotonic() + 300
    while len(read_results(folder)) < 2:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(by)
    _, text = process.communicate(timeout=300)
    assert process.returncode == code
    assert "hpcgym sweep run long.sweep goes on" in text
    assert "Traceback" not in text
    state = status(folder)
    assert state.state == "interrupted"
    assert 1 < state.done < 600


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


test_mistakes = mistakes_of(globals(), fixtures=("groups", "reference"))
