"""Experiments in which jobs share nodes: speedups, shuffles, machines, what the manifest names."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mistakes import assert_told
from typer.testing import CliRunner

from hpcgym import generate_speedups, load_workload, simulate
from hpcgym.cli import app
from hpcgym.errors import HpcgymError
from hpcgym.speedups import Heatmap, read_speedups, write_speedups
from hpcgym.sweep import (
    read_table,
    resume,
    run_experiment,
)
from hpcgym.sweep.run import read_manifest
from hpcgym.workload import assign_codes, shuffled
from hpcgym.workload.io.files import sha256_of

EXPERIMENT = """
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

MACHINE = '[[group]]\nname = "node"\nnodes = 8\ncore = 8\nsockets = 2\n'

ENOUGH = """
schedulers = ["easy"]
[[workloads]]
workload = "codes:speedups=generated:codes=4,processes=8,jobs=9"
cluster = "4x2x2"
"""


def write(folder: Path) -> Path:
    """Write the experiment and its files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    given = generate_speedups(4, seed=1)
    speedup = given.speedup.copy()
    speedup[0, 1] = np.nan
    pairs = Heatmap(given.codes, speedup, processes=np.full(4, 20), compact_s=[90, 200, 300, 400])
    write_speedups(pairs, folder / "pairs.json")
    write_speedups(generate_speedups(4, seed=9), folder / "false.csv")
    (folder / "small.toml").write_text(MACHINE)
    (folder / "shared.toml").write_text(EXPERIMENT)
    return folder / "shared.toml"


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the experiment, with its sweep; nobody changes it."""
    folder = tmp_path_factory.mktemp("shared")
    run_experiment(write(folder / "here"), folder / "sweep", "serial")
    return folder


# --- What is simulated ----------------------------------------------------------------------------


def test_the_table_has_what_simulate_gives(done: Path) -> None:
    table = read_table(done / "sweep")
    assert list(table.columns) == [
        "workload", "speedups", "slice", "seed", "shuffle", "scheduler",
        "makespan_s", "mean_job_speedup", "makespan_improvement",
    ]  # fmt: skip
    assert len(table) == 2 * 2 * 2 * 3
    here = done / "here"
    codes = load_workload(f"codes:speedups={here / 'pairs.json'},jobs=40,seed=1")
    lublin = assign_codes(
        load_workload("lublin:jobs=3000,processors=128,load=0.5"),
        generate_speedups(4).codes,
        seed=7,
    )
    week = lublin.weeks()[0]
    parts = {
        ("codes", "whole"): (codes, here / "small.toml"),
        ("weeks", f"week {week.name.split()[-1]}"): (week, "16x2x4"),
    }
    rules: dict[str, dict[str, Any]] = {
        "strict": {"pairs_above": 1.0, "pair_estimate": read_speedups(here / "false.csv")}
    }
    pairs = {"pairs.json": here / "pairs.json"}
    for row in table.to_dict("records"):
        jobs, machine = parts[row["workload"], row["slice"]]
        name = {"strict": "filler-co"}.get(row["scheduler"], row["scheduler"])
        found = simulate(
            shuffled(jobs, row["shuffle"]), name, cluster=machine,
            speedups=pairs.get(row["speedups"], row["speedups"]), **rules.get(row["scheduler"], {}),
        )  # fmt: skip
        assert row["makespan_s"] == found.metrics["makespan_s"]
        assert row["mean_job_speedup"] == found.metrics["mean_job_speedup"]


def test_makespans_improve_over_the_first_scheduler_on_the_same_jobs(done: Path) -> None:
    table = read_table(done / "sweep")
    assert not table["makespan_improvement"][table["scheduler"] == "easy"].any()
    keys = ["workload", "speedups", "slice", "shuffle"]
    for _, rows in table.groupby(keys):
        easy, *others = rows.to_dict("records")
        for row in others:
            assert row["makespan_improvement"] == easy["makespan_s"] / row["makespan_s"] - 1
    assert table["makespan_improvement"].any()


def test_an_improvement_is_missing_without_its_first(done: Path, tmp_path: Path) -> None:
    shutil.copytree(done / "sweep", tmp_path / "sweep")
    results = tmp_path / "sweep" / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    first = next(line for line in lines if '"scheduler":"easy"' in line)
    results.write_text("".join(line for line in lines if line != first))
    table = read_table(tmp_path / "sweep")
    assert table["makespan_improvement"].isna().sum() == 2


