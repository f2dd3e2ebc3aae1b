"""Where workloads come from: files, traces by name, the archive."""

import errno
import gzip
import hashlib
import os
import re
import shutil
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pandas as pd
import pooch
import pytest

from hpcgym.cluster import Cluster, NodeGroup, cluster_toml
from hpcgym.errors import HpcgymError, WorkloadError
from hpcgym.files.fetching import user_cache
from hpcgym.naming import SWF_COLUMNS
from hpcgym.simulation.run import simulate
from hpcgym.sweep.simulations import input_file
from hpcgym.workload import Workload, archive, load_workload, read_swf
from hpcgym.workload.archive import TRACES, fetch, find, find_own, find_trace, own_traces

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


def test_what_takes_a_machine_loads_for_it(log):
    from hpcgym.envs.core.options import read_options
    from hpcgym.evaluation import evaluate

    assert read_options(log).workload.job_number.tolist() == [1, 3]
    assert read_options(log, cluster=Cluster(9)).workload.job_number.tolist() == [1, 2, 3]
    assert read_options(log, processors=1).workload.job_number.tolist() == [1]
    whole = {"episodes": "whole", "slices": "all", "budget": 0, "resamples": 1}
    boards = [evaluate("fcfs", log, cluster=Cluster(size), **whole) for size in (8, 9)]
    simulated = [simulate(load_workload(log, processors=size), "easy") for size in (8, 9)]
    waits = [result.metrics["mean_wait_s"] for result in simulated]
    assert [board.table.loc["easy", "mean_wait_s"] for board in boards] == waits
    assert waits[0] != waits[1]


def test_bad_lines(log):
    log.write_text(LOG + "4 x\n")
    with pytest.raises(WorkloadError, match="line 5"):
        load_workload(log)
    workload = load_workload(log, errors="skip")
    assert workload.cleaning["dropped: line with text in a numeric field"] == 1


