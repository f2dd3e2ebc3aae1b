"""What a page is told of a schedule: packed columns, rows and runs."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
import pytest
from html_pages import Page
from mistakes import mistakes_of

from hpcgym.explore import page, show
from hpcgym.explore.fans import fans_of
from hpcgym.explore.page import as_text, pack
from hpcgym.files.recorded import Command, commanded
from hpcgym.machine import find_cluster
from hpcgym.report.placement import place_jobs
from hpcgym.schedule.provenance import provenance_of
from hpcgym.simulation.run import simulate
from hpcgym.workload import load_workload

SOURCE = "lublin:jobs=300,processors=192,load=1.1,seed=4"


def packed_in(text: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and columns that stand in a page."""
    (data,) = re.findall(r'<script id="data" type="text/plain">([A-Za-z0-9+/=]+)</script>', text)
    return unpacked(gzip.decompress(base64.b64decode(data)))


def test_a_page_asks_for_nothing_and_says_where_it_is_from() -> None:
    jobs = load_workload(SOURCE)
    results = {name: simulate(jobs, name) for name in ("easy", "saf")}
    text = page(results)
    assert text == page({name: simulate(jobs, name) for name in results})  # each time
    addresses = set(re.findall(r"\w+://[^\s\"'`)]*", text))
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, of what an SVG is
    read = Page(text)
    assert not {"link", "img", "iframe", "object"} & {*read.tags}
    assert read.values("src") == []
    rows = dict(row for table in read.tables for row in table if len(row) == 2)
    assert rows["written"] == "1970-01-01T00:00:00Z"
    assert rows["command"] == "none: from Python"
    digests = [schedule["sha256"] for schedule in provenance_of(results)["schedules"]]
    assert {*digests} <= {*rows.values()}
    (record,) = (
        attributes["content"] for _, attributes in read.found if attributes.get("name") == "hpcgym"
    )
    assert [schedule["sha256"] for schedule in json.loads(record)["schedules"]] == digests


def test_what_a_page_is_told_is_the_schedule() -> None:
    jobs = load_workload(SOURCE)
    results = [simulate(jobs, name) for name in ("easy", "saf")]
    head, columns = packed_in(page(results))
    submit = head["first"] + np.cumsum(columns["gap"])
    assert np.array_equal(submit, jobs.submit_time)
    assert np.array_equal(head["first_number"] + np.cumsum(columns["number_gap"]), jobs.job_number)
    for run, result in zip(head["runs"], results, strict=True):
        wait = columns[run["columns"]["wait"]]
        assert np.array_equal(submit + wait, result.start)
    assert "run1" not in columns  # as under the first
    users = np.array(head["kinds"]["user"])[columns["user"]]
    assert users.tolist() == [f"user {number}" for number in jobs.user_id]


def test_a_page_of_a_moment_has_forecasts_of_the_first_schedule() -> None:
    jobs = load_workload(SOURCE)
    results = [simulate(jobs, name) for name in ("easy", "saf")]
    at = int(results[0].start[results[0].wait.argmax()]) - 60
    head, _ = packed_in(page(results, at=at))
    assert head["fans"] == json.loads(json.dumps(fans_of(results[0], at)))
    waiting = (jobs.submit_time < at) & (results[0].start >= at)
    assert [job for job, *_ in head["fans"]["jobs"]] == jobs.job_number[waiting].tolist()
    assert waiting.sum() > 0
    assert "fans" not in packed_in(page(results))[0]


def test_power_is_told_where_somebody_gave_watts() -> None:
    jobs, cluster = load_workload(SOURCE), find_cluster("taurus")
    head, columns = packed_in(page(simulate(jobs, "easy", cluster=cluster)))
    assert "power" not in packed_in(page(simulate(jobs)))[0]["runs"][0]["columns"]
    times, watts = np.cumsum(columns["power_gap0"]), columns["power0"]
    energy = np.dot(np.diff(times), watts[:-1])
    result = simulate(jobs, "easy", cluster=cluster)
    assert energy == pytest.approx(result.metrics["energy_j"], rel=1e-3)
    assert head["runs"][0]["row"] == "core"


