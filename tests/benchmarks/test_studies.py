"""What the published studies share."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from mistakes import mistakes_of

from hpcgym import Workload, _engine, load_workload
from hpcgym.agents.lookahead import Lookahead
from hpcgym.agents.xnes import Xnes
from hpcgym.baselines.cp.dispatcher import solve
from hpcgym.benchmarks.coscheduling import runs as coscheduling
from hpcgym.benchmarks.coscheduling import speed
from hpcgym.benchmarks.cp import runs
from hpcgym.benchmarks.energy import budget, powercap, shares
from hpcgym.benchmarks.frontier import runs as frontier
from hpcgym.benchmarks.mixed_policies import study as mixed_policies
from hpcgym.benchmarks.prediction import runs as prediction
from hpcgym.benchmarks.studies import harness, store, tables
from hpcgym.benchmarks.studies.store import Store
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.files.tables import csv_frame
from hpcgym.machine import find_cluster
from hpcgym.report.canvas import new_figure
from hpcgym.simulation.batch import BatchSimulator
from hpcgym.simulation.run import simulate
from hpcgym.study import read_results
from hpcgym.workload import generate_code_jobs

HEAD = "# A study, computed anew\n\nBy somebody.\n"


def test_all_studies_have_the_same_option_of_executors() -> None:
    group: Any = app
    studies = dict(group.get_command(None, "reproduce").commands)
    del studies["items"], studies["sample"]  # of all documents
    options_of = {
        name: {
            option.name: (option.default, option.help, option.metavar)
            for option in study.params
            if option.name == "executor"
        }
        for name, study in studies.items()
    }
    assert len(options_of) == 9
    assert options_of["prediction"]["executor"][0] == "processes"
    assert all(options == options_of["prediction"] for options in options_of.values()), options_of


def test_a_study_takes_workers_with_its_executor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = []

    def run(sources: Any, folder: harness.Folder, **options: Any) -> Any:
        given.append(folder)
        folder.path.mkdir()
        return folder.path / "report.md", []

    monkeypatch.setattr("hpcgym.benchmarks.mixed_policies.run.reproduce", run)
    arguments = ["mixed-policies", "--workload", "x.swf", "--output", str(tmp_path / "x")]
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--executor", "processes:3"])
    assert result.exit_code == 0, result.stderr
    assert [(folder.executor, folder.workers) for folder in given] == [("processes", 3)]
    record = json.loads((tmp_path / "x" / "report.md.provenance.json").read_text())
    assert record["command"][:2] == ["reproduce", "mixed-policies"]


def test_tables_are_for_people() -> None:
    table = pd.DataFrame(
        {
            "what": ["a|b", None],
            "configurations": [1200, 3],
            "ours": [1234.567, np.nan],
            "ours / paper": [1.23456, 1.0],
            "gain %": [12.34, -0.06],
        }
    )
    assert table_text(table).splitlines() == [
        "| what | configurations | ours | ours / paper | gain % |",
        "|---|---:|---:|---:|---:|",
        "| a\\|b | 1,200 | 1,234.57 | 1.235 | +12.3 |",
        "|  | 3 |  | 1.000 | -0.1 |",
    ]


def test_files_have_all_digits_and_safe_names(tmp_path: Path) -> None:
    harness.write_csv(
        pd.DataFrame({"x": [1 / 3]}), tmp_path / harness.folder_name("a, b/c") / "t.csv"
    )
    assert (tmp_path / "a__b_c" / "t.csv").read_text() == f"x\n{1 / 3!r}\n"


def test_a_report_stays_until_another_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "study" / "report.md"
    harness.check_report(path, HEAD)
    assert path.read_text() == f"{HEAD.splitlines()[0]}\n\nNot finished yet.\n"
    harness.write_text(HEAD, path)
    harness.check_report(path, HEAD)

    def interrupted(file: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        harness.write_text("another", path)
    assert [(file, file.read_text()) for file in path.parent.iterdir()] == [(path, HEAD)]


def test_each_report_begins_as_the_study_says() -> None:
    heads = [
        import_module(f"hpcgym.benchmarks.{name}").HEAD.splitlines()[0]
        for name in (
            *("coscheduling.run", "cp.run", "mixed_policies.run", "prediction.run"),
            *("energy.budget_run", "energy.powercap_run", "energy.shares_run"),
        )
    ]
    assert len({*heads}) == len(heads)
    assert all(head.startswith("# ") and "{" not in head for head in heads)


#: What studies have done by workers, and what others results follow from.
WORK: list[Any] = [
    *(simulate, BatchSimulator, Xnes, Lookahead, solve, generate_code_jobs),
    *(budget.measure, coscheduling.measure, frontier.simulate_rule),
    *(runs.compare_one, mixed_policies.cover_one),
    *(powercap.measure, prediction.predictions_of, prediction.simulate_one, shares.measure),
    *(runs.simulate_one, speed.measure),
]


def test_the_hash_of_code_is_of_all_that_results_follow_from() -> None:
    hashed = {file.resolve() for file in store.sources()}
    assert "eurora.toml" in {file.name for file in hashed}
    for function in WORK:
        assert Path(inspect.getfile(function)).resolve() in hashed, function
    for shown in (harness.Folder, table_text, new_figure, app.command):
        assert Path(inspect.getfile(shown)).resolve() not in hashed, shown
    # of studies nothing that computes imports what is not hashed, but for what writes and loads
    names = "|".join(store._SHOWN_BY)
    for file in hashed:
        if "benchmarks" in file.parts:
            imported = re.findall(
                rf"^from hpcgym.benchmarks\S*\b(\w*(?:{names})) ", file.read_text(), re.M
            )
            assert {*imported} <= {"harness", "tables", "items"}, file


def test_the_hash_of_code_changes_with_sources_engine_and_solver(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "one.py"
    monkeypatch.setattr(store, "sources", lambda: [file])
    hashes = []
    for text, engine, solver in (
        ("1", "a", "x"),
        ("2", "a", "x"),
        ("1", "b", "x"),
        ("1", "a", "y"),
    ):
        file.write_text(text)
        monkeypatch.setattr(_engine, "SOURCES", engine)
        monkeypatch.setattr(store, "_solver", lambda solver=solver: solver)
        hashes.append(store.code.__wrapped__())
    assert len({*hashes}) == len(hashes) == 4


def test_results_do_not_outlive_an_edit_of_the_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept, done = Store(tmp_path / "steps"), []
    for edited, number in (("once", 1), ("twice", 2), ("once", 2)):
        monkeypatch.setattr(harness, "code", lambda edited=edited: edited)
        monkeypatch.setattr(store, "code", lambda edited=edited: edited)
        harness.Folder(tmp_path, "serial").run(half, [{"x": 2}], "halves")
        kept.step("step", {}, lambda: done.append(1) or {"x": 1})
        assert (len(read_results(tmp_path / "tasks")), len(done)) == (number, number)


def half(task: dict[str, Any]) -> dict[str, Any]:
    if task["x"] % 2:
        raise ValueError("odd")
    return {"half": task["x"] // 2}


def test_a_task_that_fails_is_an_error_and_the_others_are_kept(tmp_path: Path) -> None:
    progress: list[tuple[str, int, int]] = []

    def note(what: str, done: int, total: int) -> None:
        progress.append((what, done, total))

    tasks = [{"x": x} for x in (2, 4, 5)]
    with pytest.raises(HpcgymError, match="1 of 3 halves failed"):
        harness.Folder(tmp_path, "serial", None, note).run(half, tasks, "halves", what="halving")
    assert progress[0] == ("halving", 0, 3)
    progress.clear()
    outcomes = harness.Folder(tmp_path, "serial", None, note).run(half, tasks[:2], "halves")
    assert outcomes == [{"half": 1}, {"half": 2}]
    assert progress == []  # nothing is left to do


def reproduce(folder: Path, study: str, **given: Any) -> None:
    name = study if "." in study else f"{study}.run"
    run = import_module(f"hpcgym.benchmarks.{name}").reproduce
    run(**{"folder": harness.Folder(folder, "serial"), **given})


# --- Traces as studies have them ------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of traces: Curie with a job larger than what is studied, Blue Horizon's edition."""
    job = "{} 0 0 9 1 -1 -1 {} 9 -1 1 1 1 -1 1 1 -1 -1\n"
    curie = "; MaxProcs: 93312\n" + job.format(1, 80640) + job.format(2, 80641)
    (tmp_path / "CEA-Curie-2011-2.1-cln.swf").write_text(curie)
    blue = "; MaxProcs: 1152\n" + job.format(1, 8)
    (tmp_path / "SDSC-BLUE-2000-4.1-cln.swf").write_text(blue)
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    "load",
    [
        harness.load_jobs,
        lambda source: frontier.load_log(source, "glesser"),
        lambda source: prediction.load_trace(source, None),
        lambda source: shares.load_trace(source, shares.READINGS[shares.TEXT], None),
        lambda source: powercap.load(source, find_cluster("curie")),
    ],
)
def test_studies_simulate_curie_with_as_many_processors_as_the_thesis(
    logs: Path, load: Callable[[str], Workload]
) -> None:
    for source in ("CEA-Curie", "cea-curie", str(logs / "CEA-Curie-2011-2.1-cln.swf")):
        jobs = load(source)
        assert jobs.processors == 80_640
        assert jobs.requested_processors.tolist() == [80_640]
    assert load_workload("CEA-Curie").processors == 93_312  # what is not a study takes the header's


