"""Times with units on the command line, and long times in tables."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from hpcgym.cli import app
from hpcgym.naming import duration

WORKLOAD = "lublin:jobs=150,processors=64,load=0.9"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_time_is_the_seconds_that_it_is() -> None:
    options = ["--scheduler", "saf", "--format", "json", "--threshold"]
    facts = [json.loads(run("simulate", WORKLOAD, *options, text)) for text in ("1.5h", "5400")]
    assert facts[0]["scheduler"]["threshold"] == 5_400
    for fact in facts:
        fact.pop("provenance")
    assert facts[0] == facts[1]


def test_long_times_are_in_words_too() -> None:
    facts = json.loads(run("simulate", WORKLOAD, "--format", "json"))
    lines = run("simulate", WORKLOAD).splitlines()
    (line,) = (line for line in lines if line.startswith("makespan"))
    assert facts["makespan_s"] > 3600
    assert line.split() == [
        "makespan", f"{facts['makespan_s']:,}", "s", "=", *duration(facts["makespan_s"]).split()
    ]  # fmt: skip


def test_what_is_no_time_is_told() -> None:
    result = CliRunner().invoke(app, ["simulate", WORKLOAD, "--from", "soon"])
    assert result.exit_code == 2
    assert "'soon' is no whole seconds, nor a time such as 5h or 2d" in result.stderr
    result = CliRunner().invoke(app, ["simulate", WORKLOAD, "--threshold", "soon"])
    assert result.exit_code == 1
    assert "0 s, or a time such as '5h' or '2d', not 'soon'" in result.stderr
