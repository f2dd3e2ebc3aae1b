"""The page is one whole file that asks for nothing else."""

import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.explore import page, write_page
from hpcgym.schedule.metrics import METRICS
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")

VOID = {"meta", "img", "input"}


class Page(HTMLParser):
    """Reads a page and notes its elements, attributes and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], "elements are not closed"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    def values(self, name):
        return [value for _, attribute, value in self.attributes if attribute == name]


def schedule(source="lublin:jobs=300,processors=64,load=0.9", scheduler="easy"):
    return simulate(load_workload(source), scheduler)


@pytest.fixture(scope="module")
def results():
    machine = Cluster(64, 117, 358)  # with powers, so that energies are told
    return {name: replace(schedule(scheduler=name), cluster=machine) for name in ("easy", "saf")}


@pytest.fixture(scope="module")
def text(results):
    return page(results, report=True)


def test_it_asks_for_nothing_else(text):
    read = Page(text)
    assert not {"link", "iframe", "object"} & set(read.tags)
    assert read.values("href") == []
    assert read.values("src")
    for source in read.values("src"):
        kind, _, data = source.partition(",")
        assert kind == "data:image/png;base64"
        assert b64decode(data).startswith(b"\x89PNG")
    assert "@import" not in text
    assert set(re.findall(r"\w+://[^\s\"'`)]*", text)) == {"http://www.w3.org/2000/svg"}


def test_the_browser_runs_only_the_script_of_the_page(text):
    *_, script = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = b64encode(sha256(script.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src 'sha256-{digest}';" in policy
    assert text.count("<script") == 2  # the other is data


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
    assert read.tags.count("img") == 5  # slowdowns, utilization, queue, two Gantt charts
    assert all(read.values("alt"))
    assert "★" in words


def test_it_says_why_there_are_no_gantt_charts(text):
    read = Page(page({str(number): schedule() for number in range(4)}, report=True))
    said = "Gantt charts are left out: there are 4 schedulers, and at most 3 are drawn. Any two"
    assert said in " ".join(read.text)
    assert read.tags.count("img") == 3
    assert "Gantt charts are left out" not in text


def test_texts_of_the_workload_are_no_html(made):
    name = '<script>alert("x")</script> & more'
    text = page(made([(0, 50, 2)], name=name, header={"Computer": ["<b>"]}), report=True)
    read = Page(text)
    assert read.tags.count("script") == 2
    assert "b" not in read.tags
    assert name in " ".join(read.text)


def test_the_same_results_give_the_same_page(results, text):
    assert page(results, report=True) == text


def test_it_says_where_it_is_from(results, text):
    read = Page(text)
    words = " ".join(read.text)
    assert "Where this is from" in words
    assert "1970-01-01T00:00:00Z" in words
    for record in read.values("content"):
        if record.startswith("{"):
            told = json.loads(record)
    assert [one["name"] for one in told["schedules"]] == list(results)
    assert all(one["sha256"] in words for one in told["schedules"] + told["workloads"])


def test_what_was_cleaned_is_told():
    result = schedule("lublin:jobs=300,processors=64,load=0.9")
    workload = result.workload.counted({"dropped: no run time": 1234})
    text = page(replace(result, workload=workload), report=True)
    assert "dropped: no run time" in text
    assert "1,234" in text


def test_the_file_is_written_in_utf_8(results, tmp_path, text):
    write_page(results, tmp_path / "page.html", report=True)
    assert (tmp_path / "page.html").read_bytes().decode("utf-8") == text
    with pytest.raises(HpcgymError, match="cannot be written"):
        write_page(schedule(), tmp_path, report=True)
