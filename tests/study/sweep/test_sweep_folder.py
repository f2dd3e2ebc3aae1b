"""The folder of a sweep: what is gone on with, what is noticed, and what is left alone."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import chores
import pytest
from chores import numbers
from click.testing import CliRunner
from mistakes import mistakes_of
from sweep_files import changed, contents, cut, resealed

from hpcgym.cli import app
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.machine.speedups import generate_speedups, read_speedups
from hpcgym.study import (
    read_failures,
    read_results,
    read_table,
    resume,
    run_experiment,
    run_tasks,
    status,
)
from hpcgym.study.sweep.experiment import Experiment
from hpcgym.study.sweep.records import FILE, append, canonical, identity, locked, result_text
from hpcgym.study.sweep.run import (
    Manifest,
    Tasks,
    make_manifest,
    origin_of,
    read_manifest,
)
from hpcgym.study.sweep.simulations import simulate_task
from hpcgym.workload.io.files import sha256_of

ONE = 'schedulers = ["easy"]\n[[workloads]]\nworkload = "lublin:jobs=50,processors=16"\n'


def resumed(folder: Path) -> Any:
    return resume(folder, "serial")


def shown(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["sweep", *map(str, arguments)])


# --- The manifest ---------------------------------------------------------------------------------


def test_the_manifest_tells_nothing_of_the_host(
    tmp_path: Path, write_experiment: Callable[[Path], Path], reference: Path
) -> None:
    """Another folder, executor and chunk: the same bytes."""
    elsewhere = write_experiment(tmp_path / "there" / "deep")
    run_experiment(elsewhere, tmp_path / "sweep", "processes", workers=1, chunk=3)
    here, there = (dict(contents(folder)["about"]) for folder in (tmp_path / "sweep", reference))
    assert (here["manifest"], here["experiment"]) == (there["manifest"], there["experiment"])
    assert json.loads(here["experiment"]) == elsewhere.read_text()
    text, manifest = here["manifest"], read_manifest(reference)
    assert set(manifest["versions"]) == {"hpcgym", "python", "numpy"}
    assert manifest["seeds"] == [3, 4]
    assert set(manifest["inputs_sha256"]) == {"data/small.swf.gz"}
    assert manifest["tasks"] == 8
    assert not {"limits", "speedups", "shuffles", "by"} & {*manifest}
    for word in (str(tmp_path), str(Path.home()), "processes"):
        assert word not in text


def test_the_manifest_names_speedups_and_their_files(shared: Path) -> None:
    manifest, here = read_manifest(shared / "sweep"), shared / "here"
    heatmap = read_speedups(here / "pairs.json")
    first, second = manifest["speedups"]
    assert first == {**heatmap.describe(), "source": "pairs.json"}
    assert (first["unknown_pairs"], first["digest"]) == (1, heatmap.digest)
    assert second["source"] == "generated:codes=4,mean=1.2,seed=7"
    assert second["digest"] == generate_speedups(4, 1.2, seed=7).digest
    assert manifest["shuffles"] == [0, 1]
    codes, weeks = manifest["workloads"]
    assert (codes["cluster"], weeks["cluster"], weeks["codes"]) == ("small.toml", "16x2x4", 7)
    pairs, *others = (sha256_of(here / name) for name in ("pairs.json", "false.csv", "small.toml"))
    assert manifest["inputs_sha256"] == {
        "pairs.json": pairs,
        "codes:speedups=pairs.json,jobs=40,seed=1": pairs,
        "false.csv": others[0],
        "small.toml": others[1],
    }
    assert manifest["schedulers"]["strict"]["pair_estimate"] == "false.csv"


# --- Going on -------------------------------------------------------------------------------------


def test_what_is_left_is_done(half: Path, reference: Path) -> None:
    assert status(half).state == "interrupted"
    assert (status(half).tasks, status(half).done) == (8, 4)
    summary = resumed(half)
    assert (summary.new, summary.done) == (4, 8)
    assert status(half).state == "complete"
    assert read_table(half).equals(read_table(reference))
    assert resumed(half).new == 0


def test_another_version_of_numpy_is_told(half: Path) -> None:
    manifest = read_manifest(half)
    manifest["versions"] |= {"numpy": "1.0"}
    resealed(half, "manifest", manifest)
    with pytest.warns(HpcgymWarning, match="^numpy was 1.0, and is .*: last digits of results may"):
        assert resumed(half).done == 8


def test_a_sweep_may_be_moved_with_its_experiment(half: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "place"
    shutil.copytree(tmp_path / "here", new / "here")
    shutil.copytree(half, new / "sweep")
    shutil.rmtree(tmp_path / "here")
    assert resumed(new / "sweep").done == 8


@pytest.fixture
def half_shared(shared: Path, tmp_path: Path) -> Path:
    """A sweep of jobs that share nodes, of which a part is done, to be changed."""
    shutil.copytree(shared, tmp_path, dirs_exist_ok=True)
    cut(tmp_path / "sweep", 12)
    return tmp_path / "sweep"


def edited(sweep: Path, name: str) -> Path:
    """Change a file that the experiment of a sweep has read; return the sweep."""
    with (sweep.parent / "here" / name).open("ab") as file:
        file.write(b"\n")
    return sweep


def unchanged(function: Callable[[Path], Any], folder: Path) -> None:
    """Call what refuses a folder, and must leave it as it is."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    try:
        function(folder)
    finally:
        assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_file_that_changes_under_way_fails_its_tasks_only(half: Path, tmp_path: Path) -> None:
    """Workers read files themselves, perhaps on another machine."""
    cut(half, 0)
    trace = tmp_path / "here" / "data" / "small.swf.gz"
    trace.write_bytes(trace.read_bytes() + b"\0")
    manifest = read_manifest(half)
    digests = manifest["inputs_sha256"]
    function = partial(simulate_task, folder=str(tmp_path / "here"), digests=digests)
    summary = run_tasks(function, Tasks(manifest), half, "serial", retries=0)
    assert (summary.done, summary.failed) == (4, 4)
    assert "not the one that the sweep began with" in read_failures(half)[0]["error"]
    assert status(half).state == "failed"


