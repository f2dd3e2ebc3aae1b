"""Experiments: what a file means, and what is wrong with it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sweep_rules
from mistakes import mistakes_of

from hpcgym import Scheduler, generate_speedups, load_workload, simulate
from hpcgym.baselines.dispatchers import DISPATCHERS
from hpcgym.baselines.schedulers import COSCHEDULERS, SCHEDULERS
from hpcgym.errors import HpcgymError
from hpcgym.machine import Failures
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.limits import PowerCap
from hpcgym.study import load_experiment, read_table, resume, run_experiment
from hpcgym.study.sweep.run import Tasks, make_manifest, read_manifest
from hpcgym.study.sweep.simulations import Source
from hpcgym.workload import assign_codes, write_swf

JOBS = "lublin:jobs=50,processors=16"
ENOUGH = f'schedulers = ["easy"]\n[[workloads]]\nworkload = "{JOBS}"\n'


def under(schedulers: str, text: str = ENOUGH) -> str:
    """An experiment with these schedulers."""
    return text.replace('"easy"', schedulers)


def rule(rules: str, text: str = ENOUGH) -> str:
    """An experiment with a scheduler that has these rules."""
    return under(f"{{ name = 'a', {rules} }}", text)


def on(workload: str) -> str:
    """An experiment with this workload."""
    return ENOUGH.replace(JOBS, workload)


# --- The file -------------------------------------------------------------------------------------


def test_a_file_has_workloads_schedulers_seeds_and_metrics(experiment: Path) -> None:
    read = load_experiment(experiment)
    assert [source.name for source in read.workloads] == ["generated", "data/small.swf.gz"]
    assert read.workloads[1] == Source("data/small.swf.gz", clean="legrand", slices="weeks", last=2)
    saf = Scheduler(policy="saf", backfill_order="spf", threshold=72_000)
    assert read.schedulers == {"easy": Scheduler(), "saf-20h": saf}
    assert read.seeds == (3, 4)


def test_tasks_are_all_combinations_of_a_workload_at_a_time(experiment: Path) -> None:
    manifest = make_manifest(load_experiment(experiment))
    rows = [
        (task["workload"], task["slice"], task["seed"], task["scheduler"])
        for task in Tasks(manifest)
    ]
    both = ("easy", "saf-20h")
    assert rows == [
        *(("generated", "whole", seed, name) for seed in (3, 4) for name in both),
        *(("data/small.swf.gz", f"week {n}", None, name) for n in (1, 2) for name in both),
    ]
    assert manifest["tasks"] == len(rows)


def test_a_file_may_have_its_seed_in_its_name(tmp_path: Path) -> None:
    for seed in (1, 2):
        jobs = load_workload(f"lublin:jobs=30,processors=8,seed={seed}")
        write_swf(jobs, tmp_path / f"jobs-{seed}.swf")
    path = tmp_path / "seeds.toml"
    path.write_text("seeds = [1, 2]\n" + on("jobs-{seed}.swf"))
    run_experiment(path, tmp_path / "sweep", "serial")
    inputs = read_manifest(tmp_path / "sweep")["inputs_sha256"]
    assert sorted(inputs) == ["jobs-1.swf", "jobs-2.swf"]
    assert read_table(tmp_path / "sweep")["seed"].tolist() == [1, 2]


def test_files_are_beside_the_experiment_and_the_manifest_has_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "here").mkdir()
    (folder / "qos.txt").write_text("Name|MaxJobsPU\nnormal|\nday|2\n")
    outages = Failures(np.array([0, 1]), np.array([5, 5]), np.array([15, 15]))
    outages.write(folder / "outages.csv")
    path = folder / "files.toml"
    path.write_text(
        "[[schedulers]]\nname = 'a'\nquota = 'qos.txt'\n"
        "[[schedulers]]\nname = 'b'\nmaintenance = 'outages.csv'\n"
        f"[[workloads]]\nworkload = '{JOBS}'\ncluster = '4x2x4'\n"
    )
    monkeypatch.chdir(tmp_path)  # not where the experiment is
    with pytest.warns():  # no job of the generator is in that queue
        run_experiment("here/files.toml", "sweep", "serial")
    rules = read_manifest(tmp_path / "sweep")["schedulers"]
    assert rules["a"]["quota"] == "queue=day/user:jobs=2"
    assert rules["b"]["maintenance"] == "5/15:nodes=0-1"
    (folder / "qos.txt").unlink()  # its text is kept
    assert resume(tmp_path / "sweep", "serial").done == 2


# --- Mistakes -------------------------------------------------------------------------------------

#: An experiment on nodes, which jobs may share.
NODES = (
    'schedulers = ["easy"]\n[[workloads]]\n'
    'workload = "codes:speedups=generated:codes=4,processes=8,jobs=9"\ncluster = "4x2x2"\n'
)
SHARED = f'speedups = "generated"\n{NODES}'
#: An experiment under limits.
CAP = 'cap = "watts=9000"'
LIMITED = f'{ENOUGH}cluster = "taurus"\n[[limits]]\nname = "a"\n{CAP}\n'


@pytest.mark.parametrize("machine", ["4x2x4", "shared", "taurus", None])
@pytest.mark.filterwarnings("ignore")
def test_what_is_refused_with_jobs_is_refused_without(machine: str | None) -> None:
    """So that experiments can be checked by simulating no jobs."""
    jobs, how = load_workload("lublin:jobs=12,processors=16,seed=1"), {"cluster": machine}
    if machine == "shared":
        how = {"cluster": "4x2x2", "speedups": (pairs := generate_speedups(4))}
        jobs = assign_codes(jobs, pairs.codes, seed=1)
    if machine == "taurus":
        how["limits"] = [PowerCap(9000)]
    nobody = jobs.take(slice(0, 0))
    estimates = [
        {key: estimate} for estimate in ESTIMATES for key in ("estimate", "policy_estimate")
    ]
    allocations = [
        {"allocation": allocation} for allocation in ("worst-fit", "contiguous", "part:2")
    ]
    powers = [{"power": power} for power in ("shut", "dvfs", "mix", "energy-bud")]
    given = [{"scheduler": scheduler} for scheduler in (*SCHEDULERS, *COSCHEDULERS, *DISPATCHERS)]
    others: list[dict[str, Any]] = [{"passes": "per-event"}, {"maintenance": "10/20:nodes=0"}]
    refused = []
    for rules in (*given, *estimates, *allocations, *powers, *others):
        messages = []
        for some in (jobs, nobody):
            try:
                simulate(some, **how, **rules)
            except HpcgymError as error:
                messages.append(str(error))
        assert len(messages) in (0, 2), (rules, messages)
        refused.append(len(messages) == 2)
    assert 0 < sum(refused) < len(refused)


#: A log that does not tell the user of any job.
NOBODY = "submit_time,run_time,requested_processors,requested_time\n0,10,1,20\n"


def wrong(folder: Path, text: str) -> None:
    """Run an experiment whose error names its file, before there is anything of a sweep."""
    (folder / "rules.py").write_text("thing = 3\n\n\ndef score(view):\n    return 0\n")
    path = folder / "wrong.toml"
    path.write_text(text)
    try:
        run_experiment(path, folder / "sweep", "serial")
    except HpcgymError as error:
        raise HpcgymError(str(error).removeprefix(f"{path}: ")) from None
    finally:
        sys.modules.pop("rules", None)
        assert not (folder / "sweep").exists()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """An experiment with rules of its own, in a module that is forgotten at the end."""
    text = Path(sweep_rules.__file__).read_text()
    for folder in (tmp_path, tmp_path / "other"):
        folder.mkdir(exist_ok=True)
        (folder / "forgotten.py").write_text(text)
        (folder / "own.toml").write_text(rule("dispatcher = 'forgotten:Turns'"))
    yield tmp_path / "own.toml"
    sys.modules.pop("forgotten", None)


def test_a_module_is_the_one_beside_the_experiment_and_as_it_was(own: Path) -> None:
    folder = own.parent / "sweep"
    run_experiment(own, folder, "serial")
    with pytest.raises(HpcgymError, match="was imported before"):
        load_experiment(own.parent / "other" / "own.toml")
    with (own.parent / "forgotten.py").open("a") as file:
        file.write("\n# changed")
    with pytest.raises(HpcgymError, match=r"forgotten\.py has changed"):
        resume(folder, "serial")


test_mistakes = mistakes_of(globals(), fixtures=("monkeypatch",))