def test_the_edition_of_a_study_has_the_name_of_its_published_values(logs: Path) -> None:
    assert load_workload("SDSC-BLUE").name == "SDSC-BLUE-2000-4.1-cln"
    assert harness.load_jobs("SDSC-BLUE").name == "SDSC-BLUE"
    assert harness.load_jobs(str(logs / "SDSC-BLUE-2000-4.1-cln.swf")).name == "SDSC-BLUE"
    (logs / "SDSC-BLUE-2000-3.swf").write_text((logs / "SDSC-BLUE-2000-4.1-cln.swf").read_text())
    assert harness.load_jobs(str(logs / "SDSC-BLUE-2000-3.swf")).name == "SDSC-BLUE-2000-3"


# --- What all studies are published by ------------------------------------------------------------


def test_what_is_published_has_rows_and_what_was_there_before_is_gone(tmp_path: Path) -> None:
    folder = harness.Folder(tmp_path, "serial")
    for name in ("a/table-old.csv", "a/table-mine.csv"):
        harness.write_text("of before", tmp_path / name)
    made = {"a/x": pd.DataFrame({"ours": [1.5], "published": [None]}), "7.1": pd.DataFrame()}
    texts = {"a/x": ("One", "said"), "7.1": ("Two", ""), "a/old": ("Three", "")}
    path, tables_written = folder.publish(HEAD, made, texts, {"Drawn": Path("b.png")}, "few jobs")
    assert list(tables_written) == ["a/x"]
    kept = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.csv")}
    assert kept == {"a/table-x.csv", "a/table-mine.csv"}
    assert path.read_text() == (
        f"{HEAD}\n**A quick cut: few jobs. Not to be compared.**\n\n"
        "## One\n\nsaid\n\n| ours |\n|---:|\n| 1.50 |\n\n## Drawn\n\n![Drawn](b.png)\n"
    )
    assert folder.file_of("7.1") == tmp_path / "table-7.1.csv"


