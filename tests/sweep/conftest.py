"""What tests of sweeps share: a small experiment and what it gives in one process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from hpcgym.sweep import run_experiment
from hpcgym.sweep.run import origin_of
from hpcgym.workload import load_workload, write_swf

EXPERIMENT = """
schedulers = ["easy", { name = "saf-20h", scheduler = "saf", threshold = 72000 }]
seeds = [3, 4]
metrics = ["jobs", "mean_bsld", "max_wait_s", "mean_bsld_long"]

[[workloads]]
workload = "lublin:jobs=120,processors=16,load=0.9,seed={seed}"
name = "generated"

[[workloads]]
workload = "data/small.swf.gz"
clean = "legrand"
slices = "weeks"
last = 2
"""


@pytest.fixture(scope="session")
def write_experiment() -> Callable[[Path], Path]:
    """Return a function that writes the experiment and its trace into a folder."""

    def write(folder: Path) -> Path:
        (folder / "data").mkdir(parents=True)
        jobs = load_workload("lublin:jobs=2000,processors=32,load=0.3,seed=1")
        write_swf(jobs, folder / "data" / "small.swf.gz")
        path = folder / "small.toml"
        path.write_text(EXPERIMENT)
        return path

    return write


@pytest.fixture(scope="session")
def experiment(
    tmp_path_factory: pytest.TempPathFactory, write_experiment: Callable[[Path], Path]
) -> Path:
    """Return the experiment; nobody changes its folder."""
    return write_experiment(tmp_path_factory.mktemp("experiment") / "here")


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory, experiment: Path) -> Path:
    """Return the sweep of the experiment as it comes out in this process."""
    folder = tmp_path_factory.mktemp("reference") / "sweep"
    run_experiment(experiment, folder, "serial")
    return folder


@pytest.fixture
def sweep(tmp_path: Path, reference: Path) -> Path:
    """A whole sweep; its experiment is elsewhere."""
    folder = tmp_path / "sweep"
    shutil.copytree(reference, folder)
    (folder / "origin").write_text(str(origin_of(reference)))
    return folder
