"""The live app: schedules that change with the rules, served on this machine alone."""

from __future__ import annotations

import secrets
import shlex
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import lru_cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol
from urllib.parse import parse_qsl

import numpy as np

from hpcgym.errors import HpcgymError, is_number, unknown
from hpcgym.explanation import explain
from hpcgym.explore.fans import fans_of
from hpcgym.explore.page import explorer_page, of_schedule, pack, statistics, why_not_live
from hpcgym.files import json_of
from hpcgym.files.writing import json_text
from hpcgym.own_code import sources
from hpcgym.schedule.result import Result
from hpcgym.scheduler.backfilling import BACKFILL, Hold
from hpcgym.scheduler.estimates import ESTIMATES
from hpcgym.scheduler.files import scheduler_text
from hpcgym.scheduler.policies import POLICIES, WEIGHTED_FEATURES
from hpcgym.scheduler.rules import Scheduler
from hpcgym.simulation.run import simulate
from hpcgym.workload.columns import MAX_TIME

# --- What the live app simulates ------------------------------------------------------------------

#: What the controls say of the scheduler.
RULES = ("policy", "backfill", "estimate", "threshold", "hold")
#: Ways to save what the controls say.
WAYS = ("command", "scheduler", "page")
_PLAIN, _HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"
_LEFT_OUT = 100  # jobs that are left out one by one for an explanation: a second, not a minute
_FORECASTS = 256  # that are kept
_LARGER = 4  # times the machine is what the slider of processors goes up to


@dataclass(frozen=True)
class HttpAnswer:
    """What a page is answered: bytes, and what they are as HTTP calls it.

    ``again_s``: after so many seconds the browser asks again; 0: never.
    """

    body: bytes
    kind: str
    again_s: int = 0

    @classmethod
    def page(cls, text: str, again_s: int = 0) -> HttpAnswer:
        """Return a page of HTML."""
        return cls(text.encode(), _HTML, again_s)

    @classmethod
    def json(cls, facts: Any) -> HttpAnswer:
        """Return facts as JSON."""
        return cls(json_text(facts).encode(), "application/json")


class Served(Protocol):
    """What a server answers with."""

    @property
    def asks(self) -> Mapping[str, Callable[[Mapping[str, Any]], HttpAnswer]]:
        """Names of questions -> what answers them."""

    def got(self, name: str, given: Mapping[str, str]) -> HttpAnswer | None:
        """Return the page of a name, or None; the first page has the name ""."""


