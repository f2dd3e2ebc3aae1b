"""The page is one whole file that asks for nothing else."""

import json
from base64 import b64decode
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from hpcgym.cluster import Cluster
from hpcgym.errors import HpcgymError
from hpcgym.report import write_html
from hpcgym.report.html import html_page
from hpcgym.schedule.metrics import METRICS

pytest.importorskip("matplotlib", reason="pictures need matplotlib: pip install matplotlib")

VOID = {"meta", "img"}


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


@pytest.fixture(scope="module")
def results(schedule):
    machine = Cluster(64, 117, 358)  # with powers, so that energies are told
    return {name: replace(schedule(scheduler=name), cluster=machine) for name in ("easy", "saf")}


@pytest.fixture(scope="module")
def text(results):
    return html_page(results)


def test_it_asks_for_nothing_else(text):
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "style src"} & set(page.tags)
    assert page.values("href") == []
    assert page.values("src")
    for source in page.values("src"):
        kind, _, data = source.partition(",")
        assert kind == "data:image/png;base64"
        assert b64decode(data).startswith(b"\x89PNG")
    for address in ("http:", "https:", "url(", "@import", "//"):
        assert address not in "".join(part.split(",")[0] for part in text.split('src="'))


def test_it_has_metrics_pictures_settings_cleaning_and_versions(text, schedule):
    page = Page(text)
    words = " ".join(page.text)
    for metric in METRICS:
        if metric.formula is None or metric.of:  # of some schedules only
            continue
        assert metric.heading in words
    assert schedule().workload.name in words
    assert "per-timestamp" in words
    assert "nothing dropped or repaired" in words
    assert "numpy" in words
    assert page.tags.count("img") == 5  # slowdowns, utilisation, queue, two Gantt charts
    assert all(page.values("alt"))
    assert "★" in words


def test_it_says_why_there_are_no_gantt_charts(text, schedule):
    page = Page(html_page({str(number): schedule() for number in range(4)}))
    said = "No Gantt charts: they are for up to 3 schedulers, and these are 4."
    assert said in " ".join(page.text)
    assert page.tags.count("img") == 3
    assert "No Gantt charts" not in text


def test_it_suits_light_and_dark(text):
    assert "prefers-color-scheme: dark" in text
    assert "color-scheme: light dark" in text


def test_texts_of_the_workload_are_no_html(make):
    name = '<script>alert("x")</script> & more'
    page = html_page(make([(0, 50, 2)], name=name, header={"Computer": ["<b>"]}))
    assert "script" not in Page(page).tags
    assert "b" not in Page(page).tags
    assert name in " ".join(Page(page).text)


def test_the_same_results_give_the_same_page(results, text):
    assert html_page(results) == text


def test_it_says_where_it_is_from(results, text):
    page = Page(text)
    words = " ".join(page.text)
    assert "Where this is from" in words
    assert "1970-01-01T00:00:00Z" in words
    for record in page.values("content"):
        if record.startswith("{"):
            told = json.loads(record)
    assert [one["name"] for one in told["schedules"]] == list(results)
    assert all(one["sha256"] in words for one in told["schedules"] + told["workloads"])


def test_what_was_cleaned_is_told(schedule):
    result = schedule("lublin:jobs=300,processors=64,load=0.9")
    workload = result.workload.counted({"dropped: no run time": 1234})
    page = html_page(replace(result, workload=workload))
    assert "dropped: no run time" in page
    assert "1,234" in page


def test_the_file_is_written_in_utf_8(results, schedule, tmp_path, text):
    write_html(results, tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes().decode("utf-8") == text
    with pytest.raises(HpcgymError, match="cannot be written"):
        write_html(schedule(), tmp_path)