def test_rows_of_shared_nodes_are_to_one_scale() -> None:
    jobs = load_workload("codes:jobs=60,processes=64")
    machine = {"cluster": "10x2x8", "speedups": "generated"}
    results = {name: simulate(jobs, name, **machine) for name in ("easy", "easy-co")}
    head, columns = packed_in(page(results))
    parts = {name: result.coschedule.parts for name, result in results.items()}
    assert parts["easy"] != parts["easy-co"]
    assert {run["rows"] for run in head["runs"]} == {20}
    for place, result in enumerate(results.values()):
        rectangles = place_jobs(result)
        finer = 2 // result.coschedule.parts or 1
        assert np.array_equal(columns[f"low{place}"], rectangles.low * finer)
        assert columns[f"nodes{place}"].tolist() == [2] * 10


def test_each_run_of_a_job_is_told_where_nodes_fail(tmp_path: Any) -> None:
    jobs = load_workload(SOURCE)
    file = tmp_path / "failures.csv"
    begin = int(jobs.submit_time[20])
    file.write_text(f"node,time,repaired\n0,{begin},{begin + 9000}\n")
    result = simulate(jobs, "easy", cluster="taurus", failures=file)
    lost = int(result.restarts.sum())
    assert lost
    _, columns = packed_in(page(result))
    assert len(columns["gap"]) == len(jobs) + lost


def test_an_extract_begins_with_the_jobs_that_ran() -> None:
    jobs = load_workload(SOURCE)
    log = jobs.with_columns(wait_time=simulate(jobs).wait)
    part = log.extract(int(jobs.submit_time[150]))
    result = simulate(part)
    assert (~result.decided).any()
    head, columns = packed_in(page(result))
    start = head["first"] + np.cumsum(columns["gap"]) + columns["wait0"]
    assert np.array_equal(start, result.start)
    assert head["first"] + head["begin"] == part.initial.begin > head["first"]


def test_what_slowdowns_divide_by_and_metrics_are_of_is_told_where_it_differs() -> None:
    jobs = load_workload("codes:jobs=60,processes=64")
    shared = simulate(jobs, "easy-co", cluster="10x2x8", speedups="generated")
    head, columns = packed_in(page(shared))
    assert np.array_equal(columns["full0"], shared.full_speed_run_time)
    assert (head["what"], head["fixed"]) == ("job", True)  # the live app shares no nodes
    assert "counted0" not in columns
    whole = load_workload(SOURCE)
    log = whole.with_columns(wait_time=simulate(whole).wait)
    part = simulate(log.extract(int(whole.submit_time[150])))
    head, columns = packed_in(page(part))
    assert head["fixed"] is False
    assert np.array_equal(columns["counted0"], part.counted)
    assert "full0" not in columns


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            ["explore", "a b.swf", "--week", "3", "--output", "x.html", "--force"],
            "'a b.swf' --week 3",
        ),
        (
            ["explore", "--output=x.html", "KTH-SP2", "--scheduler", "saf"],
            "KTH-SP2 --scheduler saf",
        ),
        (["compare", "KTH-SP2", "--html", "x.html"], "…"),
    ],
)
def test_a_page_names_the_command_that_opens_the_live_app(command: list[str], words: str) -> None:
    result = simulate(load_workload(SOURCE))
    with commanded(Command(command, dict, "1970-01-01T00:00:00Z")):
        assert packed_in(page(result))[0]["command"] == words
    assert packed_in(page(result))[0]["command"] == "…"  # from Python


def test_a_notebook_shows_a_frame_that_cannot_be_left() -> None:
    result = simulate(load_workload(SOURCE))
    ((tag, attributes),) = Page(show(result, height=500)._repr_html_()).found
    assert tag == "iframe"
    assert attributes["srcdoc"] == page(result)
    assert "height:500px" in attributes["style"]
    assert "allow-same-origin" not in attributes["sandbox"]


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and columns."""
    head = json.loads(data)
    return head, {name: np.array(values) for name, values in head.pop("columns").items()}


@pytest.mark.slow
def test_the_page_reads_what_was_packed(node):
    arrays = {"a": [1, 255], "b": [0, 65535, 3], "c": [-5, 2**31 - 1], "d": [0.5, 2.0**52], "e": []}
    text = as_text(pack({"name": "</script>é", "deep": {"a": [1, None]}}, arrays))
    assert base64.b64decode(text)[:2] == b"\x1f\x8b"
    body = """
      const { head, columns } = unpack(await gunzip(given));
      for (const name of Object.keys(columns)) columns[name] = Array.from(columns[name]);
      return { head, columns };"""
    decoded = node(["arrays", "decode"], body, text)
    assert decoded["columns"] == arrays
    assert decoded["head"]["name"] == "</script>é"
    assert decoded["head"]["deep"] == {"a": [1, None]}


test_mistakes = mistakes_of(globals())