class Session:
    """Two schedules of a workload: one that stays, and one that follows the controls.

    Parameters
    ----------
    results : one or two results of the same jobs, by name; the second, or else a copy of the first,
        is the one that changes.
    command : words of the command line that names the jobs and their machine, for "save as".
    at : the moment of which forecasts are shown first; None: the reader chooses one.

    Raises
    ------
    HpcgymError : as for :func:`hpcgym.explore.page`; more than two results; or a schedule that
        cannot be simulated again with other rules: of a dispatcher or a function, under limits, on
        nodes that are shared or fail.
    """

    def __init__(
        self, results: Mapping[str, Result], command: Sequence[str], at: float | str | None = None
    ) -> None:
        if len(results) > 2:
            raise HpcgymError(f"the live app has one or two schedules, not {len(results)}")
        _check_changeable(results)
        (first, fixed), *others = results.items()
        self._name, self._fixed = first, fixed
        self._other, changed = others[0] if others else (f"{first}, changed", fixed)
        self._alone = not others
        self._begin = changed.scheduler
        self._command = list(command)
        self._one = threading.Lock()  # one simulation at a time
        self._one_forecast = threading.Lock()  # which waits for no explanation, a second or so
        self._origin = copy_context()  # of the command: requests come in threads of their own
        parts = {first: fixed, self._other: changed}
        #: The page with which the app begins, in UTF-8.
        self.page = explorer_page(parts, at=at, live=self._controls()).encode()
        self._fans = lru_cache(_FORECASTS)(lambda second: fans_of(self._fixed, second))

    def _controls(self) -> dict[str, Any]:
        """Return what can be chosen, and the rules that the controls begin with."""
        rules, hold = self._begin.describe(), self._begin.hold
        cluster, size = self._fixed.cluster, self._fixed.workload.requested_processors
        least, usual = int(size.max()), cluster.processors
        return {
            "policies": [*POLICIES, *sources("policies", POLICIES)],
            "weights": list(WEIGHTED_FEATURES),
            "backfills": [name for name in BACKFILL if name not in ("fill", "first-come:K")],
            "estimates": list(ESTIMATES),
            "rules": {**rules, "hold": hold.share if isinstance(hold, Hold) else None},
            # a machine that is named has its size from there
            "processors": None
            if cluster.groups or "--cluster" in self._command
            else {"least": least, "usual": usual, "most": _LARGER * usual},
        }

    @property
    def asks(self) -> Mapping[str, Callable[[Mapping[str, Any]], HttpAnswer]]:
        """What the page asks."""
        return {
            "simulate": self.simulate,
            "explain": self.explain,
            "forecast": self.forecast,
            "save": self.save,
        }

    def got(self, name: str, given: Mapping[str, str]) -> HttpAnswer | None:
        """Return the page."""
        return None if name else HttpAnswer(self.page, _HTML)

    def simulate(self, question: Mapping[str, Any]) -> HttpAnswer:
        """Return the schedule that the controls say, packed: ``run``, ``statistics`` and ``ms``."""
        with self._one:
            begin = time.perf_counter()
            result = self._simulated(question)
            spent = 1000 * (time.perf_counter() - begin)
        name = self._named(result)
        of_run, columns = of_schedule(result, name, 1, self._fixed, 1)
        values = statistics({self._name: self._fixed, name: result})
        head = {"run": of_run, "statistics": values, "ms": spent}
        return HttpAnswer(pack(head, columns), "application/json")

    def explain(self, question: Mapping[str, Any]) -> HttpAnswer:
        """Return why a job waited, ``{"sentences": [...], "delayed": [[number, seconds], ...]}``.

        ``delayed`` has the jobs that delayed it, and by how much, the most first. It is asked of
        the schedule 0, which stays; or of 1, by the rules that the question tells too.
        """
        job, schedule = question.get("job"), question.get("schedule")
        if not isinstance(job, int) or schedule not in (0, 1):
            raise HpcgymError("explain asks for a job, by its number, and the schedule 0 or 1")
        rules = {name: question[name] for name in question if name not in ("job", "schedule")}
        with self._one:
            result = self._simulated(rules) if schedule else self._fixed
            explanation = explain(result, job, most=_LEFT_OUT)
        facts = {"sentences": explanation.sentences, "delayed": list(explanation.delayed.items())}
        return HttpAnswer(json_text(facts).encode(), "application/json")

    def forecast(self, question: Mapping[str, Any]) -> HttpAnswer:
        """Return when jobs were expected to start that waited at a moment, see :func:`fans_of`.

        It is asked of the schedule that stays, and of ``at``, whole seconds since the first
        submission.
        """
        at = question.get("at")
        if type(at) is not int or not 0 <= at <= MAX_TIME:
            raise HpcgymError("forecast asks for a moment: whole seconds, from 0 on, as 'at'")
        with self._one_forecast:
            fans = self._fans(at + int(self._fixed.workload.submit_time[0]))
        return HttpAnswer(json_text(fans).encode(), "application/json")

    def save(self, question: Mapping[str, Any]) -> HttpAnswer:
        """Return what the controls say as a command, a file of a scheduler, or a page."""
        what = question.get("what")
        if what not in WAYS:
            raise HpcgymError(unknown("way to save", what, WAYS))
        rules = {name: value for name, value in question.items() if name != "what"}
        scheduler, processors = self._rules(rules)
        if what == "command":
            text = shlex.join([*self._words_for(processors), *options_of(scheduler)])
        elif what == "scheduler":
            text = scheduler_text(scheduler, f"{self._fixed.workload.name}, from hpcgym explore")
        else:
            with self._one:
                result = self._simulated(rules)
            parts = {self._name: self._fixed, self._named(result): result}
            text = self._origin.copy().run(explorer_page, parts, command="…")
            return HttpAnswer(text.encode(), _HTML)
        return HttpAnswer(text.encode(), _PLAIN)

    def _simulated(self, question: Mapping[str, Any]) -> Result:
        scheduler, processors = self._rules(question)
        usual = self._fixed.cluster
        machine = usual if processors is None else replace(usual, processors=processors)
        return simulate(self._fixed.workload, scheduler, cluster=machine)

    def _rules(self, question: Mapping[str, Any]) -> tuple[Scheduler, int | None]:
        """Return the scheduler and the size of the machine that a question means.

        Raises
        ------
        HpcgymError : a rule that there is not, or a value that it cannot have.
        """
        known = (*RULES, "processors")
        for name in question:
            if name not in known:
                raise HpcgymError(unknown("rule", name, known))
        processors, most = question.get("processors"), _LARGER * self._fixed.cluster.processors
        if processors is not None and not (type(processors) is int and 1 <= processors <= most):
            raise HpcgymError(
                f"processors must be a whole number from 1 to {most:,}, not {processors!r}"
            )
        if processors is not None and self._fixed.cluster.groups:
            raise HpcgymError("the size of a machine with nodes cannot be changed here")
        rules = {name: question[name] for name in RULES if name in question}
        for name in ("policy", "backfill", "estimate"):
            if name in rules and not isinstance(rules[name], str):
                raise HpcgymError(f"{name} must be a text, not {rules[name]!r}")
        if not (rules.get("hold") is None or is_number(rules["hold"])):
            raise HpcgymError(f"hold must be a share of the machine, not {rules['hold']!r}")
        return self._begin.but(**self._changes(rules)), processors

    def _changes(self, rules: Mapping[str, Any]) -> dict[str, Any]:
        """Return the rules that differ from those at the beginning: others stay as they were."""
        hold = self._begin.hold
        now = {**self._begin.describe(), "hold": hold.share if isinstance(hold, Hold) else None}
        changes = {name: value for name, value in rules.items() if value != now[name]}
        if changes.get("hold") and isinstance(hold, Hold):  # the other numbers of hold stay too
            changes["hold"] = replace(hold, share=changes["hold"])
        return changes

    def _words_for(self, processors: int | None) -> list[str]:
        """Return the words of the command that name the jobs, on a machine of this size."""
        words = self._command
        if processors in (None, self._fixed.cluster.processors):
            return words
        if "dropped: more processors than the machine" in self._fixed.workload.cleaning:
            raise HpcgymError(
                "jobs that are larger than the machine were dropped, and a command with another"
                " size would drop others: save a page, or begin with --processors"
            )
        if "--processors" in words:
            at = words.index("--processors")
            words = words[:at] + words[at + 2 :]
        return [*words, "--processors", str(processors)]

    def _named(self, result: Result) -> str:
        """Return the second schedule's name, which says so if the controls have changed it."""
        same_size = result.cluster.processors == self._fixed.cluster.processors
        same_rules = result.scheduler.describe() == self._begin.describe()
        same = same_size and same_rules
        return self._other if same or self._alone else f"{self._other}, changed"


