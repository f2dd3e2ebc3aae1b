"""Who is compared: what users bring, what rows are called, and what is no policy."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from boards import (
    BUDGET,
    CODES,
    FEW,
    SHARED_MACHINE,
    TRACE,
    First,
    FirstPair,
    Saved,
    as_it_is,
)  # fmt: skip
from mistakes import mistakes_of

from hpcgym.baselines import SCHEDULERS, find_baseline
from hpcgym.cli.lineup import rules_of
from hpcgym.errors import PolicyWarning
from hpcgym.own_code import names_code
from hpcgym.scheduler.rules import PASSES, Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.study import evaluate
from hpcgym.study.evaluation import policies as module
from hpcgym.study.evaluation.policies import find_policy, queue_order, read_policies
from hpcgym.workload import load_workload

ENV: dict[str, Any] = {
    "env": "hpcgym/JobSelection-v2", "env_options": {"backfill_order": "fcfs"},
}  # fmt: skip


def no_progress(title: str, total: int) -> Any:
    raise AssertionError


# --- What users bring -----------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("name", "same"),
    [
        *((name, "easy") for name in ("First", "Outer.Inner", "first", "ready")),
        *((name, "fcfs-list") for name in ("in_order", "Dispatcher")),
        ("saf", "saf (backfill fcfs)"),
    ],
)
def test_what_is_named_in_a_module_plays(package: str, name: str, same: str) -> None:
    text = f"{package}.deep:{name}"
    where = {} if same == "fcfs-list" else ENV
    board = evaluate([text, "fcfs-list"], TRACE, **where, **FEW)
    row = next(iter(board.by_slice))
    assert row.startswith(text)
    expected = board.by_slice[same]
    if name == "saf":  # it backfills by its own order
        expected = evaluate(Scheduler("saf"), TRACE, **FEW).by_slice.iloc[:, 0]
    assert board.by_slice[row].tolist() == expected.tolist()


def test_what_is_given_itself_plays(package: str) -> None:
    def in_order(view: Any) -> Any:
        return view.in_order(range(len(view.job)))

    board = evaluate([First, in_order], TRACE, **FEW, **ENV)
    assert board.by_slice["first"].tolist() == board.by_slice["easy"].tolist()
    assert board.schedulers["in_order"] == Scheduler(dispatcher=in_order)
    assert "in_order" in evaluate(in_order, TRACE, **FEW).by_slice
    with pytest.warns(PolicyWarning):
        failed = evaluate(f"{package}.deep:scored", TRACE, **FEW)
    (said, *_) = failed.failures.values()
    assert "a policy: write by_score = hpcgym.Scheduler(policy=scored), and name by_score" in said


@pytest.mark.parametrize("as_policy", [lambda dispatcher: dispatcher, find_baseline])
def test_a_dispatcher_that_answers_wrongly_fails(as_policy: Any) -> None:
    from hpcgym.baselines.policies import Expert

    def nothing(view: Any) -> list[int]:
        return []

    def all_of_them(view: Any) -> list[int]:
        return list(range(len(view.job)))

    made = Expert if as_policy is find_baseline else as_policy
    policies = {answer.__name__: made(answer) for answer in (nothing, all_of_them)}
    with pytest.warns(UserWarning, match="failed on 2 of 2 slices"):
        board = evaluate(policies, TRACE, backfill="none", **FEW, **ENV)
    assert board.table["failed"][["nothing", "all_of_them"]].tolist() == [2, 2]
    assert all(text.startswith("DispatchError: ") for text in board.failures.values())


# --- What rows are called -------------------------------------------------------------------------


def named(policies: Any) -> list[str]:
    return list(read_policies(policies).policies)


def called(name: str) -> Any:
    return SimpleNamespace(name=name, act=lambda observation, info: 0)


def test_nothing_else_gets_the_row_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "load_agent", lambda path: called("saved"))
    mine = [called(policy) for policy in ("lookahead", "0.5,0,0,0,-0.5,0", "powercap", "sjf")]
    policies = [*mine, "lookahead", "0.5,0,0,0,-0.5,0", Path("sjf"), "runs/one.pt", "random"]
    policies_read = read_policies(policies).policies
    assert list(policies_read) == [
        "lookahead (2)", "0.5,0,0,0,-0.5,0 (acting)", "powercap (acting)", "sjf (acting)",
        "lookahead", "0.5,0,0,0,-0.5,0", "sjf (acting) (2)", "runs/one.pt",
    ]  # fmt: skip
    assert list(policies_read.values())[:4] == mine
    assert named([called("agent"), called("agent"), called("saf")]) == [
        "agent", "agent (2)", "saf (acting)",
    ]  # fmt: skip
    assert named([FirstPair(), "first-pairs"]) == ["first-pairs (acting)", "first-pairs"]
    assert named([called("filler-co")]) == ["filler-co (acting)"]
    assert named({"mine": "saf", 3: called("x"), "easy-co": "easy-co"}) == ["mine", "3", "easy-co"]
    assert read_policies(read_policies(policies)).policies.keys() == policies_read.keys()


def test_schedulers_without_a_name_are_called_by_their_rules() -> None:
    rule = {"policy": "saf", "backfill_order": "fcfs"}
    rules = "queue by SAF, EASY backfilling by FCFS, requested times"
    two = [Scheduler(**rule), Scheduler(**rule, threshold=60), Scheduler(**rule)]
    assert named([*two, SCHEDULERS["saf"]]) == [
        rules, f"{rules}, threshold 60 s", f"{rules} (2)", "saf (2)",
    ]  # fmt: skip
    passes = [Scheduler(**rule, passes=each) for each in PASSES]
    assert named(passes) == [f"{rules}, {each} passes" for each in PASSES]


#: Settings of an evaluation in which names may not stand for what they are in ``compare``.
SETTINGS: tuple[dict[str, Any], ...] = (
    {},
    ENV,
    {"env": "hpcgym/MixedPolicy-v2", "estimate": "ave2"},
    {"backfill": "none"},
    {"policy_estimate": "user-ratio"},
    {"estimate": "clairvoyant", "correction": "kill", "backfill_order": "saf"},
)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_name_alone_is_the_scheduler_that_compare_has(setting: dict[str, Any]) -> None:
    jobs = load_workload("lublin:jobs=120,processors=32,load=2,seed=4,users=5")
    learns = {"estimate", "policy_estimate"} & {*setting}
    policies = [
        name
        for name, scheduler in SCHEDULERS.items()
        if not (learns and any(scheduler.usage_orders))  # which do not go together
    ]
    policies += [] if "env" in setting else ["sjf-list"]
    board = evaluate(policies, jobs, episodes="whole", slices="all", budget=0, **setting)
    plain = 0
    for name in policies:
        expected = simulate(jobs, rules_of(name, {})).metrics["mean_bsld"]
        (row,) = (row for row in board.by_slice if row == name or row.startswith(f"{name} ("))
        scheduler = board.schedulers[row]
        assert scheduler is not None
        if row == name:
            plain += 1
            assert board.by_slice[row].tolist() == [expected]
        else:
            assert scheduler.describe() != rules_of(name, {}).describe()
    assert plain == len(policies) if not setting else 0 < plain < len(policies)


# --- Several trainings ----------------------------------------------------------------------------


def place(number: int) -> Any:
    """An agent that selects the job at a place of the window, if there is one."""
    return SimpleNamespace(act=lambda observation, info: min(number, len(info["window"]) - 1))


def test_a_row_of_trainings_is_their_mean() -> None:
    agents = [place(0), place(1), place(5)]
    few: dict[str, Any] = {**FEW, "n": 5, **ENV}
    alone = evaluate(dict(zip("abc", agents, strict=True)), TRACE, **few)
    board = evaluate({"agent": agents, "b": agents[1]}, TRACE, reference="agent", **few)
    assert list(board.by_slice)[:2] == ["agent", "b"]
    values = alone.by_slice[["a", "b", "c"]]
    assert np.allclose(board.by_slice["agent"], values.mean(axis=1))
    assert np.array_equal(board.values["mean_bsld"][[*board.trainings["agent"]]], values)
    row = board.table.loc["agent"]
    assert row["seeds"] == 3
    assert board.table.drop("agent")["seeds"].eq(1).all()
    assert row["mean_bsld"] == pytest.approx(values.to_numpy().mean())
    assert row["mean_wait_s"] == pytest.approx(alone.table.loc[list("abc"), "mean_wait_s"].mean())
    assert (board.schedulers["agent"], board.reference) == (None, "agent")
    facts = board.facts()["seeds_by_slice"]["agent"]
    assert next(iter(facts.values())).keys() == {f"agent: seed {k}" for k in range(3)}
    for name in ("easy", "random (acting)"):  # the others are what they are without it
        assert board.by_slice[name].equals(alone.by_slice[name])


def test_text_names_trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    seen: list[Any] = []

    def find(policy: Any) -> Any:
        seen.append(policy)
        return place(0)

    files = ("ppo: a.pt", "ppo: b.pt")
    for given in ("ppo=a.pt, b.pt", {"ppo": ["a.pt", "b.pt"]}):
        policies_read = read_policies(given, find)
        assert policies_read.trainings == {"ppo": files}
        assert tuple(policies_read.policies) == files
    assert seen == ["a.pt", "b.pt"] * 2
    Path("a=b.pt").touch()  # an existing file is no list
    others = ["saf:threshold=1", "wait == 3", "runs/lr=1/agent.pt", "0,0,0,1,0,0", "a=b.pt"]
    assert read_policies(others, find).trainings == {}
    assert seen[4:] == others


def test_a_training_that_fails_is_said_with_its_row() -> None:
    def act(observation: Any, info: Any) -> int:
        raise ZeroDivisionError("no way")

    agents = [place(0), SimpleNamespace(act=act)]
    with pytest.warns(PolicyWarning, match=r"^mine failed on 2 of 2 slices, first on rows"):
        board = evaluate({"mine": agents}, TRACE, **ENV, **FEW)
    (said,) = {*board.failures.values()}
    assert said.startswith("seed 1: ZeroDivisionError: no way (")
    assert board.by_slice["mine"].isna().all()
    assert board.table.loc["mine", "failed"] == 2


# --- What is wrong is one line, before anything runs ----------------------------------------------

SHARED: dict[str, Any] = {
    "env": "hpcgym/CoSchedule-v1",
    "cluster": SHARED_MACHINE,
    "workload": CODES,
}
SHARE: dict[str, Any] = {"env": BUDGET, "env_options": {"share": 0.7}}
SHORT = SimpleNamespace(act=lambda observation: 0, name="mine")


def wrong(policies: Any = (), **given: Any) -> None:
    """Evaluate what cannot be: nothing runs."""
    usual = {"workload": TRACE, "jobs": 60, "n": 2, "budget": 0, "progress": no_progress}
    evaluate(policies, **{**usual, **given})


def test_names_of_code_are_told_from_others() -> None:
    assert all(map(names_code, ("a:B", "a.b.c:D.e", "_a1:_b")))
    others = ("saf:threshold=1", "a/b:C", "a:", ":b", "a:b:c", "a.b", "1a:b", "a..b:c")
    assert not [text for text in others if names_code(text)]


# --- Learners, which one pass through a log has ---------------------------------------------------


class Seeded:
    """A learner by chance."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def act(self, observation: Any, info: Any) -> Any:
        return [0] * 6


def test_learners_by_name_class_and_module() -> None:
    from hpcgym.agents.weight_bandit import WeightBandit

    for given in ("weight-bandit", WeightBandit, "hpcgym.agents.weight_bandit:WeightBandit"):
        assert isinstance(find_policy(given, 0), WeightBandit)
    assert [find_policy(Seeded, seed).seed for seed in (1, 2)] == [1, 2]
    assert find_policy("saf:threshold=600", 0) == "saf:threshold=600"


test_mistakes = mistakes_of(globals(), Saved, as_it_is, queue_order, fixtures=("package",))
