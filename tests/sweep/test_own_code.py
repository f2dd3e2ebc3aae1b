"""Dispatchers and policies of users' own modules in sweeps, beside ``hpcgym.simulate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hpcgym
from hpcgym.errors import HpcgymError
from hpcgym.sweep import load_experiment, read_table, resume, run_experiment

MODULE = '''
import numpy as np


class Turns:
    """Takes the widest jobs first and the narrowest in turn: what it does depends on its state."""

    def __init__(self):
        self.passes = 0

    def __call__(self, view):
        self.passes += 1
        sign = 1 if self.passes % 2 else -1
        return view.in_order(np.argsort(sign * view.processors, kind="stable"))


def score(view):
    return -view.requested


thing = Turns()
'''

EXPERIMENT = """
schedulers = [
    "easy", { name = "mine", dispatcher = "%(module)s:Turns" },
    { name = "scored", policy = "%(module)s:score" }]
seeds = [1, 2]
metrics = ["mean_wait_s"]
[[workloads]]
workload = "lublin:jobs=60,processors=16,load=0.5,seed={seed}"
"""


@pytest.fixture
def experiment(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    name = f"own_{abs(hash(request.node.name)) % 10**8}"  # modules stay imported
    (tmp_path / f"{name}.py").write_text(MODULE)
    path = tmp_path / "own.toml"
    path.write_text(EXPERIMENT % {"module": name})
    yield path
    sys.modules.pop(name, None)


def module_of(path: Path) -> Path:
    (file,) = path.parent.glob("own_*.py")
    return file


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_own_code_does_in_sweeps_what_it_does_in_python(
    experiment: Path, tmp_path: Path, executor: str
) -> None:
    found = run_experiment(experiment, tmp_path / "sweep", executor, workers=None)
    assert (found.done, found.failed) == (6, 0)
    table = read_table(tmp_path / "sweep").set_index(["seed", "scheduler"])["mean_wait_s"]
    code: dict[str, Any] = {}
    exec(MODULE, code)
    for seed in (1, 2):
        jobs = hpcgym.load_workload(f"lublin:jobs=60,processors=16,load=0.5,seed={seed}")
        turns = hpcgym.simulate(jobs, code["Turns"]())
        shortest = hpcgym.simulate(jobs, "easy", policy="spf")
        assert table[seed, "mine"] == turns.metrics["mean_wait_s"]
        assert table[seed, "scored"] == shortest.metrics["mean_wait_s"]
    file = module_of(experiment)
    file.write_text(file.read_text() + "\n# changed")
    with pytest.raises(HpcgymError, match=file.name):
        resume(tmp_path / "sweep", "serial")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":Turns", ":thing", r"\[1\]\.dispatcher.* must be a function or a class, not an object"),
        (":Turns", ":Trns", r"\[1\]\.dispatcher.* there is no 'Trns' in it"),
        (":score", "_gone:score", r"\[2\]\.policy: .* there is no module"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(
    experiment: Path, old: str, new: str, message: str
) -> None:
    experiment.write_text(experiment.read_text().replace(old, new))
    with pytest.raises(HpcgymError, match=f"schedulers{message}"):
        load_experiment(experiment)


def test_a_module_of_that_name_elsewhere_is_not_taken_for_it(
    experiment: Path, tmp_path: Path
) -> None:
    load_experiment(experiment)
    other = tmp_path / "other"
    other.mkdir()
    (other / "own.toml").write_text(experiment.read_text())
    (other / module_of(experiment).name).write_text(MODULE)
    with pytest.raises(HpcgymError, match="was imported before"):
        load_experiment(other / "own.toml")
