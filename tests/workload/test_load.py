import gzip
import shutil

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.errors import HpcgymError
from hpcgym.machine import Cluster, NodeGroup, cluster_toml
from hpcgym.workload import Workload, archive, load_workload

LOG = """; MaxProcs: 8
1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1
2 5 0 9 9 -1 -1 9 9 -1 1 1 1 -1 1 1 -1 -1
3 6 0 9 2 -1 -1 2 -1 -1 1 1 1 -1 1 1 -1 -1
"""


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No trace on this machine, and no network."""
    monkeypatch.setattr(archive, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(archive, "SITE", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("HPCGYM_DATA", raising=False)


def test_files(log, tmp_path):
    packed = tmp_path / "packed.swf.gz"
    packed.write_bytes(gzip.compress(LOG.encode()))
    named = tmp_path / "accounting.txt"
    shutil.copy(log, named)
    for source in (log, str(log), packed, named):
        workload = load_workload(source)
        assert workload.job_number.tolist() == [1, 3]
        assert workload.cleaning == {
            "repaired: requested_time taken from run_time": 1,
            "dropped: more processors than the machine": 1,
        }
    assert load_workload(packed).name == "packed"


def test_recipe_and_machine_size(log):
    assert load_workload(log, "glesser").job_number.tolist() == [1]
    assert len(load_workload(log, clean="none")) == 3
    larger = load_workload(log, processors=9)
    assert larger.job_number.tolist() == [1, 2, 3]
    assert larger.processors == 9
    assert load_workload(log, ["drop-larger-than-machine"]).job_number.tolist() == [1, 3]


def test_the_machine_on_which_the_jobs_are_to_run(log, tmp_path):
    machine = Cluster(groups=[NodeGroup("node", 3, {"core": 3})])
    path = tmp_path / "mine.toml"
    path.write_text(cluster_toml(machine))
    for cluster in (machine, path, str(path)):
        workload = load_workload(log, cluster=cluster)
        assert workload.job_number.tolist() == [1, 2, 3]
        assert workload.processors == 9
    assert load_workload(log, cluster=Cluster(1)).job_number.tolist() == [1]


def test_home_folder(log, monkeypatch):
    monkeypatch.setenv("HOME", str(log.parent))
    assert len(load_workload("~/log.swf")) == 2


def test_frames_and_workloads_are_cleaned_too():
    frame = pd.DataFrame({"submit_time": [0, 1], "run_time": [5, 0], "requested_processors": 3})
    assert load_workload(frame).run_time.tolist() == [5]
    assert load_workload(frame, processors=4).processors == 4
    raw = Workload.from_columns({"submit_time": [0], "requested_processors": [9]}, processors=8)
    assert load_workload(raw, "none") is raw


def test_the_generator():
    workload = load_workload("lublin:jobs=50, processors=16,seed=3")
    assert len(workload) == 50
    assert workload.processors == 16
    again = load_workload("lublin:jobs=5e1,processors=16,seed=3")
    assert np.array_equal(workload.run_time, again.run_time)
    other = load_workload("lublin:jobs=50,processors=16,seed=4")
    assert not np.array_equal(workload.run_time, other.run_time)


test_mistakes = mistakes_of(globals(), errors=HpcgymError, fixtures=("log", "offline"))
