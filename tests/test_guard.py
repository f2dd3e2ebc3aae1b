"""scripts/guard: hashes by which two trees are compared."""

from __future__ import annotations

import fnmatch
import itertools
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from hpcgym.envs import IDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
#: None, until-shadow, depth:3, slurm, conservative, and fill, which is refused.
FEW = "rule/setting=pool-ties,backfill=*"
ONE = "named/setting=pool-ties,scheduler=saf"
REFUSED = "named/setting=pool-ties,scheduler=easy-co"


@pytest.fixture
def guard(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The modules of the guard, which stand in no installed package."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    names = (
        "__main__",
        "facts",
        "library",
        "matrix",
        "record",
        "settings",
        "simulations",
        "values",
    )
    return SimpleNamespace(**{name: import_module(f"guarding.{name}") for name in names})


def run(*arguments: str, seed: str = "0") -> subprocess.CompletedProcess[str]:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("needs bash")
    command = [bash, str(ROOT / "scripts" / "guard"), *arguments]
    env = {**os.environ, "HPCGYM_VENV": sys.prefix, "PYTHONHASHSEED": seed}
    return subprocess.run(command, env=env, capture_output=True, text=True)


# --- The command ----------------------------------------------------------------------------


def test_it_explains_itself() -> None:
    shown = run("--help")
    assert shown.returncode == 0
    assert "scripts/guard record before.txt" in shown.stdout


def test_another_process_says_the_same(tmp_path: Path) -> None:
    file = tmp_path / "before.txt"
    recorded = run("record", str(file), "--only", FEW, seed="1")
    assert recorded.returncode == 0, recorded.stderr
    assert "6 cases written" in recorded.stdout
    assert "1 refused:HpcgymError" in recorded.stdout
    checked = run("check", str(file), "--only", FEW, seed="2")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout == "6 of 6 cases are the same\n"