def test_the_table_for_people(done: Path) -> None:
    result = CliRunner().invoke(app, ["sweep", "table", str(done / "sweep")])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert "makespan" in lines[0]
    assert "95 %" in lines[0]
    assert "improvement (%)" in lines[1]
    assert "interval" in lines[1]
    (easy,) = (line for line in lines if line.split()[:3] == ["codes", "pairs.json", "easy"])
    assert easy.split()[3] == "2"
    few = "no 95 % intervals: they need 5 simulations or more, and there are 2"
    assert lines[-1].strip() == f"makespans improve over those of easy; {few}"
    assert all("- " in line for line in lines if " codes " in f" {line}" and "easy" in line)
    rows = read_table(done / "sweep")
    best = rows[(rows["workload"] == "codes") & (rows["speedups"] == "pairs.json")]
    means = best.groupby("scheduler")["makespan_s"].mean()
    (line,) = (
        line for line in lines if line.split()[:3] == ["codes", "pairs.json", means.idxmin()]
    )
    assert line.split()[4].endswith("*")


def test_shuffles_and_machines_need_no_speedups(tmp_path: Path) -> None:
    path = tmp_path / "plain.toml"
    path.write_text(
        'schedulers = ["easy", { name = "worst", allocation = "worst-fit" }]\nshuffles = [3, 1]\n'
        '[[workloads]]\nworkload = "lublin:jobs=60,processors=16"\ncluster = "4x2x2"\n'
    )
    run_experiment(path, tmp_path / "sweep", "serial")
    table = read_table(tmp_path / "sweep")
    assert table["shuffle"].tolist() == [3, 3, 1, 1]
    assert "makespan_improvement" not in table
    jobs = load_workload("lublin:jobs=60,processors=16", cluster="4x2x2")
    for row in table.to_dict("records"):
        found = simulate(shuffled(jobs, row["shuffle"]), cluster="4x2x2")
        assert row["mean_bsld"] == found.metrics["mean_bsld"]


# --- The manifest ---------------------------------------------------------------------------------


def test_the_manifest_names_speedups_and_seeds(done: Path) -> None:
    manifest = read_manifest(done / "sweep")
    here = done / "here"
    heatmap = read_speedups(here / "pairs.json")
    first, second = manifest["speedups"]
    assert first == {**heatmap.describe(), "source": "pairs.json"}
    assert (first["unknown_pairs"], first["digest"]) == (1, heatmap.digest)
    assert second["source"] == "generated:codes=4,mean=1.2,seed=7"
    assert second["digest"] == generate_speedups(4, 1.2, seed=7).digest
    assert manifest["shuffles"] == [0, 1]
    codes, weeks = manifest["workloads"]
    assert (codes["cluster"], weeks["cluster"], weeks["codes"]) == ("small.toml", "16x2x4", 7)
    assert "codes" not in codes
    pairs = sha256_of(here / "pairs.json")
    assert manifest["inputs_sha256"] == {
        "pairs.json": pairs,
        "codes:speedups=pairs.json,jobs=40,seed=1": pairs,
        "false.csv": sha256_of(here / "false.csv"),
        "small.toml": sha256_of(here / "small.toml"),
    }
    assert manifest["schedulers"]["strict"]["pair_estimate"] == "false.csv"


@pytest.fixture
def half(done: Path, tmp_path: Path) -> Path:
    """A copy of the experiment and its sweep, of which half is done."""
    shutil.copytree(done, tmp_path, dirs_exist_ok=True)
    results = tmp_path / "sweep" / "results.jsonl"
    results.write_text("".join(results.read_text().splitlines(keepends=True)[:12]))
    return tmp_path


@pytest.mark.parametrize("name", ["pairs.json", "false.csv", "small.toml"])
def test_a_changed_file_is_refused(half: Path, name: str) -> None:
    with (half / "here" / name).open("a") as file:
        file.write("\n")
    with pytest.raises(HpcgymError, match=f"the file of {re.escape(name)} has changed") as caught:
        resume(half / "sweep", "serial")
    assert "\n" not in str(caught.value)
    (half / "here" / name).unlink()
    with pytest.raises(HpcgymError, match=re.escape(name)):
        resume(half / "sweep", "serial")