def test_home_folder(log, monkeypatch):
    monkeypatch.setenv("HOME", str(log.parent))
    assert len(load_workload("~/log.swf")) == 2


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_tables(tmp_path, ending):
    frame = pd.DataFrame({"submit_time": [0, 1], "run_time": [5, 0], "requested_processors": 3})
    path = tmp_path / f"jobs{ending}"
    if ending == ".csv":
        frame.to_csv(path, index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    for source in (frame, path, str(path)):
        workload = load_workload(source)
        assert workload.run_time.tolist() == [5]
        assert workload.processors == 3
        assert load_workload(source, processors=4).processors == 4


def test_a_workload_is_cleaned_too():
    raw = Workload.from_columns({"submit_time": [0], "requested_processors": [9]}, processors=8)
    with pytest.raises(WorkloadError, match="no job is left"):
        load_workload(raw)
    assert load_workload(raw, "none") is raw


def test_a_trace_by_its_name(trace, monkeypatch):
    path = trace("KTH-SP2-1996-2.swf.gz")
    monkeypatch.setenv("HPCGYM_DATA", str(path.parent))
    by_name = load_workload("kth-sp2", "glesser")
    by_path = load_workload(path, "glesser")
    assert len(by_name) == 28_481
    assert by_name.name == "KTH-SP2"
    assert by_path.name == "KTH-SP2-1996-2"
    assert by_name.weeks()[0].name == "KTH-SP2 week 1"
    assert all(np.array_equal(by_name.columns[c], by_path.columns[c]) for c in SWF_COLUMNS)


def test_another_version_of_a_trace_keeps_its_own_name(log, monkeypatch):
    shutil.copy(log, log.parent / "KTH-SP2-1996-2.1-cln.swf")
    monkeypatch.setenv("HPCGYM_DATA", str(log.parent))
    assert load_workload("KTH-SP2").name == "KTH-SP2-1996-2.1-cln"


def test_a_trace_that_is_not_here(offline):
    with pytest.raises(WorkloadError, match=r"cannot download KTH-SP2 from .*HPCGYM_DATA"):
        load_workload("KTH-SP2")


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
        ("KTH-SP3", "'KTH-SP3' is no file, trace or generator; did you mean KTH-SP2"),
        ("lubline", "'lubline' is no file, trace or generator; did you mean lublin"),
        ("SDSC-SP2-1998-4.2-cln", "is no file, trace or generator; did you mean SDSC-SP2"),
        ("qqq", "'qqq' is no file, trace or generator; traces: KTH-SP2, CTC-SP2"),
        ("none.swf", r"none\.swf: no such file"),
        ("none/KTH-SP2", "none/KTH-SP2: no such file"),
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


def test_a_folder(tmp_path):
    with pytest.raises(WorkloadError, match="is a folder"):
        load_workload(tmp_path)
    with pytest.raises(WorkloadError, match="is a folder"):
        load_workload(str(tmp_path))


def test_wrong_options_are_said_before_anything_is_read(tmp_path):
    with pytest.raises(WorkloadError, match="unknown cleaning recipe 'gleser'"):
        load_workload(tmp_path / "none.swf", "gleser")
    with pytest.raises(WorkloadError, match="errors must be"):
        load_workload(tmp_path / "none.swf", errors="no")


LOG_ARCHIVE = gzip.compress(b"; MaxProcs: 4\n1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1\n", mtime=0)
OTHER_LOG = gzip.compress(b"; MaxProcs: 8\n1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1\n", mtime=0)
FILE = "KTH-SP2-1996-2.swf.gz"
PATH = f"/l_kth_sp2/{FILE}"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Give each test a cache of its own, and no folder of traces."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(archive, "cache_folder", lambda: folder)
    monkeypatch.delenv("HPCGYM_DATA", raising=False)
    return folder


class Site(HTTPServer):
    """A site on this machine in place of the archive's."""

    def __init__(self):
        self.answers = {}  # path -> body, or (status, headers, body)
        self.asked = []
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        answer = self.server.answers.get(self.path, (404, {}, b"none"))
        status, headers, body = answer if isinstance(answer, tuple) else (200, {}, answer)
        self.send_response(status)
        for key, value in ({"Content-Length": len(body)} | headers).items():
            self.send_header(key, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def site(monkeypatch):
    server = Site()
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(archive, "SITE", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.shutdown()
    server.server_close()


def files(folder):
    return sorted(os.listdir(folder)) if folder.exists() else []


def test_the_registry_is_well_formed():
    assert list(TRACES) == [
        *("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie", "MetaCentrum", "KIT-FH2"),
        *("HPC2N", "PIK-IPLEX"),
    ]
    for name, trace in TRACES.items():
        assert trace.name == name
        assert trace.file.casefold().startswith(name.casefold())
        assert re.fullmatch(r"[A-Za-z0-9-]+-\d{4}-[\d.]+(-cln)?\.swf\.gz", trace.file)
        assert trace.url == f"https://www.cs.huji.ac.il/labs/parallel/workload/{trace.folder}/" + (
            trace.file
        )
        assert trace.page.startswith("https://www.cs.huji.ac.il/labs/parallel/workload/l_")
        assert trace.processors > 0
        assert trace.jobs > 0
        assert trace.sha256 is None or re.fullmatch("[0-9a-f]{64}", trace.sha256)


def test_the_registry_agrees_with_the_files(trace):
    for name in ("KTH-SP2", "SDSC-SP2"):
        known = TRACES[name]
        path = trace(known.file)
        log = read_swf(path)
        assert log.processors == known.processors
        assert abs(len(log) - known.jobs) <= 1  # KTH's log has one line less than its page tells
        if known.sha256:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == known.sha256


def test_names_in_any_case_and_near_ones():
    assert find_trace("kth-sp2") is TRACES["KTH-SP2"]
    assert find_trace("METACENTRUM").name == "MetaCentrum"
    with pytest.raises(WorkloadError, match="unknown trace 'KTH-SP3', did you mean KTH-SP2"):
        find_trace("KTH-SP3")
    with pytest.raises(WorkloadError, match="unknown trace 'zzz'; there are KTH-SP2, CTC-SP2"):
        find("zzz")


@pytest.mark.parametrize(
    "file",
    [FILE, "KTH-SP2-1996-2.swf", "KTH-SP2.swf.gz", "KTH-SP2.swf", "KTH-SP2-1996-2.1-cln.swf"],
)
def test_the_folders_of_hpcgym_data_come_first(tmp_path, monkeypatch, cache, file):
    cache.mkdir()
    (cache / FILE).write_bytes(LOG_ARCHIVE)
    assert find("KTH-SP2") == cache / FILE
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / file).write_bytes(LOG_ARCHIVE)
    monkeypatch.setenv("HPCGYM_DATA", os.pathsep.join([str(tmp_path), str(folder)]))
    assert find("kth-sp2") == folder / file
    assert fetch("kth-sp2") == folder / file
    assert find_trace("KTH-SP2").is_archive_file(folder / file) == ("1996-2.swf" in file)


def test_the_archives_own_file_wins_over_other_versions(tmp_path, monkeypatch):
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path))
    (tmp_path / "KTH-SP2-1996-1.swf").write_bytes(LOG_ARCHIVE)
    (tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz").write_bytes(LOG_ARCHIVE)
    with pytest.raises(WorkloadError, match="has several versions of KTH-SP2, name one of them"):
        find("KTH-SP2")
    (tmp_path / FILE).write_bytes(LOG_ARCHIVE)
    assert find("KTH-SP2") == tmp_path / FILE
    assert find("CTC-SP2") is None


def test_another_log_of_the_same_machine_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path))
    (tmp_path / "METACENTRUM-2009-2.swf.gz").write_bytes(LOG_ARCHIVE)
    assert find("MetaCentrum") is None


