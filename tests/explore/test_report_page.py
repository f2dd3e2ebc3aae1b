"""Pages of reports, without a browser."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256

import pytest
from html_pages import Page
from mistakes import mistakes_of

from hpcgym.explore import page, write_page
from hpcgym.explore.document import sheet, table
from hpcgym.machine import Cluster
from hpcgym.report.tables import who_pays
from hpcgym.schedule.metrics import METRICS
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload


def schedule(source="lublin:jobs=300,processors=64,load=0.9", scheduler="easy"):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    return simulate(load_workload(source), scheduler)


@pytest.fixture(scope="module")
def results():
    machine = Cluster(64, 117, 358)  # with powers, so that energies are told
    return {name: replace(schedule(scheduler=name), cluster=machine) for name in ("easy", "saf")}


@pytest.fixture(scope="module")
def text(results):
    return page(results, report=True)


def test_it_asks_for_nothing_else_and_runs_no_other_script(text):
    read = Page(text)
    assert read.open == []
    assert not {"link", "iframe", "object"} & set(read.tags)
    assert read.values("href") == []
    for source in read.values("src"):
        kind, _, data = source.partition(",")
        assert kind == "data:image/png;base64"
        assert b64decode(data).startswith(b"\x89PNG")
    assert "@import" not in text
    assert set(re.findall(r"\w+://[^\s\"'`)]*", text)) == {"http://www.w3.org/2000/svg"}
    for written, scripts in ((text, 2), (sheet(ODD, [ODD], table([ODD], [[ODD]])), 1)):
        *_, script = re.findall(r"<script>(.*?)</script>", written, re.DOTALL)
        digest = b64encode(sha256(script.encode()).digest()).decode()
        (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', written)
        assert policy.startswith("default-src 'none'; ")
        assert f"script-src 'sha256-{digest}';" in policy
        assert written.count("<script") == scripts  # one is data


def test_it_has_metrics_pictures_settings_cleaning_and_versions(text):
    read = Page(text)
    words = " ".join(read.text)
    for metric in METRICS:
        if metric.formula is None or metric.of:  # of some schedules only
            continue
        assert metric.heading in words
    assert schedule().workload.name in words
    assert "per-timestamp" in words
    assert "nothing dropped or repaired" in words
    assert "numpy" in words
    assert read.tags.count("img") == 4  # slowdowns, utilization and queue, two Gantt charts
    assert all(read.values("alt"))
    assert "★" in words


def test_it_says_who_pays(results, text):
    (of_classes,) = [
        table_read for table_read in Page(text).tables if table_read and "short" in table_read[0]
    ]
    paid = who_pays(results)
    assert of_classes == [paid.heads, *paid.rows]
    assert all(line in " ".join(Page(text).text) for line in paid.below)
    assert "Who pays" not in page({"easy": results["easy"]}, report=True)


def test_it_says_why_there_are_no_gantt_charts(text):
    read = Page(page({str(number): schedule() for number in range(4)}, report=True))
    words = " ".join(read.text)
    assert "because 4 would be too small to read: for charts, name at most 3 schedulers." in words
    assert "the same schedule, start by start: 0; 1; 2; 3" in words
    assert read.tags.count("img") == 2
    assert "too small to read" not in text


def test_texts_of_the_workload_are_no_html_and_cleaning_is_told(made):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")
    result = made([(0, 50, 2)], name=ODD, header={"Computer": ["<b>"]})
    workload = result.workload.counted({"dropped: no run time": 1234})
    read = Page(page(replace(result, workload=workload), report=True))
    assert read.tags.count("script") == 2
    assert "b" not in read.tags
    assert ODD in " ".join(read.text)
    assert ["dropped: no run time", "1,234"] in [
        row for table_read in read.tables for row in table_read
    ]


def test_the_file_is_written_in_utf_8(results, tmp_path, text):
    write_page(results, tmp_path / "page.html", report=True)
    assert (tmp_path / "page.html").read_bytes().decode("utf-8") == text


ODD = '<script>alert("x")</script> & more'


test_mistakes = mistakes_of(globals())