def test_what_was_published_of_other_traces_is_gone(tmp_path: Path) -> None:
    folder, table = harness.Folder(tmp_path / "study"), pd.DataFrame({"ours": [1.5]})
    harness.write_text("mine", tmp_path / "mine.csv")
    for trace in ("a", "b"):
        texts = {f"{trace}/x": ("One", "")}
        picture = folder.picture(new_figure(1, 1), f"{trace}/y.png")
        folder.publish(HEAD, {f"{trace}/x": table}, texts, {"Drawn": picture}, "")
    kept = {file.relative_to(folder.path).as_posix() for file in folder.path.rglob("*.*")}
    names = {f"b/{name}" for name in ("table-x.csv", "table-x.tex", "y.png", "y.pdf")}
    assert kept == names | {"report.md", "files.txt"}
    harness.write_text("../mine.csv\nb/../../mine.csv\n", folder.path / "files.txt")
    folder.publish(HEAD, {}, {}, {}, "")
    assert (tmp_path / "mine.csv").is_file()


def test_tasks_know_their_jobs_by_name_and_hash() -> None:
    jobs = harness.load_sources(["lublin:jobs=90"], load_workload)["lublin:jobs=90"]
    task = harness.task_of("x", jobs, week=2)
    assert (task["source"], task["trace"], task["week"]) == ("x", jobs.name, 2)
    assert task["jobs_sha256"] != harness.task_of("x", jobs.take(slice(0, 80)))["jobs_sha256"]


