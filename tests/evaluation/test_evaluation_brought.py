"""What users bring: classes, functions, modules; all that is wrong with them is said beforehand."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import pytest
from boards import TRACE
from gymnasium import spaces

import hpcgym
from hpcgym.errors import HpcgymError, PolicyWarning
from hpcgym.evaluation import evaluate
from hpcgym.evaluation.brought import imported, misfit_of_spaces
from hpcgym.scheduler.own_code import names_code

FEW: dict[str, Any] = {"jobs": 100, "n": 2, "budget": 0, "env": "hpcgym/JobSelection-v0"}

MODULE = """
import os
from collections import OrderedDict
from hpcgym import Scheduler

class First:
    def act(self, observation, info):
        return 0

class Outer:
    class Inner(First):
        pass

class Begins(First):
    def begin(self, env, more):
        pass

class Needs(First):
    def __init__(self, weights):
        pass

class Fails(First):
    def __init__(self):
        raise RuntimeError("no weights here")

class Short:
    def act(self, observation):
        return 0

class Nothing:
    pass

class Dispatcher:
    def __call__(self, view):
        return view.in_order(range(len(view.job)))

def first(observation, info):
    return 0

def in_order(view):
    return view.in_order(range(len(view.job)))

def scored(view):
    return -view.requested * view.processors

saf = Scheduler(policy=scored, backfill_order="spf")

def three(one, two, three):
    pass

ready = First()
number = 7
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A package with policies in a module of it, where Python looks."""
    folder = tmp_path / "brought_pkg"
    (folder / "deep").mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    (folder / "deep" / "__init__.py").write_text(MODULE)
    (folder / "misses.py").write_text("import no_such_module_at_all\n")
    (folder / "broken.py").write_text("def (:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "brought_pkg"
    for name in [name for name in sys.modules if name.startswith("brought_pkg")]:
        del sys.modules[name]


@pytest.mark.parametrize("name", ["First", "Outer.Inner", "first", "ready"])
def test_policies_are_found_by_name(package: str, name: str) -> None:
    text = f"{package}.deep:{name}"
    board = evaluate(text, TRACE, **FEW)
    assert not board.failures
    assert next(iter(board.by_slice)) == text
    assert board.by_slice[text].tolist() == board.by_slice["easy"].tolist()
    mine = imported(text)
    assert mine.act(None, None) == 0


def test_a_function_that_scores_is_a_policy(package: str) -> None:
    text = f"{package}.deep:saf"
    board = evaluate([text, "saf"], TRACE, jobs=100, n=2, budget=0)
    assert board.by_slice[text].equals(board.by_slice["saf"])
    with pytest.warns(PolicyWarning):
        failed = evaluate(f"{package}.deep:scored", TRACE, jobs=100, n=2, budget=0)
    (said, *_) = failed.failures.values()
    assert "a policy: write by_score = hpcgym.Scheduler(policy=scored), and name by_score" in said
    assert "np." not in said


def test_only_names_of_the_module_itself_are_proposed(package: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        evaluate(f"{package}.deep:zzz", TRACE, **FEW)
    told = str(caught.value)
    assert "known are First, Outer" in told
    assert not [name for name in ("os", "OrderedDict", "Scheduler") if f" {name}," in told]


@pytest.mark.parametrize("name", ["in_order", "Dispatcher"])
def test_dispatchers_are_found_by_name(package: str, name: str) -> None:
    text = f"{package}.deep:{name}"
    board = evaluate([text, "fcfs-list"], TRACE, jobs=100, n=2, budget=0)
    assert board.by_slice[text].equals(board.by_slice["fcfs-list"])


def test_a_class_of_policies_is_made() -> None:
    class First:
        def act(self, observation: Any, info: Any) -> int:
            return 0

    board = evaluate(First, TRACE, **FEW)
    assert board.by_slice["first"].tolist() == board.by_slice["easy"].tolist()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deep:Frist", "deep:Frist: there is no 'Frist' in it; did you mean 'first'"),
        ("deep:Outer.Iner", "there is no 'Iner' in it; did you mean 'Inner'"),
        ("deep:Begins", "begins: begin must take one, (env); it is begin(env, more)"),
        ("deep:Needs", "the class Needs cannot be made without arguments (missing a required"),
        ("deep:Fails", "the class Fails cannot be made: RuntimeError: no weights here"),
        ("deep:Short", "short: act must take two arguments, (observation, info); it is act(obs"),
        ("deep:Nothing", "the class Nothing is no policy: it has no act(observation, info)"),
        ("deep:three", "three must take one argument, as a dispatcher (the view of a pass), or"),
        ("deep:number", "deep:number is no policy: it is of the type int, and has no act"),
        ("misses:First", "importing brought_pkg.misses fails: No module named 'no_such_module_at"),
        ("broken:First", "importing brought_pkg.broken fails: SyntaxError: "),
        ("py:First", "there is no module 'brought_pkg.py' in the current folder or where Python"),
        ("other:First", "there is no module 'brought_pkg.other' in the current folder or where"),
    ],
)
def test_what_is_wrong_is_one_line_before_anything_runs(
    package: str, name: str, message: str
) -> None:
    def progress(title: str, total: int) -> Any:
        raise AssertionError

    with pytest.raises(HpcgymError) as caught:
        evaluate(f"{package}.{name}", TRACE, progress=progress, **FEW)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_objects_are_checked_too() -> None:
    short = SimpleNamespace(act=lambda observation: 0, name="mine")
    with pytest.raises(HpcgymError, match=r"^mine: act must take two arguments"):
        evaluate(short, TRACE, **FEW)
    with pytest.raises(HpcgymError, match=r"^mine: act must take two arguments"):
        evaluate({"agent": [short]}, TRACE, **FEW)


def test_names_of_code_are_told_from_others() -> None:
    assert all(map(names_code, ("a:B", "a.b.c:D.e", "_a1:_b")))
    others = ("saf:threshold=1", "a/b:C", "a:", ":b", "a:b:c", "a.b", "1a:b", "a..b:c")
    assert not [text for text in others if names_code(text)]


def test_spaces_that_differ_are_said() -> None:
    made = {"workload": TRACE, "jobs": 100}
    env = gymnasium.make("hpcgym/JobSelection-v0", window=16, **made)
    agent = SimpleNamespace(
        act=lambda observation, info: 0, name="mine",
        observation_space=env.observation_space, action_space=env.action_space,
    )  # fmt: skip
    assert misfit_of_spaces(agent, env) == ""
    assert misfit_of_spaces(SimpleNamespace(), env) == ""
    assert not evaluate(agent, TRACE, env_options={"window": 16}, **FEW).failures
    with pytest.raises(hpcgym.HpcgymError) as caught:
        evaluate(agent, TRACE, env_options={"window": 32}, **FEW)
    assert "mine was trained in another environment than this: in its observations jobs is Box" in (
        str(caught.value)
    )
    assert "(16, 8), not Box(32, 8)" in str(caught.value)
    flat = gymnasium.make("hpcgym/JobSelection-v0", window=16, observation="flat", **made)
    assert misfit_of_spaces(agent, flat).startswith("its observations are Dict(cluster, jobs, ")
    agent.action_space = spaces.Discrete(17)
    assert misfit_of_spaces(agent, env) == "its actions are Discrete(17), not Discrete(16)"