def test_a_case_is_shown_part_by_part(
    guard: SimpleNamespace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert guard.__main__.main(["show", "rule/setting=pool-ties,backfill=conservative"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["rule/setting=pool-ties,backfill=conservative", "state: ran"]
    shown = dict(line.split("  ", 1) for line in lines[2:])
    assert shown["reserved_start"].split()[1:4] == ["int64", "(70,)", "0"]
    assert "0x1." in shown["metrics.mean_bsld"]
    with pytest.raises(SystemExit, match="2"):
        guard.__main__.main(["show", "rule/setting=pool-ties"])
    assert "cases have 'rule/setting=pool-ties' in their names" in capsys.readouterr().err


def test_a_changed_rule_is_seen(
    guard: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(tmp_path / "before.txt")
    main = guard.__main__.main
    assert main(["record", file, "--only", ONE]) == 0
    assert main(["check", file, "--only", ONE]) == 0
    known = guard.library.SCHEDULERS
    monkeypatch.setitem(known, "saf", known["laf"])  # the largest area first, not the smallest
    capsys.readouterr()
    assert main(["check", file, "--only", ONE]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"1 cases differ:\n  {ONE}  [")  # not saf-typical, the other one
    assert {"start", "metrics", "energy"} <= {*said.partition("[")[2].partition("]")[0].split()}


def test_a_signature_has_cases_of_each_group_and_changes_with_a_rule(
    guard: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    record = guard.record
    signed, known = record.chosen(None, record.SIGNED), record.chosen()
    groups = [{case.name.partition("/")[0] for case in cases} for cases in (signed, known)]
    assert groups[0] == groups[1]
    assert len(signed) < len(known) / 6
    one = [case for case in record.chosen(ONE) if case.name == ONE]  # not of saf-typical
    monkeypatch.setattr(record, "chosen", lambda *_: one)
    assert guard.__main__.main(["signature"]) == 0
    first = capsys.readouterr().out
    assert re.fullmatch(r"signature [0-9a-f]{12} of 1 cases\n", first)
    schedulers = guard.library.SCHEDULERS
    monkeypatch.setitem(schedulers, "saf", schedulers["laf"])
    assert guard.__main__.main(["signature"]) == 0
    assert capsys.readouterr().out != first


def test_what_was_refused_and_runs_is_told_apart(
    guard: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(tmp_path / "before.txt")
    main = guard.__main__.main
    assert main(["record", file, "--only", REFUSED]) == 0
    monkeypatch.setitem(guard.library.COSCHEDULERS, "easy-co", guard.library.SCHEDULERS["easy"])
    capsys.readouterr()
    assert main(["check", file, "--only", REFUSED]) == 0  # no fault
    said = capsys.readouterr().out
    assert "1 were refused or failed, and run now:" in said
    assert "[refused:HpcgymError -> ran]" in said
    assert main(["record", file, "--only", REFUSED]) == 0
    monkeypatch.undo()
    assert guard.__main__.main(["check", file, "--only", REFUSED]) == 1
    assert "1 ran, and are refused or fail now:" in capsys.readouterr().out


def test_missing_and_new_cases(guard: SimpleNamespace) -> None:
    said = guard.record.Said("ran", "0" * 64, {})
    found = guard.record.compare({"a": said, "b": said}, {"b": said, "c": said})
    assert [(one.kind, one.name) for one in found] == [("missing", "a"), ("new", "c")]


def test_files_are_read_as_they_were_written(guard: SimpleNamespace, tmp_path: Path) -> None:
    results = {
        "group/usual": guard.record.Said("ran", "ab" * 32, {"start": "0123456789"}),
        "group/a=b,c=d": guard.record.Said("refused:HpcgymError", "cd" * 32, {"error": "01"}),
    }
    guard.record.write(tmp_path / "file", results)
    assert guard.record.read(tmp_path / "file") == results
    (tmp_path / "file").write_text("group/usual nothing\n")
    with pytest.raises(ValueError, match="line 1: no line"):
        guard.record.read(tmp_path / "file")


# --- Hashes ---------------------------------------------------------------------------------

DIFFERENT = [
    0, 1, True, 0.0, -0.0, 1.0, "1", None, [], [1], [1, 1], {"a": 1}, {"b": 1},
    np.zeros(2, np.int64), np.zeros(2, np.int32), np.zeros(2), -np.zeros(2), np.zeros((1, 2)),
    np.array([0, 1]), np.array([True, False]), np.array([1.0, np.nan]), ["ab", "c"], ["a", "bc"],
    pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [2, 1]}), pd.DataFrame({"a": ["1", "2"]}),
]  # fmt: skip


def test_different_values_have_different_hashes(guard: SimpleNamespace) -> None:
    hashes = [guard.facts.hashed(value) for value in DIFFERENT]
    assert len(set(hashes)) == len(DIFFERENT)


def test_equal_values_have_equal_hashes(guard: SimpleNamespace) -> None:
    hashed = guard.facts.hashed
    assert hashed({"a": 1, "b": 2.5}) == hashed({"b": np.float64(2.5), "a": np.int64(1)})
    assert hashed(np.arange(6)[::2]) == hashed(np.array([0, 2, 4]))
    assert hashed(np.array([np.nan])) == hashed(-np.array([np.nan]))  # one nan for all machines
    assert hashed(np.arange(3).astype(">i8")) == hashed(np.arange(3))


def test_what_has_no_hash_is_an_error(guard: SimpleNamespace) -> None:
    with pytest.raises(TypeError, match="no hash of a object"):
        guard.facts.hashed({"a": object()})


# --- The matrix -----------------------------------------------------------------------------


def test_all_pairs_meet_but_excluded_ones(guard: SimpleNamespace) -> None:
    factors = {"a": ("1", "2", "3"), "b": ("1", "2"), "c": ("1", "2", "3", "4"), "d": ("1", "2")}

    def excluded(row: dict[str, str]) -> bool:
        return row.get("a") == "3" and row.get("c") in ("2", "3")

    rows = list(guard.matrix.pairwise(factors, excluded))
    assert not any(excluded(row) for row in rows)
    assert rows == list(guard.matrix.pairwise(factors, excluded))
    assert len(rows) < 3 * 2 * 4 * 2 / 2
    for one, other in itertools.combinations(factors, 2):
        met = {(row[one], row[other]) for row in rows}
        wanted = set(itertools.product(factors[one], factors[other]))
        assert met == {pair for pair in wanted if not excluded({one: pair[0], other: pair[1]})}


def test_names_of_cases_are_unlike(guard: SimpleNamespace) -> None:
    names = [case.name for case in guard.record.chosen()]
    assert len(names) > 3000
    assert len(set(names)) == len(names)
    assert all(name.count("/") == 1 and not set(name) & set("\t\n[") for name in names)


@pytest.mark.parametrize(
    "pattern",
    ["odel/usual", "model/usual", "m*/usual", "*usual", "usual", "setting=off,power", "r*"],
)
def test_patterns_choose_by_names(guard: SimpleNamespace, pattern: str) -> None:
    names = [case.name for case in guard.record.chosen()]
    wanted = [
        name
        for name in names
        if (fnmatch.fnmatchcase(name, pattern) if "*" in pattern else pattern in name)
    ]
    assert wanted
    assert [case.name for case in guard.record.chosen(pattern)] == wanted


def test_the_matrix_has_all_names_of_the_library(guard: SimpleNamespace) -> None:
    library, settings, simulations, values = (
        guard.library, guard.settings, guard.simulations, guard.values
    )  # fmt: skip
    usual = {
        "backfill": "easy", "correction": "requested", "passes": "per-timestamp",
        "partners": "fill",
    }  # fmt: skip
    for rule, known in (
        ("backfill", {name.replace("depth:K", "depth:3") for name in library.BACKFILL}),
        ("correction", library.CORRECTIONS),
        ("passes", library.PASSES),
        ("partners", library.PARTNERS),
        ("power", library.POWER),
        ("allocation", {name.replace("part", "part:3") for name in library.ALLOCATIONS}),
    ):
        assert {*known} <= {*settings.ALONE[rule], usual.get(rule, "")}, rule
    assert {*library.ESTIMATES} <= {*values.ESTIMATES}
    assert {*library.POLICIES} <= {*simulations.POLICIES}
    assert {*library.SCHEDULERS, *library.COSCHEDULERS} <= {*settings.NAMES}
    assert {*library.DISPATCHERS} <= {*settings.NAMES, *simulations.MODELS}
    assert {*IDS} == {*library.ENVIRONMENTS.values()}
    weighed = {name for weights in values.WEIGHTS.values() for name in weights}
    assert {*library.USER_FEATURES} <= weighed
