"""Files that are damaged: each is read, or said to be wrong in a line."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from damages import damages

from hpcgym import agents
from hpcgym.errors import HpcgymError
from hpcgym.machine import Failures, cluster_toml, failures_of, find_cluster, read_cluster
from hpcgym.machine.speedups import find_speedups, read_speedups, write_speedups
from hpcgym.schedule.signals import read_signal
from hpcgym.scheduler.policies import FairShare
from hpcgym.study.suite.board import Board, board_of
from hpcgym.study.suite.runs import run
from hpcgym.study.suite.submissions import FACTS, SCHEDULES, read
from hpcgym.study.suite.tasks import find_tasks
from hpcgym.study.sweep import run as sweeps
from hpcgym.study.sweep.experiment import load_experiment
from hpcgym.study.sweep.records import FILE
from hpcgym.study.sweep.run import read_table
from hpcgym.workload import from_pandas, load_workload, write_swf, write_table

_GIVEN = os.environ.get("HPCGYM_DAMAGES", "30,0").split(",")
CASES, SEED = int(_GIVEN[0]), int(_GIVEN[1])

Reader = Callable[[Path], Any]


def trace() -> Any:
    return load_workload("lublin:jobs=12,processors=16,seed=3")


def table(path: Path) -> Reader:
    jobs = trace()
    frame = jobs.to_pandas()[["submit_time", "run_time", "requested_time", "queue"]]
    frame = frame.assign(units=2, core=4, mem="2 GB", code="lu", power_w=1.5)
    write_table(from_pandas(frame, processors=64), path)
    return lambda path: load_workload(path, processors=64)


EXPERIMENT = (
    'schedulers = ["easy", {name = "own", scheduler = "saf", threshold = 18000}]\n'
    'seeds = [0, 1]\nmetrics = ["mean_bsld"]\n{more}'
    '[[workloads]]\nworkload = "lublin:jobs=5,processors=8,seed={seed}"\nname = "made"\n'
)


SHARES = (
    'half_life_s = 3600\ndamping = 2.5\n[shares]\nbiology = 2\n12 = 3\n"-1" = 0.5\n'
    '[accounts]\n12 = "biology"\n14 = "biology"\nbiology = "science"\n'
)
SIGNAL = "datetime,price_eur_per_mwh\n2024-01-01T00:00Z,41.2\n2024-01-01T01:00Z,38.9\n"


def written(text: str, read: Reader) -> Callable[[Path], Reader]:
    """Return what writes a text, and returns what reads it."""

    def write(path: Path) -> Reader:
        path.write_text(text)
        return read

    return write


def swf(path: Path) -> Reader:
    write_swf(trace(), path)
    return load_workload


def failures(path: Path) -> Reader:
    failures_of(find_cluster("eurora"), 10**6, mtbf=10**6, repair=7200).write(path)
    return Failures.read


def speedups(path: Path) -> Reader:
    heatmap = find_speedups("generated:codes=4,seed=1")
    if path.suffix == ".csv":
        codes = ",".join(heatmap.codes)
        rows = [f"{code}" + ",1.25" * 4 for code in heatmap.codes]
        path.write_text("\n".join([f"code,{codes}", *rows]) + "\n")
    else:
        write_speedups(heatmap, path)
    return read_speedups


def loads(path: Path) -> Reader:
    times = {"mg": [[301.0, 299.5], [302.0]], "lu": [[1.5]]}
    load = {"num_of_processes": 64, "compact_timelogs": [2.5, 3.0], "coscheduled_timelogs": times}
    both = [{"load_name": "lu", **load}, json.dumps({"load_name": "mg", **load})]
    path.write_text(json.dumps({"machine": "a", "suite": "b", "loads": both}))
    return read_speedups


def xnes(path: Path) -> Reader:
    agent = agents.xnes.Xnes(budget=3, scheduler="saf")
    agent.weights_, agent.best_, agent.slices_ = {"wait": 0.25, "area": -0.75}, 2.5, ["week 1"]
    agent._rows = [{"evaluations": 1, "value": 3.0}]
    agent.save(path)
    return agents.load


def network(path: Path) -> Reader:
    agent = agents.behaviour_cloning.Clone()
    agent.network = agents.behaviour_cloning.MaskedJobNetwork(8, 12, 4)
    agent.made_for({"features": ["wait"], "window": 16})
    agent.save(path)
    return agents.load


def of_minari(path: Path) -> Reader:
    """A file of a data set; the other ones are as they were."""
    pytest.importorskip("minari")
    folder = path.parent / "set-v0"
    jobs = "lublin:jobs=60,processors=16,seed=1"
    agents.recordings.record(
        "sjf", jobs, folder, jobs=5, record_episodes=2, env_options={"window": 4}
    )
    home = folder / "data"
    file = home / path.name if path.suffix == ".json" else next((home / "0").glob("*.parquet"))
    shutil.copy(file, path)

    def read(path: Path) -> Any:
        shutil.copy(path, file)
        return agents.recordings.load_recording(folder)

    return read


def checkpoint(path: Path) -> Reader:
    known = agents.search.Checkpoint(path, "these")
    known.add(np.ones((4, 2)))
    known.add(np.ones((3, 2)))
    known.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)  # it is kept
    return lambda path: agents.search.Checkpoint(path, "these")


#: Name of a file -> what writes a right one, and returns what reads it.
KINDS: dict[str, Callable[[Path], Reader]] = {
    "log.swf": swf,
    "log.swf.gz": swf,
    "jobs.csv": table,
    "jobs.csv.gz": table,
    "jobs.json": table,
    "jobs.parquet": table,
    "machine.toml": written(cluster_toml(find_cluster("eurora")), read_cluster),
    "experiment.toml": written(EXPERIMENT.replace("{more}", "shuffles = 2\n"), load_experiment),
    "shares.toml": written(SHARES, FairShare.read),
    "speedups.csv": speedups,
    "speedups.json": speedups,
    "loads.json": loads,
    "signal.csv": written(SIGNAL, lambda path: read_signal(path, time_zero=0)),
    "failures.csv": failures,
    "xnes.json": xnes,
    "network.pt": network,
    "metadata.json": of_minari,
    "part-0.parquet": of_minari,
    "checkpoint.npz": checkpoint,
}


def check(read: Callable[..., Any], path: Path, number: int, content: bytes) -> bool:
    """Whether a file is read; anything but one line on what is wrong fails."""
    said = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path)
    except HpcgymError as error:
        said = str(error)
    except Exception as error:
        what = f"{path.name} {number}: {type(error).__name__}: {error}\n{content[:400]!r}"
        pytest.fail(what)
    assert said.isprintable()
    assert len(said) < 2100
    return not said


@pytest.mark.parametrize("name", KINDS)
def test_a_damaged_file_is_read_or_said_to_be_wrong(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    read = KINDS[name](path)
    content = path.read_bytes()
    assert check(read, path, -1, content)
    is_text = path.suffix in (".swf", ".csv", ".json", ".toml")
    results = []
    for number, damaged in enumerate(damages(content, is_text, CASES, (name, SEED))):
        path.write_bytes(damaged)
        results.append(check(read, path, number, damaged))
    sys.stdout.write(f"{name}: {len(results)} damages, {sum(results)} read\n")
    assert not all(results)
    if path.suffix == ".gz":  # what is damaged inside, too
        inside = gzip.decompress(content)
        for number, damaged in enumerate(damages(inside, True, CASES, (name, SEED, "inside"))):
            path.write_bytes(gzip.compress(damaged, mtime=0))
            check(read, path, number, damaged)


def resume(folder: Path) -> Any:
    return sweeps.resume(folder, "serial")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sweeps")
    (folder / "made.toml").write_text(EXPERIMENT.replace("{more}", ""))
    sweeps.run_experiment(folder / "made.toml", folder / "made", "serial")
    return folder / "made"


def test_a_damaged_sweep_goes_on_or_says_what_is_wrong(sweep: Path, tmp_path: Path) -> None:
    content = (sweep / FILE).read_bytes()
    shutil.copy(sweep.parent / "made.toml", tmp_path)
    (folder := tmp_path / "made").mkdir()
    for number, damaged in enumerate(damages(content, False, 4 * CASES, (FILE, SEED))):
        (folder / FILE).write_bytes(damaged)
        for do in (sweeps.status, read_table, resume):
            check(do, folder, number, damaged)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "easy"
    run("easy", find_tasks("mini-order"), folder)
    return folder


@pytest.mark.parametrize("name", [FACTS, f"{SCHEDULES}/mini-order/mini/0.npz"])
def test_a_damaged_submission_is_proved_or_said_to_be_wrong(
    name: str, made: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "made"
    shutil.copytree(made, folder)
    content = (made / name).read_bytes()
    equal = 0
    for damaged in damages(content, name == FACTS, CASES, (name, SEED)):
        (folder / name).write_bytes(damaged)
        board, said = Board({}, {}), ""
        try:
            board = board_of([read(folder)])
        except HpcgymError as error:
            said = str(error)
        assert said.isprintable()
        equal += bool(board.found) and not board.failed
        assert all(proof.text.isprintable() for _, proof in board.failed)
        assert len(board.table) == len(board.found) <= 1
    assert equal < CASES