def test_a_job_that_can_never_start_fails_alone(tmp_path: Path) -> None:
    path = tmp_path / "never.toml"
    path.write_text(
        'schedulers = ["easy"]\n[[limits]]\nname = "low"\ncap = "percent=40"\n[[limits]]\n'
        'name = "high"\ncap = "watts=9000"\n[[workloads]]\ncluster = "taurus"\n'
        'workload = "lublin:jobs=30,processors=192,seed=1,load=1.3"\n'
    )
    summary = run_experiment(path, tmp_path / "sweep", "serial")
    assert (summary.done, summary.failed) == (1, 1)
    printed = shown("status", tmp_path / "sweep").stdout
    assert re.search(r"failed: lublin\S+ · low · whole · easy: .*can never start under", printed)


def test_an_improvement_is_missing_without_its_first(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "sweep", tmp_path / "sweep")
    first = min(
        contents(shared / "sweep")["results"], key=lambda row: '"scheduler":"easy"' not in row[1]
    )
    changed(tmp_path / "sweep", "DELETE FROM results WHERE name = ?", first[0])
    assert read_table(tmp_path / "sweep")["makespan_improvement"].isna().sum() == 2


# --- Folders in use, and of others ----------------------------------------------------------------


def test_a_run_that_was_overtaken_leaves_the_other_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Making a manifest takes long: reading traces, or fetching them."""
    folder = tmp_path / "sweep"
    for name, jobs in (("slow", "jobs=60"), ("quick", "jobs=50")):
        (tmp_path / f"{name}.toml").write_text(ONE.replace("jobs=50", jobs))

    def overtaken(experiment: Experiment) -> Manifest:
        if experiment.path.stem == "slow":
            run_experiment(tmp_path / "quick.toml", folder, "serial")
        return make_manifest(experiment)

    monkeypatch.setattr("hpcgym.study.sweep.run.make_manifest", overtaken)
    with pytest.raises(HpcgymError, match="has a sweep already: hpcgym sweep run"):
        run_experiment(tmp_path / "slow.toml", folder, "serial")
    assert read_table(folder)["jobs"].tolist() == [50]
    assert status(folder).state == "complete"


def test_a_folder_is_locked_from_the_manifest_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def while_running(file: sqlite3.Connection, folder: Path) -> Path:  # before the tasks
        assert status(folder).state == "running"
        return origin_of(file, folder)

    monkeypatch.setattr("hpcgym.study.sweep.run.origin_of", while_running)
    (tmp_path / "one.toml").write_text(ONE)
    run_experiment(tmp_path / "one.toml", tmp_path / "sweep", "serial")
    resumed(tmp_path / "sweep")
    assert status(tmp_path / "sweep").state == "complete"


def test_an_experiment_may_lie_in_the_folder_of_its_sweep(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text(ONE)
    assert run_experiment(tmp_path / "experiment.toml", tmp_path, "serial").done == 1
    assert resumed(tmp_path).new == 0
    record = read_results(tmp_path)[0]
    assert record["id"] == identity(canonical(record["task"]))


# --- Damage ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file_of_four(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with three results and a failure."""
    folder = tmp_path_factory.mktemp("four")
    run_tasks(chores.fail_on_three, numbers(4), folder, "serial", retries=0)
    return (folder / FILE).read_bytes()


