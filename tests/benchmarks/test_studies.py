"""What the published studies share."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

from hpcgym import Workload, _engine, load_workload
from hpcgym.benchmarks.energy import powercap, shares
from hpcgym.benchmarks.frontier import runs as frontier
from hpcgym.benchmarks.prediction import runs as prediction
from hpcgym.benchmarks.studies import harness, store
from hpcgym.benchmarks.studies.tables import table_text
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.machine import find_cluster
from hpcgym.report.canvas import new_figure

HEAD = "# A study, computed anew\n\nBy somebody.\n"


def test_all_studies_have_the_same_options_of_executors() -> None:
    group: Any = typer.main.get_command(app)
    studies = dict(group.commands["reproduce"].commands)
    del studies["items"]  # it simulates nothing
    found = {
        name: {
            option.name: (option.default, option.help, option.metavar)
            for option in study.params
            if option.name in ("executor", "workers")
        }
        for name, study in studies.items()
    }
    assert len(found) == 8
    assert set(found["prediction"]) == {"executor", "workers"}
    assert found["prediction"]["executor"][0] == "processes"
    assert all(options == found["prediction"] for options in found.values()), found


def test_a_study_takes_workers_without_an_executor(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are those of processes; mixed-policies once refused them."""
    given = []

    def run(sources: Any, folder: harness.Folder, **options: Any) -> Any:
        given.append(folder)
        folder.path.mkdir()
        return folder.path / "report.md", []

    monkeypatch.setattr("hpcgym.benchmarks.mixed_policies.run.reproduce", run)
    arguments = ["mixed-policies", "--workload", "x.swf", "--output", str(tmp_path / "x")]
    result = CliRunner().invoke(app, ["reproduce", *arguments, "--workers", "3"])
    assert result.exit_code == 0, result.stderr
    assert [(one.executor, one.workers) for one in given] == [("processes", 3)]
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


def test_what_cannot_be_written_is_said() -> None:
    for write in (
        lambda path: harness.write_csv(pd.DataFrame({"x": [1]}), path),
        lambda path: harness.save_picture(new_figure(1, 1), path),
        lambda path: harness.check_report(path, HEAD),
    ):
        with pytest.raises(HpcgymError, match="/dev/null/x"):
            write(Path("/dev/null/x/y"))


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
    assert [(one, one.read_text()) for one in path.parent.iterdir()] == [(path, HEAD)]


def test_a_report_of_somebody_else_is_no_place_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "report.md"
    for text in (
        "\n# My own report\n",
        "   \n",
        "# My thesis\n",
        "my thesis",
        "# Others, computed anew\n",
    ):
        path.write_text(text)
        with pytest.raises(HpcgymError, match="is no report of this study"):
            harness.check_report(path, HEAD)
        assert path.read_text() == text
    path.write_text("")
    with pytest.raises(HpcgymError, match="is no report of this study"):
        harness.check_report(path, HEAD)
    (tmp_path / "tasks").mkdir()  # as earlier versions left it when they were interrupted
    harness.check_report(path, HEAD)


def test_a_folder_of_the_user_is_no_place_for_a_study(tmp_path: Path) -> None:
    """Tables there would be replaced, and the workload perhaps that is read."""
    for name in ("table-users.csv", "split-numbers"):
        folder = tmp_path / f"of {name}"
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(HpcgymError, match="has files already, and no report of this study"):
            harness.check_report(folder / "report.md", HEAD)
        assert [each.read_text() for each in folder.iterdir()] == ["mine"]


def test_each_report_begins_as_the_study_says() -> None:
    heads = [
        import_module(f"hpcgym.benchmarks.{name}").HEAD.splitlines()[0]
        for name in (
            *("coscheduling.tables", "cp.run", "mixed_policies.run", "prediction.run"),
            *("energy.budget_run", "energy.powercap_run", "energy.shares_run"),
        )
    ]
    assert len({*heads}) == len(heads)
    assert all(head.startswith("# ") and "{" not in head for head in heads)


#: What methods of results that no simulation calls import.
FOR_USERS = ("hpcgym.explanation", "hpcgym.explore")
#: What nothing follows from but what is asked of it by name.
BY_NAME = ("hpcgym.reference", "hpcgym.simulation.by_reference")


