"""Each test has a tier, or is quick because somebody has said so."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tiers import NAMES, TIERS

TESTS = Path(__file__).parent


def test_each_folder_is_in_the_rule() -> None:
    modules = TESTS.rglob("test_*.py")
    assert {module.parent.relative_to(TESTS).as_posix() for module in modules} == set(TIERS)


def test_tiers_are_registered_marks() -> None:
    with (TESTS.parent / "pyproject.toml").open("rb") as file:
        marks = tomllib.load(file)["tool"]["pytest"]["ini_options"]["markers"]
    assert tuple(mark.partition(":")[0] for mark in marks) == NAMES
    assert {tier for tiers in TIERS.values() for tier in tiers} <= set(NAMES)


def test_tests_have_the_tiers_of_their_folder(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        if item.path.is_relative_to(TESTS):
            marked = {mark.name for mark in item.iter_markers()}
            assert marked >= {*TIERS[item.path.parent.relative_to(TESTS).as_posix()]}, item.nodeid


@pytest.mark.parametrize("what", ["CliRunner(", "subprocess.run("])
def test_what_starts_commands_and_processes_is_marked(what: str) -> None:
    modules = [module for module in TESTS.rglob("test_*.py") if what in module.read_text()]
    assert modules
    for module in modules:
        folder = module.parent.relative_to(TESTS).as_posix()
        told = {*TIERS[folder], *re.findall(r"pytest\.mark\.(\w+)", module.read_text())}
        assert told & set(NAMES), module


@pytest.mark.distributed
def test_quick_tests_are_those_without_a_tier() -> None:
    """Of all kinds that are told in CONTRIBUTING.md."""
    listed = collected("--quick", "tests")
    assert listed == collected("-m", f"not ({' or '.join(NAMES)})", "tests")
    files = {line.partition("::")[0].removeprefix("tests/") for line in listed}
    wanted = {
        "engine/test_against_oracle.py", "workload/test_swf.py", "scheduler/test_index.py",
        "schedule/test_metrics.py", "validation/test_validation.py", "test_repository.py",
    }  # fmt: skip
    assert wanted <= files
    assert not [file for file in files if TIERS[str(Path(file).parent)]]


def collected(*arguments: str) -> list[str]:
    """Return the names of the tests that pytest finds."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    run = subprocess.run(
        [*command, *arguments], cwd=TESTS.parent, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if re.match(r"tests/\S+::", line)]