def test_hpcgym_data_that_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HPCGYM_DATA", str(tmp_path / "none"))
    with pytest.raises(WorkloadError, match=r"HPCGYM_DATA names .*none, which is not a folder"):
        find("KTH-SP2")


def test_fetch_downloads_once_and_remembers_the_checksum(site, cache):
    site.answers[PATH] = LOG_ARCHIVE
    assert find("KTH-SP2") is None
    path = fetch("KTH-SP2")
    assert path == find("KTH-SP2") == cache / FILE
    assert path.read_bytes() == LOG_ARCHIVE
    record = (cache / f"{FILE}.sha256").read_text()
    assert record == f"{hashlib.sha256(LOG_ARCHIVE).hexdigest()}  {FILE}\n"
    fetch("KTH-SP2")
    assert site.asked == [PATH]


def test_a_file_that_changed_since_it_was_fetched(site, cache):
    site.answers[PATH] = LOG_ARCHIVE
    fetch("KTH-SP2").write_bytes(OTHER_LOG)
    with pytest.raises(WorkloadError, match=r"is not what was fetched .*traces fetch KTH-SP2"):
        find("KTH-SP2")
    assert fetch("KTH-SP2").read_bytes() == LOG_ARCHIVE
    assert site.asked == [PATH, PATH]


def test_another_file_than_at_the_first_download(site, cache):
    site.answers[PATH] = LOG_ARCHIVE
    fetch("KTH-SP2").unlink()
    site.answers[PATH] = OTHER_LOG
    with pytest.raises(WorkloadError, match="the file there has changed: its SHA-256 is not"):
        fetch("KTH-SP2")
    assert files(cache) == [f"{FILE}.sha256"]


def test_a_known_checksum_is_checked(site, cache, monkeypatch):
    trace = replace(TRACES["KTH-SP2"], sha256=hashlib.sha256(LOG_ARCHIVE).hexdigest())
    monkeypatch.setitem(TRACES, "KTH-SP2", trace)
    site.answers[PATH] = OTHER_LOG
    with pytest.raises(WorkloadError, match=f"KTH-SP2 from {trace.url}: the file there has chang"):
        fetch("KTH-SP2")
    assert files(cache) == []
    site.answers[PATH] = LOG_ARCHIVE
    assert fetch("KTH-SP2").read_bytes() == LOG_ARCHIVE
    assert files(cache) == [FILE]