# --- The file -------------------------------------------------------------------------------------


def shared(text: str = "", scheduler: str = '"easy-co"', speedups: str = '"generated"') -> str:
    """An experiment with speedups, and this at its end."""
    first = ENOUGH.replace('"easy"', scheduler)
    return f"speedups = {speedups}\n{first}{text}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENOUGH.replace("easy", "easy-co"), "schedulers[0]: jobs share nodes under 'easy-co'; spe"),
        (f"{ENOUGH}codes = 1", "workloads[0].codes needs speedups, which have the codes"),
        (f"{ENOUGH}processors = 8", "workloads[0]: either cluster or processors, not both"),
        (f"{ENOUGH}codes = -1", "workloads[0].codes is a seed of at least 0, not -1"),
        (ENOUGH.replace("4x2x2", "4x2"), "workloads[0].cluster: a machine of equal nodes is"),
        (ENOUGH.replace("4x2x2", "no.toml"), "workloads[0].cluster: no.toml: there is no such"),
        (ENOUGH.replace("4x2x2", "kurie"), "workloads[0].cluster: unknown machine 'kurie'"),
        (f"shuffles = 0\n{ENOUGH}", "shuffles must be how many, from 1 to 100,000, or a list of"),
        (f"shuffles = 100_001\n{ENOUGH}", "shuffles must be how many, from 1 to 100,000"),
        (f"shuffles = [1, -1]\n{ENOUGH}", "or a list of seeds of at least 0, not [1, -1]"),
        (f"shuffles = [1, 1]\n{ENOUGH}", "shuffles: 1 is there twice"),
        (f"shuffles = true\n{ENOUGH}", "shuffles must be how many"),
        (shared(speedups="3"), "speedups must be a list, each entry a name, not 3"),
        (shared(speedups="['generated', 'generated']"), "speedups: 'generated' is there twice"),
        (shared(speedups='"no.csv"'), "speedups[0]: no.csv: there is no such file; speedups"),
        (shared(speedups="'generated:code=1'"), "speedups[0]: unknown argument of generated"),
        (shared(speedups="'generated:codes=2'"), "workloads[0]: codes random x 9 seed 0: job"),
        (shared(scheduler="'easy++'"), "schedulers[0]: estimate='ave2' and speedups of"),
        (shared().replace('cluster = "4x2x2"', ""), "workloads[0].cluster is missing: speedups"),
        (
            shared().replace("4x2x2", "8x2x1"),
            "schedulers[0] on workloads[0].cluster: allocation 'half-socket': sockets of 1 cores",
        ),
        (
            shared(scheduler="{ name = 'a', scheduler = 'easy-co', pair_estimate = 'no.csv' }"),
            "schedulers[0].pair_estimate: no.csv: there is no such file; speedups",
        ),
        (
            shared(scheduler="{ name = 'a', scheduler = 'easy-co', partners = 'no' }"),
            "schedulers[0]: unknown partners 'no'",
        ),
        (
            shared(scheduler="{ name = 'a', pair_estimate = 'generated:codes=2' }"),
            "schedulers[0]: pair_estimate knows no code 'code-3'",
        ),
        (
            shared(scheduler="{ name = 'filler-co' }"),
            "schedulers[0].name: 'filler-co' stands for a scheduler; choose another",
        ),
        (
            shared('[[workloads]]\nworkload = "lublin:jobs=9,processors=4"\ncluster = "4x2x2"'),
            "workloads[1]: lublin-4 seed 0: job 1 has no code: no line 'Code' of the header"
            " names its executable, -1; so it is with 9 of 9 jobs; codes = SEED gives all jobs",
        ),
        (
            f"metrics = ['mean_jobs_speedup']\n{shared()}",
            "unknown metrics[0] 'mean_jobs_speedup'; did you mean 'mean_job_speedup'",
        ),
        (
            ENOUGH.replace("speedups=generated:codes=4", "speedups=no.json"),
            "workloads[0]: no.json: there is no such file; speedups",
        ),
    ],
)
def test_a_mistake_is_named_before_anything_runs(text: str, message: str, tmp_path: Path) -> None:
    assert_told(text, message, tmp_path)