# --- Sentences of texts ---------------------------------------------------------------------------

ORDERS = pd.DataFrame({"trace": ["a", "b", "c"], "ours": [1.0, 3.0, np.nan], "theirs": [2.0] * 3})


def row_of_sentence(so: str, where: str = "", share: str = "") -> dict[str, str]:
    """Return a row of a file of sentences."""
    return {
        "of": "traces",
        "sentence": "{trace}: {ours:g}",
        "where": where,
        "share": share,
        "so": so,
    }


def test_a_sentence_without_a_value_is_not_known() -> None:
    frames = {"traces": ORDERS, "none": ORDERS.iloc[:0]}
    (half,) = tables.checked([row_of_sentence("ours < theirs", share="0.5")], frames)
    assert half == ("in 1 of 2: ours 2, theirs 2", True)
    assert tables.checked([row_of_sentence("ours < theirs", "trace == 'c'")], frames) == [
        tables.NOT_KNOWN
    ]
    assert tables.checked([row_of_sentence("ours < theirs", "trace == 'd'")], frames) == [
        tables.NOT_SIMULATED
    ]
    assert tables.checked([row_of_sentence("ours < 1") | {"of": "none"}], frames) == [
        tables.NOT_SIMULATED
    ]
    table = tables.statements_table([row_of_sentence("ours < 1")], {"x": [tables.NOT_KNOWN]})
    assert table[["ours, x", "so, x"]].to_numpy().tolist() == [["not known", ""]]


def test_sentences_are_filled_row_by_row_or_with_a_share() -> None:
    said = [row_of_sentence("ours < theirs"), row_of_sentence("ours < 4", "trace == 'b'")]
    assert tables.filled(said[:1], {"traces": ORDERS}) == {"a: 1": True, "b: 3": False}
    assert tables.filled(said[1:], {"traces": ORDERS}) == {"b: 3": True}
    most = [
        row_of_sentence("ours < theirs", share=share) | {"sentence": "{share:.0%}"}
        for share in ("0.5", "0.6")
    ]
    assert [tables.filled([sentence], {"traces": ORDERS}) for sentence in most] == [
        {"50%": True},
        {"50%": False},
    ]
    assert tables.filled(said, {"traces": ORDERS.iloc[:0]}) == {}


def test_the_sentences_of_all_studies_are_whole() -> None:
    files = sorted(Path(harness.__file__).parents[1].glob("*/sentences.csv"))
    assert len(files) >= 4
    for file in files:
        for row in csv_frame(file, keep_default_na=False, dtype=str).to_dict("records"):
            assert all(row[name] for name in ("item", "sentence", "of")), row
            assert float(row["share"] or 1) <= 1, row
            compile(row["so"], str(file), "eval")


def test_a_table_without_columns_has_a_text() -> None:
    assert "tabular" in tables.latex_text(pd.DataFrame())
    assert tables.table_text(pd.DataFrame({"x": [1]})) == "| x |\n|---:|\n| 1 |\n"


test_mistakes = mistakes_of(globals())
