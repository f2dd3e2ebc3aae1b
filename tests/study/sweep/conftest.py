"""What tests of sweeps share: small experiments and what they give in one process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sweep_files import cut, resealed

from hpcgym import generate_speedups
from hpcgym.machine.speedups import Heatmap, write_speedups
from hpcgym.study import run_experiment
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

SHARED = """
schedulers = [
    "easy",
    "easy-co",
    { name = "strict", scheduler = "filler-co", pairs_above = 1.0, pair_estimate = "false.csv" },
]
speedups = ["pairs.json", "generated:codes=4,mean=1.2,seed=7"]
shuffles = 2
metrics = ["makespan_s", "mean_job_speedup"]

[[workloads]]
workload = "codes:speedups=pairs.json,jobs=40,seed=1"
name = "codes"
cluster = "small.toml"

[[workloads]]
workload = "lublin:jobs=3000,processors=128,load=0.5"
name = "weeks"
cluster = "16x2x4"
codes = 7
slices = "weeks"
last = 1
"""

GROUPS = """
schedulers = ["easy", "saf"]
metrics = ["mean_bsld", "mean_wait_s", "utilization"]
by = ["class", "user"]
[[workloads]]
workload = "small.swf"
slices = "weeks"
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


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the sweep of an experiment whose jobs share nodes; nobody changes it."""
    folder = tmp_path_factory.mktemp("shared")
    (here := folder / "here").mkdir()
    given = generate_speedups(4, seed=1)
    speedup = given.speedup.copy()
    speedup[0, 1] = np.nan
    pairs = Heatmap(given.codes, speedup, processes=np.full(4, 20), compact_s=[90, 200, 300, 400])
    write_speedups(pairs, here / "pairs.json")
    write_speedups(generate_speedups(4, seed=9), here / "false.csv")
    (here / "small.toml").write_text('[[group]]\nname = "n"\nnodes = 8\ncore = 8\nsockets = 2\n')
    (here / "shared.toml").write_text(SHARED)
    run_experiment(here / "shared.toml", folder / "sweep", "serial")
    return folder


@pytest.fixture(scope="session")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a sweep that keeps metrics of classes and users; nobody changes it."""
    here = tmp_path_factory.mktemp("groups")
    write_swf(load_workload("lublin:jobs=1500,processors=32,load=0.3,seed=1"), here / "small.swf")
    (here / "groups.toml").write_text(GROUPS)
    run_experiment(here / "groups.toml", here / "sweep", "serial")
    return here / "sweep"


@pytest.fixture
def whole(tmp_path: Path, experiment: Path, reference: Path) -> Path:
    """A sweep that is done, beside its experiment, both to be changed."""
    shutil.copytree(experiment.parent, tmp_path / "here")
    shutil.copytree(reference, tmp_path / "sweep")
    resealed(tmp_path / "sweep", "origin", "../here")
    return tmp_path / "sweep"


@pytest.fixture
def half(whole: Path) -> Path:
    """A sweep of which half is done, beside its experiment, both to be changed."""
    cut(whole, 4)
    return whole
