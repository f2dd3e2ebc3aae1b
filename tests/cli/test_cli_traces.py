"""``hpcgym traces``: of the archive, of one's own, and what a log is like."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import as_csv, as_json, run, succeed, table_file, typed
from mistakes import mistakes_of
from sacct_dumps import dump

from hpcgym import load_workload
from hpcgym.workload.archive import TRACES
from hpcgym.workload.fingerprint import workload_digest


@pytest.fixture
def data(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where traces are looked for."""
    for name in ("HPCGYM_DATA", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(here))
    return here


def test_a_sites_own_log_is_shown(here: Path) -> None:
    path = here / "jobs.txt"
    path.write_text(dump(3, 800).text)
    text = succeed("traces", "show", path).stdout
    for part in ("dropped: step of a job", "users ", "alice", "o'neil", "partitions", "gpu",
                 "submitted by hour", "Monday", "warning: ", "does not say how large its machine",
                 "ran in 3 partitions"):  # fmt: skip
        assert part in text, part
    facts = as_json("traces", "show", path, "--processors", "5000")
    jobs = load_workload(path, processors=5000)
    assert facts["jobs"] == len(jobs)
    assert facts["provenance"]["workloads"][0]["sha256"] == workload_digest(jobs)
    assert facts["cleaning"] == dict(jobs.cleaning)
    assert facts["processors"] == 5000
    assert sum(facts["arrivals"]["hours"]) == len(jobs)
    (row,) = as_csv("traces", "show", path, "--processors", "5000")
    assert float(row["load"]) == facts["load"]
    nameless = here / "nameless.txt"
    nameless.write_text(path.read_text().partition("\n")[2])
    fields = ",".join(dump(3, 800).fields)
    of_nameless = as_json("traces", "show", nameless, "--processors", "5000", "--fields", fields)
    assert of_nameless["cleaning"] == facts["cleaning"]
    elsewhere = as_json("traces", "show", path, "--tz", "Asia/Tokyo")
    assert elsewhere["begin"].endswith("+09:00") or "unix" in dump(3, 800).text


def test_traces_of_the_archive_are_listed(data: Path) -> None:
    (data / "KTH-SP2.swf.gz").write_bytes(b"")
    text = succeed("traces", "list").stdout
    assert all(trace.name in text and trace.system in text for trace in TRACES.values())
    assert "CEA-Curie: Glesser's thesis (2016) simulates 80,640 processors" in text
    assert "SDSC-BLUE: Glesser's thesis (2016) has edition 4.1" in text
    rows = as_json("traces", "list")
    assert [row["name"] for row in rows] == list(TRACES)
    assert [row["path"] for row in rows[:2]] == [str(data / "KTH-SP2.swf.gz"), None]
    assert len(as_csv("traces", "list")) == len(TRACES)


def test_traces_of_ones_own_are_listed_shown_and_simulated(data: Path) -> None:
    job = "1 0 0 9 1 -1 -1 1 9 -1 1 1 1 -1 1 1 -1 -1"
    path = str(data / table_file("my-log.swf", "; MaxProcs: 4", job))
    assert "my-log" in succeed("traces", "list").stdout
    rows = as_json("traces", "list")
    assert [row["name"] for row in rows] == [*TRACES, "my-log"]
    assert rows[-1] | {"path": path, "jobs": None} == rows[-1]
    assert path in succeed("traces", "show", "my-log").stdout
    assert as_json("simulate", "my-log")["workload"] == "my-log"


def test_traces_that_are_here_are_not_fetched(data: Path) -> None:
    files = [data / f"{name}.swf.gz" for name in ("KTH-SP2", "CTC-SP2")]
    for file in files:
        file.write_bytes(b"")
    done = succeed("traces", "fetch", "KTH-SP2", "ctc-sp2")
    assert done.stdout.splitlines() == [*map(str, files)]
    assert run("traces", "fetch", "KTH-SP2", "nothing").stdout == ""


test_mistakes = mistakes_of(globals(), typed, fixtures=("data",))
