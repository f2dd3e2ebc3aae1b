"""``--figures``: figures for papers, beside what a command prints."""

from pathlib import Path

import pytest
from commands import succeed, typed
from mistakes import mistakes_of

from hpcgym import simulate
from hpcgym.files.recorded import record_of_file
from hpcgym.report import save_figures
from hpcgym.report.figures import SUFFIXES

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

WORKLOAD = "lublin:jobs=120,processors=64,load=0.9"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "tables"),
    [
        (["simulate", WORKLOAD], ["table"]),
        (["compare", WORKLOAD, "--scheduler", "easy,saf"], ["table-1", "table-2"]),  # who pays
    ],
)
def test_figures_are_written_once_and_verify(
    command: list[str], tables: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = ["--figures", "paper"]
    said = succeed(*command, *options).stderr
    assert f"wrote slowdown, utilization, queue, {', '.join(tables)} into paper" in said
    assert len(list(Path("paper").iterdir())) == 6 + len(tables)
    names = command[-1].split(",") if "--scheduler" in command else ["easy"]
    save_figures({name: simulate(WORKLOAD, name) for name in names}, "python")
    for table in tables:
        assert Path(f"python/{table}.tex").read_text() == Path(f"paper/{table}.tex").read_text()
    checked = succeed("verify", "paper/queue.pdf", "paper/slowdown.png")
    assert checked.stdout == "paper/queue.pdf: equal\npaper/slowdown.png: equal\n"
    succeed(*command, *options, "--force")


@pytest.mark.slow
def test_figures_of_leaderboards(tmp_path: Path) -> None:
    folder = tmp_path / "paper"
    words = ["evaluate", "wfp3", "--workload", "lublin:jobs=1500,processors=64,load=1.2"]
    words += ["--jobs", "60", "--number", "6", "--budget", "0", "--figures", folder]
    succeed(*words)
    names = {path.name for path in folder.iterdir()}
    drawn = {f"{name}{ending}" for name in ("means", "profile-mean_bsld") for ending in SUFFIXES}
    assert names == drawn | {"table-1.tex", "table-2.tex"}
    assert record_of_file(folder / "profile-mean_bsld.png")["command"][0] == "evaluate"
    for table in ("table-1.tex", "table-2.tex"):
        assert r"\toprule" in (folder / table).read_text()


test_mistakes = mistakes_of(globals(), typed)
