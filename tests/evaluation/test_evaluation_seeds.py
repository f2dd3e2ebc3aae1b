"""Rows of several trainings of one agent."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from boards import TRACE, board_of

from hpcgym.errors import HpcgymError, PolicyWarning
from hpcgym.evaluation import evaluate, lineup
from hpcgym.evaluation.brought import Seeds, read_seeds
from hpcgym.evaluation.lineup import listed

FEW: dict[str, Any] = {"jobs": 100, "n": 5, "budget": 0, "resamples": 300}
ENV: dict[str, Any] = {"env": "hpcgym/JobSelection-v0"}


def place(number: int) -> Any:
    """An agent that selects the job at a place of the window, if there is one."""
    return SimpleNamespace(act=lambda observation, info: min(number, len(info["window"]) - 1))


def test_a_group_is_the_mean_of_its_members() -> None:
    agents = [place(0), place(1), place(5)]
    alone = evaluate(dict(zip("abc", agents, strict=True)), TRACE, **ENV, **FEW)
    board = evaluate({"agent": agents, "b": agents[1]}, TRACE, **ENV, **FEW)
    assert list(board.by_slice)[:2] == ["agent", "b"]
    values = alone.by_slice[["a", "b", "c"]]
    assert np.allclose(board.by_slice["agent"], values.mean(axis=1))
    assert np.array_equal(board.members["mean_bsld"]["agent"], values)
    row = board.table.loc["agent"]
    assert row["seeds"] == 3
    assert board.table.drop("agent")["seeds"].eq(1).all()
    assert row["mean_bsld"] == pytest.approx(values.to_numpy().mean())
    assert row["mean_wait_s"] == pytest.approx(alone.table.loc[list("abc"), "mean_wait_s"].mean())
    assert board.schedulers["agent"] is None
    facts = board.facts()["seeds_by_slice"]["agent"]
    assert next(iter(facts.values())).keys() == {f"agent: seed {k}" for k in range(3)}
    # the others are what they are without it
    for name in ("easy", "random (acting)"):
        assert board.by_slice[name].equals(alone.by_slice[name])


def test_seeds_that_differ_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    slices = rng.normal(10, 1, 50)
    members = pd.DataFrame({f"s{k}": slices + 3 * k for k in range(4)})
    by_slice = {"agent": members.mean(axis=1).tolist(), "alone": members.mean(axis=1).tolist()}
    board = board_of(by_slice, members={"mean_bsld": {"agent": members}})
    wide, narrow = (board.table.loc[name] for name in ("agent", "alone"))
    assert wide["mean_bsld"] == pytest.approx(narrow["mean_bsld"])
    width = wide["mean_bsld_high"] - wide["mean_bsld_low"]
    assert width > 3 * (narrow["mean_bsld_high"] - narrow["mean_bsld_low"])
    # the difference of the two is what the seeds make of it: slices are drawn for both at once
    mean, low, high = board.difference("agent", "alone")
    assert mean == pytest.approx(0)
    every = [np.mean(four) - 4.5 for four in product((0, 3, 6, 9), repeat=4)]
    assert (low, high) == pytest.approx(tuple(np.percentile(every, [2.5, 97.5])), abs=0.4)


def test_text_names_a_group() -> None:
    assert read_seeds("ppo=a.pt, b.pt") == Seeds("ppo", {"a.pt": "a.pt", "b.pt": "b.pt"})
    for other in ("saf:threshold=1", "wait == 3", "runs/lr=1/agent.pt", "0,0,0,1,0,0", 7):
        assert read_seeds(other) == other
    assert listed("ppo=a.pt,b.pt") == [read_seeds("ppo=a.pt,b.pt")]
    assert listed({"ppo": ["a.pt"], "saf2": "saf"})["ppo"] == Seeds("ppo", {"a.pt": "a.pt"})


def test_an_existing_file_is_no_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.pt").touch()
    assert read_seeds("a=b.pt") == "a=b.pt"


def test_files_of_a_group_are_loaded_each(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = {"a.pt": place(0), "b.pt": place(3)}
    monkeypatch.setattr(lineup, "load_agent", loaded.__getitem__)
    board = evaluate(["ppo=a.pt,b.pt", "sjf"], TRACE, **ENV, **FEW)
    assert next(iter(board.by_slice)) == "ppo"
    assert list(board.members["mean_bsld"]["ppo"]) == ["ppo: a.pt", "ppo: b.pt"]
    assert board.by_slice["ppo"].equals(
        evaluate({"ppo": ["a.pt", "b.pt"]}, TRACE, **ENV, **FEW).by_slice["ppo"]
    )


def test_a_member_that_fails_is_said_with_its_group() -> None:
    def act(observation: Any, info: Any) -> int:
        raise ZeroDivisionError("no way")

    agents = [place(0), SimpleNamespace(act=act)]
    with pytest.warns(PolicyWarning, match=r"^mine failed on 5 of 5 slices, first on rows"):
        board = evaluate({"mine": agents}, TRACE, **ENV, **FEW)
    (said,) = {*board.failures.values()}
    assert said.startswith("seed 1: ZeroDivisionError: no way (")
    assert board.by_slice["mine"].isna().all()
    assert board.table.loc["mine", "failed"] == 5


def test_a_group_may_be_the_reference() -> None:
    board = evaluate({"mine": [place(0), place(2)]}, TRACE, reference="mine", **ENV, **FEW)
    assert board.reference == "mine"
    row = board.table.loc["easy"]
    expected = board.difference("easy", "mine")
    found = row[["above_reference", "above_reference_low", "above_reference_high"]]
    assert found.iloc[0] == pytest.approx(expected[0])


@pytest.mark.parametrize(
    ("policies", "message"),
    [
        ({"mine": []}, "mine needs files or policies, such as mine=a.pt,b.pt"),
        ("mine=", "mine needs files or policies"),
        ("mine=a.pt,,b.pt", "mine needs files or policies"),
        ("mine=a.pt,a.pt", "mine: 'a.pt' is there twice"),
        (["mine=a.pt", "mine=b.pt"], "policies: 'mine' is there twice"),
        ("saf=spf,sjf", "the name 'saf' stands for a scheduler"),
        ("random=spf,sjf", "the name 'random' stands for a scheduler"),
        ("mine=spf,sjff", "unknown policy 'sjff'; did you mean 'sjf'"),
        ("mine=no.pt", "no.pt: there is no such file"),
    ],
)
def test_groups_that_cannot_be(policies: Any, message: str) -> None:
    with pytest.raises(HpcgymError) as caught:
        evaluate(policies, TRACE, **FEW)
    assert message in str(caught.value)
