"""The server of live pages: what it answers, and whom."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any

import numpy as np
import pytest
from mistakes import mistakes_of
from serving import served
from test_page import unpacked

from hpcgym import forecast, snapshot
from hpcgym.errors import HpcgymError
from hpcgym.explanation import explain
from hpcgym.explore.fans import FAN, FUTURES
from hpcgym.explore.live import HttpAnswer, Server, Session, options_of
from hpcgym.files.recorded import Command, commanded
from hpcgym.machine import find_cluster
from hpcgym.report.tables import text_of
from hpcgym.schedule.metrics import known_metrics
from hpcgym.scheduler.files import read_scheduler
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.units import duration
from hpcgym.workload import load_workload
from hpcgym.workload.cleaning import clean

Asked = tuple[int, str, bytes]


@pytest.fixture(scope="module")
def workload() -> Any:
    return load_workload("lublin:jobs=400,processors=64,load=1.1,seed=3")


@pytest.fixture(scope="module")
def server(workload: Any) -> Iterator[Server]:
    results = {"EASY": simulate(workload, "easy")}
    command = Command(["explore", "log.swf"], dict, "2026-11-23T00:00:00Z")
    with commanded(command):
        session = Session(results, ["hpcgym", "simulate", "log.swf"])
    with served(session) as running:
        yield running


@pytest.fixture(scope="module")
def ask(server: Server) -> Callable[..., Asked]:
    """A function that sends a request; returns status, kind and body."""

    def asked(path: str, question: Any = None, at: str | None = None, **headers: str) -> Asked:
        body = json.dumps(question).encode() if not isinstance(question, bytes) else question
        address = (server.address if at is None else at) + path
        request = urllib.request.Request(address, None if question is None else body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read()

    return asked


def test_the_page_is_given_out(ask: Callable[..., Asked]) -> None:
    status, kind, body = ask("")
    assert (status, kind) == (200, "text/html; charset=utf-8")
    assert body.startswith(b"<!DOCTYPE html>")


@pytest.mark.parametrize("question", [None, {}])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Host": "127.0.0.1"},
        {"Origin": "http://example.org"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
    ],
    ids=str,
)
def test_others_are_refused(
    ask: Callable[..., Asked], server: Server, question: Any, headers: dict[str, str]
) -> None:
    sent = {name: text.format(port=server.server_address[1]) for name, text in headers.items()}
    status, _, body = ask("simulate" if question == {} else "", question, **sent)
    assert (status, body) == (403, b"this is for the page that hpcgym has opened")


@pytest.mark.parametrize("path", ["", "simulate", "wrong/simulate", "/"])
def test_nobody_comes_in_without_the_token(
    ask: Callable[..., Asked], server: Server, path: str
) -> None:
    root = f"http://127.0.0.1:{server.server_address[1]}/"
    wrong = root + server.token[:-1] + "x/"
    assert [ask(path, *given)[0] for given in ((None, root), ({}, root), ({}, wrong))] == [403] * 3
    with Server(server.session) as other:  # tokens differ
        assert other.token != server.token
        assert len(other.token) > 20
        assert other.server_address[0] == "127.0.0.1"


def test_its_own_page_may_ask(ask: Callable[..., Asked], server: Server) -> None:
    port = server.server_address[1]
    for name in ("127.0.0.1", "localhost"):
        headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
        assert ask("simulate", {}, **headers)[0] == 200


QUESTION = {
    "policy": "saf", "backfill": "depth:3", "estimate": "clairvoyant", "threshold": 72_000,
    "hold": 0.1, "processors": 80,
}  # fmt: skip


def test_an_answer_is_what_simulate_says(ask: Callable[..., Asked], workload: Any) -> None:
    rules = {**QUESTION, "backfill": "easy"}
    status, _, body = ask("simulate", rules)
    assert status == 200
    wanted = simulate(workload, "easy", **rules)
    head, columns = unpacked(body)
    assert list(columns) == ["wait1"]
    assert np.array_equal(columns["wait1"], wanted.wait)
    assert head["run"]["rows"] == 80
    metrics = known_metrics()
    for row in head["statistics"]["rows"]:
        metric, value = metrics[row["name"]], wanted.metrics[row["name"]]
        text = duration(value) if metric.unit == "s" else text_of(metric, value)
        assert row["values"][1][0] == text


def test_schedules_on_nodes_follow_too() -> None:
    cluster = find_cluster("eurora")
    jobs = load_workload("eurora:jobs=200", cluster=cluster)
    session = Session({"EASY": simulate(jobs, "easy", cluster=cluster)}, [])
    assert b"<!DOCTYPE html>" in session.page
    head, columns = unpacked(session.simulate({"policy": "sjf", "processors": None}).body)
    wanted = simulate(jobs, "easy", policy="sjf", cluster=cluster)
    assert np.array_equal(columns["wait1"], wanted.wait)
    assert columns["width1"].sum() == jobs.requested_processors.sum()
    assert head["run"]["rows"] == cluster.processors


def test_rules_that_are_not_changed_stay(workload: Any) -> None:
    hold = {"share": 0.1, "from_s": 60}
    begin = simulate(workload, "saf", passes="per-event", backfill_order="sqf", hold=hold)
    session = Session({"saf": begin}, [])
    rules = {"policy": "saf", "threshold": 3600, "hold": 0.3}
    head, columns = unpacked(session.simulate(rules).body)
    wanted = simulate(workload, begin.scheduler.but(threshold=3600, hold={**hold, "share": 0.3}))
    assert np.array_equal(columns["wait1"], wanted.wait)
    assert "threshold 3,600 s" in head["run"]["rules"]


def test_forecasts_are_those_of_the_library(ask: Callable[..., Asked], workload: Any) -> None:
    """Of the schedule that stays, in seconds since the first submission."""
    result, first = simulate(workload, "easy"), int(workload.submit_time[0])
    at = int(result.start[result.wait.argmax()]) - 3600
    status, kind, body = ask("forecast", {"at": at - first})
    assert (status, kind) == (200, "application/json")
    answer = json.loads(body)
    assert json.loads(ask("forecast", {"at": at - first})[2]) == answer
    state = snapshot(result, at)
    forecasts = forecast(state, "easy", futures=FUTURES)
    table = forecasts.table(FAN)
    assert answer["now"] == at - first
    assert [job for job, *_ in answer["jobs"]] == table.job.tolist()
    assert len(table) > 3
    levels = [levels for _, levels, *_ in answer["jobs"]]
    np.testing.assert_allclose(np.array(levels) + first, table.iloc[:, -len(FAN) :], atol=0.5)
    some = False
    for job, _, on, share in answer["jobs"]:
        words = forecasts.why(job)
        most = forecasts.depends_on(job).iloc[0]
        assert (on, share) == ((most.job, most.share) if words else (None, None))
        some |= bool(words)
    assert some


@pytest.mark.parametrize(
    ("path", "question", "status", "words"),
    [
        ("simulate", b"{", 400, "the question is not JSON"),
        ("simulate", b"\xff\xff", 400, "the question is not JSON"),
        ("simulate", [1], 400, "the question must be an object of JSON"),
        ("simulate", b" " * 70_000, 400, "a question has 0 to 65,536 bytes"),
        ("simulate", {"colour": 1}, 422, "unknown rule 'colour'"),
        ("simulate", {"policy": "sa"}, 422, "unknown policy 'sa'"),
        ("simulate", {"policy": "wait +"}, 422, "policy"),
        ("simulate", {"policy": 7}, 422, "policy must be a text, not 7"),
        ("simulate", {"threshold": -1}, 422, "threshold must be a number of at least 0 s, not -1"),
        ("simulate", {"hold": "x"}, 422, "hold must be a share of the machine, not 'x'"),
        ("simulate", {"hold": 2}, 422, "hold: share must be"),
        (
            "simulate",
            {"backfill": "conservative", "hold": 0.1},
            422,
            "hold and backfill='conservative' do",
        ),
        ("simulate", {"processors": 0}, 422, "must be a whole number from 1 to 256, not 0"),
        ("simulate", {"processors": 1e9}, 422, "processors must be a whole number from 1 to 256"),
        ("simulate", {"processors": 1}, 422, "processors"),
        ("explain", {"job": 10**6, "schedule": 0}, 422, "has no job 1000000"),
        ("explain", {"job": "1"}, 422, "explain asks for a job"),
        ("forecast", {}, 422, "forecast asks for a moment: whole seconds, from 0 on, as 'at'"),
        ("forecast", {"at": -1}, 422, "forecast asks for a moment"),
        ("forecast", {"at": 1.5}, 422, "forecast asks for a moment"),
        ("forecast", {"at": 10**18}, 422, "forecast asks for a moment"),
        ("save", {"what": "money"}, 422, "unknown way to save 'money'"),
        ("dance", {}, 404, "there is nothing called 'dance' here"),
        ("dance", None, 404, "there is nothing called 'dance' here"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(
    ask: Callable[..., Asked], path: str, question: Any, status: int, words: str
) -> None:
    answered, kind, body = ask(path, question)
    assert (answered, kind) == (status, "text/plain; charset=utf-8")
    assert words in body.decode()
    assert "\n" not in body.decode()
    assert ask("simulate", {})[0] == 200  # it goes on


def test_why_a_job_waited(ask: Callable[..., Asked], workload: Any) -> None:
    result = simulate(workload, "sjf")
    row = int(result.wait.argmax())
    job = int(workload.job_number[row])
    for schedule in (0, 1):
        status, _, body = ask("explain", {"job": job, "schedule": schedule, "policy": "sjf"})
        assert status == 200
        answer = json.loads(body)
        sentences = answer["sentences"]
        same = simulate(workload, "easy", policy=("fcfs", "sjf")[schedule])
        late = explain(same, job, most=100).delayed
        assert answer["delayed"] == [[number, seconds] for number, seconds in late.items()]
        assert sentences[0].startswith("It asked for ")
        assert f"order: {('fcfs', 'sjf')[schedule]}" in " ".join(sentences)


def test_what_is_saved_gives_the_same_schedule(
    ask: Callable[..., Asked], workload: Any, tmp_path: Any
) -> None:
    rules = {**QUESTION, "hold": None}
    wanted = Scheduler(**{name: rules[name] for name in rules if name != "processors"})
    command = ask("save", {"what": "command", **rules})[2].decode()
    assert command == (
        "hpcgym simulate log.swf --processors 80 --policy saf --backfill depth:3"
        " --estimate clairvoyant --threshold 72000"
    )
    file = tmp_path / "mine.toml"
    file.write_bytes(ask("save", {"what": "scheduler", **rules})[2])
    assert read_scheduler(file).describe() == wanted.describe()
    page = ask("save", {"what": "page", **rules})[2]
    assert page.startswith(b"<!DOCTYPE html>")
    (record,) = re.findall(r'<meta name="hpcgym" content="([^"]*)">', page.decode())
    assert json.loads(unescape(record))["command"] == ["explore", "log.swf"]


def test_a_command_for_a_larger_machine_would_read_other_jobs() -> None:
    jobs = load_workload("lublin:jobs=30,processors=16,seed=2").with_columns(
        requested_processors=np.arange(30) % 16 + 1
    )
    session = Session({"easy": simulate(clean(jobs, processors=8))}, ["hpcgym", "simulate", "log"])
    with pytest.raises(HpcgymError, match="larger than the machine were dropped"):
        session.save({"what": "command", "processors": 9})


@pytest.mark.parametrize(
    "scheduler",
    [
        Scheduler(),
        Scheduler("20 * wait - requested", hold=0.2, threshold=5),
        Scheduler((0.1, -0.2, 0, 0, 0, 0.7), backfill="slurm", estimate="ave2"),
    ],
)
def test_options_make_the_scheduler_again(scheduler: Scheduler) -> None:
    from hpcgym.baselines.schedulers import rule_value

    words = iter(options_of(scheduler))
    rules = {option[2:].replace("-", "_"): text for option, text in zip(words, words, strict=True)}
    made = Scheduler(**{rule: rule_value(rule, text) for rule, text in rules.items()})
    assert made.describe() == scheduler.describe()


class Unasked:
    """A session that must not be asked anything."""

    @property
    def asks(self) -> Any:
        return dict.fromkeys(("simulate", "explain", "save"), self._ask)

    def got(self, name: str, given: Any) -> HttpAnswer | None:
        return None if name else HttpAnswer.page("the page")

    def _ask(self, question: Any) -> Any:
        raise AssertionError(question)


@pytest.fixture(scope="module")
def unasked() -> Iterator[Server]:
    with served(Unasked()) as running:
        yield running


TO_SIMULATE = "POST /TOKEN/simulate HTTP/1.1\r\nContent-Length: "


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("POST http://[::1/TOKEN/simulate HTTP/1.1", 400),
        ("GET http://[::1/TOKEN/ HTTP/1.1", 400),
        ("GET http://[not an address]/TOKEN/ HTTP/1.1", 400),
        ("GET http://HOST/TOKEN/ HTTP/1.1", 400),
        ("GET TOKEN/ HTTP/1.1", 400),
        ("GET * HTTP/1.1", 400),
        *((TO_SIMULATE + length, 400) for length in ("9" * 5000, "65537", "-1", "\xb2", "0")),
        ("GET /TOKEN/ HTTP/1.1", 200),
        ("GET /TOKEN/?a=b HTTP/1.1", 200),
        ("GET //TOKEN/ HTTP/1.1", 200),
        ("GET //[::1/TOKEN/ HTTP/1.1", 403),
        ("GET /TOKEN/[::1 HTTP/1.1", 404),
        ("GET /\xe9/ HTTP/1.1", 403),
        ("GET / HTTP/1.1", 403),
    ],
)
def test_any_request_is_answered(
    unasked: Server, capfd: pytest.CaptureFixture[str], request_text: str, status: int
) -> None:
    """TOKEN and HOST stand for those of the server, which prints nothing."""
    host = f"127.0.0.1:{unasked.server_address[1]}"
    text = request_text.replace("TOKEN", unasked.token).replace("HOST", host)
    with socket.create_connection(unasked.server_address[:2], timeout=5) as to:
        to.sendall(f"{text}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: to.recv(4096), b"")).decode("latin-1")
    assert int(answer.split()[1]) == status
    assert capfd.readouterr() == ("", "")


test_mistakes = mistakes_of(globals(), fixtures=("workload",))
