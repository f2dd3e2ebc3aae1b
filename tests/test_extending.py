"""Names that other packages give: the example is installed, and broken packages are written."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from mistakes import mistakes_of
from test_repository import EXAMPLE, ROOT, blocks

import hpcgym
from hpcgym import own_code
from hpcgym.baselines.schedulers import find_scheduler
from hpcgym.cli.names import KINDS
from hpcgym.errors import WorkloadWarning
from hpcgym.machine import find_cluster, machine_names
from hpcgym.study import evaluate
from hpcgym.study.evaluation.policies import find_policy
from hpcgym.workload.load import format_of

TALLY = "tally 64\n0 3600 16\n10 7200 60\n20 100 4\n"
EXPERIMENT = """\
schedulers = ["easy", "narrow", { name = "early", scheduler = "patient", threshold = 7200 }]
[[workloads]]
workload = "waves:jobs=40,seed=2"
cluster = "corner"
[[workloads]]
workload = "mine.tally"
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip has installed the example, without the network."""
    folder = tmp_path_factory.mktemp("extending")
    shutil.copytree(EXAMPLE, folder / "source")  # a build writes beside what it builds
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    command = [sys.executable, "-m", "pip", "install", *options, "--target", folder / "site"]
    run = subprocess.run([*command, folder / "source"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "site"


@pytest.fixture
def look_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Path], None]]:
    """What lets this process find a folder of packages, as if it had just begun."""

    def find(folder: Path) -> None:
        monkeypatch.syspath_prepend(folder)
        own_code.others.cache_clear()

    used = dict(own_code._USED)
    own_code.others.cache_clear()
    yield find
    own_code.others.cache_clear()
    own_code._USED.clear()
    own_code._USED.update(used)
    for name in ("hpcgym_example", "broken"):
        sys.modules.pop(name, None)


def package(folder: Path, points: str, code: str = "", name: str = "broken") -> Path:
    """A package as pip installs it, of one module ``broken``."""
    information = folder / f"{name}-0.3.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3\n")
    (information / "entry_points.txt").write_text(points)
    (folder / "broken.py").write_text(code)
    return folder


# --- The example --------------------------------------------------------------------------------


def test_the_page_shows_the_example() -> None:
    page = ROOT / "docs" / "extending.md"
    module = (EXAMPLE / "hpcgym_example.py").read_text()
    assert all(code in module for code in blocks(page, "py"))
    assert len(page.read_text().splitlines()) <= 60


def test_its_names_work_on_the_command_line(installed: Path, tmp_path: Path) -> None:
    """Each name in a process of its own, workers of sweeps included."""

    def printed(*words: str) -> str:
        command = [sys.executable, "-m", "hpcgym", *words]
        where = os.environ | {"PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"}
        run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=where)
        return run.stderr if run.returncode else run.stdout

    (tmp_path / "mine.tally").write_text(TALLY)
    printed("simulate", "mine.tally", "--scheduler", "patient", "--output", "mine.swf")
    record = json.loads(
        (tmp_path / "mine.swf").read_text().partition("provenance: ")[2].partition("\n")[0]
    )
    assert record["packages"] == {"hpcgym-example": "0.1"}
    rows = printed("compare", "waves:jobs=40", "--cluster", "corner", "--scheduler", "easy,narrow")
    assert "narrow" in rows
    csv = printed("simulate", "waves:jobs=40", "--policy", "narrow", "--format", "csv")
    (tmp_path / "rows.csv").write_text(csv)
    assert "hpcgym-example 0.1" in csv
    assert printed("verify", "mine.swf", "rows.csv") == "mine.swf: equal\nrows.csv: equal\n"
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    printed("sweep", "run", "experiment.toml", "--output", "sweep", "--executor", "processes")
    assert "6 of 6 simulations are done, 0 failed" in printed("sweep", "table", "sweep")
    printed("suite", "run", "--agent", "newest", "--tasks", "mini", "--output", "newest")
    submission = json.loads((tmp_path / "newest" / "submission.json").read_text())
    assert (submission["packages"], [*submission["tasks"]]) == (record["packages"], ["mini-select"])
    error = printed("simulate", "waves", "--policy", "narow")
    assert "did you mean 'narrow'?" in error
    assert "8 more; of hpcgym-example 0.1 narrow, patient" in error
    metadata = installed / "hpcgym_example-0.1.dist-info" / "METADATA"
    before = metadata.read_text()
    metadata.write_text(before.replace("Version: 0.1", "Version: 0.2"))
    said = "made with hpcgym-example 0.1, and this is 0.2"
    assert printed("verify", "mine.swf", "rows.csv").count(f"equal; it was {said}") == 2
    changed = "it began with hpcgym-example 0.1, and 0.2 is installed"
    assert changed in printed("sweep", "run", "sweep")
    metadata.write_text(before)


def test_its_names_work_in_python(
    installed: Path, look_in: Callable[[Path], None], tmp_path: Path
) -> None:
    look_in(installed)
    assert machine_names()[-1] == "corner"
    for kind in ("policies", "schedulers", "machines", "formats", "generators", "agents"):
        *_, (_, meaning) = KINDS[kind][1]()
        assert meaning.startswith("hpcgym-example 0.1: "), kind
    assert find_cluster("Corner") == find_cluster("corner-1+1").__class__(
        groups=find_cluster("corner").groups, name="corner"
    )
    waves = hpcgym.load_workload("waves:jobs=60,seed=3")
    patient = hpcgym.simulate(waves, "patient", cluster="corner")
    same = hpcgym.simulate(waves, "easy", policy="wait - 600 * processors", cluster="corner")
    assert np.array_equal(patient.start, same.start)
    assert patient.scheduler.describe()["policy"] == "patient"
    by_reference = hpcgym.simulate(waves, "patient", cluster="corner", engine="reference")
    assert np.array_equal(patient.start, by_reference.start)
    narrow = hpcgym.simulate(waves, find_scheduler("narrow:threshold=5h"), cluster="corner")
    assert hpcgym.validate_schedule(narrow)
    assert narrow.scheduler.threshold == 5 * 3600
    assert str(hpcgym.compare(waves, ["easy", narrow.scheduler.but(threshold=None)])).count(
        "narrow"
    )
    env = gymnasium.make(
        "hpcgym/MixedPolicy-v2", workload="waves:jobs=200", cluster="corner", jobs=50,
        backfill_order="patient",
    )  # fmt: skip
    env.reset(seed=0)
    env.close()
    board = evaluate(["patient", "newest"], "waves:jobs=1500", n=2, budget=0, cluster="corner")
    assert {"patient", "newest"} <= {*board.table.index}


CAPITALS = """\
from hpcgym import Cluster, Workload


