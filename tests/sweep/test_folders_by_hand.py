"""Folders of sweeps that somebody made, or edited, by hand: each ends in one clear line."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from chores import numbers, square

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.sweep import read_results, read_table, resume, run_experiment, run_tasks, status
from hpcgym.sweep.manifest import Tasks, as_text
from hpcgym.sweep.records import canonical, kept, read_records, result_line
from hpcgym.sweep.run import read_manifest
from hpcgym.workload import write_swf


def sealed(manifest: dict[str, Any], **others: Any) -> str:
    """The file of a manifest with other entries, and as many tasks as these make."""
    given = {**manifest, **others}
    with suppress(TypeError, AttributeError, KeyError):
        given["tasks"] = len(Tasks(given))
    return as_text(given)


WORKLOAD = {
    "workload": "w", "source": "lublin:jobs=5", "clean": "none", "processors": None,
    "errors": "strict", "slices": "whole", "seed": None, "slice_names": ["whole"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"workloads": [[]]}, "is not the manifest of a sweep"),
        ({"schedulers": None}, "is not the manifest of a sweep"),
        ({"manifest_sha256": "0"}, "is damaged: it is not what was written"),
    ],
    ids=str,
)
def test_a_manifest_with_a_checksum_is_still_looked_at(
    others: dict[str, Any], message: str, sweep: Path
) -> None:
    path = sweep / "manifest.json"
    path.write_text(sealed(read_manifest(sweep), workloads=[WORKLOAD]))
    assert read_manifest(sweep)["tasks"] == 2
    path.write_text(json.dumps(json.loads(sealed(read_manifest(sweep), **others)) | others))
    for look in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match=rf"manifest\.json {message}"):
            look(sweep)


def test_a_manifest_without_checksum_says_what_to_do(sweep: Path) -> None:
    path = sweep / "manifest.json"
    manifest = json.loads(path.read_text())
    del manifest["manifest_sha256"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(HpcgymError, match="has no checksum: it is of an older hpcgym"):
        status(sweep)


@pytest.mark.parametrize(
    "result",
    [
        {},
        {"x": 5},
        {"jobs": 20, "mean_bsld": 1.5},
        {"\x1b[31mred\n": 1},
        {"slice": [1]},
        {"mean_bsld": "1"},
    ],
    ids=str,
)
def test_results_with_other_metrics_are_none_of_a_sweep(result: Any, sweep: Path) -> None:
    path = sweep / "results.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    record = json.loads(first)
    task = canonical(record["task"])
    path.write_text("".join([result_line(record["id"], task, result), *others]))
    with pytest.raises(HpcgymError, match=r"results\.jsonl is not the file of the results"):
        read_table(sweep)


@pytest.mark.parametrize("name", ["experiment.toml", "origin"])
def test_files_of_the_user_beside_an_empty_lock_stay(
    name: str, experiment: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    (folder / "lock").touch()
    (folder / name).write_text("mine\n")
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(experiment, folder, "serial")
    assert (folder / name).read_text() == "mine\n"


def test_a_row_is_of_the_task_that_was_asked_for(sweep: Path, reference: Path) -> None:
    """A checksum can be made by hand: what the line says of its task is not needed."""
    path = sweep / "results.jsonl"
    first, *others = path.read_text().splitlines(keepends=True)
    record = json.loads(first)
    task = json.dumps({**record["task"], "workload": [1]})
    path.write_text("".join([result_line(record["id"], task, record["result"]), *others]))
    assert read_table(sweep).equals(read_table(reference))


def test_a_line_without_end_is_damage_and_fills_no_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tasks = numbers(3)
    run_tasks(square, tasks, tmp_path, "serial")
    path = tmp_path / "results.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    monkeypatch.setattr("hpcgym.sweep.records.MOST_LINE", 1000)
    for size in (999, 1000, 1001, 2000, 54_321):
        path.write_bytes(b"".join([first, b"x" * (size - 1) + b"\n", *others]))
        assert [record is None for record in read_records(path)] == [False, True, False, False]
        assert kept(path) == ({record["id"] for record in read_results(tmp_path)}, 1)
        assert path.read_bytes() == b"".join([first, *others])
    path.write_bytes(first + b"x" * 54_321)
    assert len(list(read_records(path))) == 1
    with pytest.raises(HpcgymError, match=r"take [0-9,]+ bytes, at most 1,000"):
        result_line("0" * 16, "{}", {"text": "x" * 1000})


def test_the_name_of_the_function_may_not_be_as_long_as_the_disk(tmp_path: Path) -> None:
    run_tasks(square, [{"x": 1}], tmp_path, "serial")
    (tmp_path / "function").write_bytes(b"x" * 100_000)
    with pytest.raises(HpcgymError, match="function is larger than"):
        run_tasks(square, [{"x": 2}], tmp_path, "serial")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("results.jsonl", '{"run": 1, "loss": 0.5}\n{"run": 2, "loss": 0.4}\nlast line'),
        ("failures.jsonl", '{"mine": 1}\n'),
        ("results.jsonl", "no line ends"),
        ("function", "def secret(): pass\n"),
        ("function", "cosine"),
        ("function", "  \n"),
    ],
)
def test_files_of_the_user_stay_as_they_are(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(HpcgymError, match=f"{name} is there, and is none of a sweep"):
        run_tasks(square, numbers(1), tmp_path, "serial")
    assert (tmp_path / name).read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "lock"])


def test_results_of_other_tasks_are_not_counted(sweep: Path) -> None:
    """As where the lines of two sweeps have been put together."""
    path = sweep / "results.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:-1], result_line("f" * 16, '{"a":1}', {"jobs": 1})]))
    found = status(sweep)
    assert (found.tasks, found.done, found.failed, found.state) == (8, 7, 0, "interrupted")
    assert len(read_table(sweep)) == 7
    assert resume(sweep, "serial").new == 1
    assert status(sweep).state == "complete"


def test_a_manifest_may_not_make_more_tasks_than_can_be_looked_at(sweep: Path) -> None:
    rules = next(iter(read_manifest(sweep)["schedulers"].values()))
    many = {f"s{number}": rules for number in range(4000)}
    workload = WORKLOAD | {"slice_names": [f"week {number}" for number in range(4000)]}
    text = sealed(read_manifest(sweep), schedulers=many, workloads=[workload])
    (sweep / "manifest.json").write_text(text)
    for look in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match="has 16,000,000 tasks, at most 10,000,000"):
            look(sweep)


@pytest.mark.parametrize(
    "name", ["manifest.json", "experiment.toml", "origin", "results.jsonl", "function", "lock"]
)
def test_pipes_in_the_folder_of_a_sweep_are_not_waited_for(name: str, sweep: Path) -> None:
    (sweep / name).unlink()
    os.mkfifo(sweep / name)
    for look in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match=f"{name} is not a regular file"):
            look(sweep)


def test_a_sweep_does_not_write_over_what_it_reads(tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()
    write_swf(hpcgym.load_workload("lublin:jobs=5"), folder / "function")
    (folder / "lock").touch()
    (tmp_path / "e.toml").write_text(
        'schedulers = ["easy"]\nmetrics = ["jobs"]\nworkloads = [{workload = "sweep/function"}]\n'
    )
    before = (folder / "function").read_bytes()
    with pytest.raises(HpcgymError, match="function would be overwritten"):
        run_experiment(tmp_path / "e.toml", folder, "serial")
    assert (folder / "function").read_bytes() == before