def test_a_server_that_unpacks_on_the_way_changes_nothing(site):
    site.answers[PATH] = (200, {"Content-Encoding": "x-gzip"}, LOG_ARCHIVE)
    assert fetch("KTH-SP2").read_bytes() == LOG_ARCHIVE


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ((404, {}, b"none"), "the server says 404 Not Found"),
        ((503, {}, b""), "the server says 503 Service Unavailable"),
        ((200, {"Content-Length": 999}, LOG_ARCHIVE), "cannot download KTH-SP2"),
        (b"<html>please log in</html>", "gave something else than a gzip file"),
        (b"", "gave something else than a gzip file"),
    ],
)
def test_failed_downloads_leave_nothing(site, cache, answer, problem):
    site.answers[PATH] = answer
    with pytest.raises(WorkloadError, match=problem) as error:
        fetch("KTH-SP2")
    assert "\n" not in str(error.value)
    assert files(cache) == []


def test_without_a_network(site, cache, monkeypatch):
    monkeypatch.setattr(archive, "SITE", "http://127.0.0.1:9")  # nobody listens there
    with pytest.raises(WorkloadError) as error:
        fetch("KTH-SP2")
    assert str(error.value) == (
        f"cannot download KTH-SP2 from http://127.0.0.1:9{PATH}: no connection; get {FILE} another"
        " way, put it into a folder and set HPCGYM_DATA to that folder"
    )
    assert files(cache) == []


def test_a_cache_that_cannot_be_written(site, tmp_path, monkeypatch):
    site.answers[PATH] = LOG_ARCHIVE
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(archive, "cache_folder", lambda: tmp_path / "file" / "cache")
    with pytest.raises(WorkloadError, match="cannot be written"):
        fetch("KTH-SP2")


def test_half_a_checksum_forbids_no_trace(site, cache, monkeypatch):
    """It is written whole; earlier versions may have left an empty one."""

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    site.answers[PATH] = LOG_ARCHIVE
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(WorkloadError, match="sha256 cannot be written: No space left"):
            fetch("KTH-SP2")
    assert files(cache) == [FILE]
    (cache / f"{FILE}.sha256").touch()
    assert find("KTH-SP2") == cache / FILE


def test_the_cache_is_the_users_own():
    assert user_cache() == Path(pooch.os_cache("hpcgym"))


# --- traces of one's own --------------------------------------------------------------------------


def test_files_in_data_folders_are_named_without_their_endings(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (first / "mine.swf.gz").write_bytes(OTHER_LOG)
    (first / "mine.swf").write_bytes(gzip.decompress(LOG_ARCHIVE))  # the packed one comes first
    (second / "mine.swf.gz").write_bytes(LOG_ARCHIVE)  # and so does the first folder
    (second / "Plain_1.swf").write_bytes(gzip.decompress(LOG_ARCHIVE))
    (second / "KTH-SP2.swf.gz").write_bytes(LOG_ARCHIVE)  # an archive's name is no other trace
    (second / FILE).write_bytes(LOG_ARCHIVE)
    (second / "table.csv").write_text("")
    monkeypatch.setenv("HPCGYM_DATA", os.pathsep.join([str(first), str(second)]))
    assert own_traces() == {
        "mine": first / "mine.swf.gz",
        "KTH-SP2-1996-2": second / FILE,
        "Plain_1": second / "Plain_1.swf",
    }
    assert find_own("MINE") == first / "mine.swf.gz"
    assert find_own("plain_1") == second / "Plain_1.swf"
    assert find_own("mine.swf") is None
    assert load_workload("mine").processors == 8
    assert input_file("mine", tmp_path) == first / "mine.swf.gz"  # of sweeps
    assert load_workload("plain_1").name == "Plain_1"
    assert load_workload("kth-sp2").name == "KTH-SP2"
    with pytest.raises(WorkloadError, match=r"'plain1' is no file, .*did you mean Plain_1"):
        load_workload("plain1")
    with pytest.raises(WorkloadError, match="unknown trace 'plain1', did you mean Plain_1"):
        find_trace("plain1")


def test_without_data_folders_there_are_no_traces_of_ones_own():
    assert own_traces() == {}
    assert find_own("mine") is None
