"""scripts/guard: cases, and hashes that change with what these say."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.baselines import SCHEDULERS
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.baselines.schedulers import COSCHEDULERS
from hpcgym.envs import IDS
from hpcgym.scheduler.allocations import ALLOCATIONS
from hpcgym.scheduler.backfilling import BACKFILL
from hpcgym.scheduler.estimates import CORRECTIONS, ESTIMATES
from hpcgym.scheduler.policies import POLICIES, USER_FEATURES
from hpcgym.scheduler.policies.expressions import read_expression
from hpcgym.scheduler.policies.features import STATE
from hpcgym.scheduler.rules import PARTNERS, PASSES, POWER

ROOT = Path(__file__).parents[1]


@pytest.fixture
def guard() -> SimpleNamespace:
    """The modules of the guard, which stand in no installed package."""
    names = ("__main__", "facts", "inputs")
    return SimpleNamespace(**{name: import_module(f"guarding.{name}") for name in names})


def test_a_changed_rule_changes_the_signature(
    guard: SimpleNamespace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cases = tmp_path / "cases.txt"
    cases.write_text("named: setting= scheduler=\n  setting=pool-ties,scheduler=saf\n")
    monkeypatch.setattr(guard.__main__, "CASES", cases)
    main = guard.__main__.main
    assert main(["signature"]) == main(["signature", "--cases"]) == 0
    first, case, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"signature [0-9a-f]{12} of 1 cases", first)
    assert first == second
    assert case.startswith("named/setting=pool-ties,scheduler=saf start=")
    monkeypatch.setitem(SCHEDULERS, "saf", SCHEDULERS["laf"])  # the largest area first
    assert main(["signature"]) == 0
    assert capsys.readouterr().out.strip() != first


def test_what_is_refused_is_hashed_as_the_class_of_its_error(guard: SimpleNamespace) -> None:
    row = {"setting": "pool-ties", "scheduler": "easy-co"}
    assert guard.__main__.run("named", row) == {"error": "refused:HpcgymError"}


# --- Hashes ---------------------------------------------------------------------------------

DIFFERENT = [
    0, 1, True, 0.0, -0.0, 1.0, "1", None, [], [1], [1, 1], {"a": 1}, {"b": 1},
    np.zeros(2, np.int64), np.zeros(2, np.int32), np.zeros(2), -np.zeros(2), np.zeros((1, 2)),
    np.array([0, 1]), np.array([True, False]), np.array([1.0, np.nan]), ["ab", "c"], ["a", "bc"],
    pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [2, 1]}), pd.DataFrame({"a": ["1", "2"]}),
]  # fmt: skip


def test_hashes_are_those_of_values(guard: SimpleNamespace) -> None:
    hashed = guard.facts.hashed
    assert len({hashed(value) for value in DIFFERENT}) == len(DIFFERENT)
    assert hashed({"a": 1, "b": 2.5}) == hashed({"b": np.float64(2.5), "a": np.int64(1)})
    assert hashed(np.arange(6)[::2]) == hashed(np.array([0, 2, 4]))
    assert hashed(np.array([np.nan])) == hashed(-np.array([np.nan]))  # one nan for all machines
    assert hashed(np.arange(3).astype(">i8")) == hashed(np.arange(3))


# --- Cases ----------------------------------------------------------------------------------


def test_cases_are_read(guard: SimpleNamespace) -> None:
    text = "one: a=x b=x c=\n  usual\n  a=y:n=1,z,c=2|3\ntwo: d=x\n  d=,2\n"
    assert list(guard.__main__.cases(text)) == [
        ("one/usual", "one", {"a": "x", "b": "x"}),
        ("one/a=y:n=1,z,c=2", "one", {"a": "y:n=1,z", "b": "x", "c": "2"}),
        ("one/a=y:n=1,z,c=3", "one", {"a": "y:n=1,z", "b": "x", "c": "3"}),
        ("two/d=,2", "two", {"d": ",2"}),
    ]


def test_cases_have_all_names_of_the_library(guard: SimpleNamespace) -> None:
    cases = list(guard.__main__.cases())
    assert len({name for name, _, _ in cases}) == len(cases) > 600
    tried: dict[str, set[str]] = {}
    for _, _, row in cases:
        for factor, value in row.items():
            tried.setdefault(factor, set()).add(value)
    for rule, known in (
        ("backfill", {name.replace(":K", ":3") for name in BACKFILL}),
        ("correction", CORRECTIONS),
        ("passes", PASSES),
        ("partners", PARTNERS),
        ("power", POWER),
        ("allocation", {name.replace("part", "part:3") for name in ALLOCATIONS}),
        ("estimate", ESTIMATES),
        ("env", {environment[len("hpcgym/") : -len("-v0")] for environment in IDS}),
    ):
        assert {*known} <= tried[rule], rule
    # like others but for a number
    rare = {"saf-typical-80h", "aged-safe", "aged-hold", "evolved-hold", "largest-co"}
    named = set().union(*tried.values())
    assert {*POLICIES, *SCHEDULERS, *COSCHEDULERS} - rare <= named
    kinds = {"fcfs-list", "sjf-list", "ljf-list", "prb", "sdprb", "cph-0", "pcp20"}
    assert kinds <= {*DISPATCHERS} & named
    weighed = {name for weights in guard.inputs.WEIGHTS.values() for name in weights}
    assert {*USER_FEATURES} <= weighed
    for name, text in guard.inputs.OF_STATE.items():
        assert name in tried["policy"] | tried["backfill_order"]
        assert read_expression(text).state
    assert {*guard.inputs.NETWORKS} <= tried["policy"] | tried["backfill_order"]
    texts = " ".join(guard.inputs.OF_STATE.values())
    assert {*STATE} <= {*re.findall(r"\w+", texts)}


test_mistakes = mistakes_of(globals(), errors=TypeError, fixtures=("guard",))
