import gzip
import hashlib
import os
import re
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from mistakes import mistakes_of

from hpcgym.errors import WorkloadError
from hpcgym.study.sweep.simulations import file_of
from hpcgym.workload import archive, load_workload, read_swf
from hpcgym.workload.archive import (
    TRACES,
    fetch,
    find,
    find_own,
    find_trace,
    own_traces,
    trace_of,
)

LOG = gzip.compress(b"; MaxProcs: 4\n1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1\n", mtime=0)
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


@pytest.fixture
def known(monkeypatch):
    """Let the file of a trace be the one that this module has."""
    trace = replace(TRACES["KTH-SP2"], sha256=hashlib.sha256(LOG).hexdigest())
    monkeypatch.setitem(TRACES, "KTH-SP2", trace)


def files(folder):
    return sorted(os.listdir(folder)) if folder.exists() else []


def test_the_registry_agrees_with_the_files(trace, monkeypatch):
    assert find_trace("kth-sp2") is TRACES["KTH-SP2"]
    assert find_trace("METACENTRUM").name == "MetaCentrum"
    monkeypatch.undo()  # these files are where all tests have them
    for name, known in TRACES.items():
        assert known.name == name
        assert re.fullmatch(rf"(?i){name}-\d{{4}}-[\d.]+(-cln)?\.swf\.gz", known.file)
        assert known.url == f"{archive.SITE}/{known.folder}/{known.file}"
    for name in ("KTH-SP2", "SDSC-SP2"):
        known = TRACES[name]
        path = trace(known.file)
        log = read_swf(path)
        assert log.processors == known.processors
        assert abs(len(log) - known.jobs) <= 1  # KTH's log has one line less than its page tells
        if known.sha256:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == known.sha256


@pytest.mark.parametrize("file", [FILE, "KTH-SP2-1996-2.swf", "KTH-SP2.swf.gz", "KTH-SP2.swf"])
def test_the_folders_of_hpcgym_data_come_first(tmp_path, monkeypatch, cache, file):
    cache.mkdir()
    (cache / FILE).write_bytes(LOG)
    assert find("KTH-SP2") == cache / FILE
    assert find("CTC-SP2") is None
    folder = tmp_path / "data"
    folder.mkdir()
    for name in (file, "SDSC-BLUE-2000-4.1-cln.swf.gz"):  # an edition that studies have
        (folder / name).write_bytes(LOG)
    monkeypatch.setenv("HPCGYM_DATA", os.pathsep.join([str(tmp_path), str(folder)]))
    assert find("kth-sp2") == fetch("kth-sp2") == folder / file
    assert find("SDSC-BLUE") == folder / "SDSC-BLUE-2000-4.1-cln.swf.gz"
    assert find_trace("KTH-SP2").is_archive_file(folder / file) == ("1996-2.swf" in file)


@pytest.mark.parametrize("headers", [{}, {"Content-Encoding": "x-gzip"}])
def test_fetch_downloads_once_what_is_known(site, cache, known, headers):
    site.answers[PATH] = (200, headers, LOG)
    assert find("KTH-SP2") is None
    path = fetch("KTH-SP2")
    assert path == find("KTH-SP2") == fetch("KTH-SP2") == cache / FILE
    assert path.read_bytes() == LOG
    assert site.asked == [PATH]
    path.write_bytes(OTHER_LOG)  # it has changed since
    assert fetch("KTH-SP2").read_bytes() == LOG
    assert files(cache) == [FILE]


@pytest.fixture
def fails(site, cache, known):
    """Return what fetches a trace that the server does not give so."""

    def fetched(*answer):
        site.answers[PATH] = answer
        try:
            return fetch("KTH-SP2")
        finally:
            assert files(cache) == []

    return fetched


@pytest.fixture
def changed(cache, known):
    """Return how the archive's file is called when it has changed since it was fetched."""
    cache.mkdir()
    (cache / FILE).write_bytes(OTHER_LOG)
    return "KTH-SP2"


def test_the_trace_that_a_source_names():
    for source in ("kth-sp2", f"some/{FILE}", Path("KTH-SP2-1996-2.swf")):
        assert trace_of(source) is TRACES["KTH-SP2"]
    assert trace_of("SDSC-BLUE-2000-4.1-cln.swf.gz") is TRACES["SDSC-BLUE"]  # of studies
    assert trace_of("mine.swf") is trace_of(3) is None


# --- traces of one's own --------------------------------------------------------------------------


def test_files_in_data_folders_are_named_without_their_endings(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    (first / "mine.swf.gz").write_bytes(OTHER_LOG)
    (first / "mine.swf").write_bytes(gzip.decompress(LOG))  # the packed one comes first
    (second / "mine.swf.gz").write_bytes(LOG)  # and so does the first folder
    (second / "Plain_1.swf").write_bytes(gzip.decompress(LOG))
    (second / "KTH-SP2.swf.gz").write_bytes(LOG)  # an archive's name is no other trace
    (second / FILE).write_bytes(LOG)
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
    assert file_of("mine", tmp_path, of_jobs=True) == first / "mine.swf.gz"  # of sweeps
    assert load_workload("plain_1").name == "Plain_1"
    assert load_workload("kth-sp2").name == "KTH-SP2"


test_mistakes = mistakes_of(
    globals(), errors=WorkloadError, fixtures=("cache", "changed", "fails", "monkeypatch", "site")
)