@pytest.mark.parametrize("mask", [1, 2, 4, 8, 16, 32, 64, 128])
@pytest.mark.filterwarnings("ignore:.*has damaged")
def test_no_flipped_bit_goes_unnoticed(mask: int, file_of_four: bytes, tmp_path: Path) -> None:
    """What is read is what was written, or is left out; what goes on ends with all, or says why."""
    right = {x: {"square": x**2, "third": x / 3} for x in (0, 1, 2)}
    places = [at for at, byte in enumerate(file_of_four) if byte]  # also headers, and their numbers
    ends = []
    for place in places[mask.bit_length() :: 61]:
        content = bytearray(file_of_four)
        content[place] ^= mask
        (tmp_path / FILE).write_bytes(content)
        try:
            for record in read_results(tmp_path):
                assert record["result"] == right[record["task"]["x"]], place
            for record in read_failures(tmp_path):
                assert record["task"]["x"] == 3 or record["task"]["x"] in right, place
            summary = run_tasks(chores.fail_on_three, numbers(4), tmp_path, "serial", retries=0)
            assert (summary.done, summary.failed) == (3, 1), place
            results = {row["task"]["x"]: row["result"] for row in read_results(tmp_path)}
            assert results == right, place
            ends.append(summary.damaged)
        except HpcgymError as error:
            assert str(error).startswith(f"{tmp_path / FILE} "), place  # noqa: PT017
            ends.append(-1)
    assert {-1, 1} <= {*ends}


@pytest.mark.parametrize("change", ["text = replace(text, '9.0', '8.0')", "name = 'a'"])
def test_a_damaged_row_is_counted_and_done_again(change: str, tmp_path: Path) -> None:
    """Although it is still JSON, with all that a result or a failure has."""
    tasks = [{"x": 27}, {"x": 4}, {"x": 3}]
    run_tasks(chores.fail_on_three, tasks, tmp_path, "serial", retries=0)
    right = contents(tmp_path)
    changed(tmp_path, f"UPDATE results SET {change} WHERE rowid = 1")
    changed(tmp_path, "UPDATE failures SET text = replace(text, 'too', 'two')")
    json.loads(contents(tmp_path)["failures"][0][1])
    with pytest.warns(HpcgymWarning, match="has damaged results: 1; a run that goes on"):
        assert [record["task"] for record in read_results(tmp_path)] == [{"x": 4}]
    with pytest.warns(HpcgymWarning, match="has damaged failures: 1"):
        assert read_failures(tmp_path) == []
    for new, damaged in ((1, 2), (0, 0)):
        summary = run_tasks(chores.fail_on_three, tasks, tmp_path, "serial", retries=0)
        assert (summary.done, summary.new, summary.damaged) == (2, new, damaged)
    assert contents(tmp_path)["results"] == right["results"]
    assert [failure["error"] for failure in read_failures(tmp_path)] == [
        "ValueError: three is too much"
    ]


def test_damage_is_told_wherever_a_sweep_is_looked_at(whole: Path, reference: Path) -> None:
    changed(whole, "UPDATE results SET text = replace(text, '.', '.1') WHERE rowid = 3")
    state = status(whole)
    assert (state.state, state.done, state.damaged) == ("interrupted", 7, 1)
    assert "damaged results: 1; hpcgym sweep run" in shown("status", whole).stdout
    table = shown("table", whole, "--format", "csv")
    assert (table.exit_code, table.stdout.count("\n")) == (0, 8)
    assert "has damaged results: 1" in table.stderr
    printed = shown("run", whole, "--executor", "serial").stderr
    assert "had damaged results: 1; their tasks were done again" in printed
    assert status(whole) == status(reference)
    assert read_table(whole).equals(read_table(reference))


def test_results_of_other_tasks_are_not_counted(half: Path) -> None:
    """As where the rows of two sweeps have been put together."""
    with locked(half) as file:
        append(file, results=[("f" * 16, result_text('{"a":1}', {"jobs": 1}))])
    state = status(half)
    assert (state.tasks, state.done, state.failed, state.state) == (8, 4, 0, "interrupted")
    assert len(read_table(half)) == 4
    assert resumed(half).new == 4
    assert status(half).state == "complete"


test_mistakes = mistakes_of(globals(), fixtures=("experiment", "half", "half_shared", "whole"))