def imported_by(module: str) -> set[str]:
    """Return the modules of the library that a module needs when it runs, itself among them."""
    found, to_do = set[str](), [module]
    while to_do:
        name = to_do.pop()
        if name in found or (spec := find_spec(name)) is None or spec.origin is None:
            continue
        if name.startswith((*FOR_USERS, *BY_NAME)):
            continue
        found.add(name)
        if not spec.origin.endswith(".py"):  # the native engine imports nothing
            continue
        for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hpcgym"):
                of, names = str(node.module), [one.name for one in node.names]
                modules = [f"{of}.{name}" for name in names if is_module(of, name)]
                # a package of which modules alone are taken has nothing that is run
                to_do += modules if len(modules) == len(names) else [of, *modules]
    return found


def origin_of(module: str) -> Path:
    """Return the file of a module."""
    found = find_spec(module)
    assert found is not None
    return Path(str(found.origin)).resolve()


def is_module(package: str, name: str) -> bool:
    try:
        return find_spec(f"{package}.{name}") is not None
    except ModuleNotFoundError:
        return False


#: What ``simulate`` needs, but schedules do not follow from: messages,
#: what is written, and how workloads are read, whose jobs are hashed themselves. Dispatchers are
#: hashed where they are run.
BESIDE = {
    *("hpcgym.baselines.dispatchers", "hpcgym.errors", "hpcgym.version", "hpcgym.files.writing"),
    # packages, whose modules are named where they are taken
    *("hpcgym.files", "hpcgym.scheduler", "hpcgym.scheduler.estimates", "hpcgym.simulation"),
    *("hpcgym.scheduler.dispatchers", "hpcgym.scheduler.policies", "hpcgym.machine.speedups"),
    *(f"hpcgym.files.{name}" for name in ("reading", "tables")),
    *(
        f"hpcgym.workload.io.{name}"
        for name in ("files", "records", "schedule_header", "swf", "swf_header", "swf_lines")
    ),
    *("hpcgym.workload.extracts", "hpcgym.workload.fingerprint"),
    *("hpcgym.schedule.provenance", "hpcgym.files.recorded"),
    "hpcgym._engine",  # which says what its sources were, see below
}


def test_the_hash_of_code_covers_what_simulations_follow_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: set[Path] = set()
    usual = Path.read_bytes

    def noting(path: Path) -> bytes:
        read.add(path.resolve())
        return usual(path)

    monkeypatch.setattr(Path, "read_bytes", noting)
    store._hash_of_one.cache_clear()
    store.hash_of_modules.cache_clear()
    store.code.__wrapped__()
    wanted = imported_by("hpcgym.simulation.run") - BESIDE
    assert len(wanted) > 20
    missing = [name for name in sorted(wanted) if origin_of(name) not in read]
    assert missing == []


def test_the_hash_of_code_covers_the_sources_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.hash_of_modules("hpcgym._engine")
    monkeypatch.setattr(_engine, "SOURCES", "00" * 32)
    store._hash_of_one.cache_clear()
    store.hash_of_modules.cache_clear()
    assert store.hash_of_modules("hpcgym._engine") != before
    store._hash_of_one.cache_clear()
    store.hash_of_modules.cache_clear()


def half(task: dict[str, Any]) -> dict[str, Any]:
    if task["x"] % 2:
        raise ValueError("odd")
    return {"half": task["x"] // 2}


def test_a_task_that_fails_is_an_error_and_the_others_are_kept(tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []

    def note(what: str, done: int, total: int) -> None:
        told.append((what, done, total))

    tasks = [{"x": x} for x in (2, 4, 5)]
    with pytest.raises(HpcgymError, match="1 of 3 halves failed"):
        harness.Folder(tmp_path, "serial", None, note).run(half, tasks, "halves", what="halving")
    assert told[0] == ("halving", 0, 3)
    told.clear()
    found = harness.Folder(tmp_path, "serial", None, note).run(half, tasks[:2], "halves")
    assert found == [{"half": 1}, {"half": 2}]
    assert told == []  # nothing is left to do


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
        lambda source: powercap.load(source, "as requested", find_cluster("curie")),
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