def _check_changeable(results: Mapping[str, Result]) -> None:
    """Raise an HpcgymError of a schedule that other rules cannot be tried on."""
    for name, result in results.items():
        if reason := why_not_live(result):
            raise HpcgymError(f"{name} cannot be explored live, since {reason}: --output writes it")


def options_of(scheduler: Scheduler) -> list[str]:
    """Return the options of ``hpcgym simulate`` that turn EASY into a scheduler.

    Raises
    ------
    HpcgymError : a rule that no option can say.
    """
    usual, words = Scheduler(policy=scheduler.policy).describe() | {"policy": "fcfs"}, []
    for rule, value in scheduler.describe().items():
        if value == usual[rule]:
            continue
        if isinstance(getattr(scheduler, rule), Mapping | np.ndarray):
            raise HpcgymError(f"no option can say {rule}: save the scheduler as a file")
        words += [f"--{rule.replace('_', '-')}", str(value)]
    return words


# --- The live app's server ------------------------------------------------------------------------

HOST = "127.0.0.1"
_MOST_BYTES = 65_536  # of a question
_MOST_FIELDS = 20  # of a question in an address


class Server(ThreadingHTTPServer):
    """Serves a session under an address that nobody can guess.

    Other pages in the same browser could ask a server on this machine as well. So each request must
    have a random token in its path, name this server as its host, which keeps out names that were
    pointed at this machine, and come from this server's own page, if it says from where.

    Parameters
    ----------
    session : what is asked.
    port : to listen on; 0: a free one.

    Raises
    ------
    OSError : the port is taken.
    """

    daemon_threads = True

    def __init__(self, session: Served, port: int = 0) -> None:
        super().__init__((HOST, port), _Handler)
        self.session = session
        self.token = secrets.token_urlsafe(16)
        self.hosts = {f"{name}:{self.server_address[1]}" for name in (HOST, "localhost")}

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a browser that has gone before its answer came."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body go out as one packet
    server: Server

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: each movement of a slider is a request."""

    def do_GET(self) -> None:
        """Answer with a page."""
        what = self._asked()
        if what is None:
            return
        given = dict(parse_qsl(self.path.partition("?")[2], max_num_fields=_MOST_FIELDS))
        try:
            answer = self.server.session.got(what, given)
        except HpcgymError as error:
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
            return
        if answer is None:
            self._say(HTTPStatus.NOT_FOUND, f"there is nothing called {what!r} here")
            return
        self._send(HTTPStatus.OK, answer)

    def do_POST(self) -> None:
        """Answer a question in JSON; what is wrong with it is said in a line."""
        what = self._asked()
        if what is None:
            return
        asks = self.server.session.asks
        if what not in asks:
            self._say(HTTPStatus.NOT_FOUND, f"there is nothing called {what!r} here")
            return
        try:
            question = self._question()
        except HpcgymError as error:
            self._say(HTTPStatus.BAD_REQUEST, str(error))
            return
        try:
            answer = asks[what](question)
        except HpcgymError as error:
            self._say(HTTPStatus.UNPROCESSABLE_ENTITY, str(error))
            return
        self._send(HTTPStatus.OK, answer)

    def _question(self) -> dict[str, Any]:
        """Return the object of JSON that is sent; raise an HpcgymError if it is not one."""
        length = self.headers.get("Content-Length", "")
        # of over 4,300 digits Python makes no number
        plain = length.isascii() and length.isdigit() and len(length) <= len(str(_MOST_BYTES))
        if not (plain and int(length) <= _MOST_BYTES):
            raise HpcgymError(f"a question has 0 to {_MOST_BYTES:,} bytes")
        question = json_of(self.rfile.read(int(length)), "the question")
        if not isinstance(question, dict):
            raise HpcgymError("the question must be an object of JSON")
        return question

    def _asked(self) -> str | None:
        """Return what is asked for; None where the request is refused, which it has been told."""
        if not self.path.startswith("/"):  # a page asks for no whole address
            self._say(HTTPStatus.BAD_REQUEST, "a request names a path that begins with /")
            return None
        origin = self.headers.get("Origin")
        token, slash, what = self.path.partition("?")[0].removeprefix("/").partition("/")
        known = slash and secrets.compare_digest(token.encode(), self.server.token.encode())
        own_page = origin is None or origin in {f"http://{host}" for host in self.server.hosts}
        if known and own_page and self.headers.get("Host") in self.server.hosts:
            return what
        self._say(HTTPStatus.FORBIDDEN, "this is for the page that hpcgym has opened")
        return None

    def _say(self, status: HTTPStatus, text: str) -> None:
        # what is left of a question is not read: the next one would begin with it
        self.close_connection = True
        self._send(status, HttpAnswer(text.encode(), _PLAIN))

    def _send(self, status: HTTPStatus, answer: HttpAnswer) -> None:
        self.send_response(status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        if answer.again_s:
            self.send_header("Refresh", str(answer.again_s))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
