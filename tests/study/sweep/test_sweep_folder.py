"""The folder of a sweep: what is gone on with, what is noticed, and what is left alone."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import chores
import pytest
from chores import numbers
from conftest import cut
from typer.testing import CliRunner

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
from hpcgym.study.sweep.records import canonical, identity, read_records, result_line
from hpcgym.study.sweep.run import (
    Manifest,
    Tasks,
    as_text,
    make_manifest,
    origin_of,
    read_manifest,
    warnings_of,
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
    text = (tmp_path / "sweep" / "manifest.json").read_text()
    assert text == (reference / "manifest.json").read_text()
    manifest = json.loads(text)
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


def test_a_sweep_may_be_moved_with_its_experiment(half: Path, tmp_path: Path) -> None:
    new = tmp_path / "new" / "place"
    shutil.copytree(tmp_path / "here", new / "here")
    shutil.copytree(half, new / "sweep")
    shutil.rmtree(tmp_path / "here")
    assert resumed(new / "sweep").done == 8
    with pytest.raises(HpcgymError, match=r"small\.swf\.gz: no such file"):
        resumed(half)


def test_what_has_changed_is_named(half: Path, tmp_path: Path) -> None:
    trace = tmp_path / "here" / "data" / "small.swf.gz"
    trace.write_bytes(trace.read_bytes() + b"\0")
    with (half / "experiment.toml").open("a") as file:
        file.write("\n# later\n")
    manifest = read_manifest(half)
    manifest["versions"] |= {"hpcgym": "0.0.9", "numpy": "1.0"}
    (half / "manifest.json").write_text(as_text(manifest))
    with pytest.raises(HpcgymError) as caught:
        resumed(half)
    for words in (
        f"{half} cannot be resumed",
        "it began with hpcgym 0.0.9",
        "the experiment has changed",
        "the file of data/small.swf.gz has changed",
    ):
        assert words in str(caught.value)
    (told,) = warnings_of(half)
    assert told.startswith("numpy was 1.0 and is ")


@pytest.mark.parametrize("name", ["pairs.json", "false.csv", "small.toml"])
def test_a_changed_file_is_refused(shared: Path, name: str, tmp_path: Path) -> None:
    shutil.copytree(shared, tmp_path, dirs_exist_ok=True)
    cut(tmp_path / "sweep", 12)
    with (tmp_path / "here" / name).open("a") as file:
        file.write("\n")
    with pytest.raises(HpcgymError, match=f"the file of {re.escape(name)} has changed"):
        resumed(tmp_path / "sweep")
    (tmp_path / "here" / name).unlink()
    with pytest.raises(HpcgymError, match=f"{re.escape(name)}: no such file"):
        resumed(tmp_path / "sweep")


def test_a_file_that_changes_under_way_fails_its_tasks_only(half: Path, tmp_path: Path) -> None:
    """Workers read files themselves, perhaps on another machine."""
    (half / "results.jsonl").unlink()
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
    told = shown("status", tmp_path / "sweep").stdout
    assert re.search(r"failed: lublin\S+ · low · whole · easy: .*can never start under", told)


def test_an_improvement_is_missing_without_its_first(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared / "sweep", tmp_path / "sweep")
    results = tmp_path / "sweep" / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    first = next(line for line in lines if '"scheduler":"easy"' in line)
    results.write_text("".join(line for line in lines if line != first))
    assert read_table(tmp_path / "sweep")["makespan_improvement"].isna().sum() == 2


# --- Folders in use, and of others ----------------------------------------------------------------


def test_a_folder_in_use_is_left_alone(half: Path, experiment: Path, tmp_path: Path) -> None:
    before = (half / "results.jsonl").read_bytes()
    with pytest.raises(HpcgymError, match="has a sweep already: hpcgym sweep resume"):
        run_experiment(experiment, half, "serial")
    assert (half / "results.jsonl").read_bytes() == before
    (tmp_path / "file").touch()
    for place in ("here", "file"):
        with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
            run_experiment(experiment, tmp_path / place, "serial")
    (tmp_path / "empty").mkdir()
    assert run_experiment(experiment, tmp_path / "empty", "serial").done == 8


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
    with pytest.raises(HpcgymError, match="has a sweep already: hpcgym sweep resume"):
        run_experiment(tmp_path / "slow.toml", folder, "serial")
    assert read_table(folder)["jobs"].tolist() == [50]
    assert status(folder).state == "complete"
    assert (folder / "experiment.toml").read_text() == (tmp_path / "quick.toml").read_text()


def test_a_folder_is_locked_from_the_manifest_to_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(folder: Path) -> Path:  # between the manifest and the tasks
        assert status(folder).state == "running"
        return origin_of(folder)

    monkeypatch.setattr("hpcgym.study.sweep.run.origin_of", found)
    (tmp_path / "one.toml").write_text(ONE)
    run_experiment(tmp_path / "one.toml", tmp_path / "sweep", "serial")
    resumed(tmp_path / "sweep")
    assert status(tmp_path / "sweep").state == "complete"


@pytest.mark.parametrize("text", [None, "{", "[]", "{}"])
def test_a_folder_that_is_no_sweep_is_named(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    for function in (status, read_table, resumed):
        with pytest.raises(HpcgymError, match="manifest"):
            function(tmp_path)


@pytest.mark.parametrize("left", [(), ("experiment.toml",), ("manifest.json.4711.part",)])
def test_a_sweep_that_never_began_is_not_resumed_but_run(
    left: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    (tmp_path / "one.toml").write_text(ONE)
    for name in ("lock", *left):
        (folder / name).touch()
    for function in (status, read_table, resumed):
        with pytest.raises(HpcgymError, match=f"hpcgym sweep run .* --output {folder}"):
            function(folder)
    (folder / "thesis.tex.4711.part").touch()  # no folder that run would take
    with pytest.raises(HpcgymError, match="is no sweep"):
        status(folder)
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(tmp_path / "one.toml", folder, "serial")
    (folder / "thesis.tex.4711.part").unlink()
    assert run_experiment(tmp_path / "one.toml", folder, "serial").done == 1


def test_an_experiment_may_lie_in_the_folder_of_its_sweep(tmp_path: Path) -> None:
    (tmp_path / "experiment.toml").write_text(ONE)
    assert run_experiment(tmp_path / "experiment.toml", tmp_path, "serial").done == 1
    assert (tmp_path / "experiment.toml").read_text() == ONE
    assert resumed(tmp_path).new == 0
    record = read_results(tmp_path)[0]
    assert record["id"] == identity(canonical(record["task"]))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("results.jsonl", '{"run": 1, "loss": 0.5}\n', "is there, and is none of a sweep"),
        ("failures.jsonl", "no", "is there, and is none of a sweep"),
        ("function", "a b", "has results of 'a b', not of chores.square"),
    ],
)
def test_files_of_the_user_stay_as_they_are(
    name: str, text: str, message: str, experiment: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(experiment, tmp_path, "serial")
    with pytest.raises(HpcgymError, match=message):
        run_tasks(chores.square, numbers(1), tmp_path, "serial")
    assert (tmp_path / name).read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "lock"])


# --- Damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mask", [1, 2, 4, 8, 16, 32, 64, 128])
def test_no_flipped_bit_of_a_result_goes_unnoticed(mask: int, tmp_path: Path) -> None:
    run_tasks(chores.square, numbers(2), tmp_path, "serial")
    path = tmp_path / "results.jsonl"
    text = path.read_bytes()
    one, other = (record for record in read_records(path) if record is not None)
    for place in range(text.index(b"\n")):
        path.write_bytes(text[:place] + bytes([text[place] ^ mask]) + text[place + 1 :])
        found = list(read_records(path))
        assert found[-1] == other
        assert set(map(str, found[:-1])) == {"None"}, place
        assert one not in found


@pytest.mark.parametrize(("old", "new"), [("9.0", "8.0"), ('"x"', '"y"'), ("third", "thirb")])
def test_a_damaged_result_is_counted_and_done_again(old: str, new: str, tmp_path: Path) -> None:
    """Although it is still JSON, with all that a result has."""
    tasks = [{"x": 27}, {"x": 4}]
    run_tasks(chores.square, tasks, tmp_path, "serial")
    path = tmp_path / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0].replace(old.encode(), new.encode(), 1) + lines[1])
    assert path.read_bytes() != b"".join(lines)
    json.loads(path.read_bytes().splitlines()[0])
    with pytest.warns(HpcgymWarning, match=r"results\.jsonl has damaged lines: 1; a run that"):
        assert [record["task"] for record in read_results(tmp_path)] == [{"x": 4}]
    summary = run_tasks(chores.square, tasks, tmp_path, "serial")
    assert (summary.done, summary.new, summary.damaged) == (2, 1, 1)
    assert path.read_bytes() == lines[1] + lines[0]


def test_a_damaged_failure_is_counted_and_its_task_tried_again(tmp_path: Path) -> None:
    run_tasks(chores.fail_on_three, numbers(5), tmp_path, "serial", retries=0)
    path = tmp_path / "failures.jsonl"
    path.write_bytes(path.read_bytes().replace(b"too much", b"two much"))
    with pytest.warns(HpcgymWarning, match=r"failures\.jsonl has damaged lines: 1"):
        assert read_failures(tmp_path) == []
    summary = run_tasks(chores.fail_on_three, numbers(5), tmp_path, "serial", retries=0)
    assert (summary.failed, summary.damaged) == (1, 1)
    assert len(path.read_bytes().splitlines()) == 1
    (failure,) = read_failures(tmp_path)
    assert failure["error"] == "ValueError: three is too much"


def test_a_line_that_is_being_written_is_no_damage(tmp_path: Path, recwarn: Any) -> None:
    run_tasks(chores.square, numbers(2), tmp_path, "serial")
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"id": "0123')
    assert len(read_results(tmp_path)) == 2
    assert not [one for one in recwarn if one.category is HpcgymWarning]


def test_damaged_lines_are_told_once(tmp_path: Path) -> None:
    """And the others stay as they are, before and behind them."""
    run_tasks(chores.square, numbers(3), tmp_path, "serial")
    results = tmp_path / "results.jsonl"
    lines = results.read_bytes().splitlines(keepends=True)
    results.write_bytes(b'{"id": "0\n' + lines[0] + b"\xff\n\n" + lines[2] + b"{")
    found = [run_tasks(chores.square, numbers(3), tmp_path, "serial") for _ in range(2)]
    assert [(summary.damaged, summary.new) for summary in found] == [(4, 1), (0, 0)]
    assert results.read_bytes() == lines[0] + lines[2] + lines[1]
    assert not list(tmp_path.glob("*.part"))


def test_damage_is_told_wherever_a_sweep_is_looked_at(whole: Path, reference: Path) -> None:
    path = whole / "results.jsonl"
    text = path.read_bytes()
    at = text.index(b'"mean_bsld": ') + len(b'"mean_bsld": ')
    path.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
    found = status(whole)
    assert (found.state, found.done, found.damaged) == ("interrupted", 7, 1)
    assert "damaged lines of results: 1; hpcgym sweep resume" in shown("status", whole).stdout
    table = shown("table", whole, "--format", "csv")
    assert (table.exit_code, table.stdout.count("\n")) == (0, 8)
    assert "has damaged lines: 1" in table.stderr
    told = shown("resume", whole, "--executor", "serial").stderr
    assert "had damaged lines: 1; their tasks were done again" in told
    assert status(whole) == status(reference)
    assert read_table(whole).equals(read_table(reference))


def test_results_of_other_tasks_are_not_counted(whole: Path) -> None:
    """As where the lines of two sweeps have been put together."""
    path = whole / "results.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:-1], result_line("f" * 16, '{"a":1}', {"jobs": 1})]))
    found = status(whole)
    assert (found.tasks, found.done, found.failed, found.state) == (8, 7, 0, "interrupted")
    assert len(read_table(whole)) == 7
    assert resumed(whole).new == 1
    assert status(whole).state == "complete"


def test_no_flipped_byte_of_a_manifest_goes_unnoticed(whole: Path) -> None:
    path = whole / "manifest.json"
    text, manifest = path.read_bytes(), read_manifest(whole)
    for place in range(0, len(text), 3):
        path.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        try:
            assert read_manifest(whole) == manifest, place  # such as a tab for a blank
        except HpcgymError as error:
            assert str(error).startswith(str(path))  # noqa: PT017


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("manifest.json", '"workloads": [', '"workloads": [7, ', "is damaged: it is not what was"),
        ("manifest.json", '"tasks": 8', '"tasks": ' + "[" * 200_000, "64 deep"),
        ("manifest.json", "manifest_sha256", "sha", "has no checksum: it is of an older hpcgym"),
        ("origin", "../here", "\xff\xfe", "origin is not the name of a folder"),
        ("origin", "../here", "a\0b", "origin is not the name of a folder"),
    ],
)
def test_what_is_damaged_is_named_by_all(
    name: str, old: str, new: str, message: str, whole: Path
) -> None:
    path = whole / name
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode("latin-1")))
    words = ("status", "table", "resume") if name == "manifest.json" else ("resume",)
    for word in words:
        result = shown(word, whole)
        assert result.exit_code == 1
        (line,) = result.stderr.splitlines()
        assert re.search(rf"{name}.* {message.removeprefix('origin ')}", line)
