"""Pages of commands whose results are no single schedule, and where other files are from."""

from __future__ import annotations

import sys
from html import unescape
from pathlib import Path

import pytest
from commands import as_json, run, succeed
from html_pages import Page

from hpcgym.errors import installing
from hpcgym.files.recorded import record_of_file
from hpcgym.schedule.provenance import schedule_digest
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload
from hpcgym.workload.fingerprint import workload_digest

TRACE = "lublin:jobs=400,processors=64,load=3,seed=3"


def test_a_page_of_a_leaderboard_has_its_rows(tmp_path: Path) -> None:
    page = tmp_path / "board.html"
    words = ["evaluate", "spf", "--workload", TRACE, "--jobs", "50", "--number", "5"]
    words += ["--budget", "9", "--html", page]
    facts = as_json(*words)
    board, *_ = Page(page.read_text()).tables
    names = [row["name"] for row in facts["policies"]]
    assert [row[0].split(" ")[0] for row in board[1:]] == names  # without what differs from it
    best = min(row["mean_bsld"] for row in facts["policies"])
    (marked,) = {row[1] for row in board[1:] if row[1].endswith(" ★")}
    assert float(marked.removesuffix(" ★").replace(",", "")) == pytest.approx(best, rel=1e-3)
    record = record_of_file(page)
    assert record["workloads"][0]["sha256"] == facts["provenance"]["workloads"][0]["sha256"]
    assert record["command"][0] == "evaluate"
    assert "is there already" in run(*words).output


@pytest.mark.parametrize(
    ("words", "n_tables"),
    [
        (["compare", "--scheduler", "fcfs,easy"], 6),
        (["simulate"], 6),
        (["explain"], 1),
    ],
    ids=lambda words: str(words[0]) if isinstance(words, list) else "",
)
def test_a_page_without_matplotlib_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], n_tables: int
) -> None:
    """It has all its tables, and the explorer if it has one, but no pictures."""
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    file = tmp_path / "page.html"
    done = succeed(*words, TRACE, "--html", file)
    lacking = f"pictures need matplotlib: {installing('report')}"
    assert done.stderr.endswith(f"wrote {file}\n{file}: {lacking}\n")
    page, text = Page(file.read_text()), unescape(file.read_text())
    assert text.count(lacking) == 1
    assert "<img" not in text
    assert len(page.tables) >= n_tables
    assert ('id="explorer"' in text) == (words[0] != "explain")


def test_a_page_marks_no_share_beyond_different_thresholds_as_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # which would draw for seconds
    for rules, different in (("easy,saf", 0), ("easy:threshold=1h,saf:threshold=2h", 1)):
        file = tmp_path / f"{different}.html"
        succeed("compare", TRACE, "--scheduler", rules, "--html", file)
        page = Page(file.read_text())
        assert "".join(page.text).count("the threshold of their own scheduler: no ★") == different
        rows = [row for table in page.tables for row in table if row and row[0] == "starved (%)"]
        (shares,) = {tuple(row[1:]) for row in rows}
        assert len({*shares}) == 1 + different
        assert not any("★" in share for share in shares)


@pytest.mark.slow
def test_a_page_of_a_sweep_has_means(tmp_path: Path) -> None:
    file, folder, page = tmp_path / "x.toml", tmp_path / "x.sweep", tmp_path / "x.html"
    file.write_text(
        'schedulers = ["easy", "saf"]\nseeds = [0, 1]\n[[workloads]]\n'
        'workload = "lublin:jobs=50,processors=32,seed={seed}"\nname = "<b>"\n'
    )
    succeed("sweep", "run", file, "--output", folder, "--executor", "serial")
    rows = as_json("sweep", "table", folder, "--html", page)["rows"]
    means, _ = Page(page.read_text()).tables
    assert [row[:3] for row in means[1:]] == [["<b>", "easy", "2"], ["<b>", "saf", "2"]]
    easy = [row["mean_bsld"] for row in rows if row["scheduler"] == "easy"]
    shown = means[1][means[0].index("mean BSLD")].removesuffix(" ★")
    assert float(shown.replace(",", "")) == pytest.approx(sum(easy) / 2, rel=1e-3)
    assert list(record_of_file(page)["files"]) == ["x.sweep: manifest"]


def test_what_is_generated_says_by_which_command(tmp_path: Path) -> None:
    jobs = load_workload("lublin:jobs=50,processors=32", "none")
    for name in ("a.swf", "a.swf.gz", "a.csv", "a.csv.gz", "a.parquet", "a.json", "a.json.gz"):
        done = succeed("generate", "lublin:jobs=50,processors=32", tmp_path / name)
        said = f"wrote 50 jobs for 32 processors to {tmp_path / name}\n"
        assert (done.stdout, done.stderr) == ("", said)
        record = record_of_file(tmp_path / name)
        assert record["command"][:2] == ["generate", "lublin:jobs=50,processors=32"]
        assert record["workloads"][0]["sha256"] == workload_digest(jobs), name
        again = load_workload(tmp_path / name, "none", processors=32)
        assert workload_digest(again) == workload_digest(jobs), name


@pytest.mark.parametrize("more", [["--job", "17"], ["--by", "user"]])
def test_explanations_say_of_which_schedule(more: list[str]) -> None:
    facts = as_json("explain", TRACE, *more)
    record = facts["provenance"]
    assert record["command"][0] == "explain"
    digest = schedule_digest(simulate(load_workload(TRACE), "easy"))
    assert [schedule["sha256"] for schedule in record["schedules"]] == [digest]