class MyReader:
    def recognizes(self, path, head):
        return False

    def read(self, path, how):
        return MyJobs()


def MyJobs(jobs=3):
    times, ones = range(jobs), [1] * jobs
    columns = {"submit_time": times, "run_time": ones, "requested_processors": ones}
    return Workload.from_columns(columns, processors=8)


class MyAgent:
    def act(self, observation, info):
        return 0


MY = Cluster(8)
ORDER = "-processors"
"""


def test_names_with_capitals_are_found(look_in: Callable[[Path], None], tmp_path: Path) -> None:
    points = {
        "readers": "MyReader", "generators": "MyJobs", "machines": "MyMachine",
        "policies": "MyOrder", "agents": "MyAgent",
    }  # fmt: skip
    values = points | {"machines": "MY", "policies": "ORDER"}
    listed = [f"[hpcgym.{kind}]\n{name} = broken:{values[kind]}" for kind, name in points.items()]
    look_in(package(tmp_path / "site", "\n".join(listed), CAPITALS))
    (tmp_path / "jobs.log").write_text("any")
    assert len(hpcgym.load_workload(tmp_path / "jobs.log", format="MyReader")) == 3
    jobs = hpcgym.load_workload("MyJobs:jobs=5")
    machines = [find_cluster(name) for name in ("MyMachine", "mymachine", "MYMACHINE")]
    assert [(machine.name, machine.processors) for machine in machines] == [("MyMachine", 8)] * 3
    result = hpcgym.simulate(jobs, "MyOrder:threshold=5h", cluster="MyMachine")
    assert result.scheduler.describe()["policy"] == "MyOrder"
    assert find_policy("MyAgent").act(None, None) == 0


# --- Packages in which something is wrong -------------------------------------------------------


def use(
    look_in: Callable[[Path], None], site: Path, points: str, code: str, used: Callable[[], object]
) -> None:
    """Use what is in a package that is broken; lists say what is wrong with it."""
    look_in(package(site, points, code))
    for kind in ("policies", "machines", "formats", "generators", "agents"):
        assert all(meaning for _, meaning in KINDS[kind][1]()), kind
    used()


def test_a_reader_that_fails_keeps_no_file_of_another_format_from_being_read(
    look_in: Callable[[Path], None], tmp_path: Path
) -> None:
    code = "class Old:\n    def recognizes(self, path, head):\n        return 1 / 0"
    look_in(package(tmp_path / "site", "[hpcgym.readers]\nold = broken:Old", code))
    file = tmp_path / "log.csv"
    file.write_text("submit_time,run_time,requested_time,requested_processors\n0,10,10,1\n")
    warning = "passed over: reader 'old' of broken 0.3: ZeroDivisionError: division by zero"
    with pytest.warns(WorkloadWarning, match=warning):
        assert len(hpcgym.load_workload(file, processors=4)) == 1


def of_two(look_in: Callable[[Path], None], site: Path) -> None:
    """Find two packages of the same name, which is ours beside it."""
    package(site, "[hpcgym.policies]\nsaf = broken:WIDE\nwide = broken:WIDE")
    look_in(package(site, "[hpcgym.policies]\nwide = broken:WIDE", "WIDE = 'processors'", "second"))


def test_our_names_go_first(look_in: Callable[[Path], None], tmp_path: Path) -> None:
    of_two(look_in, tmp_path)
    assert hpcgym.Scheduler(policy="saf").order.weights == {"area": -1.0}


def test_entry_points_are_not_listed_for_names_of_ours(
    look_in: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing them takes as long as a small simulation."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **group: pytest.fail(str(group)))
    workload = hpcgym.load_workload("lublin:jobs=50,processors=64,seed=0")
    path = tmp_path / "plain.swf"
    path.write_text(" ".join(["1"] * 18) + "\n")  # without a header
    assert format_of(path) == "swf"
    for name in ("easy", "saf:threshold=5h", "fairshare", "prb"):
        hpcgym.simulate(workload, name, cluster="100x2x24")
    hpcgym.simulate(workload, "easy", policy="wait - processors")
    for name in ("easy", "prb", "saf", "lookahead", "easy:threshold=5h", "wait + requested"):
        find_policy(name)
    assert find_cluster("eurora").nodes == 64


test_mistakes = mistakes_of(globals(), fixtures=("look_in", "installed"))
