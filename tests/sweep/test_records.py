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
from hpcgym.sweep.records import canonical, identity, read_records, result_line
from hpcgym.sweep.run import read_manifest

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
    ("old", "new", "message"),
    [
        ('"workloads": [', '"workloads": [7, ', "is damaged: it is not what was written"),
        ('"tasks": 8', '"tasks": ' + "[" * 200_000, "64 deep"),
        ("manifest_sha256", "sha", "has no checksum: it is of an older hpcgym"),
    ],
)
def test_a_damaged_manifest_is_named_by_all(old: str, new: str, message: str, sweep: Path) -> None:
    path = sweep / "manifest.json"
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode("latin-1")))
    for look in (status, read_table, lambda folder: resume(folder, "serial")):
        with pytest.raises(HpcgymError, match=rf"manifest\.json.* {message}"):
            look(sweep)
    for word in ("status", "table", "resume"):
        result = CliRunner().invoke(app, ["sweep", word, str(sweep)])
        assert result.exit_code == 1
        (line,) = result.stderr.splitlines()
        assert "manifest.json" in line


@pytest.mark.parametrize("text", [b"\xff\xfe", b"a\0b"])
def test_a_damaged_origin_is_named(text: bytes, sweep: Path) -> None:
    (sweep / "origin").write_bytes(text)
    with pytest.raises(HpcgymError):
        resume(sweep, "serial")


def test_an_experiment_may_lie_in_the_folder_of_its_sweep(tmp_path: Path) -> None:
    text = 'schedulers = ["easy"]\n[[workloads]]\nworkload = "lublin:jobs=50,processors=16"\n'
    (tmp_path / "experiment.toml").write_text(text)
    assert run_experiment(tmp_path / "experiment.toml", tmp_path, "serial").done == 1
    assert (tmp_path / "experiment.toml").read_text() == text
    assert resume(tmp_path, "serial").new == 0
    record = read_results(tmp_path)[0]
    assert record["id"] == identity(canonical(record["task"]))


@pytest.mark.parametrize(
    ("name", "text"),
    [("results.jsonl", '{"run": 1, "loss": 0.5}\n'), ("failures.jsonl", "no"), ("function", "a b")],
)
def test_files_of_the_user_stay_as_they_are(
    name: str, text: str, experiment: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(HpcgymError, match="is there already, and is no sweep"):
        run_experiment(experiment, tmp_path, "serial")
    with pytest.raises(HpcgymError, match=f"{name} is there, and is none of a sweep"):
        run_tasks(chores.square, numbers(1), tmp_path, "serial")
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
