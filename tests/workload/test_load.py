import gzip
import shutil

import numpy as np
import pandas as pd
import pytest
from mistakes import mistakes_of

from hpcgym.errors import HpcgymError, WorkloadError
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
    with pytest.raises(WorkloadError, match="either cluster or processors"):
        load_workload(log, cluster=machine, processors=9)
    with pytest.raises(HpcgymError, match="unknown machine 'eurrora'"):
        load_workload(log, cluster="eurrora")


def test_home_folder(log, monkeypatch):
    monkeypatch.setenv("HOME", str(log.parent))
    assert len(load_workload("~/log.swf")) == 2


def test_frames_and_workloads_are_cleaned_too():
    frame = pd.DataFrame({"submit_time": [0, 1], "run_time": [5, 0], "requested_processors": 3})
    assert load_workload(frame).run_time.tolist() == [5]
    assert load_workload(frame, processors=4).processors == 4
    raw = Workload.from_columns({"submit_time": [0], "requested_processors": [9]}, processors=8)
    with pytest.raises(WorkloadError, match="no job is left"):
        load_workload(raw)
    assert load_workload(raw, "none") is raw


def test_the_generator():
    workload = load_workload("lublin:jobs=50, processors=16,seed=3")
    assert len(workload) == 50
    assert workload.processors == 16
    again = load_workload("lublin:jobs=5e1,processors=16,seed=3")
    assert np.array_equal(workload.run_time, again.run_time)
    other = load_workload("lublin:jobs=50,processors=16,seed=4")
    assert not np.array_equal(workload.run_time, other.run_time)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("lublin:job=50", "generator 'lublin' has no argument 'job', only jobs, processors, seed"),
        ("lublin:jobs", r"generator 'lublin': jobs=\(nothing\) is not a number"),
        ("lublin:jobs=many", "generator 'lublin': jobs=many is not a number"),
        ("lublin:jobs=5,jobs=6", "generator 'lublin' is given 'jobs' twice"),
        ("lublin:jobs=0", "jobs"),
        ("KTH-SP3", "'KTH-SP3' is no file, trace or generator; did you mean 'kth-sp2'"),
        ("lubline", "'lubline' is no file, trace or generator; did you mean 'lublin'"),
        ("qqq", "'qqq' is no file, trace or generator; known are kth-sp2, ctc-sp2"),
        ("none.swf", r"none\.swf: no such file"),
        ("none/KTH-SP2", "none/KTH-SP2: no such file"),
        (".", "is a folder"),
        ("KTH-SP2", r"cannot download KTH-SP2 from .*HPCGYM_DATA"),
        ("none.csv", r"none\.csv: no such file"),
        (7, "a workload cannot be made of a int"),
        (None, "a workload cannot be made of a NoneType"),
    ],
)
def test_sources_that_are_none(source, problem, offline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorkloadError, match=problem) as error:
        load_workload(source)
    assert "\n" not in str(error.value)


test_mistakes = mistakes_of(globals(), errors=WorkloadError)
