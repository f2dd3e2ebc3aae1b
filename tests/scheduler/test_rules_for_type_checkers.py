"""What type checkers know of rules as keywords is what a Scheduler has, and a function takes."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints, is_typeddict

import pandas as pd
import pytest

from hpcgym.agents.lookahead import Lookahead
from hpcgym.envs.core.surroundings import NOTHING_AROUND
from hpcgym.scheduler.asked_for import OF_ENVIRONMENTS
from hpcgym.scheduler.backfilling import SlurmBackfill
from hpcgym.scheduler.rules import RULES, Rules, RulesOfEnvironments, Scheduler
from hpcgym.simulation.run import Arguments, learn_before, simulate
from hpcgym.study import evaluate, prequential
from hpcgym.study.compared import compare
from hpcgym.study.evaluation.run import RulesOfSlices

ROOT = Path(__file__).parents[2]

#: Rule -> what may be given beside the types of what a Scheduler keeps, and such values.
READ: dict[str, tuple[set[Any], list[Any]]] = {
    "backfill": ({int, SlurmBackfill}, [3, SlurmBackfill()]),
    "backfill_order": ({NoneType}, [None]),
    "correction": ({NoneType}, [None]),
    "threshold": ({str}, ["80h"]),
    "relax": ({str}, ["24h"]),
}


def types_in(hint: Any) -> set[Any]:
    """The parts of a union, or the one type."""
    return (
        {*get_args(hint)}
        if type(hint).__name__ in ("UnionType", "Union", "_UnionGenericAlias")
        else {hint}
    )


def test_the_rules_are_the_attributes_of_a_scheduler() -> None:
    kept, given = get_type_hints(Scheduler), get_type_hints(Rules)
    assert {*given} == {*RULES} == {field.name for field in fields(Scheduler) if field.init}
    for rule, hint in given.items():
        more, _ = READ.get(rule, (set(), []))
        assert types_in(hint) == types_in(kept[rule]) | more, rule
        assert more.isdisjoint(types_in(kept[rule]))
    assert Rules.__required_keys__ == Arguments.__required_keys__ == frozenset()


@pytest.mark.parametrize(
    ("rule", "value"), [(rule, value) for rule, (_, values) in READ.items() for value in values]
)
def test_what_is_read_may_be_given(rule: str, value: Any) -> None:
    assert getattr(Scheduler(**{rule: value}), rule) != value or rule == "backfill"
    assert Scheduler().but(**{rule: value}) == Scheduler(**{rule: value})


def test_environments_and_evaluations_have_some_of_them() -> None:
    all_rules, some = get_type_hints(Rules), get_type_hints(RulesOfEnvironments)
    assert {*some} == {*OF_ENVIRONMENTS}
    assert some.items() <= all_rules.items()
    slices = get_type_hints(RulesOfSlices)
    assert {*slices} == {*OF_ENVIRONMENTS, *NOTHING_AROUND}


def test_the_arguments_of_simulate_are_those_that_it_names() -> None:
    hints = get_type_hints(simulate, localns={"pd": pd})
    named = {
        name: hints[name]
        for name, parameter in inspect.signature(simulate).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    assert get_type_hints(Arguments) == {**named, **get_type_hints(Rules)}


@pytest.mark.parametrize(
    ("function", "rules"),
    [
        (simulate, Rules),
        (learn_before, Rules),
        (Scheduler.but, Rules),
        (Lookahead.run, Rules),
        (compare, Arguments),
        (evaluate, RulesOfSlices),
        (prequential, RulesOfEnvironments),
    ],
    ids=lambda given: given.__qualname__ if callable(given) and not is_typeddict(given) else "",
)
def test_functions_pass_rules_on(function: Callable[..., Any], rules: Any) -> None:
    *_, last = inspect.signature(function).parameters.values()
    assert last.kind is last.VAR_KEYWORD
    assert last.annotation == f"Unpack[{rules.__name__}]"


RIGHT = """
import hpcgym
from hpcgym import Scheduler
from hpcgym.agents.lookahead import Lookahead
from hpcgym.simulation.run import learn_before
from hpcgym.study import evaluate, prequential

log = hpcgym.load_workload("lublin:jobs=100,processors=64")
hpcgym.simulate(log, "easy", threshold="80h", hold=0.1, backfill=2, cluster=64, quota="user:jobs=2")
hpcgym.simulate(log, "easy", policy={"area": -1.0}, backfill_order=None, engine="reference")
hpcgym.compare(log, ["easy", "saf"], estimate="ave2", processors=64, threshold=3600)
Scheduler(policy="saf").but(threshold=None, correction="incremental")
learn_before(log, "easy", 3600, estimate="ave2")
evaluate("saf", log, backfill="none", start="warm", horizon="7d")
prequential("weight-bandit", log, backfill_order="spf")
"""
WRONG = """
hpcgym.simulate(log, "easy", thresh=3)
hpcgym.simulate(log, "easy", passes=3)
hpcgym.compare(log, ["easy", "saf"], estimat="ave2")
hpcgym.compare(log, ["easy", "saf"], processors="many")
Scheduler(policy="saf").but(treshold=None)
learn_before(log, "easy", 3600, estimates="ave2")
evaluate("saf", log, backfil="none")
prequential("weight-bandit", log, backfill_orders="spf")
Lookahead().run(log, threshold=[3])
"""


@pytest.mark.slow
def test_mypy_finds_rules_that_there_are_not(tmp_path: Path) -> None:
    """Each wrong line is an error, and no right one."""
    file = tmp_path / "mine.py"
    file.write_text(RIGHT + WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "pyproject.toml", file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    errors = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert {Path(name).name for name, *_ in errors} == {"mine.py"}, done.stdout + done.stderr
    first = RIGHT.count("\n") + 2
    assert {int(line) for _, line, *_ in errors} == {*range(first, first + WRONG.count("\n") - 1)}
