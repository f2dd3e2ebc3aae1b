"""What a sweep keeps is what was written, or it is noticed and done again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chores
import pytest
from chores import numbers
from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.errors import HpcgymError, HpcgymWarning
from hpcgym.sweep import (
    read_failures,
    read_results,
    read_table,
    resume,
    run_experiment,
    run_tasks,
    status,
)
from hpcgym.sweep.records import _sealed, canonical, identity, read_records
from hpcgym.sweep.run import read_manifest

#: Texts that are no record: some of them JSON that Python does not like.
NONSENSE = (
    '{"id": "\\ud800", "task": {"x": "\\udfff"}, "result": {}}',
    '{"id": 1, "task": 2, "result": 3}',
    '{"id": [], "task": {}, "result": {}}',
    '{"id": "x", "task": {"x": %s}, "result": {}}' % ("9" * 5000),
    '{"id": "x", "task": {"x": 1e999}, "result": {}}',
    "[" * 200_000,
    '{"id": ' + '{"a":' * 100_000,
    "\ufeff{}",
    "null",
    '{"id": "x", "task": {}, "result": {}, "sha256": "0123456789abcdef"}',
)


def unsealed(line: str) -> str:
    """Return a line as earlier versions wrote it: without checksum."""
    record = json.loads(line)
    del record["sha256"]
    task = canonical(record["task"])
    return f'{{"id": "{record["id"]}", "task": {task}, "result": {json.dumps(record["result"])}}}\n'


# --- Lines ----------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("old", ["9.0", '"x"', "third"])
def test_a_damaged_result_is_counted_and_done_again(old: str, tmp_path: Path) -> None:
    """Although it is still JSON, with all that a result has."""
    tasks = [{"x": 27}, {"x": 4}]
    run_tasks(chores.square, tasks, tmp_path, "serial")
    path = tmp_path / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    new = {"9.0": "8.0", '"x"': '"y"', "third": "thirb"}[old]
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
    text = path.read_bytes()
    path.write_bytes(text.replace(b"too much", b"two much"))
    with pytest.warns(HpcgymWarning, match=r"failures\.jsonl has damaged lines: 1"):
        assert read_failures(tmp_path) == []
    summary = run_tasks(chores.fail_on_three, numbers(5), tmp_path, "serial", retries=0)
    assert (summary.failed, summary.damaged) == (1, 1)
    assert len(path.read_bytes().splitlines()) == 1
    (failure,) = read_failures(tmp_path)
    assert failure["error"] == "ValueError: three is too much"


@pytest.mark.parametrize("nonsense", NONSENSE, ids=range(len(NONSENSE)))
def test_nonsense_is_damage_and_no_traceback(nonsense: str, tmp_path: Path) -> None:
    run_tasks(chores.square, numbers(2), tmp_path, "serial")
    path = tmp_path / "results.jsonl"
    text = path.read_bytes()
    path.write_bytes(nonsense.encode() + b"\n" + text)
    (tmp_path / "failures.jsonl").write_bytes(nonsense.encode() + b"\n")
    with pytest.warns(HpcgymWarning):
        assert len(read_results(tmp_path)) == 2
    with pytest.warns(HpcgymWarning):
        assert read_failures(tmp_path) == []
    summary = run_tasks(chores.square, numbers(2), tmp_path, "serial")
    assert (summary.new, summary.damaged) == (0, 2)
    assert path.read_bytes() == text


def test_results_of_earlier_versions_have_no_checksum(tmp_path: Path) -> None:
    """They count, if the task is that of the id."""
    tasks: list[dict[str, Any]] = [{"x": 1.5}, {"x": 2, "y": "é"}, {"x": 3}]
    run_tasks(chores.square, tasks, tmp_path, "serial")
    path = tmp_path / "results.jsonl"
    before = read_results(tmp_path, tasks)
    lines = path.read_text().splitlines()
    old = [unsealed(line) for line in lines]
    assert all(len(line) < len(new) for line, new in zip(old, lines, strict=True))
    path.write_text("".join(old))
    kept = [{key: record[key] for key in ("id", "task", "result")} for record in before]
    assert read_results(tmp_path, tasks) == kept
    path.write_text("".join(old).replace('"x":3', '"x":4'))
    summary = run_tasks(chores.square, tasks, tmp_path, "serial")
    assert (summary.new, summary.damaged) == (1, 1)
    assert len(read_results(tmp_path, tasks)) == 3


def test_a_task_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    task: dict[str, Any] = {}
    for _ in range(200_000):
        task = {"x": task}
    with pytest.raises(HpcgymError, match="it is nested too deeply"):
        run_tasks(chores.square, [task], tmp_path, "serial")


def test_a_line_that_is_being_written_is_no_damage(tmp_path: Path, recwarn: Any) -> None:
    run_tasks(chores.square, numbers(2), tmp_path, "serial")
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"id": "0123')
    assert len(read_results(tmp_path)) == 2
    assert not [one for one in recwarn if one.category is HpcgymWarning]


# --- Sweeps ---------------------------------------------------------------------------------------


def test_damage_is_told_wherever_a_sweep_is_looked_at(sweep: Path, reference: Path) -> None:
    path = sweep / "results.jsonl"
    text = path.read_bytes()
    at = text.index(b'"mean_bsld": ') + len(b'"mean_bsld": ')
    path.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1 :])
    found = status(sweep)
    assert (found.state, found.done, found.damaged) == ("interrupted", 7, 1)
    shown = CliRunner().invoke(app, ["sweep", "status", str(sweep)])
    assert "damaged lines of results: 1; hpcgym sweep resume" in shown.stdout
    shown = CliRunner().invoke(app, ["sweep", "table", str(sweep), "--format", "csv"])
    assert shown.exit_code == 0
    assert shown.stdout.count("\n") == 8
    assert "hpcgym: " in shown.stderr
    assert "has damaged lines: 1" in shown.stderr
    shown = CliRunner().invoke(app, ["sweep", "resume", str(sweep), "--executor", "serial"])
    assert "had damaged lines: 1; their tasks were done again" in shown.stderr
    assert status(sweep) == status(reference)
    assert read_table(sweep).equals(read_table(reference))


def test_no_flipped_byte_of_a_manifest_goes_unnoticed(sweep: Path) -> None:
    path = sweep / "manifest.json"
    text, manifest = path.read_bytes(), read_manifest(sweep)
    for place in range(0, len(text), 3):
        path.write_bytes(text[:place] + bytes([text[place] ^ 1]) + text[place + 1 :])
        try:
            assert read_manifest(sweep) == manifest, place  # such as a tab for a blank
        except HpcgymError as error:
            assert str(error).startswith(str(path))  # noqa: PT017


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"tasks": 8', '"tasks": ' + "9" * 5000),
        ('"tasks": 8', '"tasks": 1e999'),
        ('"tasks": 8', '"tasks": ' + "[" * 200_000),
        ('"generated"', '"\\ud800"'),
        ('"workloads": [', '"workloads": [7, '),
        ("easy", "ea\x00y"),
        ("easy", "\xff"),
    ],
)
def test_a_damaged_manifest_is_named_by_all(old: str, new: str, sweep: Path) -> None:
    path = sweep / "manifest.json"
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode("latin-1")))
    for look in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match=r"manifest\.json"):
            look(sweep)
    for word in ("status", "table", "resume"):
        result = CliRunner().invoke(app, ["sweep", word, str(sweep)])
        assert result.exit_code == 1
        (line,) = result.stderr.splitlines()
        assert "manifest.json" in line


@pytest.mark.parametrize("text", [b"\xff\xfe", b"a\0b", b"", b"\n"])
def test_a_damaged_origin_is_named(text: bytes, sweep: Path) -> None:
    (sweep / "origin").write_bytes(text)
    with pytest.raises(HpcgymError):
        resume(sweep, "serial")


def test_files_of_the_user_are_not_taken_for_those_of_a_sweep(
    experiment: Path, tmp_path: Path
) -> None:
    for name in ("experiment.toml", "manifest.json", "origin", "function"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("mine")
        with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
            run_experiment(experiment, folder, "serial")
        assert [(one.name, one.read_text()) for one in folder.iterdir()] == [(name, "mine")]
        (folder / "lock").write_text("mine, too")  # that of a sweep is empty
        with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
            run_experiment(experiment, folder, "serial")
        assert (folder / name).read_text() == "mine"


def test_an_experiment_may_lie_in_the_folder_of_its_sweep(tmp_path: Path) -> None:
    text = 'schedulers = ["easy"]\n[[workloads]]\nworkload = "lublin:jobs=50,processors=16"\n'
    (tmp_path / "experiment.toml").write_text(text)
    assert run_experiment(tmp_path / "experiment.toml", tmp_path, "serial").done == 1
    assert (tmp_path / "experiment.toml").read_text() == text
    assert resume(tmp_path, "serial").new == 0
    record = read_results(tmp_path)[0]
    assert record["id"] == identity(canonical(record["task"]))


@pytest.mark.parametrize(
    "entries",
    ['"a": 1', '"id": {}, "task": {}', '"id": null, "task": {}', '"id": "x", "task": []'],
)
@pytest.mark.parametrize("name", ["results.jsonl", "failures.jsonl"])
def test_lines_with_a_checksum_and_other_entries_are_damaged(
    entries: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(_sealed(f"{{{entries}".encode()))
    assert list(read_records(tmp_path / name)) == [None]
