"""``hpcgym evaluate --protocol prequential``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from commands import succeed

from hpcgym.evaluation import prequential

LOG = "lublin:jobs=1500,processors=32,seed=5,load=1.0"
ONE_PASS = ("evaluate", "--workload", LOG, "--protocol", "prequential", "--budget", "10")


def test_the_table_and_the_files(tmp_path: Path) -> None:
    done = succeed(*ONE_PASS, "weight-bandit", "--output", tmp_path / "new")
    assert "one pass, weights for day, 1,500 jobs of" in done.stdout
    assert "weight-bandit: " in done.stdout
    assert "against saf" in done.stdout
    assert "best fixed, in hindsight: " in done.stdout
    names = ["board.csv", "regret.csv", "regret.png", "weeks.csv"]
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == names


def test_json_and_csv_are_the_board() -> None:
    done = succeed(*ONE_PASS, "weight-bandit", "--slices", "test", "--format", "json")
    board = prequential("weight-bandit", LOG, part="test", budget=10)
    value = json.loads(done.stdout)
    rows = {row["policy"]: row for row in value["policies"]}
    assert list(rows) == list(board.table.index)
    for name, expected in board.table.iterrows():
        for column, number in expected.items():
            told = rows[name][column]
            assert told == number or (told is None and number != number)
    assert len(value["weeks"]) == len(value["regret"]) == len(board.regret)
    assert value["regret"][-1]["saf"] == board.regret.iloc[-1]["saf"]
    done = succeed(*ONE_PASS, "weight-bandit", "--interval", "12h", "--format", "csv")
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    assert {line["policy"] for line in lines} == set(rows)
    assert done.stderr.count("no 95 % intervals: they need 5 blocks of") == 1


def test_a_module_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
class Shortest:
    features = ("requested",)
    def act(self, observation, info):
        return [-1]
"""
    (tmp_path / "some_learner.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    done = succeed(
        *ONE_PASS, "some_learner:Shortest", "spf", "--interval", "100", "--format", "csv"
    )
    rows = {line["policy"]: line for line in csv.DictReader(io.StringIO(done.stdout))}
    assert rows["some_learner:Shortest"]["mean_bsld"] == rows["spf"]["mean_bsld"]
